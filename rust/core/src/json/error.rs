//! Defects of JSON texts: a kind and a byte offset.
//!
//! The message is written only on demand.  It never contains payload bytes, because they are user data.

use std::fmt;

/// Kind of a defect in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// A byte that the grammar does not allow at its offset.
    UnexpectedByte,
    /// A string holds an unescaped control character.
    ControlCharacter,
    /// A backslash is not followed by a JSON escape.
    InvalidEscape,
    /// A number breaks the JSON grammar.
    InvalidNumber,
    /// A number has more digits than an integer may have, or exceeds the range of a double.
    NumberTooLarge,
    /// Bytes follow the value.
    TrailingBytes,
    /// Nesting exceeds the depth limit.
    TooDeep,
}

/// Defect of a JSON text with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Kind of the defect.
    pub kind: ErrorKind,
    /// Offset of the defect in bytes from the start of the text.
    pub offset: usize,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            ErrorKind::UnexpectedEnd => "the JSON text ends inside a value",
            ErrorKind::UnexpectedByte => "unexpected byte in JSON",
            ErrorKind::ControlCharacter => "unescaped control character in a JSON string",
            ErrorKind::InvalidEscape => "invalid escape in a JSON string",
            ErrorKind::InvalidNumber => "invalid number in JSON",
            ErrorKind::NumberTooLarge => "number out of range in JSON",
            ErrorKind::TrailingBytes => "bytes after the JSON value",
            ErrorKind::TooDeep => "JSON is nested too deeply",
        };
        write!(f, "{what} at byte {}", self.offset)
    }
}

impl std::error::Error for Error {}
