//! One template: a cut frame, and the event of the frames that match it.

use std::ops::Range;

use super::cut_frame::{CutFrame, Holes};
use super::event::{StudiedFrame, Template};
use super::token::Tokens;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct CompiledTemplate<E> {
    pub(super) cut: CutFrame,
    pub(super) event: E,
}

impl<E: Template> CompiledTemplate<E> {
    pub(super) fn new(
        frame: StudiedFrame<'_>,
        event: &E::Event<'_>,
        ignored: &[Range<usize>],
    ) -> Option<Self> {
        let mut tokens =
            Tokens { frame: frame.json, ignored: ignored.len(), spans: Vec::new(), fit: true };
        let event = E::from_event(event, &mut tokens)?;
        let cut =
            if tokens.fit { CutFrame::new(frame, tokens.spans, ignored)? } else { return None };
        Some(Self { cut, event })
    }

    /// Return the template of a stream for the frame that matched this one, as [`CutFrame::adopted`] does.
    pub(super) fn adopted<const N: usize>(
        &self,
        start: usize,
        found: &str,
        holes: &Holes<'_, N>,
    ) -> Option<Self> {
        let cut = self.cut.adopted(start, found, holes)?;
        Some(Self { cut, event: self.event.clone() })
    }

    /// Return the template that all streams have for the frames of this shape, as [`CutFrame::of_every_stream`] does.
    pub(super) fn of_every_stream(&self) -> Option<Self> {
        let cut = self.cut.of_every_stream()?;
        Some(Self { cut, event: self.event.clone() })
    }
}
