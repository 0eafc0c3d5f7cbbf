//! `Value` and `Node`: the JSON of a written event, with typed access.
//!
//! In: the JSON text of an event.  Out: its values, or a description of the broken rule that names the member and its value.
//!
//! Laws: the text is compact, escapes the line separators of Unicode, and repeats no key.  Nesting is bounded, and each byte is
//! read a constant number of times.

use std::cmp::Ordering;

use deltafold::json::{self, Kind, Reader};

/// Result of a check: the description of the broken rule, or a value.
pub(super) type Rule<T = ()> = Result<T, String>;

/// Maximum nesting depth of an event.
const MAX_DEPTH: usize = 256;

/// Maximum number of characters of a string that a description quotes.
const QUOTED_CHARACTERS: usize = 60;

/// Separators at which some line readers cut, although a JSON string may hold them.
const SEPARATORS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number, as written.
    Number(Box<str>),
    /// A string, unescaped.
    String(String),
    /// An array.
    List(Vec<Self>),
    /// An object, in the order of its members.
    Object(Vec<(String, Self)>),
}

impl Value {
    /// Parse a JSON text as a writer must write it.
    pub(super) fn parse(text: &str) -> Rule<Self> {
        if text.contains(SEPARATORS) {
            return Err("U+0085, U+2028 and U+2029 must be escaped".to_owned());
        }
        let mut reader = Reader::new(text, MAX_DEPTH);
        let mut repeated = None;
        let value = read(&mut reader, &mut repeated)
            .and_then(|value| reader.end().map(|()| value))
            .map_err(|defect| format!("the data is not JSON: {defect}"))?;
        if let Some(key) = repeated {
            return Err(format!("the key `{}` stands in its object twice", quoted(&key)));
        }
        if is_compact(text) { Ok(value) } else { Err("the JSON holds white space".to_owned()) }
    }

    /// Compare two values.  The order of the members of an object does not count.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(one), Self::List(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(one, two)| one.same(two))
            }
            (Self::Object(one), Self::Object(two)) => {
                let (one, two) = (sorted(one), sorted(two));
                one.len() == two.len()
                    && one.iter().zip(two).all(|(one, two)| one.0 == two.0 && one.1.same(&two.1))
            }
            _ => self == other,
        }
    }

    /// Return the string, if the value is one.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Return the number of bytes of the strings in the value.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) => 1,
            Self::Number(text) => text.len(),
            Self::String(text) => text.len(),
            Self::List(items) => items.iter().map(Self::bytes).sum(),
            Self::Object(members) => {
                members.iter().map(|(key, value)| key.len() + value.bytes()).sum()
            }
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(flag) => flag.to_string(),
            Self::Number(text) => quoted(text).to_owned(),
            Self::String(text) => format!("{:?}", quoted(text)),
            Self::List(items) => format!("a list of {}", items.len()),
            Self::Object(members) => format!("an object of {}", members.len()),
        }
    }
}

fn sorted(members: &[(String, Value)]) -> Vec<&(String, Value)> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by(|one, two| one.0.cmp(&two.0));
    sorted
}

/// Return the beginning of a text.
pub(super) fn quoted(text: &str) -> &str {
    let cut = text.char_indices().nth(QUOTED_CHARACTERS);
    cut.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

fn read(reader: &mut Reader<'_>, repeated: &mut Option<String>) -> json::Result<Value> {
    Ok(match reader.kind()? {
        Kind::Null => {
            reader.skip()?;
            Value::Null
        }
        Kind::Bool => Value::Bool(reader.boolean()? == Some(true)),
        Kind::Number => Value::Number(reader.raw()?.into()),
        Kind::String => Value::String(reader.string()?.text()),
        Kind::Array => {
            let mut items = Vec::new();
            reader.array(|reader| {
                items.push(read(reader, repeated)?);
                Ok(())
            })?;
            Value::List(items)
        }
        Kind::Object => {
            let mut members = Vec::new();
            reader.object(|reader, key| {
                members.push((key.to_owned(), read(reader, repeated)?));
                Ok(())
            })?;
            let sorted = sorted(&members);
            let twice = sorted.windows(2).find_map(|pair| match pair {
                [one, two] if one.0.cmp(&two.0) == Ordering::Equal => Some(&one.0),
                _ => None,
            });
            if let Some(key) = twice {
                *repeated = Some(key.clone());
            }
            Value::Object(members)
        }
    })
}

fn is_compact(text: &str) -> bool {
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b' ' | b'\n' | b'\r' | b'\t' if !in_string => return false,
            _ => {}
        }
    }
    true
}

/// A value with its path in the event, for descriptions.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Node<'a> {
    /// Build the node of an event.
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// Return the value.
    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    /// Describe the value as one that must be something else.
    pub(super) fn wrong(&self, wanted: &str) -> String {
        let path = if self.path.is_empty() { "the event" } else { &self.path };
        format!("`{path}` must be {wanted} (got {})", self.value.show())
    }

    fn path_of(&self, key: &str) -> String {
        let key = quoted(key);
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    // ---- The value itself.

    /// Return the string.
    pub(super) fn as_text(&self) -> Rule<&'a str> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    /// Return the string, which must not be empty.
    pub(super) fn as_filled(&self) -> Rule<&'a str> {
        let text = self.as_text()?;
        if text.is_empty() { Err(self.wrong("a string that is not empty")) } else { Ok(text) }
    }

    /// Return the integer, which must not be negative.
    pub(super) fn as_count(&self) -> Rule<u64> {
        let count = match self.value {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        };
        count.ok_or_else(|| self.wrong("an integer of at least 0"))
    }

    /// Return the items of the list.
    pub(super) fn as_list(&self) -> Rule<Vec<Self>> {
        match self.value {
            Value::List(items) => Ok(items
                .iter()
                .enumerate()
                .map(|(at, value)| Self { value, path: format!("{}[{at}]", self.path) })
                .collect()),
            _ => Err(self.wrong("a list")),
        }
    }

    /// Return the members of the object.
    pub(super) fn as_object(&self) -> Rule<&'a [(String, Value)]> {
        match self.value {
            Value::Object(members) => Ok(members),
            _ => Err(self.wrong("an object")),
        }
    }

    /// Return true for null.
    pub(super) fn is_null(&self) -> bool {
        *self.value == Value::Null
    }

    // ---- Members.

    /// Return a member, if the object has it.
    pub(super) fn maybe(&self, key: &str) -> Option<Self> {
        let Value::Object(members) = self.value else { return None };
        let (_, value) = members.iter().find(|(known, _)| known == key)?;
        Some(Self { value, path: self.path_of(key) })
    }

    /// Return true if the object has a member.
    pub(super) fn has(&self, key: &str) -> bool {
        self.maybe(key).is_some()
    }

    /// Return a required member.
    pub(super) fn at(&self, key: &str) -> Rule<Self> {
        self.as_object()?;
        self.maybe(key).ok_or_else(|| format!("`{}` is missing", self.path_of(key)))
    }

    /// Return a required string.
    pub(super) fn text(&self, key: &str) -> Rule<&'a str> {
        self.at(key)?.as_text()
    }

    /// Return a required string that is not empty.
    pub(super) fn filled(&self, key: &str) -> Rule<&'a str> {
        self.at(key)?.as_filled()
    }

    /// Return a string; `None` if the member is absent.  It must not be null.
    pub(super) fn text_if(&self, key: &str) -> Rule<Option<&'a str>> {
        self.maybe(key).map(|member| member.as_text()).transpose()
    }

    /// Return a required member that is a string or null.
    pub(super) fn text_or_null(&self, key: &str) -> Rule<Option<&'a str>> {
        let member = self.at(key)?;
        if member.is_null() {
            return Ok(None);
        }
        member.as_text().map(Some).map_err(|_| member.wrong("a string or null"))
    }

    /// Return a required count.
    pub(super) fn count(&self, key: &str) -> Rule<u64> {
        self.at(key)?.as_count()
    }

    /// Return a count; `None` if the member is absent.
    pub(super) fn count_if(&self, key: &str) -> Rule<Option<u64>> {
        self.maybe(key).map(|member| member.as_count()).transpose()
    }

    /// Return a required boolean.
    pub(super) fn flag(&self, key: &str) -> Rule<bool> {
        let member = self.at(key)?;
        match member.value {
            Value::Bool(flag) => Ok(*flag),
            _ => Err(member.wrong("true or false")),
        }
    }

    /// Check a required number.
    pub(super) fn number(&self, key: &str) -> Rule {
        let member = self.at(key)?;
        if matches!(member.value, Value::Number(_)) {
            Ok(())
        } else {
            Err(member.wrong("a number"))
        }
    }

    /// Return the items of a required list.
    pub(super) fn list(&self, key: &str) -> Rule<Vec<Self>> {
        self.at(key)?.as_list()
    }

    /// Return a required object.
    pub(super) fn object(&self, key: &str) -> Rule<Self> {
        let member = self.at(key)?;
        member.as_object()?;
        Ok(member)
    }

    /// Return an object; `None` if the member is absent.  It must not be null.
    pub(super) fn object_if(&self, key: &str) -> Rule<Option<Self>> {
        if self.has(key) { self.object(key).map(Some) } else { Ok(None) }
    }

    // ---- Rules of members.

    /// Check that a required string has this value.
    pub(super) fn is(&self, key: &str, wanted: &str) -> Rule {
        let member = self.at(key)?;
        if member.value.as_str() == Some(wanted) {
            Ok(())
        } else {
            Err(member.wrong(&format!("{:?}", quoted(wanted))))
        }
    }

    /// Check that a required count has this value.
    pub(super) fn counts(&self, key: &str, wanted: u64) -> Rule {
        let member = self.at(key)?;
        if member.as_count()? == wanted { Ok(()) } else { Err(member.wrong(&wanted.to_string())) }
    }

    /// Return a required string of a closed list.
    pub(super) fn one_of(&self, key: &str, known: &[&str]) -> Rule<&'a str> {
        let member = self.at(key)?;
        let text = member.as_text()?;
        if known.contains(&text) {
            Ok(text)
        } else {
            Err(member.wrong(&format!("one of {}", known.join(", "))))
        }
    }

    /// Check that a required member is null.
    pub(super) fn null(&self, key: &str) -> Rule {
        let member = self.at(key)?;
        if member.is_null() { Ok(()) } else { Err(member.wrong("null")) }
    }

    /// Check that a required member is an empty list.
    pub(super) fn empty_list(&self, key: &str) -> Rule {
        let member = self.at(key)?;
        if member.as_list()?.is_empty() { Ok(()) } else { Err(member.wrong("an empty list")) }
    }

    /// Check that a required member is an empty object.
    pub(super) fn empty_object(&self, key: &str) -> Rule {
        let member = self.at(key)?;
        if member.as_object()?.is_empty() { Ok(()) } else { Err(member.wrong("an empty object")) }
    }

    /// Check that a member is absent.
    pub(super) fn absent(&self, key: &str, why: &str) -> Rule {
        if self.has(key) {
            Err(format!("`{}` must be absent: {why}", self.path_of(key)))
        } else {
            Ok(())
        }
    }

    /// Check that the object has no other members.
    pub(super) fn only(&self, known: &[&str]) -> Rule {
        match self.as_object()?.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            Some((key, _)) => {
                let allowed = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(format!("`{}` must be absent (allowed: {allowed})", self.path_of(key)))
            }
            None => Ok(()),
        }
    }

    /// Check that no member of the object is null, apart from free JSON.
    pub(super) fn no_nulls(&self, free: &[&str]) -> Rule {
        let null = self
            .as_object()?
            .iter()
            .find(|(key, value)| *value == Value::Null && !free.contains(&key.as_str()));
        match null {
            Some((key, _)) => {
                Err(format!("`{}` must not be null: leave it out", self.path_of(key)))
            }
            None => Ok(()),
        }
    }

    /// Check that a member repeats a text that was written before.
    pub(super) fn repeats(&self, key: &str, written: &str) -> Rule {
        let member = self.at(key)?;
        let text = member.as_text()?;
        if text == written {
            return Ok(());
        }
        Err(format!(
            "`{}` must repeat what was written ({} bytes {:?}, got {} bytes {:?})",
            member.path,
            written.len(),
            quoted(written),
            text.len(),
            quoted(text),
        ))
    }

    /// Check that a part of a count does not exceed the whole.
    pub(super) fn within(&self, key: &str, whole: u64) -> Rule {
        match self.maybe(key) {
            Some(part) if part.as_count()? > whole => {
                Err(part.wrong(&format!("at most {whole}, which includes it")))
            }
            _ => Ok(()),
        }
    }
}
