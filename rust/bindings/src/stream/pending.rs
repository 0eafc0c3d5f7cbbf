//! `PendingDeltas`: deltas of the last read that were not taken yet.
//!
//! In: the batch of a read.  Out: its deltas, one at a time, or its rest.
//!
//! Laws: each delta is claimed once.  Objects are built after the lock is released.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deltafold::contract::DeltaBatch as Core;
use pyo3::prelude::*;

use crate::support::clock::Timestamp;
use crate::support::errors;
use crate::support::try_lock::TryLock;

/// A batch, and its next delta.
pub(crate) struct Pending {
    pub(crate) batch: Core,
    pub(crate) now: Timestamp,
    /// Read and written under the lock of the stream's pending deltas.
    next: AtomicUsize,
}

impl Pending {
    /// Begin behind the first delta of a batch.
    pub(crate) fn after_first(batch: Core, now: Timestamp) -> Self {
        Self { batch, now, next: AtomicUsize::new(1) }
    }
}

/// Pending deltas of a stream.
pub(crate) struct PendingDeltas(TryLock<Option<Arc<Pending>>>);

impl PendingDeltas {
    pub(crate) fn new() -> Self {
        Self(TryLock::new(None))
    }

    /// Keep a batch for the next reads.
    pub(crate) fn keep(&self, py: Python<'_>, pending: Pending) -> PyResult<()> {
        *errors::lock(py, &self.0, "stream")? = Some(Arc::new(pending));
        Ok(())
    }

    /// Claim the next delta: its batch, and its position.
    pub(crate) fn claim(&self, py: Python<'_>) -> PyResult<Option<(Arc<Pending>, usize)>> {
        let mut slot = errors::lock(py, &self.0, "stream")?;
        let Some(pending) = slot.as_ref() else { return Ok(None) };
        let position = pending.next.fetch_add(1, Ordering::Relaxed);
        let is_last = position + 1 >= pending.batch.len();
        let pending = if is_last { slot.take() } else { Some(Arc::clone(pending)) };
        Ok(pending.map(|pending| (pending, position)))
    }

    /// Take all deltas that were not claimed, and the time of their read.
    pub(crate) fn take_rest(&self, py: Python<'_>) -> PyResult<Option<(Core, Timestamp)>> {
        let pending = errors::lock(py, &self.0, "stream")?.take();
        Ok(pending
            .map(|pending| (pending.batch.rest(pending.next.load(Ordering::Relaxed)), pending.now)))
    }

    /// Drop all deltas.
    pub(crate) fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let pending = errors::lock(py, &self.0, "stream")?.take();
        drop(pending);
        Ok(())
    }
}
