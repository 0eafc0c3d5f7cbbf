//! Deltas that are nothing but new text, as nearly all are: small enough to pass without making a [`Payload`].

use super::call_id::CallId;
use super::delta::{Payload, TextAttributes};

/// A payload that is nothing but new text, as nearly all are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOnlyDelta<'a> {
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
            TextOnlyDelta::Args { id, text } => Self::ToolCallArgs { id: id.as_ref(), text },
        }
    }
}
