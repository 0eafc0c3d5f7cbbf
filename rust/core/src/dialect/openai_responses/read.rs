//! Reader of Responses frames: one frame → one [`Event`].
//!
//! A new event of the API gets its name in `from_event_name`, or in `is_progress` if it only reports progress; one that
//! has members of its own gets a variant of [`Event`], which `apply.rs` applies.

use crate::contract::Logprobs;
use crate::dialect::openai_chat::logprobs::read_entries;
use crate::dialect::protocol::{Frame, Wanted};
use crate::dialect::unread::Unread;
use crate::json::{Kind, Reader, Result, Str};
use crate::template::{Template, Token, Tokens};

/// One event, borrowed from its frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// `….delta`: a fragment of a content.
    More {
        /// The kind of the content.
        content: Content,
        /// The position of the content.
        position: ItemPosition<'a>,
        /// The new text.
        text: Str<'a>,
        /// Log probabilities, if the caller wants them and the event has any.
        logprobs: Option<Box<Logprobs>>,
    },
    /// `….done`: the whole of a content.
    Whole {
        /// The kind of the content.
        content: Content,
        /// The position of the content.
        position: ItemPosition<'a>,
        /// The text, or raw JSON if the server sends an object.
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
        /// The position of the item.
        position: ItemPosition<'a>,
        /// The item in its initial state.
        item: &'a str,
    },
    /// `response.output_item.done`
    ItemDone {
        /// The position of the item.
        position: ItemPosition<'a>,
        /// The whole item.
        item: &'a str,
    },
    /// An event that holds the response, or a whole response body.
    Response {
        /// The progress of the response.
        stage: ResponseStage,
        /// The response object.
        response: &'a str,
    },
    /// An `error` event, which `response.failed` may follow: the whole frame.
    Error(&'a str),
    /// A bare error, after which no event follows: the whole frame.
    Failed(&'a str),
    /// A redundant event; ignored.
    Progress,
    /// An event of an unknown type.
    Unknown(Str<'a>),
    /// An event with members that no rule knows.
    Beside(Box<(Event<'a>, Unread<'a>)>),
}

/// The kind of content that a delta extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Visible text.
    Text,
    /// Visible text that declines the request.
    Refusal,
    /// The summary of reasoning.
    Summary,
    /// The reasoning itself.
    Reasoning,
    /// Arguments of a function call.
    Arguments,
    /// Input of a custom tool call.
    Input,
    /// The transcript of generated speech.
    Transcript,
    /// Generated speech as base64.
    Audio,
    /// A member of a block that is specific to the provider.
    Member(&'static str),
}

/// The position of an item or of one of its contents.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ItemPosition<'a> {
    /// The item's position in the output.
    pub output_index: Option<i64>,
    /// The item's id, or the call's id.  One gateway sends another id with each event.
    pub item_id: Option<Str<'a>>,
    /// `content_index`, `summary_index`, or `command_index` of a call of a shell.
    pub index: Option<i64>,
}

/// The progress of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseStage {
    /// The response goes on.
    Running,
    /// `response.completed`
    Completed,
    /// `response.incomplete`
    Incomplete,
    /// `response.failed`
    Failed,
    /// A whole response body, whose `status` member holds the progress.
    Body,
}

#[derive(Default)]
struct Members<'a> {
    kind: Option<Str<'a>>,
    call_id: Option<Str<'a>>,
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
    unread: Unread<'a>,
}

/// Read a frame.
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
            "content_index" | "summary_index" | "command_index" => {
                found.position.index = reader.integer()?;
            }
            "item_id" => found.position.item_id = reader.id()?,
            "call_id" => found.call_id = reader.id()?,
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
            "logprobs" => found.logprobs = Wanted::unread_logprobs(reader)?,
            // The name of a call, which its item has.
            "sequence_number" | "annotation_index" | "name" => reader.ignore()?,
            // A whole body is read later.
            _ if found.object.is_some() => reader.ignore()?,
            key => found.unread.fact(reader, key)?,
        }
        Ok(())
    })?;
    reader.end()?;
    let unread = std::mem::take(&mut found.unread);
    Ok(found.event(frame).with(unread))
}

impl<'a> Event<'a> {
    /// Return the event with its members that no rule knows.
    fn with(self, unread: Unread<'a>) -> Self {
        if unread.is_empty() {
            return self;
        }
        match self {
            Self::More { .. }
            | Self::Whole { .. }
            | Self::Annotation { .. }
            | Self::ItemAdded { .. }
            | Self::ItemDone { .. } => Self::Beside(Box::new((self, unread.into_dropped()))),
            Self::Response { stage, .. } if stage != ResponseStage::Body => {
                Self::Beside(Box::new((self, unread)))
            }
            // A whole body is read later, that of an error is kept, and what reports progress is repeated.
            event => event,
        }
    }
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
        let mut position = self.position;
        position.item_id = position.item_id.or(self.call_id);
        let name = kind.raw.strip_prefix("response.").unwrap_or(kind.raw);
        if let Some((content, done)) = Content::from_event_name(name) {
            let text = if done { self.whole } else { self.delta.or(self.whole) };
            return match text {
                Some(text) if done => Event::Whole { content, position, text },
                Some(text) => Event::More { content, position, text, logprobs: self.logprobs },
                None if self.logprobs.as_ref().is_some_and(|read| !read.is_empty()) && !done => {
                    Event::More { content, position, text: Str::plain(""), logprobs: self.logprobs }
                }
                None if done && matches!(content, Content::Arguments | Content::Input) => {
                    Event::Whole { content, position, text: Str::plain("") }
                }
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
            // The error of an event of the response that no rule knows is not that of the answer: OpenRouter's `fusion_call`
            // has one where a model of its panel failed.
            _ if self.error && !kind.raw.starts_with("response.") => Event::Failed(frame.json),
            _ => Event::Unknown(kind),
        }
    }
}

impl Content {
    /// Return whether the content opens an item that no event announced.  Other content needs the name of a tool.
    pub(super) fn opens_item(self) -> bool {
        match self {
            Self::Text | Self::Refusal | Self::Transcript | Self::Summary | Self::Reasoning => true,
            Self::Arguments | Self::Input | Self::Audio | Self::Member(_) => false,
        }
    }

    /// Return the content that an event of this name carries, and whether the event carries all of it.
    fn from_event_name(name: &str) -> Option<(Self, bool)> {
        let (of, done) = match name.strip_suffix(".delta") {
            Some(of) => (of, false),
            None => (name.strip_suffix(".done")?, true),
        };
        let content = match of {
            "output_text" => Self::Text,
            "refusal" => Self::Refusal,
            "reasoning_summary_text" => Self::Summary,
            // `reasoning` is the name in Open Responses.
            "reasoning_text" | "reasoning" => Self::Reasoning,
            "function_call_arguments" => Self::Arguments,
            "custom_tool_call_input" => Self::Input,
            "audio.transcript" => Self::Transcript,
            "audio" => Self::Audio,
            "code_interpreter_call_code" => Self::Member("code"),
            "mcp_call_arguments" => Self::Member("arguments"),
            "shell_call_command" => Self::Member(COMMAND),
            "shell_call_output_content" => Self::Member("output"),
            "apply_patch_call_operation_diff" => Self::Member("diff"),
            _ => return None,
        };
        Some((content, done))
    }
}

/// Member of the commands that a call of a shell has in its deltas.
pub(super) const COMMAND: &str = "command";

/// Return whether an event only reports progress.  The `done` event of its item repeats all of its data.
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

/// The events that repeat: fragments of a content.
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

    fn has_facts(event: &Event<'_>) -> bool {
        matches!(event, Event::Beside(_))
    }

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        match *event {
            Event::Beside(ref beside) => Self::from_event(&beside.0, tokens),
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
