//! `CallId`: the id of a tool call, stored once and shared by all deltas of the call.
//!
//! Law: the cost of cloning an id, comparing an id with its clone and returning an id is independent of its length.  Some
//! gateways put signatures of kilobytes into call ids, and every argument delta repeats the id.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Shared id of a tool call.
#[derive(Clone)]
pub struct CallId(Arc<Stored>);

struct Stored {
    text: Box<str>,
    /// Object for the id in the caller's language, built on first use.
    shown: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl CallId {
    /// Return true if `other` is a clone of this id.
    #[inline]
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Return the object for this id in the caller's language.
    ///
    /// `make` builds the object on the first call; later calls return the same object.  `None` if the object has another
    /// type.
    pub fn shown_as<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.shown.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

impl From<&str> for CallId {
    fn from(text: &str) -> Self {
        Self(Arc::new(Stored { text: text.into(), shown: OnceLock::new() }))
    }
}

impl AsRef<str> for CallId {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Default for CallId {
    fn default() -> Self {
        Self::from("")
    }
}

impl Deref for CallId {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl PartialEq for CallId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.is_clone_of(other) || **self == **other
    }
}

impl Eq for CallId {}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// Beginnings of the ids of calls that the provider runs: Anthropic's server tools and MCP tools, as gateways copy them.
const SERVER_MARKS: [&str; 2] = ["srvtoolu_", "mcptoolu_"];

/// Return true if the id of a call says that its provider ran it.
pub fn is_of_provider(id: &str) -> bool {
    SERVER_MARKS.iter().any(|mark| id.starts_with(mark))
}
