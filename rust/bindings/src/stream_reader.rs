//! `StreamReader`: one stream behind one call per read: decoder, assembler, timer and the deltas that were not taken yet.
//!
//! In: chunks of a source, pulled here, and rare events from the Python half.  Out: deltas, batches, texts, the folded message.
//!
//! The Python half opens the source and handles rare events.  It is an object with these methods:
//! - `_begin()` opens the source, and returns the iterator of its chunks;
//! - `_received(chunk)` handles the end of the body (`None`), and each chunk of a diverted stream;
//! - `_teed(chunk, result)` handles a chunk for which the tee returned something that may have to be awaited;
//! - `_tee_failed(exception)` handles an exception of the tee;
//! - `_failed(exception)` handles an exception of one of these calls or of the source;
//! - `_show_end()` learns of the end, if it asked for it with `observe()`, and of each end that is a failure or has a warning;
//! - `_finish()` reads the rest of the body and releases the source.  It may return None instead of an awaitable.
//!
//! All but the first and the last two return a `DeltaBatch`, or raise.
//!
//! Laws: one reader at a time; a second one gets a `MisuseError`.  Deltas are folded before they are returned.  The ways of
//! reading share one position.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use deltafold::contract::{DeltaBatch as CoreBatch, DeltaKind, Payload};
use deltafold::fold::{Part, Status};
use deltafold::memory;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::assembler::MessageAssembler;
use crate::batch::{self, DeltaBatch};
use crate::clock::Timestamp;
use crate::decoder::{Decoder, Taken};
use crate::encoder::Encoder;
use crate::errors;
use crate::fold;
use crate::fold_state::FoldState;
use crate::line_watch::LineWatch;
use crate::pending::{Pending, PendingDeltas};
use crate::prefetch::Pieces;
use crate::recent_bytes::RecentBytes;
use crate::stream_timer::{StreamTimer, StreamTimes};
use crate::timed_chunks::AsyncTimedChunks;
use crate::try_lock::TryLock;

/// Kind of value that a reader of a stream takes from each read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each delta.
    Deltas,
    /// The deltas of a read together.
    Batches,
    /// The text of a read.
    Texts,
    /// Nothing: the deltas are only folded.
    Folded,
}

/// State of one stream.
///
/// Args:
///     dialect: the wire protocol.
///     error_mapper: maps failures of the transport, or None.
///     options: the options of `Decoder`.
///     call: facts about the call.
#[pyclass(frozen, subclass, module = "deltafold._core")]
pub(crate) struct StreamReader {
    #[pyo3(get)]
    decoder: Py<Decoder>,
    #[pyo3(get)]
    assembler: Py<MessageAssembler>,
    #[pyo3(get)]
    error_mapper: Py<PyAny>,
    #[pyo3(get)]
    options: Py<PyDict>,
    #[pyo3(get)]
    call: Py<PyAny>,
    timer: StreamTimer,
    /// Iterator of the source's chunks while the source is open.
    chunks: TryLock<Option<Py<PyAny>>>,
    /// Receives each chunk before it is decoded.
    tee: OnceLock<Py<PyAny>>,
    /// Is fed with the deltas by the caller.
    encoder: OnceLock<Py<Encoder>>,
    /// Number of changes of `chunks`.
    changes: AtomicUsize,
    pending: PendingDeltas,
    /// A read is in progress.
    busy: AtomicBool,
    /// The first read has begun.
    started: AtomicBool,
    ended: AtomicBool,
    /// The body continues after the terminal.
    has_rest: AtomicBool,
    /// The Python half handles each chunk.
    diverted: AtomicBool,
    /// The Python half learns of each end.
    observed: AtomicBool,
    /// The Python half releases the source at the end.
    closes: AtomicBool,
    /// The chunks have no response.
    attached: AtomicBool,
    /// The source is open and was not released.
    holding: AtomicBool,
    /// The first two chunks are compared.
    lines: AtomicBool,
    line_watch: TryLock<LineWatch>,
    /// The last chunks are kept.
    keeps: AtomicBool,
    recent: TryLock<RecentBytes>,
    /// Memory that the last chunk needed.
    pieces: TryLock<Pieces>,
}

/// A read in progress.
pub(crate) struct Reading<'a>(&'a AtomicBool);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl StreamReader {
    /// Begin a read.  It ends when the result is dropped.
    pub(crate) fn begin(&self, py: Python<'_>) -> PyResult<Reading<'_>> {
        if self.busy.swap(true, Ordering::Acquire) {
            let message = "this stream is already being read; it supports one reader at a time";
            return Err(errors::misuse(py, message));
        }
        // Only the reader writes this, so that a load is enough.
        if !self.started.load(Ordering::Relaxed) {
            self.started.store(true, Ordering::Relaxed);
            self.timer.start(py)?;
        }
        Ok(Reading(&self.busy))
    }

    /// Set whether the source is open.
    pub(crate) fn set_holding(&self, holding: bool) {
        self.holding.store(holding, Ordering::Relaxed);
    }

    /// Return whether the source was read and not released.
    pub(crate) fn is_holding(&self) -> bool {
        self.holding.load(Ordering::Relaxed) && self.started.load(Ordering::Relaxed)
    }

    /// Set whether a read is in progress.
    pub(crate) fn set_reading(&self, reading: bool) {
        self.busy.store(reading, Ordering::Release);
    }

    /// Ask the processor for the memory that the next chunk needs.
    pub(crate) fn prefetch(&self) {
        if let Ok(pieces) = self.pieces.try_lock() {
            pieces.fetch();
        }
    }

    /// Note the memory that the next chunk will need, which is that of this one.
    pub(crate) fn note_memory(&self, chunks: &AsyncTimedChunks) {
        let (decoder, assembler) = (self.decoder.get(), self.assembler.get());
        let (Ok(mut pieces), Ok(core), Ok(state)) =
            (self.pieces.try_lock(), decoder.core().try_lock(), assembler.state().try_lock())
        else {
            return;
        };
        pieces.replace(|report| {
            memory::of(self, report);
            chunks.memory(report);
            self.timer.memory(report);
            memory::of(decoder, report);
            memory::of(assembler, report);
            core.memory(report);
            state.core().memory(report);
            if let Some(encoder) = self.encoder.get() {
                encoder.get().memory(report);
            }
        });
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub(crate) fn is_diverted(&self) -> bool {
        self.diverted.load(Ordering::Relaxed)
    }

    /// Give a chunk to the tee.  Return what the Python half makes of a result other than `None`, or of an exception: a batch, or
    /// a coroutine of one.
    #[inline]
    pub(crate) fn tee<'py>(
        &self,
        stream: &Bound<'py, PyAny>,
        chunk: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = stream.py();
        let Some(tee) = self.tee.get() else { return Ok(None) };
        match tee.bind(py).call1((chunk,)) {
            Ok(result) if result.is_none() => Ok(None),
            Ok(result) => stream.call_method1(intern!(py, "_teed"), (chunk, result)).map(Some),
            Err(error) => {
                stream.call_method1(intern!(py, "_tee_failed"), (error.into_value(py),)).map(Some)
            }
        }
    }

    /// Return the iterator of the chunks; `None` before the source is open and after its release.
    pub(crate) fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(errors::lock(py, &self.chunks, "stream")?.as_ref().map(|chunks| chunks.bind(py).clone()))
    }

    /// Return a number that changes when the iterator of the chunks changes.
    pub(crate) fn changes(&self) -> usize {
        self.changes.load(Ordering::Relaxed)
    }

    /// Forget chunks at their end.  Return true if the Python half has to release a source.
    pub(crate) fn let_go(&self, py: Python<'_>) -> PyResult<bool> {
        if errors::lock(py, &self.chunks, "stream")?.is_none() {
            return Ok(false);
        }
        if self.closes.load(Ordering::Relaxed) {
            return Ok(true);
        }
        self.set_chunks(py, None)?;
        Ok(false)
    }

    pub(crate) fn set_chunks(&self, py: Python<'_>, chunks: Option<Py<PyAny>>) -> PyResult<()> {
        let before = std::mem::replace(&mut *errors::lock(py, &self.chunks, "stream")?, chunks);
        self.changes.fetch_add(1, Ordering::Relaxed);
        drop(before);
        Ok(())
    }

    /// Take the next value of a form from the pending deltas.
    pub(crate) fn pending_value<'py>(
        &self,
        py: Python<'py>,
        form: Form,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if form == Form::Folded {
            return Ok(None);
        }
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
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
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
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if batch.is_empty() {
            return Ok(None);
        }
        match form {
            Form::Folded => Ok(None),
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

    /// Decode and fold a chunk, and return the next value of a form; `None` if the chunk brought none.
    pub(crate) fn absorb<'py>(
        this: &Bound<'py, Self>,
        form: Form,
        chunk: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, reader) = (this.py(), this.get());
        let interrupted = |error: PyErr| {
            let told = this.call_method1(intern!(py, "_interrupted"), (error.value(py),));
            told.map_or_else(|other| other, |_| error)
        };
        let decoder = reader.decoder.get();
        if form == Form::Folded {
            let assembler = reader.assembler.get();
            let taken = decoder.take_into(py, assembler, chunk).map_err(interrupted)?;
            reader.note_read(py, taken.deltas)?;
            if taken.finished {
                Self::end(this, true)?;
            }
            return Ok(None);
        }
        let (Taken { deltas: batch, finished }, now) =
            decoder.decode(py, chunk).map_err(interrupted)?;
        if finished && batch.kind(batch.len().saturating_sub(1)) == Some(DeltaKind::Error) {
            // The error may repeat a secret, which the Python half removes before anything keeps it.
            let batch = DeltaBatch::new(batch, decoder.run_id_text(py), now);
            let safe = this.call_method1(intern!(py, "_without_secrets"), (batch,))?;
            return Self::absorb_last(this, form, safe.cast::<DeltaBatch>()?);
        }
        reader.fold(py, &batch, now)?;
        if finished {
            Self::end(this, true)?;
        }
        reader.deliver(py, form, batch, now)
    }

    /// Keep a chunk for the report of a failure, if that was asked for.  Compare the first two chunks that are not empty: both may be lines that
    /// have lost their ends.
    #[inline]
    pub(crate) fn note_chunk(this: &Bound<'_, Self>, chunk: &Bound<'_, PyAny>) -> PyResult<()> {
        if this.get().keeps.load(Ordering::Relaxed) {
            RecentBytes::note(&this.get().recent, chunk);
        }
        if this.get().lines.load(Ordering::Relaxed) {
            Self::compare_lines(this, chunk)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn compare_lines(this: &Bound<'_, Self>, chunk: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, reader) = (this.py(), this.get());
        let watch = std::mem::replace(
            &mut *errors::lock(py, &reader.line_watch, "stream")?,
            LineWatch::Over,
        );
        let watch = watch.compare(chunk)?;
        reader.lines.store(!watch.is_over(), Ordering::Relaxed);
        *errors::lock(py, &reader.line_watch, "stream")? = watch;
        Ok(())
    }

    fn absorb_last<'py>(
        this: &Bound<'py, Self>,
        form: Form,
        batch: &Bound<'py, DeltaBatch>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let DeltaBatch { core, now, .. } = batch.get();
        this.get().fold(this.py(), core, *now)?;
        Self::end(this, true)?;
        Self::deliver_batch(this, form, batch)
    }

    /// Return the next value of a form from a batch that the Python half has folded.
    pub(crate) fn deliver_batch<'py>(
        this: &Bound<'py, Self>,
        form: Form,
        batch: &Bound<'py, DeltaBatch>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let DeltaBatch { core, now, .. } = batch.get();
        if form == Form::Batches && !core.is_empty() {
            return Ok(Some(batch.clone().into_any()));
        }
        this.get().deliver(this.py(), form, core.clone(), *now)
    }

    fn fold(&self, py: Python<'_>, batch: &CoreBatch, now: Timestamp) -> PyResult<()> {
        let run_id = self.decoder.get().run();
        let folded = errors::guarded(py, self.assembler.get().state(), "assembler", |state| {
            state.receive_batch(run_id, now, batch)
        })?;
        folded.map_err(|violation| errors::contract_violation(py, &violation))?;
        self.note_read(py, batch.len())
    }

    fn note_read(&self, py: Python<'_>, deltas: usize) -> PyResult<()> {
        let wants_text = self.timer.read(py, deltas)?;
        if wants_text && deltas > 0 {
            let state = errors::lock(py, self.assembler.get().state(), "assembler")?;
            let has_text = has_text(&state);
            drop(state);
            if has_text {
                self.timer.text_came(py)?;
            }
        }
        Ok(())
    }

    fn end(this: &Bound<'_, Self>, has_rest: bool) -> PyResult<()> {
        let (py, reader) = (this.py(), this.get());
        reader.has_rest.store(has_rest, Ordering::Relaxed);
        reader.ended.store(true, Ordering::Relaxed);
        reader.timer.end(py)?;
        if reader.observed.load(Ordering::Relaxed) || !reader.went_well(py)? {
            this.call_method0(intern!(py, "_show_end"))?;
        }
        Ok(())
    }

    /// Return true if the stream ended in an error.
    pub(crate) fn has_failed(&self, py: Python<'_>) -> PyResult<bool> {
        let state = errors::lock(py, self.assembler.get().state(), "assembler")?;
        Ok(state.core().status() == Status::Error)
    }
}

fn has_text(state: &FoldState) -> bool {
    state
        .core()
        .parts()
        .iter()
        .any(|part| matches!(part, Part::Text(text) if !text.text.is_empty()))
}

#[pymethods]
impl StreamReader {
    #[new]
    #[pyo3(signature = (dialect, error_mapper, options, call))]
    fn new(
        py: Python<'_>,
        dialect: &Bound<'_, PyAny>,
        error_mapper: Py<PyAny>,
        options: Py<PyDict>,
        call: Py<PyAny>,
    ) -> PyResult<Self> {
        let (decoder, assembler) = fold::decoder_and_assembler(dialect, Some(options.bind(py)))?;
        Ok(Self {
            decoder,
            assembler,
            error_mapper,
            options,
            call,
            timer: StreamTimer::new(None),
            chunks: TryLock::new(None),
            tee: OnceLock::new(),
            encoder: OnceLock::new(),
            changes: AtomicUsize::new(0),
            pending: PendingDeltas::new(),
            busy: AtomicBool::new(false),
            started: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            has_rest: AtomicBool::new(false),
            diverted: AtomicBool::new(false),
            observed: AtomicBool::new(false),
            closes: AtomicBool::new(true),
            attached: AtomicBool::new(false),
            holding: AtomicBool::new(false),
            lines: AtomicBool::new(false),
            line_watch: TryLock::default(),
            keeps: AtomicBool::new(false),
            recent: TryLock::default(),
            pieces: TryLock::default(),
        })
    }

    /// True during a read; the Python half sets it while it reads the rest of the body.
    #[getter]
    fn busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_busy(&self, busy: bool) {
        self.set_reading(busy);
    }

    /// True if chunks without a response are being read, or were.
    #[getter]
    fn attached(&self) -> bool {
        self.attached.load(Ordering::Relaxed) && self.started()
    }

    /// True after the beginning of the first read.
    #[getter]
    fn started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// True after the end of the stream.
    #[getter]
    fn ended(&self) -> bool {
        self.has_ended()
    }

    /// True if the stream ended without an error and without a warning.
    #[getter]
    fn went_well(&self, py: Python<'_>) -> PyResult<bool> {
        let state = errors::lock(py, self.assembler.get().state(), "assembler")?;
        let core = state.core();
        Ok(core.status() == Status::Done && core.warnings().is_none())
    }

    /// True if the body continues after the terminal.
    #[getter]
    fn has_rest(&self) -> bool {
        self.has_rest.load(Ordering::Relaxed)
    }

    /// Let the Python half handle each chunk.
    fn divert(&self) {
        self.diverted.store(true, Ordering::Relaxed);
    }

    /// Give each chunk to a tee before it is decoded; a later tee is ignored.
    fn give_chunks(&self, tee: Py<PyAny>) {
        drop(self.tee.set(tee));
    }

    /// Fetch the memory of an encoder, which is fed with the deltas, with that of the stream; a later encoder is ignored.
    fn fetch_with(&self, encoder: Py<Encoder>) {
        drop(self.encoder.set(encoder));
    }

    /// Call `_show_end` at each end.
    fn observe(&self) {
        self.observed.store(true, Ordering::Relaxed);
    }

    /// Refuse the first two chunks if they are lines that have lost their ends.
    fn watch_lines(&self) {
        self.lines.store(true, Ordering::Relaxed);
    }

    /// Return the times so far.
    fn times(&self, py: Python<'_>) -> PyResult<StreamTimes> {
        self.timer.times(py)
    }

    /// Keep the last chunks of each read from now on, for `recent_chunks`.
    fn keep_recent(&self) {
        self.keeps.store(true, Ordering::Relaxed);
    }

    /// Return the number of bytes read, and the last chunks; of a long chunk only its end.
    fn recent_chunks<'py>(&self, py: Python<'py>) -> PyResult<(u64, Vec<Bound<'py, PyBytes>>)> {
        Ok(errors::lock(py, &self.recent, "stream")?.chunks(py))
    }

    /// Record a read that the Python half handled, and the number of its deltas.
    #[pyo3(name = "note_read")]
    fn py_note_read(&self, py: Python<'_>, deltas: usize) -> PyResult<()> {
        self.note_read(py, deltas)
    }

    /// End the stream.
    #[pyo3(name = "end")]
    fn py_end(this: &Bound<'_, Self>, has_rest: bool) -> PyResult<()> {
        Self::end(this, has_rest)
    }

    /// Read these chunks instead of opening a source.  `_finish` is called at their end if something has to be closed.
    #[pyo3(signature = (chunks, /, *, closes))]
    fn attach(&self, py: Python<'_>, chunks: Py<PyAny>, closes: bool) -> PyResult<()> {
        self.attached.store(true, Ordering::Relaxed);
        self.closes.store(closes, Ordering::Relaxed);
        self.set_chunks(py, Some(chunks))
    }

    /// Forget the source, which was released.
    fn detach(&self, py: Python<'_>) -> PyResult<()> {
        self.set_holding(false);
        self.set_chunks(py, None)
    }

    /// Drop the deltas that were not taken, and return whether the stream has ended.
    fn settle(&self, py: Python<'_>) -> PyResult<bool> {
        self.pending.clear(py)?;
        Ok(self.has_ended())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.decoder)?;
        visit.call(&self.assembler)?;
        visit.call(&self.error_mapper)?;
        visit.call(&self.options)?;
        visit.call(&self.call)?;
        if let Some(tee) = self.tee.get() {
            visit.call(tee)?;
        }
        if let Some(encoder) = self.encoder.get() {
            visit.call(encoder)?;
        }
        match self.chunks.try_lock() {
            Ok(chunks) => visit.call(&*chunks),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let chunks = self.chunks.try_lock().ok().and_then(|mut chunks| chunks.take());
        drop(chunks);
    }
}
