//! The templates of one stream: the search for a match, and learning.
//!
//! Law: a study of a frame costs credit, and only hits earn credit, so streams without repetition pay little.

use std::ops::Range;
use std::sync::Arc;

use super::compiled::CompiledTemplate;
use super::cut_frame::{CutFrame, Holes};
use super::event::{EventHandler, StudiedFrame, Template};
use super::shapes::{Shapes, SharedShapes, Sought};
use super::token::MAX_TOKENS;
use crate::framing::{Bytes, WholeEvent};
use crate::memory::{self, Report};

/// Maximum number of templates at a time.  Few kinds of event alternate in one stretch of a stream.
const MAX_TEMPLATES: usize = 3;
/// Hits that pay for one study.  A study costs a few reads and allocations; this bounds the cost of templates that miss.
const STUDY: u32 = 16;
/// Credit for studies at the start of a stream, and its maximum.
const CREDIT: u32 = 16 * STUDY;

/// The templates of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Templates<E> {
    compiled: Vec<CompiledTemplate<E>>,
    recent: usize,
    /// Credit that is left for studies.
    credit: u32,
    /// Memory for the spans of a studied frame.
    spans: Vec<Range<usize>>,
    /// Shapes of other streams, if they are shared.
    shared: Option<SharedShapes<E>>,
}

impl<E> Default for Templates<E> {
    fn default() -> Self {
        Self { compiled: Vec::new(), recent: 0, credit: CREDIT, spans: Vec::new(), shared: None }
    }
}

impl<E: Template> Templates<E> {
    /// Share the shapes of frames with other streams.
    pub fn share(&mut self, shapes: Option<&Arc<Shapes<E>>>) {
        self.shared = shapes.map(SharedShapes::new);
    }

    /// Report the memory of the template that matched last.
    pub fn memory(&self, report: &mut Report<'_>) {
        if let Some(template) = self.compiled.get(self.recent) {
            memory::of(template, report);
            template.cut.memory(report);
        }
    }

    /// Apply the event of a frame that matches a template; returns false for any other frame.
    ///
    /// The event is built in the call to the handler, because an event is large and returning it would copy it.
    #[inline]
    pub fn hit<'a, H: EventHandler<E>>(
        &mut self,
        name: &[u8],
        frame: &'a [u8],
        wire: &[u8],
        handler: &mut H,
    ) -> bool {
        let matches = |template: &CutFrame, holes: &mut Holes<'a>, handler: &mut H| {
            // An event with the same framing was compared as unframed bytes before.
            let new = wire.is_empty() || !template.frame.is_framed_as(wire, frame.len());
            let (start, end) = (template.frame.start, template.frame.end);
            let bytes = Bytes::Unchecked(frame);
            let repeats = new
                && template.is_named(name)
                && template
                    .matches(start, end, bytes, holes, |reader| handler.read_object(reader))?
                    == frame.len();
            repeats.then_some(())
        };
        let hit = self.find(handler, matches).is_some();
        if hit
            && !wire.is_empty()
            && let Some(template) = self.compiled.get_mut(self.recent)
        {
            template.cut.know_framing(std::str::from_utf8(wire).unwrap_or(""), frame);
        }
        // Shapes know their framing, so that an event which was not cut had its chance before it was framed.
        hit || (wire.is_empty()
            && self.looks_up()
            && self.hit_shape(&Sought::Frame(name, Bytes::Unchecked(frame)), handler).is_some())
    }

    /// Apply the event at the start of unframed bytes and return its length, its framing included.
    #[inline]
    pub fn hit_unframed<'a, H: EventHandler<E>>(
        &mut self,
        rest: Bytes<'a>,
        max_bytes: usize,
        handler: &mut H,
    ) -> Option<usize> {
        let matches = |template: &CutFrame, holes: &mut Holes<'a>, handler: &mut H| {
            let whole = template.frame.wire.len();
            let end =
                template.matches(0, whole, rest, holes, |reader| handler.read_object(reader))?;
            (template.frame.is_framed() && end <= max_bytes).then_some(end)
        };
        self.find(handler, matches).or_else(|| {
            // Shapes have this form alone.  The feed is not searched beyond the event: comments without end would cost the
            // rest of the feed each.
            let event = Some(rest.as_bytes()).filter(|_| self.looks_up());
            let event = event.and_then(WholeEvent::at_start_of)?;
            if event.bytes > max_bytes {
                return None;
            }
            self.hit_shape(&Sought::Unframed(rest, event), handler)
        })
    }

    #[inline]
    fn looks_up(&self) -> bool {
        self.shared.as_ref().is_some_and(SharedShapes::is_patient)
    }

    /// Apply the event of a frame that has a shape of other streams, and keep its template for more of them.
    #[inline(never)]
    fn hit_shape<H: EventHandler<E>>(
        &mut self,
        sought: &Sought<'_>,
        handler: &mut H,
    ) -> Option<usize> {
        let adopt = self.credit >= STUDY;
        let found = self.shared.as_mut()?.apply(sought, adopt, handler)?;
        if let Some(template) = found.template {
            self.credit -= STUDY;
            let name = template.cut.name().as_bytes();
            let mut same = self.compiled.iter_mut().filter(|own| own.cut.is_named(name));
            if !same.any(|own| own.cut.widen(found.frame)) {
                self.keep(template);
            }
        }
        Some(found.length)
    }

    #[inline]
    fn find<'a, H: EventHandler<E>, T>(
        &mut self,
        handler: &mut H,
        matches: impl Fn(&CutFrame, &mut Holes<'a>, &mut H) -> Option<T>,
    ) -> Option<T> {
        let mut holes = Holes::default();
        let found =
            matches(&self.compiled.get(self.recent)?.cut, &mut holes, handler).or_else(|| {
                let recent = self.recent;
                let mut others = self.compiled.iter().enumerate().filter(|(at, _)| *at != recent);
                let (at, found) = others.find_map(|(at, template)| {
                    Some((at, matches(&template.cut, &mut holes, handler)?))
                })?;
                self.recent = at;
                Some(found)
            })?;
        self.credit = self.credit.saturating_add(1).min(CREDIT);
        let template = self.compiled.get(self.recent)?;
        handler.apply(&template.event.fill(|token| template.cut.text(token, &holes)));
        Some(found)
    }

    /// Return memory for the spans that `read` ignores if the credit allows another study.
    pub fn curious(&mut self) -> Option<Vec<Range<usize>>> {
        if let Some(shared) = &mut self.shared {
            shared.miss();
        }
        (self.credit >= STUDY).then(|| std::mem::take(&mut self.spans))
    }

    /// Learn from a frame that was a miss; `ignored` are its scalars that `read` ignored.
    pub fn study(
        &mut self,
        frame: StudiedFrame<'_>,
        event: &E::Event<'_>,
        mut ignored: Vec<Range<usize>>,
    ) {
        let studied = self.learn(frame, event, &ignored);
        self.credit = self.credit.saturating_sub(if studied { STUDY } else { 0 });
        ignored.clear();
        ignored.shrink_to(MAX_TOKENS);
        self.spans = ignored;
    }

    fn learn(
        &mut self,
        frame: StudiedFrame<'_>,
        event: &E::Event<'_>,
        ignored: &[Range<usize>],
    ) -> bool {
        let repeats = E::repeats(event);
        let shows = self.shared.as_ref().is_some_and(SharedShapes::shows);
        if !repeats && !shows {
            return false;
        }
        if repeats {
            let mut same = self.compiled.iter_mut();
            let widened = same.find_map(|own| {
                let own = &mut own.cut;
                (own.is_named(frame.name.as_bytes()) && own.widen(frame.json.as_bytes()))
                    .then_some(own)
            });
            if let Some(own) = widened {
                own.know_framing(frame.wire, frame.json.as_bytes());
                return true;
            }
        }
        let Some(template) = CompiledTemplate::new(frame, event, ignored) else { return false };
        if let Some(shared) = self.shared.as_mut().filter(|_| shows) {
            shared.learn(&template, repeats);
        }
        if repeats {
            self.keep(template);
        }
        true
    }

    /// Keep a template, in the place of the oldest one if there are too many.
    fn keep(&mut self, mut template: CompiledTemplate<E>) {
        if self.compiled.len() < MAX_TEMPLATES {
            template.cut.cut();
            self.compiled.push(template);
        } else if let Some(oldest) = self.compiled.get_mut((self.recent + 1) % MAX_TEMPLATES) {
            template.cut.segments = std::mem::take(&mut oldest.cut.segments);
            template.cut.cut();
            *oldest = template;
        }
    }
}
