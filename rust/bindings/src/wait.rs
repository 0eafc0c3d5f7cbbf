//! `Wait`: the wait of one task at a time, and its end.
//!
//! In: the task that waits, and when it has waited long enough.  Out: what a timer has to do for it.
//!
//! Law: no code of Python runs under the lock.

use std::mem;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::errors;
use crate::try_lock::{Guard, TryLock};

/// A wait, or the pause between two of them.
pub(crate) struct Wait {
    state: TryLock<State>,
}

struct State {
    /// The task that waits.
    task: Option<Py<PyAny>>,
    /// The task's `cancelling()` at the beginning of the wait.
    cancelling: usize,
    /// End of the wait in seconds of the event loop; infinite without a limit.
    due: f64,
    /// The wait was cancelled by its timer.
    expired: bool,
}

/// Action of the timer for a wait when it rings.
pub(crate) enum Due {
    /// This task has to be cancelled.
    Now(Py<PyAny>),
    /// The wait ends at this time.
    Later(f64),
    /// No task waits, or it waits without a limit.
    Never,
}

impl Wait {
    pub(crate) fn new() -> Self {
        let state = State { task: None, cancelling: 0, due: f64::INFINITY, expired: false };
        Self { state: TryLock::new(state) }
    }

    fn lock(&self, py: Python<'_>) -> PyResult<Guard<'_, State>> {
        errors::lock(py, &self.state, "wait")
    }

    /// Begin the wait of a task, until this time at most.
    pub(crate) fn begin(
        &self,
        task: Bound<'_, PyAny>,
        cancelling: usize,
        due: f64,
    ) -> PyResult<()> {
        let mut state = self.lock(task.py())?;
        let before = state.task.replace(task.unbind());
        state.cancelling = cancelling;
        state.expired = false;
        state.due = due;
        drop(state);
        drop(before);
        Ok(())
    }

    /// Let the wait end at this time.  Return whether a task waits.
    pub(crate) fn allow(&self, py: Python<'_>, due: f64) -> PyResult<bool> {
        let mut state = self.lock(py)?;
        state.due = due;
        Ok(state.task.is_some())
    }

    /// End the wait.
    pub(crate) fn over(&self, py: Python<'_>) -> PyResult<()> {
        let task = self.lock(py)?.task.take();
        drop(task);
        Ok(())
    }

    /// Return what the wait needs, when its timer rings at this time.
    pub(crate) fn due(&self, py: Python<'_>, now: f64) -> PyResult<Due> {
        let mut state = self.lock(py)?;
        let due = state.due;
        match &state.task {
            Some(task) if due <= now => {
                let task = task.clone_ref(py);
                state.expired = true;
                // The task is cancelled once.
                state.due = f64::INFINITY;
                Ok(Due::Now(task))
            }
            Some(_) if due.is_finite() => Ok(Due::Later(due)),
            _ => Ok(Due::Never),
        }
    }

    /// Return the task that a timer has cancelled, and its `cancelling()` before.
    pub(crate) fn cancelled(&self, py: Python<'_>) -> PyResult<Option<(Py<PyAny>, usize)>> {
        let state = self.lock(py)?;
        let task = state.task.as_ref().filter(|_| state.expired);
        Ok(task.map(|task| (task.clone_ref(py), state.cancelling)))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.state.try_lock() {
            Ok(state) => visit.call(&state.task),
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn clear(&self) {
        let held = self.state.try_lock().ok().map(|mut state| mem::take(&mut state.task));
        drop(held);
    }
}
