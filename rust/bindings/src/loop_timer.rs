//! `LoopTimer`: the one timer of asyncio that all waits of an event loop share.
//!
//! In: waits, and when they end.  Out: cancellations of the tasks that wait too long.
//!
//! Laws: the timer rings no later than the first wait ends.  It is not set for a wait that ends after it rings, and never
//! cancelled because a wait is over: setting and cancelling a timer for each call costs as much as decoding a short answer.
//! Without a wait that has a limit, it is not set again.  No code of Python runs under the lock.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;

use crate::wait::{Due, Wait};

/// Timer of the waits of an event loop.
///
/// Args:
///     event_loop: the event loop of asyncio that runs.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct LoopTimer {
    event_loop: Py<PyAny>,
    /// In a free-threaded Python, a thread that frees a watch may have to wait here for the event loop.
    state: Mutex<State>,
}

struct State {
    /// Time at which the timer rings; infinite without a timer.
    rings: f64,
    timer: Option<Py<PyAny>>,
    /// The waits that may have a limit, by address.
    waits: HashMap<usize, Arc<Wait>>,
}

impl LoopTimer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn event_loop(&self) -> &Py<PyAny> {
        &self.event_loop
    }

    /// Return the time of the event loop, in seconds.
    pub(crate) fn now(&self, py: Python<'_>) -> PyResult<f64> {
        self.event_loop.bind(py).call_method0(intern!(py, "time"))?.extract()
    }

    /// Ring for a wait at this time at the latest.
    pub(crate) fn cover(this: &Bound<'_, Self>, wait: &Arc<Wait>, due: f64) -> PyResult<()> {
        let mut state = this.get().lock();
        state.waits.entry(address(wait)).or_insert_with(|| Arc::clone(wait));
        let is_early = due < state.rings;
        drop(state);
        if is_early { Self::set(this, due) } else { Ok(()) }
    }

    /// Forget a wait.
    pub(crate) fn forget(&self, wait: &Arc<Wait>) {
        let wait = self.lock().waits.remove(&address(wait));
        drop(wait);
    }

    fn set(this: &Bound<'_, Self>, due: f64) -> PyResult<()> {
        let (py, timer) = (this.py(), this.get());
        let ring = this.getattr(intern!(py, "_ring"))?;
        let set = timer.event_loop.call_method1(py, intern!(py, "call_at"), (due, ring))?;
        let mut state = timer.lock();
        state.rings = due;
        let before = state.timer.replace(set);
        drop(state);
        match before {
            Some(before) => before.call_method0(py, intern!(py, "cancel")).map(drop),
            None => Ok(()),
        }
    }
}

#[pymethods]
impl LoopTimer {
    #[new]
    fn new(event_loop: Py<PyAny>) -> Self {
        let state = State { rings: f64::INFINITY, timer: None, waits: HashMap::new() };
        Self { event_loop, state: Mutex::new(state) }
    }

    /// Return whether this is the timer of an event loop.
    fn is_of(&self, event_loop: &Bound<'_, PyAny>) -> bool {
        event_loop.is(&self.event_loop)
    }

    /// Cancel the tasks whose waits are due, and set the timer for the next one.
    fn _ring(this: &Bound<'_, Self>) -> PyResult<()> {
        let (py, timer) = (this.py(), this.get());
        let now = timer.now(py)?;
        let mut state = timer.lock();
        state.rings = f64::INFINITY;
        let rung = state.timer.take();
        let waits: Vec<_> = state.waits.values().map(Arc::clone).collect();
        drop(state);
        drop(rung);
        let (mut next, mut late) = (f64::INFINITY, Vec::new());
        for wait in waits {
            match wait.due(py, now)? {
                Due::Now(task) => late.push(task),
                Due::Later(due) => next = next.min(due),
                Due::Never => timer.forget(&wait),
            }
        }
        if next.is_finite() {
            Self::set(this, next)?;
        }
        // One that raises takes the end of its wait from no other.
        let cancel = |task: Py<PyAny>| task.call_method0(py, intern!(py, "cancel")).map(drop);
        late.into_iter().map(cancel).fold(Ok(()), PyResult::and)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        match self.state.try_lock() {
            // The watches visit the tasks of their waits.
            Ok(state) => visit.call(&state.timer),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let held = self.state.try_lock().ok().map(|mut state| mem::take(&mut state.timer));
        drop(held);
    }
}

fn address(wait: &Arc<Wait>) -> usize {
    Arc::as_ptr(wait).addr()
}
