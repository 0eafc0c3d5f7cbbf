//! Contract: the types of a delta, the grammar that a stream of deltas obeys, and batches of deltas.
//!
//! This module depends on the JSON reader and writer only.

mod batch;
mod call_id;
mod delta;
mod failure;
mod kinds;
mod laws;
mod logprobs;
mod output;
mod text_only;
mod warnings;

pub use batch::DeltaBatch;
pub use call_id::{CallId, is_of_provider};
pub use delta::{CONTRACT_VERSION, Delta, Payload, Text, TextAttributes, Usage};
pub use failure::Failure;
pub use kinds::{DeltaKind, ErrorCode, FinishReason, InputFormat};
pub use laws::{ContractViolation, Destination, Laws};
pub use logprobs::{Column, Logprobs, LogprobsError, NO_ID, Row, read_bytes, write_bytes};
pub use output::Output;
pub use text_only::TextOnlyDelta;
pub use warnings::Warnings;
