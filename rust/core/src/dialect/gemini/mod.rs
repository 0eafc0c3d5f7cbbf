//! Gemini `streamGenerateContent`, of the Gemini API and of Vertex AI → deltas.
//!
//! In: chunks, as SSE or as elements of one JSON array; a whole response body is a chunk too.  Out: what [`DeltaSink`]
//! takes.
//!
//! Laws: a change of kind opens a new part (chunks are no blocks), and so does what follows a thought signature: a
//! signature goes back on the part that it came with; calls come whole, or as values under paths; nothing marks the end:
//! the last finish reason counts; counts are merged, last non-null member wins.
//! Source: ai.google.dev, "Generating content" and "Thought signatures"; cloud.google.com, "Streaming function call
//! arguments"; types of google-genai 1.x; recordings of both services.
//! Fixtures: `tests/fixtures/gemini/`.

mod apply;
mod partial_args;
mod read;
mod usage;

pub use apply::State;
pub use read::{Event, EventTemplate};
