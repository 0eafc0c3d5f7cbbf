//! Whole response bodies: folding on all cores, decoding into one batch, detection of the dialect.
//!
//! In: a decoder with its options, and bytes.  Out: assemblers, a batch, dialect names.
//!
//! Law: no Python object is used while bodies are folded or decoded, because the GIL is released.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use deltafold::contract::{Delta, DeltaBatch as Batch, ErrorCode, Failure, Output, Payload};
use deltafold::decoder::{Decoder as Core, Options};
use deltafold::detect::{self, detect};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::decode::decoder::Decoder;
use crate::decode::options::{name_dialect, random_run_id, undecidable};
use crate::delta::batch::DeltaBatch;
use crate::message::assembler::MessageAssembler;
use crate::message::fold_state::FoldState;
use crate::support::clock::Timestamp;
use crate::support::errors;
use crate::support::parallel::{self, Look, Results, Stopped};
use crate::support::signals::{self, SLICE};
use crate::support::text;

/// Fold whole response bodies.  Each body is a separate stream with the options of `decoder`.
///
/// The GIL is released, and Ctrl-C ends the whole call.  `decoder` itself is not fed.  With `one_run` all messages have the
/// run id of `decoder`; otherwise each gets a random one.  `threads` defaults to the number of cores.
///
/// Raises:
///     ValueError: `threads` is 0.
///     UnknownDialectError: the decoder has no dialect, and a body does not tell its own.
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
    let slices: Vec<&[u8]> = bodies.iter().map(PyBytesMethods::as_bytes).collect();
    let threads = parallel::thread_count(threads, slices.len())?;
    let (options, now) = (decoder.get().options(py)?, decoder.get().now(py)?);
    let size = |at: usize| slices.get(at).map_or(0, |body| body.len());
    let folded = Results::of(slices.len());
    let unknown = Mutex::new(BTreeMap::new());
    let fold = |at: usize, look: Look<'_>| {
        let mut options = options.clone();
        if !one_run {
            options.stream.run_id = random_run_id();
        }
        let body = slices.get(at).copied().unwrap_or_default();
        if let Err(candidates) = name_dialect(&mut options, body) {
            unknown.lock().unwrap_or_else(PoisonError::into_inner).insert(at, candidates);
            return Ok(());
        }
        folded.keep(at, fold_one(options, now, &[body], look, &mut |_, _| {})?);
        Ok(())
    };
    py.detach(|| parallel::work_on(slices.len(), threads, &size, &fold))?;
    let unknown = unknown.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, candidates)) = unknown.first_key_value() {
        let name = if bodies.len() == 1 { "the body" } else { &format!("bodies[{at}]") };
        return Err(undecidable(py, name, candidates));
    }
    let states = folded.in_order().map(|state| state.unwrap_or_else(|| defect(&options, now)));
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
    let mut options = decoder.get().options(py)?;
    let now = decoder.get().now(py)?;
    let body = body.as_bytes();
    name_dialect(&mut options, body)
        .map_err(|candidates| undecidable(py, "the body", &candidates))?;
    let decode = || -> PyResult<Option<Batch>> {
        let mut batch = Batch::default();
        let Some(mut decoder) = Core::new(options) else { return Ok(None) };
        feed_whole(&mut decoder, body, &mut batch, signals::look_detached)?;
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

/// Return whether a text is a line of a batch's result file, which may be cut.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn is_batch_line(text: &[u8]) -> bool {
    detect::is_batch_line(text)
}

/// Feed a whole body, a long one in slices between which `look` is called.
fn feed_whole<E>(
    decoder: &mut Core,
    body: &[u8],
    output: &mut dyn Output,
    look: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    if body.len() <= SLICE {
        decoder.feed_whole(body, output);
        return Ok(());
    }
    signals::in_slices(body, |slice| decoder.feed(slice, output), look)
}

/// Message of the error for a body on which deltafold failed.
pub(crate) const DEFECT: &str = "a defect of deltafold: please report this body";

/// Fold one body, which arrives in pieces; `None` if the core panicked.  A panic costs one body.
///
/// `arrived` gets the number of each piece after it was folded, and the state.
pub(crate) fn fold_one(
    options: Options,
    now: Timestamp,
    pieces: &[&[u8]],
    look: Look<'_>,
    arrived: &mut dyn FnMut(usize, &FoldState),
) -> Result<Option<FoldState>, Stopped> {
    let fold = || {
        let run_id = Arc::clone(&options.stream.run_id);
        let Some(mut decoder) = Core::new(options) else { return Ok(None) };
        let mut state = FoldState::new(Some(Arc::clone(&run_id)));
        let last = pieces.len().saturating_sub(1);
        for (number, piece) in pieces.iter().enumerate() {
            let folded = state.receive(
                &run_id,
                || now,
                1,
                |output| {
                    if let [whole] = pieces {
                        feed_whole(&mut decoder, whole, output, look)?;
                    } else {
                        signals::in_slices(piece, |slice| decoder.feed(slice, output), look)?;
                    }
                    if number == last {
                        decoder.close(output);
                    }
                    Ok(())
                },
            );
            // The decoder's deltas are lawful and the state is new, so a violation is a bug.
            let Ok((_, ended)) = folded else { return Ok(None) };
            ended?;
            arrived(number, &state);
        }
        Ok(Some(state))
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(fold)).unwrap_or(Ok(None))
}

/// Build the outcome of a body on which deltafold failed: an error message.  Other bodies are not affected.
fn defect(options: &Options, now: Timestamp) -> FoldState {
    let run_id = random_run_id();
    let start = Payload::Start {
        model_id: options.stream.model_id.as_deref().unwrap_or(""),
        request_id: options.stream.request_id.as_deref().unwrap_or(&run_id),
    };
    let failure = Failure::new(ErrorCode::ProtocolError, DEFECT);
    let mut state = FoldState::new(Some(Arc::clone(&run_id)));
    for (seq, payload) in (1..).zip([start, Payload::Error(failure)]) {
        // Start and error are lawful in a new state.
        let delta = Delta { seq, payload, provider_raw: None };
        let _ = state.receive_delta(&run_id, now, &delta);
    }
    state
}
