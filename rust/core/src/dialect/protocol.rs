//! A wire protocol: the two functions that a dialect consists of, and their place in a stream.

use std::fmt::Debug;

use crate::contract::Output;
use crate::emit::DeltaSink;
use crate::framing::Bytes;
use crate::json::{Reader, Result};
use crate::template::{Template, Templates};

/// One framed JSON object.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The event's name, empty when it has none.
    pub name: &'a str,
    /// The object's JSON.
    pub json: &'a str,
    /// The event in its framing, when it is this frame alone and stood whole in a feed; else empty.
    pub wire: &'a str,
    /// Nesting that is read.
    pub max_depth: usize,
}

/// What the caller wants of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Which of several answers is followed.
    pub choice: u64,
    /// Whether log probabilities are read.
    pub logprobs: bool,
}

/// A wire protocol: the state of one stream, and the two functions.
pub trait Protocol: Clone + Debug + Default + PartialEq {
    /// The events that come again and again, all alike.
    type EventTemplate: Template;

    /// Reads a frame.
    fn read<'a>(
        frame: Frame<'a>,
        reader: &mut Reader<'a>,
        wanted: Wanted,
    ) -> Result<Event<'a, Self>>;

    /// Reads the object in a frame's hole into room of its own, which counts only once an event that repeats a template
    /// speaks of it; false for what is no valid object.  See [`crate::template::Tokens::parsed_object`].
    fn read_object(&mut self, _: &mut Reader<'_>) -> bool {
        false
    }

    /// Applies an event.
    fn apply<O: Output>(&mut self, event: &Event<'_, Self>, sink: &mut DeltaSink<'_, O>);

    /// Says what the state still holds back; no event follows.
    fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>);
}

/// What a protocol reads of a frame.
pub type Event<'a, P> = <<P as Protocol>::EventTemplate as Template>::Event<'a>;

/// A protocol at work: its state, and the templates that its frames repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtocolDriver<P: Protocol> {
    protocol: P,
    templates: Templates<P::EventTemplate>,
}

impl<P: Protocol> Default for ProtocolDriver<P> {
    fn default() -> Self {
        Self { protocol: P::default(), templates: Templates::default() }
    }
}

impl<P: Protocol> ProtocolDriver<P> {
    #[inline]
    pub(super) fn apply_template<O: Output>(
        &mut self,
        name: &[u8],
        frame: &[u8],
        wire: &[u8],
        sink: &mut DeltaSink<'_, O>,
    ) -> bool {
        let Self { protocol, templates } = self;
        templates.hit(name, frame, wire, protocol, |protocol, event| protocol.apply(event, sink))
    }

    /// Applies the events at the start of what is not framed yet, as far as they repeat templates; how many bytes they are.
    #[inline]
    pub(super) fn apply_templates_unframed<O: Output>(
        &mut self,
        bytes: Bytes<'_>,
        sink: &mut DeltaSink<'_, O>,
    ) -> usize {
        let Self { protocol, templates } = self;
        let max_bytes = sink.options().limits.event_bytes;
        let mut taken = 0;
        while let Some(rest) = bytes.after(taken).filter(|_| !sink.ended())
            && let Some(end) =
                templates.hit_unframed(rest, max_bytes, protocol, |protocol, event| {
                    protocol.apply(event, sink);
                    sink.end_frame();
                })
        {
            taken += end;
        }
        taken
    }

    pub(super) fn frame<O: Output>(
        &mut self,
        frame: Frame<'_>,
        sink: &mut DeltaSink<'_, O>,
    ) -> Result<()> {
        let options = sink.options();
        let wanted = Wanted { choice: options.choice, logprobs: options.logprobs };
        let mut reader = Reader::new(frame.json, frame.max_depth);
        if let Some(trace) = self.templates.curious() {
            reader.trace(trace);
        }
        let event = P::read(frame, &mut reader, wanted)?;
        if let Some(ignored) = reader.into_trace() {
            self.templates.study(frame, &event, ignored);
        }
        self.protocol.apply(&event, sink);
        Ok(())
    }

    pub(super) fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>) {
        self.protocol.close(sink);
    }
}
