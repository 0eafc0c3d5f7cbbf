//! The templates of one stream: the search for a match, and learning.
//!
//! Law: a study of a frame costs credit, and only hits earn credit, so streams without repetition pay little.

use std::ops::Range;

use super::compiled::{CompiledTemplate, Holes};
use super::event::{EventHandler, StudiedFrame, Template};
use super::token::MAX_TOKENS;
use crate::framing::Bytes;

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
}

impl<E> Default for Templates<E> {
    fn default() -> Self {
        Self { compiled: Vec::new(), recent: 0, credit: CREDIT, spans: Vec::new() }
    }
}

impl<E: Template> Templates<E> {
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
        let matches = |template: &CompiledTemplate<E>, holes: &mut Holes<'a>, handler: &mut H| {
            // An event with the same framing was compared as unframed bytes before.
            let new = wire.is_empty() || !template.frame.is_framed_as(wire, frame.len());
            let (start, end) = (template.frame.start, template.frame.end);
            let bytes = Bytes::Unchecked(frame);
            let repeats = new
                && template.is_named(name)
                && template.matches(start, end, bytes, holes, handler)? == frame.len();
            repeats.then_some(())
        };
        let hit = self.find(handler, matches).is_some();
        if hit
            && !wire.is_empty()
            && let Some(template) = self.compiled.get_mut(self.recent)
        {
            template.know_framing(std::str::from_utf8(wire).unwrap_or(""), frame);
        }
        hit
    }

    /// Apply the event at the start of unframed bytes and return its length, its framing included.
    #[inline]
    pub fn hit_unframed<'a, H: EventHandler<E>>(
        &mut self,
        rest: Bytes<'a>,
        max_bytes: usize,
        handler: &mut H,
    ) -> Option<usize> {
        let matches = |template: &CompiledTemplate<E>, holes: &mut Holes<'a>, handler: &mut H| {
            let end = template.matches(0, template.frame.wire.len(), rest, holes, handler)?;
            (template.frame.is_framed() && end <= max_bytes).then_some(end)
        };
        self.find(handler, matches)
    }

    #[inline]
    fn find<'a, H: EventHandler<E>, T>(
        &mut self,
        handler: &mut H,
        matches: impl Fn(&CompiledTemplate<E>, &mut Holes<'a>, &mut H) -> Option<T>,
    ) -> Option<T> {
        let mut holes = Holes::default();
        let found =
            matches(self.compiled.get(self.recent)?, &mut holes, handler).or_else(|| {
                let recent = self.recent;
                let mut others = self.compiled.iter().enumerate().filter(|(at, _)| *at != recent);
                let (at, found) = others.find_map(|(at, template)| {
                    Some((at, matches(template, &mut holes, handler)?))
                })?;
                self.recent = at;
                Some(found)
            })?;
        self.credit = self.credit.saturating_add(1).min(CREDIT);
        let template = self.compiled.get(self.recent)?;
        handler.apply(&template.event.fill(|token| template.text(token, &holes)));
        Some(found)
    }

    /// Return memory for the spans that `read` ignores if the credit allows another study.
    pub fn curious(&mut self) -> Option<Vec<Range<usize>>> {
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
