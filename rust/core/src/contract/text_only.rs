//! `TextOnlyDelta`: deltas that carry only text, as nearly all do.
//!
//! In: a text payload without attributes.  Out: a small value that is passed without building a [`Payload`].

use super::call_id::CallId;
use super::delta::{Payload, TextAttributes};

/// Payload that carries only new text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOnlyDelta<'a> {
    /// Visible text.
    Text {
        /// Number of the part.
        part: u32,
        /// New text.
        text: &'a str,
    },
    /// Thinking (reasoning).
    Thinking {
        /// Number of the part.
        part: u32,
        /// New text.
        text: &'a str,
    },
    /// Arguments of a tool call.
    Args {
        /// Number of the part.
        part: u32,
        /// Id of the call.
        id: &'a CallId,
        /// New text.
        text: &'a str,
    },
}

impl<'a> Payload<&'a str> {
    /// Return the payload if it carries only new text of a part.
    ///
    /// Arguments give `None`, because a text-only delta of arguments needs a shared id.
    #[inline]
    pub fn text_only(&self) -> Option<TextOnlyDelta<'a>> {
        match *self {
            Self::Text { text, part_index: Some(part), attributes }
                if attributes == TextAttributes::default() =>
            {
                Some(TextOnlyDelta::Text { part, text })
            }
            Self::Thinking { text, part_index: Some(part), attributes }
                if attributes == TextAttributes::default() =>
            {
                Some(TextOnlyDelta::Thinking { part, text })
            }
            _ => None,
        }
    }
}

impl<'a> From<TextOnlyDelta<'a>> for Payload<&'a str> {
    fn from(delta: TextOnlyDelta<'a>) -> Self {
        let attributes = TextAttributes::default();
        match delta {
            TextOnlyDelta::Text { part, text } => {
                Self::Text { text, part_index: Some(part), attributes }
            }
            TextOnlyDelta::Thinking { part, text } => {
                Self::Thinking { text, part_index: Some(part), attributes }
            }
            TextOnlyDelta::Args { part, id, text } => {
                Self::ToolCallArgs { id: id.as_ref(), text, part_index: Some(part) }
            }
        }
    }
}
