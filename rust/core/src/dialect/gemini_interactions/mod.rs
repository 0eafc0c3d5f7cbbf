//! Gemini's Interactions API, its stream of events → deltas.  Decode only.
//!
//! In: SSE frames, one JSON object each, discriminated by `event_type`; also a whole interaction.  Out: what
//! [`DeltaSink`] takes.
//!
//! Laws: a step is known by its `index` from its start to its stop; the last event holds the status and the counts and
//! ends the stream; a status that came before it counts only where it never came.
//! Source: ai.google.dev, "Streaming interactions"; types of google-genai 1.x, also for `content.*`, the names of the
//! events before there were steps; recordings.
//! Fixtures: `tests/fixtures/gemini-interactions/`.

mod apply;
mod read;
mod steps;

pub use apply::State;
pub use read::{Event, EventTemplate};
