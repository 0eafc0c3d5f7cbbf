//! Detection of the dialect of a body, for callers that do not know it.
//!
//! In: the first bytes of a body, cut anywhere, and its content type.  Out: the possible dialects.  One if the bytes
//! identify it, two if the bytes fit both (common for a body that is only an error), none without any sign.
//!
//! `dialect::members` tells the dialect of one event.
//!
//! Laws:
//! - Only the members of the first events count.  Text that a model wrote is never inspected.
//! - An event counts when it is whole, or when the bytes end: the result does not depend on the chunking.

use std::ops::ControlFlow;

use crate::dialect::batch::{BatchLine, may_be_line};
use crate::dialect::members::{by_frame, dialects_of};
use crate::dialect::{Dialect, REGISTRY};
use crate::framing::aws_event_stream::AwsEventStream;
use crate::framing::{Frame, Framing};
use crate::json::scan::{JsonScan, Verdict};

/// Maximum number of bytes to inspect.
pub const ENOUGH: usize = 64 << 10;
/// Maximum nesting depth of a line of a batch.
const LINE_DEPTH: usize = 256;
/// Maximum number of events to inspect.
const EVENTS: usize = 16;

/// Return the dialects that fit the first bytes of a body; at most two.
///
/// ```
/// use deltafold::detect::detect;
/// assert_eq!(detect(b"data: {\"choices\":[]}\n\n", None), ["openai-chat"]);
/// assert_eq!(detect(b"hello", None), [""; 0]);
/// ```
pub fn detect(first_bytes: &[u8], content_type: Option<&str>) -> Vec<&'static str> {
    let mut detector = Detector::default();
    if content_type.is_some_and(|name| name.contains("vnd.amazon.eventstream")) {
        detector.form = Form::binary();
    }
    let text = first_bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(first_bytes);
    // The answer of a line of a batch may come after a long request.
    if let Some(found) = of_batch_line(text) {
        return found;
    }
    detector.feed(first_bytes);
    detector.finish()
}

/// Return whether a text is a line of a batch's result file, which may be cut.
///
/// ```
/// use deltafold::detect::is_batch_line;
/// assert!(is_batch_line(br#"{"id": "batch_req_1", "custom_id": "a", "resp"#));
/// assert!(!is_batch_line(br#"{"id": "chatcmpl-1", "object": "chat.completion"}"#));
/// ```
pub fn is_batch_line(text: &[u8]) -> bool {
    of_batch_line(text).is_some()
}

/// Return the dialects of the answer in the line of a batch's result file.
///
/// The answer may come after a long request, so that the whole text is read.
fn of_batch_line(text: &[u8]) -> Option<Vec<&'static str>> {
    let text = text.trim_ascii_start();
    let line = text.get(..memchr::memchr(b'\n', text).unwrap_or(text.len())).unwrap_or(text);
    if !may_be_line(line) {
        return None;
    }
    let read = |json: &[u8]| {
        let json = String::from_utf8_lossy(json);
        BatchLine::read(&json, LINE_DEPTH).map(|line| line.dialects())
    };
    // A line that is printed over several ones begins with a bracket alone.
    read(if line.trim_ascii_end() == b"{" { text } else { line })
}

/// Reader of the first bytes of a body, which tells its dialect and keeps the bytes.
///
/// The cost is linear in the number of bytes, whatever their chunking.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detector {
    seen: Vec<u8>,
    form: Form,
    /// The beginning of the line, the value or the frames that were not read.
    next: usize,
    /// The end of the bytes that were looked at.
    looked: usize,
    /// The name of the event whose data follow.
    name: String,
    events: usize,
    /// The dialects of the first event that fits two.
    doubt: Vec<&'static str>,
    found: Option<&'static str>,
}

/// The form of a body.
#[derive(Clone, Debug, Default, PartialEq)]
enum Form {
    /// Nothing but white space, and the brackets of an array.
    #[default]
    Unknown,
    /// Frames of AWS.
    Binary(AwsEventStream),
    /// A JSON value, which may extend over several lines.
    Value(JsonScan),
    /// Lines: those of server-sent events, or JSON.
    Lines,
}

impl Form {
    fn binary() -> Self {
        Self::Binary(AwsEventStream::new(ENOUGH))
    }
}

impl Detector {
    /// Read the next bytes, and return how many were taken.  No more are taken when the detector is full.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        let room = ENOUGH.saturating_sub(self.seen.len()).min(bytes.len());
        self.seen.extend_from_slice(bytes.get(..room).unwrap_or_default());
        self.read();
        room
    }

    /// Return the dialect, if the events so far identify it.
    pub fn found(&self) -> Option<&'static str> {
        self.found
    }

    /// Return true if no more bytes are taken.
    pub fn is_full(&self) -> bool {
        self.seen.len() >= ENOUGH
    }

    /// Return the bytes so far.
    pub fn seen(&self) -> &[u8] {
        &self.seen
    }

    /// Take the end of the bytes, and return the dialects that fit; at most two.
    pub fn finish(&mut self) -> Vec<&'static str> {
        if self.found.is_none() {
            let rest = self.seen.split_off(self.next);
            match self.form {
                Form::Value(_) => self.event("", &String::from_utf8_lossy(&rest)),
                Form::Lines => self.line(&rest),
                Form::Unknown | Form::Binary(_) => {}
            }
            self.seen.extend_from_slice(&rest);
        }
        if let Some(found) = self.found {
            return vec![found];
        }
        if let Form::Binary(_) = self.form {
            let in_frames = |row: &&Dialect| row.framing == Framing::AwsEventStream;
            return REGISTRY.iter().filter(in_frames).map(|row| row.name).collect();
        }
        self.doubt.clone()
    }

    /// Read what is whole.
    fn read(&mut self) {
        if let Form::Unknown = self.form {
            self.begin();
        }
        if let Form::Binary(_) = self.form {
            return self.frames();
        }
        if let Form::Value(_) = self.form {
            self.value();
        }
        while let Form::Lines = self.form
            && self.found.is_none()
        {
            let new = self.seen.get(self.looked..).unwrap_or_default();
            let Some(length) = memchr::memchr2(b'\n', b'\r', new) else {
                self.looked = self.seen.len();
                return;
            };
            let end = self.looked + length;
            let line = self.seen.get(self.next..end).unwrap_or_default().to_vec();
            self.looked = end + 1;
            self.next = self.looked;
            self.line(&line);
        }
    }

    /// Tell the form of the body.
    fn begin(&mut self) {
        while let Some(byte) = self.seen.get(self.next) {
            self.form = match byte {
                // The bytes of a BOM are ignored too.
                b' ' | b'\t' | b'\r' | b'\n' | b'[' | 0xEF | 0xBB | 0xBF => {
                    self.next += 1;
                    continue;
                }
                0 => Form::binary(),
                b'{' => Form::Value(JsonScan::default()),
                _ => Form::Lines,
            };
            self.looked = self.next;
            return;
        }
    }

    fn frames(&mut self) {
        let Form::Binary(framer) = &mut self.form else { return };
        let found = &mut self.found;
        let _ = framer.feed(self.seen.get(self.looked..).unwrap_or_default(), |frame| {
            if let Frame::Event { name, .. } = frame {
                *found = std::str::from_utf8(name).ok().and_then(by_frame);
            }
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.looked = self.seen.len();
    }

    fn value(&mut self) {
        let Form::Value(scan) = &mut self.form else { return };
        let length = scan.feed_value(self.seen.get(self.looked..).unwrap_or_default());
        match scan.verdict() {
            Verdict::Complete => {
                let end = self.looked + length;
                let json = self.seen.get(self.next..end).unwrap_or_default().to_vec();
                (self.next, self.looked, self.form) = (end, end, Form::Lines);
                self.event("", &String::from_utf8_lossy(&json));
            }
            // No value: its lines may be events.
            Verdict::Wrong => (self.looked, self.form) = (self.next, Form::Lines),
            Verdict::Empty | Verdict::Open => self.looked = self.seen.len(),
        }
    }

    fn line(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        if let Some(value) = line.strip_prefix("event:") {
            value.trim().clone_into(&mut self.name);
        } else if let Some(value) = line.strip_prefix("data:") {
            let name = std::mem::take(&mut self.name);
            self.event(&name, value.trim_start().trim_start_matches('['));
        } else if line.starts_with('{') {
            self.event("", &line);
        }
    }

    fn event(&mut self, name: &str, json: &str) {
        if self.events == EVENTS {
            return;
        }
        self.events += 1;
        let of_line = of_batch_line(json.as_bytes()).filter(|_| name.is_empty());
        match of_line.unwrap_or_else(|| dialects_of(name, json))[..] {
            [found] => self.found = Some(found),
            ref several if self.doubt.is_empty() => self.doubt = several.to_vec(),
            _ => {}
        }
    }
}
