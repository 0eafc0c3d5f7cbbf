//! `TaskWatch`: cancels the task of asyncio that waits too long, as `asyncio.timeout` does.
//!
//! In: the beginnings and ends of waits, and their limits in seconds.  Out: cancellations of the task that waits.
//!
//! Laws: all waits of a call share one timer; a timer whose wait is over only sets itself again.  No code of Python runs under
//! the lock.  Times are those of the event loop's clock.

use std::mem;

use pyo3::exceptions::PyBaseException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::errors;
use crate::try_lock::{Guard, TryLock};

/// Limiter of the waits of one task at a time.
///
/// Args:
///     event_loop: the event loop of asyncio that runs.
#[pyclass(frozen, subclass, module = "deltafold._core")]
pub(crate) struct TaskWatch {
    event_loop: Py<PyAny>,
    state: TryLock<State>,
}

struct State {
    /// The task that waits.
    task: Option<Py<PyAny>>,
    /// The task's `cancelling()` at the beginning of the wait.
    cancelling: usize,
    /// End of the wait in seconds of the event loop; infinite without a limit.
    due: f64,
    /// Time at which the timer rings; infinite without a timer.
    rings: f64,
    timer: Option<Py<PyAny>>,
    /// The wait was cancelled here.
    expired: bool,
}

impl TaskWatch {
    fn lock(&self, py: Python<'_>) -> PyResult<Guard<'_, State>> {
        errors::lock(py, &self.state, "task watch")
    }

    fn now(&self, py: Python<'_>) -> PyResult<f64> {
        self.event_loop.bind(py).call_method0(intern!(py, "time"))?.extract()
    }

    /// Begin a wait of the current task, of so many seconds at most.
    pub(crate) fn begin(this: &Bound<'_, Self>, seconds: Option<f64>) -> PyResult<()> {
        static CURRENT_TASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let (py, watch) = (this.py(), this.get());
        let current_task = CURRENT_TASK.import(py, "asyncio", "current_task")?;
        let task = current_task.call1((&watch.event_loop,))?;
        let cancelling = task.call_method0(intern!(py, "cancelling"))?.extract()?;
        let due = match seconds {
            Some(seconds) => watch.now(py)? + seconds,
            None => f64::INFINITY,
        };
        let mut state = watch.lock(py)?;
        let before = state.task.replace(task.unbind());
        state.cancelling = cancelling;
        state.expired = false;
        state.due = due;
        let is_early = due < state.rings;
        drop(state);
        drop(before);
        if is_early { Self::set(this) } else { Ok(()) }
    }

    /// End the wait.  The timer runs on for the next one.
    pub(crate) fn over(&self, py: Python<'_>) -> PyResult<()> {
        let task = self.lock(py)?.task.take();
        drop(task);
        Ok(())
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

    /// Set the timer to the end of the wait.
    fn set(this: &Bound<'_, Self>) -> PyResult<()> {
        let (py, watch) = (this.py(), this.get());
        watch.close(py)?;
        let due = watch.lock(py)?.due;
        let ring = this.getattr(intern!(py, "_ring"))?;
        let timer = watch.event_loop.call_method1(py, intern!(py, "call_at"), (due, ring))?;
        let mut state = watch.lock(py)?;
        state.rings = due;
        let before = state.timer.replace(timer);
        drop(state);
        drop(before);
        Ok(())
    }
}

#[pymethods]
impl TaskWatch {
    #[new]
    fn new(event_loop: Py<PyAny>) -> Self {
        let state = State {
            task: None,
            cancelling: 0,
            due: f64::INFINITY,
            rings: f64::INFINITY,
            timer: None,
            expired: false,
        };
        Self { event_loop, state: TryLock::new(state) }
    }

    /// Begin a wait of the current task, of so many seconds at most; None removes the limit.
    #[pyo3(name = "begin")]
    fn py_begin(this: &Bound<'_, Self>, seconds: Option<f64>) -> PyResult<()> {
        Self::begin(this, seconds)
    }

    /// Let the wait take so many seconds from now on; None removes the limit.
    fn allow(this: &Bound<'_, Self>, seconds: Option<f64>) -> PyResult<()> {
        let (py, watch) = (this.py(), this.get());
        let due = match seconds {
            Some(seconds) => watch.now(py)? + seconds,
            None => f64::INFINITY,
        };
        let mut state = watch.lock(py)?;
        if state.task.is_none() {
            return Ok(());
        }
        state.due = due;
        let is_early = due < state.rings;
        drop(state);
        if is_early { Self::set(this) } else { Ok(()) }
    }

    /// End the wait, whose timer runs on for the next one.
    #[pyo3(name = "over")]
    fn py_over(&self, py: Python<'_>) -> PyResult<()> {
        self.over(py)
    }

    /// Return whether a wait ended in a cancellation of this object, and take it back.
    #[pyo3(name = "has_cancelled")]
    fn py_has_cancelled(&self, raised: &Bound<'_, PyBaseException>) -> PyResult<bool> {
        self.has_cancelled(raised)
    }

    /// Cancel the timer.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.lock(py)?;
        state.rings = f64::INFINITY;
        let timer = state.timer.take();
        drop(state);
        match timer {
            Some(timer) => timer.call_method0(py, intern!(py, "cancel")).map(drop),
            None => Ok(()),
        }
    }

    /// Cancel a task whose wait is due, or set the timer again.
    fn _ring(this: &Bound<'_, Self>) -> PyResult<()> {
        let (py, watch) = (this.py(), this.get());
        let now = watch.now(py)?;
        let mut state = watch.lock(py)?;
        let timer = state.timer.take();
        state.rings = f64::INFINITY;
        let waits = state.task.as_ref().map(|task| task.clone_ref(py));
        let due = state.due;
        state.expired |= waits.is_some() && due <= now;
        drop(state);
        drop(timer);
        match waits {
            Some(task) if due <= now => task.call_method0(py, intern!(py, "cancel")).map(drop),
            Some(_) if due.is_finite() => Self::set(this),
            _ => Ok(()),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        match self.state.try_lock() {
            Ok(state) => {
                visit.call(&state.task)?;
                visit.call(&state.timer)
            }
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let held = self
            .state
            .try_lock()
            .ok()
            .map(|mut state| (mem::take(&mut state.task), mem::take(&mut state.timer)));
        drop(held);
    }
}
