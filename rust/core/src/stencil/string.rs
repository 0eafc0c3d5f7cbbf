//! Strings of a request, as they are written.
//!
//! In: JSON and the offset of a string.  Out: its token, and whether it is text that every reader takes.

use crate::json::{Carry, Str, string_end};

/// Return the string at `at`.
pub(super) fn string_at(json: &str, at: usize) -> Option<(Str<'_>, usize)> {
    let bytes = json.as_bytes();
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let (end, escaped) = string_end(bytes, at + 1).ok()?;
    Some((Str { raw: json.get(at + 1..end)?, escaped }, end + 1))
}

/// Return whether a string has half of a pair of UTF-16 units, which is no text.
pub(super) fn has_lone_surrogate(text: Str<'_>) -> bool {
    if !text.escaped || !(text.raw.contains("\\uD") || text.raw.contains("\\ud")) {
        return false;
    }
    let (mut out, mut carry) = (String::new(), Carry::default());
    text.decode_into(&mut out, &mut carry);
    carry.flush(&mut out);
    carry.lone > 0
}
