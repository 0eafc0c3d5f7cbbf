//! Asks the processor for memory before it is read.
//!
//! In: the pieces of memory that a read of a stream has used.  Out: the same pieces in the caches of the processor, when the next
//! read needs them.
//!
//! A process with a thousand streams comes back to the state of one of them after all others.  That state has left the caches
//! of the processor then, and decoding an event waits for each line of it.  A stream that wakes up asks for these lines before
//! the HTTP client prepares the chunk, so that both happen at the same time.
//!
//! Law: nothing is read.  A piece that has moved since costs a line of the cache, and nothing else.

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Number of pieces of one stream.
const PIECES: usize = 20;

/// Longest piece in lines.
const LONGEST: usize = 16;

/// The pieces of memory of a stream.  Each is the address of its first line, plus the number of its lines.
#[derive(Debug, Default)]
pub(crate) struct Pieces([usize; PIECES]);

impl Pieces {
    /// Replace the pieces by those that `report_all` reports.  Those that do not fit are left out.
    pub(crate) fn replace(&mut self, report_all: impl FnOnce(&mut dyn FnMut(*const u8, usize))) {
        let mut free = self.0.iter_mut();
        report_all(&mut |start, bytes| {
            if let Some(piece) = free.next() {
                let first = start.addr() & !(LINE - 1);
                let lines = (start.addr() + bytes - first).div_ceil(LINE).min(LONGEST);
                *piece = first + lines;
            }
        });
        free.for_each(|piece| *piece = 0);
    }

    /// Ask for all pieces.
    #[inline]
    pub(crate) fn fetch(&self) {
        for piece in self.0.iter().take_while(|piece| **piece != 0) {
            let (first, lines) = (piece & !(LINE - 1), piece & (LINE - 1));
            (0..lines).for_each(|line| fetch(first + line * LINE));
        }
    }
}

/// Ask for the line of the cache at an address.
#[inline]
#[expect(unsafe_code, reason = "the instruction takes a pointer")]
fn fetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        // SAFETY: the instruction is a hint.  It faults for no address, and reads nothing that the program can see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
