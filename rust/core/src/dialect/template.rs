//! Template decoding stands in for `read` where a stream repeats itself.
//!
//! In: a frame's bytes, or those of a feed of which nobody has framed the rest.  Out: the [`Template::Event`] that `read`
//! would have made of them, or nothing.
//!
//! A template is a frame that `read` accepted, cut at token borders.  Its holes are scalar values that `read` borrowed or
//! ignored and that differed between two frames of one skeleton, objects that it borrowed as they stand, and the white
//! space before the last brace.  Literals must be equal byte for byte, what stands in a hole must be a valid token of the
//! same kind, an object that nests no deeper.  `read` looks at nothing else in a hole (it tells borrowed strings apart by
//! being empty, so an empty one is refused), hence it would have made the same event.  An object that the protocol would
//! read later is read where it is found, which says that it is valid.  Any mismatch or doubt is a miss: `read` decides.
//!
//! A frame that stood whole in a feed is kept with what framed it.  No hole takes a line end, so that where all of its
//! literals stand, framing would have found this event and no other: such an event is taken before it is framed.
//!
//! Learned per stream, at most [`SLOTS`] at a time.  Held equal to `read` by property tests and fuzzing; without this file
//! everything works as before.

use std::fmt::Debug;
use std::ops::Range;

use super::{Frame, Protocol};
use crate::wire::{Bytes, Reader, Str, number_end, string_end, value_end};

/// Templates kept at a time: the kinds of event that alternate in one stretch of a stream.
const SLOTS: usize = 3;
/// Tokens of a frame that may become holes; a frame with more is not worth a template.
const MAX_TOKENS: usize = 48;
/// Holes of one template.
const MAX_HOLES: usize = 8;
/// Hits that pay for a study: it costs a few reads and allocations, and a template that thrashes must not cost more.
const STUDY: u32 = 16;
/// Nesting of an object in a frame that may become a template: that of log probabilities.
const MAX_LEVELS: u8 = 6;
/// What a stream has before its first hit, and can save at the most.
const CREDIT: u32 = 16 * STUDY;

/// An event whose tokens are places, so that it outlives its frame.
pub trait Template: Clone + Debug + PartialEq + Sized {
    /// The event over borrowed tokens.
    type Event<'a>;

    /// The event over places; `None` for one of a kind that does not come again and again, all alike.
    fn of(event: &Self::Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self>;

    /// The event over the tokens that stand in these places.
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Self::Event<'a>;
}

/// A place in a template: the number of its token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token(u8);

/// The tokens of a frame that an event borrows, as they are found.
#[derive(Debug)]
pub struct Tokens<'a> {
    frame: &'a str,
    /// How many more places there are.
    ignored: usize,
    places: Vec<Place>,
    /// Whether all of them were found.
    fit: bool,
}

impl Tokens<'_> {
    /// The place of what is new in each event: nobody waits until two of them differ.
    pub fn says(&mut self, text: Str<'_>) -> Token {
        // Numbered when the frame is cut.
        self.borrowed(text, Some(0))
    }

    /// The place of what mostly stays as it is.
    pub fn names(&mut self, text: Str<'_>) -> Token {
        self.borrowed(text, None)
    }

    /// The place of an object that [`Protocol::read_object`] reads: it never stands for another.
    pub fn reads(&mut self, object: &str) {
        self.borrowed(Str::plain(object), Some(0));
        match self.places.last_mut() {
            Some(place) if let Kind::Object(levels) = place.kind => place.kind = Kind::Read(levels),
            _ => self.fit = false,
        }
    }

    fn borrowed(&mut self, text: Str<'_>, hole: Option<u8>) -> Token {
        let place = Place::borrowed(self.frame, text);
        self.fit &= place.is_some();
        let hole = hole.filter(|_| !text.is_empty());
        if self.places.is_empty() {
            // Most frames are of no kind that comes again, and borrow nothing.
            self.places.reserve_exact(self.ignored + 4);
        }
        self.places.extend(place.map(|place| Place { hole, ..place }));
        Token(u8::try_from(self.places.len().saturating_sub(1)).unwrap_or(u8::MAX))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Text of a string that the event borrows: never empty.
    Borrowed,
    /// Text of a string that nobody looks at.
    Ignored,
    /// A number that nobody looks at.
    Number,
    /// An object that the event borrows as it stands, nested so deep at the most.
    Object(u8),
    /// An object that the protocol reads, nested so deep at the most.
    Read(u8),
    /// White space before the last brace.
    Space,
    /// What is no hole under any circumstances.
    Fixed,
}

/// A token of the template's frame.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    range: Range<usize>,
    kind: Kind,
    escaped: bool,
    /// The number of the hole that it has become.
    hole: Option<u8>,
}

/// A hole; literals stand between two of them.
#[derive(Clone, Debug)]
struct Segment {
    /// Its place, counted from where begins what frames the template's own frame.
    hole: Range<usize>,
    kind: Kind,
    object: Option<Box<Object>>,
}

/// Where holes stand is told by the places of their template.
impl PartialEq for Segment {
    fn eq(&self, other: &Self) -> bool {
        let last = |segment: &Self| segment.object.as_ref().map(|object| object.last.clone());
        self.kind == other.kind && last(self) == last(other)
    }
}

/// An object that has become a hole, as it was seen: counts, of which mostly none or the numbers alone are new.
#[derive(Clone, Debug)]
struct Object {
    /// The one before.
    last: String,
    /// The one in the template's own frame, counted like its hole.
    own: Range<usize>,
    /// The whole numbers in that.
    numbers: Vec<Range<usize>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Slot<E> {
    name: Box<str>,
    frame: Wired,
    places: Vec<Place>,
    segments: Vec<Segment>,
    /// Whether some of them are objects.
    has_objects: bool,
    event: E,
}

/// A frame between what framed it, where that is known.
#[derive(Clone, Debug)]
struct Wired {
    wire: Box<str>,
    /// Where in it the frame begins, and where it ends.
    start: usize,
    end: usize,
}

/// Frames are equal whatever framed them: a cut hides that, and it decides nothing.
impl PartialEq for Wired {
    fn eq(&self, other: &Self) -> bool {
        self.frame() == other.frame()
    }
}

impl Wired {
    fn new(frame: &str, wire: &str) -> Self {
        let found = place(frame.as_bytes(), wire);
        let (wire, start) = found.map_or((frame, 0), |start| (wire, start));
        Self { wire: wire.into(), start, end: start + frame.len() }
    }

    #[inline]
    fn frame(&self) -> &str {
        self.wire.get(self.start..self.end).unwrap_or("")
    }

    /// Whether it is known what framed it.
    #[inline]
    fn is_framed(&self) -> bool {
        self.end - self.start < self.wire.len()
    }

    /// Takes over what framed another frame: `wire` with that frame in it.
    #[cold]
    fn know(&mut self, wire: &str, frame: &[u8]) {
        let Some(start) = place(frame, wire).filter(|_| !self.is_framed()) else { return };
        let around = wire.get(..start).zip(wire.get(start + frame.len()..));
        if let Some((before, after)) = around {
            self.wire = [before, self.frame(), after].concat().into();
            self.end += start;
            self.start = start;
        }
    }

    /// Whether `wire` frames another frame, so many bytes long, in the same way.
    fn is_framed_as(&self, wire: &[u8], frame: usize) -> bool {
        let around = self.wire.get(..self.start).zip(self.wire.get(self.end..));
        around.is_some_and(|(before, after)| {
            wire.len() == before.len() + frame + after.len()
                && wire.starts_with(before.as_bytes())
                && wire.ends_with(after.as_bytes())
        })
    }
}

/// Where in `wire` that frame lies, which was borrowed from it.
fn place(frame: &[u8], wire: &str) -> Option<usize> {
    let start = (frame.as_ptr() as usize).checked_sub(wire.as_ptr() as usize)?;
    wire.as_bytes().get(start..)?.starts_with(frame).then_some(start)
}

/// The templates of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Templates<E> {
    slots: Vec<Slot<E>>,
    recent: usize,
    /// What is left for studies.
    credit: u32,
    /// Memory for the places in a frame that is studied.
    places: Vec<Range<usize>>,
}

impl<E> Default for Templates<E> {
    fn default() -> Self {
        Self { slots: Vec::new(), recent: 0, credit: CREDIT, places: Vec::new() }
    }
}

/// What stands in the holes of a frame.
struct Holes<'a> {
    texts: [&'a str; MAX_HOLES],
    /// A bit for each: whether it holds escapes.
    escaped: u32,
}

impl<E: Template> Templates<E> {
    /// Hands the event of a frame that repeats a template to `apply`, where it is made: an event is large, and to return it
    /// would be to copy it.  False for any other frame.
    #[inline]
    pub fn hit<'a, P: Protocol<Repeat = E>>(
        &mut self,
        name: &[u8],
        frame: &'a [u8],
        wire: &[u8],
        protocol: &mut P,
        apply: impl FnOnce(&mut P, &E::Event<'_>),
    ) -> bool {
        let matches = |slot: &Slot<E>, holes: &mut Holes<'a>, protocol: &mut P| {
            // An event that was framed in the same way was compared before.
            let new = wire.is_empty() || !slot.frame.is_framed_as(wire, frame.len());
            let (start, end) = (slot.frame.start, slot.frame.end);
            let bytes = Bytes::Unchecked(frame);
            let repeats = new
                && slot.is_named(name)
                && slot.matches(start, end, bytes, holes, protocol)? == frame.len();
            repeats.then_some(())
        };
        let hit = self.find(protocol, matches, apply).is_some();
        if hit && !wire.is_empty() && let Some(slot) = self.slots.get_mut(self.recent) {
            slot.know_framing(std::str::from_utf8(wire).unwrap_or(""), frame);
        }
        hit
    }

    /// Like [`Self::hit`] for the event that a feed's rest begins with, with what frames it: how many bytes that is.
    #[inline]
    pub fn hit_unframed<'a, P: Protocol<Repeat = E>>(
        &mut self,
        rest: Bytes<'a>,
        max_bytes: usize,
        protocol: &mut P,
        apply: impl FnOnce(&mut P, &E::Event<'_>),
    ) -> Option<usize> {
        let matches = |slot: &Slot<E>, holes: &mut Holes<'a>, protocol: &mut P| {
            let end = slot.matches(0, slot.frame.wire.len(), rest, holes, protocol)?;
            (slot.frame.is_framed() && end <= max_bytes).then_some(end)
        };
        self.find(protocol, matches, apply)
    }

    #[inline]
    fn find<'a, P, T>(
        &mut self,
        protocol: &mut P,
        matches: impl Fn(&Slot<E>, &mut Holes<'a>, &mut P) -> Option<T>,
        apply: impl FnOnce(&mut P, &E::Event<'_>),
    ) -> Option<T> {
        let mut holes = Holes { texts: [""; MAX_HOLES], escaped: 0 };
        let found = match matches(self.slots.get(self.recent)?, &mut holes, protocol) {
            Some(found) => found,
            None => {
                let recent = self.recent;
                let mut others = self.slots.iter().enumerate().filter(|(at, _)| *at != recent);
                let (at, found) = others
                    .find_map(|(at, slot)| Some((at, matches(slot, &mut holes, protocol)?)))?;
                self.recent = at;
                found
            }
        };
        self.credit = self.credit.saturating_add(1).min(CREDIT);
        let slot = self.slots.get_mut(self.recent)?;
        if slot.has_objects {
            slot.keep_objects(&holes);
        }
        let slot = &*slot;
        apply(protocol, &slot.event.fill(|token| slot.text(token, &holes)));
        Some(found)
    }

    /// Memory for the places that `read` ignores, if it is worth studying another frame.
    pub fn curious(&mut self) -> Option<Vec<Range<usize>>> {
        (self.credit >= STUDY).then(|| std::mem::take(&mut self.places))
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
        self.places = ignored;
    }

    fn learn(&mut self, frame: Frame<'_>, event: &E::Event<'_>, ignored: &[Range<usize>]) -> bool {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_named(frame.name.as_bytes())) {
            if slot.widen(frame.json.as_bytes()) {
                slot.know_framing(frame.wire, frame.json.as_bytes());
                return true;
            }
        }
        let Some(mut slot) = Slot::new(frame, event, ignored) else { return false };
        if self.slots.len() < SLOTS {
            slot.cut();
            self.slots.push(slot);
        } else if let Some(oldest) = self.slots.get_mut((self.recent + 1) % SLOTS) {
            slot.segments = std::mem::take(&mut oldest.segments);
            slot.cut();
            *oldest = slot;
        }
        true
    }
}

impl<E: Template> Slot<E> {
    fn new(frame: Frame<'_>, event: &E::Event<'_>, ignored: &[Range<usize>]) -> Option<Self> {
        let Frame { name, json, wire, .. } = frame;
        let mut tokens = Tokens { frame: json, ignored: ignored.len(), places: Vec::new(), fit: true };
        let event = E::of(event, &mut tokens)?;
        let Tokens { mut places, fit, .. } = tokens;
        places.extend(ignored.iter().map(|range| Place::ignored(json, range)));
        let closing = json.rfind('}')?;
        let padding = json.get(..closing)?.trim_end().len();
        places.push(Place {
            range: padding..closing,
            kind: Kind::Space,
            escaped: false,
            hole: None,
        });
        if !fit || places.len() > MAX_TOKENS {
            return None;
        }
        Some(Self {
            name: name.into(),
            frame: Wired::new(json, wire),
            places,
            segments: Vec::new(),
            has_objects: false,
            event,
        })
    }

    /// Most events have no name.  That is asked first: comparing two empty texts makes the C library read, masked out, at
    /// addresses that are none, which costs more than everything else here.
    #[inline]
    fn is_named(&self, name: &[u8]) -> bool {
        if name.is_empty() { self.name.is_empty() } else { *self.name.as_bytes() == *name }
    }

    /// What stands in a place: in the template's own frame, or in the hole.
    #[inline]
    fn text<'a>(&'a self, token: Token, holes: &Holes<'a>) -> Str<'a> {
        let nothing = Str::plain("");
        let Some(place) = self.places.get(usize::from(token.0)) else { return nothing };
        let Some(hole) = place.hole else {
            let range = moved(&place.range, self.frame.start);
            let raw = self.frame.wire.get(range).unwrap_or("");
            return Str { raw, escaped: place.escaped };
        };
        let hole = usize::from(hole);
        if let Kind::Object(_) = place.kind {
            let object = self.segments.get(hole).and_then(|segment| segment.object.as_ref());
            return Str::plain(object.map_or("", |object| &object.last));
        }
        let raw = holes.texts.get(hole).copied().unwrap_or("");
        Str { raw, escaped: holes.escaped & (1 << hole) != 0 }
    }

    /// Cuts the frame at the places that have become holes.
    fn cut(&mut self) {
        let mut holes: Vec<usize> = (0..self.places.len())
            .filter(|at| self.places.get(*at).is_some_and(|p| p.hole.is_some()))
            .collect();
        holes.sort_by_key(|at| self.places.get(*at).map(|place| place.range.start));
        self.segments.clear();
        self.has_objects = false;
        for (number, at) in (0..).zip(holes) {
            if let Some(place) = self.places.get_mut(at) {
                place.hole = Some(number);
                let hole = moved(&place.range, self.frame.start);
                let object = matches!(place.kind, Kind::Object(_))
                    .then(|| Object::new(&self.frame.wire, hole.clone()).into());
                self.has_objects |= object.is_some();
                self.segments.push(Segment { hole, kind: place.kind, object });
            }
        }
    }

    /// Takes over what framed another frame of the same name, unless that is known.
    #[cold]
    fn know_framing(&mut self, wire: &str, frame: &[u8]) {
        let before = self.frame.start;
        self.frame.know(wire, frame);
        let by = self.frame.start - before;
        for segment in self.segments.iter_mut().filter(|_| by > 0) {
            segment.hole = moved(&segment.hole, by);
            if let Some(object) = &mut segment.object {
                object.own = moved(&object.own, by);
                object.numbers.iter_mut().for_each(|number| *number = moved(number, by));
            }
        }
    }

    /// Takes over the objects that are new; what stands where they were before is empty.
    fn keep_objects(&mut self, holes: &Holes<'_>) {
        for (segment, text) in self.segments.iter_mut().zip(holes.texts) {
            if let Some(object) = &mut segment.object
                && !text.is_empty()
            {
                text.clone_into(&mut object.last);
            }
        }
    }

    /// Where that piece of the frame, with what framed it, ends in bytes that begin with it.
    #[inline]
    fn matches<'a>(
        &self,
        start: usize,
        end: usize,
        bytes: Bytes<'a>,
        holes: &mut Holes<'a>,
        protocol: &mut impl Protocol<Repeat = E>,
    ) -> Option<usize> {
        let text = bytes.as_bytes();
        holes.escaped = 0;
        let (mut bit, mut mine, mut at) = (1, start, 0);
        for (segment, found) in self.segments.iter().zip(&mut holes.texts) {
            at = self.literal(mine..segment.hole.start, text, at)?;
            mine = segment.hole.end;
            let (end, escaped) = match &segment.object {
                None if let Kind::Read(levels) = segment.kind => {
                    let mut reader = Reader::new(bytes.line(at)?, usize::from(levels));
                    protocol.read_object(&mut reader).then_some(())?;
                    *found = "";
                    bit <<= 1;
                    let end = at + reader.position();
                    is_one_line(text.get(at..end)?).then_some(())?;
                    at = end;
                    continue;
                }
                None => segment.kind.end(text, at)?,
                Some(object) if object.is_at(text, at) => {
                    *found = "";
                    bit <<= 1;
                    at += object.last.len();
                    continue;
                }
                Some(object) => match self.own_object(object, text, at) {
                    Some(end) => (end, false),
                    None => segment.kind.end(text, at)?,
                },
            };
            *found = bytes.text(at..end)?;
            if escaped {
                holes.escaped |= bit;
            }
            bit <<= 1;
            at = end;
        }
        self.literal(mine..end, text, at)
    }

    /// Where the object ends that begins at `at`, when it is the template's own but for its numbers.
    fn own_object(&self, object: &Object, frame: &[u8], at: usize) -> Option<usize> {
        let (mut mine, mut at) = (object.own.start, at);
        for number in &object.numbers {
            at = self.literal(mine..number.start, frame, at)?;
            at += count_bytes(frame.get(at..)?)?;
            mine = number.end;
        }
        self.literal(mine..object.own.end, frame, at)
    }

    /// Where the literal ends that must stand at `at`.
    #[inline]
    fn literal(&self, literal: Range<usize>, text: &[u8], at: usize) -> Option<usize> {
        let end = at + literal.len();
        (text.get(at..end)? == self.frame.wire.as_bytes().get(literal)?).then_some(end)
    }

    /// Makes holes of the places in which `frame` differs; false when it is of another skeleton.  A skeleton in which too
    /// much differs stays as it is.
    fn widen(&mut self, frame: &[u8]) -> bool {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by_key(|at| self.places.get(*at).map(|place| place.range.start));
        let behind = self.frame.start;
        let (mut mine, mut at, mut differing) = (behind, 0, Vec::new());
        for number in order {
            let Some(place) = self.places.get(number).filter(|place| place.kind != Kind::Fixed)
            else {
                continue;
            };
            let step = || {
                let start = self.literal(mine..behind + place.range.start, frame, at)?;
                let (end, _) = place.kind.end(frame, start)?;
                Some((start, end))
            };
            let Some((start, end)) = step() else { return false };
            let own = self.frame.frame().as_bytes().get(place.range.clone());
            if place.hole.is_none() && frame.get(start..end) != own {
                differing.push(number);
            }
            mine = behind + place.range.end;
            at = end;
        }
        let end = self.literal(mine..self.frame.end, frame, at);
        if end != Some(frame.len()) {
            return false;
        }
        let holes = self.places.iter().filter(|place| place.hole.is_some()).count();
        if holes + differing.len() > MAX_HOLES {
            return true;
        }
        for number in differing {
            if let Some(place) = self.places.get_mut(number) {
                place.hole = Some(0);
            }
        }
        self.cut();
        true
    }
}

#[inline]
fn moved(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

impl Place {
    fn ignored(frame: &str, token: &Range<usize>) -> Self {
        let text = frame.get(token.clone()).unwrap_or("");
        let (range, kind) = match text.as_bytes().first() {
            Some(b'"') => (token.start + 1..token.end - 1, Kind::Ignored),
            Some(b'-' | b'0'..=b'9') => (token.clone(), Kind::Number),
            _ => (token.clone(), Kind::Fixed),
        };
        Self { range, kind, escaped: false, hole: None }
    }

    /// A token of the event: a string's text may become a hole, of raw JSON only an object.
    fn borrowed(frame: &str, text: Str<'_>) -> Option<Self> {
        let start = (text.raw.as_ptr() as usize).checked_sub(frame.as_ptr() as usize)?;
        let range = start..start.checked_add(text.raw.len())?;
        if frame.get(range.clone())? != text.raw {
            return None;
        }
        let quoted = start > 0
            && frame.as_bytes().get(start - 1) == Some(&b'"')
            && frame.as_bytes().get(range.end) == Some(&b'"');
        let levels =
            |levels: &u8| value_end(text.raw.as_bytes(), 0, usize::from(*levels)).is_some();
        let kind = match text.raw.as_bytes().first() {
            _ if quoted => Kind::Borrowed,
            Some(b'{') => Kind::Object((1..=MAX_LEVELS).find(levels)?),
            _ => Kind::Fixed,
        };
        Some(Self { range, kind, escaped: text.escaped, hole: None })
    }
}

impl Object {
    fn new(frame: &str, own: Range<usize>) -> Self {
        let last = frame.get(own.clone()).unwrap_or("").to_owned();
        let text = frame.as_bytes().get(..own.end).unwrap_or_default();
        let (mut numbers, mut at) = (Vec::new(), own.start);
        while let Some(byte) = text.get(at) {
            let start = at;
            at = match byte {
                b'"' => string_end(text, at + 1).map_or(text.len(), |(end, _)| end + 1),
                b'-' | b'0'..=b'9' => number_end(text, at).unwrap_or(text.len()),
                _ => at + 1,
            };
            if text.get(start..at).and_then(count_bytes) == Some(at - start) {
                numbers.push(start..at);
            }
        }
        Self { last, own, numbers }
    }

    #[inline]
    fn is_at(&self, frame: &[u8], at: usize) -> bool {
        frame.get(at..).is_some_and(|rest| rest.starts_with(self.last.as_bytes()))
    }
}

/// How many digits of a whole number the text begins with; `None` where it begins with none.
#[inline]
fn count_bytes(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let leading_zero = digits > 1 && text.first() == Some(&b'0');
    (digits > 0 && !leading_zero).then_some(digits)
}

/// Framing would have found no end in it.
#[inline]
fn is_one_line(text: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', text).is_none()
}

impl Kind {
    /// Where a token of this kind ends that begins at `at`, and whether it holds escapes.
    #[expect(clippy::inline_always, reason = "the loop around it is the hottest there is")]
    #[inline(always)]
    fn end(self, frame: &[u8], at: usize) -> Option<(usize, bool)> {
        match self {
            Self::Borrowed => string_end(frame, at).ok().filter(|(end, _)| *end > at),
            Self::Ignored => string_end(frame, at).ok(),
            Self::Number => number_end(frame, at).ok().map(|end| (end, false)),
            Self::Object(levels) | Self::Read(levels) if frame.get(at) == Some(&b'{') => {
                let end = value_end(frame, at, usize::from(levels))?;
                is_one_line(frame.get(at..end)?).then_some((end, false))
            }
            Self::Space => {
                let spaces =
                    frame.iter().skip(at).take_while(|byte| matches!(byte, b' ' | b'\t'));
                Some((at + spaces.count(), false))
            }
            Self::Object(_) | Self::Read(_) | Self::Fixed => None,
        }
    }
}
