//! Memory of a checker about a stream: the used ids, and texts that a later event must repeat.
//!
//! Laws: memory is bounded by [`MAX_KEPT_BYTES`] for each store.

use std::collections::HashSet;

use super::tree::{Rule, quoted};

/// Maximum number of bytes that one store keeps: more than any message that the limits of the decoder allow, with its JSON
/// escapes.
pub(super) const MAX_KEPT_BYTES: usize = 1 << 30;

/// Account of kept bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    bytes: usize,
}

impl Room {
    /// Count kept bytes.
    pub(super) fn take(&mut self, bytes: usize) -> Rule {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_KEPT_BYTES {
            return Err(format!("the stream holds more than {MAX_KEPT_BYTES} bytes to remember"));
        }
        Ok(())
    }
}

/// Ids that must be unique in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ids {
    seen: HashSet<Box<str>>,
    room: Room,
}

impl Ids {
    /// Add a new id.
    pub(super) fn add(&mut self, what: &str, id: &str) -> Rule {
        self.room.take(id.len().saturating_add(size_of::<Box<str>>()))?;
        if self.seen.insert(id.into()) {
            Ok(())
        } else {
            Err(format!("{what} {:?} was used before", quoted(id)))
        }
    }

    /// Forget an id of something that the stream took back.
    pub(super) fn forget(&mut self, id: &str) {
        self.seen.remove(id);
    }

    /// Return true if the id was used.
    pub(super) fn has(&self, id: &str) -> bool {
        self.seen.contains(id)
    }

    /// Return true if no id was used.
    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

/// Text that grew with the deltas of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    text: String,
}

impl Written {
    /// Append a delta.
    pub(super) fn push(&mut self, delta: &str) -> Rule {
        if self.text.len().saturating_add(delta.len()) > MAX_KEPT_BYTES {
            return Err(format!("a part holds more than {MAX_KEPT_BYTES} bytes"));
        }
        self.text.push_str(delta);
        Ok(())
    }

    /// Return the text so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Parts of a keyed target: each id is opened and closed once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    used: Ids,
    open: HashSet<Box<str>>,
}

impl Parts {
    /// Open a part with a new id.
    pub(super) fn start(&mut self, what: &str, id: &str) -> Rule {
        self.used.add(what, id)?;
        self.open.insert(id.into());
        Ok(())
    }

    /// Check that a part is open.
    pub(super) fn expect(&self, what: &str, id: &str) -> Rule {
        if self.open.contains(id) {
            return Ok(());
        }
        let why = if self.used.has(id) { "has ended" } else { "was not started" };
        Err(format!("{what} {:?} {why}", quoted(id)))
    }

    /// Close a part.
    pub(super) fn end(&mut self, what: &str, id: &str) -> Rule {
        self.expect(what, id)?;
        self.open.remove(id);
        Ok(())
    }

    /// Return true if the id was used.
    pub(super) fn has(&self, id: &str) -> bool {
        self.used.has(id)
    }

    /// Return true if a part is open.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Check that every part was closed.
    pub(super) fn all_ended(&self, what: &str, place: &str) -> Rule {
        // The smallest id, so that equal streams give equal descriptions.
        match self.open.iter().min() {
            Some(id) => Err(format!("{what} {:?} is open at {place}", quoted(id))),
            None => Ok(()),
        }
    }
}
