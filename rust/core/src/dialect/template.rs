//! Template decoding stands in for `read` where a stream repeats itself.
//!
//! In: a frame's bytes.  Out: the [`Template::Event`] that `read` would have made of them, or nothing.
//!
//! A template is a frame that `read` accepted, cut at token borders.  Its holes are scalar values that `read` borrowed or
//! ignored and that differed between two frames of one skeleton, objects that it borrowed as they stand, and the white
//! space before the last brace.  Literals must be equal byte for byte, what stands in a hole must be a valid token of the
//! same kind, an object that nests no deeper.  `read` looks at nothing else in a hole (it tells borrowed strings apart by
//! being empty, so an empty one is refused), hence it would have made the same event.  An object that the protocol would
//! read later is read where it is found, which says that it is valid.  Any mismatch or doubt is a miss: `read` decides.
//!
//! Learned per stream, at most [`SLOTS`] at a time.  Held equal to `read` by property tests and fuzzing; without this file
//! everything works as before.

use std::fmt::Debug;
use std::ops::Range;

use crate::dialect::Protocol;
use crate::wire::{Reader, Str, number_end, string_end, value_end};

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

    /// Whether the objects that it borrows are holes from the first, which [`Protocol::read_object`] reads.
    const READS_OBJECTS: bool = false;

    /// The event over places; `None` for one of a kind that does not come again and again, all alike.
    fn of(event: &Self::Event<'_>, token: impl FnMut(Str<'_>) -> Token) -> Option<Self>;

    /// The event over the tokens that stand in these places.
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Self::Event<'a>;
}

/// A place in a template: the number of its token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token(u8);

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
    hole: Option<usize>,
}

/// A literal, and the hole that follows it.
#[derive(Clone, Debug, PartialEq)]
struct Segment {
    literal: Range<usize>,
    kind: Kind,
    object: Option<Box<Object>>,
}

/// An object that has become a hole, as it was seen: counts, of which mostly none or the numbers alone are new.
#[derive(Clone, Debug, PartialEq)]
struct Object {
    /// The one before.
    last: String,
    /// The one in the template's own frame.
    own: Range<usize>,
    /// The whole numbers in that.
    numbers: Vec<Range<usize>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Slot<E> {
    name: Box<str>,
    frame: Box<str>,
    places: Vec<Place>,
    segments: Vec<Segment>,
    /// Whether some of them are objects.
    has_objects: bool,
    /// Where the literal after the last hole begins.
    tail: usize,
    event: E,
}

/// The templates of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Templates<E> {
    slots: Vec<Slot<E>>,
    recent: usize,
    /// What is left for studies.
    credit: u32,
}

impl<E> Default for Templates<E> {
    fn default() -> Self {
        Self { slots: Vec::new(), recent: 0, credit: CREDIT }
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
        &'a mut self,
        name: &[u8],
        frame: &'a [u8],
        protocol: &mut P,
        apply: impl FnOnce(&mut P, &E::Event<'a>),
    ) -> bool {
        let mut holes = Holes { texts: [""; MAX_HOLES], escaped: 0 };
        let mut matches = |slot: &Slot<E>, holes: &mut Holes<'a>| {
            slot.is_named(name) && slot.matches(frame, holes, protocol)
        };
        let Some(recent) = self.slots.get(self.recent) else { return false };
        if !matches(recent, &mut holes) {
            let other =
                |(at, slot): &(usize, &Slot<E>)| *at != self.recent && matches(slot, &mut holes);
            let Some((at, _)) = self.slots.iter().enumerate().find(other) else { return false };
            self.recent = at;
        }
        self.credit = self.credit.saturating_add(1).min(CREDIT);
        let Some(slot) = self.slots.get_mut(self.recent) else { return false };
        if slot.has_objects {
            slot.keep_objects(&holes);
        }
        let slot = &*slot;
        apply(protocol, &slot.event.fill(|token| slot.text(token, &holes)));
        true
    }

    /// Whether it is worth studying another frame.
    pub fn curious(&self) -> bool {
        self.credit >= STUDY
    }

    /// Studies a frame that was no hit: `ignored` are the scalars in it that `read` ignored.
    pub fn study(
        &mut self,
        name: &str,
        frame: &str,
        event: &E::Event<'_>,
        ignored: &[Range<usize>],
    ) {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_named(name.as_bytes())) {
            if slot.widen(frame) {
                self.credit = self.credit.saturating_sub(STUDY);
                return;
            }
        }
        let Some(slot) = Slot::new(name, frame, event, ignored) else { return };
        self.credit = self.credit.saturating_sub(STUDY);
        if self.slots.len() < SLOTS {
            self.slots.push(slot);
        } else if let Some(oldest) = self.slots.get_mut((self.recent + 1) % SLOTS) {
            *oldest = slot;
        }
    }
}

impl<E: Template> Slot<E> {
    fn new(
        name: &str,
        frame: &str,
        event: &E::Event<'_>,
        ignored: &[Range<usize>],
    ) -> Option<Self> {
        let mut places: Vec<Place> = Vec::with_capacity(ignored.len() + 8);
        let mut fits = true;
        let event = E::of(event, |text| {
            let place = Place::borrowed(frame, text);
            fits &= place.is_some();
            places.extend(place);
            Token(u8::try_from(places.len().saturating_sub(1)).unwrap_or(u8::MAX))
        })?;
        if E::READS_OBJECTS {
            places.iter_mut().for_each(Place::read_object);
        }
        places.extend(ignored.iter().map(|range| Place::ignored(frame, range)));
        let closing = frame.rfind('}')?;
        let padding = frame.get(..closing)?.trim_end().len();
        places.push(Place {
            range: padding..closing,
            kind: Kind::Space,
            escaped: false,
            hole: None,
        });
        if !fits || places.len() > MAX_TOKENS {
            return None;
        }
        let tail = frame.len();
        let frame = frame.into();
        let mut slot = Self {
            name: name.into(),
            frame,
            places,
            segments: Vec::new(),
            has_objects: false,
            tail,
            event,
        };
        slot.cut();
        Some(slot)
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
            let raw = self.frame.get(place.range.clone()).unwrap_or("");
            return Str { raw, escaped: place.escaped };
        };
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
        self.tail = 0;
        for (number, at) in holes.into_iter().enumerate() {
            if let Some(place) = self.places.get_mut(at) {
                place.hole = Some(number);
                let object = matches!(place.kind, Kind::Object(_))
                    .then(|| Object::new(&self.frame, place.range.clone()).into());
                self.has_objects |= object.is_some();
                self.segments.push(Segment {
                    literal: self.tail..place.range.start,
                    kind: place.kind,
                    object,
                });
                self.tail = place.range.end;
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

    #[inline]
    fn matches<'a>(
        &self,
        frame: &'a [u8],
        holes: &mut Holes<'a>,
        protocol: &mut impl Protocol<Repeat = E>,
    ) -> bool {
        holes.escaped = 0;
        let mut bit = 1;
        let mut fill = || {
            let mut at = 0;
            for (segment, text) in self.segments.iter().zip(&mut holes.texts) {
                at = self.literal(&segment.literal, frame, at)?;
                let (end, escaped) = match &segment.object {
                    None if let Kind::Read(levels) = segment.kind => {
                        let rest = std::str::from_utf8(frame.get(at..)?).ok()?;
                        let mut reader = Reader::new(rest, usize::from(levels));
                        protocol.read_object(&mut reader).then_some(())?;
                        *text = "";
                        bit <<= 1;
                        at += reader.position();
                        continue;
                    }
                    None => segment.kind.end(frame, at)?,
                    Some(object) if object.is_at(frame, at) => {
                        *text = "";
                        bit <<= 1;
                        at += object.last.len();
                        continue;
                    }
                    Some(object) => match self.own_object(object, frame, at) {
                        Some(end) => (end, false),
                        None => segment.kind.end(frame, at)?,
                    },
                };
                *text = std::str::from_utf8(frame.get(at..end)?).ok()?;
                if escaped {
                    holes.escaped |= bit;
                }
                bit <<= 1;
                at = end;
            }
            self.literal(&(self.tail..self.frame.len()), frame, at)
        };
        fill() == Some(frame.len())
    }

    /// Where the object ends that begins at `at`, when it is the template's own but for its numbers.
    fn own_object(&self, object: &Object, frame: &[u8], at: usize) -> Option<usize> {
        let (mut mine, mut at) = (object.own.start, at);
        for number in &object.numbers {
            at = self.literal(&(mine..number.start), frame, at)?;
            at += count_bytes(frame.get(at..)?)?;
            mine = number.end;
        }
        self.literal(&(mine..object.own.end), frame, at)
    }

    /// Where the literal ends that must stand at `at`.
    #[inline]
    fn literal(&self, literal: &Range<usize>, frame: &[u8], at: usize) -> Option<usize> {
        let end = at + literal.len();
        (frame.get(at..end)? == self.frame.as_bytes().get(literal.clone())?).then_some(end)
    }

    /// Makes holes of the places in which `frame` differs; false when it is of another skeleton.  A skeleton in which too
    /// much differs stays as it is.
    fn widen(&mut self, frame: &str) -> bool {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by_key(|at| self.places.get(*at).map(|place| place.range.start));
        let (mut mine, mut at, mut differing) = (0, 0, Vec::new());
        for number in order {
            let Some(place) = self.places.get(number).filter(|place| place.kind != Kind::Fixed)
            else {
                continue;
            };
            let step = || {
                let start = self.literal(&(mine..place.range.start), frame.as_bytes(), at)?;
                let (end, _) = place.kind.end(frame.as_bytes(), start)?;
                Some((start, end))
            };
            let Some((start, end)) = step() else { return false };
            if frame.as_bytes().get(start..end) != self.frame.as_bytes().get(place.range.clone()) {
                differing.push(number);
            }
            mine = place.range.end;
            at = end;
        }
        let end = self.literal(&(mine..self.frame.len()), frame.as_bytes(), at);
        if end != Some(frame.len()) {
            return false;
        }
        let holes = self.places.iter().filter(|place| place.hole.is_some()).count();
        if holes + differing.len() > MAX_HOLES {
            return true;
        }
        for number in differing {
            if let Some(place) = self.places.get_mut(number) {
                // Numbered when the frame is cut.
                place.hole = Some(0);
            }
        }
        self.cut();
        true
    }
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

    /// An object that the protocol reads never stands for another.
    fn read_object(&mut self) {
        if let Kind::Object(levels) = self.kind {
            self.kind = Kind::Read(levels);
            // Numbered when the frame is cut.
            self.hole = Some(0);
        }
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
                value_end(frame, at, usize::from(levels)).map(|end| (end, false))
            }
            Self::Space => {
                let spaces = frame.iter().skip(at).take_while(|byte| byte.is_ascii_whitespace());
                Some((at + spaces.count(), false))
            }
            Self::Object(_) | Self::Read(_) | Self::Fixed => None,
        }
    }
}
