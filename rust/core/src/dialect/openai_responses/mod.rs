//! Decoder of OpenAI Responses streams, including those of compatible servers.
//!
//! In: SSE frames, one JSON object each; also a whole response body.  `type` discriminates the events; if it is missing,
//! the SSE event name does.
//! Out: operations of `DeltaSink`.
//!
//! Laws:
//! - `output_index` identifies an item, because one gateway sends another id with every event.  The ids and the order of
//!   the items are the fallback.
//! - Deltas may be missing; then the `.done` event or the item provides the whole text.
//! - Deltas that differ from the whole text are kept.  Arguments that cannot be JSON are held until the whole text: GitHub
//!   Copilot streams ciphertext.
//! - An `error` event is held until `response.failed`.
//! - Usage arrives with the end.
//!
//! Source: platform.openai.com, "Responses: streaming events" (types of openai-python 3.54), the Open Responses
//! specification, and recordings of OpenAI, Azure, xAI, LM Studio, DeepSeek, OpenRouter and GitHub Copilot.
//! Fixtures: `tests/fixtures/streams/openai-responses/`.

mod apply;
mod contents;
pub mod facts;
mod items;
mod places;
mod read;

pub use apply::State;
pub use read::{Content, Event, EventTemplate, ItemPosition, ResponseStage};

use super::signs::Signs;

/// The signs by which a body of this dialect is detected.
pub const SIGNS: Signs = Signs { types: &["response.*"], objects: &["response"], ..Signs::NONE };
