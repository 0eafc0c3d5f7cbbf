//! Where tokens and values end, on bytes alone.
//!
//! In: JSON bytes and where something begins.  Out: where it ends.  A token that is wrong says where; of a value that is
//! wrong, cut or too deep only that it is none: the reader's own way says what is wrong with it, and where.

/// Where white space ends that begins at `at`.
#[inline]
pub(super) fn space_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Where the valid value ends that begins at `at` and nests at most `levels` deep.
#[inline]
pub(crate) fn value_end(bytes: &[u8], at: usize, levels: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => quoted_end(bytes, at),
        b'{' => object_end(bytes, at + 1, levels.checked_sub(1)?),
        b'[' => array_end(bytes, at + 1, levels.checked_sub(1)?),
        b'-' | b'0'..=b'9' => number_end(bytes, at).ok(),
        b't' => literal_end(bytes, at, b"true"),
        b'f' => literal_end(bytes, at, b"false"),
        b'n' => literal_end(bytes, at, b"null"),
        _ => None,
    }
}

#[inline]
fn quoted_end(bytes: &[u8], at: usize) -> Option<usize> {
    let end = special(bytes, at + 1);
    if bytes.get(end) == Some(&b'"') {
        return Some(end + 1);
    }
    string_end(bytes, at + 1).ok().map(|(end, _)| end + 1)
}

#[inline]
fn literal_end(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(word).then_some(at + word.len())
}

fn object_end(bytes: &[u8], at: usize, levels: usize) -> Option<usize> {
    let mut at = space_end(bytes, at);
    if bytes.get(at) == Some(&b'}') {
        return Some(at + 1);
    }
    loop {
        if bytes.get(at) != Some(&b'"') {
            return None;
        }
        at = space_end(bytes, quoted_end(bytes, at)?);
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        at = space_end(bytes, value_end(bytes, space_end(bytes, at + 1), levels)?);
        match bytes.get(at)? {
            b',' => at = space_end(bytes, at + 1),
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

fn array_end(bytes: &[u8], at: usize, levels: usize) -> Option<usize> {
    let mut at = space_end(bytes, at);
    if bytes.get(at) == Some(&b']') {
        return Some(at + 1);
    }
    if let Some(end) = counts_end(bytes, at) {
        return Some(end);
    }
    loop {
        at = space_end(bytes, value_end(bytes, at, levels)?);
        match bytes.get(at)? {
            b',' => at = space_end(bytes, at + 1),
            b']' => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Where the list ends whose first item begins at `at`, if it is one of small whole numbers and commas: a token's bytes.
/// Eight bytes a step, what is known of each in its highest bit.
#[inline]
pub(super) fn counts_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    // Whether a number begins with the next byte, and whether it comes behind a zero that begins one.
    let (mut begins, mut behind_zero) = (0x80, 0);
    loop {
        let word = word(bytes, at);
        let digits = !above_nine(word ^ ZEROS) & HIGH;
        let commas = zeros(word ^ (ONES * 0x2C));
        let begin = commas << 8 | begins;
        let zero = zeros(word ^ ZEROS) & begin;
        let wrong = (commas & begin) | ((zero << 8 | behind_zero) & digits);
        let others = !(digits | commas) & HIGH;
        let other = others & others.wrapping_neg();
        if wrong & other.wrapping_sub(1) != 0 || begin & other != 0 {
            return None;
        }
        if other != 0 {
            let end = at + (other.trailing_zeros() / 8) as usize;
            return (bytes.get(end) == Some(&b']')).then_some(end + 1);
        }
        (begins, behind_zero) = (commas >> 56, zero >> 56);
        at += 8;
    }
}

/// Where the escape ends whose letter stands at `at`; where it goes wrong.
#[inline]
pub(crate) fn escape_end(bytes: &[u8], at: usize) -> std::result::Result<usize, usize> {
    match bytes.get(at) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 1),
        Some(b'u') => {
            let hex = |offset: &usize| bytes.get(at + offset).is_some_and(u8::is_ascii_hexdigit);
            match (1..=4).find(|offset| !hex(offset)) {
                Some(offset) => Err(at + offset),
                None => Ok(at + 5),
            }
        }
        _ => Err(at),
    }
}

/// Where the string ends (before its quote) whose text begins at `at`, and whether it holds escapes; where it goes wrong.
#[inline]
pub(crate) fn string_end(bytes: &[u8], at: usize) -> std::result::Result<(usize, bool), usize> {
    let mut end = special(bytes, at);
    let mut escaped = false;
    loop {
        match bytes.get(end) {
            Some(b'"') => return Ok((end, escaped)),
            Some(b'\\') => {
                escaped = true;
                end = escape_end(bytes, end + 1)?;
                // Escapes come in rows.
                if bytes.get(end) != Some(&b'\\') {
                    end = special(bytes, end);
                }
            }
            _ => return Err(end),
        }
    }
}

/// Where the number ends that begins at `at`; where it goes wrong.
pub(crate) fn number_end(bytes: &[u8], at: usize) -> std::result::Result<usize, usize> {
    let mut at = if bytes.get(at) == Some(&b'-') { at + 1 } else { at };
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { digits_end(bytes, at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits_end(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = digits_end(bytes, if signed { at + 2 } else { at + 1 })?;
    }
    Ok(at)
}

/// Where the digits end that begin at `at`, one at least.
#[inline]
fn digits_end(bytes: &[u8], at: usize) -> std::result::Result<usize, usize> {
    let mut end = at;
    loop {
        let digits = leading_digits(word(bytes, end) ^ ZEROS);
        end += digits;
        if digits < 8 {
            return if end == at { Err(at) } else { Ok(end) };
        }
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = ONES << 7;
/// Eight digits `0`.
pub(super) const ZEROS: u64 = ONES * 0x30;

/// The eight bytes at `at`, the first one lowest, and zeros behind the end.
#[inline]
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(block) = rest.first_chunk() {
        return u64::from_le_bytes(*block);
    }
    last_word(bytes, rest)
}

#[inline(never)]
fn last_word(bytes: &[u8], rest: &[u8]) -> u64 {
    match bytes.last_chunk() {
        _ if rest.is_empty() => 0,
        Some(block) => u64::from_le_bytes(*block) >> (64 - 8 * rest.len()),
        None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// How many bytes before the first that is above nine.
#[inline]
pub(super) fn leading_digits(word: u64) -> usize {
    (above_nine(word).trailing_zeros() / 8) as usize
}

/// The bytes above nine.
#[inline]
fn above_nine(word: u64) -> u64 {
    ((word & !HIGH).wrapping_add(ONES * 0x76) | word) & HIGH
}

/// The bytes that are zero.
#[inline]
fn zeros(word: u64) -> u64 {
    !((word & !HIGH).wrapping_add(ONES * 0x7F) | word) & HIGH
}

/// First position at or after `from` of a quote, a backslash or a control character; the text's length if there is none.
/// Eight bytes a step: a byte is zero after XOR with what is searched exactly where subtracting one borrows its high bit.
#[inline]
pub(crate) fn special(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*block);
        let quote = word ^ (ONES * 0x22);
        let backslash = word ^ (ONES * 0x5C);
        let hit = ((quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word))
            & HIGH;
        if hit != 0 {
            return at + (hit.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at) {
        if *byte == b'"' || *byte == b'\\' || *byte < 0x20 {
            break;
        }
        at += 1;
    }
    at
}
