//! `TaskWatch`: cancels the task of asyncio that waits too long, as `asyncio.timeout` does.
//!
//! In: the beginnings and ends of waits, and their limits in seconds.  Out: cancellations of the task that waits.
//!
//! Laws: a wait needs no timer of its own (`loop_timer.rs`).  Times are those of the event loop's clock.

use std::sync::Arc;

use deltafold::memory::{self, Report};
use pyo3::exceptions::PyBaseException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::imports::EXPIRED_ERROR;
use crate::loop_timer::LoopTimer;
use crate::wait::Wait;

/// Limiter of the waits of one task at a time.
///
/// Args:
///     timer: the timer of the event loop that runs.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct TaskWatch {
    timer: Py<LoopTimer>,
    /// The timer knows it too, until this object is gone.
    wait: Arc<Wait>,
}

impl TaskWatch {
    /// Report the memory that a wait needs.
    pub(crate) fn memory(&self, report: &mut Report<'_>) {
        memory::of(self, report);
        memory::of(&*self.wait, report);
    }

    /// Return the end of a wait that may take so many seconds from now on.
    fn end(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<f64> {
        match seconds {
            Some(seconds) => Ok(self.timer.get().now(py)? + seconds),
            None => Ok(f64::INFINITY),
        }
    }

    fn cover(&self, py: Python<'_>, due: f64) -> PyResult<()> {
        if due.is_finite() {
            LoopTimer::cover(self.timer.bind(py), &self.wait, due)
        } else {
            Ok(())
        }
    }

    /// End the wait.
    pub(crate) fn over(&self, py: Python<'_>) -> PyResult<()> {
        self.wait.over(py)
    }

    /// Begin a wait of the current task, of so many seconds at most.
    pub(crate) fn begin(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        static CURRENT_TASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let current_task = CURRENT_TASK.import(py, "asyncio", "current_task")?;
        let task = current_task.call1((self.timer.get().event_loop(),))?;
        let cancelling = task.call_method0(intern!(py, "cancelling"))?.extract()?;
        let due = self.end(py, seconds)?;
        self.wait.begin(task, cancelling, due)?;
        self.cover(py, due)
    }

    /// Return whether a wait ended in a cancellation of this object, and take it back.
    pub(crate) fn has_cancelled(&self, raised: &Bound<'_, PyBaseException>) -> PyResult<bool> {
        static CANCELLED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = raised.py();
        let Some((task, cancelling)) = self.wait.cancelled(py)? else { return Ok(false) };
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
        Self { timer, wait: Arc::new(Wait::new()) }
    }

    /// Begin a wait of the current task, of so many seconds at most; None removes the limit.  The wait ends with a `with` block.
    fn within(this: PyRef<'_, Self>, seconds: Option<f64>) -> PyResult<PyRef<'_, Self>> {
        this.begin(this.py(), seconds)?;
        Ok(this)
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// End the wait.
    ///
    /// Raises:
    ///     ExpiredError: this object cancelled the wait.
    #[pyo3(signature = (_kind, raised, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        raised: Option<Bound<'_, PyBaseException>>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let late = match &raised {
            Some(raised) => self.has_cancelled(raised)?,
            None => false,
        };
        self.over(py)?;
        match raised.filter(|_| late) {
            Some(raised) => {
                let expired = PyErr::from_value(EXPIRED_ERROR.get(py)?.call0()?);
                expired.set_cause(py, Some(PyErr::from_value(raised.into_any())));
                Err(expired)
            }
            None => Ok(()),
        }
    }

    /// Let the wait take so many seconds from now on; None removes the limit.
    pub(crate) fn allow(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        let due = self.end(py, seconds)?;
        if self.wait.allow(py, due)? { self.cover(py, due) } else { Ok(()) }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.timer)?;
        // The timer holds the wait too; its task counts once.
        self.wait.traverse(&visit)
    }

    fn __clear__(&self) {
        self.wait.clear();
    }
}

impl Drop for TaskWatch {
    fn drop(&mut self) {
        self.timer.get().forget(&self.wait);
    }
}
