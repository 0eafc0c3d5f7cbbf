//! Reader of Messages frames: one frame → one [`Event`].

use super::deltas::{BlockDelta, DeltaMembers, Facts, read_delta_member};
use crate::dialect::protocol::Frame;
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
    },
    /// `message_stop`.
    MessageStop,
    /// `ping`.
    Ping,
    /// `error`: the whole frame.
    Error(&'a str),
    /// An event of an unknown type.
    Unknown(Str<'a>),
}

/// The members of a message object that the decoder interprets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Message<'a> {
    pub(super) id: Option<Str<'a>>,
    pub(super) model: Option<Str<'a>>,
    pub(super) content: Option<&'a str>,
    pub(super) stop_reason: Option<Str<'a>>,
    pub(super) usage: Option<&'a str>,
    pub(super) facts: Facts<'a>,
}

impl<'a> Message<'a> {
    /// Read a message.  A value that is not an object gives an empty message.
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut message = Self::default();
        reader.maybe_object(|reader, key| {
            match key {
                "id" => message.id = reader.id()?,
                "model" => message.model = reader.filled_string()?,
                "content" => message.content = Some(reader.raw()?),
                "stop_reason" => message.stop_reason = reader.filled_string()?,
                "usage" => message.usage = reader.opt_raw()?,
                _ if message.facts.read(reader, key)? => {}
                _ => reader.ignore()?,
            }
            Ok(())
        })?;
        Ok(message)
    }
}

/// The deltas that repeat: text, thinking, arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventTemplate {
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

impl Template for EventTemplate {
    type Event<'a> = Event<'a>;

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        let Event::BlockDelta { index, delta } = event else { return None };
        let (kind, text) = match delta {
            BlockDelta::Text(text) => (TemplateKind::Text, text),
            BlockDelta::Thinking(text) => (TemplateKind::Thinking, text),
            BlockDelta::InputJson(text) => (TemplateKind::InputJson, text),
            BlockDelta::Signature(_) | BlockDelta::Citation(_) | BlockDelta::Other(..) => {
                return None;
            }
        };
        Some(Self { index: *index, kind, text: tokens.changing(*text) })
    }

    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        let text = text(self.text);
        let delta = match self.kind {
            TemplateKind::Text => BlockDelta::Text(text),
            TemplateKind::Thinking => BlockDelta::Thinking(text),
            TemplateKind::InputJson => BlockDelta::InputJson(text),
        };
        Event::BlockDelta { index: self.index, delta }
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
    let mut error = false;
    reader.object(|reader, key| {
        match key {
            "type" => kind = reader.filled_string()?,
            "index" => index = reader.integer()?,
            "delta" if reader.kind()? == Kind::Object => {
                let start = reader.position();
                reader.object(|reader, key| read_delta_member(reader, key, &mut delta))?;
                delta_raw = reader.since(start);
            }
            "content_block" => block = reader.raw()?,
            "message" => message = Message::read(reader)?,
            "usage" => usage = reader.opt_raw()?,
            "error" => error = reader.opt_raw()?.is_some(),
            _ => reader.ignore()?,
        }
        Ok(())
    })?;
    reader.end()?;
    let kind = kind.unwrap_or(Str::plain(if error { "error" } else { frame.name }));
    Ok(match kind.raw {
        "content_block_delta" => BlockDelta::from_members(&delta, delta_raw)
            .map_or(Event::Ping, |delta| Event::BlockDelta { index, delta }),
        "content_block_start" => Event::BlockStart { index, block },
        "content_block_stop" => Event::BlockStop { index },
        "message_start" => Event::Message { message, whole: false },
        "message" => {
            let message = Message::read(&mut Reader::trusted(frame.json))?;
            Event::Message { message, whole: true }
        }
        "message_delta" => {
            Event::MessageDelta { stop_reason: delta.stop_reason, facts: delta.facts, usage }
        }
        "message_stop" => Event::MessageStop,
        "ping" => Event::Ping,
        "error" => Event::Error(frame.json),
        _ if error => Event::Error(frame.json),
        _ => Event::Unknown(kind),
    })
}
