//! `Str`: string tokens and their unescaped text.
//!
//! In: the raw text of a string token.  Out: its unescaped text.
//!
//! Laws: a token is unescaped only if its text is needed and it holds an escape.  A surrogate pair may be cut between two
//! tokens.  A lone surrogate becomes U+FFFD and is counted.

use std::borrow::Cow;

use super::tokens::{first_backslash, special};

/// String token with its escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Str<'a> {
    /// Text between the quotes.
    pub raw: &'a str,
    /// True if `raw` holds a backslash.
    pub escaped: bool,
}

/// State of surrogate pairs between two chunks of one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carry {
    /// High surrogate that waits for its low surrogate.
    pub high: Option<u16>,
    /// Number of lone surrogates so far.
    pub lone: u32,
}

impl Carry {
    /// Replace a pending high surrogate with U+FFFD.
    pub fn flush(&mut self, out: &mut String) {
        if self.high.take().is_some() {
            self.lone = self.lone.saturating_add(1);
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Append one UTF-16 unit of an escape.  A high surrogate waits for the next unit.
    pub(crate) fn unit(&mut self, unit: u16, out: &mut String) {
        if let Some(high) = self.high {
            if let Some(Ok(character)) = char::decode_utf16([high, unit]).next()
                && (0xDC00..0xE000).contains(&unit)
            {
                self.high = None;
                out.push(character);
                return;
            }
            self.flush(out);
        }
        match unit {
            0xD800..0xDC00 => self.high = Some(unit),
            0xDC00..0xE000 => {
                self.lone = self.lone.saturating_add(1);
                out.push(char::REPLACEMENT_CHARACTER);
            }
            _ => out.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }
}

impl<'a> Str<'a> {
    /// Build a token that holds no escape.
    pub fn plain(raw: &'a str) -> Self {
        Self { raw, escaped: false }
    }

    /// Return true if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Append the unescaped text.  A surrogate pair may be cut between two calls with the same `carry`.
    pub fn decode_into(&self, out: &mut String, carry: &mut Carry) {
        if !self.escaped {
            if !self.raw.is_empty() {
                carry.flush(out);
                out.push_str(self.raw);
            }
            return;
        }
        let mut room = [0; SHORT];
        if let Some(text) = unescape_short(self.raw, &mut room) {
            if !text.is_empty() {
                carry.flush(out);
                out.push_str(text);
            }
            return;
        }
        let mut rest = self.raw;
        let mut room = Vec::new();
        loop {
            let (taken, text) = unescape(rest.as_bytes(), &mut room, first_backslash);
            if !text.is_empty() {
                carry.flush(out);
                out.push_str(text);
            }
            // The rest is empty or begins with a UTF-16 unit: `\u` and four digits.
            let Some(unit) = rest.get(taken..).filter(|rest| !rest.is_empty()) else { break };
            let hex = unit.get(2..6).and_then(|hex| u16::from_str_radix(hex, 16).ok());
            carry.unit(hex.unwrap_or(0xFFFD), out);
            rest = unit.get(6..).unwrap_or("");
        }
    }

    /// Return the unescaped text as a new string; lone surrogates become U+FFFD.
    pub fn text(&self) -> String {
        self.unescaped().into_owned()
    }

    /// Return the unescaped text, borrowed if the token holds no escape; lone surrogates become U+FFFD.
    pub fn unescaped(&self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let mut out = String::with_capacity(self.raw.len());
        let mut carry = Carry::default();
        self.decode_into(&mut out, &mut carry);
        carry.flush(&mut out);
        Cow::Owned(out)
    }

    /// Return true if the unescaped text equals `other`.
    pub fn is(&self, other: &str) -> bool {
        self.unescaped() == other
    }
}

/// Maximum length of a text that is unescaped byte by byte.  Copying the runs between escapes is slower for short texts.
const SHORT: usize = 32;

/// Unescape a short text without UTF-16 units; `None` for any other text.
#[inline]
fn unescape_short<'a>(raw: &str, room: &'a mut [u8; SHORT]) -> Option<&'a str> {
    if raw.len() > SHORT {
        return None;
    }
    let mut bytes = raw.bytes();
    let mut length = 0;
    for place in room.iter_mut() {
        *place = match bytes.next() {
            Some(b'\\') => meant(bytes.next().filter(|letter| *letter != b'u')?),
            Some(byte) => byte,
            None => break,
        };
        length += 1;
    }
    std::str::from_utf8(room.get(..length)?).ok()
}

/// Unescape the text of a token up to its end, its first UTF-16 unit or its first defect.
///
/// Returns the number of bytes read and their text.  Each step reads eight bytes.  `plain_bytes` counts those before the
/// first byte that may not be plain text.
#[inline]
pub(super) fn unescape<'a>(
    token: &[u8],
    room: &'a mut Vec<u8>,
    plain_bytes: impl Fn(u64) -> usize,
) -> (usize, &'a str) {
    room.resize(room.len().max(token.len() + 8), 0);
    let (mut at, mut length) = (0, 0);
    while let Some(rest) = token.get(at..).filter(|rest| !rest.is_empty())
        && let Some(free) = room.get_mut(length..).and_then(|free| free.first_chunk_mut::<8>())
    {
        let plain = if let Some(word) = rest.first_chunk() {
            *free = *word;
            plain_bytes(u64::from_le_bytes(*word))
        } else {
            free.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
            special(rest, 0)
        };
        (at, length) = (at + plain, length + plain);
        match rest.get(plain..) {
            Some([b'\\', letter, ..]) => {
                let meaning = MEANT.get(usize::from(*letter)).copied().unwrap_or_default();
                if meaning == 0 {
                    break;
                }
                if let Some(place) = room.get_mut(length) {
                    *place = meaning;
                }
                (at, length) = (at + 2, length + 1);
            }
            _ if plain == 8 => {}
            _ => break,
        }
    }
    let text = room.get(..length).and_then(|text| simdutf8::basic::from_utf8(text).ok());
    (at, text.unwrap_or(""))
}

/// Byte that each escape letter encodes; 0 for a byte that is not an escape letter.
///
/// A table, because the letters of a long text alternate and branches on them are mispredicted.
const MEANT: [u8; 256] = {
    let mut meanings = [0; 256];
    let mut rest = meanings.as_mut_slice();
    let mut letter = 0;
    while let [first, others @ ..] = rest {
        if matches!(letter, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') {
            *first = meant(letter);
        }
        letter = letter.wrapping_add(1);
        rest = others;
    }
    meanings
};

/// Return the byte that an escape letter encodes.
#[inline]
const fn meant(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        other => other,
    }
}
