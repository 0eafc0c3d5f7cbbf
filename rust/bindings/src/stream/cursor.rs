//! `Cursor`: the position of the readers of one stream: decoder, assembler, timer and the deltas that were not taken yet.
//!
//! In: chunks, and batches that Python's half has folded.  Out: deltas, batches or texts, one step a read.
//!
//! A reader calls the step of its form without an argument.  The step returns a delta, batch or text that is left, or `OVER` after
//! the end; if it returns `None`, a read has begun.  The reader then passes chunks to the step until the result is not `None`.
//!
//! Laws: one reader at a time; a second one gets a `MisuseError`.  Deltas are folded before they are returned.  The forms share
//! one position.  The chunk with the terminal is not folded, because its error may repeat a secret: `take_last` returns its deltas.

use std::sync::atomic::{AtomicBool, Ordering};

use deltafold::contract::{DeltaBatch as CoreBatch, Payload};
use deltafold::fold::Status;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use super::pending::{Pending, PendingDeltas};
use super::timer::{StreamTimer, StreamTimes};
use crate::decode::decoder::{Decoder, Taken};
use crate::decode::fold;
use crate::delta::batch::{self, DeltaBatch};
use crate::message::assembler::MessageAssembler;
use crate::support::clock::Timestamp;
use crate::support::errors;
use crate::support::try_lock::TryLock;

/// Kind of value that a reader of a stream takes from each read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Each delta.
    Deltas,
    /// The deltas of a read together.
    Batches,
    /// The text of a read.
    Texts,
}

/// Result of a step after the end of the stream.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct Over;

/// Return the only object of its class.
pub(crate) fn over(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static OVER: PyOnceLock<Py<Over>> = PyOnceLock::new();
    Ok(OVER.get_or_try_init(py, || Py::new(py, Over))?.bind(py).clone().into_any())
}

/// Position of the readers of one stream.
///
/// Args:
///     dialect: the wire protocol.
///     options: the options of `Decoder`.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct Cursor {
    #[pyo3(get)]
    decoder: Py<Decoder>,
    #[pyo3(get)]
    assembler: Py<MessageAssembler>,
    timer: StreamTimer,
    pending: PendingDeltas,
    /// The deltas of the chunk with the terminal.
    last: TryLock<Option<(CoreBatch, Timestamp)>>,
    /// A read is in progress.
    reading: AtomicBool,
    /// The first read has begun.
    started: AtomicBool,
    /// The decoder has returned the terminal.
    finished: AtomicBool,
    ended: AtomicBool,
}

type Value<'py> = Option<Bound<'py, PyAny>>;

/// Argument of a step: a chunk, whatever its type, or nothing, which begins a read.
struct Read<'py>(Value<'py>);

impl Read<'_> {
    const NEXT: Self = Self(None);
}

impl<'py> FromPyObject<'_, 'py> for Read<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(Some(value.to_owned())))
    }
}

impl Cursor {
    /// Return what is left, or begin a read.
    fn begin<'py>(&self, py: Python<'py>, left: Value<'py>) -> PyResult<Value<'py>> {
        if left.is_some() {
            return Ok(left);
        }
        if self.finished.load(Ordering::Relaxed) {
            return over(py).map(Some);
        }
        if self.reading.swap(true, Ordering::Acquire) {
            let message = "this stream is already being read; it supports one reader at a time";
            return Err(errors::misuse(py, message));
        }
        // Only the reader writes this, so that a load is enough.
        if !self.started.load(Ordering::Relaxed) {
            self.started.store(true, Ordering::Relaxed);
            self.timer.start(py)?;
        }
        Ok(None)
    }

    /// Return what a read has brought: a value, the end, or nothing yet.
    fn outcome<'py>(&self, py: Python<'py>, value: Value<'py>) -> PyResult<Value<'py>> {
        let value = match value {
            None if self.finished.load(Ordering::Relaxed) => Some(over(py)?),
            value => value,
        };
        if value.is_some() {
            self.reading.store(false, Ordering::Release);
        }
        Ok(value)
    }

    fn step<'py>(&self, py: Python<'py>, form: Form, read: Value<'py>) -> PyResult<Value<'py>> {
        let Some(read) = read else {
            let left = self.left(py, form)?;
            return self.begin(py, left);
        };
        if let Ok(batch) = read.cast_exact::<DeltaBatch>() {
            let DeltaBatch { core, now, .. } = batch.get();
            let value = if form == Form::Batches && !core.is_empty() {
                Some(batch.clone().into_any())
            } else {
                self.deliver(py, form, core.clone(), *now)?
            };
            return self.outcome(py, value);
        }
        let value = if self.finished.load(Ordering::Relaxed) {
            None
        } else {
            self.absorb(py, form, &read)?
        };
        self.outcome(py, value)
    }

    /// Decode and fold a chunk.
    fn absorb<'py>(
        &self,
        py: Python<'py>,
        form: Form,
        chunk: &Bound<'py, PyAny>,
    ) -> PyResult<Value<'py>> {
        let (Taken { deltas: batch, finished }, now) = self.decoder.get().decode(py, chunk)?;
        if finished {
            *errors::lock(py, &self.last, "stream")? = Some((batch, now));
            self.finished.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        self.fold_batch(py, &batch, now)?;
        self.deliver(py, form, batch, now)
    }

    fn fold_batch(&self, py: Python<'_>, batch: &CoreBatch, now: Timestamp) -> PyResult<()> {
        let run_id = self.decoder.get().run();
        let folded = errors::guarded(py, self.assembler.get().state(), "assembler", |state| {
            state.receive_batch(run_id, now, batch)
        })?;
        folded.map_err(|violation| errors::contract_violation(py, &violation))?;
        self.note(py, batch.len())
    }

    /// Record the time of a read, and the number of its deltas.
    fn note(&self, py: Python<'_>, deltas: usize) -> PyResult<()> {
        let wants_text = self.timer.read(py, deltas)?;
        if wants_text && deltas > 0 {
            let has_text =
                errors::lock(py, self.assembler.get().state(), "assembler")?.core().has_text();
            if has_text {
                self.timer.text_came(py)?;
            }
        }
        Ok(())
    }

    /// Take the next value from the deltas that are left.
    fn left<'py>(&self, py: Python<'py>, form: Form) -> PyResult<Value<'py>> {
        if form == Form::Batches {
            let Some((rest, now)) = self.pending.take_rest(py)? else { return Ok(None) };
            let batch = DeltaBatch::new(rest, self.decoder.get().run_id_text(py), now);
            return Ok(Some(Bound::new(py, batch)?.into_any()));
        }
        while let Some((pending, position)) = self.pending.claim(py)? {
            if let Some(value) = self.value_of(py, form, &pending, position)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn value_of<'py>(
        &self,
        py: Python<'py>,
        form: Form,
        pending: &Pending,
        position: usize,
    ) -> PyResult<Value<'py>> {
        let Pending { batch, now, .. } = pending;
        if form == Form::Deltas {
            let run_id = self.decoder.get().run_id_text(py);
            return Ok(batch::delta(py, batch, &run_id, position, *now)?.map(Bound::into_any));
        }
        let text = match batch.get(position).map(|delta| delta.payload) {
            Some(Payload::Text { text, .. }) if !text.is_empty() => text,
            _ => return Ok(None),
        };
        Ok(Some(PyString::new(py, text).into_any()))
    }

    /// Turn the deltas of a read, which were folded, into the next value of a form.
    fn deliver<'py>(
        &self,
        py: Python<'py>,
        form: Form,
        batch: CoreBatch,
        now: Timestamp,
    ) -> PyResult<Value<'py>> {
        if batch.is_empty() {
            return Ok(None);
        }
        match form {
            Form::Batches => {
                let batch = DeltaBatch::new(batch, self.decoder.get().run_id_text(py), now);
                Ok(Some(Bound::new(py, batch)?.into_any()))
            }
            Form::Texts => {
                let text = batch.text();
                Ok((!text.is_empty()).then(|| PyString::new(py, &text).into_any()))
            }
            Form::Deltas => {
                let pending = Pending::after_first(batch, now);
                let value = self.value_of(py, form, &pending, 0)?;
                if pending.batch.len() > 1 {
                    self.pending.keep(py, pending)?;
                }
                Ok(value)
            }
        }
    }
}

#[pymethods]
impl Cursor {
    #[new]
    fn new(dialect: &Bound<'_, PyAny>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let (decoder, assembler) = fold::decoder_and_assembler(dialect, Some(options))?;
        Ok(Self {
            decoder,
            assembler,
            timer: StreamTimer::new(None),
            pending: PendingDeltas::new(),
            last: TryLock::new(None),
            reading: AtomicBool::new(false),
            started: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        })
    }

    /// True during a read.
    #[getter]
    fn reading(&self) -> bool {
        self.reading.load(Ordering::Relaxed)
    }

    /// True after the beginning of the first read.
    #[getter]
    fn started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// True after the end of the stream.
    #[getter]
    fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// True if the stream ended without an error and without a warning.
    #[getter]
    fn went_well(&self, py: Python<'_>) -> PyResult<bool> {
        let state = errors::lock(py, self.assembler.get().state(), "assembler")?;
        let core = state.core();
        Ok(core.status() == Status::Done && core.warnings().is_none())
    }

    /// Return the next delta.
    #[pyo3(signature = (read=Read::NEXT, /))]
    fn deltas<'py>(&self, py: Python<'py>, read: Read<'py>) -> PyResult<Value<'py>> {
        self.step(py, Form::Deltas, read.0)
    }

    /// Return the deltas of a read.
    #[pyo3(signature = (read=Read::NEXT, /))]
    fn batches<'py>(&self, py: Python<'py>, read: Read<'py>) -> PyResult<Value<'py>> {
        self.step(py, Form::Batches, read.0)
    }

    /// Return the text of a read.
    #[pyo3(signature = (read=Read::NEXT, /))]
    fn texts<'py>(&self, py: Python<'py>, read: Read<'py>) -> PyResult<Value<'py>> {
        self.step(py, Form::Texts, read.0)
    }

    /// Fold a read, and return nothing of it.
    #[pyo3(signature = (read=Read::NEXT, /))]
    fn fold<'py>(&self, py: Python<'py>, read: Read<'py>) -> PyResult<Value<'py>> {
        let Some(read) = read.0 else { return self.begin(py, None) };
        if !self.finished.load(Ordering::Relaxed) && !read.is_exact_instance_of::<DeltaBatch>() {
            let taken = self.decoder.get().take_into(py, self.assembler.get(), &read)?;
            self.note(py, taken.deltas)?;
            if taken.finished {
                self.finished.store(true, Ordering::Relaxed);
            }
        }
        self.outcome(py, None)
    }

    /// Return the deltas of the chunk with the terminal, which were not folded, once.
    fn take_last(&self, py: Python<'_>) -> PyResult<Option<DeltaBatch>> {
        let last = errors::lock(py, &self.last, "stream")?.take();
        Ok(last.map(|(batch, now)| DeltaBatch::new(batch, self.decoder.get().run_id_text(py), now)))
    }

    /// Fold the deltas of a read.
    fn receive(&self, py: Python<'_>, batch: &Bound<'_, DeltaBatch>) -> PyResult<()> {
        let DeltaBatch { core, now, .. } = batch.get();
        self.fold_batch(py, core, *now)
    }

    /// Leave a read before it has brought a value.
    fn leave(&self) {
        self.reading.store(false, Ordering::Release);
    }

    /// End the stream.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.finished.store(true, Ordering::Relaxed);
        self.ended.store(true, Ordering::Relaxed);
        self.timer.end(py)
    }

    /// Drop the deltas that were not taken.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        self.pending.clear(py)
    }

    /// Return the times so far.
    fn times(&self, py: Python<'_>) -> PyResult<StreamTimes> {
        self.timer.times(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.decoder)?;
        visit.call(&self.assembler)
    }
}
