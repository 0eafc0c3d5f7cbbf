//! `Tools`: names of the offered tools and types of their parameters, for the grammars of markup.
//!
//! In: the name of a tool and its JSON schema.  Out: the types of a parameter, and raw text converted to a JSON value.
//!
//! Laws: schemas are only read, never evaluated.  A parameter without a schema is a string.  A string stays as written
//! (`007`, `true`).  Text that fits none of its types is a string.
//!
//! Source: docs/protocols/inline-markup.md#types.

use std::collections::HashMap;

use super::literal;
use crate::json::{Kind, Reader, Result, write_string};

/// Set of the JSON types that a value may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Types(u8);

impl Types {
    /// `"string"`.
    pub const STRING: Self = Self(1);
    /// `"null"`.
    pub const NULL: Self = Self(2);
    /// `"boolean"`.
    pub const BOOLEAN: Self = Self(4);
    /// `"integer"`.
    pub const INTEGER: Self = Self(8);
    /// `"number"`.
    pub const NUMBER: Self = Self(16);
    /// `"object"`.
    pub const OBJECT: Self = Self(32);
    /// `"array"`.
    pub const ARRAY: Self = Self(64);
    /// Types of a schema without type information.
    pub const ANY: Self = Self(127);

    fn named(name: &str) -> Self {
        match name {
            "string" => Self::STRING,
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "object" => Self::OBJECT,
            "array" => Self::ARRAY,
            _ => Self::default(),
        }
    }

    fn from_value(value: &str) -> Self {
        match value.bytes().next() {
            Some(b'"') => Self::STRING,
            Some(b'{') => Self::OBJECT,
            Some(b'[') => Self::ARRAY,
            Some(b't' | b'f') => Self::BOOLEAN,
            Some(b'n') => Self::NULL,
            _ if is_integer(value) => Self::INTEGER,
            _ => Self::NUMBER,
        }
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Return true if the sets have a common type.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Return true if text always stays a string.
    pub fn only_text(self) -> bool {
        self == Self::STRING
    }
}

/// Names of the offered tools, and types of their parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tools {
    parameters: HashMap<Box<str>, HashMap<Box<str>, Types>>,
}

impl Tools {
    /// Add a tool; `schema` is the JSON schema of its arguments, if known.
    pub fn add(&mut self, name: &str, schema: Option<&str>) -> Result<()> {
        let known = self.parameters.entry(name.into()).or_default();
        let Some(schema) = schema else { return Ok(()) };
        Reader::trusted(schema).maybe_object(|reader, key| {
            if key != "properties" {
                return reader.skip();
            }
            reader.maybe_object(|reader, parameter| {
                known.insert(parameter.into(), read_types(reader)?);
                Ok(())
            })
        })
    }

    /// Return true if a tool with this name was offered.
    pub fn offers(&self, name: &str) -> bool {
        self.parameters.contains_key(name)
    }

    /// Return the types of a parameter.
    pub fn types(&self, tool: &str, parameter: &str) -> Types {
        let known = self.parameters.get(tool).and_then(|known| known.get(parameter));
        known.copied().unwrap_or(Types::STRING)
    }
}

/// Return the types of a schema: its `type`, or else those of its alternatives or listed values.
fn read_types(reader: &mut Reader<'_>) -> Result<Types> {
    if reader.kind()? != Kind::Object {
        reader.skip()?;
        return Ok(Types::ANY);
    }
    let mut named = Types::default();
    let mut others = Types::default();
    let mut nullable = false;
    reader.object(|reader, key| {
        match key {
            "type" if reader.kind()? == Kind::Array => reader.array(|reader| {
                named = named.and(Types::named(reader.opt_string()?.map_or("", |name| name.raw)));
                Ok(())
            })?,
            "type" => named = Types::named(reader.opt_string()?.map_or("", |name| name.raw)),
            "anyOf" | "oneOf" | "allOf" => reader.maybe_array(|reader| {
                others = others.and(read_types(reader)?);
                Ok(())
            })?,
            "enum" => reader.maybe_array(|reader| {
                others = others.and(Types::from_value(reader.raw()?));
                Ok(())
            })?,
            "const" => others = others.and(Types::from_value(reader.raw()?)),
            "nullable" => nullable = reader.boolean()? == Some(true),
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    let said = if named == Types::default() { others } else { named };
    let said = if said == Types::default() { Types::ANY } else { said };
    Ok(if nullable { said.and(Types::NULL) } else { said })
}

/// Convert raw text to a JSON value of one of these types.
pub fn coerce(types: Types, text: &str, max_depth: usize) -> String {
    let mut out = String::new();
    let trimmed = text.trim();
    if let Some(value) = typed(types, trimmed, max_depth) {
        out.push_str(&value);
    } else {
        write_string(&mut out, text);
    }
    out
}

fn typed(types: Types, text: &str, max_depth: usize) -> Option<String> {
    if types.only_text() {
        return None;
    }
    // For types without strings, `null` is the only way to write a missing value.
    let nullable = types.has(Types::NULL) || !types.has(Types::STRING);
    if nullable && text.eq_ignore_ascii_case("null") {
        return Some("null".to_owned());
    }
    if types.has(Types::BOOLEAN) {
        for word in ["true", "false"] {
            if text.eq_ignore_ascii_case(word) {
                return Some(word.to_owned());
            }
        }
    }
    if types.has(Types::INTEGER) && is_integer(text) {
        return Some(text.to_owned());
    }
    if types.has(Types::NUMBER) && is_json(text, max_depth) && Types::from_value(text).has(NUMBERS)
    {
        return Some(text.to_owned());
    }
    let wanted = match text.bytes().next() {
        Some(b'{') => types.has(Types::OBJECT),
        Some(b'[' | b'(') => types.has(Types::ARRAY),
        _ => false,
    };
    if !wanted {
        return None;
    }
    if is_json(text, max_depth) {
        return Some(text.to_owned());
    }
    literal::to_json(text, max_depth)
}

const NUMBERS: Types = Types(Types::INTEGER.0 | Types::NUMBER.0);

fn is_json(text: &str, max_depth: usize) -> bool {
    let mut reader = Reader::new(text, max_depth);
    reader.skip().and_then(|()| reader.end()).is_ok()
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain && (digits == "0" || !digits.starts_with('0'))
}

/// Return raw text that is declared as JSON; as a JSON string if it is not valid JSON.
pub(super) fn as_json(text: &str, max_depth: usize) -> String {
    let trimmed = text.trim();
    if is_json(trimmed, max_depth) {
        return trimmed.to_owned();
    }
    coerce(Types::STRING, text, max_depth)
}
