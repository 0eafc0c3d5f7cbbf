//! Writer of frames of an AWS event stream.
//!
//! In: headers that hold strings, and a payload.  Out: the bytes of a frame with its lengths and checksums.
//!
//! A CRC is affine: `crc(a ^ b) = crc(a) ^ crc(b) ^ crc(0)` for messages of one length.  Only the length of the frame differs
//! before the payload of frames with the same headers, so that two table entries give both checksums up to the payload.

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

/// Header block of frames that repeat, with the checksums up to the payload by the length of the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderBlock {
    bytes: Vec<u8>,
    /// Checksums by the low byte of a frame's length.
    low: Vec<Checksums>,
    /// Differences from the first entry by the second byte of a frame's length.
    high: Vec<Checksums>,
}

/// Checksums of the beginning of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Checksums {
    /// Of both lengths.
    lengths: u32,
    /// Of the prelude and the headers.
    beginning: u32,
}

impl Checksums {
    fn new(total: u32, headers: &[u8]) -> Self {
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&total.to_be_bytes());
        // A block over 128 KiB is refused before its checksums matter.
        checksum.update(&u32::try_from(headers.len()).unwrap_or(u32::MAX).to_be_bytes());
        let lengths = checksum.clone().finalize();
        checksum.update(&lengths.to_be_bytes());
        checksum.update(headers);
        Self { lengths, beginning: checksum.finalize() }
    }

    fn xor(self, other: Self) -> Self {
        Self { lengths: self.lengths ^ other.lengths, beginning: self.beginning ^ other.beginning }
    }
}

impl HeaderBlock {
    /// Prepare the frames of a header block, which [`write_header`] wrote.
    pub fn new(bytes: Vec<u8>) -> Self {
        let none = Checksums::new(0, &bytes);
        let low = (0..256).map(|length| Checksums::new(length, &bytes)).collect();
        let high = (0..256).map(|length| Checksums::new(length << 8, &bytes).xor(none)).collect();
        Self { bytes, low, high }
    }

    /// Append a frame of these headers and a payload, as [`write_frame`] does.
    ///
    /// # Errors
    /// The header block has more than 128 KiB, or the frame more than 4 GiB.
    pub fn write_frame(&self, out: &mut Vec<u8>, payload: &[u8]) -> Result<(), FrameTooLong> {
        let total = PRELUDE + self.bytes.len() + payload.len() + CRC;
        let checksums = self.low.get(total & 0xFF).zip(self.high.get(total >> 8));
        let lengths = u32::try_from(total).ok().zip(u32::try_from(self.bytes.len()).ok());
        let (Some((low, high)), Some((total_length, headers_length))) = (checksums, lengths) else {
            return write_frame(out, &self.bytes, payload);
        };
        let Checksums { lengths, beginning } = low.xor(*high);
        out.reserve(total);
        out.extend_from_slice(&total_length.to_be_bytes());
        out.extend_from_slice(&headers_length.to_be_bytes());
        out.extend_from_slice(&lengths.to_be_bytes());
        out.extend_from_slice(&self.bytes);
        out.extend_from_slice(payload);
        let mut checksum = crc32fast::Hasher::new_with_initial(beginning);
        checksum.update(payload);
        out.extend_from_slice(&checksum.finalize().to_be_bytes());
        Ok(())
    }
}

/// Add the bytes from `start` on to a checksum, and append its value.
fn append_checksum(out: &mut Vec<u8>, start: usize, checksum: &mut crc32fast::Hasher) {
    checksum.update(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&checksum.clone().finalize().to_be_bytes());
}
