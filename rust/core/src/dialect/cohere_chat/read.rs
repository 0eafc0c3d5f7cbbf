//! Reader of Cohere Chat frames: one frame → one [`Event`].

use crate::contract::Logprobs;
use crate::dialect::protocol::{Frame, Wanted};
use crate::dialect::unread::Unread;
use crate::json::{Kind, Reader, Result, Str};
use crate::template::{Template, Token, Tokens};

/// One event, borrowed from its frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// `message-start`, or `stream-start` of version 1.
    Start {
        /// The id of the response.
        id: Option<Str<'a>>,
        /// The message, which is usually empty.
        message: Option<&'a str>,
    },
    /// `content-start` or `content-delta`.
    Content {
        /// The index of the block.
        index: Option<i64>,
        /// The block is reasoning.
        thinking: bool,
        /// The new text.
        text: Str<'a>,
        /// Log probabilities, if the caller wants them and the event has any.
        logprobs: Option<Box<Logprobs>>,
    },
    /// `content-start` or `content-delta` with a list of blocks.
    Blocks {
        /// The index of the first block.
        index: Option<i64>,
        /// The list.
        blocks: &'a str,
    },
    /// A block of an unknown kind.
    Block(&'a str),
    /// `tool-plan-delta`.
    Plan(Str<'a>),
    /// `tool-call-start` or `tool-call-delta`.
    Call {
        /// The index of the call.
        index: Option<i64>,
        /// The event starts the call.
        begins: bool,
        /// The new content of the call.
        call: Call<'a>,
    },
    /// `tool-call-end`.
    CallEnd {
        /// The index of the call.
        index: Option<i64>,
    },
    /// `citation-start`: a citation, or a list of them.
    Citation(&'a str),
    /// `message-end`.
    End {
        /// The id of the response.
        id: Option<Str<'a>>,
        /// How it ended.
        end: End<'a>,
    },
    /// `tool-calls-generation` of version 1: all calls of the message, complete.
    Calls(&'a str),
    /// A whole response body, or the `response` of version 1's `stream-end`, which repeats the streamed content.
    Whole {
        /// The response object.
        response: &'a str,
        /// The provider's finish reason, if it is beside the response and not in it.
        finish_reason: Option<Str<'a>>,
    },
    /// A bare error: the whole frame.
    Failed(&'a str),
    /// A redundant event; ignored.
    Progress,
    /// The end of a content block.
    ContentEnd {
        /// The index of the block.
        index: Option<i64>,
    },
    /// An event of an unknown type.
    Unknown(Str<'a>),
    /// An event with members that no rule knows.
    Beside(Box<(Event<'a>, Unread<'a>)>),
}

/// The new content of a tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Call<'a> {
    /// The id of the call.
    pub id: Option<Str<'a>>,
    /// The name of the tool.
    pub name: Option<Str<'a>>,
    /// The arguments, or raw JSON if the server sends an object.
    pub arguments: Option<Str<'a>>,
}

/// The end of a message: its reason and its usage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct End<'a> {
    /// The provider's finish reason.
    pub finish_reason: Option<Str<'a>>,
    /// The usage record.
    pub usage: Option<&'a str>,
    /// The error message of a failure.
    pub error: Option<&'a str>,
}

#[derive(Default)]
struct Members<'a> {
    kind: Option<Str<'a>>,
    id: Option<Str<'a>>,
    index: Option<i64>,
    begun_with: Option<&'a str>,
    blocks: Option<&'a str>,
    text: Option<Str<'a>>,
    thinking: Option<Str<'a>>,
    begun_as: Option<Str<'a>>,
    /// A block of an unknown kind.
    unknown: Option<&'a str>,
    plan: Option<Str<'a>>,
    call: Call<'a>,
    calls: Option<&'a str>,
    citations: Option<&'a str>,
    end: End<'a>,
    message: bool,
    /// A member of Ollama's lines, which have a `message` too.
    is_line: bool,
    response: Option<&'a str>,
    words: bool,
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
            "type" | "event_type" => found.kind = reader.filled_string()?,
            "id" | "generation_id" | "response_id" => {
                found.id = reader.id()?.or(found.id);
            }
            "index" => found.index = reader.integer()?,
            "delta" => reader.maybe_object(|reader, key| found.read_delta(reader, key, wanted))?,
            // Version 1.
            "text" => found.text = reader.filled_string()?,
            "tool_call_delta" => {
                reader.maybe_object(|reader, key| match key {
                    "index" => {
                        found.index = reader.integer()?;
                        Ok(())
                    }
                    _ => read_call_member(reader, key, &mut found.call, &mut found.unread),
                })?;
            }
            "tool_calls" => found.calls = reader.opt_raw()?,
            "citations" => found.citations = reader.opt_raw()?,
            "response" => found.response = reader.opt_raw()?.filter(|raw| raw.starts_with('{')),
            "finish_reason" => found.end.finish_reason = reader.filled_string()?,
            // An object in a whole body, a string in an error.
            "message" => {
                found.message = reader.kind()? == Kind::Object;
                found.words = reader.kind()? == Kind::String;
                reader.skip()?;
            }
            "done" => {
                found.is_line = true;
                found.unread.fact(reader, key)?;
            }
            "error" | "errors" => found.words |= reader.opt_raw()?.is_some(),
            "logprobs" if wanted.logprobs && reader.kind()? == Kind::Object => {
                found.logprobs = logprobs(reader)?;
            }
            "logprobs" if reader.kind()? == Kind::Object => {
                found.logprobs = Wanted::unread_logprobs(reader)?;
            }
            // Version 1 says in each event whether it is the last.
            "is_finished" => reader.ignore()?,
            // A whole body is read later.
            _ if found.message => reader.ignore()?,
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
            Self::Start { .. } | Self::End { .. } => Self::Beside(Box::new((self, unread))),
            Self::Content { .. }
            | Self::Plan(_)
            | Self::Call { .. }
            | Self::CallEnd { .. }
            | Self::Citation(_)
            | Self::ContentEnd { .. } => Self::Beside(Box::new((self, unread.into_dropped()))),
            // A whole body and its lists are read later, and what an error or an unknown block holds is kept.
            event => event,
        }
    }
}

impl<'a> Members<'a> {
    fn read_delta(&mut self, reader: &mut Reader<'a>, key: &str, wanted: Wanted) -> Result<()> {
        match key {
            "message" => {
                let start = reader.position();
                reader.maybe_object(|reader, key| {
                    match key {
                        // Some servers send the text itself in place of a block.
                        "content" if reader.kind()? == Kind::String => {
                            self.text = reader.filled_string()?;
                        }
                        "content" if reader.kind()? == Kind::Array => {
                            self.blocks = reader.opt_raw()?;
                        }
                        "content" => {
                            let start = reader.position();
                            reader.maybe_object(|reader, key| {
                                match key {
                                    "type" => self.begun_as = reader.opt_string()?,
                                    "text" => self.text = reader.filled_string()?,
                                    "thinking" => self.thinking = reader.filled_string()?,
                                    "logprobs" if wanted.logprobs => {
                                        self.logprobs = logprobs(reader)?;
                                    }
                                    "logprobs" => self.logprobs = Wanted::unread_logprobs(reader)?,
                                    key => self.unread.dropped(reader, key)?,
                                }
                                Ok(())
                            })?;
                            if self.begun_as.is_some_and(is_unknown) {
                                self.unknown = Some(reader.since(start));
                            }
                        }
                        "tool_plan" => self.plan = reader.filled_string()?,
                        // A single object, in spite of the plural name.
                        "tool_calls" => reader.maybe_object(|reader, key| {
                            read_call_member(reader, key, &mut self.call, &mut self.unread)
                        })?,
                        "citations" => self.citations = reader.opt_raw()?,
                        "role" => reader.ignore()?,
                        key => self.unread.content(reader, key)?,
                    }
                    Ok(())
                })?;
                self.begun_with = Some(reader.since(start));
                Ok(())
            }
            "finish_reason" => {
                self.end.finish_reason = reader.filled_string()?;
                Ok(())
            }
            "usage" => {
                self.end.usage = reader.opt_raw()?;
                Ok(())
            }
            "error" => {
                self.end.error = reader.opt_raw()?;
                Ok(())
            }
            "logprobs" if wanted.logprobs => {
                self.logprobs = logprobs(reader)?;
                Ok(())
            }
            "logprobs" => {
                self.logprobs = Wanted::unread_logprobs(reader)?;
                Ok(())
            }
            key => self.unread.fact(reader, key),
        }
    }

    fn event(self, frame: Frame<'a>) -> Event<'a> {
        let body = self.kind.is_none()
            && !self.is_line
            && (self.message || self.end.finish_reason.is_some());
        if body {
            return Event::Whole { response: frame.json, finish_reason: None };
        }
        let kind = self.kind.unwrap_or(Str::plain(frame.name));
        let index = self.index;
        match kind.raw {
            "message-start" | "stream-start" => {
                Event::Start { id: self.id, message: self.begun_with }
            }
            "content-start" | "content-delta" | "text-generation" => match self.blocks {
                Some(blocks) => Event::Blocks { index, blocks },
                None => self.content(),
            },
            "tool-plan-delta" => self.plan.map_or(Event::Progress, Event::Plan),
            "tool-call-start" => Event::Call { index, begins: true, call: self.call },
            "tool-call-delta" => Event::Call { index, begins: false, call: self.call },
            "tool-calls-chunk" => match self.text {
                // In version 1, a chunk with only text holds the plan.
                Some(text) if self.call == Call::default() => Event::Plan(text),
                _ => Event::Call { index, begins: self.call.name.is_some(), call: self.call },
            },
            "tool-call-end" => Event::CallEnd { index },
            "tool-calls-generation" => self.calls.map_or(Event::Progress, Event::Calls),
            "citation-start" | "citation-generation" => {
                self.citations.map_or(Event::Progress, Event::Citation)
            }
            "message-end" => Event::End { id: self.id, end: self.end },
            "stream-end" => Event::Whole {
                response: self.response.unwrap_or(frame.json),
                finish_reason: self.end.finish_reason,
            },
            "content-end" => Event::ContentEnd { index },
            "citation-end" | "debug" | "search-queries-generation" | "search-results" => {
                Event::Progress
            }
            _ if self.words => Event::Failed(frame.json),
            _ => Event::Unknown(kind),
        }
    }

    fn content(self) -> Event<'a> {
        let thinking = self.thinking.is_some()
            || (self.text.is_none() && self.begun_as.is_some_and(|kind| kind.raw == "thinking"));
        let text = if thinking { self.thinking } else { self.text };
        match (text, self.logprobs) {
            (None, None) => self.unknown.map_or(Event::Progress, Event::Block),
            (text, logprobs) => {
                let text = text.unwrap_or(Str::plain(""));
                Event::Content { index: self.index, thinking, text, logprobs }
            }
        }
    }
}

/// Return whether no rule knows the kind of a block.
pub(super) fn is_unknown(kind: Str<'_>) -> bool {
    !matches!(kind.raw, "" | "text" | "thinking")
}

fn read_call_member<'a>(
    reader: &mut Reader<'a>,
    key: &str,
    call: &mut Call<'a>,
    unread: &mut Unread<'a>,
) -> Result<()> {
    match key {
        "id" => call.id = reader.id()?,
        "function" => {
            reader.maybe_object(|reader, key| read_call_member(reader, key, call, unread))?;
        }
        "name" => call.name = reader.filled_string()?,
        "arguments" | "parameters" => call.arguments = reader.text_or_json()?,
        "type" => reader.ignore()?,
        key => unread.dropped(reader, key)?,
    }
    Ok(())
}

/// Read one call of a list.
pub(super) fn read_call<'a>(reader: &mut Reader<'a>, unread: &mut Unread<'a>) -> Result<Call<'a>> {
    let mut call = Call::default();
    reader.maybe_object(|reader, key| read_call_member(reader, key, &mut call, unread))?;
    Ok(call)
}

/// Read `{token_ids, text, logprobs}`: parallel lists, and the joint text of all tokens.
fn logprobs(reader: &mut Reader<'_>) -> Result<Option<Box<Logprobs>>> {
    let mut ids = Vec::new();
    let mut values = Vec::new();
    let mut text = None;
    reader.maybe_object(|reader, key| match key {
        "token_ids" => reader.maybe_array(|reader| {
            ids.push(reader.integer()?.filter(|id| *id >= 0));
            Ok(())
        }),
        "logprobs" => reader.maybe_array(|reader| {
            values.push(reader.float()?.unwrap_or(f64::NAN));
            Ok(())
        }),
        "text" => {
            text = reader.opt_string()?;
            Ok(())
        }
        _ => reader.skip(),
    })?;
    let mut found = Logprobs::default();
    for row in 0..ids.len().max(values.len()) {
        found.open();
        // The texts of the single tokens are unknown.  The first token carries the joint text.
        if let Some(text) = text.filter(|_| row == 0) {
            found.set_token(text);
        }
        found.set_logprob(values.get(row).copied().unwrap_or(f64::NAN));
        if let Some(id) = ids.get(row).copied().flatten() {
            found.set_id(id);
        }
    }
    Ok((!found.is_empty()).then(|| Box::new(found)))
}

/// The events that repeat: text, a plan, arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventTemplate {
    /// An [`Event::Content`].
    Content {
        /// The index of the block.
        index: Option<i64>,
        /// The block is reasoning.
        thinking: bool,
        /// The new text.
        text: Token,
    },
    /// An [`Event::Plan`].
    Plan(Token),
    /// An [`Event::Call`] with only arguments.
    Arguments {
        /// The index of the call.
        index: Option<i64>,
        /// The new text.
        text: Token,
    },
}

impl Template for EventTemplate {
    type Event<'a> = Event<'a>;

    fn has_facts(event: &Event<'_>) -> bool {
        matches!(event, Event::Beside(_))
    }

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        match *event {
            Event::Beside(ref beside) => Self::from_event(&beside.0, tokens),
            Event::Content { index, thinking, text, logprobs: None } => {
                Some(Self::Content { index, thinking, text: tokens.changing(text) })
            }
            Event::Plan(text) => Some(Self::Plan(tokens.changing(text))),
            Event::Call {
                index,
                begins: false,
                call: Call { id: None, name: None, arguments: Some(text) },
            } => Some(Self::Arguments { index, text: tokens.changing(text) }),
            _ => None,
        }
    }

    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        match *self {
            Self::Content { index, thinking, text: token } => {
                Event::Content { index, thinking, text: text(token), logprobs: None }
            }
            Self::Plan(token) => Event::Plan(text(token)),
            Self::Arguments { index, text: token } => Event::Call {
                index,
                begins: false,
                call: Call { id: None, name: None, arguments: Some(text(token)) },
            },
        }
    }
}
