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
use crate::framing::Bytes;

/// Maximum number of templates at a time.  Few kinds of event alternate in one stretch of a stream.
const MAX_TEMPLATES: usize = 3;
/// Hits that pay for one study.  A study costs a few reads and allocations; this bounds the cost of templates that miss.
const STUDY: u32 = 16;
/// Credit for studies at the start of a stream, and its maximum.
const CREDIT: u32 = 16 * STUDY;

/// A template of one stream or, as it is the same for all, of every stream.
type SharedTemplate<E> = Arc<CompiledTemplate<E>>;

/// The templates of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Templates<E> {
    /// The template that matched last.  It is not in the list, because the lookup there would delay each match.
    recent: Option<SharedTemplate<E>>,
    /// The other templates.  If there are too many, a new one takes the place of the first.
    others: Vec<SharedTemplate<E>>,
    /// Credit that is left for studies.
    credit: u32,
    /// Memory for the spans of a studied frame.
    spans: Vec<Range<usize>>,
    /// Shapes of other streams, if they are shared.
    shared: Option<SharedShapes<E>>,
}

impl<E> Default for Templates<E> {
    fn default() -> Self {
        let (recent, others, spans) = (None, Vec::new(), Vec::new());
        Self { recent, others, credit: CREDIT, spans, shared: None }
    }
}

impl<E: Template> Templates<E> {
    /// Share the shapes of frames with other streams.
    pub fn share(&mut self, shapes: Option<&Arc<Shapes<E>>>) {
        self.shared = shapes.map(SharedShapes::new);
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
            && let Some(template) = &mut self.recent
        {
            know_framing(template, std::str::from_utf8(wire).unwrap_or(""), frame);
        }
        // Shapes know their framing, so that an event which was not cut had its chance before it was framed.
        hit || (wire.is_empty()
            && self.looks_up()
            && self
                .hit_shape(&Sought::Frame(name, Bytes::Unchecked(frame)), frame.len(), handler)
                .is_some())
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
            let sought = Some(Sought::Unframed(rest)).filter(|_| self.looks_up())?;
            self.hit_shape(&sought, max_bytes, handler)
        })
    }

    #[inline]
    fn looks_up(&self) -> bool {
        self.shared.as_ref().is_some_and(SharedShapes::is_patient)
    }

    /// Apply the event of a frame of at most `max_bytes` that has a shape of other streams, and keep its template for more of
    /// them.
    #[inline(never)]
    fn hit_shape<H: EventHandler<E>>(
        &mut self,
        sought: &Sought<'_>,
        max_bytes: usize,
        handler: &mut H,
    ) -> Option<usize> {
        let adopt = self.credit >= STUDY;
        let found = self.shared.as_mut()?.apply(sought, max_bytes, adopt, handler)?;
        if let Some(template) = found.template {
            self.credit -= STUDY;
            let name = template.cut.name().as_bytes();
            let is_known = self.all().any(|own| own.cut.is_named(name) && widen(own, found.frame));
            if !is_known {
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
        let found = self.recent.as_ref().and_then(|own| matches(&own.cut, &mut holes, handler));
        let found = found.or_else(|| {
            let (other, found) = self
                .others
                .iter_mut()
                .find_map(|own| matches(&own.cut, &mut holes, handler).map(|found| (own, found)))?;
            std::mem::swap(self.recent.as_mut()?, other);
            Some(found)
        })?;
        self.credit = self.credit.saturating_add(1).min(CREDIT);
        let template = self.recent.as_ref()?;
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
        let shows = self.shared.as_ref().is_some_and(SharedShapes::shows) && !E::has_facts(event);
        if !repeats && !shows {
            return false;
        }
        if repeats {
            let (name, json) = (frame.name.as_bytes(), frame.json.as_bytes());
            for own in self.all().filter(|own| own.cut.is_named(name)) {
                if widen(own, json) {
                    know_framing(own, frame.wire, json);
                    return true;
                }
            }
        }
        let Some(template) = CompiledTemplate::new(frame, event, ignored) else { return false };
        if let Some(shared) = self.shared.as_mut().filter(|_| shows) {
            shared.learn(&template, repeats);
        }
        if repeats {
            self.keep_learned(template);
        }
        true
    }

    /// Forget the templates of this stream: a fact that they left out has another value now.
    #[cold]
    pub fn forget(&mut self) {
        self.recent = None;
        self.others.clear();
    }

    /// Keep a template that the stream learned, in the memory of the one that it replaces.
    fn keep_learned(&mut self, mut template: CompiledTemplate<E>) {
        let is_full = self.is_full();
        let mut replaced = self.others.first_mut().filter(|_| is_full).and_then(Arc::get_mut);
        if let Some(replaced) = &mut replaced {
            template.cut.segments = std::mem::take(&mut replaced.cut.segments);
        }
        template.cut.cut();
        match replaced {
            Some(replaced) => {
                *replaced = template;
                self.others.rotate_left(1);
            }
            None => self.keep(Arc::new(template)),
        }
    }

    /// Keep a template, in the place of the oldest one if there are too many.
    fn keep(&mut self, template: SharedTemplate<E>) {
        if self.recent.is_none() {
            self.recent = Some(template);
            return;
        }
        if self.is_full() {
            self.others.remove(0);
        }
        self.others.push(template);
    }

    fn is_full(&self) -> bool {
        self.others.len() + 1 >= MAX_TEMPLATES
    }

    fn all(&mut self) -> impl Iterator<Item = &mut SharedTemplate<E>> {
        self.recent.iter_mut().chain(&mut self.others)
    }
}

/// Make holes of the spans in which `frame` differs; returns false for another skeleton.
fn widen<E: Template>(own: &mut SharedTemplate<E>, frame: &[u8]) -> bool {
    let Some(differing) = own.cut.differences(frame) else { return false };
    if !differing.is_empty() {
        Arc::make_mut(own).cut.widen(&differing);
    }
    true
}

/// Take over the framing of another frame of the same name, unless the framing is known.
fn know_framing<E: Template>(own: &mut SharedTemplate<E>, wire: &str, frame: &[u8]) {
    if !own.cut.frame.is_framed() {
        Arc::make_mut(own).cut.know_framing(wire, frame);
    }
}
