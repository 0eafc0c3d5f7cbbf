//! Writing of JSON: strings, and objects member by member.
//!
//! In: keys and values of Rust, of the wire or of JSON.  Out: JSON without white space.
//!
//! Laws: texts are escaped, and so are keys that are not constants.  Constant keys need no escapes.  Values that are JSON
//! already are not checked.

use std::fmt::{Display, Write as _};

use super::text::Str;
use super::tokens::special;

/// Write `text` as a JSON string, quotes included.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    write_text(out, text);
    out.push('"');
}

/// Write `text` as a piece of a JSON string, without quotes.
pub fn write_text(out: &mut String, text: &str) {
    let mut rest = text;
    loop {
        let at = special(rest.as_bytes(), 0);
        let (plain, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(plain);
        let mut characters = tail.chars();
        match characters.next() {
            None => break,
            Some(character) => write_escape(out, character),
        }
        rest = characters.as_str();
    }
}

/// Append the escape of one character.
pub(crate) fn write_escape(out: &mut String, character: char) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        other => {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(other));
        }
    }
}

/// Writer of one JSON object.
#[derive(Debug)]
pub struct ObjectWriter<'a> {
    out: &'a mut String,
    empty: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Begin an object at the end of `out`.
    pub fn begin(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, empty: true }
    }

    /// Continue the object that is all of `out` and is not closed; an empty text begins it.
    pub fn resume(out: &'a mut String) -> Self {
        if out.is_empty() {
            return Self::begin(out);
        }
        let empty = out.len() == 1;
        Self { out, empty }
    }

    /// Close the object.
    pub fn end(self) {
        self.out.push('}');
    }

    #[inline]
    fn key(&mut self, key: &'static str) {
        self.out.push_str(if self.empty { "\"" } else { ",\"" });
        self.empty = false;
        self.out.push_str(key);
        self.out.push_str("\":");
    }

    fn escaped_key(&mut self, key: &str) {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
        write_string(self.out, key);
        self.out.push(':');
    }

    /// Write a member of a key that is not a constant; its value is JSON.
    pub fn json_of(&mut self, key: &str, value: &str) {
        self.escaped_key(key);
        self.out.push_str(value);
    }

    /// Write a string of a key that is not a constant.
    pub fn text_of(&mut self, key: &str, value: &str) {
        self.escaped_key(key);
        write_string(self.out, value);
    }

    /// Write a member whose value is JSON.
    pub fn json(&mut self, key: &'static str, value: &str) {
        self.key(key);
        self.out.push_str(value);
    }

    /// Write a string.
    pub fn text(&mut self, key: &'static str, value: &str) {
        self.key(key);
        write_string(self.out, value);
    }

    /// Write a string of the wire with the escapes that it has there.
    pub fn wire_text(&mut self, key: &'static str, value: Str<'_>) {
        self.key(key);
        self.out.push('"');
        self.out.push_str(value.raw);
        self.out.push('"');
    }

    /// Write a whole number.
    pub fn number(&mut self, key: &'static str, value: impl Display) {
        self.key(key);
        // Writing to a String cannot fail.
        let _ = write!(self.out, "{value}");
    }

    /// Write a member whose value `write` appends as JSON.
    pub fn value(&mut self, key: &'static str, write: impl FnOnce(&mut String)) {
        self.key(key);
        write(self.out);
    }

    /// Write a member that is an object itself.
    pub fn object(&mut self, key: &'static str, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.key(key);
        write_members(self.out, fill);
    }
}

/// Append an object whose members `fill` writes.
pub fn write_members(out: &mut String, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
    let mut object = ObjectWriter::begin(out);
    fill(&mut object);
    object.end();
}

/// Return an object whose members `fill` writes.
pub fn object(fill: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut out = String::new();
    write_members(&mut out, fill);
    out
}

/// Append a list whose items `write` appends as JSON.
pub fn write_list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (position, item) in items.into_iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}
