//! Decoder of Cohere Chat streams, version 2 and version 1 of the interface.
//!
//! In: frames discriminated by `type` (version 1: lines of JSON with `event_type`); also a whole response body.
//! Out: operations of `DeltaSink`.
//!
//! Laws:
//! - Content blocks and calls have separate indexes.
//! - A plan before calls is thinking.  Its provider state marks it as a plan, so that it goes back as one.
//! - The end event ends the stream.
//! - `tokens` are the counts.  `billed_units` omit the tokens that Cohere adds to a prompt.
//!
//! Source: docs.cohere.com, "Chat with Streaming" (types of cohere-python 5), and recordings.
//! Fixtures: `tests/fixtures/streams/cohere-chat/`.

mod apply;
pub mod facts;
mod read;

pub use apply::State;
pub use read::{Call, End, Event, EventTemplate};

use super::signs::Signs;

/// The signs by which a body of this dialect is detected.
pub const SIGNS: Signs = Signs {
    event_types: &["stream-start", "stream-end", "text-generation", "tool-calls-*", "search-*"],
    types: &[
        "message-start",
        "message-end",
        "tool-plan-delta",
        "content-*",
        "citation-*",
        "tool-call-*",
    ],
    common_members: &[&["generation_id"], &["finish_reason", "message"]],
    ..Signs::NONE
};
