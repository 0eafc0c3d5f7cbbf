//! `RecentBytes`: the end of the bytes that a stream has read, for the report of a failure.
//!
//! In: the chunks of a body.  Out: the number of bytes read, and the last of them.
//!
//! Laws: a short chunk is kept as it is, and of a long one only its end, so that a stream keeps a few KiB.  No Python object
//! is made or dropped under the lock.

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
        let before = slot.try_lock().ok().and_then(|mut recent| recent.replace(kept, length));
        drop(before);
    }

    fn replace(&mut self, chunk: Py<PyBytes>, length: usize) -> Option<Py<PyBytes>> {
        self.read = self.read.saturating_add(length as u64);
        let place = self.next;
        self.next = (place + 1) % CHUNKS;
        self.chunks.get_mut(place).and_then(|slot| slot.replace(chunk))
    }

    /// Return the number of bytes read, and the last chunks in their order.
    pub(crate) fn chunks<'py>(&self, py: Python<'py>) -> (u64, Vec<Bound<'py, PyBytes>>) {
        let (later, earlier) = self.chunks.split_at_checked(self.next).unwrap_or_default();
        let ordered = earlier.iter().chain(later).flatten();
        (self.read, ordered.map(|chunk| chunk.bind(py).clone()).collect())
    }
}
