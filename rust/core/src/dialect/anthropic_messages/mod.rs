//! Anthropic Messages stream → deltas.
//!
//! In: SSE frames, one JSON object each, discriminated by `type` (by the event's name where `type` is missing); also a
//! whole response body.  Out: what [`DeltaSink`] takes.
//!
//! Laws: `index` names a block until its `content_block_stop`; a text, thinking or tool_use block is one part; every other
//! block becomes one provider part when it is whole; usage counts are cumulative and merged member by member, last
//! non-null wins; the input count excludes cached tokens, ours includes them.
//! Source: docs.anthropic.com, "Streaming Messages" and "Messages" (types of anthropic-sdk-python 2.12), and recordings.
//! Fixtures: `tests/fixtures/anthropic-messages/`.

mod apply;
mod blocks;
mod deltas;
mod read;

pub use apply::State;
pub use deltas::{BlockDelta, Facts};
pub use read::{Event, EventTemplate, Message};
