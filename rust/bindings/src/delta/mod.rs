//! Deltas as Python objects: `MessageDelta`, `DeltaBatch` with the deltas of one feed, and `Logprobs`.
//!
//! In: deltas of the core, or mappings and JSON in wire names.  Out: Python objects, mappings and JSON.

pub(crate) mod batch;
mod from_wire;
pub(crate) mod logprobs;
pub(crate) mod message_delta;
mod payload;
