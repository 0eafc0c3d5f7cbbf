//! Members of events that no reader of a dialect knows.
//!
//! In: the members that a reader leaves over.  Out: facts of the answer, or a warning of each name.
//!
//! Laws:
//! - A member of an answer, a choice or an event is a fact: its last value counts.  A member of a block or a call that goes
//!   on its own way is named by a warning.
//! - Values that say nothing, and the noise of [`NOISE`], are neither.
//! - The value of a fact is no hole of a template, so that a frame with another value is read in full.

use crate::json::{Reader, Result};
use crate::sink::DeltaSink;

/// Members that carry nothing: padding against the observation of lengths (OpenAI, Cloudflare), and the name of the type of
/// the object that holds them.
///
/// Sources: `obfuscation` in the documentation of Chat Completions and Responses; recordings of Workers AI for `p`.
const NOISE: [&str; 3] = ["obfuscation", "object", "p"];

/// Prefix of the members that Bedrock adds to an event of a model.  They are read for all models together.
pub(super) const ADDED: &str = "amazon-bedrock-";

/// Members that no reader knows; none in most events.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::box_collection, reason = "few events have one, and the event stays small")]
pub struct Unread<'a>(Option<Box<Vec<Member<'a>>>>);

#[derive(Clone, Debug, PartialEq)]
struct Member<'a> {
    name: Box<str>,
    value: Value<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value<'a> {
    /// A fact of the answer, as JSON.
    Fact(&'a str),
    /// A member of the content that an event brings, as JSON.
    Content(&'a str),
    /// A fact whose first value counts, as JSON, under a name of a table.
    First(&'static str, &'a str),
    /// A member that is not kept.
    Dropped,
}

impl<'a> Unread<'a> {
    /// Read a member of an answer, a choice or an event.
    pub(super) fn fact(&mut self, reader: &mut Reader<'a>, name: &str) -> Result<()> {
        self.keep(reader, name, Value::Fact)
    }

    /// Read a member of the content that an event brings.
    pub(super) fn content(&mut self, reader: &mut Reader<'a>, name: &str) -> Result<()> {
        self.keep(reader, name, Value::Content)
    }

    /// Keep a fact whose first value counts.  Its name is one of a table; `value` is JSON.
    pub(super) fn first(&mut self, name: &'static str, value: &'a str) {
        let value = Value::First(name, value);
        self.0.get_or_insert_default().push(Member { name: Box::default(), value });
    }

    /// Skip a member that the message does not keep.
    pub(super) fn dropped(&mut self, reader: &mut Reader<'a>, name: &str) -> Result<()> {
        self.keep(reader, name, |_| Value::Dropped)
    }

    /// Keep a fact that a reader of the dialect has read, too; `value` is JSON.
    pub(super) fn add(&mut self, name: &str, value: &'a str) {
        if !says_nothing(value) {
            let value = Value::Fact(value);
            self.0.get_or_insert_default().push(Member { name: name.into(), value });
        }
    }

    fn keep(
        &mut self,
        reader: &mut Reader<'a>,
        name: &str,
        kept: impl FnOnce(&'a str) -> Value<'a>,
    ) -> Result<()> {
        if NOISE.contains(&name) || name.starts_with(ADDED) {
            return reader.ignore();
        }
        let value = reader.raw()?;
        if !says_nothing(value) {
            self.0.get_or_insert_default().push(Member { name: name.into(), value: kept(value) });
        }
        Ok(())
    }

    /// Return true without a member.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Add the members of another object.
    pub(super) fn join(&mut self, other: Self) {
        match &mut self.0 {
            Some(members) => members.extend(other.0.into_iter().flat_map(|members| *members)),
            None => *self = other,
        }
    }

    /// Return these members as members that the message does not keep.
    pub(super) fn into_dropped(mut self) -> Self {
        for member in self.0.iter_mut().flat_map(|members| members.iter_mut()) {
            member.value = Value::Dropped;
        }
        self
    }

    /// Record the facts, and warn of what is not kept.
    #[inline]
    pub(super) fn send(&self, sink: &mut DeltaSink<'_>) {
        if let Some(members) = &self.0 {
            send(members, sink);
        }
    }
}

#[cold]
fn send(members: &[Member<'_>], sink: &mut DeltaSink<'_>) {
    for Member { name, value } in members {
        match value {
            Value::Fact(value) => sink.unknown_detail(name, value),
            Value::Content(value) => sink.unknown_content(name, value),
            Value::First(name, value) => sink.detail(name, value),
            Value::Dropped => sink.warn_unread(name),
        }
    }
}

/// Return true for a value that stands for no value: of servers that write each member of their types.
fn says_nothing(json: &str) -> bool {
    matches!(json, "null" | "\"\"" | "[]" | "{}")
}
