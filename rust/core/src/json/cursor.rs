//! A cursor over JSON whose form is known beforehand: what nearly everybody writes alike is read without a question.
//!
//! In: JSON text.  Out: the tokens that were expected, or nothing.
//!
//! Laws: what is stepped over is valid; what is not as expected is left to a [`Reader`](super::reader::Reader), which also says
//! what is wrong with it.

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

    /// What has not been stepped over.
    #[inline]
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    /// Steps over `text`, if that is what comes next, byte for byte.
    #[inline]
    pub fn follows(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads a string token from behind its first quote.
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

    /// Reads a number.
    #[inline]
    pub fn float(&mut self) -> Option<f64> {
        let (value, length) = decimal(self.rest.as_bytes())?;
        self.rest = self.rest.get(length..)?;
        Some(value)
    }

    /// Steps over a list of small whole numbers, from behind its bracket.
    #[inline]
    pub fn counts(&mut self) -> Option<()> {
        self.rest = self.rest.get(counts_end(self.rest.as_bytes(), 0)?..)?;
        Some(())
    }
}
