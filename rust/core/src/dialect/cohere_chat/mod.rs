//! Cohere Chat stream → deltas: version 2 of the interface, and version 1.
//!
//! In: frames discriminated by `type` (`event_type` in version 1, which comes as lines of JSON); also a whole response
//! body.  Out: what [`DeltaSink`] takes.
//!
//! Laws: content blocks and calls are numbered apart; a plan that precedes calls is thinking, and its provider state says
//! that it goes back as a plan; the end event ends the stream; `tokens` are the counts, `billed_units` leave out what
//! Cohere adds to a prompt.
//! Source: docs.cohere.com, "Chat with Streaming" (types of cohere-python 5), and recordings.
//! Fixtures: `tests/fixtures/cohere-chat/`.

mod apply;
mod read;

pub use apply::State;
pub use read::{Call, End, Event, EventTemplate};
