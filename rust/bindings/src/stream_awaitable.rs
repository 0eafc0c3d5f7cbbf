//! `StreamAwaitable`: one step of an asynchronous stream, without a coroutine of Python.
//!
//! In: the awaitable of the source's next chunk, or a coroutine of the Python half for rare events.  Out: the next value of a
//! stream.  The Python half has the methods that [`crate::stream_reader`] names, as coroutine functions.
//!
//! Laws: what the source yields to the event loop is passed on unchanged, and so is what the event loop throws.  A step that is
//! closed before its end cancels the stream; one that is dropped only ends its read.

use pyo3::exceptions::{PyRuntimeError, PyStopAsyncIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;

use crate::awaiting::{self, Outcome, awaited, resumed, returning, thrown_into};
use crate::batch::DeltaBatch;
use crate::errors;
use crate::stream_reader::{Form, StreamReader};
use crate::timed_chunks::AsyncTimedChunks;
use crate::try_lock::TryLock;

/// Reason for which a step waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// `_begin`: the iterator of the source's chunks.
    Opening,
    /// The next chunk of the source.
    Chunk,
    /// `_received` or `_failed`: a batch that the Python half has folded.
    Handling,
    /// `_finish`: nothing.
    Finishing,
}

enum Phase {
    Fresh,
    Waiting(Wait, Waiting),
    Over,
}

/// Awaitable that a step keeps while the event loop waits for it.
struct Waiting {
    awaitable: Py<PyAny>,
    /// The chunks whose limits apply to this read.
    timed: Option<Py<AsyncTimedChunks>>,
}

impl Waiting {
    fn into_bound(self, py: Python<'_>) -> Awaited<'_> {
        let timed = self.timed.map(|chunks| chunks.into_bound(py));
        Awaited { awaitable: self.awaitable.into_bound(py), timed, waited: true }
    }

    /// End the limit of a read that is given up.
    fn over(&self, py: Python<'_>) -> PyResult<()> {
        self.timed.as_ref().map_or(Ok(()), |chunks| chunks.bind(py).get().over(py))
    }
}

/// Awaitable that a step drives now.
struct Awaited<'py> {
    awaitable: Bound<'py, PyAny>,
    timed: Option<Bound<'py, AsyncTimedChunks>>,
    waited: bool,
}

impl<'py> Awaited<'py> {
    /// Resume with the event loop's answer, or with its exception.
    fn advance(&self, input: PyResult<&Bound<'py, PyAny>>) -> Outcome<'py> {
        match &self.timed {
            Some(chunks) => chunks.get().advance(&self.awaitable, self.waited, input),
            None => match input {
                Ok(value) => resumed(&self.awaitable, value),
                Err(error) => thrown_into(&self.awaitable, error),
            },
        }
    }

    fn unbind(self) -> Waiting {
        Waiting { awaitable: self.awaitable.unbind(), timed: self.timed.map(Bound::unbind) }
    }
}

/// Next action of a step.
enum Next<'py> {
    Wait(Wait, Awaited<'py>),
    Value(Bound<'py, PyAny>),
    End,
}

impl<'py> Next<'py> {
    /// Wait for the result of a coroutine function of the Python half.
    fn wait(wait: Wait, awaitable: Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(Self::Wait(wait, Awaited { awaitable: awaited(awaitable)?, timed: None, waited: false }))
    }
}

/// One step of an asynchronous stream, to be awaited once.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct StreamAwaitable {
    reader: Py<StreamReader>,
    stream: Py<PyAny>,
    form: Form,
    phase: TryLock<Phase>,
}

impl StreamAwaitable {
    fn new(reader: Py<StreamReader>, stream: Py<PyAny>, form: Form) -> Self {
        Self { reader, stream, form, phase: TryLock::new(Phase::Fresh) }
    }

    fn swap(&self, py: Python<'_>, phase: Phase) -> PyResult<Phase> {
        Ok(std::mem::replace(&mut *errors::lock(py, &self.phase, "stream")?, phase))
    }

    /// Run until something has to be waited for, and return what the event loop waits for.  The end is an exception: the value
    /// in a `StopIteration`, the end of the stream, or an error.
    fn drive<'py>(
        &self,
        py: Python<'py>,
        input: PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (mut wait, mut inner, mut outcome) = match self.swap(py, Phase::Over)? {
            Phase::Over => {
                return Err(PyRuntimeError::new_err("a step of a stream is awaited only once"));
            }
            Phase::Fresh => match input.and_then(|_| self.begin(py))? {
                Next::Wait(wait, inner) => {
                    let outcome = inner.advance(Ok(py.None().bind(py)));
                    (wait, inner, outcome)
                }
                next => return Err(self.done(py, next)),
            },
            Phase::Waiting(wait, inner) => {
                if inner.timed.is_some() {
                    self.reader.get().prefetch();
                }
                let inner = inner.into_bound(py);
                let outcome = inner.advance(input.as_ref().map_err(|error| error.clone_ref(py)));
                (wait, inner, outcome)
            }
        };
        loop {
            let next = match outcome {
                Outcome::Yielded(value) => {
                    self.swap(py, Phase::Waiting(wait, inner.unbind()))?;
                    return Ok(value);
                }
                Outcome::Returned(value) => {
                    let timed = if inner.waited { inner.timed.as_ref() } else { None };
                    let next = self.returned(py, wait, value);
                    if let Some(timed) = timed {
                        self.reader.get().note_memory(timed.get());
                    }
                    next
                }
                Outcome::Raised(error) => self.raised(py, wait, error),
            };
            match next {
                Ok(Next::Wait(next_wait, next_inner)) => {
                    (wait, inner) = (next_wait, next_inner);
                    outcome = inner.advance(Ok(py.None().bind(py)));
                }
                Ok(next) => return Err(self.done(py, next)),
                Err(error) => {
                    self.end_read(py);
                    return Err(error);
                }
            }
        }
    }

    fn end_read(&self, py: Python<'_>) {
        self.reader.bind(py).get().set_reading(false);
    }

    /// Begin the next read, or the end.
    fn begin<'py>(&self, py: Python<'py>) -> PyResult<Next<'py>> {
        let reader = self.reader.bind(py).get();
        if let Some(value) = reader.pending_value(py, self.form)? {
            return Ok(Next::Value(value));
        }
        self.read(py)
    }

    fn read<'py>(&self, py: Python<'py>) -> PyResult<Next<'py>> {
        let (reader, stream) = (self.reader.bind(py).get(), self.stream.bind(py));
        if reader.has_ended() {
            if !reader.let_go(py)? {
                return Ok(Next::End);
            }
            let finishing = stream.call_method0(intern!(py, "_finish"))?;
            if finishing.is_none() {
                return Ok(Next::End);
            }
            return Next::wait(Wait::Finishing, finishing);
        }
        // The read ends in `end_read`, after any number of waits.
        std::mem::forget(reader.begin(py)?);
        if let Some(chunks) = reader.chunks(py)? {
            return self.next_chunk(py, &chunks);
        }
        Next::wait(Wait::Opening, stream.call_method0(intern!(py, "_begin"))?)
    }

    fn next_chunk<'py>(&self, py: Python<'py>, chunks: &Bound<'py, PyAny>) -> PyResult<Next<'py>> {
        let timed = chunks.cast_exact::<AsyncTimedChunks>().ok();
        let next = match timed {
            Some(chunks) => AsyncTimedChunks::next(chunks),
            None => chunks.call_method0(intern!(py, "__anext__")).and_then(awaited),
        };
        match next {
            Ok(awaitable) => {
                let inner = Awaited { awaitable, timed: timed.cloned(), waited: false };
                Ok(Next::Wait(Wait::Chunk, inner))
            }
            Err(error) => self.raised(py, Wait::Chunk, error),
        }
    }

    fn returned<'py>(
        &self,
        py: Python<'py>,
        wait: Wait,
        value: Bound<'py, PyAny>,
    ) -> PyResult<Next<'py>> {
        let (this, stream) = (self.reader.bind(py), self.stream.bind(py));
        let reader = this.get();
        if wait == Wait::Chunk {
            StreamReader::note_chunk(this, &value)?;
        }
        if wait == Wait::Chunk
            && let Some(teed) = reader.tee(stream, &value)?
        {
            return Next::wait(Wait::Handling, teed);
        }
        let found = match wait {
            Wait::Finishing => return Ok(Next::End),
            Wait::Opening => {
                reader.set_chunks(py, Some(value.clone().unbind()))?;
                return self.next_chunk(py, &value);
            }
            Wait::Chunk if reader.is_diverted() => {
                let received = stream.call_method1(intern!(py, "_received"), (value,))?;
                return Next::wait(Wait::Handling, received);
            }
            Wait::Chunk => StreamReader::absorb(this, self.form, &value)?,
            Wait::Handling => {
                StreamReader::deliver_batch(this, self.form, value.cast::<DeltaBatch>()?)?
            }
        };
        self.end_read(py);
        found.map_or_else(|| self.read(py), |value| Ok(Next::Value(value)))
    }

    fn raised<'py>(&self, py: Python<'py>, wait: Wait, error: PyErr) -> PyResult<Next<'py>> {
        let stream = self.stream.bind(py);
        let handled = match wait {
            Wait::Finishing | Wait::Handling => return Err(error),
            Wait::Chunk if error.is_instance_of::<PyStopAsyncIteration>(py) => {
                stream.call_method1(intern!(py, "_received"), (py.None(),))?
            }
            Wait::Chunk | Wait::Opening => {
                stream.call_method1(intern!(py, "_failed"), (error.into_value(py),))?
            }
        };
        Next::wait(Wait::Handling, handled)
    }

    /// Return the exception that ends this step.
    fn done(&self, py: Python<'_>, next: Next<'_>) -> PyErr {
        match next {
            Next::Value(value) => returning(value),
            Next::Wait(..) | Next::End => self.ended(py).err().unwrap_or_else(|| {
                if self.form == Form::Folded {
                    returning(py.None().into_bound(py))
                } else {
                    PyStopAsyncIteration::new_err(())
                }
            }),
        }
    }

    /// Raise the error of a stream whose text was read to the end.
    fn ended(&self, py: Python<'_>) -> PyResult<()> {
        let reader = self.reader.bind(py);
        if self.form == Form::Texts && reader.get().has_failed(py)? {
            reader.call_method0(intern!(py, "final_message"))?;
        }
        Ok(())
    }
}

impl Drop for StreamAwaitable {
    fn drop(&mut self) {
        if let Phase::Waiting(_, waiting) = self.phase.get_mut() {
            self.reader.get().set_reading(false);
            if waiting.timed.is_some() {
                // The timer must not end a later wait of the task.
                drop(Python::try_attach(|py| waiting.over(py)));
            }
        }
    }
}

#[pymethods]
impl StreamAwaitable {
    /// Await the next delta.
    #[staticmethod]
    fn delta(reader: Py<StreamReader>, stream: Py<PyAny>) -> Self {
        Self::new(reader, stream, Form::Deltas)
    }

    /// Fold the stream to its end.
    #[staticmethod]
    fn read_to_end(reader: Py<StreamReader>, stream: Py<PyAny>) -> Self {
        Self::new(reader, stream, Form::Folded)
    }

    fn __await__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.drive(py, Ok(py.None().into_bound(py)))
    }

    /// Resume the step with the event loop's answer to what the step yielded.
    fn send<'py>(&self, py: Python<'py>, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.drive(py, Ok(value))
    }

    /// Raise an exception where the step waits.
    #[pyo3(signature = (kind, value=None, traceback=None, /))]
    fn throw<'py>(
        &self,
        py: Python<'py>,
        kind: Bound<'py, PyAny>,
        value: Option<Bound<'py, PyAny>>,
        traceback: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.drive(py, Err(awaiting::thrown(kind, value, traceback)?))
    }

    /// End the step before its end: nothing can be awaited any more.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Phase::Waiting(wait, inner) = self.swap(py, Phase::Over)? else { return Ok(()) };
        let closed = awaiting::closed(inner.awaitable.bind(py)).and(inner.over(py));
        let cancelled = if wait == Wait::Finishing {
            Ok(())
        } else {
            let reason = "the task that read was given up";
            self.reader.bind(py).call_method1(intern!(py, "cancel"), (reason,)).map(drop)
        };
        self.end_read(py);
        closed.and(cancelled)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.reader)?;
        visit.call(&self.stream)?;
        match self.phase.try_lock().as_deref() {
            Ok(Phase::Waiting(_, waiting)) => {
                visit.call(&waiting.timed)?;
                visit.call(&waiting.awaitable)
            }
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        let phase =
            self.phase.try_lock().ok().map(|mut phase| std::mem::replace(&mut *phase, Phase::Over));
        drop(phase);
    }
}

/// Awaitable of nothing, which may be awaited any number of times.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct Nothing;

#[pymethods]
impl Nothing {
    fn __await__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[expect(clippy::unused_self, reason = "the protocol of iterators")]
    fn __next__(&self) -> Option<()> {
        None
    }
}

/// Asynchronous iterator over a stream.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct AsyncStreamIterator {
    reader: Py<StreamReader>,
    stream: Py<PyAny>,
    form: Form,
}

#[pymethods]
impl AsyncStreamIterator {
    /// Iterate over the deltas.
    #[staticmethod]
    fn deltas(reader: Py<StreamReader>, stream: Py<PyAny>) -> Self {
        Self { reader, stream, form: Form::Deltas }
    }

    /// Iterate over the deltas of each read.
    #[staticmethod]
    fn batches(reader: Py<StreamReader>, stream: Py<PyAny>) -> Self {
        Self { reader, stream, form: Form::Batches }
    }

    /// Iterate over the text.
    #[staticmethod]
    fn texts(reader: Py<StreamReader>, stream: Py<PyAny>) -> Self {
        Self { reader, stream, form: Form::Texts }
    }

    fn __aiter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __anext__(&self, py: Python<'_>) -> StreamAwaitable {
        let (reader, stream) = (self.reader.clone_ref(py), self.stream.clone_ref(py));
        StreamAwaitable::new(reader, stream, self.form)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.reader)?;
        visit.call(&self.stream)
    }
}
