//! Messages as Python objects: `MessageAssembler`, the lazy fields of a folded `Message`, and `PartialJson`.
//!
//! In: deltas of one run.  Out: the message, its parts, its log probabilities, its JSON, and values of arguments that arrive.

pub(crate) mod assembler;
pub(crate) mod fold_state;
mod folded;
pub(crate) mod lazy;
mod live_value;
pub(crate) mod partial_json;
mod partial_tree;
pub(crate) mod snapshot;
pub(crate) mod text_message;
mod to_json;
