//! Amazon Bedrock InvokeModelWithResponseStream → deltas.
//!
//! In: `chunk` frames whose base64 holds one event of the model's own protocol; also a whole InvokeModel body.  Out: what
//! the deltas of that protocol.
//!
//! Laws: the first event that tells its protocol settles it; parts and provider state are that protocol's, so that its
//! renderer takes them back; the counts that Bedrock adds to the last event only fill gaps; a guardrail that intervened is
//! the finish reason where the model gave none.
//! Source: docs.aws.amazon.com, "InvokeModelWithResponseStream", and recordings.
//! Fixtures: `tests/fixtures/bedrock-invoke/`.

mod apply;
mod completion;
mod read;

pub use apply::State;
pub use read::{Event, EventTemplate};
