//! Decoder of Amazon Bedrock ConverseStream.
//!
//! In: one event per frame, with its name in the frame's header and its body as JSON.  Proxies and other framings send an
//! object whose only member has that name.  A whole Converse body is an input too.
//! Out: operations of `DeltaSink`.
//!
//! Laws:
//! - `contentBlockIndex` identifies a block until its `contentBlockStop`.
//! - The first delta opens a block of text or reasoning; `contentBlockStart` opens tools.
//! - Tools that the provider runs, their results and unknown blocks are provider parts.
//! - The end of the body is the only end of the stream: usage arrives before or after the stop reason.
//! - The input count excludes cached tokens; that of the contract includes them.
//! - Metrics are ignored.  `trace` and the model's own response fields become details of the end.
//!
//! Source: docs.aws.amazon.com, "ConverseStream" and "ContentBlockDelta", and recordings.
//! Fixtures: `tests/fixtures/streams/bedrock-converse/`.

mod apply;
mod blocks;
pub mod facts;
mod read;

pub use apply::State;
pub(super) use read::member_name;
pub use read::{Event, EventTemplate};

use super::signs::Signs;

/// The signs by which a body of this dialect is detected.
pub const SIGNS: Signs = Signs {
    members: &[
        &["stopReason"],
        &["contentBlockStart"],
        &["contentBlockDelta"],
        &["contentBlockStop"],
        &["contentBlockIndex"],
        &["messageStart"],
        &["messageStop"],
    ],
    frames: &["messageStart", "contentBlockStart", "contentBlockDelta"],
    ..Signs::NONE
};
