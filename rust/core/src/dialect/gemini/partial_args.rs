//! Arguments that arrive as values under paths, converted to JSON text from front to back.
//!
//! In: `partialArgs` entries `{jsonPath, stringValue | numberValue | boolValue | nullValue, willContinue?}`.
//! Out: the text that each entry adds.
//!
//! Laws:
//! - Values arrive depth first, and array elements in order, so that written text never changes.
//! - A path that breaks this order makes the call unusable.
//! - Strings keep their escapes, because a surrogate pair may be cut between two entries.
//!
//! Source: Vertex AI, "Streaming function call arguments"; RFC 9535 for the paths.

use std::collections::HashSet;

use crate::json::{Kind, Reader, Result, Str, write_string};

/// The open end of the text: the containers and the string that are not closed yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PartialArgs {
    /// The containers from the root to the latest value.
    open: Vec<Container>,
    /// The path of the open string.
    string: Option<String>,
    broken: bool,
}

/// An open container, with the key or index of its latest child.
#[derive(Clone, Debug, PartialEq)]
enum Container {
    Object { key: String, earlier: HashSet<String> },
    Array { index: u64 },
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(u64),
}

/// An entry of `partialArgs`.
#[derive(Default)]
struct Entry<'a> {
    path: Option<Str<'a>>,
    value: Option<Value<'a>>,
    will_continue: bool,
}

enum Value<'a> {
    Text(Str<'a>),
    /// Another scalar, as JSON text.
    Token(String),
}

impl PartialArgs {
    /// Return whether the entries could not be combined into one JSON text.
    pub(super) fn broken(&self) -> bool {
        self.broken
    }

    /// Return whether no value has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && !self.broken
    }

    /// Append the text that `entries` add.  `entries` is a list that `read` validated.
    pub(super) fn take(&mut self, entries: &str, max_depth: usize, out: &mut String) -> Result<()> {
        Reader::trusted(entries).maybe_array(|reader| {
            let entry = Entry::read(reader)?;
            if !self.broken && self.entry(&entry, max_depth, out).is_none() {
                self.broken = true;
            }
            Ok(())
        })
    }

    /// Append the text that closes all open values.
    pub(super) fn close(&mut self, out: &mut String) {
        self.close_to(0, out);
    }

    /// Append the text of one entry.  Returns `None` if the entry cannot follow the written text.
    fn entry(&mut self, entry: &Entry<'_>, max_depth: usize, out: &mut String) -> Option<()> {
        let path = entry.path?.text();
        if self.string.as_ref() == Some(&path) {
            match &entry.value {
                Some(Value::Text(text)) => out.push_str(text.raw),
                Some(Value::Token(_)) => return None,
                None => {}
            }
        } else {
            let Some(value) = &entry.value else { return Some(()) };
            self.go_to(&path, max_depth, out)?;
            match value {
                Value::Text(text) => {
                    out.push('"');
                    out.push_str(text.raw);
                    self.string = Some(path);
                }
                Value::Token(token) => out.push_str(token),
            }
        }
        if !entry.will_continue {
            self.close_string(out);
        }
        Some(())
    }

    /// Close and open containers until the value at `path` can follow.
    fn go_to(&mut self, path: &str, max_depth: usize, out: &mut String) -> Option<()> {
        let steps = steps(path, max_depth)?;
        let shared = self.open.iter().zip(&steps).take_while(|(open, step)| open.is_at(step));
        let shared = shared.count();
        if self.open.is_empty() {
            self.descend(&steps, out)
        } else {
            // The new value goes below this container.  A path that ends at or above the last one would change written text.
            let branch = steps.get(shared)?;
            self.open.get(shared)?;
            self.close_to(shared + 1, out);
            self.open.last_mut()?.advance(branch, out)?;
            self.descend(steps.get(shared + 1..)?, out)
        }
    }

    fn descend(&mut self, steps: &[Step], out: &mut String) -> Option<()> {
        for step in steps {
            self.open.push(Container::begin(step, out)?);
        }
        Some(())
    }

    fn close_to(&mut self, depth: usize, out: &mut String) {
        self.close_string(out);
        while self.open.len() > depth {
            match self.open.pop() {
                Some(Container::Object { .. }) => out.push('}'),
                Some(Container::Array { .. }) => out.push(']'),
                None => {}
            }
        }
    }

    fn close_string(&mut self, out: &mut String) {
        if self.string.take().is_some() {
            out.push('"');
        }
    }
}

impl Container {
    fn is_at(&self, step: &Step) -> bool {
        match (self, step) {
            (Self::Object { key, .. }, Step::Key(wanted)) => key == wanted,
            (Self::Array { index }, Step::Index(wanted)) => index == wanted,
            _ => false,
        }
    }

    fn begin(step: &Step, out: &mut String) -> Option<Self> {
        match step {
            Step::Key(key) => {
                out.push('{');
                write_key(key, out);
                Some(Self::Object { key: key.clone(), earlier: HashSet::new() })
            }
            Step::Index(0) => {
                out.push('[');
                Some(Self::Array { index: 0 })
            }
            Step::Index(_) => None,
        }
    }

    /// Move on to another child.
    fn advance(&mut self, step: &Step, out: &mut String) -> Option<()> {
        match (self, step) {
            (Self::Object { key, earlier }, Step::Key(next)) if !earlier.contains(next) => {
                earlier.insert(std::mem::replace(key, next.clone()));
                out.push(',');
                write_key(next, out);
                Some(())
            }
            (Self::Array { index }, Step::Index(next)) if index.checked_add(1) == Some(*next) => {
                *index = *next;
                out.push(',');
                Some(())
            }
            _ => None,
        }
    }
}

fn write_key(key: &str, out: &mut String) {
    write_string(out, key);
    out.push(':');
}

impl<'a> Entry<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut found = Self::default();
        reader.maybe_object(|reader, key| {
            match key {
                "jsonPath" | "json_path" => found.path = reader.filled_string()?,
                "willContinue" | "will_continue" => {
                    found.will_continue = reader.boolean()? == Some(true);
                }
                "stringValue" | "string_value" => {
                    found.value = reader.opt_string()?.map(Value::Text).or(found.value.take());
                }
                "numberValue" | "number_value" if reader.kind()? == Kind::Number => {
                    found.value = Some(Value::Token(number(reader.raw()?)));
                }
                "boolValue" | "bool_value" if reader.kind()? == Kind::Bool => {
                    found.value = Some(Value::Token(reader.raw()?.to_owned()));
                }
                "nullValue" | "null_value" => {
                    reader.skip()?;
                    found.value = Some(Value::Token("null".to_owned()));
                }
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Return a number without a zero fraction.  All numbers arrive as doubles, so that an integer may be written as `1.0`.
fn number(raw: &str) -> String {
    raw.trim_end_matches('0').strip_suffix('.').unwrap_or(raw).to_owned()
}

/// Split a path such as `$.a['b'][0].c` into its steps.
///
/// Returns `None` if the path is invalid, names the root, or is too deep.
fn steps(path: &str, max_depth: usize) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (step, after) = if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, after) = name.split_at_checked(end)?;
            (Step::Key(name.to_owned()).filled()?, after)
        } else {
            let inner = rest.strip_prefix('[')?;
            let first = inner.chars().next()?;
            if matches!(first, '\'' | '"') {
                let (name, after) = quoted(inner.get(1..)?, first)?;
                (Step::Key(name), after.strip_prefix(']')?)
            } else {
                let (index, after) = inner.split_once(']')?;
                (Step::Index(index.parse().ok()?), after)
            }
        };
        found.push(step);
        rest = after;
    }
    (!found.is_empty() && found.len() < max_depth).then_some(found)
}

impl Step {
    fn filled(self) -> Option<Self> {
        Some(self).filter(|step| *step != Self::Key(String::new()))
    }
}

/// Return a quoted name and the text behind its closing quote.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut at = 0;
    loop {
        let found = text.get(at..)?.find([quote, '\\'])? + at;
        if text.get(found..)?.starts_with(quote) {
            let name = text.get(..found)?;
            // The escapes are those of JSON, except for the escaped single quote.
            let name = if quote == '\'' { name.replace("\\'", "'") } else { name.to_owned() };
            let escaped = name.contains('\\');
            return Some((Str { raw: &name, escaped }.text(), text.get(found + 1..)?));
        }
        at = found + 1 + text.get(found + 1..)?.chars().next()?.len_utf8();
    }
}
