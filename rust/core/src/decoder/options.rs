//! `Options`: facts and choices that the caller gives before the first byte.

use std::sync::Arc;

use crate::dialect::Shapes;
use crate::emit::StreamOptions;
use crate::markup::Wanted;

/// Options of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Facts about the stream, and its bounds.
    pub stream: StreamOptions,
    /// Markup that is decoded in plain text.  Without it, text is left unchanged.
    pub markup: Option<Wanted>,
    /// Shapes of frames that streams share.  They make short streams faster and change no delta.
    pub shapes: Option<Arc<Shapes>>,
}
