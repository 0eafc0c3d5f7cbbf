//! Decoder of Amazon Bedrock InvokeModelWithResponseStream.
//!
//! In: `chunk` frames whose base64 holds one event of the model's own protocol; also a whole InvokeModel body.
//! Out: the deltas of that protocol.
//!
//! Laws:
//! - The first event that identifies its protocol decides the protocol of the stream.
//! - Parts and provider state are those of that protocol, so that its renderer accepts them.
//! - The counts that Bedrock adds to the last event only fill gaps.
//! - An intervention of a guardrail is the finish reason if the model gave none.
//!
//! Source: docs.aws.amazon.com, "InvokeModelWithResponseStream", and recordings.
//! Fixtures: `tests/fixtures/streams/bedrock-invoke/`.

mod apply;
mod completion;
pub mod facts;
mod read;

pub use apply::State;
pub use read::{Event, EventTemplate};

use super::signs::Signs;

/// The signs by which a body of this dialect is detected.
pub const SIGNS: Signs = Signs {
    common_members: &[&["chunk"], &["bytes"], &["inputTextTokenCount"], &["outputText"]],
    frames: &["chunk"],
    ..Signs::NONE
};
