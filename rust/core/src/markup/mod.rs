//! Markup in plain text: reasoning and tool calls that a server passed through as the model wrote them.
//!
//! A layer between dialects and the emitter.  The emitter does not depend on this module.
//!
//! In: the text of text parts in any chunking, and the family that the caller chose.  Out: text, thinking and calls, as
//! streamed parts of their own.
//!
//! ```text
//! text ─► prose ──literal──► a grammar's block ──► calls
//!           ▲ ▲                   │
//!           │ └── not a call ─────┤ the text read so far is emitted unchanged
//!           └──── block is over ──┘
//! ```
//!
//! Laws:
//! - The message does not depend on how the text was cut.
//! - Text without literals of the family is emitted unchanged.
//! - Held text is the beginning of a literal, the white space before it, or text that the rule of the family requires.  Held
//!   text counts against the limits.
//! - Each byte is read a bounded number of times.
//! - Text that turns out not to be a call is emitted as it was written.
//! - White space around markup belongs to it.
//!
//! Source: docs/protocols/inline-markup.md#engine.

mod block;
mod families;
mod gemma;
mod harmony;
mod json_calls;
mod layer;
mod literal;
mod literals;
mod named_calls;
mod parser;
mod pythonic;
mod tools;
mod value;
mod wanted;
mod writer;
mod xml_calls;

pub use families::{FAMILIES, Family, find};
pub(crate) use layer::MarkupLayer;
pub use tools::{Tools, Types, coerce};
pub use wanted::{Wanted, specification};
