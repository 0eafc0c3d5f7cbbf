//! `AsyncTimedChunks`: the chunks of an asynchronous body, each within its limit, without a coroutine of Python for a chunk.
//!
//! In: an asynchronous iterator of chunks, and the timer of its reads.  Out: the same chunks.
//!
//! The timer is a Python object with these methods:
//! - `begin()`: a read waits from now on;
//! - `over()`: the read that waited is over;
//! - `first_came()`: the first chunk has arrived;
//! - `failed(exception)` returns the exception to raise;
//! - `wrapped(read)` returns an awaitable around a read, where the event loop limits a wait by a scope around it.
//!
//! Law: a chunk that is ready costs no call of the timer.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyRuntimeError, PyStopAsyncIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;

use crate::awaiting::{self, Outcome, awaited, resumed, returning, thrown_into};
use crate::errors;
use crate::try_lock::TryLock;

/// Chunks of a body that is awaited, each within its limit.
///
/// Args:
///     chunks: the body.
///     timer: the timer of the reads.
///     wraps: whether `timer.wrapped` limits the reads.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct AsyncTimedChunks {
    chunks: Py<PyAny>,
    timer: Py<PyAny>,
    wraps: bool,
    /// A chunk has arrived.
    begun: AtomicBool,
}

impl AsyncTimedChunks {
    /// Return what drives the next read.
    pub(crate) fn next<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, chunks) = (this.py(), this.get());
        let mut read = chunks.chunks.bind(py).call_method0(intern!(py, "__anext__"))?;
        if chunks.wraps {
            read = chunks.timer.bind(py).call_method1(intern!(py, "wrapped"), (read,))?;
        }
        awaited(read)
    }

    /// Resume a read with an answer or an exception of the event loop.  `waited` is whether it has waited before.
    pub(crate) fn advance<'py>(
        &self,
        inner: &Bound<'py, PyAny>,
        waited: bool,
        input: PyResult<&Bound<'py, PyAny>>,
    ) -> Outcome<'py> {
        let outcome = match input {
            Ok(value) => resumed(inner, value),
            Err(error) => thrown_into(inner, error),
        };
        self.timed(inner.py(), waited, outcome).unwrap_or_else(Outcome::Raised)
    }

    fn timed<'py>(
        &self,
        py: Python<'py>,
        waited: bool,
        outcome: Outcome<'py>,
    ) -> PyResult<Outcome<'py>> {
        match outcome {
            Outcome::Yielded(value) => {
                if !waited {
                    self.timer.bind(py).call_method0(intern!(py, "begin"))?;
                }
                Ok(Outcome::Yielded(value))
            }
            Outcome::Returned(value) => {
                // Only the reader writes this, so that a load is enough.
                if !self.begun.load(Ordering::Relaxed) {
                    self.begun.store(true, Ordering::Relaxed);
                    self.timer.bind(py).call_method0(intern!(py, "first_came"))?;
                }
                if waited {
                    self.over(py)?;
                }
                Ok(Outcome::Returned(value))
            }
            Outcome::Raised(error) if error.is_instance_of::<PyStopAsyncIteration>(py) => {
                self.over(py)?;
                Ok(Outcome::Raised(error))
            }
            Outcome::Raised(error) => {
                let failed = (error.into_value(py),);
                let error = self.timer.bind(py).call_method1(intern!(py, "failed"), failed)?;
                Ok(Outcome::Raised(PyErr::from_value(error)))
            }
        }
    }

    /// End the limit of a read that is given up.
    pub(crate) fn over(&self, py: Python<'_>) -> PyResult<()> {
        self.timer.bind(py).call_method0(intern!(py, "over")).map(drop)
    }
}

#[pymethods]
impl AsyncTimedChunks {
    #[new]
    #[pyo3(signature = (chunks, timer, *, wraps))]
    fn new(chunks: Py<PyAny>, timer: Py<PyAny>, wraps: bool) -> Self {
        Self { chunks, timer, wraps, begun: AtomicBool::new(false) }
    }

    fn __aiter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __anext__(this: &Bound<'_, Self>) -> PyResult<TimedRead> {
        let read = Self::next(this)?.unbind();
        Ok(TimedRead { chunks: this.clone().unbind(), phase: TryLock::new(Phase::Fresh(read)) })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.chunks)?;
        visit.call(&self.timer)
    }
}

enum Phase {
    Fresh(Py<PyAny>),
    Waiting(Py<PyAny>),
    Over,
}

/// One read of `AsyncTimedChunks`, to be awaited once.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct TimedRead {
    chunks: Py<AsyncTimedChunks>,
    phase: TryLock<Phase>,
}

impl TimedRead {
    fn swap(&self, py: Python<'_>, phase: Phase) -> PyResult<Phase> {
        Ok(std::mem::replace(&mut *errors::lock(py, &self.phase, "read")?, phase))
    }

    fn advance<'py>(
        &self,
        py: Python<'py>,
        input: PyResult<&Bound<'py, PyAny>>,
    ) -> PyResult<Outcome<'py>> {
        let (inner, waited) = match self.swap(py, Phase::Over)? {
            Phase::Fresh(inner) => (inner.into_bound(py), false),
            Phase::Waiting(inner) => (inner.into_bound(py), true),
            Phase::Over => return Err(PyRuntimeError::new_err("a read is awaited only once")),
        };
        let outcome = self.chunks.get().advance(&inner, waited, input);
        if let Outcome::Yielded(_) = outcome {
            self.swap(py, Phase::Waiting(inner.unbind()))?;
        }
        Ok(outcome)
    }

    fn step<'py>(
        &self,
        py: Python<'py>,
        input: PyResult<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.advance(py, input)? {
            Outcome::Yielded(value) => Ok(value),
            Outcome::Returned(value) => Err(returning(value)),
            Outcome::Raised(error) => Err(error),
        }
    }
}

#[pymethods]
impl TimedRead {
    fn __await__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, Ok(py.None().bind(py)))
    }

    /// Resume the read with the event loop's answer to what the read yielded.
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
    fn send<'py>(&self, py: Python<'py>, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, Ok(&value))
    }

    /// Raise an exception where the read waits.
    #[pyo3(signature = (kind, value=None, traceback=None, /))]
    fn throw<'py>(
        &self,
        py: Python<'py>,
        kind: Bound<'py, PyAny>,
        value: Option<Bound<'py, PyAny>>,
        traceback: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, Err(awaiting::thrown(kind, value, traceback)?))
    }

    /// End the read before its end: nothing can be awaited any more.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.swap(py, Phase::Over)? {
            Phase::Over => Ok(()),
            Phase::Fresh(inner) => awaiting::closed(inner.bind(py)),
            Phase::Waiting(inner) => {
                let closed = awaiting::closed(inner.bind(py));
                closed.and(self.chunks.bind(py).get().over(py))
            }
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.chunks)?;
        match self.phase.try_lock().as_deref() {
            Ok(Phase::Fresh(inner) | Phase::Waiting(inner)) => visit.call(inner),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        let phase =
            self.phase.try_lock().ok().map(|mut phase| std::mem::replace(&mut *phase, Phase::Over));
        drop(phase);
    }
}

impl Drop for TimedRead {
    fn drop(&mut self) {
        if let Phase::Waiting(_) = self.phase.get_mut() {
            // The timer must not end a later wait of the task.
            drop(Python::try_attach(|py| self.chunks.bind(py).get().over(py)));
        }
    }
}
