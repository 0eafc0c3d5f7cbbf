//! The allocator of all tests, which counts; and what a body costs to decode: bytes asked for, bytes alive, deltas.

#![allow(unsafe_code, clippy::allow_attributes, reason = "an allocator is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use deltafold::contract::{Delta, Failure, Payload};
use deltafold::decoder::Decoder;
use deltafold::limits::Limits;

use crate::support::{Each, options};

thread_local! {
    pub(crate) static LIVE: Cell<i64> = const { Cell::new(0) };
    pub(crate) static PEAK: Cell<i64> = const { Cell::new(0) };
    pub(crate) static TOTAL: Cell<i64> = const { Cell::new(0) };
    pub(crate) static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Counts, per thread, bytes asked for in all, alive, alive at most, and how often some were asked for.
struct Counting;

fn count(added: usize, freed: usize) {
    let (added, freed) = (i64::try_from(added).unwrap_or(0), i64::try_from(freed).unwrap_or(0));
    // A thread that is ending has no counters any more.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + added - freed);
        PEAK.with(|peak| peak.set(peak.get().max(live.get())));
        TOTAL.with(|total| total.set(total.get() + added));
        ALLOCATIONS.with(|count| count.set(count.get() + usize::from(added > 0)));
    });
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches thread-local cells only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Cost of a body, and its end.
#[derive(Debug)]
pub(crate) struct Cost {
    /// Peak of allocated bytes, minus the bytes that were allocated before.
    pub(crate) peak: i64,
    /// Bytes asked for in all.
    pub(crate) total: i64,
    pub(crate) deltas: u64,
    /// Bytes of text in the deltas.
    pub(crate) text: usize,
    pub(crate) failure: Option<Failure<Box<str>>>,
}

/// Decodes pieces as they are made, keeping nothing.
pub(crate) fn cost(
    dialect: &str,
    limits: Limits,
    pieces: impl Iterator<Item: Into<Vec<u8>>>,
) -> Cost {
    let mut options = options(dialect);
    options.stream.limits = limits;
    let mut decoder = Decoder::new(options).unwrap();
    let before = LIVE.get();
    PEAK.set(before);
    TOTAL.set(0);
    let mut made = 0;
    let (mut deltas, mut text, mut failure) = (0, 0, None);
    let mut take = |delta: &Delta<&str>| {
        deltas += 1;
        match delta.to_owned().payload {
            Payload::Text { text: more, .. } | Payload::Thinking { text: more, .. } => {
                text += more.len();
            }
            Payload::ToolCallArgs { text: more, .. } => text += more.len(),
            Payload::Error(found) => failure = Some(found),
            _ => {}
        }
    };
    let mut out = Each(&mut take);
    let mut longest = 0;
    for piece in pieces {
        let piece: Vec<u8> = piece.into();
        made += i64::try_from(piece.capacity()).unwrap();
        longest = longest.max(i64::try_from(piece.capacity()).unwrap());
        decoder.feed(&piece, &mut out);
        if decoder.finished() {
            break;
        }
    }
    decoder.close(&mut out);
    let (peak, total) = (PEAK.get() - before - longest, TOTAL.get() - made);
    Cost { peak, total, deltas, text, failure }
}
