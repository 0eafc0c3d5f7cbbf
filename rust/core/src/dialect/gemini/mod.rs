//! Decoder of Gemini `streamGenerateContent`, of the Gemini API and of Vertex AI.
//!
//! In: chunks, as SSE or as elements of one JSON array; a whole response body is a chunk too.
//! Out: operations of `DeltaSink`.
//!
//! Laws:
//! - Chunks are not blocks: a change of kind opens a new part.
//! - Content after a thought signature opens a new part, because the signature must go back on the part it arrived with.
//! - Calls arrive whole, or as values under paths.
//! - No event marks the end of the stream: the last finish reason counts.
//! - Usage records are merged; the last value that is not null wins.
//!
//! Source: ai.google.dev, "Generating content" and "Thought signatures"; cloud.google.com, "Streaming function call
//! arguments"; types of google-genai 1.x; recordings of both services.
//! Fixtures: `tests/fixtures/streams/gemini/`.

mod apply;
pub mod facts;
mod partial_args;
mod read;
mod usage;

pub use apply::State;
pub use read::{Event, EventTemplate};

use super::signs::Signs;

/// The signs by which a body of this dialect is detected.
pub const SIGNS: Signs = Signs {
    members: &[&["candidates"], &["promptFeedback"], &["usageMetadata"], &["modelVersion"]],
    ..Signs::NONE
};
