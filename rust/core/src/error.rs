//! Defects found while reading bytes: a kind and a byte offset, rendered late and never with payload bytes (they are user data).

use std::fmt;

/// What is wrong with a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// A byte that no JSON value can have at its place.
    UnexpectedByte,
    /// A string holds an unescaped control character.
    ControlCharacter,
    /// A backslash is followed by no JSON escape.
    InvalidEscape,
    /// A number breaks the JSON grammar.
    InvalidNumber,
    /// A number has more digits than an integer may have, or does not fit a double.
    NumberTooLarge,
    /// Bytes follow the value.
    TrailingBytes,
    /// Nesting exceeds the depth limit.
    TooDeep,
}

/// A defect and where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Bytes from the start of the text that was read.
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
