//! Columns of Arrow: response bodies in, the struct column of their messages out.

mod columns;
pub(crate) mod fold;
mod input;
mod messages;
