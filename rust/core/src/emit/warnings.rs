//! Warnings of a stream, and facts without a member in the contract.
//!
//! In: warnings and facts of a dialect.  Out: `warnings` and `details` of the terminal.
//!
//! Laws: a repeated warning is only counted.  The first value of a fact wins, or the last one where a fact repeats.  Both are
//! bounded by the limits.

use super::emitter::{Emitter, EmitterSink};
use crate::contract::Logprobs;
use crate::json::{Carry, ObjectWriter, Str};

/// Maximum characters of an unknown name in its warning.
pub(super) const MAX_NAME: usize = 100;

/// Maximum number of facts whose last value counts.
const MAX_FACTS: usize = 64;

/// The warning of answers that are not followed.  A dialect has one message of it.
const OTHER_CHOICES: &str = "other_choices";

const UNREAD_LOGPROBS: &str = "unread_logprobs";

impl EmitterSink<'_> {
    /// Add a warning; a repeated one is only counted.
    pub fn warn(&mut self, code: &'static str, message: &str, offset: Option<u64>) {
        let max = self.options().limits.warnings;
        if !self.emitter.warnings.add(max, code, message, offset) {
            self.emitter.deltas.within("warnings", max + 1, max);
        }
    }

    /// Warn of an unknown name of the wire, cut to `MAX_NAME` characters; `what` is its kind.
    pub fn warn_unknown(&mut self, what: &str, name: Str<'_>) {
        let name: String = name.text().chars().take(MAX_NAME).collect();
        self.warn("unknown_event", &format!("unknown {what} type {name:?}"), None);
    }

    /// Warn of an element that is not an object, where the protocol has objects.
    pub fn warn_no_object(&mut self, element: &str) {
        let what = match element.as_bytes().first() {
            Some(b'"') => "a string",
            Some(b'[') => "an array",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        };
        let message = format!("{what} where an object belongs was ignored");
        self.warn("malformed_element", &message, None);
    }

    /// Warn of answers that are not followed; `answers` is the protocol's word for them.
    #[inline]
    pub fn warn_other_choices(&mut self, answers: &str) {
        // A stream of many answers has a frame of another answer more often than one of its own.
        if !self.emitter.follows_all && !self.emitter.warnings.repeat(OTHER_CHOICES) {
            self.warn_first_other_choice(answers);
        }
    }

    #[cold]
    fn warn_first_other_choice(&mut self, answers: &str) {
        let message = format!("the stream holds several {answers}; one is followed");
        self.warn(OTHER_CHOICES, &message, None);
    }

    /// Return whether log probabilities were not read, and warn then.
    pub fn misses(&mut self, logprobs: &Logprobs) -> bool {
        if logprobs.is_empty() {
            self.warn_unread_logprobs();
        }
        logprobs.is_empty()
    }

    /// Warn of log probabilities that the caller did not ask for.
    #[cold]
    pub fn warn_unread_logprobs(&mut self) {
        if !self.emitter.warnings.repeat(UNREAD_LOGPROBS) {
            let message = "the provider sent log probabilities; logprobs=True keeps them";
            self.warn(UNREAD_LOGPROBS, message, None);
        }
    }

    pub(crate) fn warn_lone(&mut self, carry: Carry) {
        if carry.lone > 0 {
            self.warn("lone_surrogate", "a lone surrogate escape became U+FFFD", None);
        }
    }

    /// Record a fact without a member in the contract under the provider's name.  `value` is JSON.  The first value wins.
    pub fn detail(&mut self, name: &'static str, value: &str) {
        if let Some(mut details) = self.add_detail(name, value.len()) {
            details.json(name, value);
        }
    }

    /// Record several facts, each a name and a JSON value.
    pub fn details<'v>(&mut self, facts: impl IntoIterator<Item = (&'static str, &'v str)>) {
        for (name, value) in facts {
            self.detail(name, value);
        }
    }

    /// Record a fact that is a string of the wire; return true if it is a new one.
    #[inline]
    pub fn text_detail(&mut self, name: &'static str, value: Option<Str<'_>>) -> bool {
        let Some(value) = value else { return false };
        let bytes = "\"\"".len() + value.raw.len();
        let details = self.add_detail(name, bytes);
        details.map(|mut details| details.wire_text(name, value)).is_some()
    }

    /// Return the writer of a new fact; `None` for a known fact, and at the bound of provider state.
    fn add_detail(&mut self, name: &'static str, bytes: usize) -> Option<ObjectWriter<'_>> {
        // The same constant in nearly all cases: each chunk may repeat its facts.
        let is_same = |known: &&str| std::ptr::eq(*known, name) || *known == name;
        if self.emitter.detail_names.iter().any(is_same) || !self.take_state_bytes(bytes) {
            return None;
        }
        let Emitter { details, detail_names, .. } = &mut *self.emitter;
        detail_names.push(name);
        Some(ObjectWriter::resume(details))
    }

    /// Record a fact whose last value counts.
    #[cold]
    pub fn late_detail(&mut self, name: &str, value: &str) {
        let at = self.emitter.late_details.iter().position(|(known, _)| known == name);
        let known = at.and_then(|at| self.emitter.late_details.get(at));
        if known.is_some_and(|(_, old)| old == value) {
            return;
        }
        self.give_back_state_bytes(known.map_or(0, |(_, old)| old.len()));
        if !self.take_state_bytes(value.len()) {
            return;
        }
        match at.and_then(|at| self.emitter.late_details.get_mut(at)) {
            Some((_, old)) => {
                old.clear();
                old.push_str(value);
                self.emitter.has_changed_fact = true;
            }
            None => self.emitter.late_details.push((name.to_owned(), value.to_owned())),
        }
    }

    /// Return all facts as a JSON object, "" without any.
    pub(super) fn take_details(&mut self) -> String {
        let mut details = std::mem::take(&mut self.emitter.details);
        let late = std::mem::take(&mut self.emitter.late_details);
        if details.is_empty() && late.is_empty() {
            return details;
        }
        let names = &self.emitter.detail_names;
        let mut object = ObjectWriter::resume(&mut details);
        for (name, value) in &late {
            if !names.contains(&name.as_str()) {
                object.json_of(name, value);
            }
        }
        object.end();
        details
    }

    /// Record a member of an answer that no rule knows; its last value counts.  What exceeds `MAX_UNKNOWN` bytes or `MAX_FACTS`
    /// facts together is named by a warning.
    #[cold]
    pub fn unknown_detail(&mut self, name: &str, value: &str) {
        let at = self.emitter.late_details.iter().position(|(known, _)| known == name);
        let known = at.and_then(|at| self.emitter.late_details.get(at));
        let held = known.map_or(0, |(_, old)| name.len() + old.len());
        let left = self.emitter.unknown_left.saturating_add(held);
        let bytes = name.len().saturating_add(value.len());
        let has_room = at.is_some() || self.emitter.late_details.len() < MAX_FACTS;
        if has_room && name.len() <= MAX_NAME && bytes <= left {
            self.emitter.unknown_left = left - bytes;
            return self.late_detail(name, value);
        }
        if let Some(at) = at {
            // An earlier value is not the one that counts.
            let (_, old) = self.emitter.late_details.remove(at);
            self.give_back_state_bytes(old.len());
            self.emitter.unknown_left = left;
            self.emitter.has_changed_fact = true;
        }
        self.warn_unread(name);
    }

    /// Record a member that no rule knows of the content that an event brings.  Pieces of a text are not joined, because no rule
    /// says whether they are pieces.
    #[cold]
    pub fn unknown_content(&mut self, name: &str, value: &str) {
        let known = self.emitter.late_details.iter().find(|(known, _)| known == name);
        if known.is_some_and(|(_, old)| old != value) {
            let name: String = name.chars().take(MAX_NAME).collect();
            let message = format!("of several values of {name:?} the last one is kept");
            self.warn("unread_member", &message, None);
        }
        self.unknown_detail(name, value);
    }

    /// Warn of a member of the wire that the message does not keep.
    #[cold]
    pub fn warn_unread(&mut self, name: &str) {
        let name: String = name.chars().take(MAX_NAME).collect();
        self.warn("unread_member", &format!("the member {name:?} was not kept"), None);
    }

    /// Return true if a fact got another value since the last call.
    #[inline]
    pub(crate) fn has_changed_fact(&mut self) -> bool {
        std::mem::take(&mut self.emitter.has_changed_fact)
    }
}
