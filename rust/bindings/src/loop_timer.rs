//! `LoopTimer`: the one timer of asyncio that all watches of an event loop share.
//!
//! In: watches whose waits end at a time.  Out: cancellations of the tasks that wait too long.
//!
//! Laws: the timer rings no later than the first wait ends.  It is not set for a wait that ends after it rings, and never
//! cancelled because a wait is over: setting and cancelling a timer for each call costs as much as decoding a short answer.
//! Without a wait that has a limit, it is not set again.  No code of Python runs under the lock.

use std::collections::HashMap;
use std::mem;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;

use crate::errors;
use crate::task_watch::{Due, TaskWatch};
use crate::try_lock::{Guard, TryLock};

/// Timer of the waits of an event loop.
///
/// Args:
///     event_loop: the event loop of asyncio that runs.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct LoopTimer {
    event_loop: Py<PyAny>,
    state: TryLock<State>,
}

struct State {
    /// Time at which the timer rings; infinite without a timer.
    rings: f64,
    timer: Option<Py<PyAny>>,
    /// The watches that may wait, by address.
    watches: HashMap<usize, Py<TaskWatch>>,
}

impl LoopTimer {
    fn lock(&self, py: Python<'_>) -> PyResult<Guard<'_, State>> {
        errors::lock(py, &self.state, "loop timer")
    }

    pub(crate) fn event_loop(&self) -> &Py<PyAny> {
        &self.event_loop
    }

    /// Return the time of the event loop, in seconds.
    pub(crate) fn now(&self, py: Python<'_>) -> PyResult<f64> {
        self.event_loop.bind(py).call_method0(intern!(py, "time"))?.extract()
    }

    /// Ring for a watch at a time at the latest.
    pub(crate) fn cover(
        this: &Bound<'_, Self>,
        watch: &Bound<'_, TaskWatch>,
        due: f64,
    ) -> PyResult<()> {
        let mut state = this.get().lock(this.py())?;
        state.watches.entry(watch.as_ptr().addr()).or_insert_with(|| watch.clone().unbind());
        let is_early = due < state.rings;
        drop(state);
        if is_early { Self::set(this, due) } else { Ok(()) }
    }

    /// Forget a watch that waits no more.
    pub(crate) fn forget(&self, watch: &Bound<'_, TaskWatch>) -> PyResult<()> {
        let watch = self.lock(watch.py())?.watches.remove(&watch.as_ptr().addr());
        drop(watch);
        Ok(())
    }

    fn set(this: &Bound<'_, Self>, due: f64) -> PyResult<()> {
        let (py, timer) = (this.py(), this.get());
        let ring = this.getattr(intern!(py, "_ring"))?;
        let set = timer.event_loop.call_method1(py, intern!(py, "call_at"), (due, ring))?;
        let mut state = timer.lock(py)?;
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
        let state = State { rings: f64::INFINITY, timer: None, watches: HashMap::new() };
        Self { event_loop, state: TryLock::new(state) }
    }

    /// Return whether this is the timer of an event loop.
    fn is_of(&self, event_loop: &Bound<'_, PyAny>) -> bool {
        event_loop.is(&self.event_loop)
    }

    /// Cancel the tasks whose waits are due, and set the timer for the next one.
    fn _ring(this: &Bound<'_, Self>) -> PyResult<()> {
        let (py, timer) = (this.py(), this.get());
        let now = timer.now(py)?;
        let mut state = timer.lock(py)?;
        state.rings = f64::INFINITY;
        let rung = state.timer.take();
        let watches: Vec<_> = state.watches.values().map(|watch| watch.clone_ref(py)).collect();
        drop(state);
        drop(rung);
        let (mut next, mut late) = (f64::INFINITY, Vec::new());
        for watch in watches {
            match watch.get().due(py, now)? {
                Due::Now(task) => late.push(task),
                Due::Later(due) => next = next.min(due),
                Due::Never => timer.forget(watch.bind(py))?,
            }
        }
        if next.is_finite() {
            Self::set(this, next)?;
        }
        for task in late {
            task.call_method0(py, intern!(py, "cancel"))?;
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        match self.state.try_lock() {
            Ok(state) => {
                visit.call(&state.timer)?;
                state.watches.values().try_for_each(|watch| visit.call(watch))
            }
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let held = self
            .state
            .try_lock()
            .ok()
            .map(|mut state| (mem::take(&mut state.timer), mem::take(&mut state.watches)));
        drop(held);
    }
}
