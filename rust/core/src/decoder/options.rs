//! `Options`: the facts and wishes of a caller before the first byte.

use crate::emit::StreamOptions;
use crate::markup::Wanted;

/// Options of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Facts about the stream, and bounds.
    pub stream: StreamOptions,
    /// The markup in plain text; without it, text is left unchanged.
    pub markup: Option<Wanted>,
}
