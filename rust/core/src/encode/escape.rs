//! Writing of texts and of foreign JSON, so that no reader of lines cuts inside an event.
//!
//! Laws: U+0085, U+2028 and U+2029 are escaped, because line splitters in Python cut there
//! (docs/protocols/encoding.md#e13).
//! Foreign JSON loses its white space, which may hold line breaks.

use crate::json::write_escape;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = ONES * 0x80;

/// Return the number of bytes before the first one that may need an escape.
///
/// Each step reads eight bytes.  The lowest set bit of each test is exact, since a borrow moves upwards only.
#[inline]
fn plain_bytes(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        let equal = |byte: u64| (word ^ (ONES * byte)).wrapping_sub(ONES) & !(word ^ (ONES * byte));
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (equal(0x22) | equal(0x5C) | equal(0xC2) | equal(0xE2) | control) & HIGH;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or(&[]);
    let special = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\' | 0xC2 | 0xE2);
    at + rest.iter().position(special).unwrap_or(rest.len())
}

/// Append `text` as a piece of a JSON string, without quotes.
#[inline]
pub fn write_escaped(out: &mut String, text: &str) {
    let mut rest = text;
    loop {
        let (plain, tail) =
            rest.split_at_checked(plain_bytes(rest.as_bytes())).unwrap_or((rest, ""));
        out.push_str(plain);
        let mut characters = tail.chars();
        match characters.next() {
            None => return,
            Some(character) if breaks_lines(character) || character.is_ascii() => {
                write_escape(out, character);
            }
            Some(other) => out.push(other),
        }
        rest = characters.as_str();
    }
}

fn breaks_lines(character: char) -> bool {
    matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Escape the line breaks of Unicode in the JSON from `start` on.
pub(super) fn escape_line_breaks(json: &mut String, start: usize) {
    let written = json.get(start..).unwrap_or("");
    let has_lead = memchr::memchr2(0xC2, 0xE2, written.as_bytes()).is_some();
    if has_lead && written.contains(breaks_lines) {
        let written = written.to_owned();
        json.truncate(start);
        for character in written.chars() {
            if breaks_lines(character) {
                write_escape(json, character);
            } else {
                json.push(character);
            }
        }
    }
}

/// Append JSON without the white space between its tokens.
pub fn write_compact(out: &mut String, json: &str) {
    let mut rest = json;
    let mut in_string = false;
    while let Some(at) = rest.find(|character: char| {
        matches!(character, '"' | '\\')
            || (!in_string && matches!(character, ' ' | '\t' | '\n' | '\r'))
    }) {
        let (plain, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(plain);
        let taken = match tail.as_bytes() {
            [b'\\', ..] => 2,
            [b'"', ..] => {
                in_string = !in_string;
                1
            }
            _ => {
                rest = tail.get(1..).unwrap_or("");
                continue;
            }
        };
        // An escape in valid JSON is followed by an ASCII letter.
        let (copied, after) = tail.split_at_checked(taken).unwrap_or((tail, ""));
        out.push_str(copied);
        rest = after;
    }
    out.push_str(rest);
}
