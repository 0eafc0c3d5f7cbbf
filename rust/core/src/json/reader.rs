//! Our borrowed JSON reader: frame text in, borrowed tokens out, no tree in between.
//!
//! Laws: every byte is validated exactly once, also in values that are skipped; a string is borrowed as it stands and
//! unescaped only when somebody wants its text and it holds an escape; nothing recurses deeper than the depth limit.
//! Grammar: RFC 8259.  Nothing of a provider lives here.

use std::ops::Range;

use crate::error::{Error, ErrorKind};

use super::cursor::Cursor;
use super::decimal::decimal;
use super::text::{Str, unescape};
use super::tokens::{escape_end, first_special, number_end, space_end, special, value_end};

/// Result of reading.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of the next value, told by its first byte.
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

/// Nesting that is read whatever a caller allows: each level is a call of its own on the stack.
pub const MAX_DEPTH: usize = 1_000;

/// A position in a JSON text.
#[derive(Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    max_depth: usize,
    /// Where the scalars lie that nobody looked at, when that is asked for.
    trace: Option<Vec<Range<usize>>>,
}

impl<'a> Reader<'a> {
    /// Reads `text`, refusing to nest deeper than `max_depth`.
    pub fn new(text: &'a str, max_depth: usize) -> Self {
        Self { text, at: 0, depth: 0, max_depth: max_depth.min(MAX_DEPTH), trace: None }
    }

    /// Notes in `places` from here on where the scalars lie that are ignored, strings with their quotes.
    pub fn trace(&mut self, places: Vec<Range<usize>>) {
        self.trace = Some(places);
    }

    /// The places of the ignored scalars, if they were noted.
    pub fn into_trace(self) -> Option<Vec<Range<usize>>> {
        self.trace
    }

    /// A reader for text that an earlier reader accepted.
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

    /// How much deeper values may nest here.
    pub fn levels(&self) -> usize {
        self.max_depth.saturating_sub(self.depth)
    }

    /// A cursor at this position.
    #[inline]
    pub fn cursor(&self) -> Cursor<'a> {
        Cursor::new(self.text.get(self.at..).unwrap_or(""))
    }

    /// Goes on where a cursor of this text stands, between the same brackets.
    #[inline]
    pub fn resume(&mut self, cursor: Cursor<'_>) {
        self.at = self.text.len().saturating_sub(cursor.rest().len());
    }

    /// Bytes from the start of the text to here.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The text from an earlier position to here, white space at its beginning left out.
    pub fn since(&self, position: usize) -> &'a str {
        self.text.get(position..self.at).unwrap_or("").trim_start()
    }

    /// The kind of the value that comes next.
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

    /// Checks that only white space follows.
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

    /// Reads an object; `member` must consume each member's value.  Repeated keys are shown as often as they stand there.
    #[inline]
    pub fn object(&mut self, mut member: impl FnMut(&mut Self, &str) -> Result<()>) -> Result<()> {
        self.entries(|reader, key| {
            if key.escaped { member(reader, &key.text()) } else { member(reader, key.raw) }
        })
    }

    /// As [`Reader::object`], with the keys as they stand.
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

    /// Reads an array; `item` must consume each value.
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

    /// Reads an object, or skips what is none.
    pub fn maybe_object(
        &mut self,
        member: impl FnMut(&mut Self, &str) -> Result<()>,
    ) -> Result<()> {
        if self.kind()? == Kind::Object { self.object(member) } else { self.skip() }
    }

    /// Reads an array, or skips what is none.
    pub fn maybe_array(&mut self, item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.kind()? == Kind::Array { self.array(item) } else { self.skip() }
    }

    /// Reads a string token.
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

    /// Reads a string as the text that it stands for, in one pass: a piece of this text, or written into `room`.  `None`,
    /// and nothing read, for one that is wrong or holds a UTF-16 unit, which [`Reader::string`] reads.
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

    /// Reads on in a string that begins at `start`, from an escape or a control character.
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

    /// Reads a string; `None` for a value of another kind, which is skipped.
    #[inline]
    pub fn opt_string(&mut self) -> Result<Option<Str<'a>>> {
        if self.kind()? == Kind::String {
            self.string().map(Some)
        } else {
            self.skip()?;
            Ok(None)
        }
    }

    /// Reads a string that says something, or JSON of another kind as the text that it is written in; `None` for "" and
    /// null.  Arguments come as either.
    pub fn text_or_json(&mut self) -> Result<Option<Str<'a>>> {
        match self.kind()? {
            Kind::String => self.filled_string(),
            _ => Ok(self.opt_raw()?.map(Str::plain)),
        }
    }

    /// Reads an id: a string that says something, or a number; `None` for "" and other kinds.
    pub fn id(&mut self) -> Result<Option<Str<'a>>> {
        Ok(self.scalar()?.filter(|id| !id.is_empty()))
    }

    /// Reads a string that says something; `None` for "" and other kinds.
    #[inline]
    pub fn filled_string(&mut self) -> Result<Option<Str<'a>>> {
        Ok(self.opt_string()?.filter(|text| !text.is_empty()))
    }

    /// Reads a string, or a number as the text it is written in (ids come as both); `None` for other kinds.
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

    /// Reads a count: a number that is whole and not negative; `None` for everything else.
    #[inline]
    pub fn count(&mut self) -> Result<Option<u64>> {
        if let Some(value) = self.small_count() {
            return Ok(Some(value));
        }
        Ok(self.number()?.and_then(|text| {
            text.parse::<u64>().ok().or_else(|| text.parse::<f64>().ok().and_then(whole))
        }))
    }

    /// Reads an integer; `None` for everything else.
    #[inline]
    pub fn integer(&mut self) -> Result<Option<i64>> {
        if let Some(value) = self.small_count() {
            return Ok(i64::try_from(value).ok());
        }
        Ok(self.number()?.and_then(|text| text.parse().ok()))
    }

    /// Reads a whole number of few digits and no sign, if that is what comes next: what counts and indexes mostly are.
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

    /// Reads a number as a float; `None` for other kinds.
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

    /// Reads a boolean; `None` for other kinds.
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

    /// Skips a value and returns its text.
    pub fn raw(&mut self) -> Result<&'a str> {
        self.space();
        let start = self.at;
        self.skip()?;
        Ok(self.text.get(start..self.at).unwrap_or(""))
    }

    /// Skips a value and returns its text; `None` for null.
    pub fn opt_raw(&mut self) -> Result<Option<&'a str>> {
        Ok(Some(self.raw()?).filter(|text| *text != "null"))
    }

    /// Steps over a value that nobody looks at, valid or not for its purpose: not even its kind matters.
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

    /// Validates a value and steps over it.
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

    /// As [`Reader::skip`], to say what is wrong and where.
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
