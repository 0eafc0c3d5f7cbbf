//! Stencils: requests of one protocol written in another, from texts that nothing has unescaped.
//!
//! In: the JSON of a request, and rows of data that say which of its messages are plain.  Out: the JSON of the translated
//! request.
//!
//! A plain message has known members alone: texts, calls and their results.  An [`Outline`] finds their tokens in one walk,
//! pairs calls with results, and groups messages into rounds: an answer, the results of its calls and what the user says
//! before the next answer.  The rules of the two protocols stand elsewhere, in full, for every message.  They translate a
//! [`Outline::sample`], which has one round of each form, with marks for the texts, ids, names and arguments.  A [`Stencil`]
//! is that translation, cut at the marks: the whole request is written by copying the tokens into it.
//!
//! Laws: the module knows no protocol.  A mark that the rules split, join, repeat or move gives no stencil, and a message that
//! is not plain is in no round: the rules then decide about it.  Tokens of texts are copied as they are, after they were
//! validated.
//!
//! A removal of this module would change only `RequestOutline` of the bindings and its one user.

mod learn;
mod marks;
mod object;
mod outline;
mod rows;
mod sample;
mod string;
mod token;

pub use learn::Stencil;
pub use outline::Outline;
pub use rows::Rows;
pub use sample::{KnownForms, Sample, SampleUnit};
