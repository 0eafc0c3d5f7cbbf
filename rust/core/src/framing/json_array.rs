//! One JSON array whose elements arrive over time: body bytes in any chunking → an event an element.
//!
//! Laws: every byte is looked at once to find where an element ends (strings and nesting, nothing more: whether it is
//! JSON is the reader's question); an element that lies whole in one feed is borrowed; commas and white space between
//! elements say nothing; another array after the end brings more elements; an array that never closes gives what it has.
//! Source: `streamGenerateContent` of Gemini without `alt=sse`.

use std::ops::ControlFlow;

use super::Frame;

/// The framer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonArray {
    /// Bytes fed before the current feed.
    fed: u64,
    /// Whether the outer array is open.
    inside: bool,
    state: ArrayState,
    /// What of the current element came in earlier feeds.
    held: Vec<u8>,
    /// Where the current element begins.
    offset: u64,
    max_bytes: usize,
}

/// Where the next byte stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ArrayState {
    /// Between elements.
    #[default]
    Between,
    /// In objects and arrays, this many deep.
    Nested(u64),
    /// In a string at this depth.
    Text(u64),
    /// Behind a backslash in it.
    Escape(u64),
    /// In an element without brackets or quotes.
    Bare,
}

impl JsonArray {
    /// A framer that refuses elements over `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Takes the next bytes and hands every finished element to `sink`, which breaks when it wants no more.
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

    /// Takes a byte between elements; true when it begins one.
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
            // The bytes of a BOM say nothing either.
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
