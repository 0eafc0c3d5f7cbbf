//! `Wanted`: the markup that a caller expects in plain text.

use std::sync::Arc;

use super::families::Family;
use super::tools::Tools;

/// The markup that a caller expects in plain text.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The notation of the model.
    pub family: &'static Family,
    /// The offered tools, if known.
    pub tools: Option<Arc<Tools>>,
    /// The prompt opened the thinking already.
    pub starts_in_thinking: bool,
}

/// Split a specification: `<dialect>` or `<dialect>+<markup>`.
pub fn specification(name: &str) -> (&str, Option<&str>) {
    match name.split_once('+') {
        Some((dialect, markup)) => (dialect, Some(markup)),
        None => (name, None),
    }
}
