//! `ChoicesEncoder`: writes the deltas of every answer of a response as one stream of another protocol.
//!
//! In: deltas and batches by the number of their answer.  Out: bytes, or one mapping an event.

use deltafold::contract::Output;
use deltafold::encode::{AnswersEncoder, TARGETS};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::delta::batch::DeltaBatch;
use crate::delta::message_delta::MessageDelta;
use crate::encode::encoder::{headers_dict, note_list, write};
use crate::encode::settings::{self, Choices};
use crate::support::errors;
use crate::support::try_lock::TryLock;

/// Encoder of one stream with several answers, for a client that asked for them (`n > 1`).
///
/// It takes what a decoder of all answers gives: `Decoder(dialect, choice="all")`.  Each answer is written under its number as
/// `Encoder` writes it alone.  The token counts, a failure and the end of the stream come with `close()`.
///
/// Args:
///     target: the protocol to write: `"openai-chat"`, `"gemini"` or `"gemini-array"`.
///     options: the options of `Encoder`.
///
/// Raises:
///     UnknownDialectError: no target has this name.
///     MisuseError: the target has one answer only; the message names those that have several.
///     TypeError, ValueError: an option is unknown or has a wrong value; the message names it.
///
/// Example:
///     >>> decoder = Decoder("openai-chat", choice="all")
///     >>> encoder = ChoicesEncoder("gemini")
///     >>> for chunk in chunks:
///     ...     send(encoder.feed(decoder.feed(chunk)))
///     >>> send(encoder.feed(decoder.close()) + encoder.close())
#[pyclass(frozen, generic, module = "deltafold._core")]
pub(crate) struct ChoicesEncoder {
    core: TryLock<AnswersEncoder>,
    target: &'static str,
    as_bytes: bool,
}

impl ChoicesEncoder {
    fn read<R>(&self, py: Python<'_>, f: impl FnOnce(&AnswersEncoder) -> R) -> PyResult<R> {
        Ok(f(&*errors::lock(py, &self.core, "encoder")?))
    }
}

#[pymethods]
impl ChoicesEncoder {
    #[new]
    #[pyo3(signature = (target, **options))]
    fn new(py: Python<'_>, target: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let row = settings::find(py, target)?;
        let Choices { settings, as_bytes } = settings::read(options)?;
        let Some(core) = AnswersEncoder::new(row, settings, !as_bytes) else {
            let able = TARGETS.iter().filter(|row| row.has_answers).map(|row| row.name);
            let able: Vec<&str> = able.collect();
            let message = format!(
                "target: {target} has one answer in a response; several are in {}",
                able.join(", ")
            );
            return Err(errors::misuse(py, &message));
        };
        Ok(Self { core: TryLock::new(core), target: row.name, as_bytes })
    }

    #[getter]
    fn target(&self) -> &'static str {
        self.target
    }

    /// HTTP status, None until the first delta that decides it: a failure before all content is an HTTP error.
    #[getter]
    fn status(&self, py: Python<'_>) -> PyResult<Option<u16>> {
        self.read(py, AnswersEncoder::status)
    }

    /// HTTP headers that the clients of the target need, None until `status` is decided.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let headers = self.read(py, AnswersEncoder::headers)?;
        headers.map(|headers| headers_dict(py, headers)).transpose()
    }

    /// Notes of the losses, as `{code, what, count}`: content that the target could not carry.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        note_list(py, &self.read(py, |core| core.notes().to_vec())?)
    }

    /// True after `close()`.
    #[getter]
    fn finished(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, AnswersEncoder::ended)
    }

    /// True if an answer failed: the stream ends in the target's error, or is an HTTP error.
    #[getter]
    fn failed(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, AnswersEncoder::failed)
    }

    /// Write a delta or a batch of each answer in `deltas`, by its number, and return the written bytes, or a list of mappings.
    ///
    /// Raises:
    ///     ContractError: a delta breaks the contract; it and all later ones of its answer are dropped.
    ///     MisuseError: called after `close()`, or with more answers than `Limits.choices`.
    ///     TypeError: a value is neither a MessageDelta nor a DeltaBatch.
    #[pyo3(signature = (deltas, /))]
    fn feed<'py>(
        &self,
        py: Python<'py>,
        deltas: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut answers = Vec::new();
        for (number, value) in deltas {
            let number: u64 = number.extract()?;
            if !value.is_instance_of::<DeltaBatch>() && !value.is_instance_of::<MessageDelta>() {
                let kind = value.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "feed takes a MessageDelta or a DeltaBatch of each answer, not {kind}"
                )));
            }
            answers.push((number, value));
        }
        let refused = |core: &AnswersEncoder| {
            errors::misuse(
                py,
                if core.ended() {
                    "feed after close(): the stream has ended"
                } else {
                    "feed: more answers than Limits.choices"
                },
            )
        };
        write(py, &self.core, self.as_bytes, |core| {
            for (number, value) in &answers {
                if let Ok(batch) = value.cast::<DeltaBatch>() {
                    let batch = batch.get();
                    core.set_created(batch.now.milliseconds());
                    let Some(mut answer) = core.answer(*number) else { return Err(refused(core)) };
                    batch.core.replay(&mut answer);
                } else if let Ok(delta) = value.cast::<MessageDelta>() {
                    let delta = delta.get();
                    core.set_created(delta.now().milliseconds());
                    let Some(mut answer) = core.answer(*number) else { return Err(refused(core)) };
                    answer.delta(&delta.as_core(py)?);
                }
            }
            Ok(())
        })
    }

    /// End the stream, and return the last bytes.  An answer that gave no terminal is a failure, and is written as one.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        write(py, &self.core, self.as_bytes, |core| {
            core.close();
            Ok(())
        })
    }

    /// Return bytes that keep the connection alive, to be sent between two other results; see `Encoder.keep_alive`.
    fn keep_alive<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        write(py, &self.core, self.as_bytes, |core| {
            core.keep_alive();
            Ok(())
        })
    }

    fn __repr__(&self) -> String {
        format!("<ChoicesEncoder to {}>", self.target)
    }
}
