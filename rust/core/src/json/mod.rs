//! JSON: one reader of borrowed text, one writer, and one scanner for text that arrives in chunks.
//!
//! No other module of the core parses JSON or writes an object by hand.  This module is independent of providers.

mod cursor;
mod decimal;
mod error;
mod merge;
mod reader;
pub mod scan;
mod text;
mod tokens;
mod write;

pub use cursor::Cursor;
pub(crate) use decimal::leading_count;
pub use error::{Error, ErrorKind};
pub use merge::{Patch, compact, members, merge_deep, merge_objects, merge_patch, write_object};
pub use reader::{Kind, MAX_DEPTH, Reader, Result};
pub use text::{Carry, Str};
pub(crate) use tokens::{
    digit_count, escape_end, number_end, space_end, special, string_end, value_end,
};
pub(crate) use write::write_escape;
pub use write::{ObjectWriter, object, write_list, write_members, write_string, write_text};
