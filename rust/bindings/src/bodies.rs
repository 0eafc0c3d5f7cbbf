//! Whole bodies, on all cores: no Python object is touched while they are folded.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use deltafold::contract::{Delta, DeltaBatch as Batch, ErrorCode, Failure, Payload};
use deltafold::decoder::Decoder as Core;
use deltafold::detect::detect;
use deltafold::emit::Options;
use deltafold::fold::{FoldingOutput, MessageAssembler as Folded};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::assembler::MessageAssembler;
use crate::batch::DeltaBatch;
use crate::decoder::{Decoder, random_run_id};
use crate::errors;
use crate::signals::{self, PAUSE, SLICE};
use crate::text;

/// Folds whole response bodies, each as a stream of its own with the decoder's options.
///
/// The GIL is released; Ctrl-C ends all.  `decoder` itself is not fed; its run id is that of every message when `one_run`, else each gets
/// its own.  `threads` defaults to the number of cores.
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
    let options = decoder.get().options(py)?;
    let slices: Vec<&[u8]> = bodies.iter().map(PyBytesMethods::as_bytes).collect();
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.unwrap_or_else(cores).min(slices.len());
    let folded = py.detach(|| fold_all(&options, &slices, one_run, threads))?;
    let now = decoder.get().now(py)?;
    let folded = folded.into_iter().map(|folded| folded.unwrap_or_else(|| defect(&options)));
    Ok(folded.map(|(run_id, message)| MessageAssembler::folded(&run_id, now, message)).collect())
}

/// The outcome of a body on which deltafold itself failed: an error of this body alone, whatever the others say.
fn defect(options: &Options) -> (Arc<str>, Folded) {
    let run_id = random_run_id();
    let start = Payload::Start {
        model_id: options.model_id.as_deref().unwrap_or(""),
        request_id: options.request_id.as_deref().unwrap_or(&run_id),
    };
    let failure =
        Failure::new(ErrorCode::ProtocolError, "a defect of deltafold: please report this body");
    let mut message = Folded::default();
    for (seq, payload) in (1..).zip([start, Payload::Error(failure)]) {
        // Start and error are lawful in a new assembler.
        let _ = message.consume(&Delta { seq, payload, provider_raw: None });
    }
    (run_id, message)
}

/// Decodes a whole response body with the decoder's options, into one batch.
///
/// The GIL is released; Ctrl-C ends it.  `decoder` itself is not fed.
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

/// The dialects that a body may be of, from its first bytes: one, two that cannot be told apart, or none.
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

type Outcome = Option<(Arc<str>, Folded)>;

/// Bytes that each body counts beside its own, so that many small bodies are interrupted too.
const BODY_BYTES: usize = 1 << 10;

/// Every body's outcome in the order of the bodies; `None` where the core panicked.
///
/// An exception of a signal handler ends all of them.
fn fold_all(
    options: &Options,
    bodies: &[&[u8]],
    one_run: bool,
    threads: usize,
) -> PyResult<Vec<Outcome>> {
    if threads > 1 {
        return fold_on_threads(options, bodies, one_run, threads);
    }
    let mut outcomes = Vec::with_capacity(bodies.len());
    let mut since = 0;
    for body in bodies {
        since += body.len() + BODY_BYTES;
        if since > SLICE {
            since = 0;
            signals::look_detached()?;
        }
        outcomes.push(fold_one(options, body, one_run, signals::look_detached)?);
    }
    Ok(outcomes)
}

/// The calling thread looks at the signals, the others fold.
fn fold_on_threads(
    options: &Options,
    bodies: &[&[u8]],
    one_run: bool,
    threads: usize,
) -> PyResult<Vec<Outcome>> {
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
                    let folded = look().and_then(|()| fold_one(options, body, one_run, look));
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

/// The outcome of one body, `Err` where `look` ends it.
fn fold_one<E>(
    options: &Options,
    body: &[u8],
    one_run: bool,
    look: impl FnMut() -> Result<(), E>,
) -> Result<Outcome, E> {
    let fold = || {
        let mut options = options.clone();
        if !one_run {
            options.run_id = random_run_id();
        }
        let run_id = options.run_id.clone();
        let Some(mut decoder) = Core::new(options) else { return Ok(None) };
        let mut message = Folded::default();
        let mut sink = FoldingOutput::new(&mut message);
        signals::in_slices(body, |slice| decoder.feed(slice, &mut sink), look)?;
        decoder.close(&mut sink);
        // The decoder's deltas are lawful, and the assembler is new.
        let lawful = sink.finish().is_ok();
        Ok(Some((run_id, message)).filter(|_| lawful))
    };
    // A panic is caught so that it costs one body and no thread.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(fold)).unwrap_or(Ok(None))
}
