//! `TaskWatch`: cancels the task of asyncio that waits too long, as `asyncio.timeout` does.
//!
//! In: the beginnings and ends of waits, and their limits in seconds.  Out: cancellations of the task that waits.
//!
//! Laws: a wait needs no timer of its own (`loop_timer.rs`).  No code of Python runs under the lock.  Times are those of the
//! event loop's clock.

use std::mem;

use pyo3::exceptions::PyBaseException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::errors;
use crate::loop_timer::LoopTimer;
use crate::try_lock::{Guard, TryLock};

/// Limiter of the waits of one task at a time.
///
/// Args:
///     timer: the timer of the event loop that runs.
#[pyclass(frozen, subclass, module = "deltafold._core")]
pub(crate) struct TaskWatch {
    timer: Py<LoopTimer>,
    state: TryLock<State>,
}

struct State {
    /// The task that waits.
    task: Option<Py<PyAny>>,
    /// The task's `cancelling()` at the beginning of the wait.
    cancelling: usize,
    /// End of the wait in seconds of the event loop; infinite without a limit.
    due: f64,
    /// The wait was cancelled here.
    expired: bool,
}

/// What a wait needs of the timer that rings.
pub(crate) enum Due {
    /// This task has to be cancelled.
    Now(Py<PyAny>),
    /// The wait ends at this time.
    Later(f64),
    /// There is no wait, or it has no limit.
    Never,
}

impl TaskWatch {
    fn lock(&self, py: Python<'_>) -> PyResult<Guard<'_, State>> {
        errors::lock(py, &self.state, "task watch")
    }

    /// Return the end of a wait that may take so many seconds from now on.
    fn end(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<f64> {
        match seconds {
            Some(seconds) => Ok(self.timer.get().now(py)? + seconds),
            None => Ok(f64::INFINITY),
        }
    }

    /// Begin a wait of the current task, of so many seconds at most.
    pub(crate) fn begin(this: &Bound<'_, Self>, seconds: Option<f64>) -> PyResult<()> {
        static CURRENT_TASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let (py, watch) = (this.py(), this.get());
        let current_task = CURRENT_TASK.import(py, "asyncio", "current_task")?;
        let task = current_task.call1((watch.timer.get().event_loop(),))?;
        let cancelling = task.call_method0(intern!(py, "cancelling"))?.extract()?;
        let due = watch.end(py, seconds)?;
        let mut state = watch.lock(py)?;
        let before = state.task.replace(task.unbind());
        state.cancelling = cancelling;
        state.expired = false;
        state.due = due;
        drop(state);
        drop(before);
        Self::cover(this, due)
    }

    fn cover(this: &Bound<'_, Self>, due: f64) -> PyResult<()> {
        if due.is_finite() {
            LoopTimer::cover(this.get().timer.bind(this.py()), this, due)
        } else {
            Ok(())
        }
    }

    /// End the wait.
    pub(crate) fn over(&self, py: Python<'_>) -> PyResult<()> {
        let task = self.lock(py)?.task.take();
        drop(task);
        Ok(())
    }

    /// Forget the watch: there are no more waits.
    pub(crate) fn close(this: &Bound<'_, Self>) -> PyResult<()> {
        this.get().timer.get().forget(this)
    }

    /// Return what the wait needs, when the timer rings at this time.
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

    /// Return whether a wait ended in a cancellation of this object, and take it back.
    pub(crate) fn has_cancelled(&self, raised: &Bound<'_, PyBaseException>) -> PyResult<bool> {
        static CANCELLED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = raised.py();
        let state = self.lock(py)?;
        let (true, Some(task)) = (state.expired, &state.task) else { return Ok(false) };
        let (task, cancelling) = (task.clone_ref(py), state.cancelling);
        drop(state);
        if !raised.is_instance(CANCELLED.import(py, "asyncio", "CancelledError")?)? {
            return Ok(false);
        }
        let left: usize = task.call_method0(py, intern!(py, "uncancel"))?.extract(py)?;
        Ok(left <= cancelling)
    }
}

#[pymethods]
impl TaskWatch {
    #[new]
    fn new(timer: Py<LoopTimer>) -> Self {
        let state = State { task: None, cancelling: 0, due: f64::INFINITY, expired: false };
        Self { timer, state: TryLock::new(state) }
    }

    /// Begin a wait of the current task, of so many seconds at most; None removes the limit.
    #[pyo3(name = "begin")]
    fn py_begin(this: &Bound<'_, Self>, seconds: Option<f64>) -> PyResult<()> {
        Self::begin(this, seconds)
    }

    /// Let the wait take so many seconds from now on; None removes the limit.
    fn allow(this: &Bound<'_, Self>, seconds: Option<f64>) -> PyResult<()> {
        let (py, watch) = (this.py(), this.get());
        let due = watch.end(py, seconds)?;
        let mut state = watch.lock(py)?;
        if state.task.is_none() {
            return Ok(());
        }
        state.due = due;
        drop(state);
        Self::cover(this, due)
    }

    /// End the wait; the next one may begin.
    #[pyo3(name = "over")]
    fn py_over(&self, py: Python<'_>) -> PyResult<()> {
        self.over(py)
    }

    /// Return whether a wait ended in a cancellation of this object, and take it back.
    #[pyo3(name = "has_cancelled")]
    fn py_has_cancelled(&self, raised: &Bound<'_, PyBaseException>) -> PyResult<bool> {
        self.has_cancelled(raised)
    }

    /// Forget the watch: there are no more waits.
    #[pyo3(name = "close")]
    fn py_close(this: &Bound<'_, Self>) -> PyResult<()> {
        Self::close(this)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.timer)?;
        match self.state.try_lock() {
            Ok(state) => visit.call(&state.task),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let held = self.state.try_lock().ok().map(|mut state| mem::take(&mut state.task));
        drop(held);
    }
}
