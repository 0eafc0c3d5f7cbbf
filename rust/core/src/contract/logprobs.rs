//! `Logprobs`: log probabilities of tokens as flat arrays, because an answer may have tens of thousands of them.
//!
//! In: tokens from a dialect, or the wire form `{tokens, logprobs, tokenIds?, bytes?, top?}` of the contract.  Out: arrays,
//! or the same wire form.
//!
//! Laws: all arrays are parallel, and no token has an allocation of its own.  Missing values are "" (a token), NaN (a log
//! probability, `null` on the wire) or [`NO_ID`] (`null` on the wire).  JSON has no infinity: a number beyond the range of a
//! float is treated as missing.

use std::fmt;
use std::fmt::Write as _;

use crate::json::{
    Carry, Kind, Reader, Result as Read, Str, write_list, write_members, write_string,
};

/// Placeholder of a missing id among known ids.
pub const NO_ID: i64 = -1;

/// Column of texts in one arena, each with a number.
#[derive(Clone, Debug, Default)]
pub struct Column {
    text: String,
    ends: Vec<usize>,
    values: Vec<f64>,
    /// The bytes of texts that are not their UTF-8, by row: a token may end inside a character.
    odd: Vec<(usize, Box<[u8]>)>,
}

impl Column {
    /// Return the number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Return true if the column has no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Return the numbers in order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Return the texts in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let text = self.text.get(start..*end).unwrap_or("");
            start = *end;
            text
        })
    }

    /// Return the texts, numbers and bytes in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let mut odd = self.odd.iter().peekable();
        self.texts().zip(&self.values).enumerate().map(move |(row, (text, value))| {
            let bytes = odd.next_if(|(known, _)| *known == row).map(|(_, bytes)| &**bytes);
            Row { text, value: *value, odd: bytes }
        })
    }

    /// Return true if the bytes of some text are not its UTF-8.
    pub fn has_odd(&self) -> bool {
        !self.odd.is_empty()
    }

    /// Set the bytes of the last row; none are unknown ones.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let Some(row) = self.len().checked_sub(1) else { return };
        if self.odd.last().is_some_and(|(known, _)| *known == row) {
            self.odd.pop();
        }
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        if self.text.as_bytes().get(start.unwrap_or(0)..) != Some(bytes) {
            self.odd.push((row, bytes.into()));
        }
    }

    fn open(&mut self) {
        self.push(Str::plain(""), f64::NAN);
    }

    /// Append a row.
    #[inline]
    pub fn push(&mut self, text: Str<'_>, value: f64) {
        self.push_text(text);
        self.ends.push(self.text.len());
        self.values.push(value);
    }

    fn set_all_bytes(&mut self, rows: Vec<Option<Vec<u8>>>) {
        let odd = self.texts().zip(rows).enumerate().filter_map(|(row, (text, bytes))| {
            bytes.filter(|bytes| bytes != text.as_bytes()).map(|bytes| (row, bytes.into()))
        });
        self.odd = odd.collect();
    }

    #[inline]
    fn push_text(&mut self, text: Str<'_>) {
        if text.escaped {
            let mut carry = Carry::default();
            text.decode_into(&mut self.text, &mut carry);
            carry.flush(&mut self.text);
        } else {
            self.text.push_str(text.raw);
        }
    }

    /// Set the text of the last row.
    fn set_text(&mut self, text: Str<'_>) {
        let start = self.ends.len().checked_sub(2).and_then(|at| self.ends.get(at));
        self.text.truncate(start.copied().unwrap_or(0));
        self.push_text(text);
        if let Some(end) = self.ends.last_mut() {
            *end = self.text.len();
        }
    }

    /// Set the number of the last row.
    fn set_value(&mut self, value: f64) {
        if let Some(last) = self.values.last_mut() {
            *last = value;
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.values.clear();
        self.odd.clear();
    }

    fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.values.truncate(rows);
        while self.odd.last().is_some_and(|(row, _)| *row >= rows) {
            self.odd.pop();
        }
        self.text.truncate(self.ends.last().copied().unwrap_or(0));
    }

    fn append(&mut self, other: &Self) {
        let (before, rows) = (self.text.len(), self.len());
        self.odd.extend(other.odd.iter().map(|(row, bytes)| (rows + row, bytes.clone())));
        self.text.push_str(&other.text);
        self.ends.extend(other.ends.iter().map(|end| before + end));
        self.values.extend_from_slice(&other.values);
    }

    fn bytes(&self) -> usize {
        let odd = self.odd.iter().map(|(_, bytes)| size_of::<(usize, Box<[u8]>)>() + bytes.len());
        self.text.len() + self.len() * (size_of::<usize>() + size_of::<f64>()) + odd.sum::<usize>()
    }
}

/// Row of a column.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Text of the token.
    pub text: &'a str,
    /// Its number.
    pub value: f64,
    odd: Option<&'a [u8]>,
}

impl<'a> Row<'a> {
    /// Return the bytes of the token.
    pub fn bytes(&self) -> &'a [u8] {
        self.odd.unwrap_or(self.text.as_bytes())
    }
}

/// Compares numbers by value, and treats two missing numbers as equal.
impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        self.text == other.text
            && self.ends == other.ends
            && self.odd == other.odd
            && self.values.iter().zip(&other.values).all(same)
    }
}

/// Log probabilities of a run of tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logprobs {
    tokens: Column,
    /// Token ids; empty if no id is known.
    ids: Vec<i64>,
    alternatives: Column,
    /// Start offsets of the alternatives of each token, and the end offset of the last; empty without alternatives.
    offsets: Vec<i64>,
}

impl Logprobs {
    /// Return the number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Return true without tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Return the tokens and their log probabilities.
    pub fn tokens(&self) -> &Column {
        &self.tokens
    }

    /// Return the token ids, if any is known.
    pub fn ids(&self) -> Option<&[i64]> {
        Some(self.ids.as_slice()).filter(|ids| !ids.is_empty())
    }

    /// Return the alternatives of all tokens in order, if there are any.
    pub fn alternatives(&self) -> Option<&Column> {
        Some(&self.alternatives).filter(|_| !self.offsets.is_empty())
    }

    /// Return the start offsets of the alternatives of each token, and the end offset of the last.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// Return the size of the arrays in bytes.
    pub fn bytes(&self) -> usize {
        let numbers = (self.ids.len() + self.offsets.len()) * size_of::<i64>();
        self.tokens.bytes() + self.alternatives.bytes() + numbers
    }

    /// Remove all tokens and keep the capacity.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.ids.clear();
        self.alternatives.clear();
        self.offsets.clear();
    }

    /// Remove the tokens after the first `rows`.
    pub fn truncate(&mut self, rows: usize) {
        self.tokens.truncate(rows);
        self.ids.truncate(rows);
        let alternatives = self.offsets.get(rows).copied().unwrap_or(0);
        self.alternatives.truncate(usize::try_from(alternatives).unwrap_or(0));
        self.offsets.truncate(rows + 1);
    }

    /// Begin a token without known values.
    pub fn open(&mut self) {
        self.begin().open();
    }

    /// Begin a token, and return the column that takes its row.
    #[inline]
    pub fn begin(&mut self) -> &mut Column {
        if !self.ids.is_empty() {
            self.ids.push(NO_ID);
        }
        if let Some(end) = self.offsets.last() {
            self.offsets.push(*end);
        }
        &mut self.tokens
    }

    /// Set the text of the last token.
    pub fn set_token(&mut self, token: Str<'_>) {
        self.tokens.set_text(token);
    }

    /// Set the bytes of the last token.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        self.tokens.set_bytes(bytes);
    }

    /// Set the log probability of the last token.
    pub fn set_logprob(&mut self, logprob: f64) {
        self.tokens.set_value(logprob);
    }

    /// Set the id of the last token.
    pub fn set_id(&mut self, id: i64) {
        self.ids.resize(self.tokens.len(), NO_ID);
        if let Some(last) = self.ids.last_mut() {
            *last = id;
        }
    }

    /// Set the ids of all tokens.  A list of another length is cut or padded.
    pub fn set_ids(&mut self, ids: &[i64]) {
        self.ids.clear();
        self.ids.extend_from_slice(ids);
        self.ids.resize(self.tokens.len(), NO_ID);
    }

    /// Remove the alternatives of the last token.
    pub fn clear_alternatives(&mut self) {
        if let [.., start, end] = self.offsets.as_mut_slice() {
            *end = *start;
            let rows = usize::try_from(*start).unwrap_or(0);
            self.alternatives.truncate(rows);
        }
    }

    /// Begin an alternative to the last token.
    pub fn open_alternative(&mut self) {
        self.begin_alternatives().open();
        self.end_alternatives();
    }

    /// Begin the alternatives to the last token, and return the column that takes their rows.
    ///
    /// The caller must call [`Self::end_alternatives`] after the last row.
    #[inline]
    pub fn begin_alternatives(&mut self) -> &mut Column {
        if self.offsets.is_empty() {
            self.offsets.resize(self.tokens.len() + 1, 0);
        }
        &mut self.alternatives
    }

    /// End the alternatives to the last token.
    #[inline]
    pub fn end_alternatives(&mut self) {
        if let Some(end) = self.offsets.last_mut() {
            *end = i64::try_from(self.alternatives.len()).unwrap_or(i64::MAX);
        }
    }

    /// Set the text of the last alternative.
    pub fn set_alternative_token(&mut self, token: Str<'_>) {
        self.alternatives.set_text(token);
    }

    /// Set the bytes of the last alternative.
    pub fn set_alternative_bytes(&mut self, bytes: &[u8]) {
        self.alternatives.set_bytes(bytes);
    }

    /// Set the log probability of the last alternative.
    pub fn set_alternative_logprob(&mut self, logprob: f64) {
        self.alternatives.set_value(logprob);
    }

    /// Append the tokens of `other`.
    pub fn append(&mut self, other: &Self) {
        let before = self.len();
        self.tokens.append(&other.tokens);
        if !(self.ids.is_empty() && other.ids.is_empty()) {
            self.ids.resize(before, NO_ID);
            self.ids.extend_from_slice(&other.ids);
            self.ids.resize(self.len(), NO_ID);
        }
        if !(self.offsets.is_empty() && other.offsets.is_empty()) {
            if self.offsets.is_empty() {
                self.offsets.resize(before + 1, 0);
            }
            let end = self.offsets.last().copied().unwrap_or(0);
            self.offsets.extend(other.offsets.iter().skip(1).map(|offset| end + offset));
            let end = self.offsets.last().copied().unwrap_or(0);
            self.offsets.resize(self.tokens.len() + 1, end);
            self.alternatives.append(&other.alternatives);
        }
    }

    /// Return the wire form.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(32 + self.tokens.text.len() + self.len() * 32);
        write_members(&mut out, |object| {
            object.value("tokens", |out| write_list(out, self.tokens.texts(), write_string));
            object.value("logprobs", |out| {
                write_list(out, &self.tokens.values, |out, value| write_number(out, *value));
            });
            if let Some(ids) = self.ids() {
                object.value("tokenIds", |out| {
                    write_list(out, ids, |out, id| {
                        // Writing to a String cannot fail.
                        let _ =
                            if *id == NO_ID { write!(out, "null") } else { write!(out, "{id}") };
                    });
                });
            }
            if self.tokens.has_odd() {
                object.value("bytes", |out| {
                    write_list(out, self.tokens.rows(), |out, row| match row.odd {
                        Some(bytes) => write_bytes(out, bytes),
                        None => out.push_str("null"),
                    });
                });
            }
            if !self.offsets.is_empty() {
                object.value("top", |out| self.write_alternatives(out));
            }
        });
        out
    }

    fn write_alternatives(&self, out: &mut String) {
        let mut rows = self.alternatives.rows();
        let bounds = self.offsets.iter().zip(self.offsets.iter().skip(1));
        write_list(out, bounds, |out, (start, end)| {
            let count = usize::try_from(end - start).unwrap_or(0);
            write_list(out, rows.by_ref().take(count), |out, row| {
                write_members(out, |object| {
                    object.text("token", row.text);
                    object.value("logprob", |out| write_number(out, row.value));
                    if let Some(bytes) = row.odd {
                        object.value("bytes", |out| write_bytes(out, bytes));
                    }
                });
            });
        });
    }

    /// Read the wire form.  A missing list is padded, and unknown members are ignored.
    ///
    /// # Errors
    /// A member has the wrong type or length, or the text is not JSON.
    pub fn from_json(text: &str, max_depth: usize) -> Result<Self, LogprobsError> {
        let mut wire = Wire::default();
        let mut reader = Reader::new(text, max_depth);
        let read = wire.read(&mut reader).and_then(|()| reader.end());
        if let Some(fault) = wire.fault {
            return Err(fault);
        }
        read.map_err(|error| LogprobsError {
            place: "the text".to_owned(),
            wrong: error.to_string(),
        })?;
        wire.join()
    }
}

/// Append bytes as a list of numbers.
pub fn write_bytes(out: &mut String, bytes: &[u8]) {
    write_list(out, bytes, |out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte}");
    });
}

/// Read a list of numbers from 0 to 255; `None` for any other value.
///
/// # Errors
/// The text is not JSON.
pub fn read_bytes(reader: &mut Reader<'_>) -> Read<Option<Vec<u8>>> {
    if reader.kind()? != Kind::Array {
        reader.skip()?;
        return Ok(None);
    }
    let mut bytes = Some(Vec::new());
    reader.array(|reader| {
        match (&mut bytes, reader.integer()?.map(u8::try_from)) {
            (Some(bytes), Some(Ok(byte))) => bytes.push(byte),
            _ => bytes = None,
        }
        Ok(())
    })?;
    Ok(bytes)
}

fn write_number(out: &mut String, value: f64) {
    if value.is_finite() {
        // Writing to a String cannot fail.
        let _ = write!(out, "{value:?}");
    } else {
        out.push_str("null");
    }
}

/// Defect of a wire form, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogprobsError {
    /// Path of the member, such as `tokens[3]`.
    pub place: String,
    /// Description such as `must be a string or null`.
    pub wrong: String,
}

impl fmt::Display for LogprobsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.place, self.wrong)
    }
}

impl std::error::Error for LogprobsError {}

/// Members of a wire form, as read.
#[derive(Default)]
struct Wire {
    tokens: Option<Column>,
    logprobs: Option<Vec<f64>>,
    ids: Option<Vec<i64>>,
    bytes: Option<Vec<Option<Vec<u8>>>>,
    top: Option<(Column, Vec<i64>)>,
    fault: Option<LogprobsError>,
}

impl Wire {
    fn wrong(&mut self, place: impl FnOnce() -> String, want: &str) {
        self.fault.get_or_insert_with(|| LogprobsError {
            place: place(),
            wrong: format!("must be {want}"),
        });
    }

    fn read(&mut self, reader: &mut Reader<'_>) -> Read<()> {
        if reader.kind()? != Kind::Object {
            self.wrong(|| "the record".to_owned(), "an object");
            return reader.skip();
        }
        reader.object(|reader, key| {
            match key {
                "tokens" => {
                    let mut tokens = Column::default();
                    self.list(reader, key, |wire, reader, at| {
                        tokens.open();
                        match reader.kind()? {
                            Kind::String => tokens.set_text(reader.string()?),
                            Kind::Null => reader.skip()?,
                            _ => {
                                wire.wrong(|| format!("tokens[{at}]"), "a string or null");
                                reader.skip()?;
                            }
                        }
                        Ok(())
                    })?;
                    self.tokens = Some(tokens);
                }
                "logprobs" => {
                    let mut logprobs = Vec::new();
                    self.list(reader, key, |wire, reader, at| {
                        logprobs.push(wire.number(reader, || format!("logprobs[{at}]"))?);
                        Ok(())
                    })?;
                    self.logprobs = Some(logprobs);
                }
                "tokenIds" => {
                    let mut ids = Vec::new();
                    self.list(reader, key, |wire, reader, at| {
                        ids.push(wire.id(reader, at)?);
                        Ok(())
                    })?;
                    self.ids = Some(ids);
                }
                "bytes" => {
                    let mut rows = Vec::new();
                    self.list(reader, key, |wire, reader, at| {
                        rows.push(wire.bytes(reader, || format!("bytes[{at}]"))?);
                        Ok(())
                    })?;
                    self.bytes = Some(rows);
                }
                "top" => {
                    let (mut column, mut offsets) = (Column::default(), vec![0]);
                    self.list(reader, key, |wire, reader, at| {
                        wire.alternatives(reader, at, &mut column)?;
                        offsets.push(i64::try_from(column.len()).unwrap_or(i64::MAX));
                        Ok(())
                    })?;
                    self.top = Some((column, offsets));
                }
                _ => reader.skip()?,
            }
            Ok(())
        })
    }

    fn list(
        &mut self,
        reader: &mut Reader<'_>,
        key: &str,
        mut item: impl FnMut(&mut Self, &mut Reader<'_>, usize) -> Read<()>,
    ) -> Read<()> {
        if reader.kind()? != Kind::Array {
            self.wrong(|| key.to_owned(), "a list");
            return reader.skip();
        }
        let mut at = 0;
        reader.array(|reader| {
            item(self, reader, at)?;
            at += 1;
            Ok(())
        })
    }

    fn number(&mut self, reader: &mut Reader<'_>, place: impl FnOnce() -> String) -> Read<f64> {
        if reader.kind()? == Kind::Null {
            reader.skip()?;
        } else if let Some(number) = reader.float()? {
            return Ok(number);
        } else {
            self.wrong(place, "a finite number or null");
        }
        Ok(f64::NAN)
    }

    fn id(&mut self, reader: &mut Reader<'_>, at: usize) -> Read<i64> {
        if reader.kind()? == Kind::Null {
            reader.skip()?;
        } else if let Some(id) = reader.integer()?.filter(|id| *id >= 0) {
            return Ok(id);
        } else {
            self.wrong(|| format!("tokenIds[{at}]"), "an integer that is not negative, or null");
        }
        Ok(NO_ID)
    }

    fn bytes(
        &mut self,
        reader: &mut Reader<'_>,
        place: impl FnOnce() -> String,
    ) -> Read<Option<Vec<u8>>> {
        let is_null = reader.kind()? == Kind::Null;
        let bytes = read_bytes(reader)?;
        if bytes.is_none() && !is_null {
            self.wrong(place, "a list of numbers from 0 to 255, or null");
        }
        Ok(bytes)
    }

    fn alternatives(
        &mut self,
        reader: &mut Reader<'_>,
        at: usize,
        column: &mut Column,
    ) -> Read<()> {
        if reader.kind()? == Kind::Null {
            return reader.skip();
        }
        let place = format!("top[{at}]");
        self.list(reader, &place, |wire, reader, position| {
            column.open();
            if reader.kind()? != Kind::Object {
                wire.wrong(|| format!("{place}[{position}]"), "an object");
                return reader.skip();
            }
            let mut bytes = None;
            reader.object(|reader, key| {
                match (key, reader.kind()?) {
                    ("bytes", _) => {
                        bytes = wire.bytes(reader, || format!("{place}[{position}].bytes"))?;
                    }
                    ("token", Kind::String) => column.set_text(reader.string()?),
                    ("token", kind) => {
                        if kind != Kind::Null {
                            wire.wrong(|| format!("{place}[{position}].token"), "a string or null");
                        }
                        reader.skip()?;
                    }
                    ("logprob", _) => {
                        let place = || format!("{place}[{position}].logprob");
                        column.set_value(wire.number(reader, place)?);
                    }
                    _ => reader.skip()?,
                }
                Ok(())
            })?;
            if let Some(bytes) = bytes {
                column.set_bytes(&bytes);
            }
            Ok(())
        })
    }

    /// Join the lists, which must have the same length.
    fn join(self) -> Result<Logprobs, LogprobsError> {
        let lengths = [
            ("tokens", self.tokens.as_ref().map(Column::len)),
            ("logprobs", self.logprobs.as_ref().map(Vec::len)),
            ("tokenIds", self.ids.as_ref().map(Vec::len)),
            ("bytes", self.bytes.as_ref().map(Vec::len)),
            ("top", self.top.as_ref().map(|(_, offsets)| offsets.len() - 1)),
        ];
        let mut known: Option<(&str, usize)> = None;
        for (name, length) in lengths {
            match (known, length) {
                (Some((first, wanted)), Some(length)) if length != wanted => {
                    let wrong = format!("must be as long as {first} ({wanted}), not {length}");
                    return Err(LogprobsError { place: name.to_owned(), wrong });
                }
                (None, Some(length)) => known = Some((name, length)),
                _ => {}
            }
        }
        let rows = known.map_or(0, |(_, length)| length);
        let mut tokens = self.tokens.unwrap_or_default();
        let values = self.logprobs.unwrap_or_default();
        tokens.ends.resize(rows, 0);
        tokens.values = if values.is_empty() { vec![f64::NAN; rows] } else { values };
        tokens.set_all_bytes(self.bytes.unwrap_or_default());
        let (alternatives, mut offsets) = self.top.unwrap_or_default();
        if alternatives.is_empty() {
            offsets.clear();
        }
        let mut ids = self.ids.unwrap_or_default();
        if ids.iter().all(|id| *id == NO_ID) {
            ids.clear();
        }
        Ok(Logprobs { tokens, ids, alternatives, offsets })
    }
}
