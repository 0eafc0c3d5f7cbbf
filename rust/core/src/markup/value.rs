//! `Value`: a JSON value that arrives in chunks, as the arguments of a call or as a member that names it.
//!
//! In: text in any chunking.  Out: the text of a string, or the raw text of any other value.
//!
//! Laws: each byte is read once.  An object or array ends at its balancing bracket, even if it is invalid otherwise;
//! brackets in strings are not counted.  Single quotes open strings too, so that the values of models that write Python
//! dictionaries do not end too early.

use super::literals::{from, upto};
use crate::json::{Carry, Str};

/// Value, classified by its first byte.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Value {
    /// Nothing was read yet.
    #[default]
    Nothing,
    /// Object or array.
    Balanced(Balance),
    /// String.
    Text(Text),
    /// Number or literal.
    Atom(String),
}

/// Maximum length of a number or literal that is held.
const ATOM_BYTES: usize = 4_096;

impl Value {
    /// Read the next bytes and append their text to `out`.  Returns the number of bytes read, and true at the end of the
    /// value.
    pub(super) fn feed(&mut self, input: &str, out: &mut String) -> (usize, bool) {
        if let Self::Nothing = self {
            *self = match input.bytes().next() {
                None => return (0, false),
                Some(b'{' | b'[') => Self::Balanced(Balance::default()),
                Some(quote @ (b'"' | b'\'')) => {
                    *self = Self::Text(Text { quote, ..Text::default() });
                    let (taken, over) = self.feed(from(input, 1), out);
                    return (taken + 1, over);
                }
                Some(_) => Self::Atom(String::new()),
            };
        }
        match self {
            Self::Nothing => (0, false),
            Self::Balanced(balance) => {
                let end = balance.feed(input.as_bytes());
                let taken = end.unwrap_or(input.len());
                out.push_str(upto(input, taken));
                (taken, end.is_some())
            }
            Self::Text(text) => text.feed(input, out),
            Self::Atom(atom) => {
                let ends = |byte: u8| !(byte.is_ascii_alphanumeric() || b"+-._".contains(&byte));
                let end = input.bytes().position(ends);
                let taken = end.unwrap_or(input.len());
                atom.push_str(upto(input, taken));
                let over = end.is_some() || atom.len() > ATOM_BYTES;
                if over && !matches!(atom.as_str(), "null" | "None") {
                    out.push_str(atom);
                }
                (taken, over)
            }
        }
    }

    /// Return true if the value is a string.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// Return true if the text does not begin with a value.
    pub(super) fn is_wrong(&self) -> bool {
        matches!(self, Self::Atom(atom) if atom.is_empty())
    }
}

/// Counter of brackets outside of strings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Balance {
    depth: usize,
    quote: Option<u8>,
    escaped: bool,
}

impl Balance {
    /// Read the next bytes, and return the offset after the balancing bracket.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if std::mem::take(&mut self.escaped) {
                at += 1;
            } else if let Some(quote) = self.quote {
                let rest = bytes.get(at..).unwrap_or(&[]);
                let next = memchr::memchr2(quote, b'\\', rest)?;
                at += next + 1;
                if rest.get(next) == Some(&quote) {
                    self.quote = None;
                } else {
                    self.escaped = true;
                }
            } else {
                at += 1;
                match byte {
                    b'"' | b'\'' => self.quote = Some(byte),
                    b'{' | b'[' | b'(' => self.depth += 1,
                    b'}' | b']' | b')' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return Some(at);
                        }
                    }
                    _ => {}
                }
            }
        }
        None
    }
}

/// Unescaped text of a string.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Text {
    quote: u8,
    /// Beginning of an unfinished escape.
    escape: String,
    carry: Carry,
}

impl Text {
    fn feed(&mut self, input: &str, out: &mut String) -> (usize, bool) {
        let mut at = 0;
        loop {
            let rest = from(input, at);
            if !self.escape.is_empty() {
                let Some(character) = rest.chars().next() else { return (at, false) };
                at += self.unescape(character, out);
                continue;
            }
            let Some(run) = memchr::memchr2(self.quote, b'\\', rest.as_bytes()) else {
                Str::plain(rest).decode_into(out, &mut self.carry);
                return (input.len(), false);
            };
            Str::plain(upto(rest, run)).decode_into(out, &mut self.carry);
            at += run + 1;
            if rest.as_bytes().get(run) == Some(&self.quote) {
                self.carry.flush(out);
                return (at, true);
            }
            self.escape.push('\\');
        }
    }

    /// Add the next character to an escape, and return the number of bytes that belong to the escape.
    fn unescape(&mut self, character: char, out: &mut String) -> usize {
        let hex = self.escape.len() > 1;
        let fits = if hex { character.is_ascii_hexdigit() } else { character.is_ascii() };
        if fits {
            self.escape.push(character);
            if self.escape.len() < 6 && (hex || character == 'u') {
                return 1;
            }
        }
        // A sequence that is not an escape of JSON is kept as written.
        let known = fits && (hex || b"\"\\/bfnrt'".contains(&(character as u8)));
        let escape = std::mem::take(&mut self.escape);
        Str { raw: &escape, escaped: known }.decode_into(out, &mut self.carry);
        usize::from(fits)
    }
}
