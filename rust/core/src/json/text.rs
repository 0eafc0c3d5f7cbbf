//! String tokens, and the texts that they stand for.
//!
//! Laws: a text is unescaped only when somebody wants it and it holds an escape; a surrogate pair may be cut anywhere, and
//! a surrogate that stays alone becomes U+FFFD and is counted.

use super::tokens::{first_backslash, special};

/// A string token, escapes untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Str<'a> {
    /// The text between the quotes.
    pub raw: &'a str,
    /// Whether `raw` holds a backslash.
    pub escaped: bool,
}

/// What a surrogate escape left behind between two pieces of one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carry {
    /// A high surrogate that waits for its low one.
    pub high: Option<u16>,
    /// How many surrogates turned out to be alone.
    pub lone: u32,
}

impl Carry {
    /// Gives up waiting: a high surrogate that stayed alone becomes U+FFFD.
    pub fn flush(&mut self, out: &mut String) {
        if self.high.take().is_some() {
            self.lone = self.lone.saturating_add(1);
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Takes one UTF-16 unit that stood in an escape; a high surrogate waits for the next.
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
    /// A text that needs no unescaping.
    pub fn plain(raw: &'a str) -> Self {
        Self { raw, escaped: false }
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Appends the text, unescaped.  A surrogate pair may be cut between two calls with the same `carry`.
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
            // What follows is a UTF-16 unit, `\u` and four digits, or nothing.
            let Some(unit) = rest.get(taken..).filter(|rest| !rest.is_empty()) else { break };
            let hex = unit.get(2..6).and_then(|hex| u16::from_str_radix(hex, 16).ok());
            carry.unit(hex.unwrap_or(0xFFFD), out);
            rest = unit.get(6..).unwrap_or("");
        }
    }

    /// The text as an own string; lone surrogates become U+FFFD.
    pub fn text(&self) -> String {
        if !self.escaped {
            return self.raw.to_owned();
        }
        let mut out = String::with_capacity(self.raw.len());
        let mut carry = Carry::default();
        self.decode_into(&mut out, &mut carry);
        carry.flush(&mut out);
        out
    }

    /// Whether the unescaped text equals `other`.
    pub fn is(&self, other: &str) -> bool {
        if self.escaped { self.text() == other } else { self.raw == other }
    }
}

/// Bytes of a text that is unescaped byte by byte: copying the runs between the escapes costs more.
const SHORT: usize = 32;

/// Unescapes a short text that has no UTF-16 unit in it; `None` for another.
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

/// Unescapes a token's text up to its end, its first UTF-16 unit or what is wrong in it: how many bytes of it, and what they
/// say.  Eight bytes a step, of which `plain_bytes` counts those before the first that may be none of the text.
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

/// What each letter of an escape means, 0 for those that none has: in a long text they alternate, and no branch foresees
/// them.
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

/// What the letter of an escape means.
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
