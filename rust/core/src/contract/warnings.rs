//! Warnings of one stream: each once, counted, bounded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::json::write_string;

/// Characters of a message that are kept.
const MESSAGE_CHARACTERS: usize = 256;

#[derive(Clone, Debug, PartialEq)]
struct Warning {
    code: &'static str,
    message: String,
    offset: Option<u64>,
    count: u64,
}

/// The warnings, in the order of their first appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Warnings {
    list: Vec<Warning>,
    by_message: BTreeMap<String, usize>,
}

impl Warnings {
    /// Notes one; a message that was noted before is only counted.  False when there is no room for another.
    pub fn note(
        &mut self,
        max: usize,
        code: &'static str,
        message: &str,
        offset: Option<u64>,
    ) -> bool {
        // A name that a provider made up may be as long as an event.
        let cut = message.char_indices().nth(MESSAGE_CHARACTERS).map(|(at, _)| at);
        let message = cut.and_then(|at| message.get(..at)).unwrap_or(message);
        if let Some(at) = self.by_message.get(message) {
            if let Some(known) = self.list.get_mut(*at) {
                known.count = known.count.saturating_add(1);
            }
            return true;
        }
        if self.list.len() >= max {
            return false;
        }
        self.by_message.insert(message.to_owned(), self.list.len());
        self.list.push(Warning { code, message: message.to_owned(), offset, count: 1 });
        true
    }

    /// JSON array of `{code, message, offset?}`; `None` when there are none.
    pub fn to_json(&self) -> Option<String> {
        if self.list.is_empty() {
            return None;
        }
        let mut out = String::from("[");
        for (position, warning) in self.list.iter().enumerate() {
            if position > 0 {
                out.push(',');
            }
            out.push_str("{\"code\":");
            write_string(&mut out, warning.code);
            out.push_str(",\"message\":");
            if warning.count > 1 {
                let text = format!("{} ({} times)", warning.message, warning.count);
                write_string(&mut out, &text);
            } else {
                write_string(&mut out, &warning.message);
            }
            if let Some(offset) = warning.offset {
                // Writing to a String cannot fail.
                let _ = write!(out, ",\"offset\":{offset}");
            }
            out.push('}');
        }
        out.push(']');
        Some(out)
    }
}
