//! Ends of JSON tokens and values, computed on bytes.
//!
//! In: JSON bytes and the offset of a token or value.  Out: its end offset.
//!
//! Laws: a malformed token gives the offset of its defect.  A value that is malformed, cut off or nested too deeply gives
//! only `None`; the slow path of the reader finds the kind and offset of the defect.

/// Return the end offset of the white space at `at`.
#[inline]
pub(crate) fn space_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Return the end offset of the value at `at`; `None` unless it is valid and nests at most `levels` deep.
#[inline]
pub(crate) fn value_end(bytes: &[u8], at: usize, levels: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => quoted_end(bytes, at, special_in_long),
        b'{' => object_end(bytes, at + 1, levels.checked_sub(1)?),
        b'[' => array_end(bytes, at + 1, levels.checked_sub(1)?),
        b'-' | b'0'..=b'9' => number_end(bytes, at).ok(),
        b't' => literal_end(bytes, at, b"true"),
        b'f' => literal_end(bytes, at, b"false"),
        b'n' => literal_end(bytes, at, b"null"),
        _ => None,
    }
}

/// Return the end offset of the string at `at`; `special` searches it.
#[inline]
fn quoted_end(bytes: &[u8], at: usize, special: impl Fn(&[u8], usize) -> usize) -> Option<usize> {
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
        at = space_end(bytes, quoted_end(bytes, at, special)?);
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

/// Return the end offset of a list of small whole numbers without white space, whose first item begins at `at`.
///
/// Each step reads eight bytes; the tests set the highest bit of each byte.  Token bytes have this form.  A list with a zero
/// gives `None`, although it may be valid.
#[inline]
pub(super) fn counts_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut rest = bytes.get(at..)?;
    // Highest bit set: a number must begin at the next byte.
    let mut begins = 0x80;
    loop {
        let (word, behind) = first_word(rest);
        let no_digits = above_nine(word);
        let no_commas = (word ^ (ONES * 0x1C)).wrapping_add(!HIGH) | word;
        let no_zeros = word.wrapping_add(!HIGH);
        let wrong = (no_digits << 8 | begins) & (no_digits | !no_zeros);
        let others = no_digits & no_commas;
        if others != 0 {
            // Test only the bytes up to the first other byte.
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

/// Return the end offset of the escape whose letter is at `at`; the offset of its defect as the error.
#[inline]
pub(crate) fn escape_end(bytes: &[u8], at: usize) -> std::result::Result<usize, usize> {
    match bytes.get(at) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 1),
        _ => unit_end(bytes, at),
    }
}

/// Return the end offset of the UTF-16 unit whose `u` is expected at `at`; the offset of its defect as the error.
///
/// Not inlined, so that one bit test recognises all other escapes.
#[inline(never)]
fn unit_end(bytes: &[u8], at: usize) -> std::result::Result<usize, usize> {
    let hex = |offset: &usize| bytes.get(at + offset).is_some_and(u8::is_ascii_hexdigit);
    match (1..=4).find(|offset| !hex(offset)) {
        _ if bytes.get(at) != Some(&b'u') => Err(at),
        Some(offset) => Err(at + offset),
        None => Ok(at + 5),
    }
}

/// Return the offset of the closing quote of the string whose text begins at `at`, and true if the string holds escapes.
///
/// The error is the offset of its defect.
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
                // Escapes often follow each other directly.
                if bytes.get(end) != Some(&b'\\') {
                    end = special(bytes, end);
                }
            }
            _ => return Err(end),
        }
    }
}

/// Return the end offset of the number at `at`; the offset of its defect as the error.
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
/// Eight `0` characters.
const ZEROS: u64 = ONES * 0x30;

/// Return the first eight bytes of `text` as digit values, the first one lowest, and the rest of the text.
///
/// Bytes past the end of the text get a value above nine.
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

/// Return a mask of the bytes above nine, in their highest bits.
#[inline]
pub(super) fn above_nine(word: u64) -> u64 {
    ((word & !HIGH).wrapping_add(ONES * 0x76) | word) & HIGH
}

/// Return the value of eight digits, the first one lowest.  Digits are joined in pairs, then in fours, then all.
#[inline]
pub(super) fn joined(word: u64) -> u64 {
    const MASK: u64 = 0x0000_00FF_0000_00FF;
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let first = (pairs & MASK).wrapping_mul(100 + (1_000_000 << 32));
    let second = (pairs >> 16 & MASK).wrapping_mul(1 + (10_000 << 32));
    first.wrapping_add(second) >> 32
}

/// Return the number of bytes before the first quote, backslash or control character of eight bytes.
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

/// Return the number of bytes before the first backslash of eight bytes.
#[inline]
pub(super) fn first_backslash(word: u64) -> usize {
    let backslash = word ^ (ONES * 0x5C);
    let hit = backslash.wrapping_sub(ONES) & !backslash & HIGH;
    (hit.trailing_zeros() / 8) as usize
}

/// Return the offset of the first quote, backslash or control character at or after `from`; the length of the text without
/// one.
///
/// Each step reads eight bytes.  After XOR with the searched byte, a match is zero, and subtracting one borrows its high
/// bit.
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

/// Number of bytes after which a text is searched in blocks.
const SHORT_BYTES: usize = 64;

/// Number of bytes of a block.
const BLOCK_BYTES: usize = 32;

/// Return the offset that [`special`] returns, of a text that may be long.
///
/// The compiler compares the bytes of a block with vector instructions, which take 0.7 instructions a byte instead of 1.8.
#[inline]
fn special_in_long(bytes: &[u8], from: usize) -> usize {
    let short = bytes.get(..from.saturating_add(SHORT_BYTES)).unwrap_or(bytes);
    let at = special(short, from);
    if at < short.len() { at } else { special_behind(bytes, at) }
}

#[inline(never)]
fn special_behind(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<BLOCK_BYTES>()) {
        let hits = block.iter().fold(0, |hits, byte| {
            hits | u8::from(*byte == b'"') | u8::from(*byte == b'\\') | u8::from(*byte < 0x20)
        });
        if hits != 0 {
            break;
        }
        at += BLOCK_BYTES;
    }
    special(bytes, at)
}
