//! `Cursor`: a fast path over JSON of a form that is known beforehand.
//!
//! In: JSON text.  Out: the expected tokens, or `None`.
//!
//! Laws: all consumed text is valid JSON.  Text of another form is left to a [`Reader`](super::reader::Reader), which also
//! reports its errors.

use super::decimal::decimal;
use super::text::Str;
use super::tokens::{counts_end, special, string_end};

/// A position in a JSON text.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a str) -> Self {
        Self { rest }
    }

    /// Return the text that was not consumed yet.
    #[inline]
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    /// Consume `text` if the rest begins with exactly these bytes, and return whether it did.
    #[inline]
    pub fn follows(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Read a string token after its opening quote.
    #[inline]
    pub fn string(&mut self) -> Option<Str<'a>> {
        let (raw, rest) = self.rest.split_at_checked(special(self.rest.as_bytes(), 0))?;
        if let Some(rest) = rest.strip_prefix('"') {
            self.rest = rest;
            return Some(Str::plain(raw));
        }
        let (end, escaped) = string_end(self.rest.as_bytes(), raw.len()).ok()?;
        let (raw, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.strip_prefix('"')?;
        Some(Str { raw, escaped })
    }

    /// Read a number.
    #[inline]
    pub fn float(&mut self) -> Option<f64> {
        let (value, length) = decimal(self.rest.as_bytes())?;
        self.rest = self.rest.get(length..)?;
        Some(value)
    }

    /// Consume a list of small whole numbers after its opening bracket.
    #[inline]
    pub fn counts(&mut self) -> Option<()> {
        self.rest = self.rest.get(counts_end(self.rest.as_bytes(), 0)?..)?;
        Some(())
    }
}
