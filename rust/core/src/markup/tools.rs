//! The tools that were offered, as far as markup needs them: their names, and which types each parameter takes.
//!
//! In: a tool's name and its JSON schema.  Out: the types of a parameter, and a raw text as a JSON value of them.
//! Laws: plain data, no schema is ever evaluated; a parameter that no schema knows is a string; a string stays as it
//! stands (`007`, `true`); what fits none of its types is a string.
//! Source: inline-markup.md section 4, "Coercion order".

use std::collections::HashMap;

use super::literal;
use crate::json::{Kind, Reader, Result, write_string};

/// Which JSON types a value may have.
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
    /// A schema that says nothing of types.
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

    /// Whether one of `other` is among them.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether text stays text, whatever it looks like.
    pub fn only_text(self) -> bool {
        self == Self::STRING
    }
}

/// The tools that were offered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tools {
    parameters: HashMap<Box<str>, HashMap<Box<str>, Types>>,
}

impl Tools {
    /// Adds a tool; `schema` is the JSON schema of its arguments, where one is known.
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

    /// Whether a tool of this name was offered.
    pub fn offers(&self, name: &str) -> bool {
        self.parameters.contains_key(name)
    }

    /// What a parameter takes.
    pub fn types(&self, tool: &str, parameter: &str) -> Types {
        let known = self.parameters.get(tool).and_then(|known| known.get(parameter));
        known.copied().unwrap_or(Types::STRING)
    }
}

/// The types that a schema says: its `type`, else those of its alternatives or of the values it lists.
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

/// The JSON value of a raw text, as one of these types.
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
    // A type that is no string has no other way to say that there is nothing.
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

/// A raw text that is said to be JSON, and is written as a string where it is none.
pub(super) fn as_json(text: &str, max_depth: usize) -> String {
    let trimmed = text.trim();
    if is_json(trimmed, max_depth) {
        return trimmed.to_owned();
    }
    coerce(Types::STRING, text, max_depth)
}
