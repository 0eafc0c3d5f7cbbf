//! Amazon Bedrock ConverseStream → deltas.
//!
//! In: one event a frame, its name in the frame's header and its body as JSON; through proxies and inside of other
//! frames an object whose one member is so named; also a whole Converse body.  Out: what [`DeltaSink`] takes.
//!
//! Laws: `contentBlockIndex` names a block until its `contentBlockStop`; text and reasoning are opened by their first
//! delta, tools by `contentBlockStart`; tools that the provider runs, their results and blocks that are not known are
//! provider parts; nothing marks the end but the end of the body, usage comes after the stop reason or before it; the
//! input count excludes cached tokens, ours includes them.  Metrics, trace and the model's own response fields say
//! nothing of the message.
//! Source: docs.aws.amazon.com, "ConverseStream" and "ContentBlockDelta", and recordings.
//! Fixtures: `tests/fixtures/bedrock-converse/`.

mod apply;
mod blocks;
mod read;

pub use apply::State;
pub(super) use read::member_name;
pub use read::{Event, EventTemplate};
