//! `MarkupLayer`: the layer between a dialect and the emitter that parses the text of text parts.
//!
//! In: the operations of a dialect on text parts.  Out: parts and calls of the parser, in the sink below.
//!
//! Laws: only text parts are watched; thinking and calls of the protocol bypass the parser.  A new part, call or whole part
//! ends the markup before it.  Text that the parser holds counts against the bound of the message.

use std::collections::BTreeMap;

use super::parser::Markup;
use super::wanted::Wanted;
use crate::contract::FinishReason;
use crate::emit::{CallEnd, Digest, EmitterSink, PartHandle, missing_suffix};
use crate::json::{Carry, Str};

/// Markup of one message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MarkupLayer {
    markup: Markup,
    /// Text parts of the dialect.  The emitter receives their content only through the parser.
    watched: BTreeMap<PartHandle, WatchedPart>,
    /// Part whose text the parser read last, unless its markup has ended.
    current: Option<PartHandle>,
}

/// State of a watched part before its text is parsed.
#[derive(Clone, Debug, Default, PartialEq)]
struct WatchedPart {
    carry: Carry,
    /// Digest of the text so far, if the protocol repeats the whole text at its end.
    streamed: Option<Digest>,
}

impl MarkupLayer {
    pub(crate) fn new(wanted: &Wanted) -> Self {
        Self { markup: Markup::new(wanted), watched: BTreeMap::new(), current: None }
    }

    /// Watch a part of the dialect.  `is_repeated` is true if the protocol repeats its whole text.
    pub(crate) fn watch(&mut self, part: PartHandle, is_repeated: bool) {
        let streamed = is_repeated.then(Digest::default);
        self.watched.insert(part, WatchedPart { streamed, ..WatchedPart::default() });
    }

    pub(crate) fn is_watched(&self, part: PartHandle) -> bool {
        self.watched.contains_key(&part)
    }

    /// Parse more text of a watched part.
    pub(crate) fn text(&mut self, part: PartHandle, text: Str<'_>, sink: &mut EmitterSink<'_>) {
        if text.is_empty() || !sink.is_open() {
            return;
        }
        let Some(state) = self.watched.get_mut(&part) else { return };
        self.current = Some(part);
        let lone = state.carry.lone;
        let mut plain = String::new();
        text.decode_into(&mut plain, &mut state.carry);
        if let Some(streamed) = &mut state.streamed {
            streamed.take(&plain);
        }
        let carry = state.carry;
        self.parse(&plain, sink);
        if carry.lone > lone {
            sink.warn_lone(carry);
        }
    }

    /// Take the whole text of a watched part after its chunks, and parse the suffix that was not streamed.
    pub(crate) fn text_whole(
        &mut self,
        part: PartHandle,
        whole: Str<'_>,
        sink: &mut EmitterSink<'_>,
    ) {
        let Some(state) = self.watched.get_mut(&part) else { return };
        let whole = whole.text();
        match missing_suffix(&mut state.carry, state.streamed, &whole) {
            Some(rest) => self.text(part, Str::plain(rest), sink),
            None => sink.warn_differing(),
        }
    }

    /// Begin another paragraph of a watched part.  The protocol repeats the whole text of each paragraph separately.
    pub(crate) fn begin_paragraph(&mut self, part: PartHandle, sink: &mut EmitterSink<'_>) {
        self.flush_surrogate(part, sink);
        if let Some(state) = self.watched.get_mut(&part) {
            state.streamed = Some(Digest::default());
        }
    }

    /// Parse a pending high surrogate as U+FFFD.
    ///
    /// The end of a watched part does only this.  Its markup continues until the next part or the terminal, because only the
    /// terminal shows whether an open call was cut.
    pub(crate) fn flush_surrogate(&mut self, part: PartHandle, sink: &mut EmitterSink<'_>) {
        let Some(state) = self.watched.get_mut(&part) else { return };
        if state.carry.high.is_none() {
            return;
        }
        let mut text = String::new();
        state.carry.flush(&mut text);
        let carry = state.carry;
        self.parse(&text, sink);
        sink.warn_lone(carry);
    }

    /// Return the emitted part that takes an attribute of a watched part.
    pub(crate) fn attribute_part(
        &mut self,
        is_citation: bool,
        sink: &mut EmitterSink<'_>,
    ) -> PartHandle {
        let target = self.markup.attribute_part(is_citation, sink);
        sink.check_held(self.markup.held());
        target
    }

    fn parse(&mut self, text: &str, sink: &mut EmitterSink<'_>) {
        self.markup.feed(text, sink);
        sink.check_held(self.markup.held());
    }

    /// End the markup of the current part: emit held text and end open calls.
    pub(crate) fn end(&mut self, how: CallEnd, sink: &mut EmitterSink<'_>) {
        if let Some(part) = self.current.take() {
            self.flush_surrogate(part, sink);
            self.markup.flush(how, sink);
            sink.check_held(self.markup.held());
        }
    }

    /// End the markup of the message.
    pub(crate) fn settle(&mut self, how: CallEnd, sink: &mut EmitterSink<'_>) {
        self.end(how, sink);
        let finished = matches!(how, CallEnd::Finish(reason) if reason != FinishReason::Length);
        if finished && self.markup.unclosed() {
            let message = "thinking was never closed: all of it may have been the answer";
            sink.warn("unclosed_thinking", message, None);
        }
        let waiting: Vec<PartHandle> = self.watched.keys().copied().collect();
        for part in waiting {
            self.flush_surrogate(part, sink);
        }
    }
}
