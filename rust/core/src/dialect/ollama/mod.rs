//! Decoder of Ollama's own streams, of `/api/chat` and of `/api/generate`.
//!
//! In: one JSON object per line; a whole body is a stream of one line.  Out: operations of `DeltaSink`.
//!
//! Laws:
//! - A line is applied in the order thinking, text, calls.
//! - The protocol has no blocks: a change of kind opens a new part.
//! - Calls arrive whole.  Each is a new call, whatever its index.
//! - The line with `done` holds the counts and ends the stream.  A line with an error ends it too.
//!
//! Source: docs.ollama.com, "Generate a chat message" and "Generate a response" (types of ollama-python 0.6), and
//! recordings.
//! Fixtures: `tests/fixtures/streams/ollama/`.

mod apply;
pub mod facts;
mod read;

pub use apply::State;
pub use read::{Event, EventTemplate};

use super::signs::Signs;

/// The signs by which a body of this dialect is detected.
pub const SIGNS: Signs = Signs {
    common_members: &[&["done"], &["created_at", "message"], &["created_at", "response"]],
    ..Signs::NONE
};
