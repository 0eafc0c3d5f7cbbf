//! Writer of frames of an AWS event stream.
//!
//! In: headers that hold strings, and a payload.  Out: the bytes of a frame with its lengths and checksums.

use std::fmt;

use super::{CRC, MAX_HEADER_BYTES, PRELUDE, STRING};

/// A name, a value, the header block or the frame exceeds what its length field or the specification allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTooLong;

impl fmt::Display for FrameTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the frame exceeds the lengths of an AWS event stream")
    }
}

impl std::error::Error for FrameTooLong {}

/// Append a header that holds a string to a header block.
///
/// # Errors
/// The name has more than 255 bytes, or the value more than 65,535.
pub fn write_header(block: &mut Vec<u8>, name: &str, value: &str) -> Result<(), FrameTooLong> {
    let name_bytes = u8::try_from(name.len()).map_err(|_| FrameTooLong)?;
    let value_bytes = u16::try_from(value.len()).map_err(|_| FrameTooLong)?;
    block.push(name_bytes);
    block.extend_from_slice(name.as_bytes());
    block.push(STRING);
    block.extend_from_slice(&value_bytes.to_be_bytes());
    block.extend_from_slice(value.as_bytes());
    Ok(())
}

/// Append a frame of a header block and a payload.
///
/// # Errors
/// The header block has more than 128 KiB, or the frame more than 4 GiB.
pub fn write_frame(out: &mut Vec<u8>, headers: &[u8], payload: &[u8]) -> Result<(), FrameTooLong> {
    if headers.len() > MAX_HEADER_BYTES {
        return Err(FrameTooLong);
    }
    let length =
        |bytes: usize| u32::try_from(bytes).map(u32::to_be_bytes).map_err(|_| FrameTooLong);
    let total = length(PRELUDE + headers.len() + payload.len() + CRC)?;
    let headers_length = length(headers.len())?;
    out.reserve(PRELUDE + headers.len() + payload.len() + CRC);
    let start = out.len();
    out.extend_from_slice(&total);
    out.extend_from_slice(&headers_length);
    let mut checksum = crc32fast::Hasher::new();
    append_checksum(out, start, &mut checksum);
    // The checksum of the frame covers the prelude with its checksum.
    let covered = out.len() - CRC;
    out.extend_from_slice(headers);
    out.extend_from_slice(payload);
    append_checksum(out, covered, &mut checksum);
    Ok(())
}

/// Add the bytes from `start` on to a checksum, and append its value.
fn append_checksum(out: &mut Vec<u8>, start: usize, checksum: &mut crc32fast::Hasher) {
    checksum.update(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&checksum.clone().finalize().to_be_bytes());
}
