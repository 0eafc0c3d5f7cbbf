//! Decoder of Anthropic Messages streams.
//!
//! In: SSE frames, one JSON object each; also a whole response body.  `type` discriminates the events; if it is missing,
//! the SSE event name does.
//! Out: operations of `DeltaSink`.
//!
//! Laws:
//! - `index` identifies a block until its `content_block_stop`.
//! - A block of text, thinking or tool_use is one part.  Every other block becomes one provider part when it is complete.
//! - Usage counts are cumulative.  They are merged by member; the last value that is not null wins.
//! - The input count excludes cached tokens; that of the contract includes them.
//!
//! Source: docs.anthropic.com, "Streaming Messages" and "Messages" (types of anthropic-sdk-python 2.12), and recordings.
//! Fixtures: `tests/fixtures/streams/anthropic-messages/`.

mod apply;
mod blocks;
mod deltas;
pub mod facts;
mod open_blocks;
mod read;
mod serving;

pub use apply::State;
pub use deltas::{BlockDelta, Facts};
pub use read::{Event, EventTemplate, Message};

use super::signs::Signs;

/// The signs by which a body of this dialect is detected.
pub const SIGNS: Signs = Signs {
    types: &["message_start", "message_delta", "message_stop", "message", "content_block_*"],
    ..Signs::NONE
};
