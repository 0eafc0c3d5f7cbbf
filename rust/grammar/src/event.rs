//! `Event`: what the framings pass to the grammars.
//!
//! In: bytes of one event, which a framing collects.  Out: its name and data as text.
//!
//! Laws: an unfinished event is buffered up to [`MAX_EVENT_BYTES`].

use super::tree::{Rule, quoted};

/// Maximum number of bytes of one event: the terminal event of a Responses stream repeats the whole message with JSON escapes.
pub(super) const MAX_EVENT_BYTES: usize = 1 << 30;

/// One event of a body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'a> {
    /// The comment `: keep-alive`.
    Comment,
    /// Data with the name of its event, if it has one.
    Data {
        /// `event:` of SSE, `:event-type` of an AWS frame.
        name: Option<&'a str>,
        /// JSON text or an end marker.
        data: &'a str,
    },
    /// An exception frame of an AWS event stream.
    Exception {
        /// `:exception-type`.
        name: &'a str,
        /// JSON text.
        data: &'a str,
    },
}

impl<'a> Event<'a> {
    /// Return the data of a target whose events have no names; `None` for a comment.
    pub(super) fn unnamed(self) -> Rule<Option<&'a str>> {
        match self {
            Self::Comment => Ok(None),
            Self::Data { name: None, data } => Ok(Some(data)),
            Self::Data { name: Some(name), .. } | Self::Exception { name, .. } => {
                Err(format!("`event: {}`: the target has no event names", quoted(name)))
            }
        }
    }

    /// Return the data of a target without names and comments.
    pub(super) fn bare(self) -> Rule<&'a str> {
        self.unnamed()?.ok_or_else(|| "the target allows no comments".to_owned())
    }
}

/// Append bytes of an unfinished event, up to a maximum.
pub(super) fn hold(held: &mut Vec<u8>, bytes: &[u8], max: usize) -> Rule {
    if held.len().saturating_add(bytes.len()) > max {
        return Err(format!("the event is longer than {max} bytes"));
    }
    held.extend_from_slice(bytes);
    Ok(())
}

/// Return bytes as text.
pub(super) fn utf8(bytes: &[u8]) -> Rule<&str> {
    simdutf8::basic::from_utf8(bytes).map_err(|_| "the event is not UTF-8".to_owned())
}
