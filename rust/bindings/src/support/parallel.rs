//! Work on many items, on all cores, while the calling thread is detached from Python.
//!
//! In: a number of items, and a function that does the work of one item and keeps its result.  Out: all items are done.
//!
//! Laws: no Python object is used in another thread.  An exception of a signal handler ends the work.  One thread works in
//! the calling thread, so that a single small item costs no thread.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::support::signals::{self, PAUSE, SLICE};

/// Bytes added to the size of each item, so that signals are also checked between many small items.
const ITEM_BYTES: usize = 1 << 10;

/// Reason why an item was not finished.
pub(crate) enum Stopped {
    /// A signal handler raised an exception in the calling thread.
    Signal(PyErr),
    /// The calling thread ends the work of the other threads.
    Called,
}

/// Check whether the work goes on.  An item calls the function between its slices.
pub(crate) type Look<'a> = &'a dyn Fn() -> Result<(), Stopped>;

/// Work of one item.  It checks the function between its slices.
type Work<'a> = &'a (dyn Fn(usize, Look<'_>) -> Result<(), Stopped> + Sync);

/// Places for the results of items.
pub(crate) struct Results<T>(Vec<OnceLock<T>>);

impl<T> Results<T> {
    pub(crate) fn of(items: usize) -> Self {
        Self(std::iter::repeat_with(OnceLock::new).take(items).collect())
    }

    /// Keep the result of an item.
    pub(crate) fn keep(&self, item: usize, result: T) {
        if let Some(place) = self.0.get(item) {
            let _ = place.set(result);
        }
    }

    /// Return the results in the order of the items.
    pub(crate) fn in_order(self) -> impl Iterator<Item = T> {
        self.0.into_iter().filter_map(OnceLock::into_inner)
    }
}

/// Return the number of threads for a number of items; `None` means all cores.
///
/// Raises:
///     ValueError: the caller asks for no thread.
pub(crate) fn thread_count(wanted: Option<usize>, items: usize) -> PyResult<usize> {
    if wanted == Some(0) {
        return Err(PyValueError::new_err("threads must be at least 1"));
    }
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    Ok(wanted.unwrap_or_else(cores).min(items))
}

/// Do the work of all items.  `size` returns the bytes of an item.
pub(crate) fn work_on(
    items: usize,
    threads: usize,
    size: &dyn Fn(usize) -> usize,
    work: Work<'_>,
) -> PyResult<()> {
    if threads > 1 {
        return work_on_threads(items, threads, work);
    }
    let look = || signals::look_detached().map_err(Stopped::Signal);
    let mut since = 0;
    for item in 0..items {
        since += size(item) + ITEM_BYTES;
        if since > SLICE {
            since = 0;
            signals::look_detached()?;
        }
        if let Err(Stopped::Signal(error)) = work(item, &look) {
            return Err(error);
        }
    }
    Ok(())
}

/// Work in other threads, while the calling thread checks for signals.
fn work_on_threads(items: usize, threads: usize, work: Work<'_>) -> PyResult<()> {
    let (next, stopped) = (&AtomicUsize::new(0), &AtomicBool::new(false));
    let look = || if stopped.load(Ordering::Relaxed) { Err(Stopped::Called) } else { Ok(()) };
    thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<()>();
        for _ in 0..threads {
            let running = running.clone();
            scope.spawn(move || {
                loop {
                    let item = next.fetch_add(1, Ordering::Relaxed);
                    if item >= items || look().and_then(|()| work(item, &look)).is_err() {
                        break;
                    }
                }
                drop(running);
            });
        }
        drop(running);
        while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            signals::look_detached().inspect_err(|_| stopped.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    })
}
