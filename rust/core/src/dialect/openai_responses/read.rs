//! One Responses frame → [`Event`].

use crate::contract::Logprobs;
use crate::dialect::openai_chat::logprobs::read_entries;
use crate::dialect::protocol::{Frame, Wanted};
use crate::json::{Kind, Reader, Result, Str};
use crate::template::{Template, Token, Tokens};

/// One event, borrowed from its frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// `….delta`: more of something.
    More {
        /// Of what.
        content: Content,
        /// Where.
        position: ItemPosition<'a>,
        /// The new text.
        text: Str<'a>,
        /// Read where they are wanted and there are any.
        logprobs: Option<Box<Logprobs>>,
    },
    /// `….done`: the whole of something.
    Whole {
        /// Of what.
        content: Content,
        /// Where.
        position: ItemPosition<'a>,
        /// The text; JSON as it stands where a server sends an object.
        text: Str<'a>,
    },
    /// `response.output_text.annotation.added`
    Annotation {
        /// The text's position.
        position: ItemPosition<'a>,
        /// The annotation object.
        annotation: &'a str,
    },
    /// `response.output_item.added`
    ItemAdded {
        /// Where.
        position: ItemPosition<'a>,
        /// The item as it begins.
        item: &'a str,
    },
    /// `response.output_item.done`
    ItemDone {
        /// Where.
        position: ItemPosition<'a>,
        /// The whole item.
        item: &'a str,
    },
    /// An event that holds the response, or a whole response body.
    Response {
        /// Whether it ends the stream, and how.
        stage: ResponseStage,
        /// The response object.
        response: &'a str,
    },
    /// An `error` event, which `response.failed` may follow: the whole frame.
    Error(&'a str),
    /// A bare error, which nothing follows: the whole frame.
    Failed(&'a str),
    /// What says nothing that another event does not say.
    Progress,
    /// A type that is not known.
    Unknown(Str<'a>),
}

/// What a delta is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Visible text.
    Text,
    /// Visible text that declines.
    Refusal,
    /// The summary of reasoning.
    Summary,
    /// Reasoning itself.
    Reasoning,
    /// Arguments of a function call.
    Arguments,
    /// Input of a custom tool call.
    Input,
    /// What is said aloud, as text.
    Transcript,
    /// What is said aloud, as base64.
    Audio,
    /// A member of a block that only its provider understands.
    Member(&'static str),
}

/// Where something belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ItemPosition<'a> {
    /// The item's position in the output.
    pub output_index: Option<i64>,
    /// The item's id; one gateway sends another with each event.
    pub item_id: Option<Str<'a>>,
    /// `content_index` or `summary_index`.
    pub index: Option<i64>,
}

/// How far a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseStage {
    /// It goes on.
    Running,
    /// `response.completed`
    Completed,
    /// `response.incomplete`
    Incomplete,
    /// `response.failed`
    Failed,
    /// A whole body: its own status says so.
    Body,
}

#[derive(Default)]
struct Members<'a> {
    kind: Option<Str<'a>>,
    object: Option<Str<'a>>,
    position: ItemPosition<'a>,
    delta: Option<Str<'a>>,
    whole: Option<Str<'a>>,
    item: Option<&'a str>,
    annotation: Option<&'a str>,
    response: Option<&'a str>,
    output: bool,
    error: bool,
    logprobs: Option<Box<Logprobs>>,
}

/// Reads a frame.
pub(super) fn read<'a>(
    frame: Frame<'a>,
    reader: &mut Reader<'a>,
    wanted: Wanted,
) -> Result<Event<'a>> {
    let mut found = Members::default();
    reader.object(|reader, key| {
        match key {
            "type" => found.kind = reader.filled_string()?,
            "output_index" => found.position.output_index = reader.integer()?,
            "content_index" | "summary_index" => found.position.index = reader.integer()?,
            "item_id" => found.position.item_id = reader.id()?,
            "delta" => found.delta = reader.filled_string()?,
            "text" | "refusal" | "input" => found.whole = reader.opt_string()?.or(found.whole),
            "arguments" => found.whole = reader.text_or_json()?,
            "item" => found.item = Some(reader.raw()?),
            "annotation" => found.annotation = Some(reader.raw()?),
            "response" if reader.kind()? == Kind::Object => found.response = Some(reader.raw()?),
            "object" => found.object = reader.opt_string()?,
            "output" => {
                found.output = reader.kind()? == Kind::Array;
                reader.ignore()?;
            }
            "error" | "errors" | "detail" => found.error |= reader.opt_raw()?.is_some(),
            "logprobs" if wanted.logprobs && reader.kind()? == Kind::Array => {
                let mut logprobs = Logprobs::default();
                read_entries(reader, &mut logprobs)?;
                found.logprobs = (!logprobs.is_empty()).then(|| Box::new(logprobs));
            }
            // Their many numbers make no template.
            "logprobs" => reader.skip()?,
            _ => reader.ignore()?,
        }
        Ok(())
    })?;
    reader.end()?;
    Ok(found.event(frame))
}

impl<'a> Members<'a> {
    fn event(self, frame: Frame<'a>) -> Event<'a> {
        if self.kind.is_none()
            && (self.output || self.object.is_some_and(|object| object.raw == "response"))
        {
            return Event::Response { stage: ResponseStage::Body, response: frame.json };
        }
        let Some(kind) = self.kind.or(Some(Str::plain(frame.name)).filter(|name| !name.is_empty()))
        else {
            return if self.error {
                Event::Failed(frame.json)
            } else {
                Event::Unknown(Str::plain(""))
            };
        };
        let position = self.position;
        let name = kind.raw.strip_prefix("response.").unwrap_or(kind.raw);
        if let Some((content, done)) = Content::from_event_name(name) {
            let text = if done { self.whole } else { self.delta.or(self.whole) };
            return match text {
                Some(text) if done => Event::Whole { content, position, text },
                Some(text) => Event::More { content, position, text, logprobs: self.logprobs },
                None => Event::Progress,
            };
        }
        let response = |stage| Event::Response { stage, response: self.response.unwrap_or("{}") };
        match (name, self.item, self.annotation) {
            ("output_item.added", Some(item), _) => Event::ItemAdded { position, item },
            ("output_item.done", Some(item), _) => Event::ItemDone { position, item },
            ("output_text.annotation.added", _, Some(annotation)) => {
                Event::Annotation { position, annotation }
            }
            ("created" | "in_progress" | "queued", ..) => response(ResponseStage::Running),
            ("completed" | "done", ..) => response(ResponseStage::Completed),
            ("incomplete", ..) => response(ResponseStage::Incomplete),
            ("failed" | "cancelled", ..) => response(ResponseStage::Failed),
            ("error", ..) => Event::Error(frame.json),
            _ if is_progress(name) => Event::Progress,
            _ if self.error => Event::Failed(frame.json),
            _ => Event::Unknown(kind),
        }
    }
}

impl Content {
    /// What an event of this name brings, and whether it is the whole of it.
    fn from_event_name(name: &str) -> Option<(Self, bool)> {
        let (of, done) = match name.strip_suffix(".delta") {
            Some(of) => (of, false),
            None => (name.strip_suffix(".done")?, true),
        };
        let content = match of {
            "output_text" => Self::Text,
            "refusal" => Self::Refusal,
            "reasoning_summary_text" => Self::Summary,
            // The second is Open Responses' name.
            "reasoning_text" | "reasoning" => Self::Reasoning,
            "function_call_arguments" => Self::Arguments,
            "custom_tool_call_input" => Self::Input,
            "audio.transcript" => Self::Transcript,
            "audio" => Self::Audio,
            "code_interpreter_call_code" => Self::Member("code"),
            "mcp_call_arguments" => Self::Member("arguments"),
            "shell_call_command" => Self::Member("command"),
            "shell_call_output_content" => Self::Member("output"),
            "apply_patch_call_operation_diff" => Self::Member("diff"),
            _ => return None,
        };
        Some((content, done))
    }
}

/// Events that only tell how far something is; its item says all of it when it is done.
fn is_progress(name: &str) -> bool {
    const OF: [&str; 16] = [
        "apply_patch_call",
        "code_interpreter_call",
        "compaction",
        "computer_call",
        "content_part",
        "file_search_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "output_item",
        "reasoning_part",
        "reasoning_summary_part",
        "shell_call",
        "shell_call_command",
        "tool_search_call",
        "web_search_call",
    ];
    let of = name.rsplit_once('.').map_or(name, |(of, _)| of);
    OF.contains(&of) || matches!(name, "keepalive" | "ping" | "steer.accepted" | "steer.pending")
}

/// The events that repeat: more of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventTemplate {
    content: Content,
    output_index: Option<i64>,
    index: Option<i64>,
    item_id: Option<Token>,
    text: Token,
}

impl Template for EventTemplate {
    type Event<'a> = Event<'a>;

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        match *event {
            Event::More { content, position, text, logprobs: None } => Some(Self {
                content,
                output_index: position.output_index,
                index: position.index,
                item_id: position.item_id.map(|id| tokens.rarely_changing(id)),
                text: tokens.changing(text),
            }),
            _ => None,
        }
    }

    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        let position = ItemPosition {
            output_index: self.output_index,
            item_id: self.item_id.map(&text),
            index: self.index,
        };
        Event::More { content: self.content, position, text: text(self.text), logprobs: None }
    }
}
