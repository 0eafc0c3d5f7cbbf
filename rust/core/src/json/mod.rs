//! JSON: one reader of borrowed text, one writer, and one scanner for text that arrives in pieces.
//!
//! No other module of the core parses JSON.  This module knows no provider.

mod cursor;
mod decimal;
mod reader;
pub mod scan;
mod text;
mod tokens;
mod write;

pub use cursor::Cursor;
pub use reader::{Kind, MAX_DEPTH, Reader, Result};
pub use text::{Carry, Str};
pub(crate) use tokens::{number_end, special, string_end, value_end};
pub use write::{
    compact, members, merge_deep, merge_objects, quoted, write_object, write_string, write_text,
};
