//! Ollama's own stream, of `/api/chat` and of `/api/generate` → deltas.
//!
//! In: a JSON object a line; a whole body is the last line alone.  Out: what [`DeltaSink`] takes.
//!
//! Laws: a line says thinking, then text, then calls; a change of kind opens a new part (the protocol has no blocks); calls
//! come whole, each a new one whatever its index says; the line that is `done` ends the stream and has the counts; a line
//! with an error ends it too.
//! Source: docs.ollama.com, "Generate a chat message" and "Generate a response" (types of ollama-python 0.6), and
//! recordings.
//! Fixtures: `tests/fixtures/ollama/`.

mod apply;
mod read;

pub use apply::State;
pub use read::{Event, EventTemplate};
