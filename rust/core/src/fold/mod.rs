//! Folding: deltas to a message, and argument text to JSON values.

mod assembler;
mod output;
pub mod partial_json;

pub use assembler::{MessageAssembler, Part, Status, Terminal, TextPart, ToolCall};
pub use output::FoldingOutput;
