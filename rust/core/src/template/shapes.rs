//! Shapes of frames that streams share: a new stream need not read in full what earlier ones began with.
//!
//! In: the templates that the streams of one process learn.  Out: the shape of a frame of another stream.
//!
//! A shape is a template in which each token is a hole, except those that `read` branched on.  It holds member names,
//! punctuation and words of the protocol.  A stream looks a frame up if none of its own templates match.  The candidates are
//! the shape after the last one that matched, and the shapes with the signature of the frame.
//!
//! Laws:
//! - A shape gives the event that `read` would return for the frame.  Which streams a process has read makes no difference for
//!   the deltas of another one.
//! - A shape is kept when two streams have shown it, so that text of one stream is not kept.  It never changes and never goes.
//! - The numbers of shapes and of candidates are constant.  Looking up takes no lock, and reads no byte beyond the event.
//! - A stream whose frames have no shapes soon stops to look them up.

use std::iter;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::compiled::{CompiledTemplate, Holes};
use super::event::{EventHandler, Template};
use super::signature::signature;
use crate::framing::{Bytes, WholeEvent};

/// Number of shapes of a dialect.  A vendor has about eight, of text, reasoning and tool calls.
const SHAPES: usize = 384;
/// Number of groups of shapes.
const GROUPS: usize = 256;
/// Number of places that a group may have.
const PROBES: usize = 4;
/// Maximum number of shapes of one group.
const MEMBERS: usize = 4;
/// Number of skeletons that one stream has shown, by their hash.
const SEEN: usize = 128;
/// Maximum number of holes of a shape.
const MAX_HOLES: usize = 20;
/// Maximum length of a frame with its framing, in bytes.
const MAX_BYTES: usize = 2048;
/// Number of frames that a stream reads in full before it stops to look shapes up.  A hit allows one more.
const PATIENCE: u8 = 2;
/// Maximum of that number.
const MAX_PATIENCE: u8 = 4;
/// Number of streams that all show their shapes.  Of later ones, one of [`LATER`] does, because showing costs more than reading.
const EARLY: u64 = 256;
const LATER: u64 = 16;
/// Number of frames whose shapes one stream shows.
const SHOWN: u8 = 16;

/// The shapes of one dialect.
#[derive(Debug)]
pub struct Shapes<E> {
    kept: [OnceLock<Box<Shape<E>>>; SHAPES],
    used: AtomicUsize,
    groups: [Group; GROUPS],
    seen: [Seen; SEEN],
    streams: AtomicU64,
}

/// A skeleton that a stream has shown.
#[derive(Debug, Default)]
struct Seen {
    skeleton: AtomicU64,
    stream: AtomicU64,
}

/// Shapes with the same signature.
#[derive(Debug, Default)]
struct Group {
    /// Zero for a free place.
    signature: AtomicU64,
    /// Numbers of shapes, in ascending order, each plus one; zero for a free place.
    members: [AtomicU16; MEMBERS],
}

#[derive(Debug)]
struct Shape<E> {
    skeleton: u64,
    template: CompiledTemplate<E>,
    repeats: bool,
}

impl<E> Default for Shapes<E> {
    fn default() -> Self {
        Self {
            kept: std::array::from_fn(|_| OnceLock::new()),
            used: AtomicUsize::new(0),
            groups: std::array::from_fn(|_| Group::default()),
            seen: std::array::from_fn(|_| Seen::default()),
            streams: AtomicU64::new(0),
        }
    }
}

impl<E: Template> Shapes<E> {
    /// Return the possible places of the group of a signature.
    fn places(&self, signature: u64) -> impl Iterator<Item = &Group> {
        let first = usize::try_from(signature >> 32).unwrap_or(0) % GROUPS;
        (first..first + PROBES).filter_map(|place| self.groups.get(place % GROUPS))
    }

    fn group(&self, signature: u64) -> Option<&Group> {
        self.places(signature).find(|group| group.signature.load(Relaxed) == signature)
    }

    /// Return the shape at a position, and its number.
    fn get(&self, position: u16) -> Option<(u16, &Shape<E>)> {
        let shape = self.kept.get(usize::from(position))?.get()?;
        Some((position + 1, shape.as_ref()))
    }

    /// Return the shapes with a signature.
    fn with_signature(&self, signature: u64) -> impl Iterator<Item = (u16, &Shape<E>)> {
        let members = self.group(signature).into_iter().flat_map(|group| &group.members);
        let positions = members.map_while(|member| member.load(Relaxed).checked_sub(1));
        positions.filter_map(|position| self.get(position))
    }

    /// Note that a stream has shown a skeleton; return true if another stream has shown it before.
    fn see(&self, skeleton: u64, stream: u64) -> bool {
        let place = usize::try_from(skeleton % SEEN as u64).unwrap_or(0);
        let Some(seen) = self.seen.get(place) else { return false };
        let known = seen.skeleton.load(Relaxed) == skeleton;
        let elsewhere = known && seen.stream.load(Relaxed) != stream;
        if !known {
            seen.skeleton.store(skeleton, Relaxed);
            seen.stream.store(stream, Relaxed);
        }
        elsewhere
    }

    /// Keep a shape, if there is room.
    fn keep(&self, signature: u64, shape: Shape<E>) {
        let free = self.places(signature).find(|group| {
            let taken = group.signature.compare_exchange(0, signature, Relaxed, Relaxed);
            taken.is_ok() || taken == Err(signature)
        });
        let Some(member) =
            free.and_then(|group| group.members.iter().find(|member| member.load(Relaxed) == 0))
        else {
            return;
        };
        let number =
            self.used.fetch_update(Relaxed, Relaxed, |used| (used < SHAPES).then_some(used + 1));
        if let Ok(number) = number
            && let Some(slot) = self.kept.get(number)
            && slot.set(Box::new(shape)).is_ok()
        {
            member.store(u16::try_from(number + 1).unwrap_or(0), Relaxed);
        }
    }
}

/// The shapes as one stream uses them.
#[derive(Debug)]
pub(super) struct SharedShapes<E> {
    shapes: Arc<Shapes<E>>,
    stream: u64,
    /// Number of the last shape that matched, plus one.
    last: u16,
    patience: u8,
    /// Number of frames that it may still show.
    shows: u8,
}

impl<E> Clone for SharedShapes<E> {
    fn clone(&self) -> Self {
        Self { shapes: Arc::clone(&self.shapes), ..*self }
    }
}

/// The shapes that a stream has met make no difference for its deltas.
impl<E> PartialEq for SharedShapes<E> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A frame, with its framing or alone.
pub(super) enum Sought<'a> {
    /// Bytes before framing, and the event at their start.
    Unframed(Bytes<'a>, WholeEvent<'a>),
    /// The name and the JSON of an event.
    Frame(&'a [u8], Bytes<'a>),
}

/// A shape that matched.
pub(super) struct Match<'a, E> {
    /// Length of the frame, its framing included if it was sought so.
    pub(super) length: usize,
    /// The JSON of the frame.
    pub(super) frame: &'a [u8],
    /// Template for more of such frames in this stream, if they repeat.
    pub(super) template: Option<CompiledTemplate<E>>,
}

impl<E: Template> SharedShapes<E> {
    pub(super) fn new(shapes: &Arc<Shapes<E>>) -> Self {
        let stream = shapes.streams.fetch_add(1, Relaxed);
        let shows = if stream < EARLY || stream.is_multiple_of(LATER) { SHOWN } else { 0 };
        Self { shapes: Arc::clone(shapes), stream, last: 0, patience: PATIENCE, shows }
    }

    /// Return true if the stream shows its shapes.
    pub(super) fn shows(&self) -> bool {
        self.shows > 0
    }

    /// Note that a frame is read in full.
    #[inline]
    pub(super) fn miss(&mut self) {
        self.patience = self.patience.saturating_sub(1);
    }

    /// Return true while frames are worth looking up.
    #[inline]
    pub(super) fn is_patient(&self) -> bool {
        self.patience > 0
    }

    /// Apply the event of a frame that has a shape.  `adopt` asks for a template of the stream.
    #[inline(never)]
    pub(super) fn apply<'a, H: EventHandler<E>>(
        &mut self,
        sought: &Sought<'a>,
        adopt: bool,
        handler: &mut H,
    ) -> Option<Match<'a, E>> {
        let (bytes, json, expected) = match *sought {
            Sought::Unframed(bytes, event) => (bytes, event.data, event.bytes),
            Sought::Frame(_, bytes) => (bytes, bytes.as_bytes(), bytes.as_bytes().len()),
        };
        let shapes = &self.shapes;
        // Streams show their shapes in the same order, and the shapes are numbered in this order.
        let next = shapes.get(self.last);
        let others = iter::once_with(|| signature(json))
            .flatten()
            .flat_map(|signature| shapes.with_signature(signature));
        let mut holes = Holes::<MAX_HOLES>::default();
        let mut candidates = next.into_iter().chain(others);
        let (number, shape, (start, end), length) = candidates.find_map(|(number, shape)| {
            let template = &shape.template;
            let frame = &template.frame;
            let (start, end) = match *sought {
                Sought::Unframed(..) => (0, frame.wire.len()),
                Sought::Frame(name, _) if template.is_named(name) => (frame.start, frame.end),
                Sought::Frame(..) => return None,
            };
            let length = template.matches(start, end, bytes, &mut holes, handler)?;
            (length == expected).then_some((number, shape, (start, end), length))
        })?;
        self.patience = MAX_PATIENCE.min(self.patience + 1);
        self.last = number;
        let template = &shape.template;
        handler.apply(&template.event.fill_whole(|token| template.text(token, &holes)));
        let own = if adopt && shape.repeats {
            bytes.text(0..length).and_then(|found| template.adopted(start, found, &holes))
        } else {
            None
        };
        let json = template.frame.start - start;
        let after = end - template.frame.end;
        let frame = bytes.as_bytes().get(json..length - after)?;
        Some(Match { length, frame, template: own })
    }

    /// Learn from a frame that was read in full.
    pub(super) fn learn(&mut self, template: &CompiledTemplate<E>, repeats: bool) {
        self.shows = self.shows.saturating_sub(1);
        let length = template.frame.wire.len();
        if !template.frame.is_framed() || length > MAX_BYTES {
            return;
        }
        let Some(signature) = signature(template.frame.frame().as_bytes()) else { return };
        let skeleton = template.skeleton();
        let mut known = self.shapes.with_signature(signature);
        if known.any(|(_, shape)| shape.skeleton == skeleton)
            || !self.shapes.see(skeleton, self.stream)
        {
            return;
        }
        let mut template = template.clone();
        if template.open(MAX_HOLES) {
            self.shapes.keep(signature, Shape { skeleton, template, repeats });
        }
    }
}
