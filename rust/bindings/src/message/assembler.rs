//! `MessageAssembler`: folds the deltas of one stream into a `Message`.
//!
//! In: deltas, batches, or bytes through a `Decoder`.  Out: the Python message, its parts, usage and error.
//!
//! Law: the state is shared out of its lock before a Python object is made from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use deltafold::fold::{MessageAssembler as Core, Status, Terminal};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use uuid::Uuid;

use crate::delta::batch::DeltaBatch;
use crate::delta::message_delta::MessageDelta;
use crate::message::fold_state::FoldState;
use crate::message::folded::{self, FoldedMessage};
use crate::message::partial_json::PartialJson;
use crate::message::snapshot::{self, ToolCallBuffer};
use crate::support::clock::Timestamp;
use crate::support::errors;
use crate::support::imports::{MAPPING, MAPPING_PROXY};
use crate::support::try_lock::TryLock;

/// Folds the deltas of one stream into a `Message`: `idle → started → done | error`.
///
/// Args:
///     run_id: the run of the message; deltas of other runs are refused.  Without it, the run of the first delta.
///
/// Raises:
///     MisuseError: a method was called while another thread is inside one.
///     InternalError: a bug; the assembler cannot be used any more.
///
/// Example:
///     >>> assembler = MessageAssembler()
///     >>> for seq, (kind, payload) in enumerate([
///     ...     ("start", {"modelId": "m", "requestId": "r"}),
///     ...     ("text", {"textDelta": "Hi"}),
///     ...     ("done", {"finishReason": "stop"}),
///     ... ], 1):
///     ...     assembler.consume(MessageDelta("run", seq, kind, payload))
///     >>> assembler.build_final_message().text
///     'Hi'
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct MessageAssembler {
    state: Arc<TryLock<FoldState>>,
    /// Readers of the calls' arguments that were requested, by generation and part.
    tool_args: TryLock<BTreeMap<(u64, usize), Py<PartialJson>>>,
    /// Chosen at the first snapshot after `start`, and again after a reset.
    message_id: TryLock<Option<Uuid>>,
    given_run_id: Option<Arc<str>>,
}

impl MessageAssembler {
    /// Build the assembler of a message that is folded or will be folded.  A reset keeps the run id.
    pub(crate) fn from_state(state: FoldState) -> Self {
        Self {
            given_run_id: state.run_id().cloned(),
            state: Arc::new(TryLock::new(state)),
            tool_args: TryLock::default(),
            message_id: TryLock::new(None),
        }
    }

    pub(crate) fn state(&self) -> &TryLock<FoldState> {
        &self.state
    }

    fn read<R>(&self, py: Python<'_>, f: impl FnOnce(&FoldState) -> R) -> PyResult<R> {
        Ok(f(&*errors::lock(py, &self.state, "assembler")?))
    }

    /// Return the state so far, and the time of its first delta.
    pub(crate) fn shared(&self, py: Python<'_>) -> PyResult<(Arc<Core>, Option<Timestamp>)> {
        self.read(py, |state| (Arc::clone(state.core()), state.began()))
    }

    fn message_id(&self, py: Python<'_>, status: Status) -> PyResult<Uuid> {
        if status == Status::Idle {
            return Ok(Uuid::new_v4());
        }
        let mut id = errors::lock(py, &self.message_id, "assembler")?;
        Ok(*id.get_or_insert_with(Uuid::new_v4))
    }

    /// Return the state so far for a message, which shares it.
    fn folded(&self, py: Python<'_>) -> PyResult<(Arc<Core>, FoldedMessage)> {
        let (core, run_id, began) = self
            .read(py, |state| (Arc::clone(state.core()), state.run_id().cloned(), state.began()))?;
        let id = self.message_id(py, core.status())?;
        let folded = FoldedMessage::new(&core, run_id, began.unwrap_or_else(Timestamp::now), id);
        Ok((core, folded))
    }

    fn model_error<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (core, folded) = self.folded(py)?;
        let Some(Terminal::Error(failure)) = core.terminal() else {
            return Ok(None);
        };
        let partial = folded.into_message(py)?;
        errors::model_error(py, failure, core.warnings(), Some(partial)).map(Some)
    }
}

#[pymethods]
impl MessageAssembler {
    #[new]
    #[pyo3(signature = (run_id=None))]
    fn new(run_id: Option<&str>) -> Self {
        Self::from_state(FoldState::new(run_id.map(Into::into)))
    }

    /// Id of the run, `None` until it is known.
    #[getter]
    fn run_id(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.read(py, |state| state.run_id().map(|run_id| run_id.as_ref().to_owned()))
    }

    /// State of the stream: `idle`, `started`, `done` or `error`.
    #[getter]
    pub(crate) fn status(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.read(py, |state| state.core().status().as_str())
    }

    /// Sequence number of the last delta; 0 before the first.
    #[getter]
    fn last_seq(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |state| state.core().last_seq())
    }

    /// Parts so far, as copies.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let core = self.read(py, |state| Arc::clone(state.core()))?;
        snapshot::parts(py, core.parts(), None).map(Bound::into_any)
    }

    /// Tool calls so far, by id.
    #[getter]
    fn tool_calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let core = self.read(py, |state| Arc::clone(state.core()))?;
        let dict = PyDict::new(py);
        for (part_index, call) in core.tool_calls() {
            dict.set_item(&*call.id, Bound::new(py, ToolCallBuffer::new(part_index, call))?)?;
        }
        MAPPING_PROXY.get(py)?.call1((dict,))
    }

    /// Return the reader of a tool call's arguments, which works while they are being written.
    ///
    /// Each call has one reader, which is created at the first request.  The reader reads new arguments whenever it is used,
    /// each byte once.  After `reset()` it keeps its value.  Arguments that are not JSON are shown as `{"input": text}`.
    /// Raises:
    ///     KeyError: no call has this id.
    #[pyo3(signature = (tool_call_id, /))]
    fn tool_args(&self, py: Python<'_>, tool_call_id: &str) -> PyResult<Py<PartialJson>> {
        let place = self.read(py, |state| {
            let mut calls = state.core().tool_calls();
            let found = calls.find(|(_, call)| *call.id == *tool_call_id);
            found.map(|(part, _)| (state.generation(), part))
        })?;
        let Some((generation, part)) = place else {
            return Err(PyKeyError::new_err(tool_call_id.to_owned()));
        };
        let known = errors::lock(py, &self.tool_args, "assembler")?
            .get(&(generation, part))
            .map(|reader| reader.clone_ref(py));
        if let Some(known) = known {
            return Ok(known);
        }
        let made = PartialJson::following(Arc::clone(&self.state), generation, part);
        let made = Py::new(py, made)?;
        let kept = made.clone_ref(py);
        // If another thread made a reader first, that one is kept and ours is dropped outside the lock.
        let mut readers = errors::lock(py, &self.tool_args, "assembler")?;
        Ok(readers.entry((generation, part)).or_insert(kept).clone_ref(py))
    }

    /// Model of the answer: the one that the response names, after the end the one that finished it.  `None` if unknown.
    #[getter]
    fn model_id(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let named = self.read(py, |state| state.core().metadata().model_id.to_string())?;
        Ok(Some(named).filter(|named| !named.is_empty()))
    }

    /// Token counts, `None` before the first ones.
    #[getter]
    pub(crate) fn usage<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let metadata = self.read(py, |state| Arc::clone(state.core().metadata()))?;
        folded::usage(py, &metadata)
    }

    /// Failure of a stream that ended in `error`, with the partial message; `None` otherwise.
    #[getter(error)]
    fn failed_with<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.model_error(py)
    }

    /// Visible text so far.
    #[getter]
    pub(crate) fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let core = self.read(py, |state| Arc::clone(state.core()))?;
        Ok(folded::joined_text(py, core.parts(), false))
    }

    /// Return a new reader of the JSON in the answer, which works while the answer is being written.
    ///
    /// The JSON is the visible text without refusals, also inside a Markdown fence, or with `tool_name` the arguments of the
    /// first call of that tool.  The reader reads new text whenever it is used, each byte once.  After `reset()` it keeps its
    /// value.
    #[pyo3(signature = (tool_name=None))]
    fn follow_json(&self, py: Python<'_>, tool_name: Option<String>) -> PyResult<PartialJson> {
        let generation = self.read(py, FoldState::generation)?;
        Ok(PartialJson::of_answer(Arc::clone(&self.state), generation, tool_name))
    }

    /// Consume a delta, a batch, or a mapping in wire names.
    ///
    /// Raises:
    ///     ContractError: a delta breaks the contract or belongs to another run.  Earlier deltas of its batch were consumed.
    ///         This delta and later ones were not.
    #[pyo3(signature = (delta, /))]
    fn consume(&self, py: Python<'_>, delta: &Bound<'_, PyAny>) -> PyResult<()> {
        let outcome = if let Ok(batch) = delta.cast::<DeltaBatch>() {
            let batch = batch.get();
            let run_id = batch.run_id_str(py)?;
            errors::guarded(py, &self.state, "assembler", |state| {
                state.receive_batch(run_id, batch.now, &batch.core)
            })?
        } else {
            let made;
            let delta = if let Ok(delta) = delta.cast::<MessageDelta>() {
                delta
            } else if delta.is_instance(MAPPING.get(py)?)? {
                let class = py.get_type::<MessageDelta>();
                made = class.call_method1("from_dict", (delta,))?;
                made.cast::<MessageDelta>()?
            } else {
                let kind = delta.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "consume takes a MessageDelta, a DeltaBatch or a mapping, not {kind}"
                )));
            };
            let delta = delta.get();
            let run_id = delta.run_id_str(py)?;
            let core = delta.as_core(py)?;
            errors::guarded(py, &self.state, "assembler", |state| {
                state.receive_delta(run_id, delta.now(), &core)
            })?
        };
        outcome.map_err(|violation| errors::contract_violation(py, &violation))
    }

    /// Return the message so far; in `idle` an empty assistant message.
    pub(crate) fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.folded(py)?.1.into_message(py)
    }

    /// Return the message after `done`.
    ///
    /// Raises:
    ///     ModelError: the stream ended in `error`; `.partial_message` holds the message so far.
    ///     MisuseError: the stream has not ended.
    pub(crate) fn build_final_message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (core, folded) = self.folded(py)?;
        match core.status() {
            Status::Done => folded.into_message(py),
            Status::Error => match self.model_error(py)? {
                Some(error) => Err(PyErr::from_value(error)),
                None => Err(errors::misuse(py, "the assembler was reset meanwhile")),
            },
            Status::Idle | Status::Started => {
                let status = core.status().as_str();
                let message = format!(
                    "no final message while the stream is {status}; snapshot() shows what came so far"
                );
                Err(errors::misuse(py, &message))
            }
        }
    }

    /// Return to `idle`.  A run id from the constructor is kept.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let old = {
            let mut state = errors::lock(py, &self.state, "assembler")?;
            let fresh = state.successor(self.given_run_id.clone());
            std::mem::replace(&mut *state, fresh)
        };
        drop(old);
        let old = std::mem::take(&mut *errors::lock(py, &self.tool_args, "assembler")?);
        drop(old);
        errors::lock(py, &self.message_id, "assembler")?.take();
        Ok(())
    }

    /// Return the failure of a stream that ended in `error`; `None` otherwise.
    #[pyo3(name = "get_error")]
    fn failure<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.model_error(py)
    }

    /// Visit the readers of arguments, because they share containers with the caller.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.tool_args.try_lock() {
            Ok(readers) => readers.values().try_for_each(|reader| visit.call(reader)),
            Err(_) => Ok(()),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |state| {
            let parts: &[_] = state.core().parts();
            format!(
                "<MessageAssembler {}, {} parts, last seq {}>",
                state.core().status().as_str(),
                parts.len(),
                state.core().last_seq()
            )
        })
    }
}
