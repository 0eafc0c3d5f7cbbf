//! One stream behind one call a read.
//!
//! In: the chunks that Python has read.  Out: deltas, batches, texts, the folded message, and the times of the reads.
//!
//! Law: nothing here knows a source, a task, an event loop or a limit, or calls a method of Python's half.

pub(crate) mod cursor;
mod pending;
pub(crate) mod timer;
