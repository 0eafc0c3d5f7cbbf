//! Strings of a request, as they are written.
//!
//! In: JSON and the offset of a string.  Out: its token, and whether it is text that every reader takes.

use crate::json::{Str, escape_end, special, string_end};

/// Return the string at `at`.
pub(super) fn string_at(json: &str, at: usize) -> Option<(Str<'_>, usize)> {
    let bytes = json.as_bytes();
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let (end, escaped) = string_end(bytes, at + 1).ok()?;
    Some((Str { raw: json.get(at + 1..end)?, escaped }, end + 1))
}

/// Return the string at `at`, `None` with half of a pair of UTF-16 units in it, which is no text.
pub(super) fn text_at(json: &str, at: usize) -> Option<(Str<'_>, usize)> {
    let bytes = json.as_bytes();
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut end = special(bytes, at + 1);
    let mut escaped = false;
    while bytes.get(end) == Some(&b'\\') {
        escaped = true;
        let behind = escape_end(bytes, end + 1).ok()?;
        end = match surrogate_at(bytes, end) {
            None => behind,
            Some(Surrogate::High) if surrogate_at(bytes, behind) == Some(Surrogate::Low) => {
                behind + UNIT_BYTES
            }
            Some(_) => return None,
        };
        // Escapes often follow each other directly.
        if bytes.get(end) != Some(&b'\\') {
            end = special(bytes, end);
        }
    }
    (bytes.get(end) == Some(&b'"')).then_some(())?;
    Some((Str { raw: json.get(at + 1..end)?, escaped }, end + 1))
}

/// Bytes of an escaped UTF-16 unit.
const UNIT_BYTES: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Surrogate {
    High,
    Low,
}

/// Return the half of a pair whose escape begins at `at`, `None` for anything else.
#[inline]
fn surrogate_at(bytes: &[u8], at: usize) -> Option<Surrogate> {
    match bytes.get(at..at + 4)? {
        [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B'] => {
            Some(Surrogate::High)
        }
        [b'\\', b'u', b'd' | b'D', b'c'..=b'f' | b'C'..=b'F'] => Some(Surrogate::Low),
        _ => None,
    }
}
