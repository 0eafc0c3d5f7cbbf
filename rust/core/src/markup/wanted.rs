//! `Wanted`: the markup that a caller expects in plain text.

use std::sync::Arc;

use super::families::Family;
use super::tools::Tools;

/// Markup that a caller expects in plain text.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Family of the model's markup.
    pub family: &'static Family,
    /// Offered tools, if known.
    pub tools: Option<Arc<Tools>>,
    /// True if the prompt already opened the thinking.
    pub starts_in_thinking: bool,
}

/// Split a specification: `<dialect>` or `<dialect>+<markup>`.
pub fn specification(name: &str) -> (&str, Option<&str>) {
    match name.split_once('+') {
        Some((dialect, markup)) => (dialect, Some(markup)),
        None => (name, None),
    }
}
