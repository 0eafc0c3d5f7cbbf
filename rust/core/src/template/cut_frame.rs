//! A frame that is cut at its holes, and the comparison of other frames with it.
//!
//! In: the frame of a template and the spans of its tokens.  Out: the texts in the holes of a frame that matches.
//!
//! Law: nothing here depends on the event of a template, so that the protocols share the code.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use super::event::StudiedFrame;
use super::framed_json::FramedJson;
use super::token::{Kind, MAX_TOKENS, Token, TokenSpan};
use crate::framing::Bytes;
use crate::json::{Reader, Str};

/// Maximum number of holes of a template of one stream.
const MAX_HOLES: usize = 8;

/// A hole in the frame of a template.  Literals separate the holes.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// Its span in the template's own frame, framing included.
    hole: Range<usize>,
    kind: Kind,
}

/// Positions are not compared, since they follow from the spans of the template.
impl PartialEq for Segment {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct CutFrame {
    name: Box<str>,
    pub(super) frame: FramedJson,
    spans: Vec<TokenSpan>,
    pub(super) segments: Vec<Segment>,
}

/// The texts in the holes of a frame.
pub(super) struct Holes<'a, const N: usize = MAX_HOLES> {
    texts: [&'a str; N],
    /// One bit for each hole, set if the text has escapes.
    escaped: u32,
}

impl<const N: usize> Default for Holes<'_, N> {
    fn default() -> Self {
        Self { texts: [""; N], escaped: 0 }
    }
}

impl CutFrame {
    /// Return the frame with the spans of its tokens; `None` if it has too many.
    pub(super) fn new(
        frame: StudiedFrame<'_>,
        mut spans: Vec<TokenSpan>,
        ignored: &[Range<usize>],
    ) -> Option<Self> {
        let StudiedFrame { name, json, wire } = frame;
        spans.extend(ignored.iter().map(|range| TokenSpan::ignored(json, range)));
        let closing = json.rfind('}')?;
        let padding = json.get(..closing)?.trim_end().len();
        spans.push(TokenSpan {
            range: padding..closing,
            kind: Kind::Space,
            escaped: false,
            changes: false,
            hole: None,
        });
        let fits = spans.len() <= MAX_TOKENS;
        let frame = FramedJson::new(json, wire);
        fits.then(|| Self { name: name.into(), frame, spans, segments: Vec::new() })
    }

    /// Return the name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Compare the name.
    ///
    /// Empty names are handled first.  A comparison of two empty texts in the C library costs more than the rest of a match.
    #[inline]
    pub(super) fn is_named(&self, name: &[u8]) -> bool {
        if name.is_empty() { self.name.is_empty() } else { *self.name.as_bytes() == *name }
    }

    /// Return the text of a token: of its hole, or of the template's own frame.
    #[inline]
    pub(super) fn text<'a, const N: usize>(
        &'a self,
        token: Token,
        holes: &Holes<'a, N>,
    ) -> Str<'a> {
        let nothing = Str::plain("");
        let Some(span) = self.spans.get(usize::from(token.0)) else { return nothing };
        let Some(hole) = span.hole else {
            let range = moved(&span.range, self.frame.start);
            let raw = self.frame.wire.get(range).unwrap_or("");
            return Str { raw, escaped: span.escaped };
        };
        let hole = usize::from(hole);
        let raw = holes.texts.get(hole).copied().unwrap_or("");
        Str { raw, escaped: holes.escaped & (1 << hole) != 0 }
    }

    /// Make holes of all tokens that another stream may have with another text, and remove their texts from the frame.
    ///
    /// Returns false, without a use for the template, if it would have more than `max_holes`, or reads an object.
    pub(super) fn open(&mut self, max_holes: usize) -> bool {
        self.spans.iter_mut().filter(|span| span.opens()).for_each(|span| span.hole = Some(0));
        self.cut();
        let readable = |segment: &Segment| !matches!(segment.kind, Kind::Read(_));
        if self.segments.len() > max_holes || !self.segments.iter().all(readable) {
            return false;
        }
        let mut wire = std::mem::take(&mut self.frame.wire).into_string();
        for segment in &self.segments {
            wire.replace_range(segment.hole.clone(), &" ".repeat(segment.hole.len()));
        }
        self.frame.wire = wire.into();
        true
    }

    /// Return the template that [`Self::adopted`] returns for each frame of this shape that has no white space before its last
    /// brace, apart from the texts of its holes.  `None` if each stream has a template of its own.
    pub(super) fn of_every_stream(&self) -> Option<Self> {
        let mut own = self.clone();
        for span in own.spans.iter_mut().filter(|span| span.hole.is_some() && !span.changes) {
            if span.kind != Kind::Space || !span.range.is_empty() {
                return None;
            }
            span.hole = None;
        }
        own.cut();
        Some(own)
    }

    /// Return true if a frame that matched this shape has no white space before its last brace.
    pub(super) fn has_no_padding<const N: usize>(&self, holes: &Holes<'_, N>) -> bool {
        let mut texts = self.segments.iter().zip(&holes.texts);
        texts.all(|(segment, text)| segment.kind != Kind::Space || text.is_empty())
    }

    /// Return the template of a stream for the frame that matched this one from `start` on, with the texts of its holes.
    pub(super) fn adopted<const N: usize>(
        &self,
        start: usize,
        found: &str,
        holes: &Holes<'_, N>,
    ) -> Option<Self> {
        let signed = |offset: usize| isize::try_from(offset).ok();
        // In the coordinates of `found`; `by` is the shift of the literal after each hole.
        let mut by = 0_isize.checked_sub_unsigned(start)?;
        let mut room = [(0, 0, 0); N];
        let places = room.get_mut(..self.segments.len())?;
        for ((segment, text), place) in self.segments.iter().zip(&holes.texts).zip(&mut *places) {
            let begin = segment.hole.start.checked_add_signed(by)?;
            let end = begin + text.len();
            by = signed(end)?.checked_sub(signed(segment.hole.end)?)?;
            *place = (begin, end, by);
        }
        let before = self.frame.start.checked_sub(start)?;
        let mut spans = self.spans.clone();
        for span in &mut spans {
            if let Some(hole) = span.hole {
                let (begin, end, _) = *places.get(usize::from(hole))?;
                span.range = begin.checked_sub(before)?..end.checked_sub(before)?;
                span.escaped = holes.escaped & (1 << hole) != 0;
                span.hole = span.changes.then_some(0);
            } else {
                let end = span.range.end + self.frame.start;
                let behind =
                    self.segments.iter().take_while(|segment| segment.hole.end <= end).count();
                let by = behind.checked_sub(1).and_then(|at| places.get(at));
                let first = 0_isize.checked_sub_unsigned(start)?;
                let by = by.map_or(first, |(.., by)| *by) + start.cast_signed();
                span.range = span.range.start.checked_add_signed(by)?
                    ..span.range.end.checked_add_signed(by)?;
            }
        }
        let end = self.frame.end.checked_add_signed(by)?;
        let frame = FramedJson { wire: found.into(), start: before, end };
        let mut own = Self { name: self.name.clone(), frame, spans, segments: Vec::new() };
        own.cut();
        Some(own)
    }

    /// Return a hash of the name and of the bytes that [`Self::open`] leaves unchanged.
    pub(super) fn skeleton(&self) -> u64 {
        let mut open: Vec<Range<usize>> = self
            .spans
            .iter()
            .filter(|span| span.opens())
            .map(|span| moved(&span.range, self.frame.start))
            .collect();
        open.sort_by_key(|range| range.start);
        let mut hasher = DefaultHasher::new();
        self.name.hash(&mut hasher);
        let mut mine = 0;
        for hole in open {
            self.frame.wire.get(mine..hole.start).hash(&mut hasher);
            mine = hole.end;
        }
        self.frame.wire.get(mine..).hash(&mut hasher);
        hasher.finish()
    }

    /// Cut the frame at the spans that are holes.
    pub(super) fn cut(&mut self) {
        let mut room = [0; MAX_TOKENS];
        let mut count = 0;
        for (at, span) in self.spans.iter().enumerate() {
            if let (Some(_), Some(place)) = (span.hole, room.get_mut(count)) {
                *place = at;
                count += 1;
            }
        }
        let holes = room.get_mut(..count).unwrap_or_default();
        holes.sort_by_key(|at| self.spans.get(*at).map(|span| span.range.start));
        self.segments.clear();
        self.segments.reserve_exact(count);
        for (number, at) in (0..).zip(holes) {
            if let Some(span) = self.spans.get_mut(*at) {
                span.hole = Some(number);
                let hole = moved(&span.range, self.frame.start);
                self.segments.push(Segment { hole, kind: span.kind });
            }
        }
    }

    /// Take over the framing of another frame of the same name.
    #[cold]
    pub(super) fn know_framing(&mut self, wire: &str, frame: &[u8]) {
        let before = self.frame.start;
        self.frame.know(wire, frame);
        let by = self.frame.start - before;
        for segment in self.segments.iter_mut().filter(|_| by > 0) {
            segment.hole = moved(&segment.hole, by);
        }
    }

    /// Return the end offset of this template's match in `bytes`.
    ///
    /// `start` and `end` are the piece of the template to match, framing included.  `read_object` reads the objects that the
    /// protocol reads in place.
    #[inline]
    pub(super) fn matches<'a, const N: usize>(
        &self,
        start: usize,
        end: usize,
        bytes: Bytes<'a>,
        holes: &mut Holes<'a, N>,
        mut read_object: impl FnMut(&mut Reader<'_>) -> bool,
    ) -> Option<usize> {
        let text = bytes.as_bytes();
        holes.escaped = 0;
        let (mut bit, mut mine, mut at) = (1, start, 0);
        for (segment, found) in self.segments.iter().zip(&mut holes.texts) {
            at = self.literal(mine..segment.hole.start, text, at)?;
            mine = segment.hole.end;
            if let Kind::Read(levels) = segment.kind {
                let mut reader = Reader::new(bytes.line(at)?, usize::from(levels));
                read_object(&mut reader).then_some(())?;
                *found = "";
                bit <<= 1;
                at += reader.position();
                continue;
            }
            let (end, escaped) = segment.kind.end(text, at)?;
            *found = bytes.text(at..end)?;
            if escaped {
                holes.escaped |= bit;
            }
            bit <<= 1;
            at = end;
        }
        self.literal(mine..end, text, at)
    }

    /// Return the end of a literal that must begin at `at`.
    #[inline]
    fn literal(&self, literal: Range<usize>, text: &[u8], at: usize) -> Option<usize> {
        let end = at + literal.len();
        is_same(text.get(at..end)?, self.frame.wire.as_bytes().get(literal)?).then_some(end)
    }

    /// Return the numbers of the spans in which `frame` differs; `None` for another skeleton.
    ///
    /// None are returned if there are too many for the holes of a template, which then stays as it is.
    pub(super) fn differences(&self, frame: &[u8]) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.spans.len()).collect();
        order.sort_by_key(|at| self.spans.get(*at).map(|span| span.range.start));
        let behind = self.frame.start;
        let (mut mine, mut at, mut differing) = (behind, 0, Vec::new());
        for number in order {
            let Some(span) = self.spans.get(number).filter(|span| span.kind != Kind::Fixed) else {
                continue;
            };
            let start = self.literal(mine..behind + span.range.start, frame, at)?;
            let (end, _) = span.kind.end(frame, start)?;
            let own = self.frame.frame().as_bytes().get(span.range.clone());
            if span.hole.is_none() && frame.get(start..end) != own {
                differing.push(number);
            }
            mine = behind + span.range.end;
            at = end;
        }
        let end = self.literal(mine..self.frame.end, frame, at)?;
        let holes = self.spans.iter().filter(|span| span.hole.is_some()).count();
        if holes + differing.len() > MAX_HOLES {
            differing.clear();
        }
        (end == frame.len()).then_some(differing)
    }

    /// Make holes of the spans with these numbers.
    pub(super) fn widen(&mut self, differing: &[usize]) {
        for number in differing {
            if let Some(span) = self.spans.get_mut(*number) {
                span.hole = Some(0);
            }
        }
        self.cut();
    }
}

/// Compare two texts of the same length.
///
/// Most literals behind a hole are a few brackets, for which calling the C library takes longer than comparing them.
#[inline]
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    if let (Some(first), Some(last)) = (one.first_chunk::<4>(), one.last_chunk::<4>())
        && one.len() <= 8
    {
        return other.first_chunk() == Some(first) && other.last_chunk() == Some(last);
    }
    if let (Some(first), Some(last)) = (one.first_chunk::<16>(), one.last_chunk::<16>())
        && one.len() <= 32
    {
        return other.first_chunk() == Some(first) && other.last_chunk() == Some(last);
    }
    one == other
}

#[inline]
fn moved(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}
