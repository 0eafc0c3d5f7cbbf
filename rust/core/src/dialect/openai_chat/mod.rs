//! Decoder of OpenAI Chat Completions streams, including those of compatible servers.
//!
//! In: SSE frames, one JSON object each, with `[DONE]` at the end; also a whole response body.
//! Out: operations of `DeltaSink`.
//!
//! Laws:
//! - The protocol has no blocks: a change of kind opens a new part.
//! - Calls are distinguished by id, then by index, then by name.
//! - Reasoning is read from one of its three members.
//! - The last finish reason counts, but a plain stop replaces none.  A call is complete at the end of the stream.
//! - Usage records are merged; the last value that is not null wins.
//! - An error beside choices is held until the real end of the stream.
//!
//! Source: platform.openai.com, "Chat Completions: streaming" (types of openai-python 3.54), the servers' own documents,
//! and recordings of twenty vendors.
//! Fixtures: `tests/fixtures/streams/openai-chat/`.

mod apply;
mod audio;
mod calls;
mod carriers;
mod contents;
mod executed_tools;
pub mod facts;
mod filters;
mod images;
pub(super) mod logprobs;
mod read;
mod reasoning;
mod safeguards;
mod templates;

pub use apply::State;
pub use read::Event;
pub use templates::EventTemplate;

use super::signs::Signs;

/// The signs by which a body of this dialect is detected.
pub const SIGNS: Signs = Signs {
    objects: &["chat.completion", "chat.completion.chunk"],
    members: &[&["choices"], &["id", "created", "model"]],
    ..Signs::NONE
};
