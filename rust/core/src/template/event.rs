//! The types between templates and a protocol: repeated events, their handler, and frames to learn from.

use std::fmt::Debug;

use super::token::{Token, Tokens};
use crate::json::{Reader, Str};

/// An event whose tokens are spans, so that it outlives its frame.
pub trait Template: Clone + Debug + PartialEq + Sized {
    /// The event over borrowed tokens.
    type Event<'a>;

    /// True if streams share the shapes of their frames.  Then `fill_whole` sets every member.
    const HAS_SHAPES: bool = false;

    /// Return true if such events repeat within a stream.  Other events have a shape at most.
    fn repeats(_: &Self::Event<'_>) -> bool {
        true
    }

    /// Return true if the frame of an event has members that `fill` leaves out, and that count while their values are the same.
    ///
    /// Such a frame has a template of its own stream only, until one of the values changes.
    fn has_facts(_: &Self::Event<'_>) -> bool {
        false
    }

    /// Convert an event to spans; `None` for kinds of event without a template and a shape.
    fn from_event(event: &Self::Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self>;

    /// Build the event from the texts of its tokens.  Members that only the first frame of a stream sets may be left out.
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Self::Event<'a>;

    /// Build the event with all members that `read` sets.
    fn fill_whole<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Self::Event<'a> {
        self.fill(text)
    }
}

/// A protocol with its output, as templates use it.
pub trait EventHandler<E: Template> {
    /// Read the object in a hole of [`Tokens::parsed_object`]; false if it is invalid or not on one line.
    ///
    /// The value counts only if [`Self::apply`] follows.
    fn read_object(&mut self, reader: &mut Reader<'_>) -> bool;

    /// Apply the event of a matching frame.
    fn apply(&mut self, event: &E::Event<'_>);
}

/// A frame to learn from.
#[derive(Clone, Copy, Debug)]
pub struct StudiedFrame<'a> {
    /// The event's name; empty without one.
    pub name: &'a str,
    /// The JSON of the frame.
    pub json: &'a str,
    /// The event with its framing, of which `json` is a piece; empty if unknown.
    pub wire: &'a str,
}
