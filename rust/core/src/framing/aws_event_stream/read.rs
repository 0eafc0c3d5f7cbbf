//! Reader of an AWS event stream: body bytes in any chunking → one event or failure for each frame.
//!
//! Laws: a length is used only after its checksum was verified, and no memory is reserved for a length.  A frame within one
//! feed is borrowed.  Each byte is checked once.  A malformed frame ends the stream.  An unfinished frame at the end of the
//! body is dropped.

use std::ops::ControlFlow;

use super::{CRC, MAX_HEADER_BYTES, PRELUDE, STRING};
use crate::framing::Frame;

/// Number of headers that are compared one by one.
const FEW_HEADERS: usize = 8;

/// Framer of an AWS event stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AwsEventStream {
    /// Byte offset of the current frame in the body.
    offset: u64,
    /// Bytes of the current frame from earlier feeds.
    held: Vec<u8>,
    /// Lengths of the current frame, once its prelude was checked.
    lengths: Option<Lengths>,
    max_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lengths {
    total: usize,
    headers: usize,
}

/// Defect of a frame.
enum Defect {
    TooLong,
    Corrupt(&'static str),
}

impl AwsEventStream {
    /// Build a framer that refuses frames over `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Read the next bytes and pass each finished frame to `sink`, until `sink` breaks.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(Frame<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut rest = bytes;
        loop {
            // The prelude comes first, since it holds the length of the frame.
            let wanted = self.lengths.map_or(PRELUDE, |lengths| lengths.total);
            let missing = wanted.saturating_sub(self.held.len());
            let Some((piece, after)) = rest.split_at_checked(missing) else {
                self.held.extend_from_slice(rest);
                return ControlFlow::Continue(());
            };
            let Some(lengths) = self.lengths else {
                let lengths = if self.held.is_empty() {
                    lengths(piece, self.max_bytes)
                } else {
                    // The prelude was cut, which is rare for twelve bytes.
                    self.held.extend_from_slice(piece);
                    rest = after;
                    lengths(&self.held, self.max_bytes)
                };
                match lengths {
                    Ok(lengths) => self.lengths = Some(lengths),
                    Err(defect) => return self.refuse(&defect, &mut sink),
                }
                continue;
            };
            rest = after;
            self.lengths = None;
            let offset = self.offset;
            self.offset = offset.saturating_add(lengths.total as u64);
            let flow = if self.held.is_empty() {
                frame(piece, lengths, offset, &mut sink)
            } else {
                self.held.extend_from_slice(piece);
                let flow = frame(&self.held, lengths, offset, &mut sink);
                self.held.clear();
                flow
            };
            flow?;
        }
    }

    #[cold]
    fn refuse(
        &self,
        defect: &Defect,
        sink: &mut impl FnMut(Frame<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        sink(match *defect {
            Defect::TooLong => Frame::TooLong,
            Defect::Corrupt(what) => Frame::Corrupt { what, offset: self.offset },
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn lengths(prelude: &[u8], max_bytes: usize) -> Result<Lengths, Defect> {
    let sum = prelude.get(..PRELUDE - CRC).map(crc32fast::hash);
    if sum.is_none() || number(prelude, PRELUDE - CRC) != sum {
        return Err(Defect::Corrupt("the checksum of its lengths is wrong"));
    }
    let length = |at| number(prelude, at).and_then(|length| usize::try_from(length).ok());
    let total = length(0).unwrap_or(usize::MAX);
    let headers = length(4).unwrap_or(usize::MAX);
    if total.checked_sub(PRELUDE + CRC).is_none_or(|room| headers > room) {
        return Err(Defect::Corrupt("its lengths contradict each other"));
    }
    if headers > MAX_HEADER_BYTES {
        return Err(Defect::Corrupt("its headers are longer than 128 KiB"));
    }
    if total > max_bytes { Err(Defect::TooLong) } else { Ok(Lengths { total, headers }) }
}

/// Pass a whole frame to `sink`.
fn frame(
    bytes: &[u8],
    lengths: Lengths,
    offset: u64,
    sink: &mut impl FnMut(Frame<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let corrupt = |what| Frame::Corrupt { what, offset };
    let end = lengths.total - CRC;
    let sum = bytes.get(..end).map(crc32fast::hash);
    if sum.is_none() || number(bytes, end) != sum {
        return sink(corrupt("its checksum is wrong"));
    }
    let begin = PRELUDE + lengths.headers;
    let headers = match Headers::read(bytes.get(PRELUDE..begin).unwrap_or(&[])) {
        Ok(headers) => headers,
        Err(what) => return sink(corrupt(what)),
    };
    let data = bytes.get(begin..end).unwrap_or(&[]);
    match headers.message_type {
        None => sink(corrupt("it has no :message-type")),
        Some(b"exception") => {
            sink(Frame::Failure { code: headers.exception_type.unwrap_or(b""), message: b"", data })
        }
        Some(b"error") => sink(Frame::Failure {
            code: headers.error_code.unwrap_or(b""),
            message: headers.error_message.unwrap_or(b""),
            data,
        }),
        Some(_) => {
            let name = headers.event_type.unwrap_or(b"");
            sink(Frame::Event { name, data, offset, closed: true, wire: &[] })
        }
    }
}

/// The reserved headers that are used.
#[derive(Default)]
struct Headers<'a> {
    message_type: Option<&'a [u8]>,
    event_type: Option<&'a [u8]>,
    exception_type: Option<&'a [u8]>,
    error_code: Option<&'a [u8]>,
    error_message: Option<&'a [u8]>,
}

impl<'a> Headers<'a> {
    fn read(block: &'a [u8]) -> Result<Self, &'static str> {
        let mut headers = Self::default();
        // Real frames have three headers.  Only more than `FEW_HEADERS` names are collected and sorted.
        let mut names = [&[][..]; FEW_HEADERS];
        let mut count = 0;
        let mut more = Vec::new();
        let mut rest = block;
        while let Some((&length, after)) = rest.split_first() {
            if length == 0 {
                return Err("a header has no name");
            }
            let (name, after) = after.split_at_checked(usize::from(length)).ok_or(CUT)?;
            let (&kind, after) = after.split_first().ok_or(CUT)?;
            let (value, after) = value(kind, after)?;
            rest = after;
            match names.get_mut(count) {
                Some(place) => *place = name,
                None => more.push(name),
            }
            count += 1;
            let place = match name {
                b":message-type" => &mut headers.message_type,
                b":event-type" => &mut headers.event_type,
                b":exception-type" => &mut headers.exception_type,
                b":error-code" => &mut headers.error_code,
                b":error-message" => &mut headers.error_message,
                _ => continue,
            };
            if kind != STRING {
                return Err("a reserved header is no string");
            }
            *place = Some(value);
        }
        let few = names.get(..count.min(FEW_HEADERS)).unwrap_or(&[]);
        let twice = if more.is_empty() {
            few.iter().enumerate().any(|(at, name)| few.iter().skip(at + 1).any(|n| n == name))
        } else {
            more.extend_from_slice(few);
            more.sort_unstable();
            more.windows(2).any(|pair| pair.first() == pair.last())
        };
        if twice { Err("a header stands in it twice") } else { Ok(headers) }
    }
}

const CUT: &str = "a header is cut off";

/// Return a header's value and the bytes after the value.
fn value(kind: u8, bytes: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let (length, rest) = match kind {
        // true, false
        0 | 1 => (0, bytes),
        // byte, short, integer
        2 => (1, bytes),
        3 => (2, bytes),
        4 => (4, bytes),
        // long, timestamp
        5 | 8 => (8, bytes),
        // UUID
        9 => (16, bytes),
        // bytes, string
        6 | STRING => {
            let (length, rest) = bytes.split_first_chunk().ok_or(CUT)?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return Err("a header has a type that does not exist"),
    };
    rest.split_at_checked(length).ok_or(CUT)
}
