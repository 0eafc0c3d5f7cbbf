//! `Decoder`: bytes of one response body in any chunking → deltas.
//!
//! In: the bytes of a body.  Out: deltas, to an [`Output`].
//!
//! Laws: the framing is chosen once, from the first bytes.  Nothing is kept after the terminal.

use std::sync::Arc;

use super::answers::{Alone, Outputs};
use super::core::Core;
use super::frame_handler::FrameHandler;
use super::options::Options;
use crate::contract::{ErrorCode, Failure, Output};
use crate::dialect::{self, Shapes, State};
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
}

impl Body {
    /// Return the body of a response before its first byte.
    fn of(response: &Response) -> Self {
        if response.is_refusal() {
            Self::Refused(Vec::new())
        } else {
            Self::Unknown(BodySniffer::default())
        }
    }
}

impl Decoder {
    /// Build a decoder; `None` if the dialect of the options is unknown.
    pub fn new(options: Options) -> Option<Self> {
        Self::with_core(options, Core::new)
    }

    pub(super) fn with_core(
        options: Options,
        core: impl FnOnce(Options, State) -> Core,
    ) -> Option<Self> {
        let row = dialect::find(options.stream.dialect)?;
        let body = Body::of(&options.stream.response);
        let mut state = (row.state)();
        if let Some(shapes) = options.shapes.as_ref().filter(|_| reads_as_most(&options)) {
            state.share(shapes);
        }
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
        self.body = Body::of(&response);
        self.core.set_response(response);
        true
    }

    /// Return true after the terminal.
    pub fn finished(&self) -> bool {
        self.core.has_ended()
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
        self.core.fail(&mut Alone(out), &failure);
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
            Body::Unknown(_) => {}
        }
        self.forget_the_end();
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
        match &mut self.body {
            Body::HtmlPage(page) => {
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
