//! `Core`: the stages after framing.
//!
//! In: framed events, stray lines and failures.  Out: deltas of the dialect, or one error.
//!
//! Law: in debug builds each delta is checked against the laws of the contract.

use std::borrow::Cow;
use std::sync::Arc;

use super::options::Options;
use crate::contract::{Delta, ErrorCode, Failure, Laws, Output, TextOnlyDelta};
use crate::dialect::{self, State};
use crate::emit::{Emitter, StreamOptions};
use crate::error::{Error, ErrorKind};
use crate::framing::Bytes;
use crate::json::Reader;
use crate::json::scan::{JsonScan, Verdict};
use crate::markup::MarkupLayer;
use crate::provider_error::ErrorObject;
use crate::sink::DeltaSink;

/// The stages after framing.  They are separate from the framer, so that frames may borrow from it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Core {
    options: Arc<StreamOptions>,
    state: State,
    emitter: Emitter,
    markup: Option<Box<MarkupLayer>>,
    stray: BareJson,
    /// A line had a field name that differs from `data` only in case.
    misspelt: bool,
    /// Checks every delta in debug builds.
    laws: Option<Box<Laws>>,
}

/// Bare JSON that is collected until it is whole.
#[derive(Clone, Debug, Default, PartialEq)]
struct BareJson {
    text: Vec<u8>,
    scan: JsonScan,
    offset: u64,
}

/// An event of the framing.
#[derive(Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) name: Bytes<'a>,
    pub(super) data: Bytes<'a>,
    pub(super) offset: u64,
    pub(super) closed: bool,
    pub(super) wire: Bytes<'a>,
}

impl<'a> Event<'a> {
    /// Build an event without a name from data outside of events.
    pub(super) fn from_data(data: &'a [u8]) -> Self {
        let nothing = Bytes::Valid("");
        let data = Bytes::Unchecked(data);
        Self { name: nothing, data, offset: 0, closed: true, wire: nothing }
    }
}

/// An output that checks each delta in debug builds.
struct CheckedOutput<'a, O> {
    out: &'a mut O,
    laws: Option<&'a mut Laws>,
}

impl<O: Output> Output for CheckedOutput<'_, O> {
    #[inline]
    fn delta(&mut self, delta: &Delta<&str>) {
        if let Some(laws) = &mut self.laws {
            let verdict = laws.check(delta);
            debug_assert!(verdict.is_ok(), "{verdict:?}");
        }
        self.out.delta(delta);
    }

    #[inline]
    fn text_only(&mut self, seq: u64, delta: TextOnlyDelta<'_>) {
        if let Some(laws) = &mut self.laws {
            let delta = Delta { seq, payload: delta.into(), provider_raw: None };
            let verdict = laws.check(&delta);
            debug_assert!(verdict.is_ok(), "{verdict:?}");
        }
        self.out.text_only(seq, delta);
    }
}

impl Core {
    pub(super) fn new(options: Options, state: State) -> Self {
        let Options { stream, markup } = options;
        let stream = Arc::new(stream);
        Self {
            state,
            emitter: Emitter::new(Arc::clone(&stream)),
            markup: markup.map(|wanted| Box::new(MarkupLayer::new(&wanted))),
            options: stream,
            stray: BareJson::default(),
            misspelt: false,
            laws: cfg!(debug_assertions).then(|| Box::new(Laws::of_decoder())),
        }
    }

    pub(super) fn options(&self) -> &StreamOptions {
        &self.options
    }

    /// Return true after the terminal.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.emitter.ended()
    }

    /// Return the sequence number of the last delta.
    pub(super) fn last_seq(&self) -> u64 {
        self.emitter.last_seq()
    }

    /// Drop bare JSON that is being collected.
    pub(super) fn drop_bare_json(&mut self) {
        self.stray = BareJson::default();
    }

    /// Apply the events at the start of unframed bytes while they match templates; returns their length.
    #[inline]
    pub(super) fn apply_templates_unframed(
        &mut self,
        bytes: Bytes<'_>,
        out: &mut impl Output,
    ) -> usize {
        self.with_sink(out, |state, sink| state.apply_templates_unframed(bytes, sink))
    }

    fn with_sink<O: Output, R>(
        &mut self,
        out: &mut O,
        f: impl FnOnce(&mut State, &mut DeltaSink<'_, CheckedOutput<'_, O>>) -> R,
    ) -> R {
        let laws = self.laws.as_deref_mut().filter(|_| cfg!(debug_assertions));
        let mut checked = CheckedOutput { out, laws };
        let mut sink = DeltaSink::new(&mut self.emitter, self.markup.as_deref_mut(), &mut checked);
        f(&mut self.state, &mut sink)
    }

    /// Apply an event that repeats a template, and return true.  Return false for any other event.
    #[inline]
    pub(super) fn apply_template(
        &mut self,
        name: &[u8],
        data: &[u8],
        wire: &[u8],
        out: &mut impl Output,
    ) -> bool {
        !self.options.provider_raw
            && self.with_sink(out, |state, sink| {
                let repeated = state.apply_template(name, data.trim_ascii(), wire, sink);
                if repeated {
                    sink.end_frame();
                }
                repeated
            })
    }

    #[inline(never)]
    pub(super) fn event(&mut self, event: Event<'_>, out: &mut impl Output) {
        let Event { offset, closed, .. } = event;
        let (name, data) = (event.name.as_bytes(), event.data.as_bytes().trim_ascii());
        match data.first() {
            None => {}
            Some(b'[') if data.starts_with(b"[DONE]") => self.with_sink(out, |state, sink| {
                state.close(sink);
                sink.end();
            }),
            Some(b'{' | b'[') => {
                if let Err(error) = self.json(&event, out)
                    && closed
                {
                    self.lines(event.name, data, offset, error, out);
                }
            }
            Some(_) if name == b"error" => {
                let message = String::from_utf8_lossy(data);
                let error = ErrorObject::from_message(&message);
                let failure = error.failure(&self.options.response, "");
                self.error(out, failure);
            }
            Some(_) => self.noise(offset, out),
        }
    }

    /// End the stream with the failure that a frame reports.
    #[cold]
    pub(super) fn failure(
        &mut self,
        code: &[u8],
        message: &[u8],
        data: &[u8],
        out: &mut impl Output,
    ) {
        let text = String::from_utf8_lossy;
        let data = text(data);
        let mut reader = Reader::new(&data, self.options.limits.depth);
        let json = reader.skip().and_then(|()| reader.end());
        let said = match json.and_then(|()| ErrorObject::read(&data)) {
            Ok(said) => said.named(&text(code), &text(message)),
            Err(_) => {
                ErrorObject::default().named(&text(code), &text(message)).named("", data.trim())
            }
        };
        self.with_sink(out, |state, sink| {
            if json.is_ok() && data.starts_with('{') {
                sink.begin_frame(&data);
            }
            state.close(sink);
            sink.error(sink.failure_of(said));
        });
    }

    fn noise(&mut self, offset: u64, out: &mut impl Output) {
        self.with_sink(out, |_, sink| {
            sink.warn("noise", "data that is no JSON was skipped", Some(offset));
            sink.end_frame();
        });
    }

    /// Read each line as a JSON value.  A proxy may join several values into one event.
    fn lines(
        &mut self,
        name: Bytes<'_>,
        data: &[u8],
        offset: u64,
        error: Error,
        out: &mut impl Output,
    ) {
        let kind = error.kind;
        let mut error = Some(error);
        // A depth error is final.  Any other error may mean several valid values, one on each line.
        if kind != ErrorKind::TooDeep && memchr::memchr(b'\n', data).is_some() {
            error = None;
            for line in data.split(|byte| *byte == b'\n') {
                let line = line.trim_ascii();
                if line.starts_with(b"[DONE]") {
                    self.event(Event { name, offset, ..Event::from_data(line) }, out);
                } else if !line.is_empty()
                    && let Err(found) = self.json(&Event { name, ..Event::from_data(line) }, out)
                {
                    error = Some(found);
                    break;
                }
            }
        }
        if let Some(error) = error {
            let message = if error.kind == ErrorKind::TooDeep {
                format!(
                    "limit reached: depth ({}) in the event at byte {offset}",
                    self.options.limits.depth
                )
            } else {
                format!("{error} of the data of the event at byte {offset}")
            };
            self.error(out, Failure::new(ErrorCode::ProtocolError, message.into()));
        }
    }

    /// Read one JSON text: an object or an array of objects.  A text that is not valid JSON has no effect.
    fn json(&mut self, event: &Event<'_>, out: &mut impl Output) -> Result<(), Error> {
        let name = event.name.whole_text().unwrap_or("");
        let text = match event.data.whole_text() {
            Some(text) => Cow::Borrowed(text.trim_ascii()),
            None => String::from_utf8_lossy(event.data.as_bytes().trim_ascii()),
        };
        let max_depth = self.options.limits.depth;
        if text.starts_with('[') {
            let mut objects = Vec::new();
            let mut reader = Reader::new(&text, max_depth);
            reader.array(|reader| {
                objects.push(reader.raw()?);
                Ok(())
            })?;
            reader.end()?;
            for json in objects.into_iter().filter(|json| json.starts_with('{')) {
                self.object(dialect::Frame { name, json, wire: "", max_depth }, out)?;
            }
        } else {
            let wire = event.wire.whole_text().unwrap_or("");
            self.object(dialect::Frame { name, json: &text, wire, max_depth }, out)?;
        }
        if matches!(text, Cow::Owned(_)) {
            self.with_sink(out, |_, sink| {
                sink.warn("invalid_utf8", "invalid UTF-8 became U+FFFD", None);
            });
        }
        Ok(())
    }

    #[inline]
    fn object(&mut self, frame: dialect::Frame<'_>, out: &mut impl Output) -> Result<(), Error> {
        self.with_sink(out, |state, sink| {
            sink.begin_frame(frame.json);
            let read = state.frame(frame, sink);
            // The frame ends after a failure too.  Text that is not JSON must not become the raw event of the error.
            sink.end_frame();
            read
        })
    }

    /// End the stream with the error that the body of a refused response describes.
    #[cold]
    pub(super) fn refused(&mut self, body: &[u8], out: &mut impl Output) {
        let (failure, json) = self.options.response.refusal(body, "");
        if let Some(json) = json.filter(|json| json.starts_with('{')) {
            self.with_sink(out, |_, sink| sink.begin_frame(&json));
        }
        self.error(out, failure);
    }

    /// Read a line without a field.  Bare JSON begins with a bracket and may extend over several lines.
    pub(super) fn stray_line(
        &mut self,
        line: &[u8],
        offset: u64,
        record: bool,
        out: &mut impl Output,
    ) {
        let trimmed = line.trim_ascii_start();
        if self.stray.text.is_empty() {
            if !matches!(trimmed.first(), Some(b'{' | b'[')) {
                self.misspelt |=
                    line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"data:"));
                if !trimmed.is_empty() && (record || memchr::memchr(b':', line).is_none()) {
                    self.noise(offset, out);
                }
                return;
            }
            self.stray.offset = offset;
        }
        let bound = self.options.limits.event_bytes;
        if self.stray.text.len().saturating_add(line.len()) > bound {
            let message = format!("limit reached: event_bytes ({bound})");
            return self.error(out, Failure::new(ErrorCode::ProtocolError, message.into()));
        }
        // Nearly always this line is the whole body.  Reading it at once is the cheapest test.
        if self.stray.text.is_empty()
            && trimmed.first() == Some(&b'{')
            && (self.apply_template(b"", trimmed, b"", out)
                || self.json(&Event::from_data(trimmed), out).is_ok())
        {
            return;
        }
        if !self.stray.text.is_empty() {
            // The line break is added between two lines and not after each, because the last line may be cut inside a
            // string.
            self.gather(b"\n", record, out);
        }
        self.gather(line, record, out);
        if self.stray.text.is_empty() {
            self.stray = BareJson::default();
        }
    }

    /// Collect more bare JSON.  A complete value is read at once; another value may follow it without a separator.
    fn gather(&mut self, bytes: &[u8], record: bool, out: &mut impl Output) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.emitter.ended() {
            let end = self.stray.scan.feed_value(rest);
            let (value, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
            self.stray.text.extend_from_slice(value);
            rest = after;
            let verdict = self.stray.scan.verdict();
            match verdict {
                Verdict::Open => {}
                Verdict::Empty => self.stray.text.clear(),
                Verdict::Complete | Verdict::Wrong => {
                    let stray = std::mem::take(&mut self.stray);
                    self.stray.offset = stray.offset;
                    if verdict == Verdict::Complete || record {
                        self.event(
                            Event { offset: stray.offset, ..Event::from_data(&stray.text) },
                            out,
                        );
                    } else {
                        self.noise(stray.offset, out);
                    }
                }
            }
        }
    }

    pub(super) fn error(&mut self, out: &mut impl Output, failure: Failure<Box<str>>) {
        self.with_sink(out, |state, sink| {
            state.close(sink);
            sink.error(failure);
        });
    }

    pub(super) fn end_of_body(&mut self, out: &mut impl Output, fed_anything: bool) {
        if !fed_anything {
            let mut failure = Failure::new(ErrorCode::ProtocolError, "the body is empty".into());
            failure.retryable = Some(true);
            return self.error(out, failure);
        }
        if self.misspelt && self.emitter.last_seq() == 0 {
            let message = "no field is named `data`, only others that differ in case";
            return self.error(out, Failure::new(ErrorCode::ProtocolError, message.into()));
        }
        let message = "the stream stopped without any sign of its end";
        let lost = Failure::new(ErrorCode::ConnectionLost, message.into());
        self.with_sink(out, |state, sink| {
            state.close(sink);
            sink.end_of_body(lost);
        });
    }

    pub(super) fn not_a_stream(&mut self, out: &mut impl Output, page: &str) {
        let message = format!("the body is a page, no stream; it begins: {page}");
        let mut failure = Failure::new(ErrorCode::ProtocolError, message.into());
        failure.retryable = Some(true);
        self.error(out, failure);
    }

    pub(super) fn fail(&mut self, out: &mut impl Output, failure: Failure<Box<str>>) {
        self.with_sink(out, |state, sink| {
            state.close(sink);
            if sink.finished() {
                sink.warn("failed_after_finish", failure.message.as_deref().unwrap_or(""), None);
            }
            sink.end_of_body(failure);
        });
    }
}
