//! Framing of one JSON array whose elements arrive over time: body bytes in any chunking → one event per element.
//!
//! Laws:
//! - Every byte is scanned once to find the ends of elements.  Only strings and nesting are tracked; the JSON reader
//!   validates the rest.
//! - An element within one feed is borrowed.
//! - Commas and white space between elements are ignored.
//! - Another array after the end adds elements.
//! - Elements are passed on at once, so that those of an array that never closes are not lost.
//!
//! Source: `streamGenerateContent` of Gemini without `alt=sse`.

use std::ops::ControlFlow;

use super::Frame;

/// Framer of a JSON array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonArray {
    /// Bytes fed before the current feed.
    fed: u64,
    /// The outer array is open.
    inside: bool,
    state: ArrayState,
    /// The bytes of the current element from earlier feeds.
    held: Vec<u8>,
    /// Byte offset of the current element.
    offset: u64,
    max_bytes: usize,
}

/// Position of the next byte in the JSON structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ArrayState {
    /// Between elements.
    #[default]
    Between,
    /// Inside of an element, at this nesting depth.
    Nested(u64),
    /// Inside of a string, at this nesting depth.
    Text(u64),
    /// After a backslash in a string, at this nesting depth.
    Escape(u64),
    /// Inside of an element without brackets or quotes.
    Bare,
}

impl JsonArray {
    /// Build a framer that refuses elements over `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Read the next bytes and pass each finished element to `sink`, until `sink` breaks.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(Frame<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let fed = self.fed;
        self.fed = fed.saturating_add(bytes.len() as u64);
        let (mut start, mut at) = (0, 0);
        while let Some(&byte) = bytes.get(at) {
            let mut whole = false;
            match self.state {
                ArrayState::Between => {
                    if self.begins(byte) {
                        start = at;
                        self.offset = fed.saturating_add(at as u64);
                    }
                    at += 1;
                }
                ArrayState::Bare => {
                    whole = matches!(byte, b',' | b']') || byte.is_ascii_whitespace();
                    at += usize::from(!whole);
                }
                ArrayState::Nested(depth) => {
                    at += 1;
                    match byte {
                        b'"' => self.state = ArrayState::Text(depth),
                        b'{' | b'[' => self.state = ArrayState::Nested(depth.saturating_add(1)),
                        b'}' | b']' if depth > 1 => self.state = ArrayState::Nested(depth - 1),
                        b'}' | b']' => whole = true,
                        _ => {}
                    }
                }
                ArrayState::Text(depth) => {
                    let rest = bytes.get(at..).unwrap_or(&[]);
                    let found = memchr::memchr2(b'"', b'\\', rest);
                    at = found.map_or(bytes.len(), |found| at + found + 1);
                    match found.and_then(|found| rest.get(found)) {
                        Some(b'"') if depth == 0 => whole = true,
                        Some(b'"') => self.state = ArrayState::Nested(depth),
                        Some(_) => self.state = ArrayState::Escape(depth),
                        None => {}
                    }
                }
                ArrayState::Escape(depth) => {
                    at += 1;
                    self.state = ArrayState::Text(depth);
                }
            }
            if whole {
                self.element(bytes.get(start..at).unwrap_or(&[]), &mut sink)?;
            }
        }
        if self.state != ArrayState::Between {
            self.held.extend_from_slice(bytes.get(start..).unwrap_or(&[]));
            if self.held.len() > self.max_bytes {
                return sink(Frame::TooLong);
            }
        }
        ControlFlow::Continue(())
    }

    /// Handle a byte between elements.  Returns whether it begins an element.
    fn begins(&mut self, byte: u8) -> bool {
        self.state = match byte {
            b'[' if !self.inside => {
                self.inside = true;
                ArrayState::Between
            }
            b']' => {
                self.inside = false;
                ArrayState::Between
            }
            // The bytes of a BOM are ignored too.
            b',' | 0xEF | 0xBB | 0xBF => ArrayState::Between,
            byte if byte.is_ascii_whitespace() => ArrayState::Between,
            b'{' | b'[' => ArrayState::Nested(1),
            b'"' => ArrayState::Text(0),
            _ => ArrayState::Bare,
        };
        self.state != ArrayState::Between
    }

    fn element(
        &mut self,
        piece: &[u8],
        sink: &mut impl FnMut(Frame<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.state = ArrayState::Between;
        let offset = std::mem::take(&mut self.offset);
        if self.held.len().saturating_add(piece.len()) > self.max_bytes {
            return sink(Frame::TooLong);
        }
        let event = |data| Frame::Event { name: b"", data, offset, closed: true, wire: &[] };
        if self.held.is_empty() {
            return sink(event(piece));
        }
        self.held.extend_from_slice(piece);
        let flow = sink(event(&self.held));
        self.held.clear();
        flow
    }
}
