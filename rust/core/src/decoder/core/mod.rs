//! `Core`: the stages after framing.
//!
//! In: framed events, stray lines and failures.  Out: deltas of the dialect, or one error.
//!
//! Law: framing, JSON and policy are those of the stream.  Only the dialect's state and the stages after it exist once for
//! each answer that is followed.

mod bare_json;
mod batch;
mod collected;

use std::borrow::Cow;
use std::sync::Arc;

use super::answers::{Answers, JoinedAnswers, Outputs};
use super::opening::Opening;
use super::options::Options;
use crate::contract::{ErrorCode, Failure};
use crate::dialect::{self, Dialect, State};
use crate::emit::StreamOptions;
use crate::framing::Bytes;
use crate::json::{Error, ErrorKind, Reader};
use crate::provider_error::{ErrorObject, Response};
use crate::sink::Sinks;
use collected::Collected;

/// The stages after framing.  They are separate from the framer, so that frames may borrow from it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Core {
    options: Arc<StreamOptions>,
    state: State,
    answers: Answers,
    stray: Collected,
    /// A line had a field name that differs from `data` only in case.
    misspelt: bool,
    /// JSON came outside of events, as a whole body does.
    bare: bool,
    opening: Opening,
    /// A line of a batch's result file, held until the body ends.
    line: Option<Box<[u8]>>,
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

impl Core {
    /// Build the stages of one answer, the one of the options.
    pub(super) fn new(options: Options, state: State) -> Self {
        let Options { stream, markup, .. } = options;
        let stream = Arc::new(stream);
        let answers = Answers::one(Arc::clone(&stream), markup.as_ref());
        Self::begin(stream, answers, state)
    }

    fn begin(options: Arc<StreamOptions>, answers: Answers, state: State) -> Self {
        Self {
            state,
            answers,
            options,
            stray: Collected::default(),
            misspelt: false,
            bare: false,
            opening: Opening::default(),
            line: None,
        }
    }

    /// Build the stages of all answers.
    pub(super) fn of_all(options: Options, state: State) -> Self {
        let Options { stream, markup, .. } = options;
        let stream = Arc::new(stream);
        let answers = Answers::all(Arc::clone(&stream), markup.as_ref(), state.has_choices());
        Self::begin(stream, answers, state)
    }

    pub(super) fn options(&self) -> &StreamOptions {
        &self.options
    }

    /// Set the status and the headers of the response, before the first byte.
    pub(super) fn set_response(&mut self, response: Response) {
        Arc::make_mut(&mut self.options).response = response;
        self.answers.set_options(&self.options);
    }

    /// Take the dialect of a body that told it, before the first byte is decoded.
    pub(super) fn set_dialect(&mut self, row: &Dialect, state: State) {
        Arc::make_mut(&mut self.options).dialect = row.name;
        self.answers.set_options(&self.options);
        self.answers.set_has_choices(state.has_choices());
        self.state = state;
    }

    /// Return the stages of the answers.
    pub(super) fn answers(&self) -> &Answers {
        &self.answers
    }

    pub(super) fn answers_mut(&mut self) -> &mut Answers {
        &mut self.answers
    }

    /// Return true after the terminal of every answer.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.answers.have_ended()
    }

    /// Drop bare JSON that is being collected.
    pub(super) fn drop_bare_json(&mut self) {
        self.stray = Collected::default();
        self.bare = false;
        self.opening = Opening::default();
        self.line = None;
    }

    /// Note an object that was read.
    #[inline]
    fn note(&mut self, name: &[u8], json: &[u8], out: &mut impl Outputs) {
        if !matches!(self.opening, Opening::Read) && self.says_nothing(out) {
            self.opening.keep(name, json, true);
        }
    }

    /// Return true if nothing was said so far, and note otherwise that the body is read.
    fn says_nothing(&mut self, out: &mut impl Outputs) -> bool {
        let mut says_nothing = true;
        self.join(out).1.each(|sink| says_nothing &= sink.says_nothing());
        if !says_nothing {
            self.opening = Opening::Read;
        }
        says_nothing
    }

    /// Return the dialect's state and the sinks.
    #[inline]
    fn join<'a, O: Outputs>(&'a mut self, out: &'a mut O) -> (&'a mut State, JoinedAnswers<'a, O>) {
        (&mut self.state, JoinedAnswers::new(&mut self.answers, out))
    }

    /// Apply the events at the start of unframed bytes while they match templates; returns their length.
    #[inline]
    pub(super) fn apply_templates_unframed<O: Outputs>(
        &mut self,
        bytes: Bytes<'_>,
        out: &mut O,
    ) -> usize {
        let (state, mut sinks) = self.join(out);
        let taken = if O::ALL {
            state.apply_templates_unframed(bytes, &mut sinks)
        } else {
            state.apply_templates_unframed(bytes, &mut sinks.alone())
        };
        if taken > 0 && !matches!(self.opening, Opening::Read) && self.says_nothing(out) {
            self.opening.keep_unframed(bytes.as_bytes().get(..taken).unwrap_or_default());
        }
        taken
    }

    /// Apply an event that repeats a template, and return true.  Return false for any other event.
    #[inline]
    pub(super) fn apply_template<O: Outputs>(
        &mut self,
        name: &[u8],
        data: &[u8],
        wire: &[u8],
        out: &mut O,
    ) -> bool {
        if self.options.provider_raw {
            return false;
        }
        let data = data.trim_ascii();
        let (state, mut sinks) = self.join(out);
        let repeated = if O::ALL {
            let repeated = state.apply_template(name, data, wire, &mut sinks);
            if repeated {
                sinks.end_frame();
            }
            repeated
        } else {
            let mut sink = sinks.alone();
            let repeated = state.apply_template(name, data, wire, &mut sink);
            if repeated {
                sink.end_frame();
            }
            repeated
        };
        if repeated {
            self.note(name, data, out);
        }
        repeated
    }

    #[inline(never)]
    pub(super) fn event(&mut self, event: Event<'_>, out: &mut impl Outputs) {
        let offset = event.offset;
        let (name, data) = (event.name.as_bytes(), event.data.as_bytes().trim_ascii());
        match data.first() {
            None => {}
            Some(b'[') if data.starts_with(b"[DONE]") => {
                let unread = self.opening.failure(self.options.dialect, true);
                let (state, mut sinks) = self.join(out);
                state.close(&mut sinks);
                sinks.each(|sink| match &unread {
                    Some(failure) if sink.says_nothing() => sink.error(failure.clone()),
                    _ => sink.end(),
                });
            }
            Some(b'{' | b'[') => {
                if let Err(error) = self.json(&event, out) {
                    self.lines(&event, data, error, out);
                }
            }
            Some(_) if name == b"error" => {
                let message = String::from_utf8_lossy(data);
                let error = ErrorObject::from_message(&message);
                let failure = error.failure(&self.options.response, "");
                self.error(out, &failure);
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
        out: &mut impl Outputs,
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
        let (state, mut sinks) = self.join(out);
        if json.is_ok() && data.starts_with('{') {
            sinks.each(|sink| sink.begin_frame(&data));
        }
        state.close(&mut sinks);
        sinks.each(|sink| sink.error(sink.failure_of(said.clone())));
    }

    fn noise(&mut self, offset: u64, out: &mut impl Outputs) {
        self.join(out).1.each(|sink| {
            sink.warn("noise", "data that is no JSON was skipped", Some(offset));
            sink.end_frame();
        });
    }

    /// Read each line as a JSON value.  A proxy may join several values into one event, or drop the blank lines between
    /// events.
    ///
    /// At the end of the body an event may be cut: then its last line is no error, and neither is an event whose first line
    /// is only the beginning of a value.  The name is then that of the last line.
    fn lines(&mut self, event: &Event<'_>, data: &[u8], error: Error, out: &mut impl Outputs) {
        let Event { name, offset, closed, .. } = *event;
        let kind = error.kind;
        let mut error = Some(error).filter(|_| closed);
        // A depth error is final.  Any other error may mean several valid values, one on each line.
        if kind != ErrorKind::TooDeep && memchr::memchr(b'\n', data).is_some() {
            error = None;
            let mut rest = Some(data);
            while let Some(lines) = rest.filter(|_| !self.has_ended()) {
                let end = memchr::memchr(b'\n', lines);
                let (line, after) = lines.split_at(end.unwrap_or(lines.len()));
                rest = end.and(after.get(1..));
                let line = line.trim_ascii();
                let name = if closed || rest.is_none() { name } else { Bytes::Valid("") };
                if line.starts_with(b"[DONE]") {
                    self.event(Event { name, offset, ..Event::from_data(line) }, out);
                } else if !line.is_empty()
                    && let Err(found) = self.json(&Event { name, ..Event::from_data(line) }, out)
                {
                    let is_cut = !closed && (rest.is_none() || lines.len() == data.len());
                    error = Some(found).filter(|_| !is_cut);
                    break;
                }
            }
        }
        if let Some(error) = error {
            if let Some(said) = broken_error(data) {
                let (state, mut sinks) = self.join(out);
                state.close(&mut sinks);
                return sinks.each(|sink| sink.error(sink.failure_of(said.clone())));
            }
            let failure = self.broken_event(error, &format!("the event at byte {offset}"));
            self.error(out, &failure);
        }
    }

    /// Return the failure of data that is not JSON or nests too deep.
    fn broken_event(&self, error: Error, place: &str) -> Failure<Box<str>> {
        let message = if error.kind == ErrorKind::TooDeep {
            format!("limit reached: depth ({}) in {place}", self.options.limits.depth)
        } else {
            format!("{error} of the data of {place}")
        };
        Failure::new(ErrorCode::ProtocolError, message.into())
    }

    /// Read one JSON text: an object or an array of objects.  A text that is not valid JSON has no effect.
    fn json(&mut self, event: &Event<'_>, out: &mut impl Outputs) -> Result<(), Error> {
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
            self.warn_replaced(out);
        }
        Ok(())
    }

    fn warn_replaced(&mut self, out: &mut impl Outputs) {
        self.join(out).1.each(|sink| {
            sink.warn("invalid_utf8", "invalid UTF-8 became U+FFFD", None);
        });
    }

    #[inline]
    fn object(&mut self, frame: dialect::Frame<'_>, out: &mut impl Outputs) -> Result<(), Error> {
        let (state, mut sinks) = self.join(out);
        sinks.each(|sink| sink.begin_frame(frame.json));
        let read = state.frame(frame, &mut sinks);
        // The frame ends after a failure too.  Text that is not JSON must not become the raw event of the error.
        sinks.end_frame();
        if read.is_ok() {
            self.note(frame.name.as_bytes(), frame.json.as_bytes(), out);
        }
        read
    }

    /// End the stream with the error that the body of a refused response describes.
    #[cold]
    pub(super) fn refused(&mut self, body: &[u8], out: &mut impl Outputs) {
        let (failure, json) = self.options.response.refusal(body, "");
        if let Some(json) = json.filter(|json| json.starts_with('{')) {
            self.join(out).1.each(|sink| sink.begin_frame(&json));
        }
        self.error(out, &failure);
    }

    pub(super) fn error(&mut self, out: &mut impl Outputs, failure: &Failure<Box<str>>) {
        let (state, mut sinks) = self.join(out);
        state.close(&mut sinks);
        sinks.each(|sink| sink.error(failure.clone()));
    }

    pub(super) fn end_of_body(&mut self, out: &mut impl Outputs, fed_anything: bool) {
        if !fed_anything {
            let mut failure = Failure::new(ErrorCode::ProtocolError, "the body is empty".into());
            failure.retryable = Some(true);
            return self.error(out, &failure);
        }
        self.release_line(out);
        if self.has_ended() {
            return;
        }
        let message = "the stream stopped without any sign of its end";
        let lost = Failure::new(ErrorCode::ConnectionLost, message.into());
        let message = "no field is named `data`, only others that differ in case";
        let unnamed = Failure::new(ErrorCode::ProtocolError, message.into());
        let misspelt = self.misspelt;
        let unread = self.opening.failure(self.options.dialect, self.bare);
        let (state, mut sinks) = self.join(out);
        let mut said_nothing = Vec::new();
        if misspelt {
            sinks.each(|sink| said_nothing.push(sink.last_seq() == 0));
        }
        state.close(&mut sinks);
        let mut said_nothing = said_nothing.into_iter();
        sinks.each(|sink| match said_nothing.next() {
            Some(true) => sink.error(unnamed.clone()),
            Some(false) | None => match &unread {
                Some(failure) if sink.says_nothing() => sink.error(failure.clone()),
                _ => sink.end_of_body(lost.clone(), true),
            },
        });
    }

    pub(super) fn not_a_stream(&mut self, out: &mut impl Outputs, page: &str) {
        let message = format!("the body is a page, no stream; it begins: {page}");
        let mut failure = Failure::new(ErrorCode::ProtocolError, message.into());
        failure.retryable = Some(true);
        self.error(out, &failure);
    }

    pub(super) fn fail(&mut self, out: &mut impl Outputs, failure: &Failure<Box<str>>) {
        self.release_line(out);
        let (state, mut sinks) = self.join(out);
        state.close(&mut sinks);
        sinks.each(|sink| {
            if sink.finished() {
                sink.warn("failed_after_finish", failure.message.as_deref().unwrap_or(""), None);
            }
            sink.end_of_body(failure.clone(), false);
        });
    }
}

/// Read an error whose text has line breaks of its own, which break the JSON and, in a stream of events, end the line.
///
/// Source: the `serve` command of transformers 5.19, which writes the text of an exception so.
#[cold]
fn broken_error(data: &[u8]) -> Option<ErrorObject> {
    let text = String::from_utf8_lossy(data);
    let rest = text.trim_start().strip_prefix('{')?.trim_start();
    if !rest.starts_with("\"error\"") {
        return None;
    }
    let text = text.trim().replace('\r', "\\r").replace('\n', "\\n");
    ["", "\"}", "\"}}"].iter().find_map(|end| {
        let json = format!("{text}{end}");
        let mut reader = Reader::new(&json, BROKEN_ERROR_DEPTH);
        reader.skip().and_then(|()| reader.end()).ok()?;
        ErrorObject::read(&json).ok()
    })
}

/// Maximum depth of an error whose JSON is broken.
const BROKEN_ERROR_DEPTH: usize = 8;
