//! AWS event stream, `application/vnd.amazon.eventstream`: checked binary frames with named headers.
//!
//! ```text
//! total u32 | headers u32 | CRC of these 8 bytes | headers … | payload … | CRC of everything before it
//! ```
//!
//! Source: Amazon Transcribe developer guide, "Event stream encoding"; smithy.io, "Amazon Event Stream Specification".

mod read;
mod write;

pub use read::AwsEventStream;
pub use write::{FrameTooLong, HeaderBlock, write_frame, write_header};

/// Length of the prelude: two lengths and their CRC.
const PRELUDE: usize = 12;
/// Length of a CRC.
const CRC: usize = 4;
/// Maximum length of the header block in the specification.
const MAX_HEADER_BYTES: usize = 128 << 10;
/// The type of a header that holds a string.
const STRING: u8 = 7;
