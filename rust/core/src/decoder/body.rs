//! `Decoder`: bytes of one response body in any chunking → deltas.
//!
//! In: the bytes of a body.  Out: deltas, to an [`Output`].
//!
//! Laws: the framing is chosen once, from the first bytes.  Nothing is kept after the terminal.  A decoder without a dialect
//! keeps the bytes until they tell it; its deltas are then those of a decoder of that dialect.

use std::sync::Arc;

use super::answers::{Alone, Outputs};
use super::core::Core;
use super::frame_handler::FrameHandler;
use super::options::Options;
use crate::contract::{DeltaBatch, ErrorCode, Failure, Output};
use crate::detect::Detector;
use crate::dialect::{self, Dialect, REGISTRY, Shapes, State};
use crate::emit::StreamOptions;
use crate::framing::sniff::{BodyKind, BodySniffer, PAGE_BYTES};
use crate::framing::{Frame, Framer, Framing, Receiver};
use crate::limits::Limits;
use crate::markup::Wanted;
use crate::provider_error::{BODY_BYTES, Response};
use crate::template::is_one_line;

/// Bytes in any chunking → deltas.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoder {
    body: Body,
    /// The usual framing of the protocol.
    usual: Framing,
    markup: Option<Wanted>,
    shapes: Option<Arc<Shapes>>,
    /// Boxed, so that a decoder is cheap to move.
    core: Box<Core>,
    fed_anything: bool,
    ended_at: End,
}

/// The end of the event with the terminal, in bytes of the body.
///
/// It is no part of the state: a CR ends a line at once, so that the LF behind it counts only where both came together.
#[derive(Clone, Copy, Debug, Default)]
struct End(Option<u64>);

impl PartialEq for End {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The kind of the body, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
enum Body {
    Unknown(BodySniffer),
    Framed(Framer),
    /// An HTML or XML page, its first bytes kept.
    HtmlPage(Vec<u8>),
    /// The body of an HTTP refusal, its first [`BODY_BYTES`] kept.
    Refused(Vec<u8>),
    /// A body whose dialect is not known yet.
    Undecided(Box<Detector>),
    /// A body that fits none or several of the dialects, which would read it in different ways; those that fit.
    Undecidable(Vec<&'static str>),
}

/// The dialect of options that leave it to the first bytes of the body.
pub const UNDECIDED: &str = "";

/// The dialect whose state a decoder has until its own is known, and that reads what all dialects read alike.
const ANY: &str = "openai-chat";

impl Body {
    /// Return the body of a response before its first byte.
    fn of(dialect: &str, response: &Response) -> Self {
        if response.is_refusal() {
            Self::Refused(Vec::new())
        } else if dialect == UNDECIDED {
            Self::Undecided(Box::default())
        } else {
            Self::Unknown(BodySniffer::default())
        }
    }
}

impl Decoder {
    /// Build a decoder; `None` if the dialect of the options is unknown.  With [`UNDECIDED`] the body tells it.
    pub fn new(options: Options) -> Option<Self> {
        Self::with_core(options, Core::new)
    }

    pub(super) fn with_core(
        options: Options,
        core: impl FnOnce(Options, State) -> Core,
    ) -> Option<Self> {
        let name = options.stream.dialect;
        let row = dialect::find(if name == UNDECIDED { ANY } else { name })?;
        let body = Body::of(name, &options.stream.response);
        let state = state_of(row, &options);
        Some(Self {
            body,
            usual: row.framing,
            markup: options.markup.clone(),
            shapes: options.shapes.clone(),
            core: Box::new(core(options, state)),
            fed_anything: false,
            ended_at: End::default(),
        })
    }

    /// Return the options of this decoder.
    pub fn options(&self) -> Options {
        Options {
            stream: self.core.options().clone(),
            markup: self.markup.clone(),
            shapes: self.shapes.clone(),
        }
    }

    /// Set the status and the headers of the response.  Return false, without an effect, after the first byte.
    pub fn set_response(&mut self, response: Response) -> bool {
        if self.fed_anything {
            return false;
        }
        self.body = Body::of(self.dialect(), &response);
        self.core.set_response(response);
        true
    }

    /// Return the dialect; [`UNDECIDED`] until the body told it.
    pub fn dialect(&self) -> &'static str {
        self.core.options().dialect
    }

    /// Return the dialects that fit a body which does not tell its own, when no more bytes can tell it.  Such a decoder has
    /// no terminal.
    pub fn undecidable(&self) -> Option<&[&'static str]> {
        match &self.body {
            Body::Undecidable(candidates) if !self.finished() => Some(candidates),
            _ => None,
        }
    }

    /// Return true after the terminal.
    pub fn finished(&self) -> bool {
        self.core.has_ended()
    }

    /// Return true while an error that the body brought waits for the end of the stream.
    pub fn holds_error(&self) -> bool {
        self.core.answers().hold_error()
    }

    /// Return the number of bytes up to the end of the event that ended a body of server-sent events; `None` for other ends.
    ///
    /// Line ends may follow that belong to the event.
    pub fn ended_at(&self) -> Option<u64> {
        self.ended_at.0
    }

    /// Return the sequence number of the last delta.
    pub fn last_seq(&self) -> u64 {
        self.core.answers().last_seq()
    }

    /// Decode the next bytes of the body, in any chunking.  The cost is linear in their number.
    pub fn feed(&mut self, bytes: &[u8], out: &mut dyn Output) {
        self.feed_to(bytes, &mut Alone(out));
    }

    /// Decode a body that is whole as [`Self::feed`] does, before [`Self::close`].
    ///
    /// JSON on one line is not copied.  A feed copies it, because its line may go on.
    pub fn feed_whole(&mut self, bytes: &[u8], out: &mut dyn Output) {
        let is_json = bytes.first() == Some(&b'{') && self.usual == Framing::Sse;
        let bound = self.core.options().limits.event_bytes;
        let is_first = !self.fed_anything && !self.finished();
        if !is_first || !is_json || bytes.len() > bound || !is_one_line(bytes) {
            return self.feed(bytes, out);
        }
        let mut out = Alone(out);
        self.begin(bytes, &mut out);
        if let Body::Framed(Framer::Sse(_)) = self.body {
            self.fed_anything = true;
            self.core.stray_line(bytes, 0, false, &mut out);
            self.forget_the_end();
        } else {
            self.feed_to(bytes, &mut out);
        }
    }

    /// Decode an event that was framed elsewhere, such as an object of an SDK.
    pub fn feed_frame(&mut self, frame: Frame<'_>, out: &mut dyn Output) {
        self.feed_frame_to(frame, &mut Alone(out));
    }

    /// Take the end of the body.  Afterwards the stream has its terminal.
    pub fn close(&mut self, out: &mut dyn Output) {
        self.close_to(&mut Alone(out));
    }

    /// End the stream for an external reason: the transport failed, or the caller stops.
    ///
    /// After a finish reason the message is whole, and the failure is only a warning.
    #[expect(clippy::needless_pass_by_value, reason = "the stream takes the failure over")]
    pub fn fail(&mut self, failure: Failure<Box<str>>, out: &mut dyn Output) {
        self.fail_to(&failure, &mut Alone(out));
    }

    /// Take the dialect of a body that does not tell it, such as that of an event framed elsewhere.  Without an effect if it
    /// is known already.
    pub fn decide(&mut self, dialect: &str, out: &mut dyn Output) {
        self.decide_to(dialect, &mut Alone(out));
    }

    pub(super) fn core_mut(&mut self) -> &mut Core {
        &mut self.core
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    #[inline]
    pub(super) fn feed_to(&mut self, bytes: &[u8], out: &mut impl Outputs) {
        if self.finished() || bytes.is_empty() {
            return;
        }
        self.fed_anything = true;
        if let Body::Unknown(_) = self.body {
            self.begin(bytes, out);
        }
        match &mut self.body {
            Body::Framed(_) => self.framed(bytes, out),
            Body::HtmlPage(page) => keep(page, bytes),
            Body::Refused(body) => {
                let room = BODY_BYTES.saturating_sub(body.len());
                body.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
                if body.len() == BODY_BYTES {
                    self.core.refused(body, out);
                }
            }
            Body::Undecided(_) => return self.tell(bytes, out),
            Body::Unknown(_) | Body::Undecidable(_) => {}
        }
        self.forget_the_end();
    }

    /// Keep bytes until they tell the dialect, and decode them then.
    #[cold]
    fn tell(&mut self, bytes: &[u8], out: &mut impl Outputs) {
        let Body::Undecided(detector) = &mut self.body else { return };
        let taken = detector.feed(bytes);
        if let Some(found) = detector.found() {
            self.decide_to(found, out);
        } else if detector.is_full() {
            self.decide_at_end(false, out);
        }
        self.feed_to(bytes.get(taken..).unwrap_or_default(), out);
    }

    /// Decide after the last bytes that can tell the dialect.
    fn decide_at_end(&mut self, is_whole: bool, out: &mut impl Outputs) {
        let Body::Undecided(detector) = &mut self.body else { return };
        let candidates = detector.finish();
        let seen = detector.seen().to_vec();
        match self.chosen(candidates, &seen, is_whole) {
            Ok(found) => self.decide_to(found, out),
            Err(candidates) => self.body = Body::Undecidable(candidates),
        }
    }

    /// Choose one of the dialects that fit the bytes of a body, or return them if they would read the body in different ways.
    fn chosen(
        &self,
        candidates: Vec<&'static str>,
        seen: &[u8],
        is_whole: bool,
    ) -> Result<&'static str, Vec<&'static str>> {
        if let [found] = candidates[..] {
            return Ok(found);
        }
        let max_bytes = self.core.options().limits.event_bytes;
        let kind = BodySniffer::default().inspect(seen, Framing::Sse, max_bytes);
        let has_no_events = matches!(kind, Some(BodyKind::HtmlPage | BodyKind::Compressed(_)));
        if has_no_events || (is_whole && self.read_alike(&candidates, seen)) {
            return Ok(candidates.first().copied().unwrap_or(ANY));
        }
        Err(candidates)
    }

    /// Return the dialect of a whole body with the options of a decoder, or the dialects that fit it if they would read it in
    /// different ways.  [`Self::feed`] and [`Self::close`] find the same.
    pub fn dialect_of(options: &Options, body: &[u8]) -> Result<&'static str, Vec<&'static str>> {
        let Some(mut decoder) = Self::new(options.clone()) else { return Err(Vec::new()) };
        if decoder.dialect() != UNDECIDED {
            return Ok(decoder.dialect());
        }
        // The body of a refusal is read by no dialect.
        let Body::Undecided(detector) = &mut decoder.body else { return Ok(ANY) };
        detector.feed(body);
        let (candidates, is_whole) = (detector.finish(), !detector.is_full());
        let seen = detector.seen().to_vec();
        decoder.chosen(candidates, &seen, is_whole)
    }

    /// Return true if all of the dialects, or all that there are if none is named, read a whole body in the same way.
    fn read_alike(&self, candidates: &[&'static str], seen: &[u8]) -> bool {
        let read = |dialect: &'static str| {
            let mut options = Options { shapes: None, ..self.options() };
            options.stream.dialect = dialect;
            let mut deltas = DeltaBatch::default();
            let mut decoder = Self::new(options)?;
            decoder.feed(seen, &mut deltas);
            decoder.close(&mut deltas);
            Some(deltas)
        };
        let all: Vec<_> = REGISTRY.iter().map(|row| row.name).collect();
        let names = if candidates.is_empty() { &all } else { candidates };
        let mut readings = names.iter().map(|name| read(name));
        let first = readings.next();
        readings.all(|reading| Some(reading) == first)
    }

    pub(super) fn decide_to(&mut self, dialect: &str, out: &mut impl Outputs) {
        if self.dialect() != UNDECIDED {
            return;
        }
        let Some(row) = dialect::find(dialect) else { return };
        let state = state_of(row, &self.options());
        self.usual = row.framing;
        self.core.set_dialect(row, state);
        let next = Body::of(row.name, &self.core.options().response.clone());
        if let Body::Undecided(detector) = std::mem::replace(&mut self.body, next) {
            self.feed_to(detector.seen(), out);
        }
    }

    pub(super) fn fail_to(&mut self, failure: &Failure<Box<str>>, out: &mut impl Outputs) {
        if let Body::Undecided(detector) = &mut self.body
            && let [found] = detector.finish()[..]
        {
            self.decide_to(found, out);
        }
        self.core.fail(out, failure);
    }

    pub(super) fn feed_frame_to(&mut self, frame: Frame<'_>, out: &mut impl Outputs) {
        if self.finished() {
            return;
        }
        self.fed_anything = true;
        // The frame decides itself whether another one may follow.
        let _ = FrameHandler::new(&mut self.core, out, b"").frame(frame);
        self.forget_the_end();
    }

    /// Drop what a body has after its terminal: such bytes are ignored, so that the state does not depend on the chunking.
    #[inline]
    fn forget_the_end(&mut self) {
        if self.finished() {
            if let Body::Framed(framer) = &self.body {
                self.ended_at = End(framer.stopped_at());
            }
            self.body = Body::Unknown(BodySniffer::default());
            self.core.drop_bare_json();
        }
    }

    fn framed(&mut self, bytes: &[u8], out: &mut impl Outputs) {
        if let Body::Framed(framer) = &mut self.body
            && !self.core.has_ended()
        {
            let _ = framer.feed(bytes, FrameHandler::new(&mut self.core, out, bytes));
        }
    }

    /// Detect the kind of the body from `bytes`, which are not consumed.
    fn begin(&mut self, bytes: &[u8], out: &mut impl Outputs) {
        let Body::Unknown(sniff) = &mut self.body else { return };
        let max_bytes = self.core.options().limits.event_bytes;
        match sniff.inspect(bytes, self.usual, max_bytes) {
            None => {}
            Some(BodyKind::Framed(framing)) => self.settle(framing, out),
            // All bytes before the page are white space.
            Some(BodyKind::HtmlPage) => self.body = Body::HtmlPage(Vec::new()),
            Some(BodyKind::Compressed(encoding)) => {
                let message = format!(
                    "the body is compressed ({encoding}); the transport must undo the content encoding"
                );
                self.core.fail(out, &Failure::new(ErrorCode::ProtocolError, message.into()));
            }
        }
    }

    /// Choose the framing and feed it the bytes of earlier feeds.
    fn settle(&mut self, framing: Framing, out: &mut impl Outputs) {
        let framer = Framer::new(framing, self.core.options().limits.event_bytes);
        if let Body::Unknown(sniff) = std::mem::replace(&mut self.body, Body::Framed(framer)) {
            self.framed(&sniff.into_seen(), out);
        }
    }

    pub(super) fn close_to(&mut self, out: &mut impl Outputs) {
        if self.finished() {
            return;
        }
        self.decide_at_end(true, out);
        match &mut self.body {
            Body::HtmlPage(page) => {
                let page = String::from_utf8_lossy(page).into_owned();
                return self.core.not_a_stream(out, &page);
            }
            Body::Refused(body) => return self.core.refused(body, out),
            Body::Unknown(_) => self.settle(Framing::Sse, out),
            Body::Undecided(_) | Body::Undecidable(_) => return,
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
}

/// Return the fresh state of a dialect, which shares the shapes of its frames if the options allow it.
fn state_of(row: &Dialect, options: &Options) -> State {
    let mut state = (row.state)();
    if let Some(shapes) = options.shapes.as_ref().filter(|_| reads_as_most(options)) {
        state.share(shapes);
    }
    state
}

/// Return true if the options do not change what `read` returns, so that shapes of other streams are valid.
fn reads_as_most(options: &Options) -> bool {
    let StreamOptions { choice, joined_choices, logprobs, limits, .. } = &options.stream;
    *choice == 0 && !joined_choices && !logprobs && limits.depth == Limits::default().depth
}

/// Keep the beginning of a page, from its first bracket.
fn keep(page: &mut Vec<u8>, bytes: &[u8]) {
    let room = PAGE_BYTES.saturating_sub(page.len());
    let blank = |byte: &&u8| page.is_empty() && **byte != b'<';
    let start = bytes.iter().take_while(blank).count();
    page.extend(bytes.iter().skip(start).take(room));
}
