//! Framing of one JSON value per line: body bytes in any chunking → [`Frame::Stray`]s that are records.
//!
//! Laws:
//! - A line ends at LF only, because JSON text has no raw LF inside of a string.  One CR before it is dropped.
//! - Every byte is searched once.
//! - A line within one feed is borrowed.
//! - The last line needs no LF.
//!
//! Source: the documents of NDJSON and JSON Lines, and Ollama's server.

use std::ops::ControlFlow;

use super::Frame;

const BOM: &[u8] = &[0xEF, 0xBB, 0xBF];

/// Framer of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ndjson {
    /// Bytes fed before the current feed.
    fed: u64,
    /// The unterminated line.
    line: Vec<u8>,
    line_offset: u64,
    max_bytes: usize,
}

impl Ndjson {
    /// Build a framer that refuses lines over `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Read the next bytes and pass each finished line to `sink`, until `sink` breaks.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(Frame<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let start = self.fed;
        self.fed = start.saturating_add(bytes.len() as u64);
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if self.line.is_empty() {
                // Blank lines are ignored, in any number.
                let blank = rest.iter().take_while(|byte| **byte == b'\n').count();
                if blank > 0 {
                    at += blank;
                    continue;
                }
            }
            let offset = start.saturating_add(at as u64);
            let end = memchr::memchr(b'\n', rest);
            let (line, _) = rest.split_at(end.unwrap_or(rest.len()));
            if self.line.len().saturating_add(line.len()) > self.max_bytes {
                return sink(Frame::TooLong);
            }
            if self.line.is_empty() {
                self.line_offset = offset;
            }
            let Some(end) = end else {
                self.line.extend_from_slice(line);
                break;
            };
            at += end + 1;
            if self.line.is_empty() {
                record(line, offset, &mut sink)?;
            } else {
                self.line.extend_from_slice(line);
                let flow = record(&self.line, self.line_offset, &mut sink);
                self.line.clear();
                flow?;
            }
            self.line_offset = 0;
        }
        ControlFlow::Continue(())
    }

    /// Take the end of the body.
    pub fn close(&mut self, mut sink: impl FnMut(Frame<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let line = std::mem::take(&mut self.line);
        record(&line, self.line_offset, &mut sink)
    }
}

#[inline]
fn record(
    line: &[u8],
    offset: u64,
    sink: &mut impl FnMut(Frame<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = if offset == 0 { line.strip_prefix(BOM).unwrap_or(line) } else { line };
    if line.is_empty() {
        return ControlFlow::Continue(());
    }
    sink(Frame::Stray { line, offset, record: true })
}
