//! Notes about a stream: warnings, and facts that the contract has no member for.
//!
//! In: what a dialect noticed or read.  Out: `warnings` and `details` of the terminal.
//! Laws: a warning that was noted before is only counted; the first value of a fact counts; both are bounded by the limits.

use super::sink::{DeltaSink, Emitter};
use crate::contract::Output;
use crate::json::{Carry, Str, write_string};

/// Characters of an unknown name that its warning shows.
const MAX_NAME: usize = 100;

impl<O: Output> DeltaSink<'_, O> {
    /// Notes a warning; one that was noted before is only counted.
    pub fn warn(&mut self, code: &'static str, message: &str, offset: Option<u64>) {
        let max = self.options().limits.warnings;
        if !self.emitter.warnings.note(max, code, message, offset) {
            self.emitter.deltas.within("warnings", max + 1, max);
        }
    }

    /// Notes a name that is not known: what it names, and its beginning, for it comes from the wire in any length.
    pub fn warn_unknown(&mut self, what: &str, name: Str<'_>) {
        let name: String = name.text().chars().take(MAX_NAME).collect();
        self.warn("unknown_event", &format!("unknown {what} type {name:?}"), None);
    }

    /// Notes an element that is no object where the protocol has objects.
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

    pub(super) fn warn_lone(&mut self, carry: Carry) {
        if carry.lone > 0 {
            self.warn("lone_surrogate", "a lone surrogate escape became U+FFFD", None);
        }
    }

    /// Remembers a fact that the contract has no member for, under the provider's name; `value` is a JSON value.  The first
    /// one counts.
    pub fn detail(&mut self, name: &'static str, value: &str) {
        self.add_detail(name, [value]);
    }

    /// The same for a string of the wire.
    #[inline]
    pub fn text_detail(&mut self, name: &'static str, value: Option<Str<'_>>) {
        if let Some(value) = value {
            self.add_detail(name, ["\"", value.raw, "\""]);
        }
    }

    fn add_detail<const N: usize>(&mut self, name: &'static str, value: [&str; N]) {
        if self.emitter.detail_names.contains(&name)
            || !self.take_state_bytes(value.iter().map(|piece| piece.len()).sum())
        {
            return;
        }
        let Emitter { details, detail_names, .. } = &mut *self.emitter;
        detail_names.push(name);
        details.push(if details.is_empty() { '{' } else { ',' });
        write_string(details, name);
        details.push(':');
        details.extend(value);
    }
}
