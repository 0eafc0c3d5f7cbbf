//! `RecentBytes`: the end of the bytes that a stream has read, for the report of a failure.
//!
//! In: the chunks of a body.  Out: the number of bytes read, and the last of them.
//!
//! Laws: a short chunk is kept as it is, and of a long one only its end, so that a stream keeps a few KiB.  The chunks follow
//! each other without a gap.  No Python object is made or dropped under the lock.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::with_bytes;
use crate::try_lock::TryLock;

const CHUNKS: usize = 4;
const CHUNK_BYTES: usize = 2048;

/// The last chunks, the oldest at `next`.
#[derive(Default)]
pub(crate) struct RecentBytes {
    chunks: [Option<Py<PyBytes>>; CHUNKS],
    next: usize,
    read: u64,
}

impl RecentBytes {
    /// Keep a chunk.  Objects that the decoder refuses are not kept.
    pub(crate) fn note(slot: &TryLock<Self>, chunk: &Bound<'_, PyAny>) {
        let kept = match chunk.cast_exact::<PyBytes>() {
            Ok(bytes) if bytes.as_bytes().len() <= CHUNK_BYTES => {
                Ok((bytes.as_bytes().len(), bytes.clone().unbind()))
            }
            _ => with_bytes(chunk, |bytes| {
                let end = bytes.len().saturating_sub(CHUNK_BYTES);
                let tail = bytes.get(end..).unwrap_or_default();
                Ok((bytes.len(), PyBytes::new(chunk.py(), tail).unbind()))
            }),
        };
        let Ok((length, kept)) = kept else { return };
        // A busy lock means that the chunks are being looked at, which misses this one.
        let before = slot.try_lock().map(|mut recent| recent.keep(kept, length));
        drop(before);
    }

    /// Keep a chunk and return those that are no longer kept: the oldest, or all before one that lost its beginning.
    fn keep(&mut self, chunk: Py<PyBytes>, length: usize) -> [Option<Py<PyBytes>>; CHUNKS] {
        self.read = self.read.saturating_add(length as u64);
        let mut before = <[Option<Py<PyBytes>>; CHUNKS]>::default();
        if length > CHUNK_BYTES {
            std::mem::swap(&mut before, &mut self.chunks);
        }
        let place = self.next;
        self.next = (place + 1) % CHUNKS;
        if let (Some(slot), Some(old)) = (self.chunks.get_mut(place), before.first_mut()) {
            *old = old.take().or(slot.replace(chunk));
        }
        before
    }

    /// Return the number of bytes read, and the last chunks in their order.
    pub(crate) fn chunks<'py>(&self, py: Python<'py>) -> (u64, Vec<Bound<'py, PyBytes>>) {
        let (later, earlier) = self.chunks.split_at_checked(self.next).unwrap_or_default();
        let ordered = earlier.iter().chain(later).flatten();
        (self.read, ordered.map(|chunk| chunk.bind(py).clone()).collect())
    }
}
