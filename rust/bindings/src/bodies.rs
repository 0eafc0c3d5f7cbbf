//! Whole bodies, on all cores: no Python object is touched while they are folded.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use deltafold::assemble::{FoldInto, MessageAssembler as Folded};
use deltafold::batch::DeltaBatch as Batch;
use deltafold::decoder::Decoder as Core;
use deltafold::detect::detect;
use deltafold::finisher::Options;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::assembler::MessageAssembler;
use crate::batch::DeltaBatch;
use crate::decoder::{Decoder, random_run_id};
use crate::errors;
use crate::text;

/// Folds whole response bodies, each as a stream of its own with the decoder's options.
///
/// The GIL is released.  `decoder` itself is not fed; its run id is that of every message when `one_run`, else each gets
/// its own.  `threads` defaults to the number of cores.
///
/// Raises:
///     ValueError: `threads` is 0.
///     InternalError: a bug.
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
    let folded = py.detach(|| fold_all(&options, &slices, one_run, threads));
    let now = decoder.get().now(py)?;
    folded
        .into_iter()
        .map(|folded| {
            let (run_id, message) = folded.ok_or_else(|| errors::bug(py, "decoder"))?;
            Ok(MessageAssembler::folded(&run_id, now, message))
        })
        .collect()
}

/// Decodes a whole response body with the decoder's options, into one batch.
///
/// The GIL is released.  `decoder` itself is not fed.
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
    let decode = || {
        let mut batch = Batch::default();
        let mut decoder = Core::new(options)?;
        decoder.feed(body, &mut batch);
        decoder.close(&mut batch);
        Some(batch)
    };
    let decode = std::panic::AssertUnwindSafe(decode);
    let batch = py.detach(|| std::panic::catch_unwind(decode).ok().flatten());
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

/// Every body's outcome in the order of the bodies; `None` where the core panicked.
fn fold_all(options: &Options, bodies: &[&[u8]], one_run: bool, threads: usize) -> Vec<Outcome> {
    let work = || {
        // A panic is caught so that it costs one body and no thread.
        |body: &[u8]| {
            let fold = || fold_one(options, body, one_run);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(fold)).ok().flatten()
        }
    };
    if threads <= 1 {
        let fold = work();
        return bodies.iter().map(|body| fold(body)).collect();
    }
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::with_capacity(bodies.len()));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let fold = work();
                let mut mine = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(body) = bodies.get(at) else { break };
                    mine.push((at, fold(body)));
                }
                outcomes.lock().unwrap_or_else(PoisonError::into_inner).append(&mut mine);
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(at, _)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn fold_one(options: &Options, body: &[u8], one_run: bool) -> Outcome {
    let mut options = options.clone();
    if !one_run {
        options.run_id = random_run_id();
    }
    let run_id = options.run_id.clone();
    let mut decoder = Core::new(options)?;
    let mut message = Folded::default();
    let mut sink = FoldInto::new(&mut message);
    decoder.feed(body, &mut sink);
    decoder.close(&mut sink);
    // What the decoder puts out is lawful, and the assembler is new.
    sink.finish().ok()?;
    Some((run_id, message))
}
