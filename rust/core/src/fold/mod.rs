//! Folding of deltas into a message, and of argument text into JSON values.

mod assembler;
mod output;
pub mod partial_json;

pub use assembler::{MessageAssembler, Metadata, Part, Status, Terminal, TextPart, ToolCall};
pub use output::FoldingOutput;
