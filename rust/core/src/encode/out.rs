//! `Out`: events in the framing of a target.
//!
//! In: JSON of events.  Out: bytes, or the JSON of each event for callers that need objects.
//!
//! Laws: an event is written whole.  A text event whose beginning was prepared costs copies and an escape, and allocates
//! nothing once the buffer has its size.

use super::escape::{escape_line_breaks, write_escaped};
use crate::framing::aws_event_stream::{FrameTooLong, HeaderBlock, write_frame, write_header};
use crate::json::{ObjectWriter, write_members};

/// Framing of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Server-sent events without names.
    Sse,
    /// Server-sent events with names.
    NamedSse,
    /// One JSON object a line.
    Ndjson,
    /// Elements of one JSON array.
    JsonArray,
    /// Frames of an AWS event stream.
    Frames,
}

/// Prepared beginning of an event that repeats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prefix {
    name: &'static str,
    text: String,
    /// Bytes of framing at the start of the text.
    framing: usize,
    /// Headers of the event's frame.
    headers: Option<&'static HeaderBlock>,
}

impl Prefix {
    /// Build the prefix of an event in frames with these headers.
    pub fn of_frames(headers: &'static HeaderBlock) -> Self {
        Self { headers: Some(headers), ..Self::default() }
    }
}

/// Events of a stream that were not taken yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Out {
    form: Form,
    text: String,
    frames: Vec<u8>,
    /// End of each event in the text, for a caller that needs objects.
    ends: Option<Vec<usize>>,
    /// Start of the JSON of the event that is being written.
    start: usize,
    written: u64,
    /// Number of bytes that were taken last; the next ones are likely to be as many.
    taken: usize,
}

impl Out {
    /// Build an empty output.  With `objects` it keeps the JSON of each event and writes no framing.
    pub fn new(form: Form, objects: bool) -> Self {
        Self {
            form,
            text: String::new(),
            frames: Vec::new(),
            ends: objects.then(Vec::new),
            start: 0,
            written: 0,
            taken: 0,
        }
    }

    /// Return the number of events so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Return the framing.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Return true if the caller needs objects.
    pub fn gives_objects(&self) -> bool {
        self.ends.is_some()
    }

    /// Return true if nothing is to be taken.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.frames.is_empty()
    }

    /// Take the bytes.
    pub fn take(&mut self) -> Vec<u8> {
        let bytes = if self.form == Form::Frames && self.ends.is_none() && self.text.is_empty() {
            std::mem::take(&mut self.frames)
        } else {
            std::mem::take(&mut self.text).into_bytes()
        };
        self.taken = bytes.len();
        bytes
    }

    /// Pass the bytes to `read` and drop them, but keep the memory.
    pub fn drain<T>(&mut self, read: impl FnOnce(&[u8]) -> T) -> T {
        let frames = self.form == Form::Frames && self.ends.is_none() && self.text.is_empty();
        let bytes = if frames { &self.frames } else { self.text.as_bytes() };
        let value = read(bytes);
        self.frames.clear();
        self.text.clear();
        value
    }

    /// Pass the JSON of each event to `read`, and drop all.
    pub fn drain_objects(&mut self, mut read: impl FnMut(&str)) {
        let mut start = 0;
        for end in self.ends.iter_mut().flat_map(std::mem::take) {
            read(self.text.get(start..end).unwrap_or(""));
            start = end;
        }
        self.text.clear();
    }

    /// Write an event whose members `fill` writes.
    pub fn event(&mut self, name: &'static str, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.begin(name);
        let written_from = self.text.len();
        write_members(&mut self.text, fill);
        escape_line_breaks(&mut self.text, written_from);
        self.end(name);
    }

    /// Write an event whose JSON is given.
    pub fn json_event(&mut self, name: &'static str, json: &str) {
        self.begin(name);
        let written_from = self.text.len();
        self.text.push_str(json);
        escape_line_breaks(&mut self.text, written_from);
        self.end(name);
    }

    /// Write text outside of events, such as an end marker.  A caller that needs objects does not get it.
    pub fn marker(&mut self, text: &str) {
        if self.ends.is_none() {
            self.text.push_str(text);
        }
    }

    /// Close the array of a target that is one; an array without elements is written whole.
    pub fn end_array(&mut self) {
        let text = if self.written == 0 { "[]" } else { "]" };
        self.marker(text);
    }

    /// Replace everything by a whole body.
    pub fn body(&mut self, json: &str) {
        self.frames.clear();
        self.text.clear();
        self.text.push_str(json);
        escape_line_breaks(&mut self.text, 0);
        if let Some(ends) = &mut self.ends {
            ends.clear();
            ends.push(self.text.len());
        }
        self.written += 1;
    }

    fn begin(&mut self, name: &'static str) {
        self.expect();
        self.start = self.text.len();
        if self.ends.is_none() {
            match self.form {
                Form::NamedSse => {
                    self.text.push_str("event: ");
                    self.text.push_str(name);
                    self.text.push_str("\ndata: ");
                }
                Form::Sse => self.text.push_str("data: "),
                Form::JsonArray => self.text.push(if self.written == 0 { '[' } else { ',' }),
                Form::Ndjson | Form::Frames => {}
            }
        } else if self.form == Form::Frames {
            self.text.push_str("{\"");
            self.text.push_str(name);
            self.text.push_str("\":");
        }
    }

    /// Reserve the memory of the first event after bytes were taken.  Otherwise the buffer would grow step by step each time.
    #[inline]
    fn expect(&mut self) {
        if self.text.capacity() == 0 && self.form != Form::Frames {
            self.text.reserve(self.taken);
        }
    }

    #[inline]
    fn end(&mut self, name: &'static str) {
        self.written += 1;
        if let Some(ends) = &mut self.ends {
            if self.form == Form::Frames {
                self.text.push('}');
            }
            ends.push(self.text.len());
            return;
        }
        match self.form {
            Form::Sse | Form::NamedSse => self.text.push_str("\n\n"),
            Form::Ndjson => self.text.push('\n'),
            Form::JsonArray => {}
            Form::Frames => {
                let headers = event_headers(name);
                self.frame(|out, payload| write_frame(out, &headers, payload));
            }
        }
    }

    /// Move the JSON of an event into a frame.
    #[inline]
    fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>, &[u8]) -> Result<(), FrameTooLong>) {
        if self.frames.capacity() == 0 {
            self.frames.reserve(self.taken);
        }
        let payload = self.text.get(self.start..).unwrap_or("");
        let written = write(&mut self.frames, payload.as_bytes());
        // Only a payload over 4 GiB has no frame, and the limits of a stream are below it.
        debug_assert!(written.is_ok(), "a frame of {} bytes", payload.len());
        self.text.truncate(self.start);
    }

    /// Prepare the beginning of an event: its framing, and `json` without its end.
    pub fn prepare(&self, prefix: &mut Prefix, name: &'static str, fill: impl FnOnce(&mut String)) {
        prefix.name = name;
        prefix.text.clear();
        match self.form {
            Form::NamedSse => {
                prefix.text.push_str("event: ");
                prefix.text.push_str(name);
                prefix.text.push_str("\ndata: ");
            }
            Form::Sse => prefix.text.push_str("data: "),
            Form::Ndjson | Form::JsonArray | Form::Frames => {}
        }
        prefix.framing = prefix.text.len();
        fill(&mut prefix.text);
        escape_line_breaks(&mut prefix.text, prefix.framing);
    }

    /// Prepare the end of an event that repeats: its JSON behind the text.
    pub fn rest(fill: impl FnOnce(&mut String)) -> String {
        let mut rest = String::new();
        fill(&mut rest);
        escape_line_breaks(&mut rest, 0);
        rest
    }

    /// Begin an event that was prepared.
    #[inline]
    pub fn repeat(&mut self, prefix: &Prefix) {
        if self.ends.is_none() && matches!(self.form, Form::Sse | Form::NamedSse | Form::Ndjson) {
            self.expect();
            self.text.push_str(&prefix.text);
        } else {
            self.begin(prefix.name);
            self.text.push_str(prefix.text.get(prefix.framing..).unwrap_or(""));
        }
    }

    /// Append a text as a piece of a JSON string to the event that began.
    #[inline]
    pub fn escaped(&mut self, text: &str) -> &mut Self {
        write_escaped(&mut self.text, text);
        self
    }

    /// Append JSON to the event that began.
    #[inline]
    pub fn piece(&mut self, json: &str) -> &mut Self {
        self.text.push_str(json);
        self
    }

    /// Append a whole number to the event that began.
    #[inline]
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.text.push_str(itoa::Buffer::new().format(number));
        self
    }

    /// Append JSON by a function to the event that began.
    pub fn value(&mut self, write: impl FnOnce(&mut String)) -> &mut Self {
        let start = self.text.len();
        write(&mut self.text);
        escape_line_breaks(&mut self.text, start);
        self
    }

    /// End the event that began by [`Self::repeat`].
    #[inline]
    pub fn finish(&mut self, prefix: &Prefix) {
        match prefix.headers {
            Some(headers) if self.ends.is_none() => {
                self.written += 1;
                self.frame(|out, payload| headers.write_frame(out, payload));
            }
            _ => self.end(prefix.name),
        }
    }
}

/// Return the headers of an event's frame.
pub fn event_headers(name: &str) -> Vec<u8> {
    let mut headers = Vec::with_capacity(96);
    let (header, kind) = if name.ends_with("Exception") {
        (":exception-type", "exception")
    } else {
        (":event-type", "event")
    };
    let fields = [(header, name), (":content-type", "application/json"), (":message-type", kind)];
    for (name, value) in fields {
        // Constants are within the lengths of a header.
        let written = write_header(&mut headers, name, value);
        debug_assert!(written.is_ok(), "{name}: {value}");
    }
    headers
}
