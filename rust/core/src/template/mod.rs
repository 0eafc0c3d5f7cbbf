//! Template decoding stands in for `read` where a stream repeats itself.
//!
//! In: a frame's bytes, or those of a feed of which nobody has framed the rest.  Out: the [`Template::Event`] that `read`
//! would have made of them, or nothing.
//!
//! A template is a frame that `read` accepted, cut at token borders.  Its holes are what the event says, from the first
//! frame on; scalar values that `read` borrowed or ignored and that differed between two frames of one skeleton; objects
//! that it borrowed as they stand; and the white space before the last brace.  Literals must be equal byte for byte, what
//! stands in a hole must be a valid token of the same kind, an object that nests no deeper.  `read` looks at nothing else
//! in a hole (it tells borrowed strings apart by being empty, so an empty one is refused), hence it would have made the
//! same event.  An object that the protocol would read later is read where it is found, which says that it is valid.  Any
//! mismatch or doubt is a miss: `read` decides.
//!
//! A frame that stood whole in a feed is kept with what framed it.  No hole takes a line end, so that where all of its
//! literals stand, framing would have found this event and no other: such an event is taken before it is framed.
//!
//! Learned per stream, at most [`MAX_TEMPLATES`] at a time.  Held equal to `read` by property tests and fuzzing; without this file
//! everything works as before.

mod compiled;
mod framed_json;
mod token;

use std::fmt::Debug;
use std::ops::Range;

use compiled::{CompiledTemplate, Holes};
pub use token::{Token, Tokens};

use crate::dialect::protocol::{Frame, Protocol};
use crate::framing::Bytes;
use crate::json::Str;

/// Templates kept at a time: the kinds of event that alternate in one stretch of a stream.
const MAX_TEMPLATES: usize = 3;
/// Tokens of a frame that may become holes; a frame with more is not worth a template.
const MAX_TOKENS: usize = 48;
/// Hits that pay for a study: it costs a few reads and allocations, and a template that thrashes must not cost more.
const STUDY: u32 = 16;
/// What a stream has before its first hit, and can save at the most.
const CREDIT: u32 = 16 * STUDY;

/// An event whose tokens are spans, so that it outlives its frame.
pub trait Template: Clone + Debug + PartialEq + Sized {
    /// The event over borrowed tokens.
    type Event<'a>;

    /// The event over spans; `None` for one of a kind that does not come again and again, all alike.
    fn from_event(event: &Self::Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self>;

    /// The event over the tokens that stand in these spans.
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Self::Event<'a>;
}

/// The templates of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Templates<E> {
    compiled: Vec<CompiledTemplate<E>>,
    recent: usize,
    /// What is left for studies.
    credit: u32,
    /// Memory for the spans in a frame that is studied.
    spans: Vec<Range<usize>>,
}

impl<E> Default for Templates<E> {
    fn default() -> Self {
        Self { compiled: Vec::new(), recent: 0, credit: CREDIT, spans: Vec::new() }
    }
}

impl<E: Template> Templates<E> {
    /// Hands the event of a frame that repeats a template to `apply`, where it is made: an event is large, and to return it
    /// would be to copy it.  False for any other frame.
    #[inline]
    pub fn hit<'a, P: Protocol<EventTemplate = E>>(
        &mut self,
        name: &[u8],
        frame: &'a [u8],
        wire: &[u8],
        protocol: &mut P,
        apply: impl FnOnce(&mut P, &E::Event<'_>),
    ) -> bool {
        let matches = |template: &CompiledTemplate<E>, holes: &mut Holes<'a>, protocol: &mut P| {
            // An event that was framed in the same way was compared before.
            let new = wire.is_empty() || !template.frame.is_framed_as(wire, frame.len());
            let (start, end) = (template.frame.start, template.frame.end);
            let bytes = Bytes::Unchecked(frame);
            let repeats = new
                && template.is_named(name)
                && template.matches(start, end, bytes, holes, protocol)? == frame.len();
            repeats.then_some(())
        };
        let hit = self.find(protocol, matches, apply).is_some();
        if hit
            && !wire.is_empty()
            && let Some(template) = self.compiled.get_mut(self.recent)
        {
            template.know_framing(std::str::from_utf8(wire).unwrap_or(""), frame);
        }
        hit
    }

    /// Like [`Self::hit`] for the event that a feed's rest begins with, with what frames it: how many bytes that is.
    #[inline]
    pub fn hit_unframed<'a, P: Protocol<EventTemplate = E>>(
        &mut self,
        rest: Bytes<'a>,
        max_bytes: usize,
        protocol: &mut P,
        apply: impl FnOnce(&mut P, &E::Event<'_>),
    ) -> Option<usize> {
        let matches = |template: &CompiledTemplate<E>, holes: &mut Holes<'a>, protocol: &mut P| {
            let end = template.matches(0, template.frame.wire.len(), rest, holes, protocol)?;
            (template.frame.is_framed() && end <= max_bytes).then_some(end)
        };
        self.find(protocol, matches, apply)
    }

    #[inline]
    fn find<'a, P, T>(
        &mut self,
        protocol: &mut P,
        matches: impl Fn(&CompiledTemplate<E>, &mut Holes<'a>, &mut P) -> Option<T>,
        apply: impl FnOnce(&mut P, &E::Event<'_>),
    ) -> Option<T> {
        let mut holes = Holes::default();
        let found =
            matches(self.compiled.get(self.recent)?, &mut holes, protocol).or_else(|| {
                let recent = self.recent;
                let mut others = self.compiled.iter().enumerate().filter(|(at, _)| *at != recent);
                let (at, found) = others.find_map(|(at, template)| {
                    Some((at, matches(template, &mut holes, protocol)?))
                })?;
                self.recent = at;
                Some(found)
            })?;
        self.credit = self.credit.saturating_add(1).min(CREDIT);
        let template = self.compiled.get_mut(self.recent)?;
        if template.has_objects {
            template.keep_objects(&holes);
        }
        let template = &*template;
        apply(protocol, &template.event.fill(|token| template.text(token, &holes)));
        Some(found)
    }

    /// Memory for the spans that `read` ignores, if it is worth studying another frame.
    pub fn curious(&mut self) -> Option<Vec<Range<usize>>> {
        (self.credit >= STUDY).then(|| std::mem::take(&mut self.spans))
    }

    /// Studies a frame that was no hit: `ignored` are the scalars in it that `read` ignored.
    pub fn study(
        &mut self,
        frame: Frame<'_>,
        event: &E::Event<'_>,
        mut ignored: Vec<Range<usize>>,
    ) {
        let studied = self.learn(frame, event, &ignored);
        self.credit = self.credit.saturating_sub(if studied { STUDY } else { 0 });
        ignored.clear();
        ignored.shrink_to(MAX_TOKENS);
        self.spans = ignored;
    }

    fn learn(&mut self, frame: Frame<'_>, event: &E::Event<'_>, ignored: &[Range<usize>]) -> bool {
        for template in
            self.compiled.iter_mut().filter(|template| template.is_named(frame.name.as_bytes()))
        {
            if template.widen(frame.json.as_bytes()) {
                template.know_framing(frame.wire, frame.json.as_bytes());
                return true;
            }
        }
        let Some(mut template) = CompiledTemplate::new(frame, event, ignored) else { return false };
        if self.compiled.len() < MAX_TEMPLATES {
            template.cut();
            self.compiled.push(template);
        } else if let Some(oldest) = self.compiled.get_mut((self.recent + 1) % MAX_TEMPLATES) {
            template.segments = std::mem::take(&mut oldest.segments);
            template.cut();
            *oldest = template;
        }
        true
    }
}
