//! Decoder of the event streams of Gemini's Interactions API, which deltafold can only decode.
//!
//! In: SSE frames, one JSON object each, discriminated by `event_type`; also a whole interaction.
//! Out: operations of `DeltaSink`.
//!
//! Laws:
//! - `index` identifies a step from its start to its stop.
//! - The last event holds the status and the counts, and ends the stream.
//! - The status of an earlier event counts only if the last event never arrives.
//!
//! Source: ai.google.dev, "Streaming interactions"; types of google-genai 1.x, also for `content.*`, the older event names
//! from before the API had steps; recordings.
//! Fixtures: `tests/fixtures/streams/gemini-interactions/`.

mod apply;
pub mod facts;
mod read;
mod steps;

pub use apply::State;
pub use read::{Event, EventTemplate};

use super::signs::Signs;

/// The signs by which a body of this dialect is detected.
pub const SIGNS: Signs = Signs {
    // Version 1 of Cohere Chat has this member too, with a closed list of values.
    event_types: &["*"],
    objects: &["interaction"],
    ..Signs::NONE
};
