//! Wire form of log probabilities: `{tokens, logprobs, tokenIds?, bytes?, top?}` of the contract.
//!
//! In: JSON text, or log probabilities.  Out: the other of the two.
//!
//! Law: a missing list is padded, a list of another length or type is refused with its place.

use std::fmt;
use std::fmt::Write as _;

use super::{Column, Logprobs, NO_ID};
use crate::json::{Kind, Reader, Result as Read, write_list, write_members, write_string};

impl Column {
    fn set_all_bytes(&mut self, rows: Vec<Option<Vec<u8>>>) {
        let odd = self.texts().zip(rows).enumerate().filter_map(|(row, (text, bytes))| {
            bytes.filter(|bytes| bytes != text.as_bytes()).map(|bytes| (row, bytes.into()))
        });
        self.odd = odd.collect();
    }
}

impl Logprobs {
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
