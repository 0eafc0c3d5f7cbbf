//! Objects of arguments: whether all readers read one alike, and its compact form.
//!
//! In: JSON.  Out: the end of the object, or the object as `json.dumps` of Python writes it, without ASCII escapes.

use std::ops::Range;

use super::string::{string_at, text_at};
use crate::json::{number_end, space_end, write_string};

/// Levels that arguments may nest, far below the bound of any reader.
const LEVELS: usize = 64;

/// Digits of a number that each reader keeps.
const DIGITS: usize = 15;

/// What numbers have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// Numbers that have a value, because a reader reads them.
    Finite,
    /// Numbers that Python writes in the same form, because they become part of a text.
    Canonical,
}

/// Return the end of the object at the beginning of the text, `None` if readers could differ about it.
pub(super) fn exact_end(json: &str, numbers: Numbers) -> Option<usize> {
    let at = space_end(json.as_bytes(), 0);
    if json.as_bytes().get(at) != Some(&b'{') {
        return None;
    }
    let mut is_exact = true;
    let end = walk(json, at, LEVELS, &mut |piece, text| {
        is_exact &= match piece {
            Piece::Number if numbers == Numbers::Canonical => is_canonical(text),
            Piece::Number => text.parse().is_ok_and(f64::is_finite),
            Piece::Raw | Piece::String => true,
        };
    })?;
    if !is_exact {
        return None;
    }
    let rest = space_end(json.as_bytes(), end);
    // White space behind the object belongs to a text that holds nothing else.
    Some(if rest == json.len() { rest } else { end })
}

/// Write an object that [`exact_end`] accepted, without white space.
pub(super) fn write_compact(out: &mut String, json: &str) {
    let at = space_end(json.as_bytes(), 0);
    let mut write = |piece: Piece, text: &str| match piece {
        Piece::Raw | Piece::Number => out.push_str(text),
        Piece::String => match string_at(text, 0) {
            Some((inner, _)) if inner.escaped => write_string(out, &inner.unescaped()),
            _ => out.push_str(text),
        },
    };
    let _ = walk(json, at, LEVELS, &mut write);
}

/// Return the places of the strings of a value without white space, keys apart, and its end.
pub(super) fn strings(json: &str, at: usize) -> Option<(Vec<Range<usize>>, usize)> {
    let mut strings = Vec::new();
    let mut place = at;
    let end = walk(json, at, LEVELS, &mut |piece, text| {
        if matches!(piece, Piece::String) {
            strings.push(place..place + text.len());
        }
        place += text.len();
    })?;
    (place == end).then_some((strings, end))
}

#[derive(Clone, Copy)]
enum Piece {
    Raw,
    String,
    Number,
}

/// Walk the value at `at`; return its end.
fn walk(
    json: &str,
    at: usize,
    levels: usize,
    write: &mut impl FnMut(Piece, &str),
) -> Option<usize> {
    let bytes = json.as_bytes();
    match bytes.get(at)? {
        b'{' => members(json, at, levels.checked_sub(1)?, write),
        b'[' => items(json, at, levels.checked_sub(1)?, write),
        b'"' => string(json, at, write),
        b'-' | b'0'..=b'9' => {
            let end = number_end(bytes, at).ok()?;
            write(Piece::Number, json.get(at..end)?);
            Some(end)
        }
        _ => {
            let rest = json.get(at..)?;
            let word = ["true", "false", "null"].into_iter().find(|word| rest.starts_with(word))?;
            write(Piece::Raw, word);
            Some(at + word.len())
        }
    }
}

fn string(json: &str, at: usize, write: &mut impl FnMut(Piece, &str)) -> Option<usize> {
    let (_, end) = text_at(json, at)?;
    write(Piece::String, json.get(at..end)?);
    Some(end)
}

fn members(
    json: &str,
    at: usize,
    levels: usize,
    write: &mut impl FnMut(Piece, &str),
) -> Option<usize> {
    let bytes = json.as_bytes();
    let mut keys: Vec<&str> = Vec::new();
    write(Piece::Raw, "{");
    let mut at = space_end(json.as_bytes(), at + 1);
    if bytes.get(at) == Some(&b'}') {
        write(Piece::Raw, "}");
        return Some(at + 1);
    }
    loop {
        let (key, end) = string_at(json, at)?;
        // A key with escapes could be another spelling of one before it.
        if key.escaped {
            return None;
        }
        keys.push(key.raw);
        write(Piece::Raw, json.get(at..end)?);
        at = space_end(json.as_bytes(), end);
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        write(Piece::Raw, ":");
        at = space_end(
            json.as_bytes(),
            walk(json, space_end(json.as_bytes(), at + 1), levels, write)?,
        );
        match bytes.get(at)? {
            b',' => write(Piece::Raw, ","),
            b'}' => {
                write(Piece::Raw, "}");
                return are_distinct(&mut keys).then_some(at + 1);
            }
            _ => return None,
        }
        at = space_end(json.as_bytes(), at + 1);
    }
}

fn items(
    json: &str,
    at: usize,
    levels: usize,
    write: &mut impl FnMut(Piece, &str),
) -> Option<usize> {
    let bytes = json.as_bytes();
    write(Piece::Raw, "[");
    let mut at = space_end(json.as_bytes(), at + 1);
    if bytes.get(at) == Some(&b']') {
        write(Piece::Raw, "]");
        return Some(at + 1);
    }
    loop {
        at = space_end(json.as_bytes(), walk(json, at, levels, write)?);
        match bytes.get(at)? {
            b',' => write(Piece::Raw, ","),
            b']' => {
                write(Piece::Raw, "]");
                return Some(at + 1);
            }
            _ => return None,
        }
        at = space_end(json.as_bytes(), at + 1);
    }
}

fn are_distinct(keys: &mut [&str]) -> bool {
    keys.sort_unstable();
    keys.windows(2).all(|pair| pair.first() != pair.last())
}

/// Return whether Python writes a number that it has read in the same form.
fn is_canonical(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let Some((whole, fraction)) = digits.split_once('.') else {
        return number != "-0"
            && !digits.contains(['e', 'E'])
            && digits.len() <= MAX_INTEGER_DIGITS;
    };
    let is_short = whole.len() + fraction.len() <= DIGITS && !fraction.contains(['e', 'E']);
    is_short
        && (fraction == "0" || !fraction.ends_with('0'))
        && !(whole == "0" && fraction.starts_with("0000"))
}

/// Digits of an integer that `json.loads` takes without a limit of its own.
const MAX_INTEGER_DIGITS: usize = 18;
