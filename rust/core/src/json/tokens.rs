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
/// Eight bytes a step, what is known of each in its highest bit.  A list with a zero in it counts as another.
#[inline]
pub(super) fn counts_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut rest = bytes.get(at..)?;
    // Whether a number begins with the next byte.
    let mut begins = 0x80;
    loop {
        let (word, behind) = first_word(rest);
        let no_digits = above_nine(word);
        let no_commas = (word ^ (ONES * 0x1C)).wrapping_add(!HIGH) | word;
        let no_zeros = word.wrapping_add(!HIGH);
        let wrong = (no_digits << 8 | begins) & (no_digits | !no_zeros);
        let others = no_digits & no_commas;
        if others != 0 {
            // Up to the first of them.
            if wrong & (others ^ others.wrapping_sub(1)) != 0 {
                return None;
            }
            let end = rest.get((others.trailing_zeros() / 8) as usize..)?.strip_prefix(b"]")?;
            return Some(bytes.len().wrapping_sub(end.len()));
        }
        if wrong != 0 {
            return None;
        }
        begins = no_digits >> 56;
        rest = behind;
    }
}

/// Where the escape ends whose letter stands at `at`; where it goes wrong.
#[inline]
pub(crate) fn escape_end(bytes: &[u8], at: usize) -> std::result::Result<usize, usize> {
    match bytes.get(at) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 1),
        _ => unit_end(bytes, at),
    }
}

/// Where the UTF-16 unit ends whose `u` should stand at `at`; where it goes wrong.  Apart, so that the others are told by
/// one test of a bit.
#[inline(never)]
fn unit_end(bytes: &[u8], at: usize) -> std::result::Result<usize, usize> {
    let hex = |offset: &usize| bytes.get(at + offset).is_some_and(u8::is_ascii_hexdigit);
    match (1..=4).find(|offset| !hex(offset)) {
        _ if bytes.get(at) != Some(&b'u') => Err(at),
        Some(offset) => Err(at + offset),
        None => Ok(at + 5),
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

/// Return the end offset of the digits that begin at `at`; an error without a digit there.
#[inline]
fn digits_end(bytes: &[u8], at: usize) -> std::result::Result<usize, usize> {
    match digit_count(bytes.get(at..).ok_or(at)?) {
        0 => Err(at),
        count => Ok(at.wrapping_add(count)),
    }
}

/// Return the number of digits at the start of `text`.
#[inline]
pub(crate) fn digit_count(text: &[u8]) -> usize {
    let mut rest = text;
    loop {
        let (word, behind) = first_word(rest);
        let others = above_nine(word);
        if others != 0 {
            let digits = (others.trailing_zeros() / 8) as usize;
            return text.len().wrapping_sub(rest.len()).wrapping_add(digits);
        }
        rest = behind;
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = ONES << 7;
/// Eight digits `0`.
const ZEROS: u64 = ONES * 0x30;

/// The eight bytes that `text` begins with as digits, the first one lowest, what stands behind its end above nine; and
/// what follows them.
#[inline]
pub(super) fn first_word(text: &[u8]) -> (u64, &[u8]) {
    match text.split_first_chunk() {
        Some((word, rest)) => (u64::from_le_bytes(*word) ^ ZEROS, rest),
        None => (last_word(text), &[]),
    }
}

#[inline(never)]
fn last_word(text: &[u8]) -> u64 {
    text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)) ^ ZEROS
}

/// The bytes above nine.
#[inline]
pub(super) fn above_nine(word: u64) -> u64 {
    ((word & !HIGH).wrapping_add(ONES * 0x76) | word) & HIGH
}

/// The value of eight digits, the first one lowest: pairs, then fours, then all.
#[inline]
pub(super) fn joined(word: u64) -> u64 {
    const MASK: u64 = 0x0000_00FF_0000_00FF;
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let first = (pairs & MASK).wrapping_mul(100 + (1_000_000 << 32));
    let second = (pairs >> 16 & MASK).wrapping_mul(1 + (10_000 << 32));
    first.wrapping_add(second) >> 32
}

/// How many of eight bytes stand before the first quote, backslash or control character.
#[inline]
pub(super) fn first_special(word: u64) -> usize {
    let quote = word ^ (ONES * 0x22);
    let backslash = word ^ (ONES * 0x5C);
    let hit = ((quote.wrapping_sub(ONES) & !quote)
        | (backslash.wrapping_sub(ONES) & !backslash)
        | (word.wrapping_sub(ONES * 0x20) & !word))
        & HIGH;
    (hit.trailing_zeros() / 8) as usize
}

/// How many of eight bytes stand before the first backslash.
#[inline]
pub(super) fn first_backslash(word: u64) -> usize {
    let backslash = word ^ (ONES * 0x5C);
    let hit = backslash.wrapping_sub(ONES) & !backslash & HIGH;
    (hit.trailing_zeros() / 8) as usize
}

/// First position at or after `from` of a quote, a backslash or a control character; the text's length if there is none.
/// Eight bytes a step: a byte is zero after XOR with what is searched exactly where subtracting one borrows its high bit.
#[inline]
pub(crate) fn special(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let before = first_special(u64::from_le_bytes(*block));
        if before < 8 {
            return at + before;
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
