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

use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::compiled::CompiledTemplate;
use super::cut_frame::{CutFrame, Holes};
use super::event::{EventHandler, Template};
use super::signature::signature;
use crate::framing::{Bytes, WholeEvent};
use crate::json::Reader;

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
    index: Index,
    streams: AtomicU64,
}

/// The positions of the shapes.  It does not depend on the event of a shape, so that the protocols share its code.
#[derive(Debug)]
struct Index {
    used: AtomicUsize,
    groups: [Group; GROUPS],
    seen: [Seen; SEEN],
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
    template: Arc<CompiledTemplate<E>>,
    repeated: Repeated<E>,
}

/// How a stream gets a template for more frames of a shape.
#[derive(Debug)]
enum Repeated<E> {
    /// Such frames do not repeat.
    No,
    /// Each stream has its own template: some tokens differ between streams, and not within one.
    Adopted,
    /// Every stream has this one, or that of the shape if its frames are padded.
    Shared(Arc<CompiledTemplate<E>>),
}

impl<E> Default for Shapes<E> {
    fn default() -> Self {
        Self {
            kept: std::array::from_fn(|_| OnceLock::new()),
            index: Index::default(),
            streams: AtomicU64::new(0),
        }
    }
}

impl Default for Index {
    fn default() -> Self {
        Self {
            used: AtomicUsize::new(0),
            groups: std::array::from_fn(|_| Group::default()),
            seen: std::array::from_fn(|_| Seen::default()),
        }
    }
}

impl Index {
    /// Return the possible places of the group of a signature.
    fn places(&self, signature: u64) -> impl Iterator<Item = &Group> {
        let first = usize::try_from(signature >> 32).unwrap_or(0) % GROUPS;
        (first..first + PROBES).filter_map(|place| self.groups.get(place % GROUPS))
    }

    fn group(&self, signature: u64) -> Option<&Group> {
        self.places(signature).find(|group| group.signature.load(Relaxed) == signature)
    }

    /// Return the positions of the shapes with a signature.
    fn positions(&self, signature: u64) -> impl Iterator<Item = u16> {
        let members = self.group(signature).into_iter().flat_map(|group| &group.members);
        members.map_while(|member| member.load(Relaxed).checked_sub(1))
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

    /// Reserve a position for a shape, if there is room.  Returns it with the place for its number.
    fn reserve(&self, signature: u64) -> Option<(usize, &AtomicU16)> {
        let group = self.places(signature).find(|group| {
            let taken = group.signature.compare_exchange(0, signature, Relaxed, Relaxed);
            taken.is_ok() || taken == Err(signature)
        })?;
        let member = group.members.iter().find(|member| member.load(Relaxed) == 0)?;
        let used =
            self.used.fetch_update(Relaxed, Relaxed, |used| (used < SHAPES).then_some(used + 1));
        Some((used.ok()?, member))
    }
}

impl<E: Template> Shapes<E> {
    /// Return the shape at a position.
    fn get(&self, position: u16) -> Option<&Shape<E>> {
        self.kept.get(usize::from(position))?.get().map(AsRef::as_ref)
    }

    /// Keep a shape, if there is room.
    fn keep(&self, signature: u64, shape: Shape<E>) {
        if let Some((position, member)) = self.index.reserve(signature)
            && let Some(slot) = self.kept.get(position)
            && slot.set(Box::new(shape)).is_ok()
        {
            member.store(u16::try_from(position + 1).unwrap_or(0), Relaxed);
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
    /// Bytes before framing.
    Unframed(Bytes<'a>),
    /// The name and the JSON of an event.
    Frame(&'a [u8], Bytes<'a>),
}

impl<'a> Sought<'a> {
    fn bytes(&self) -> Bytes<'a> {
        match *self {
            Self::Unframed(bytes) | Self::Frame(_, bytes) => bytes,
        }
    }

    /// Return the JSON of the frame, and the length that a match must have; `None` without a whole event.
    fn whole(&self) -> Option<(&'a [u8], usize)> {
        match *self {
            // The feed is not searched beyond the event: comments without end would cost the rest of the feed each.
            Self::Unframed(bytes) => {
                let event = WholeEvent::at_start_of(bytes.as_bytes())?;
                Some((event.data, event.bytes))
            }
            Self::Frame(_, bytes) => Some((bytes.as_bytes(), bytes.as_bytes().len())),
        }
    }
}

/// The place of a shape that matched.
struct Place {
    position: u16,
    /// The piece of its frame that was compared.
    start: usize,
    end: usize,
    /// Length of the frame that matched.
    length: usize,
}

/// Look for the shape of a frame: at `next`, then at the positions with the signature of the frame.
///
/// Streams show their shapes in the same order, and the shapes are numbered in this order.  A shape with its framing matches
/// nothing but a whole event, so the event is searched for only if the next shape is another one.
fn search<'a, 's>(
    index: &Index,
    next: u16,
    cut_frame: impl Fn(u16) -> Option<&'s CutFrame>,
    sought: &Sought<'a>,
    holes: &mut Holes<'a, MAX_HOLES>,
    mut read_object: impl FnMut(&mut Reader<'_>) -> bool,
) -> Option<Place> {
    let bytes = sought.bytes();
    let mut place = |position: u16| {
        let template = cut_frame(position)?;
        let frame = &template.frame;
        let (start, end) = match *sought {
            Sought::Unframed(_) => (0, frame.wire.len()),
            Sought::Frame(name, _) if template.is_named(name) => (frame.start, frame.end),
            Sought::Frame(..) => return None,
        };
        let length = template.matches(start, end, bytes, holes, &mut read_object)?;
        Some(Place { position, start, end, length })
    };
    let fits = |place: &Place| match sought {
        Sought::Unframed(_) => true,
        Sought::Frame(_, bytes) => place.length == bytes.as_bytes().len(),
    };
    place(next).filter(fits).or_else(|| {
        let (json, length) = sought.whole()?;
        let mut places = index.positions(signature(json)?).filter_map(place);
        places.find(|place| place.length == length)
    })
}

/// A shape that matched.
pub(super) struct Match<'a, E> {
    /// Length of the frame, its framing included if it was sought so.
    pub(super) length: usize,
    /// The JSON of the frame.
    pub(super) frame: &'a [u8],
    /// Template for more of such frames in this stream, if they repeat.
    pub(super) template: Option<Arc<CompiledTemplate<E>>>,
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

    /// Apply the event of a frame of at most `max_bytes` that has a shape.  `adopt` asks for a template of the stream.
    #[inline(never)]
    pub(super) fn apply<'a, H: EventHandler<E>>(
        &mut self,
        sought: &Sought<'a>,
        max_bytes: usize,
        adopt: bool,
        handler: &mut H,
    ) -> Option<Match<'a, E>> {
        let shapes = &self.shapes;
        let cut_frame = |position| shapes.get(position).map(|shape| &shape.template.cut);
        let mut holes = Holes::<MAX_HOLES>::default();
        let read = |reader: &mut Reader<'_>| handler.read_object(reader);
        let found = search(&shapes.index, self.last, cut_frame, sought, &mut holes, read);
        let found = found.filter(|found| found.length <= max_bytes)?;
        let Place { position, start, end, length } = found;
        let shape = shapes.get(position)?;
        self.patience = MAX_PATIENCE.min(self.patience + 1);
        self.last = position + 1;
        let template = &shape.template;
        handler.apply(&template.event.fill_whole(|token| template.cut.text(token, &holes)));
        let bytes = sought.bytes();
        let own = match &shape.repeated {
            _ if !adopt => None,
            Repeated::No => None,
            Repeated::Shared(own) if template.cut.has_no_padding(&holes) => Some(Arc::clone(own)),
            Repeated::Shared(_) => Some(Arc::clone(template)),
            Repeated::Adopted => {
                let found = bytes.text(0..length);
                found.and_then(|found| template.adopted(start, found, &holes)).map(Arc::new)
            }
        };
        let json = template.cut.frame.start - start;
        let after = end - template.cut.frame.end;
        let frame = bytes.as_bytes().get(json..length - after)?;
        Some(Match { length, frame, template: own })
    }

    /// Learn from a frame that was read in full.
    pub(super) fn learn(&mut self, template: &CompiledTemplate<E>, repeats: bool) {
        self.shows = self.shows.saturating_sub(1);
        let cut = &template.cut;
        let length = cut.frame.wire.len();
        if !cut.frame.is_framed() || length > MAX_BYTES {
            return;
        }
        let Some(signature) = signature(cut.frame.frame().as_bytes()) else { return };
        let skeleton = cut.skeleton();
        let shapes = &self.shapes;
        let mut known = shapes.index.positions(signature).filter_map(|at| shapes.get(at));
        if known.any(|shape| shape.skeleton == skeleton) || !shapes.index.see(skeleton, self.stream)
        {
            return;
        }
        let mut template = template.clone();
        if template.cut.open(MAX_HOLES) {
            let repeated = if repeats {
                let shared = template.of_every_stream().map(Arc::new);
                shared.map_or(Repeated::Adopted, Repeated::Shared)
            } else {
                Repeated::No
            };
            let template = Arc::new(template);
            shapes.keep(signature, Shape { skeleton, template, repeated });
        }
    }
}
