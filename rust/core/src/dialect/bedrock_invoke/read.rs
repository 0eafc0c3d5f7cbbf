//! Reader of InvokeModelWithResponseStream frames: one frame → one [`Event`].

use crate::dialect::bedrock_converse;
use crate::dialect::protocol::Frame;
use crate::json::{Reader, Result, Str};
use crate::template::{Template, Token, Tokens};

/// One event, borrowed from its frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// `chunk`: an event of the model in base64.
    Chunk(Str<'a>),
    /// An event of the model without base64.
    Bare(&'a str),
    /// An exception among the events, or an error body: its name and its object.
    Error(Option<Str<'a>>, &'a str),
    /// An event with an unknown name.
    Unknown(Str<'a>),
}

/// The frames that repeat: chunks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventTemplate(Token);

impl Template for EventTemplate {
    type Event<'a> = Event<'a>;

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        match event {
            Event::Chunk(text) => Some(Self(tokens.changing(*text))),
            Event::Bare(_) | Event::Error(..) | Event::Unknown(_) => None,
        }
    }

    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        Event::Chunk(text(self.0))
    }
}

/// Read a frame.
pub(super) fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>) -> Result<Event<'a>> {
    let mut bytes = None;
    let mut exception = None;
    let mut error = false;
    reader.object(|reader, key| {
        match key {
            "bytes" => bytes = reader.opt_string()?,
            "chunk" => reader.maybe_object(|reader, key| {
                match key {
                    "bytes" => bytes = reader.opt_string()?,
                    _ => reader.ignore()?,
                }
                Ok(())
            })?,
            _ if key.ends_with("Exception") => {
                let name = bedrock_converse::member_name(frame.json, reader, key);
                exception = exception.or(Some((name, reader.raw()?)));
            }
            "message" | "Message" => error |= reader.filled_string()?.is_some(),
            _ => reader.ignore()?,
        }
        Ok(())
    })?;
    reader.end()?;
    Ok(match (bytes, exception) {
        (Some(bytes), _) => Event::Chunk(bytes),
        (None, Some((name, json))) => Event::Error(Some(name), json),
        (None, None) if error => Event::Error(None, frame.json),
        (None, None) if frame.name.is_empty() => Event::Bare(frame.json),
        (None, None) => Event::Unknown(Str::plain(frame.name)),
    })
}
