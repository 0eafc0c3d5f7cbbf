//! A wire protocol: the functions of a dialect, and their driver.
//!
//! In: frames of one stream, or bytes before framing.  Out: events, applied to the sink.
//!
//! Law: whether a template or `read` found an event makes no difference for its deltas.

use std::fmt::Debug;

use crate::contract::Output;
use crate::framing::Bytes;
use crate::json::{Reader, Result};
use crate::sink::DeltaSink;
use crate::template::{EventHandler, StudiedFrame, Template, Templates};

/// One framed JSON object.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The event's name, empty without one.
    pub name: &'a str,
    /// The object's JSON.
    pub json: &'a str,
    /// The event with its framing, if it is this frame alone and was whole in one feed; else empty.
    pub wire: &'a str,
    /// Bound of the nesting.
    pub max_depth: usize,
}

/// Options of the caller for reading a frame.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The number of the answer to follow, if the stream has several.
    pub choice: u64,
    /// Read log probabilities.
    pub logprobs: bool,
}

/// Numbers of the answers in one list.
#[derive(Debug, Default)]
pub(super) struct ChoiceNumbers {
    position: u64,
    zero_is_taken: bool,
}

impl ChoiceNumbers {
    /// Return the number of the next answer.
    ///
    /// Servers may leave number 0 out.  If another answer of the list has it, an answer without a number has its position.
    pub(super) fn number(&mut self, given: Option<u64>) -> u64 {
        let implied = if self.zero_is_taken { self.position } else { 0 };
        let number = given.unwrap_or(implied);
        self.zero_is_taken |= number == 0;
        self.position = self.position.saturating_add(1);
        number
    }
}

/// A wire protocol: the state of one stream and its functions.
pub trait Protocol: Clone + Debug + Default + PartialEq {
    /// The events that repeat.
    type EventTemplate: Template;

    /// Read a frame.  This is pure: the result depends on nothing but the frame.
    fn read<'a>(
        frame: Frame<'a>,
        reader: &mut Reader<'a>,
        wanted: Wanted,
    ) -> Result<Event<'a, Self>>;

    /// Read the object in a frame's hole into memory of the state; false if it is invalid.
    ///
    /// The value counts only if an event of the template follows.  See [`crate::template::Tokens::parsed_object`].
    fn read_object(&mut self, _: &mut Reader<'_>) -> bool {
        false
    }

    /// Apply an event.
    fn apply<O: Output>(&mut self, event: &Event<'_, Self>, sink: &mut DeltaSink<'_, O>);

    /// Emit the content that the state still holds; no event follows.
    fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>);
}

/// The event that a protocol reads from a frame.
pub type Event<'a, P> = <<P as Protocol>::EventTemplate as Template>::Event<'a>;

/// A protocol and the sink of its deltas, during one call to the templates.
struct Application<'a, 'b, P, O> {
    protocol: &'a mut P,
    sink: &'a mut DeltaSink<'b, O>,
}

impl<P: Protocol, O: Output> EventHandler<P::EventTemplate> for Application<'_, '_, P, O> {
    #[inline]
    fn read_object(&mut self, reader: &mut Reader<'_>) -> bool {
        self.protocol.read_object(reader)
    }

    #[inline]
    fn apply(&mut self, event: &Event<'_, P>) {
        self.protocol.apply(event, self.sink);
    }
}

/// Driver of a protocol: its state and the templates of its frames.
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
        templates.hit(name, frame, wire, &mut Application { protocol, sink })
    }

    /// Apply the events at the start of unframed bytes while they match templates; returns the length of these events.
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
            && let Some(end) = templates.hit_unframed(
                rest,
                max_bytes,
                &mut Application { protocol: &mut *protocol, sink: &mut *sink },
            )
        {
            sink.end_frame();
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
            let Frame { name, json, wire, .. } = frame;
            self.templates.study(StudiedFrame { name, json, wire }, &event, ignored);
        }
        self.protocol.apply(&event, sink);
        Ok(())
    }

    pub(super) fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>) {
        self.protocol.close(sink);
    }
}
