//! Decoding as Python objects: `Decoder`, `ChoicesDecoder`, `Fold`, `EventFramer`, whole bodies and HTTP refusals.
//!
//! In: facts about a response, and the bytes of its body.  Out: batches of deltas, assemblers, events, or error members.

pub(crate) mod bodies;
pub(crate) mod choices;
pub(crate) mod decoder;
pub(crate) mod event_framer;
pub(crate) mod fold;
pub(crate) mod input;
pub(crate) mod options;
pub(crate) mod refusal;
mod tools;
