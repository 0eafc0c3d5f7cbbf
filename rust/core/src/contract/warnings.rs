//! `Warnings`: the warnings of one stream.
//!
//! In: warnings.  Out: the JSON array of the terminal.
//!
//! Laws: each distinct message is stored once and counted.  The number of messages and their length are bounded.

use std::collections::BTreeMap;

use crate::json::{write_list, write_members};

/// Maximum number of characters of a message.
const MESSAGE_CHARACTERS: usize = 256;

#[derive(Clone, Debug, PartialEq)]
struct Warning {
    code: &'static str,
    message: String,
    offset: Option<u64>,
    count: u64,
}

/// Warnings in the order of their first appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Warnings {
    list: Vec<Warning>,
    by_message: BTreeMap<String, usize>,
}

impl Warnings {
    /// Add a warning.  A known message is only counted.  Returns false if the bound is reached.
    pub fn add(
        &mut self,
        max: usize,
        code: &'static str,
        message: &str,
        offset: Option<u64>,
    ) -> bool {
        // A message may quote a name from the wire, which may be as long as an event.
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

    /// Count the first warning with a code once more; return false if there is none.
    #[inline]
    pub(crate) fn repeat(&mut self, code: &'static str) -> bool {
        let known = self.list.iter_mut().find(|known| known.code == code);
        known.map(|known| known.count = known.count.saturating_add(1)).is_some()
    }

    /// Return a JSON array of `{code, message, offset?}`; `None` without a warning.
    pub fn to_json(&self) -> Option<String> {
        if self.list.is_empty() {
            return None;
        }
        let mut out = String::new();
        write_list(&mut out, &self.list, |out, warning| {
            write_members(out, |object| {
                object.text("code", warning.code);
                if warning.count > 1 {
                    let text = format!("{} ({} times)", warning.message, warning.count);
                    object.text("message", &text);
                } else {
                    object.text("message", &warning.message);
                }
                if let Some(offset) = warning.offset {
                    object.number("offset", offset);
                }
            });
        });
        Some(out)
    }
}
