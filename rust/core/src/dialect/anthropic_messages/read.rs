//! Reader of Messages frames: one frame → one [`Event`].

use super::deltas::{BlockDelta, DeltaMembers, Facts, read_delta_member};
use crate::dialect::protocol::Frame;
use crate::dialect::unread::Unread;
use crate::json::{Kind, Reader, Result, Str};
use crate::template::{Template, Token, Tokens};

/// One event, borrowed from its frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// `message_start`, or a whole response body.
    Message {
        /// The message object.
        message: Message<'a>,
        /// The message is the whole answer.
        whole: bool,
    },
    /// `content_block_start`.
    BlockStart {
        /// The index of the block.
        index: Option<i64>,
        /// The block object.
        block: &'a str,
    },
    /// `content_block_delta`.
    BlockDelta {
        /// The index of the block.
        index: Option<i64>,
        /// The new content.
        delta: BlockDelta<'a>,
    },
    /// `content_block_stop`.
    BlockStop {
        /// The index of the block.
        index: Option<i64>,
    },
    /// `message_delta`.
    MessageDelta {
        /// The stop reason.
        stop_reason: Option<Str<'a>>,
        /// Members for the terminal event.
        facts: Facts<'a>,
        /// Cumulative counts.
        usage: Option<&'a str>,
        /// Changes that the API made of the request: a JSON array.
        transformations: Option<&'a str>,
    },
    /// `message_stop`.
    MessageStop,
    /// `ping`.
    Ping,
    /// `error`: the whole frame.
    Error(&'a str),
    /// An event of an unknown type.
    Unknown(Str<'a>),
    /// An event with members that no rule knows.
    Beside(Box<(Event<'a>, Unread<'a>)>),
}

/// The members of a message object that the decoder interprets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Message<'a> {
    pub(super) id: Option<Str<'a>>,
    pub(super) model: Option<Str<'a>>,
    pub(super) content: Option<&'a str>,
    pub(super) stop_reason: Option<Str<'a>>,
    pub(super) usage: Option<&'a str>,
    /// Changes that the API made of the request, such as thinking that it dropped: a JSON array.
    pub(super) transformations: Option<&'a str>,
    pub(super) facts: Facts<'a>,
}

impl<'a> Message<'a> {
    /// Read a message.  A value that is not an object gives an empty message.
    fn read(reader: &mut Reader<'a>, unread: &mut Unread<'a>) -> Result<Self> {
        let mut message = Self::default();
        reader.maybe_object(|reader, key| {
            match key {
                "id" => message.id = reader.id()?,
                "model" => message.model = reader.filled_string()?,
                "content" => message.content = Some(reader.raw()?),
                "stop_reason" => message.stop_reason = reader.filled_string()?,
                "usage" => message.usage = reader.opt_raw()?,
                "input_transformations" => message.transformations = reader.opt_raw()?,
                "type" | "role" => reader.ignore()?,
                _ if message.facts.read(reader, key)? => {}
                key => unread.fact(reader, key)?,
            }
            Ok(())
        })?;
        Ok(message)
    }
}

/// The deltas that repeat (text, thinking, arguments), and the events that begin and end most streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventTemplate {
    /// A delta that repeats.
    Delta(DeltaTemplate),
    /// `message_start`.
    Message {
        /// The tokens of its message, in the order of the members of [`Message`].
        id: Option<Token>,
        /// See above.
        model: Option<Token>,
        /// See above.
        content: Option<Token>,
        /// See above.
        usage: Option<Token>,
    },
    /// `content_block_start`.
    BlockStart(Option<i64>, Token),
    /// `content_block_stop`.
    BlockStop(Option<i64>),
    /// `message_delta`: the stop reason and the counts.
    MessageDelta(Option<Token>, Option<Token>),
    /// `message_stop`.
    MessageStop,
    /// `ping`.
    Ping,
}

/// A delta that repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeltaTemplate {
    index: Option<i64>,
    kind: TemplateKind,
    text: Token,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum TemplateKind {
    Text,
    Thinking,
    InputJson,
}

impl DeltaTemplate {
    fn new(index: Option<i64>, delta: &BlockDelta<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        let (kind, text) = match delta {
            BlockDelta::Text(text) => (TemplateKind::Text, text),
            BlockDelta::Thinking(text) => (TemplateKind::Thinking, text),
            BlockDelta::InputJson(text) => (TemplateKind::InputJson, text),
            BlockDelta::Signature(_) | BlockDelta::Citation(_) | BlockDelta::Other(..) => {
                return None;
            }
        };
        Some(Self { index, kind, text: tokens.changing(*text) })
    }
}

impl Template for EventTemplate {
    type Event<'a> = Event<'a>;

    const HAS_SHAPES: bool = true;

    fn repeats(event: &Event<'_>) -> bool {
        match event {
            Event::Beside(beside) => Self::repeats(&beside.0),
            event => matches!(event, Event::BlockDelta { .. }),
        }
    }

    fn has_facts(event: &Event<'_>) -> bool {
        matches!(event, Event::Beside(_))
    }

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        Some(match *event {
            Event::BlockDelta { index, ref delta } => {
                Self::Delta(DeltaTemplate::new(index, delta, tokens)?)
            }
            Event::Message { message, whole: false } => {
                let Message { id, model, content, usage, .. } = message;
                if message != (Message { id, model, content, usage, ..Message::default() }) {
                    return None;
                }
                let (content, usage) =
                    (content.map(|json| tokens.raw(json)), usage.map(|json| tokens.raw(json)));
                Self::Message {
                    id: id.map(|id| tokens.rarely_changing(id)),
                    model: model.map(|model| tokens.rarely_changing(model)),
                    content,
                    usage,
                }
            }
            // A block without an object is not in the frame.
            Event::BlockStart { index, block } => Self::BlockStart(index, tokens.raw(block)),
            Event::BlockStop { index } => Self::BlockStop(index),
            Event::MessageDelta { stop_reason, facts, usage, transformations: None }
                if facts == Facts::default() =>
            {
                let usage = usage.map(|usage| tokens.raw(usage));
                Self::MessageDelta(stop_reason.map(|text| tokens.rarely_changing(text)), usage)
            }
            Event::MessageStop => Self::MessageStop,
            Event::Ping => Self::Ping,
            Event::Beside(ref beside) => return Self::from_event(&beside.0, tokens),
            Event::Message { .. }
            | Event::MessageDelta { .. }
            | Event::Error(_)
            | Event::Unknown(_) => return None,
        })
    }

    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        // A template of a stream is always a delta.
        let Self::Delta(DeltaTemplate { index, kind, text: token }) = *self else {
            return self.fill_rare(text);
        };
        let text = text(token);
        let delta = match kind {
            TemplateKind::Text => BlockDelta::Text(text),
            TemplateKind::Thinking => BlockDelta::Thinking(text),
            TemplateKind::InputJson => BlockDelta::InputJson(text),
        };
        Event::BlockDelta { index, delta }
    }
}

impl EventTemplate {
    /// Build an event other than a delta.
    #[cold]
    fn fill_rare<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        let raw = |token: Token| text(token).raw;
        match *self {
            Self::Message { id, model, content, usage } => {
                let message = Message {
                    id: id.map(&text),
                    model: model.map(&text),
                    content: content.map(raw),
                    usage: usage.map(raw),
                    ..Message::default()
                };
                Event::Message { message, whole: false }
            }
            Self::BlockStart(index, block) => Event::BlockStart { index, block: raw(block) },
            Self::BlockStop(index) => Event::BlockStop { index },
            Self::MessageDelta(stop_reason, usage) => Event::MessageDelta {
                stop_reason: stop_reason.map(&text),
                facts: Facts::default(),
                usage: usage.map(raw),
                transformations: None,
            },
            Self::MessageStop => Event::MessageStop,
            Self::Delta(_) | Self::Ping => Event::Ping,
        }
    }
}

/// Read a frame.
pub(super) fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>) -> Result<Event<'a>> {
    let mut kind = None;
    let mut index = None;
    let mut delta = DeltaMembers::default();
    let mut delta_raw = "";
    let mut block = "{}";
    let mut message = Message::default();
    let mut usage = None;
    let mut transformations = None;
    let mut error = false;
    let mut unread = Unread::default();
    reader.object(|reader, key| {
        match key {
            "type" => kind = reader.filled_string()?,
            "index" => index = reader.integer()?,
            "delta" if reader.kind()? == Kind::Object => {
                let start = reader.position();
                reader.object(|reader, key| {
                    read_delta_member(reader, key, &mut delta, &mut unread)
                })?;
                delta_raw = reader.since(start);
            }
            "content_block" => block = reader.raw()?,
            "message" => message = Message::read(reader, &mut unread)?,
            "usage" => usage = reader.opt_raw()?,
            "input_transformations" => transformations = reader.opt_raw()?,
            "error" => error = reader.opt_raw()?.is_some(),
            _ if delta.facts.read(reader, key)? => {}
            // Members of a whole body, which is read below, and the id of an error's request.
            "id" | "model" | "role" | "content" | "stop_reason" | "request_id" => {
                reader.ignore()?;
            }
            key => unread.fact(reader, key)?,
        }
        Ok(())
    })?;
    reader.end()?;
    // `message` is the name of every server-sent event without one.
    let name = if frame.name == "message" { "" } else { frame.name };
    let kind = kind.unwrap_or(Str::plain(if error { "error" } else { name }));
    let event = match kind.raw {
        "content_block_delta" => BlockDelta::from_members(&delta, delta_raw)
            .map_or(Event::Ping, |delta| Event::BlockDelta { index, delta }),
        "content_block_start" => Event::BlockStart { index, block },
        "content_block_stop" => Event::BlockStop { index },
        "message_start" => Event::Message { message, whole: false },
        "message" => {
            unread = Unread::default();
            let message = Message::read(&mut Reader::trusted(frame.json), &mut unread)?;
            Event::Message { message, whole: true }
        }
        "message_delta" => Event::MessageDelta {
            stop_reason: delta.stop_reason,
            facts: delta.facts,
            usage,
            transformations,
        },
        "message_stop" => Event::MessageStop,
        "ping" => Event::Ping,
        "error" => Event::Error(frame.json),
        // The error of llama-server has its own words in `type`.
        _ if error || name == "error" => Event::Error(frame.json),
        _ => Event::Unknown(kind),
    };
    Ok(match event {
        event if unread.is_empty() => event,
        // The object of an error and the delta of another block are kept whole, and the type of an unknown event is named.
        Event::Error(_)
        | Event::Unknown(_)
        | Event::BlockDelta { delta: BlockDelta::Other(..), .. } => event,
        Event::Message { .. } | Event::MessageDelta { .. } | Event::MessageStop => {
            Event::Beside(Box::new((event, unread)))
        }
        event => Event::Beside(Box::new((event, unread.into_dropped()))),
    })
}
