//! Framings: bytes in any chunking → frames.
//!
//! Law: a framer knows neither the meaning of JSON nor providers.

pub mod aws_event_stream;
mod bytes;
mod frame;
mod framer;
pub mod json_array;
pub mod ndjson;
pub mod sniff;
pub mod sse;

pub use bytes::{Bytes, Feed};
pub use frame::{Frame, Receiver};
pub use framer::{Framer, Framing};
pub(crate) use sse::WholeEvent;
