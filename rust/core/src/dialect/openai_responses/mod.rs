//! OpenAI Responses stream, and every compatible server's → deltas.
//!
//! In: SSE frames, one JSON object each, discriminated by `type` (by the event's name where `type` is missing); also a
//! whole response body.  Out: operations of [`DeltaSink`].
//!
//! Laws: an item is known by `output_index` (one gateway gives it another id with every event), by its id where that is
//! missing; deltas may be missing, then the `.done` event or the item says the whole; deltas that differ from it stand;
//! an `error` event waits for `response.failed`; usage comes with the end.
//! Source: platform.openai.com, "Responses: streaming events" (types of openai-python 3.54), the Open Responses
//! specification, and recordings of OpenAI, Azure, xAI, LM Studio, DeepSeek, OpenRouter and GitHub Copilot.
//! Fixtures: `tests/fixtures/openai-responses/`.

mod apply;
mod items;
mod read;

pub use apply::State;
pub use read::{Content, Event, EventTemplate, ItemPosition, ResponseStage};
