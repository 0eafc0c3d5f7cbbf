//! `DeltaSink`: the operations that a dialect uses to emit deltas.
//!
//! In: operations of `apply`.  Out: the same operations on the [`EmitterSink`] below, through the layer of markup if the
//! caller asked for one.
//!
//! Laws: operations that begin or end content, or that touch a text part, are defined here.  They inform the layer before
//! the emitter.  All other operations are those of the emitter, by `Deref`.  Without a layer this sink adds one branch.

use std::ops::{Deref, DerefMut};

use crate::contract::{Failure, InputFormat, Logprobs, Output};
use crate::emit::{
    CallEnd, CallHandle, Emitter, EmitterSink, ImageContent, PartHandle, PartKind, StreamOptions,
};
use crate::json::Str;
use crate::markup::MarkupLayer;

/// The sinks of the answers that are followed, in the order in which they were admitted.
pub trait Sinks {
    /// True if every answer of the stream is followed.
    const ALL: bool;

    /// Return the caller's options.
    fn options(&self) -> &StreamOptions;

    /// Return true after the terminal of every answer.
    fn ended(&self) -> bool;

    /// End a frame, for every answer.
    fn end_frame(&mut self);

    /// Return true if a fact of an answer got another value since the last call.
    fn has_changed_fact(&mut self) -> bool;

    /// Add an answer with this number as a copy of the first; return true if it was added.
    fn admit(&mut self, number: u64) -> bool;

    /// Call `f` with the sink of the answer at this position.
    fn with(&mut self, at: usize, f: impl FnOnce(&mut DeltaSink<'_>));
}

/// One answer, whatever the position.
impl Sinks for DeltaSink<'_> {
    const ALL: bool = false;

    #[inline]
    fn options(&self) -> &StreamOptions {
        self.below.options()
    }

    #[inline]
    fn ended(&self) -> bool {
        self.below.ended()
    }

    #[inline]
    fn end_frame(&mut self) {
        DeltaSink::end_frame(self);
    }

    fn has_changed_fact(&mut self) -> bool {
        self.below.has_changed_fact()
    }

    fn admit(&mut self, _: u64) -> bool {
        false
    }

    #[inline]
    fn with(&mut self, _: usize, f: impl FnOnce(&mut DeltaSink<'_>)) {
        f(self);
    }
}

/// Operations that a dialect uses to emit deltas.
pub struct DeltaSink<'a> {
    below: EmitterSink<'a>,
    markup: Option<&'a mut MarkupLayer>,
}

impl<'a> Deref for DeltaSink<'a> {
    type Target = EmitterSink<'a>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.below
    }
}

impl DerefMut for DeltaSink<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.below
    }
}

impl<'a> DeltaSink<'a> {
    /// Join an emitter, its output and the layer above it.
    #[inline]
    pub(crate) fn new(
        emitter: &'a mut Emitter,
        markup: Option<&'a mut MarkupLayer>,
        out: &'a mut dyn Output,
    ) -> Self {
        Self { below: EmitterSink::new(emitter, out), markup }
    }

    /// End the markup before other content of the protocol.
    #[inline]
    fn end_markup(&mut self, how: CallEnd) {
        if let Some(markup) = &mut self.markup {
            markup.end(how, &mut self.below);
        }
    }

    #[inline]
    fn watching(&mut self, part: PartHandle) -> Option<(&mut MarkupLayer, &mut EmitterSink<'a>)> {
        let markup = self.markup.as_deref_mut().filter(|markup| markup.is_watched(part))?;
        Some((markup, &mut self.below))
    }

    fn watch(&mut self, kind: PartKind, part: PartHandle, is_repeated: bool) -> PartHandle {
        if let Some(markup) = &mut self.markup
            && kind == PartKind::Text
        {
            markup.watch(part, is_repeated);
        }
        part
    }

    /// Open a part that ends before the first delta of the next part.
    pub fn open_part(&mut self, kind: PartKind) -> PartHandle {
        self.end_markup(CallEnd::Provider);
        let part = self.below.open_part(kind);
        self.watch(kind, part, false)
    }

    /// Open a part that ends at an event of the protocol.
    pub fn open_block(&mut self, kind: PartKind) -> PartHandle {
        self.end_markup(CallEnd::Provider);
        let part = self.below.open_block(kind);
        self.watch(kind, part, false)
    }

    /// Open a part as [`Self::open_block`] does, whose protocol repeats the whole text at its end.  See
    /// [`Self::text_whole`].
    pub fn open_repeated_block(&mut self, kind: PartKind) -> PartHandle {
        self.end_markup(CallEnd::Provider);
        let part = self.below.open_repeated_block(kind);
        self.watch(kind, part, true)
    }

    /// Emit more text of a part.
    #[inline]
    pub fn text(&mut self, part: PartHandle, text: Str<'_>) {
        if self.markup.is_some() {
            return self.layered_text(part, text);
        }
        self.below.text(part, text);
    }

    #[cold]
    fn layered_text(&mut self, part: PartHandle, text: Str<'_>) {
        match self.watching(part) {
            Some((markup, below)) => markup.text(part, text, below),
            None => self.below.text(part, text),
        }
    }

    /// Return the rest of a text after all that a part said; `None` if the text does not begin with it, or if the part may
    /// hold markup, which is no text of the message.
    pub(crate) fn rest_after<'t>(&self, part: PartHandle, text: &'t str) -> Option<&'t str> {
        let is_watched = self.markup.as_ref().is_some_and(|markup| markup.is_watched(part));
        self.below.rest_after(part, text).filter(|_| !is_watched)
    }

    /// Take the whole text of a part after its pieces, and emit the suffix that was not streamed.
    pub fn text_whole(&mut self, part: PartHandle, whole: Str<'_>) {
        match self.watching(part) {
            Some((markup, below)) => markup.text_whole(part, whole, below),
            None => self.below.text_whole(part, whole),
        }
    }

    /// Begin another paragraph of a part.  The protocol repeats the whole text of each paragraph separately.
    pub fn begin_paragraph(&mut self, part: PartHandle) {
        match self.watching(part) {
            Some((markup, below)) => markup.begin_paragraph(part, below),
            None => self.below.begin_paragraph(part),
        }
    }

    /// End a part.
    pub fn end_part(&mut self, part: PartHandle) {
        match self.watching(part) {
            Some((markup, below)) => markup.flush_surrogate(part, below),
            None => self.below.end_part(part),
        }
    }

    /// Return the emitted part that takes an attribute of `part`.
    fn attribute_part(&mut self, part: PartHandle, is_citation: bool) -> PartHandle {
        match self.watching(part) {
            Some((markup, below)) if below.is_open() => markup.attribute_part(is_citation, below),
            _ => part,
        }
    }

    /// Add citations: a JSON array, or one citation alone.
    pub fn annotate(&mut self, part: PartHandle, annotations: &str) {
        self.flush_watched(part);
        let part = self.attribute_part(part, true);
        self.below.annotate(part, annotations);
    }

    /// Add a list of the provider as one annotation `{type: name, <name>: list}`.
    pub fn annotate_list(&mut self, part: PartHandle, name: &'static str, list: &str) {
        self.flush_watched(part);
        let part = self.attribute_part(part, true);
        self.below.annotate_list(part, name, list);
    }

    /// Add log probabilities.
    pub fn logprobs(&mut self, part: PartHandle, logprobs: &Logprobs) {
        let part = self.attribute_part(part, false);
        self.below.logprobs(part, logprobs);
    }

    /// Set the provider state of a part; `data` is a JSON value.
    pub fn part_state(&mut self, part: PartHandle, data: &str) {
        self.flush_watched(part);
        let part = self.attribute_part(part, false);
        self.below.part_state(part, data);
    }

    /// Emit a pending high surrogate of a watched part before an attribute.
    ///
    /// Attributes follow whole characters.  Log probabilities are the exception, because they may come between the halves of
    /// a surrogate pair.
    fn flush_watched(&mut self, part: PartHandle) {
        if let Some((markup, below)) = self.watching(part)
            && below.is_open()
        {
            markup.flush_surrogate(part, below);
        }
    }

    /// Emit a whole thinking part of which only the provider state exists.
    pub fn redacted(&mut self, data: &str) -> PartHandle {
        self.end_markup(CallEnd::Provider);
        self.below.redacted(data)
    }

    /// Open a tool call.
    pub fn open_call(&mut self, format: InputFormat) -> CallHandle {
        self.end_markup(CallEnd::Provider);
        self.below.open_call(format)
    }

    /// Open a tool call whose protocol repeats the whole arguments at their end.
    pub fn open_repeated_call(&mut self, format: InputFormat) -> CallHandle {
        self.end_markup(CallEnd::Provider);
        self.below.open_repeated_call(format)
    }

    /// Open a tool call of a whole body, whose arguments come in one chunk.
    pub fn open_verbatim_call(&mut self, format: InputFormat) -> CallHandle {
        self.end_markup(CallEnd::Provider);
        self.below.open_verbatim_call(format)
    }

    /// Emit a block that only its provider understands; `block` is its JSON.
    pub fn provider_part(&mut self, block: &str) {
        if block.starts_with('{') {
            self.end_markup(CallEnd::Provider);
        }
        self.below.provider_part(block);
    }

    /// Emit the block of audio whose pieces, of `said` bytes, were emitted before.
    pub fn audio_part(&mut self, block: &str, said: usize) {
        self.end_markup(CallEnd::Provider);
        self.below.audio_part(block, said);
    }

    /// Emit a generated image.
    pub fn image_part(&mut self, mime_type: &str, content: ImageContent<'_>, state: Option<&str>) {
        self.end_markup(CallEnd::Provider);
        self.below.image_part(mime_type, content, state);
    }

    /// End a frame.  If the frame reached a limit, end the stream in its error.
    #[inline]
    pub fn end_frame(&mut self) {
        if self.below.is_frame_open()
            && let Some(failure) = self.below.end_frame()
        {
            self.error(failure);
        }
    }

    /// Remember an error that ends the stream at its real end.
    pub fn defer_error(&mut self, failure: Failure<Box<str>>) {
        self.below.defer_error(failure);
    }

    /// End the stream in an error.
    pub fn error(&mut self, failure: Failure<Box<str>>) {
        let markup = &mut self.markup;
        self.below.error(failure, &mut |below, how| settle(markup, how, below));
    }

    /// End the stream at the provider's end marker.
    pub fn end(&mut self) {
        let markup = &mut self.markup;
        self.below.end(&mut |below, how| settle(markup, how, below));
    }

    /// End the stream at the end of the body, which was `closed` or broke off.  Without a finish reason or, if it was closed,
    /// another sign of a whole answer, it ends in the failure `lost`.
    pub fn end_of_body(&mut self, lost: Failure<Box<str>>, closed: bool) {
        let markup = &mut self.markup;
        self.below.end_of_body(lost, closed, &mut |below, how| settle(markup, how, below));
    }
}

fn settle(markup: &mut Option<&mut MarkupLayer>, how: CallEnd, below: &mut EmitterSink<'_>) {
    if let Some(markup) = markup {
        markup.settle(how, below);
    }
}
