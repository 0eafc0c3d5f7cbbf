//! Emitter: sequence numbers, `start`, part numbers, call ids, pairing of starts and ends, usage, and the one terminal.
//!
//! In: the operations of [`EmitterSink`], from a dialect or from the layer of markup above.  Out: lawful deltas, to an
//! [`Output`](crate::contract::Output).
//!
//! Laws: those of [`crate::contract::Laws`].  Nothing is emitted after the terminal.  A limit that was reached ends the
//! stream.

mod call;
mod calls;
mod counts;
mod delta_emitter;
mod digest;
mod emitter;
mod options;
mod parts;
mod price_facts;
mod terminal;
mod text;
mod usage;
mod usage_record;
mod warnings;
mod whole_parts;
mod whole_sign;

pub use call::{CallEnd, CallHandle};
pub use counts::Counts;
pub(crate) use digest::Digest;
pub use emitter::{Emitter, EmitterSink};
pub use options::{StreamOptions, WholeEnds};
pub use parts::{PartHandle, PartKind};
pub(crate) use text::missing_suffix;
pub use whole_parts::ImageContent;
pub(crate) use whole_sign::Said;
