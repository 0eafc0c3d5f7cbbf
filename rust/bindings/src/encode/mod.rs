//! Encoding as Python objects: `Encoder`, `ChoicesEncoder`, `Transcoder`, and whole bodies.
//!
//! In: deltas and batches, folded messages, or bytes of another protocol.  Out: bytes, or one mapping an event.

pub(crate) mod choices;
pub(crate) mod encoder;
mod run;
pub(crate) mod settings;
