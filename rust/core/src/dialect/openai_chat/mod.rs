//! OpenAI Chat Completions stream, and every compatible server's → deltas.
//!
//! In: SSE frames, one JSON object each, `[DONE]` at the end; also a whole response body.  Out: what [`DeltaSink`] takes.
//!
//! Laws: a change of kind opens a new part (the protocol has no blocks); calls are told apart by id, then by index, then
//! by name; reasoning is read from one of its three members; the first finish reason counts; usage is merged, last
//! non-null member wins; an error beside choices waits for the real end.
//! Source: platform.openai.com, "Chat Completions: streaming" (types of openai-python 3.54), the servers' own documents,
//! and recordings of twenty vendors.
//! Fixtures: `tests/fixtures/openai-chat/`.

mod apply;
mod images;
pub(super) mod logprobs;
mod read;
mod reasoning;

pub use apply::State;
pub use read::{Event, EventTemplate};
