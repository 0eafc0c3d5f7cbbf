//! Stepping over a valid value, as fast as that goes.
//!
//! In: JSON bytes and where a value begins.  Out: where it ends, or nothing: for a value that is wrong, cut or too deep the
//! reader's own way says what is wrong, and where.

use super::{number_end, string_end};

/// Where white space ends that begins at `at`.
#[inline]
pub(super) fn space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Where the value ends that begins at `at`; `levels` is how deep it may nest.
pub(super) fn value(bytes: &[u8], at: usize, levels: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => string(bytes, at),
        b'{' => object(bytes, at + 1, levels.checked_sub(1)?),
        b'[' => array(bytes, at + 1, levels.checked_sub(1)?),
        b'-' | b'0'..=b'9' => number_end(bytes, at).ok(),
        b't' => literal(bytes, at, b"true"),
        b'f' => literal(bytes, at, b"false"),
        b'n' => literal(bytes, at, b"null"),
        _ => None,
    }
}

#[inline]
fn string(bytes: &[u8], at: usize) -> Option<usize> {
    string_end(bytes, at + 1).ok().map(|(end, _)| end + 1)
}

#[inline]
fn literal(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(word).then_some(at + word.len())
}

fn object(bytes: &[u8], at: usize, levels: usize) -> Option<usize> {
    let mut at = space(bytes, at);
    if bytes.get(at) == Some(&b'}') {
        return Some(at + 1);
    }
    loop {
        if bytes.get(at) != Some(&b'"') {
            return None;
        }
        at = space(bytes, string(bytes, at)?);
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        at = space(bytes, value(bytes, space(bytes, at + 1), levels)?);
        match bytes.get(at)? {
            b',' => at = space(bytes, at + 1),
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

fn array(bytes: &[u8], at: usize, levels: usize) -> Option<usize> {
    let mut at = space(bytes, at);
    if bytes.get(at) == Some(&b']') {
        return Some(at + 1);
    }
    loop {
        at = space(bytes, value(bytes, at, levels)?);
        match bytes.get(at)? {
            b',' => at = space(bytes, at + 1),
            b']' => return Some(at + 1),
            _ => return None,
        }
    }
}
