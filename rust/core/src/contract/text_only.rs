//! Deltas that are nothing but new text, as nearly all are: small enough to pass without making a [`Payload`].

use super::call_id::CallId;
use super::delta::{Payload, Riders};

/// A payload that is nothing but new text, as nearly all are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain<'a> {
    /// Visible text.
    Text {
        /// The part it belongs to.
        part: u32,
        /// The new text.
        text: &'a str,
    },
    /// Reasoning.
    Thinking {
        /// The part it belongs to.
        part: u32,
        /// The new text.
        text: &'a str,
    },
    /// Arguments of a tool call.
    Args {
        /// The call.
        id: &'a CallId,
        /// The new text.
        text: &'a str,
    },
}

impl<'a> Payload<&'a str> {
    /// The payload, if it is nothing but new text of a part.  Arguments are plain only where their call's id is shared.
    #[inline]
    pub fn plain(&self) -> Option<Plain<'a>> {
        match *self {
            Self::Text { text, part_index: Some(part), riders } if riders == Riders::default() => {
                Some(Plain::Text { part, text })
            }
            Self::Thinking { text, part_index: Some(part), riders }
                if riders == Riders::default() =>
            {
                Some(Plain::Thinking { part, text })
            }
            _ => None,
        }
    }
}

impl<'a> From<Plain<'a>> for Payload<&'a str> {
    fn from(plain: Plain<'a>) -> Self {
        let riders = Riders::default();
        match plain {
            Plain::Text { part, text } => Self::Text { text, part_index: Some(part), riders },
            Plain::Thinking { part, text } => {
                Self::Thinking { text, part_index: Some(part), riders }
            }
            Plain::Args { id, text } => Self::ToolCallArgs { id: id.as_ref(), text },
        }
    }
}
