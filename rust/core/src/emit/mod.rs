//! What every dialect leaves to one place: seq, `start`, part numbers, call ids, start/end pairing, usage, finish reason,
//! and the one terminal.
//!
//! In: what `apply` says through [`DeltaSink`].  Out: lawful deltas, to an [`Output`].
//! Laws: those of [`crate::contract::Laws`]; nothing leaves after the terminal; a limit that was reached ends the stream.

mod calls;
mod counts;
mod delta_emitter;
mod digest;
mod markup;
mod notes;
mod options;
mod parts;
mod sink;
mod terminal;
mod text;
mod whole_parts;

pub use calls::{CallEnd, CallHandle};
pub use counts::Counts;
pub use options::Options;
pub use parts::{PartHandle, PartKind};
pub use sink::{DeltaSink, Emitter};
pub use whole_parts::ImageContent;
