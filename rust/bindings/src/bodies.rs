//! Whole response bodies: folding on all cores, decoding into one batch, detection of the dialect.
//!
//! In: a decoder with its options, and bytes.  Out: assemblers, a batch, dialect names.
//!
//! Law: no Python object is used while bodies are folded or decoded, because the GIL is released.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use deltafold::contract::{Delta, DeltaBatch as Batch, ErrorCode, Failure, Payload};
use deltafold::decoder::{Decoder as Core, Options};
use deltafold::detect::detect;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::assembler::MessageAssembler;
use crate::batch::DeltaBatch;
use crate::clock::Timestamp;
use crate::decoder::Decoder;
use crate::decoder_options::random_run_id;
use crate::errors;
use crate::fold_state::FoldState;
use crate::signals::{self, PAUSE, SLICE};
use crate::text;

/// Fold whole response bodies.  Each body is a separate stream with the options of `decoder`.
///
/// The GIL is released, and Ctrl-C ends the whole call.  `decoder` itself is not fed.  With `one_run` all messages have the
/// run id of `decoder`; otherwise each gets a random one.  `threads` defaults to the number of cores.
///
/// Raises:
///     ValueError: `threads` is 0.
#[pyfunction]
#[pyo3(signature = (decoder, bodies, *, one_run, threads=None))]
#[expect(clippy::needless_pass_by_value, reason = "what Python hands over")]
pub(crate) fn fold_bodies(
    py: Python<'_>,
    decoder: &Bound<'_, Decoder>,
    bodies: Vec<Bound<'_, PyBytes>>,
    one_run: bool,
    threads: Option<usize>,
) -> PyResult<Vec<MessageAssembler>> {
    if threads == Some(0) {
        return Err(PyValueError::new_err("threads must be at least 1"));
    }
    let slices: Vec<&[u8]> = bodies.iter().map(PyBytesMethods::as_bytes).collect();
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.unwrap_or_else(cores).min(slices.len());
    let job = Job { options: decoder.get().options(py)?, one_run, now: decoder.get().now(py)? };
    let outcomes = py.detach(|| job.fold_all(&slices, threads))?;
    let states = outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| job.defect()));
    Ok(states.map(MessageAssembler::from_state).collect())
}

/// Decode a whole response body with the options of `decoder`, into one batch.
///
/// The GIL is released, and Ctrl-C ends the call.  `decoder` itself is not fed.
///
/// Raises:
///     InternalError: a bug.
#[pyfunction]
pub(crate) fn decode_body(
    py: Python<'_>,
    decoder: &Bound<'_, Decoder>,
    body: &Bound<'_, PyBytes>,
) -> PyResult<DeltaBatch> {
    let options = decoder.get().options(py)?;
    let now = decoder.get().now(py)?;
    let body = body.as_bytes();
    let decode = || -> PyResult<Option<Batch>> {
        let mut batch = Batch::default();
        let Some(mut decoder) = Core::new(options) else { return Ok(None) };
        let feed = |slice: &[u8]| decoder.feed(slice, &mut batch);
        signals::in_slices(body, feed, signals::look_detached)?;
        decoder.close(&mut batch);
        Ok(Some(batch))
    };
    let decode = std::panic::AssertUnwindSafe(decode);
    let batch = py.detach(|| std::panic::catch_unwind(decode).unwrap_or(Ok(None)))?;
    let batch = batch.ok_or_else(|| errors::bug(py, "decoder"))?;
    Ok(DeltaBatch::new(batch, decoder.get().run_id_text(py), now))
}

/// Return the dialects that fit the first bytes of a body: none, one, or two if the bytes fit both.
#[pyfunction]
#[pyo3(signature = (first_bytes, content_type=None, /))]
pub(crate) fn detect_dialects<'py>(
    py: Python<'py>,
    first_bytes: &Bound<'py, PyBytes>,
    content_type: Option<&Bound<'py, PyString>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let content_type = content_type.map(text::from_outside).transpose()?;
    PyTuple::new(py, detect(first_bytes.as_bytes(), content_type.as_deref()))
}

/// Folded state of a body; `None` if the core panicked.
type Outcome = Option<FoldState>;

/// Bytes added to the length of each body, so that signals are also checked between many small bodies.
const BODY_BYTES: usize = 1 << 10;

/// Whole bodies to fold, each as a separate stream.
struct Job {
    options: Options,
    /// All messages have the run id of the options; otherwise each gets its own.
    one_run: bool,
    now: Timestamp,
}

impl Job {
    /// Fold all bodies and return their outcomes in the order of the bodies.
    ///
    /// An exception of a signal handler ends all of them.
    fn fold_all(&self, bodies: &[&[u8]], threads: usize) -> PyResult<Vec<Outcome>> {
        if threads > 1 {
            return self.fold_on_threads(bodies, threads);
        }
        let mut outcomes = Vec::with_capacity(bodies.len());
        let mut since = 0;
        for body in bodies {
            since += body.len() + BODY_BYTES;
            if since > SLICE {
                since = 0;
                signals::look_detached()?;
            }
            outcomes.push(self.fold_one(body, signals::look_detached)?);
        }
        Ok(outcomes)
    }

    /// Fold on other threads, while the calling thread checks for signals.
    fn fold_on_threads(&self, bodies: &[&[u8]], threads: usize) -> PyResult<Vec<Outcome>> {
        let (next, stopped) = (&AtomicUsize::new(0), &AtomicBool::new(false));
        let outcomes: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::with_capacity(bodies.len()));
        let all = &outcomes;
        let look = || if stopped.load(Ordering::Relaxed) { Err(()) } else { Ok(()) };
        thread::scope(|scope| {
            let (running, ended) = mpsc::channel::<()>();
            for _ in 0..threads {
                let running = running.clone();
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(body) = bodies.get(at) else { break };
                        let folded = look().and_then(|()| self.fold_one(body, look));
                        let Ok(outcome) = folded else { break };
                        mine.push((at, outcome));
                    }
                    all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut mine);
                    drop(running);
                });
            }
            drop(running);
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                signals::look_detached().inspect_err(|_| stopped.store(true, Ordering::Relaxed))?;
            }
            Ok::<(), PyErr>(())
        })?;
        let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcomes.sort_by_key(|(at, _)| *at);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// Fold one body.  `Err` if `look` ends the work.
    fn fold_one<E>(&self, body: &[u8], look: impl FnMut() -> Result<(), E>) -> Result<Outcome, E> {
        let fold = || {
            let mut options = self.options.clone();
            if !self.one_run {
                options.stream.run_id = random_run_id();
            }
            let run_id = Arc::clone(&options.stream.run_id);
            let Some(mut decoder) = Core::new(options) else { return Ok(None) };
            let mut state = FoldState::new(Some(Arc::clone(&run_id)));
            let folded = state.receive(
                &run_id,
                || self.now,
                1,
                |output| {
                    signals::in_slices(body, |slice| decoder.feed(slice, output), look)?;
                    decoder.close(output);
                    Ok(())
                },
            );
            // The decoder's deltas are lawful and the state is new, so a violation is a bug.
            let Ok((_, ended)) = folded else { return Ok(None) };
            ended.map(|()| Some(state))
        };
        // A panic loses one body, and the thread continues.
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(fold)).unwrap_or(Ok(None))
    }

    /// Build the outcome of a body on which deltafold failed: an error message.  Other bodies are not affected.
    fn defect(&self) -> FoldState {
        let run_id = random_run_id();
        let start = Payload::Start {
            model_id: self.options.stream.model_id.as_deref().unwrap_or(""),
            request_id: self.options.stream.request_id.as_deref().unwrap_or(&run_id),
        };
        let message = "a defect of deltafold: please report this body";
        let failure = Failure::new(ErrorCode::ProtocolError, message);
        let mut state = FoldState::new(Some(Arc::clone(&run_id)));
        for (seq, payload) in (1..).zip([start, Payload::Error(failure)]) {
            // Start and error are lawful in a new state.
            let delta = Delta { seq, payload, provider_raw: None };
            let _ = state.receive_delta(&run_id, self.now, &delta);
        }
        state
    }
}
