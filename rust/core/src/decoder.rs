//! Composes the stages; the only place with a policy for unknown, corrupt and stray input.
//!
//! | what comes | what happens |
//! |---|---|
//! | data that begins like JSON and is JSON | the dialect reads it |
//! | … and is none | each `data:` line alone; if one fails too, `error{protocol_error}` with its offset |
//! | … but the body ends inside its event | dropped: the stream ends as if cut there |
//! | `[DONE]` | the end marker |
//! | empty or blank data | ignored |
//! | data of an event named `error` that is no JSON | an error of these words |
//! | nothing but fields like `Data` | `error{protocol_error}` |
//! | other data, lines that are neither field nor JSON | skipped, counted in one warning |
//! | bare JSON outside of events (a JSON body) | gathered until it is whole, then read like an event's data |
//! | … that breaks the grammar | where each line is a record `error{protocol_error}`, else noise |
//! | a JSON array | each object in it is read |
//! | a frame that says that the stream failed | an error of its code and words |
//! | bytes that are no frame | `error{protocol_error}` |
//! | a frame, element or line that the body's end cuts off | dropped: the stream ends as if cut there |
//! | invalid UTF-8 | U+FFFD, one warning; outside of a string that is no JSON any more |
//! | an HTML page, a compressed body, an empty body | `error{protocol_error}` |
//! | the body of an HTTP status of 300 and above | collected (256 KiB); one error, see `provider_error` |
//! | anything after the terminal | ignored |

mod frame_handler;

use std::borrow::Cow;
use std::sync::Arc;

use frame_handler::{Event, FrameHandler};

use crate::contract::{Delta, ErrorCode, Failure, Laws, Output, TextOnlyDelta};
use crate::dialect::{self, State};
use crate::emit::{DeltaSink, Emitter, Options};
use crate::error::{Error, ErrorKind};
use crate::framing::sniff::{BodyKind, BodySniffer, PAGE_BYTES};
use crate::framing::{Bytes, Framer, Framing};
use crate::json::Reader;
use crate::json::scan::{JsonScan, Verdict};
use crate::provider_error::{BODY_BYTES, ErrorObject};

/// Bytes in any chunking → deltas.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoder {
    body: Body,
    /// How the protocol's bodies are framed, as a rule.
    usual: Framing,
    /// Boxed, so that a decoder is cheap to move.
    core: Box<Core>,
    fed_anything: bool,
}

/// What the body is, as far as that is known.
#[derive(Clone, Debug, PartialEq)]
enum Body {
    Unknown(BodySniffer),
    Framed(Framer),
    /// An HTML or XML page, its first bytes kept.
    Page(Vec<u8>),
    /// The body of an HTTP refusal, its first [`BODY_BYTES`] kept.
    Refused(Vec<u8>),
}

/// Everything behind the framing, apart from it so that frames may borrow from the framer.
#[derive(Clone, Debug, PartialEq)]
struct Core {
    options: Arc<Options>,
    state: State,
    emitter: Emitter,
    stray: BareJson,
    /// A line was named `data` but for its case.
    misspelt: bool,
    /// Checks every delta in debug builds.
    laws: Option<Box<Laws>>,
}

/// Bare JSON that is being gathered.
#[derive(Clone, Debug, Default, PartialEq)]
struct BareJson {
    text: Vec<u8>,
    scan: JsonScan,
    offset: u64,
}

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

impl Decoder {
    /// Before the first byte; `None` when `options.dialect` is no dialect.
    pub fn new(options: Options) -> Option<Self> {
        let row = dialect::find(options.dialect)?;
        let options = Arc::new(options);
        let refused = options.response.is_refusal();
        Some(Self {
            body: if refused {
                Body::Refused(Vec::new())
            } else {
                Body::Unknown(BodySniffer::default())
            },
            usual: row.framing,
            core: Box::new(Core {
                state: (row.state)(),
                emitter: Emitter::new(Arc::clone(&options)),
                options,
                stray: BareJson::default(),
                misspelt: false,
                laws: cfg!(debug_assertions).then(|| Box::new(Laws::of_decoder())),
            }),
            fed_anything: false,
        })
    }

    /// What the caller said.
    pub fn options(&self) -> &Options {
        &self.core.options
    }

    /// Whether the terminal has left.
    pub fn finished(&self) -> bool {
        self.core.emitter.ended()
    }

    /// The seq of the last delta that left.
    pub fn last_seq(&self) -> u64 {
        self.core.emitter.last_seq()
    }

    /// Takes the next bytes of the body, in any chunking.  Cost is linear in their number.
    pub fn feed(&mut self, bytes: &[u8], out: &mut impl Output) {
        if self.finished() || bytes.is_empty() {
            return;
        }
        self.fed_anything = true;
        if let Body::Unknown(_) = self.body {
            self.begin(bytes, out);
        }
        match &mut self.body {
            Body::Framed(_) => self.framed(bytes, out),
            Body::Page(page) => keep(page, bytes),
            Body::Refused(body) => {
                let room = BODY_BYTES.saturating_sub(body.len());
                body.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
                if body.len() == BODY_BYTES {
                    self.core.refused(body, out);
                }
            }
            Body::Unknown(_) => {}
        }
        if self.finished() {
            // What follows the terminal is ignored: neither its bytes nor their number stay, wherever the feed was cut.
            self.body = Body::Unknown(BodySniffer::default());
            self.core.stray = BareJson::default();
        }
    }

    fn framed(&mut self, bytes: &[u8], out: &mut impl Output) {
        if let Body::Framed(framer) = &mut self.body
            && !self.core.emitter.ended()
        {
            let _ = framer.feed(bytes, FrameHandler::new(&mut self.core, out, bytes));
        }
    }

    /// Finds out what the body is, if `bytes` tell it; they themselves are yet to be taken.
    fn begin(&mut self, bytes: &[u8], out: &mut impl Output) {
        let Body::Unknown(sniff) = &mut self.body else { return };
        let max_bytes = self.core.options.limits.event_bytes;
        match sniff.inspect(bytes, self.usual, max_bytes) {
            None => {}
            Some(BodyKind::Framed(framing)) => self.settle(framing, out),
            // What comes before the page is white space, here or in earlier feeds.
            Some(BodyKind::Page) => self.body = Body::Page(Vec::new()),
            Some(BodyKind::Compressed) => {
                let message =
                    "the body is compressed (gzip); the transport must undo the content encoding";
                self.core.fail(out, Failure::new(ErrorCode::ProtocolError, message.into()));
            }
        }
    }

    /// Settles the framing and gives it what came in earlier feeds.
    fn settle(&mut self, framing: Framing, out: &mut impl Output) {
        let framer = Framer::new(framing, self.core.options.limits.event_bytes);
        if let Body::Unknown(sniff) = std::mem::replace(&mut self.body, Body::Framed(framer)) {
            self.framed(&sniff.into_seen(), out);
        }
    }

    /// Takes the end of the body.  After it the stream has its terminal.
    pub fn close(&mut self, out: &mut impl Output) {
        if self.finished() {
            return;
        }
        match &mut self.body {
            Body::Page(page) => {
                let page = String::from_utf8_lossy(page).into_owned();
                return self.core.not_a_stream(out, &page);
            }
            Body::Refused(body) => return self.core.refused(body, out),
            Body::Unknown(_) => self.settle(Framing::Sse, out),
            Body::Framed(_) => {}
        }
        if let Body::Framed(framer) = &mut self.body {
            let handler = FrameHandler::new(&mut self.core, out, b"");
            if framer.close(handler).is_break() {
                return;
            }
        }
        self.core.end_of_body(out, self.fed_anything);
    }

    /// Ends the stream for a reason from outside: the transport failed, the caller gave up.  After a finish reason the
    /// message is whole and the failure only a warning.
    pub fn fail(&mut self, failure: Failure<Box<str>>, out: &mut impl Output) {
        self.core.fail(out, failure);
    }
}

impl Core {
    fn with_sink<O: Output, R>(
        &mut self,
        out: &mut O,
        f: impl FnOnce(&mut State, &mut DeltaSink<'_, CheckedOutput<'_, O>>) -> R,
    ) -> R {
        let laws = self.laws.as_deref_mut().filter(|_| cfg!(debug_assertions));
        let mut checked = CheckedOutput { out, laws };
        let mut sink = DeltaSink::new(&mut self.emitter, &mut checked);
        f(&mut self.state, &mut sink)
    }

    /// Applies an event that repeats a template; false for any other.
    #[inline]
    fn apply_template(
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
    fn event(&mut self, event: Event<'_>, out: &mut impl Output) {
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

    /// The framing's own word that the stream failed.
    #[cold]
    fn failure(&mut self, code: &[u8], message: &[u8], data: &[u8], out: &mut impl Output) {
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

    /// Several JSON values that a proxy joined into one event: each line alone.
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
        // Too deep is what it is; anything else may be several values, each fine alone.
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

    /// Reads one JSON text, an object or an array of objects.  On an error nothing of it was applied.
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
            // Also after a failure: text that is no JSON must not ride on the error.
            sink.end_frame();
            read
        })
    }

    /// Ends the stream with the error that the body of a refused response describes.
    #[cold]
    fn refused(&mut self, body: &[u8], out: &mut impl Output) {
        let (failure, json) = self.options.response.refusal(body, "");
        if let Some(json) = json.filter(|json| json.starts_with('{')) {
            self.with_sink(out, |_, sink| sink.begin_frame(&json));
        }
        self.error(out, failure);
    }

    /// A line that is no field: bare JSON begins with a bracket and may go on over several lines.
    fn stray_line(&mut self, line: &[u8], offset: u64, record: bool, out: &mut impl Output) {
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
        // Nearly always one line is the whole body, and reading it is the cheapest way to find out.
        if self.stray.text.is_empty()
            && trimmed.first() == Some(&b'{')
            && (self.apply_template(b"", trimmed, b"", out)
                || self.json(&Event::from_data(trimmed), out).is_ok())
        {
            return;
        }
        if !self.stray.text.is_empty() {
            // Between lines, not behind them: the last one may be cut inside of a string.
            self.gather(b"\n", record, out);
        }
        self.gather(line, record, out);
        if self.stray.text.is_empty() {
            self.stray = BareJson::default();
        }
    }

    /// More of bare JSON.  A value that becomes whole is read; another may follow it without anything in between.
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

    fn error(&mut self, out: &mut impl Output, failure: Failure<Box<str>>) {
        self.with_sink(out, |state, sink| {
            state.close(sink);
            sink.error(failure);
        });
    }

    fn end_of_body(&mut self, out: &mut impl Output, fed_anything: bool) {
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

    fn not_a_stream(&mut self, out: &mut impl Output, page: &str) {
        let message = format!("the body is a page, no stream; it begins: {page}");
        let mut failure = Failure::new(ErrorCode::ProtocolError, message.into());
        failure.retryable = Some(true);
        self.error(out, failure);
    }

    fn fail(&mut self, out: &mut impl Output, failure: Failure<Box<str>>) {
        self.with_sink(out, |state, sink| {
            state.close(sink);
            if sink.finished() {
                sink.warn("failed_after_finish", failure.message.as_deref().unwrap_or(""), None);
            }
            sink.end_of_body(failure);
        });
    }
}

/// Keeps the beginning of a page, from its first bracket.
fn keep(page: &mut Vec<u8>, bytes: &[u8]) {
    let room = PAGE_BYTES.saturating_sub(page.len());
    let blank = |byte: &&u8| page.is_empty() && **byte != b'<';
    let start = bytes.iter().take_while(blank).count();
    page.extend(bytes.iter().skip(start).take(room));
}
