//! A wire protocol: the functions of a dialect, and their driver.
//!
//! In: frames of one stream, or bytes before framing.  Out: events, applied to the sinks of the answers that are followed.
//!
//! Laws: whether a template or `read` found an event makes no difference for its deltas.  An event is found once, however
//! many answers are followed, and an answer gets the same deltas from it as if it were followed alone.

use std::fmt::Debug;
use std::sync::Arc;

use super::choices::Followed;
use crate::contract::Logprobs;
use crate::framing::Bytes;
use crate::json::{Kind, Reader, Result};
use crate::limits::Limits;
use crate::sink::{DeltaSink, Sinks};
use crate::template::{EventHandler, Shapes, StudiedFrame, Template, Templates};

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
    /// The answers to follow, if the stream has several.
    pub followed: Followed,
    /// Read log probabilities.
    pub logprobs: bool,
}

impl Wanted {
    /// Skip log probabilities that the caller did not ask for, and return whether there were any.
    ///
    /// Some servers always send an empty list.  `skip`, unlike `ignore`, does not trace scalars: a template with a hole per
    /// number is useless.
    pub fn pass_over_logprobs(reader: &mut Reader<'_>) -> Result<bool> {
        if !matches!(reader.kind()?, Kind::Object | Kind::Array) {
            return reader.skip().map(|()| false);
        }
        Ok(reader.raw()?.contains("\"token"))
    }

    /// As [`Self::pass_over_logprobs`]; no tokens stand for log probabilities that were not read.
    pub fn unread_logprobs(reader: &mut Reader<'_>) -> Result<Option<Box<Logprobs>>> {
        Ok(Self::pass_over_logprobs(reader)?.then(Box::default))
    }
}

/// A wire protocol: the state of one stream and its functions.
pub trait Protocol: Clone + Debug + Default + PartialEq {
    /// The events that repeat.
    type EventTemplate: Template;

    /// True if a stream of the protocol may have several answers.
    const HAS_CHOICES: bool = false;

    /// Read a frame.  This is pure: the result depends on nothing but the frame.
    fn read<'a>(
        frame: Frame<'a>,
        reader: &mut Reader<'a>,
        wanted: Wanted,
    ) -> Result<Event<'a, Self>>;

    /// Read the object in a frame's hole into memory of the state; false if it is invalid or not on one line.
    ///
    /// The value counts only if an event of the template follows.  See [`crate::template::Tokens::parsed_object`].
    fn read_object(&mut self, _: &mut Reader<'_>) -> bool {
        false
    }

    /// Exchange the memory of [`Self::read_object`] with the state of another answer.
    fn swap_object(&mut self, _: &mut Self) {}

    /// Pass the numbers of the answers that an event holds to `shown`.  An event may hold an answer several times.
    fn show_choices(&self, _: &Event<'_, Self>, _: &Limits, _shown: &mut dyn FnMut(u64)) {}

    /// Apply an event to the answer of the sink.
    fn apply(&mut self, event: &Event<'_, Self>, sink: &mut DeltaSink<'_>);

    /// Emit the content that the state still holds; no event follows.
    fn close(&mut self, sink: &mut DeltaSink<'_>);
}

/// The event that a protocol reads from a frame.
pub type Event<'a, P> = <<P as Protocol>::EventTemplate as Template>::Event<'a>;

/// The states of the answers in the order of [`Sinks::admit`], if all are followed.
#[derive(Clone, Debug, PartialEq)]
struct Others<P>(Vec<P>);

impl<P> Default for Others<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// The states of the answers and the sinks of their deltas, during one call to the templates.
struct Application<'a, P, S> {
    first: &'a mut P,
    others: &'a mut Option<Box<Others<P>>>,
    sinks: &'a mut S,
}

impl<P: Protocol, S: Sinks> EventHandler<P::EventTemplate> for Application<'_, P, S> {
    #[inline]
    fn read_object(&mut self, reader: &mut Reader<'_>) -> bool {
        self.first.read_object(reader)
    }

    #[inline]
    fn apply(&mut self, event: &Event<'_, P>) {
        if S::ALL {
            return self.apply_to_all(event);
        }
        let Self { first, sinks, .. } = self;
        sinks.with(0, |sink| first.apply(event, sink));
    }
}

impl<P: Protocol, S: Sinks> Application<'_, P, S> {
    /// Apply an event to every answer.  An answer that it shows for the first time begins as a copy of the first one.
    fn apply_to_all(&mut self, event: &Event<'_, P>) {
        let Self { first, others, sinks } = self;
        let limits = sinks.options().limits;
        first.show_choices(event, &limits, &mut |number| {
            if sinks.admit(number) {
                others.get_or_insert_default().0.push(first.clone());
            }
        });
        for (at, other) in (1..).zip(others.iter_mut().flat_map(|others| &mut others.0)) {
            other.swap_object(first);
            sinks.with(at, |sink| other.apply(event, sink));
            other.swap_object(first);
        }
        sinks.with(0, |sink| first.apply(event, sink));
    }
}

/// Driver of a protocol: the states of its answers, and the templates of its frames.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtocolDriver<P: Protocol> {
    /// The followed answer, or the shared content if all answers are followed.
    first: P,
    others: Option<Box<Others<P>>>,
    templates: Templates<P::EventTemplate>,
}

impl<P: Protocol> Default for ProtocolDriver<P> {
    fn default() -> Self {
        Self { first: P::default(), others: None, templates: Templates::default() }
    }
}

impl<P: Protocol> ProtocolDriver<P> {
    /// Share the shapes of frames with other streams.
    pub(super) fn share(&mut self, shapes: Option<&Arc<Shapes<P::EventTemplate>>>) {
        self.templates.share(shapes);
    }

    #[inline]
    pub(super) fn apply_template(
        &mut self,
        name: &[u8],
        frame: &[u8],
        wire: &[u8],
        sinks: &mut impl Sinks,
    ) -> bool {
        let Self { first, others, templates } = self;
        templates.hit(name, frame, wire, &mut Application { first, others, sinks })
    }

    /// Apply the events at the start of unframed bytes while they match templates; returns the length of these events.
    #[inline]
    pub(super) fn apply_templates_unframed(
        &mut self,
        bytes: Bytes<'_>,
        sinks: &mut impl Sinks,
    ) -> usize {
        let Self { first, others, templates } = self;
        let max_bytes = sinks.options().limits.event_bytes;
        let mut taken = 0;
        while let Some(rest) = bytes.after(taken).filter(|rest| !rest.is_empty() && !sinks.ended())
            && let Some(end) = templates.hit_unframed(
                rest,
                max_bytes,
                &mut Application { first: &mut *first, others: &mut *others, sinks: &mut *sinks },
            )
        {
            sinks.end_frame();
            taken += end;
        }
        taken
    }

    pub(super) fn frame<S: Sinks>(&mut self, frame: Frame<'_>, sinks: &mut S) -> Result<()> {
        let options = sinks.options();
        let followed = if S::ALL {
            Followed::All(options.limits.choices)
        } else if options.joined_choices {
            Followed::Joined(options.choice)
        } else {
            Followed::One(options.choice)
        };
        let wanted = Wanted { followed, logprobs: options.logprobs };
        let mut reader = Reader::new(frame.json, frame.max_depth);
        if let Some(trace) = self.templates.curious() {
            reader.trace(trace);
        }
        let event = P::read(frame, &mut reader, wanted)?;
        if let Some(ignored) = reader.into_trace() {
            let Frame { name, json, wire, .. } = frame;
            self.templates.study(StudiedFrame { name, json, wire }, &event, ignored);
        }
        let Self { first, others, .. } = self;
        Application { first, others, sinks }.apply(&event);
        if P::EventTemplate::has_facts(&event) && sinks.has_changed_fact() {
            self.templates.forget();
        }
        Ok(())
    }

    /// Pass the numbers of the answers in a frame to `shown`; none for a frame that is not valid.
    pub(super) fn show_choices(
        &self,
        frame: Frame<'_>,
        limits: &Limits,
        shown: &mut dyn FnMut(u64),
    ) {
        let wanted = Wanted { followed: Followed::All(limits.choices), logprobs: false };
        if let Ok(event) = P::read(frame, &mut Reader::new(frame.json, frame.max_depth), wanted) {
            self.first.show_choices(&event, limits, shown);
        }
    }

    pub(super) fn close(&mut self, sinks: &mut impl Sinks) {
        sinks.with(0, |sink| self.first.close(sink));
        for (at, other) in (1..).zip(self.others.iter_mut().flat_map(|others| &mut others.0)) {
            sinks.with(at, |sink| other.close(sink));
        }
    }
}
