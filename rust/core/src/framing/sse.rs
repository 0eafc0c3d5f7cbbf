//! Framing of server-sent events: body bytes in any chunking → [`Frame`]s.
//!
//! Laws:
//! - A line ends at CR LF, LF or CR only.  A CR ends it at once; a following LF is dropped, even in a later feed.
//! - Every byte is searched once.
//! - The data of an event within one feed is borrowed, never copied.
//!
//! Source: WHATWG HTML, "Server-sent events" (parsing an event stream), and the deviations of LLM servers:
//! - An event without a blank line at the end of the body is passed on with `closed: false`.
//! - The field `error` of old llama.cpp servers is an event with the name `error`.
//! - Lines with unknown fields are passed on as strays, because they may be bare JSON.

use std::ops::ControlFlow;

use super::{Frame, Receiver};

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Framer of server-sent events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sse {
    /// Bytes fed before the current feed.
    fed: u64,
    /// Number of matched bytes of the BOM; 3 once the start of the body is decided.
    bom: usize,
    skip_lf: bool,
    /// The unterminated line.
    line: Vec<u8>,
    line_offset: u64,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    data_offset: u64,
    max_bytes: usize,
    stopped_at: Option<u64>,
}

impl Sse {
    /// Build a framer that refuses events over `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Return the number of bytes read so far.
    pub fn fed(&self) -> u64 {
        self.fed
    }

    /// Read the next bytes and pass each finished frame to `sink`, until `sink` breaks.
    pub fn feed(&mut self, bytes: &[u8], sink: impl Receiver) -> ControlFlow<()> {
        let mut at = self.skip_bom(bytes);
        let start = self.fed;
        self.fed = start.saturating_add(bytes.len() as u64);
        let flow = self.read(bytes, start, &mut at, sink);
        if flow.is_break() {
            self.stopped_at = Some(start.saturating_add(at as u64));
        }
        flow
    }

    /// Return the number of bytes up to the end of the event at which the sink broke.
    pub fn stopped_at(&self) -> Option<u64> {
        self.stopped_at
    }

    fn read<'a>(
        &mut self,
        bytes: &'a [u8],
        start: u64,
        at: &mut usize,
        mut sink: impl Receiver,
    ) -> ControlFlow<()> {
        // The data of the current event, while it is one line of this feed.
        let mut whole: &'a [u8] = &[];
        while let Some(mut rest) = bytes.get(*at..).filter(|rest| !rest.is_empty()) {
            if std::mem::take(&mut self.skip_lf) && rest.first() == Some(&b'\n') {
                *at += 1;
                continue;
            }
            if self.between_events() {
                match sink.unframed(rest) {
                    ControlFlow::Continue(taken) => *at += taken,
                    ControlFlow::Break(taken) => {
                        *at += taken;
                        return ControlFlow::Break(());
                    }
                }
                rest = bytes.get(*at..).unwrap_or_default();
                // Blank lines between events are ignored, in any number.
                let blank = rest.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
                if let Some(last) = blank.checked_sub(1) {
                    self.skip_lf = rest.get(last) == Some(&b'\r');
                    *at += blank;
                    continue;
                }
                if let Some(event) = WholeEvent::at_start_of(rest)
                    && event.bytes <= self.max_bytes
                {
                    let WholeEvent { name, data, data_at, .. } = event;
                    let offset = start + (*at + data_at) as u64;
                    let wire = rest.get(..event.bytes).unwrap_or_default();
                    *at += event.bytes;
                    sink.frame(Frame::Event { name, data, offset, closed: true, wire })?;
                    continue;
                }
                if rest.is_empty() {
                    break;
                }
            }
            let offset = start + *at as u64;
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                if self.line.is_empty() {
                    self.line_offset = offset;
                }
                self.line.extend_from_slice(rest);
                break;
            };
            let (line, tail) = rest.split_at(end);
            if self.line.len().saturating_add(line.len()) > self.max_bytes {
                return sink.frame(Frame::TooLong);
            }
            self.skip_lf = tail.first() == Some(&b'\r');
            *at += end + 1;
            // The same sum as for an open line, so that chunk boundaries do not move the limit.
            let held = self.data.len().saturating_add(whole.len());
            if self.line.len().saturating_add(line.len()).saturating_add(held) > self.max_bytes {
                return sink.frame(Frame::TooLong);
            }
            if self.line.is_empty() {
                self.take_line(line, offset, &mut whole, &mut sink)?;
            } else {
                self.line.extend_from_slice(line);
                let held = std::mem::take(&mut self.line);
                let mut copied: &[u8] = &[];
                self.keep(&mut whole);
                self.take_line(&held, self.line_offset, &mut copied, &mut sink)?;
                self.keep(&mut copied);
                // Keep the emptied buffer for the next line that is cut.
                self.line = held;
                self.line.clear();
                self.line_offset = 0;
            }
        }
        self.keep(&mut whole);
        // Only the line counts, as above, so that chunk boundaries do not move the limit.
        if self.line.len() > self.max_bytes {
            return sink.frame(Frame::TooLong);
        }
        ControlFlow::Continue(())
    }

    /// Take the end of the body.  The last line needs no line end, and the last event needs no blank line.
    pub fn close(&mut self, mut sink: impl Receiver) -> ControlFlow<()> {
        if self.bom < BOM.len() {
            self.line.extend(BOM.iter().take(self.bom));
            self.bom = BOM.len();
        }
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            let mut whole: &[u8] = &[];
            self.take_line(&line, self.line_offset, &mut whole, &mut sink)?;
            self.keep(&mut whole);
        }
        let mut whole: &[u8] = &[];
        self.dispatch(&mut whole, false, &mut sink)
    }

    /// Return whether the framer holds no part of an event or a line.
    #[inline]
    fn between_events(&self) -> bool {
        self.line.is_empty() && !self.has_data && self.name.is_empty()
    }

    /// Drop one leading BOM, which may be cut anywhere.  Returns the offset of the text.
    fn skip_bom(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let (Some(want), Some(byte)) = (BOM.get(self.bom), bytes.get(at)) {
            if want != byte {
                self.line.extend(BOM.iter().take(self.bom));
                self.bom = BOM.len();
                break;
            }
            self.bom += 1;
            at += 1;
        }
        at
    }

    /// Copy data that would otherwise end with the feed it borrows from.
    fn keep(&mut self, whole: &mut &[u8]) {
        self.data.extend_from_slice(whole);
        *whole = &[];
    }

    fn take_line<'a>(
        &mut self,
        line: &'a [u8],
        offset: u64,
        whole: &mut &'a [u8],
        sink: &mut impl Receiver,
    ) -> ControlFlow<()> {
        if let Some(value) = line.strip_prefix(b"data:") {
            self.take_data(value.strip_prefix(b" ").unwrap_or(value), offset, whole);
            return ControlFlow::Continue(());
        }
        if line.is_empty() {
            return self.dispatch(whole, true, sink);
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (field, rest) = line.split_at(colon);
        let value = rest.strip_prefix(b":").unwrap_or(rest);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"" | b"id" | b"retry" => {}
            b"data" => self.take_data(value, offset, whole),
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"error" => {
                self.name.clear();
                self.name.extend_from_slice(b"error");
                self.take_data(value, offset, whole);
            }
            _ => return sink.frame(Frame::Stray { line, offset, record: false }),
        }
        ControlFlow::Continue(())
    }

    fn take_data<'a>(&mut self, value: &'a [u8], offset: u64, whole: &mut &'a [u8]) {
        if self.has_data {
            self.keep(whole);
            self.data.push(b'\n');
            self.data.extend_from_slice(value);
        } else {
            self.has_data = true;
            self.data_offset = offset;
            *whole = value;
        }
    }

    fn dispatch(
        &mut self,
        whole: &mut &[u8],
        closed: bool,
        sink: &mut impl Receiver,
    ) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        if self.has_data {
            self.has_data = false;
            let data = if self.data.is_empty() { *whole } else { &self.data };
            let (offset, wire) = (self.data_offset, &[][..]);
            flow = sink.frame(Frame::Event { name: &self.name, data, offset, closed, wire });
            self.data.clear();
            self.data_offset = 0;
            *whole = &[];
        }
        self.name.clear();
        flow
    }
}

/// An event that lies whole in one feed and has the form that nearly all servers send: an optional `event` line, one
/// `data` line and a blank line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeEvent<'a> {
    name: &'a [u8],
    pub(crate) data: &'a [u8],
    /// Offset of the `data` line in the event.
    data_at: usize,
    /// Length of the event, including the blank line.
    pub(crate) bytes: usize,
}

impl<'a> WholeEvent<'a> {
    /// Return the event at the start of `bytes`.  Returns `None` for any other form, which is then read line by line.
    ///
    /// The cost is that of the event, or of the first two lines of another form.
    #[inline]
    pub(crate) fn at_start_of(bytes: &'a [u8]) -> Option<Self> {
        let (name, rest) = match bytes.strip_prefix(b"event: ") {
            Some(rest) => {
                let end = memchr::memchr2(b'\n', b'\r', rest)?;
                let (name, rest) = rest.split_at(end);
                (name, rest.strip_prefix(b"\n").or_else(|| rest.strip_prefix(b"\r\n"))?)
            }
            None => (&[][..], bytes),
        };
        let data_at = bytes.len() - rest.len();
        let rest = rest.strip_prefix(b"data: ")?;
        let (data, rest) = rest.split_at(memchr::memchr2(b'\n', b'\r', rest)?);
        let rest = rest.strip_prefix(b"\n\n").or_else(|| rest.strip_prefix(b"\r\n\r\n"))?;
        Some(Self { name, data, data_at, bytes: bytes.len() - rest.len() })
    }
}
