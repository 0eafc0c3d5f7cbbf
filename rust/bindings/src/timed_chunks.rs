//! `AsyncTimedChunks`: the chunks of an asynchronous body, each within its limit, without a coroutine of Python for a chunk.
//!
//! In: an asynchronous iterator of chunks or a function that reads one, the limits of the call, and the watch of its waits.
//! Out: the same chunks.
//!
//! Law: a chunk that is ready costs no look at the clock.

use std::sync::atomic::{AtomicBool, Ordering};

use deltafold::memory::{self, Report};
use pyo3::exceptions::{PyRuntimeError, PyStopAsyncIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;

use crate::awaiting::{self, Outcome, awaited, resumed, returning, thrown_into};
use crate::call_limits::CallLimits;
use crate::errors;
use crate::try_lock::TryLock;
use crate::watch::Watch;

/// Chunks of a body that is awaited, each within its limit.
///
/// Args:
///     chunks: the body.
///     limits: the limits of the call.
///     watch: limits the waits.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct AsyncTimedChunks {
    body: Body,
    limits: Py<CallLimits>,
    watch: Watch,
    first_byte: Option<f64>,
    idle: Option<f64>,
    /// A chunk has arrived.
    begun: AtomicBool,
    /// The wait ends with the whole call.
    by_total: AtomicBool,
}

/// Source of the chunks.
enum Body {
    /// An asynchronous iterator.
    Chunks(Py<PyAny>),
    /// Functions that return an awaitable of the next bytes, which are empty at the end.  `first` replaces `read` until bytes
    /// came.
    Reads { read: Py<PyAny>, first: Option<Py<PyAny>> },
}

impl AsyncTimedChunks {
    fn limiting(body: Body, limits: Bound<'_, CallLimits>, watch: Watch) -> PyResult<Self> {
        let py = limits.py();
        Ok(Self {
            body,
            first_byte: limits.get().seconds(intern!(py, "first_byte"))?,
            idle: limits.get().seconds(intern!(py, "idle"))?,
            limits: limits.unbind(),
            watch,
            begun: AtomicBool::new(false),
            by_total: AtomicBool::new(false),
        })
    }

    /// Return the iterator that drives the next read.
    pub(crate) fn next<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, chunks) = (this.py(), this.get());
        let begun = || chunks.begun.load(Ordering::Relaxed);
        let read = match &chunks.body {
            Body::Chunks(chunks) => chunks.bind(py).call_method0(intern!(py, "__anext__"))?,
            Body::Reads { first: Some(first), .. } if !begun() => first.bind(py).call0()?,
            Body::Reads { read, .. } => read.bind(py).call0()?,
        };
        match &chunks.watch {
            Watch::Task(_) => awaited(read),
            Watch::Scope(scope) => awaited(scope.bind(py).call1((chunks.seconds(), read))?),
        }
    }

    /// Report the memory that a read needs.
    pub(crate) fn memory(&self, report: &mut Report<'_>) {
        memory::of(self, report);
        if let Watch::Task(watch) = &self.watch {
            watch.get().memory(report);
        }
    }

    /// Return the name of the limit of a read, and its seconds.
    fn limit(&self) -> (&'static str, Option<f64>) {
        if self.begun.load(Ordering::Relaxed) {
            ("idle", self.idle)
        } else {
            ("first_byte", self.first_byte)
        }
    }

    /// Return the seconds that the next wait may take.
    fn seconds(&self) -> Option<f64> {
        let (_, seconds) = self.limit();
        let (seconds, by_total) = self.limits.get().shorten(seconds);
        self.by_total.store(by_total, Ordering::Relaxed);
        seconds
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
                if let (false, Watch::Task(watch)) = (waited, &self.watch) {
                    watch.get().begin(py, self.seconds())?;
                }
                Ok(Outcome::Yielded(value))
            }
            Outcome::Returned(value) => {
                if waited {
                    self.over(py)?;
                }
                if matches!(self.body, Body::Reads { .. }) && value.len()? == 0 {
                    return Ok(Outcome::Raised(PyStopAsyncIteration::new_err(())));
                }
                // Only the reader writes this, so that a load is enough.
                if !self.begun.load(Ordering::Relaxed) {
                    self.begun.store(true, Ordering::Relaxed);
                }
                Ok(Outcome::Returned(value))
            }
            Outcome::Raised(error) if error.is_instance_of::<PyStopAsyncIteration>(py) => {
                self.over(py)?;
                Ok(Outcome::Raised(error))
            }
            Outcome::Raised(error) => self.failed(py, error).map(Outcome::Raised),
        }
    }

    /// Return the exception to raise where a read has raised this one.
    fn failed(&self, py: Python<'_>, error: PyErr) -> PyResult<PyErr> {
        let is_late = match &self.watch {
            Watch::Task(watch) => watch.get().has_cancelled(error.value(py))?,
            Watch::Scope(_) => false,
        };
        self.over(py)?;
        let limit = match self.limit() {
            _ if self.by_total.load(Ordering::Relaxed) => Some("total"),
            (limit, Some(_)) => Some(limit),
            (_, None) => None,
        };
        let failed = (error.into_value(py), limit, is_late);
        let error = self.limits.bind(py).call_method1(intern!(py, "failed"), failed)?;
        Ok(PyErr::from_value(error))
    }

    /// End the limit of a read that is given up.
    pub(crate) fn over(&self, py: Python<'_>) -> PyResult<()> {
        match &self.watch {
            Watch::Task(watch) => watch.get().over(py),
            Watch::Scope(_) => Ok(()),
        }
    }
}

#[pymethods]
impl AsyncTimedChunks {
    #[new]
    fn new(chunks: Py<PyAny>, limits: Bound<'_, CallLimits>, watch: Watch) -> PyResult<Self> {
        Self::limiting(Body::Chunks(chunks), limits, watch)
    }

    /// Return the chunks of a body that functions read.
    ///
    /// Args:
    ///     read: returns an awaitable of the next bytes, which are empty at the end.
    ///     limits: the limits of the call.
    ///     watch: limits the waits.
    ///     first: replaces `read` until the first bytes came.
    #[staticmethod]
    #[pyo3(signature = (read, limits, watch, first=None))]
    fn of_reads(
        read: Py<PyAny>,
        limits: Bound<'_, CallLimits>,
        watch: Watch,
        first: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        Self::limiting(Body::Reads { read, first }, limits, watch)
    }

    fn __aiter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __anext__(this: &Bound<'_, Self>) -> PyResult<TimedRead> {
        let read = Self::next(this)?.unbind();
        Ok(TimedRead { chunks: this.clone().unbind(), phase: TryLock::new(Phase::Fresh(read)) })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.body {
            Body::Chunks(chunks) => visit.call(chunks)?,
            Body::Reads { read, first } => {
                visit.call(read)?;
                visit.call(first)?;
            }
        }
        visit.call(&self.limits)?;
        self.watch.traverse(&visit)
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
