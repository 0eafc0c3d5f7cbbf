//! `Fold`: a decoder and an assembler in one object, so that a feed is one call.
//!
//! In: bytes, or a list of chunks.  Out: the message.  Both steps are those of `Decoder.feed_into`.

use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::decode::decoder::Decoder;
use crate::message::assembler::MessageAssembler;
use crate::message::fold_state::FoldState;

/// Number of chunks of a list between two checks for signals.
const CHUNKS_BETWEEN_SIGNALS: usize = 64;

/// Decoder and assembler in one object, for a caller that has the bytes.
///
/// Args:
///     dialect: the wire protocol of the bytes, one of `deltafold.dialect_names()`; None takes it from the first events.
///     options: the options of `Decoder`.
///
/// Raises:
///     UnknownDialectError: no dialect has this name.  Raised by a feed or `close()`: the body does not tell its dialect.
///
/// Example:
///     >>> fold = Fold("openai-chat")
///     >>> for chunk in chunks:
///     ...     fold.feed(chunk)
///     >>> fold.close()
///     >>> fold.message.text
#[pyclass(frozen, subclass, module = "deltafold._core")]
pub(crate) struct Fold {
    decoder: Py<Decoder>,
    assembler: Py<MessageAssembler>,
}

/// Build a decoder with the options of a mapping, and the assembler of its deltas.
pub(crate) fn decoder_and_assembler(
    dialect: &Bound<'_, PyAny>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<(Py<Decoder>, Py<MessageAssembler>)> {
    let decoder = Decoder::from_options(dialect, options)?;
    let state = FoldState::new(Some(Arc::clone(decoder.get().run())));
    let assembler = Py::new(dialect.py(), MessageAssembler::from_state(state))?;
    Ok((decoder, assembler))
}

/// Fold the chunks of a body into its message, in one call.  Chunks after the terminal are not looked at.
///
/// The result is that of a stream over the chunks.  They are a list or a tuple, so that nothing is waited for or closed.
///
/// Raises:
///     ModelError: the stream ended in an error; `partial_message` has the message so far.
///     UnknownDialectError: no dialect has this name.
#[pyfunction]
pub(crate) fn fold_chunks<'py>(
    chunks: &Bound<'py, PyAny>,
    dialect: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = chunks.py();
    let decoder = Decoder::from_options(dialect, Some(options))?;
    let decoder = decoder.get();
    let assembler = MessageAssembler::from_state(FoldState::new(Some(Arc::clone(decoder.run()))));
    let mut finished = false;
    for (count, chunk) in (1_usize..).zip(chunks.try_iter()?) {
        let chunk = chunk?;
        if count % CHUNKS_BETWEEN_SIGNALS == 0 {
            py.check_signals()?;
        }
        finished = decoder.take_into(py, &assembler, &chunk)?.finished;
        if finished {
            break;
        }
    }
    if !finished {
        decoder.take_end_into(py, &assembler)?;
    }
    assembler.build_final_message(py)
}

#[pymethods]
impl Fold {
    #[new]
    #[pyo3(signature = (dialect=None, **options))]
    fn new(
        py: Python<'_>,
        dialect: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let none = py.None().into_bound(py);
        let (decoder, assembler) = decoder_and_assembler(dialect.unwrap_or(&none), options)?;
        Ok(Self { decoder, assembler })
    }

    /// Fold the next bytes of the body, in any chunking, and return the number of completed deltas.
    ///
    /// Raises:
    ///     MisuseError: called after `close()`, or by two threads at once.
    #[pyo3(signature = (data, /))]
    fn feed(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.decoder.get().feed_into(py, self.assembler.bind(py), data)
    }

    /// Take the end of the body, and return the number of deltas that the end completed.
    fn close(&self, py: Python<'_>) -> PyResult<usize> {
        self.decoder.get().take_end_into(py, self.assembler.get())
    }

    /// Return the message so far; an empty message before the first delta.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.assembler.get().snapshot(py)
    }

    /// Final message.
    ///
    /// Raises:
    ///     ModelError: the stream ended in an error; `partial_message` has the message so far.
    ///     MisuseError: the stream has not ended yet.
    #[getter]
    fn message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.assembler.get().build_final_message(py)
    }

    /// Text of the answer so far.
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.assembler.get().text(py)
    }

    /// Token counts, None before the first ones.
    #[getter]
    fn usage<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.assembler.get().usage(py)
    }

    /// State of the stream: idle, started, done or error.
    #[getter]
    fn status(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.assembler.get().status(py)
    }

    /// Assembler of the message, with parts, tool calls and error.
    #[getter]
    fn assembler(&self, py: Python<'_>) -> Py<MessageAssembler> {
        self.assembler.clone_ref(py)
    }

    /// Visit the decoder, which holds the clock of the caller, and the assembler.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.decoder)?;
        visit.call(&self.assembler)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Fold of {}, {}>", self.decoder.get().dialect(), self.status(py)?))
    }
}
