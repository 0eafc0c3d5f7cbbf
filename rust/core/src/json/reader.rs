//! `Reader`: a reader of borrowed JSON text that builds no tree.
//!
//! In: the JSON text of a frame.  Out: tokens that borrow from the text.
//!
//! Laws: every byte is validated exactly once, also in skipped values.  A string is borrowed as written; it is unescaped
//! only if the caller needs its text and it holds an escape.  Recursion is bounded by the depth limit.  The module is
//! independent of providers.
//!
//! Source: RFC 8259.

use std::ops::Range;

use super::cursor::Cursor;
use super::decimal::decimal;
use super::error::{Error, ErrorKind};
use super::text::{Str, unescape};
use super::tokens::{escape_end, first_special, number_end, space_end, special, value_end};

/// Result of reading.
pub type Result<T> = std::result::Result<T, Error>;

/// Kind of a value, determined by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// `-` or a digit
    Number,
    /// `true`, `false`
    Bool,
    /// `null`
    Null,
}

/// Upper bound of the nesting depth, regardless of the caller's limit.  Each level is one call on the stack.
pub const MAX_DEPTH: usize = 1_000;

/// A position in a JSON text.
#[derive(Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    max_depth: usize,
    /// Byte ranges of the scalars that were ignored, if tracing is on.
    trace: Option<Vec<Range<usize>>>,
}

impl<'a> Reader<'a> {
    /// Build a reader that rejects nesting deeper than `max_depth`.
    pub fn new(text: &'a str, max_depth: usize) -> Self {
        Self { text, at: 0, depth: 0, max_depth: max_depth.min(MAX_DEPTH), trace: None }
    }

    /// Record the byte ranges of ignored scalars in `places` from now on.  The range of a string includes its quotes.
    pub fn trace(&mut self, places: Vec<Range<usize>>) {
        self.trace = Some(places);
    }

    /// Return the byte ranges of the ignored scalars, if tracing is on.
    pub fn into_trace(self) -> Option<Vec<Range<usize>>> {
        self.trace
    }

    /// Build a reader for text that an earlier reader accepted.
    pub fn trusted(text: &'a str) -> Self {
        Self::new(text, usize::MAX)
    }

    #[cold]
    fn fail<T>(&self, kind: ErrorKind) -> Result<T> {
        let kind = if self.at >= self.text.len() && kind != ErrorKind::TooDeep {
            ErrorKind::UnexpectedEnd
        } else {
            kind
        };
        Err(Error { kind, offset: self.at })
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
    }

    /// Return the number of levels that a value may nest here.
    pub fn levels(&self) -> usize {
        self.max_depth.saturating_sub(self.depth)
    }

    /// Return a cursor at this position.
    #[inline]
    pub fn cursor(&self) -> Cursor<'a> {
        Cursor::new(self.text.get(self.at..).unwrap_or(""))
    }

    /// Continue at the position of a cursor of this text.  The cursor must be inside the same brackets.
    #[inline]
    pub fn resume(&mut self, cursor: Cursor<'_>) {
        self.at = self.text.len().saturating_sub(cursor.rest().len());
    }

    /// Continue behind a whole value of this many bytes, which the caller validated.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes).min(self.text.len());
    }

    /// Return the offset of this position in bytes.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Return the text between an earlier position and this one, without leading white space.
    pub fn since(&self, position: usize) -> &'a str {
        self.text.get(position..self.at).unwrap_or("").trim_start()
    }

    /// Return the kind of the next value.
    #[inline]
    pub fn kind(&mut self) -> Result<Kind> {
        self.space();
        match self.byte() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            _ => self.fail(ErrorKind::UnexpectedByte),
        }
    }

    /// Check that only white space follows.
    pub fn end(&mut self) -> Result<()> {
        self.space();
        if self.at < self.text.len() { self.fail(ErrorKind::TrailingBytes) } else { Ok(()) }
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.byte() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            self.fail(ErrorKind::UnexpectedByte)
        }
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > self.max_depth { self.fail(ErrorKind::TooDeep) } else { Ok(()) }
    }

    /// Read an object.  `member` must consume the value of each member.  It is called for each occurrence of a repeated key.
    #[inline]
    pub fn object(&mut self, mut member: impl FnMut(&mut Self, &str) -> Result<()>) -> Result<()> {
        self.entries(|reader, key| {
            if key.escaped { member(reader, &key.text()) } else { member(reader, key.raw) }
        })
    }

    /// Read an object as [`Reader::object`] does, but pass the keys without unescaping them.
    #[inline]
    pub fn entries(
        &mut self,
        mut member: impl FnMut(&mut Self, Str<'a>) -> Result<()>,
    ) -> Result<()> {
        self.space();
        self.expect(b'{')?;
        self.enter()?;
        self.space();
        if self.byte() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                let key = self.string()?;
                self.space();
                self.expect(b':')?;
                member(self, key)?;
                self.space();
                match self.byte() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => {
                        self.at += 1;
                        break;
                    }
                    _ => return self.fail(ErrorKind::UnexpectedByte),
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Read an array.  `item` must consume each value.
    #[inline]
    pub fn array(&mut self, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.space();
        self.expect(b'[')?;
        self.enter()?;
        self.space();
        if self.byte() == Some(b']') {
            self.at += 1;
        } else {
            loop {
                item(self)?;
                self.space();
                match self.byte() {
                    Some(b',') => self.at += 1,
                    Some(b']') => {
                        self.at += 1;
                        break;
                    }
                    _ => return self.fail(ErrorKind::UnexpectedByte),
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Read an object, or skip a value of another kind.
    pub fn maybe_object(
        &mut self,
        member: impl FnMut(&mut Self, &str) -> Result<()>,
    ) -> Result<()> {
        if self.kind()? == Kind::Object { self.object(member) } else { self.skip() }
    }

    /// Read an array, or skip a value of another kind.
    pub fn maybe_array(&mut self, item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.kind()? == Kind::Array { self.array(item) } else { self.skip() }
    }

    /// Read a string token.
    #[inline]
    pub fn string(&mut self) -> Result<Str<'a>> {
        self.space();
        self.expect(b'"')?;
        let start = self.at;
        self.at = special(self.text.as_bytes(), start);
        if self.byte() == Some(b'"') {
            let raw = self.text.get(start..self.at).unwrap_or("");
            self.at += 1;
            return Ok(Str { raw, escaped: false });
        }
        self.escaped_string(start)
    }

    /// Read a string and return its unescaped text, in one pass.
    ///
    /// The result borrows from the JSON text, or from `room` if the string holds escapes.  Returns `None` without consuming
    /// anything if the string is invalid or holds a UTF-16 escape; [`Reader::string`] reads those.
    pub fn plain_text<'b>(&mut self, room: &'b mut Vec<u8>) -> Option<&'b str>
    where
        'a: 'b,
    {
        self.space();
        let start = self.at + 1;
        let token = self.text.as_bytes().get(start..).filter(|_| self.byte() == Some(b'"'))?;
        let end = special(token, 0);
        if token.get(end) == Some(&b'"') {
            self.at = start + end + 1;
            return self.text.get(start..start + end);
        }
        let (length, text) = unescape(token, room, first_special);
        token.get(length).filter(|byte| **byte == b'"')?;
        self.at = start + length + 1;
        Some(text)
    }

    /// Read the rest of a string that begins at `start`, from its first escape or control character.
    fn escaped_string(&mut self, start: usize) -> Result<Str<'a>> {
        loop {
            match self.byte() {
                Some(b'"') => {
                    let raw = self.text.get(start..self.at).unwrap_or("");
                    self.at += 1;
                    return Ok(Str { raw, escaped: true });
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                _ => return self.fail(ErrorKind::ControlCharacter),
            }
            self.at = special(self.text.as_bytes(), self.at);
        }
    }

    #[inline]
    fn escape(&mut self) -> Result<()> {
        let end = escape_end(self.text.as_bytes(), self.at);
        self.at = end.unwrap_or_else(|at| at);
        if end.is_ok() { Ok(()) } else { self.fail(ErrorKind::InvalidEscape) }
    }

    /// Read a string; `None` for a value of another kind, which is skipped.
    #[inline]
    pub fn opt_string(&mut self) -> Result<Option<Str<'a>>> {
        if self.kind()? == Kind::String {
            self.string().map(Some)
        } else {
            self.skip()?;
            Ok(None)
        }
    }

    /// Read a non-empty string, or return the JSON text of a value of another kind.  `None` for "" and null.
    ///
    /// Providers send arguments in both forms.
    pub fn text_or_json(&mut self) -> Result<Option<Str<'a>>> {
        match self.kind()? {
            Kind::String => self.filled_string(),
            _ => Ok(self.opt_raw()?.map(Str::plain)),
        }
    }

    /// Read an id: a non-empty string or a number.  `None` for "" and other kinds.
    pub fn id(&mut self) -> Result<Option<Str<'a>>> {
        Ok(self.scalar()?.filter(|id| !id.is_empty()))
    }

    /// Read a non-empty string; `None` for "" and other kinds.
    #[inline]
    pub fn filled_string(&mut self) -> Result<Option<Str<'a>>> {
        Ok(self.opt_string()?.filter(|text| !text.is_empty()))
    }

    /// Read a string, or a number as its text, because ids come in both forms.  `None` for other kinds.
    pub fn scalar(&mut self) -> Result<Option<Str<'a>>> {
        match self.kind()? {
            Kind::String => self.string().map(Some),
            Kind::Number => Ok(Some(Str::plain(self.raw()?))),
            _ => {
                self.skip()?;
                Ok(None)
            }
        }
    }

    /// Read a count: a whole number that is not negative.  `None` for everything else.
    #[inline]
    pub fn count(&mut self) -> Result<Option<u64>> {
        if let Some(value) = self.small_count() {
            return Ok(Some(value));
        }
        Ok(self.number()?.and_then(|text| {
            text.parse::<u64>().ok().or_else(|| text.parse::<f64>().ok().and_then(whole))
        }))
    }

    /// Read an integer; `None` for everything else.
    #[inline]
    pub fn integer(&mut self) -> Result<Option<i64>> {
        if let Some(value) = self.small_count() {
            return Ok(i64::try_from(value).ok());
        }
        Ok(self.number()?.and_then(|text| text.parse().ok()))
    }

    /// Read a whole number with few digits and without a sign, if one follows.  Most counts and indexes have this form.
    #[inline]
    fn small_count(&mut self) -> Option<u64> {
        const DIGITS: usize = 16;
        self.space();
        let bytes = self.text.as_bytes().get(self.at..)?;
        let (mut value, mut digits) = (0_u64, 0);
        while let Some(digit @ b'0'..=b'9') = bytes.get(digits) {
            value = value * 10 + u64::from(digit - b'0');
            digits += 1;
            if digits > DIGITS {
                return None;
            }
        }
        let ends = !matches!(bytes.get(digits), Some(b'.' | b'e' | b'E'));
        let leading_zero = digits > 1 && bytes.first() == Some(&b'0');
        (digits > 0 && ends && !leading_zero).then(|| {
            self.at += digits;
            value
        })
    }

    /// Read a number as a float; `None` for other kinds.
    #[inline]
    pub fn float(&mut self) -> Result<Option<f64>> {
        if let Some((value, length)) = self.text.as_bytes().get(self.at..).and_then(decimal) {
            self.at += length;
            return Ok(Some(value));
        }
        Ok(self
            .number()?
            .and_then(|text| text.parse().ok())
            .filter(|value: &f64| value.is_finite()))
    }

    /// Read a boolean; `None` for other kinds.
    pub fn boolean(&mut self) -> Result<Option<bool>> {
        Ok(match self.raw()? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })
    }

    fn number(&mut self) -> Result<Option<&'a str>> {
        if self.kind()? == Kind::Number {
            self.raw().map(Some)
        } else {
            self.skip()?;
            Ok(None)
        }
    }

    /// Skip a value and return its text.
    pub fn raw(&mut self) -> Result<&'a str> {
        self.space();
        let start = self.at;
        self.skip()?;
        Ok(self.text.get(start..self.at).unwrap_or(""))
    }

    /// Skip a value and return its text; `None` for null.
    pub fn opt_raw(&mut self) -> Result<Option<&'a str>> {
        Ok(Some(self.raw()?).filter(|text| *text != "null"))
    }

    /// Skip a value and return its text, and record its scalars if tracing is on.
    pub fn ignored_raw(&mut self) -> Result<&'a str> {
        self.space();
        let start = self.at;
        self.ignore()?;
        Ok(self.text.get(start..self.at).unwrap_or(""))
    }

    /// Skip a value of any kind that the caller does not use, and record its scalars if tracing is on.
    #[inline]
    pub fn ignore(&mut self) -> Result<()> {
        if self.trace.is_none() {
            return self.skip();
        }
        match self.kind()? {
            Kind::Object => self.object(|reader, _| reader.ignore()),
            Kind::Array => self.array(Self::ignore),
            _ => {
                let start = self.at;
                self.skip()?;
                let end = self.at;
                self.trace.get_or_insert_default().push(start..end);
                Ok(())
            }
        }
    }

    /// Validate a value and skip it.
    #[inline]
    pub fn skip(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        match value_end(bytes, space_end(bytes, self.at), self.levels()) {
            Some(end) => {
                self.at = end;
                Ok(())
            }
            None => self.skip_slowly(),
        }
    }

    /// Skip a value as [`Reader::skip`] does, and report the kind and offset of its defect.
    #[cold]
    fn skip_slowly(&mut self) -> Result<()> {
        match self.kind()? {
            Kind::Object => self.object(|reader, _| reader.skip_slowly()),
            Kind::Array => self.array(Self::skip_slowly),
            Kind::String => self.string().map(drop),
            Kind::Number => self.skip_number(),
            Kind::Null => self.literal("null"),
            Kind::Bool if self.byte() == Some(b't') => self.literal("true"),
            Kind::Bool => self.literal("false"),
        }
    }

    fn literal(&mut self, word: &str) -> Result<()> {
        for byte in word.bytes() {
            self.expect(byte)?;
        }
        Ok(())
    }

    fn skip_number(&mut self) -> Result<()> {
        match number_end(self.text.as_bytes(), self.at) {
            Ok(end) => {
                self.at = end;
                Ok(())
            }
            Err(at) => {
                self.at = at;
                self.fail(ErrorKind::InvalidNumber)
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked and a whole number below 2^53 is exact"
)]
fn whole(value: f64) -> Option<u64> {
    (value >= 0.0 && value.fract() == 0.0 && value < 9_007_199_254_740_992.0)
        .then_some(value as u64)
}
