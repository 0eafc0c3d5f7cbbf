//! `MessageAssembler`: deltas → `Message`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use deltafold::contract::{ContractViolation, Delta, DeltaBatch as Batch, Logprobs, Usage};
use deltafold::fold::{FoldingOutput, MessageAssembler as Core, Part, Status, Terminal, ToolCall};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};
use uuid::Uuid;

use crate::batch::DeltaBatch;
use crate::clock::{self, Timestamp};
use crate::delta::MessageDelta;
use crate::errors;
use crate::json;
use crate::logprobs;
use crate::model::{self, CheckedClass, Fields, Model};
use crate::partial_json::{PartialJson, UnreadArguments};
use crate::snapshot::{self, ToolCallBuffer};
use crate::types::{self, MAPPING, MAPPING_PROXY, UUID};

static META: Model = Model::new("deltafold.messages", "META_BLUEPRINT");
static MESSAGE: Model = Model::new("deltafold.messages", "MESSAGE_BLUEPRINT");

static UUID_CLASS: PyOnceLock<CheckedClass> = PyOnceLock::new();

/// `uuid.SafeUUID.unknown`.
static SAFETY_UNKNOWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A fresh random id.  The constructor of Python's class spends more on checking it than a fold spends on a short message.
fn message_id(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let unknown = SAFETY_UNKNOWN.get_or_try_init(py, || {
        py.import("uuid")?.getattr("SafeUUID")?.getattr("unknown").map(Bound::unbind)
    })?;
    let class = UUID_CLASS.get_or_try_init(py, || CheckedClass::checked(UUID.get(py)?))?;
    let id = class.instance(py)?;
    let number = Uuid::new_v4().as_u128().into_pyobject(py)?;
    model::set(&id, intern!(py, "int"), &number)?;
    model::set(&id, intern!(py, "is_safe"), unknown.bind(py))?;
    Ok(id)
}

/// Folds the deltas of one stream into a `Message`: `idle → started → done | error`.
///
/// Args:
///     run_id: the run whose deltas are taken; that of the first delta when not given.
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
    fold: Arc<Mutex<Fold>>,
    /// Readers of the calls' arguments that were asked for, by generation and part.
    tool_args: Mutex<BTreeMap<(u64, usize), Py<PartialJson>>>,
    /// Made at the first look at the message that began, and again after a reset.
    message_id: Mutex<Option<Py<PyAny>>>,
    given_run_id: Option<Arc<str>>,
}

pub(crate) struct Fold {
    core: Core,
    run_id: Option<Arc<str>>,
    /// The timestamp of the first delta.
    began: Option<Timestamp>,
    /// How often it was reset.
    generation: u64,
}

impl Fold {
    fn new(run_id: Option<Arc<str>>, generation: u64) -> Self {
        Self { core: Core::default(), run_id, began: None, generation }
    }

    /// The arguments of a call from byte `from` on; nothing when the message was reset since.
    pub(crate) fn unread_arguments(
        &self,
        generation: u64,
        part: usize,
        from: usize,
    ) -> Option<UnreadArguments> {
        match self.core.parts().get(part) {
            Some(Part::ToolCall(call)) if generation == self.generation => Some(UnreadArguments {
                text: call.args.get(from..)?.to_owned(),
                input_format: call.input_format,
                ended: call.ended,
            }),
            _ => None,
        }
    }

    /// Refuses deltas of another run; takes the first one's run.
    pub(crate) fn enter(
        &mut self,
        run_id: &str,
        now: impl FnOnce() -> Timestamp,
        seq: u64,
    ) -> Result<(), ContractViolation> {
        match &self.run_id {
            Some(known) if known.as_ref() != run_id => Err(ContractViolation {
                seq,
                law: format!("the delta belongs to run {run_id:?}, this message to {known:?}"),
                field: Some("runId"),
            }),
            Some(_) | None => {
                if self.run_id.is_none() {
                    self.run_id = Some(run_id.into());
                }
                self.began.get_or_insert_with(now);
                Ok(())
            }
        }
    }

    pub(crate) fn core(&mut self) -> &mut Core {
        &mut self.core
    }

    fn take_batch(
        &mut self,
        run_id: &str,
        now: Timestamp,
        batch: &Batch,
    ) -> Result<(), ContractViolation> {
        if batch.is_empty() {
            return Ok(());
        }
        let known = self.known();
        let first = batch.get(0).map_or(0, |delta| delta.seq);
        let before = self.core.last_seq();
        self.enter(run_id, || now, first)?;
        let mut sink = FoldingOutput::new(&mut self.core);
        batch.replay(&mut sink);
        sink.finish().map(drop).inspect_err(|_| {
            if self.core.last_seq() == before {
                self.forget_all_but(known);
            }
        })
    }

    fn take(
        &mut self,
        run_id: &str,
        now: Timestamp,
        delta: &Delta<&str>,
    ) -> Result<(), ContractViolation> {
        let known = self.known();
        self.enter(run_id, || now, delta.seq)?;
        self.core.consume(delta).inspect_err(|_| self.forget_all_but(known))
    }

    /// Whether the run and the beginning are known.
    fn known(&self) -> (bool, bool) {
        (self.run_id.is_some(), self.began.is_some())
    }

    /// A refused delta changes nothing, the run it named included.
    fn forget_all_but(&mut self, (run_id, began): (bool, bool)) {
        self.run_id.take_if(|_| !run_id);
        self.began.take_if(|_| !began);
    }
}

/// What a snapshot copies out of the lock.
struct FoldView {
    parts: Vec<Part>,
    usage: Option<Usage<String>>,
    terminal: Option<Terminal>,
    warnings: Option<Box<str>>,
    details: Option<Box<str>>,
    logprobs: Option<Arc<Logprobs>>,
    status: Status,
    model_id: Box<str>,
    request_id: Box<str>,
    run_id: Option<Arc<str>>,
    began: Option<Timestamp>,
}

impl MessageAssembler {
    /// The assembler of a stream that was folded elsewhere.
    pub(crate) fn folded(run_id: &str, now: Timestamp, core: Core) -> Self {
        let run_id: Option<Arc<str>> = Some(run_id.into());
        let began = Some(now);
        Self::over(Fold { core, run_id: run_id.clone(), began, generation: 0 }, run_id)
    }

    /// The assembler of a run.
    pub(crate) fn from_run_id(run_id: &Arc<str>) -> Self {
        let run_id = Some(Arc::clone(run_id));
        Self::over(Fold::new(run_id.clone(), 0), run_id)
    }

    fn over(fold: Fold, given_run_id: Option<Arc<str>>) -> Self {
        Self {
            fold: Arc::new(Mutex::new(fold)),
            tool_args: Mutex::default(),
            message_id: Mutex::new(None),
            given_run_id,
        }
    }

    pub(crate) fn fold(&self) -> &Mutex<Fold> {
        &self.fold
    }

    fn read<R>(&self, py: Python<'_>, f: impl FnOnce(&Fold) -> R) -> PyResult<R> {
        Ok(f(&*errors::lock(py, &self.fold, "assembler")?))
    }

    fn view(&self, py: Python<'_>) -> PyResult<FoldView> {
        self.read(py, |fold| FoldView {
            parts: fold.core.parts().to_vec(),
            usage: fold.core.usage().map(|usage| usage.map(|text| (*text).to_owned())),
            terminal: fold.core.terminal().cloned(),
            warnings: fold.core.warnings().map(Into::into),
            details: fold.core.details().map(Into::into),
            logprobs: fold.core.logprobs().cloned(),
            status: fold.core.status(),
            model_id: fold.core.model_id().into(),
            request_id: fold.core.request_id().into(),
            run_id: fold.run_id.clone(),
            began: fold.began,
        })
    }

    fn message_id<'py>(&self, py: Python<'py>, status: Status) -> PyResult<Bound<'py, PyAny>> {
        if status != Status::Idle {
            let known = errors::lock(py, &self.message_id, "assembler")?
                .as_ref()
                .map(|id| id.clone_ref(py));
            if let Some(known) = known {
                return Ok(known.into_bound(py));
            }
        }
        let made = message_id(py)?;
        if status != Status::Idle {
            let kept = made.clone().unbind();
            let mut place = errors::lock(py, &self.message_id, "assembler")?;
            if place.is_none() {
                *place = Some(kept);
            }
        }
        Ok(made)
    }

    fn message<'py>(&self, py: Python<'py>, view: &FoldView) -> PyResult<Bound<'py, PyAny>> {
        let parts = snapshot::parts(py, &view.parts)?;
        let folded = PyDict::new(py);
        folded.set_item(intern!(py, "_folded_parts"), parts.to_tuple())?;
        let meta = META.make_with(
            py,
            |fields| Self::meta(py, fields, view),
            Some(PyDict::new(py)),
            Some(folded),
        )?;
        let began = view.began.unwrap_or_else(Timestamp::now);
        MESSAGE.make(py, |fields| {
            fields.set(intern!(py, "id"), self.message_id(py, view.status)?)?;
            fields.set(intern!(py, "run_id"), view.run_id.as_deref())?;
            fields.set(intern!(py, "parts"), parts)?;
            fields.set(intern!(py, "timestamp"), clock::to_datetime(py, began)?)?;
            fields.set(intern!(py, "meta"), meta)
        })
    }

    fn meta<'py>(py: Python<'py>, fields: &Fields<'py>, view: &FoldView) -> PyResult<()> {
        if let Some(usage) = &view.usage {
            fields.set(intern!(py, "usage"), types::usage(py, &usage.map(AsRef::as_ref))?)?;
        }
        for (name, id) in [
            (intern!(py, "response_id"), &view.request_id),
            (intern!(py, "model_id"), &view.model_id),
        ] {
            // An id that is empty is one that nobody knows.
            if !id.is_empty() {
                fields.set(name, &**id)?;
            }
        }
        match &view.terminal {
            Some(Terminal::Done { finish_reason, raw_finish_reason }) => {
                let reason = types::finish_reason(py, *finish_reason)?;
                fields.set(intern!(py, "finish_reason"), reason)?;
                fields.set(intern!(py, "raw_finish_reason"), raw_finish_reason.as_deref())?;
            }
            Some(Terminal::Error(_)) => fields.set(intern!(py, "is_api_error_message"), true)?,
            None => {}
        }
        if let Some(details) = &view.details {
            fields.set(intern!(py, "details"), json::to_python(py, details)?)?;
        }
        let warnings = match &view.warnings {
            Some(warnings) => json::to_python(py, warnings)?,
            None => PyList::empty(py).into_any(),
        };
        fields.set(intern!(py, "warnings"), warnings)?;
        fields.set(intern!(py, "approvals"), PyList::empty(py))?;
        if let Some(logprobs) = &view.logprobs {
            let logprobs = logprobs::Logprobs::new(Arc::clone(logprobs));
            fields.set(intern!(py, "logprobs"), Bound::new(py, logprobs)?)?;
        }
        Ok(())
    }

    fn model_error<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let view = self.view(py)?;
        let Some(Terminal::Error(failure)) = &view.terminal else {
            return Ok(None);
        };
        let partial = self.message(py, &view)?;
        errors::model_error(py, failure, view.warnings.as_deref(), Some(partial)).map(Some)
    }
}

#[pymethods]
impl MessageAssembler {
    #[new]
    #[pyo3(signature = (run_id=None))]
    fn new(run_id: Option<&str>) -> Self {
        let given_run_id: Option<Arc<str>> = run_id.map(Into::into);
        Self::over(Fold::new(given_run_id.clone(), 0), given_run_id)
    }

    /// The run, `None` until it is known.
    #[getter]
    fn run_id(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.read(py, |fold| fold.run_id.as_deref().map(str::to_owned))
    }

    /// `idle`, `started`, `done` or `error`.
    #[getter]
    pub(crate) fn status(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.read(py, |fold| fold.core.status().as_str())
    }

    /// The seq of the last delta; 0 before the first.
    #[getter]
    fn last_seq(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |fold| fold.core.last_seq())
    }

    /// The parts so far, as copies.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let parts = self.read(py, |fold| fold.core.parts().to_vec())?;
        snapshot::parts(py, &parts).map(Bound::into_any)
    }

    /// The tool calls so far, by id.
    #[getter]
    fn tool_calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let calls: Vec<(usize, ToolCall)> = self.read(py, |fold| {
            fold.core.tool_calls().map(|(at, call)| (at, call.clone())).collect()
        })?;
        let dict = PyDict::new(py);
        for (part_index, call) in &calls {
            dict.set_item(&*call.id, Bound::new(py, ToolCallBuffer::new(*part_index, call))?)?;
        }
        MAPPING_PROXY.get(py)?.call1((dict,))
    }

    /// The arguments of a tool call as they are being written: one reader a call, made when first asked for, which reads by
    /// itself what has come whenever it is looked at, each byte once.
    ///
    /// After `reset()` it stays as it was.  Arguments that are no JSON are shown as `{"input": text}`.
    ///
    /// Raises:
    ///     KeyError: there is no such call.
    #[pyo3(signature = (tool_call_id, /))]
    fn tool_args(&self, py: Python<'_>, tool_call_id: &str) -> PyResult<Py<PartialJson>> {
        let place = self.read(py, |fold| {
            let mut calls = fold.core.tool_calls();
            let found = calls.find(|(_, call)| *call.id == *tool_call_id);
            found.map(|(part, _)| (fold.generation, part))
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
        let made = PartialJson::following(Arc::clone(&self.fold), generation, part);
        let made = Py::new(py, made)?;
        let kept = made.clone_ref(py);
        // Another thread may have been first; then its reader is everybody's, and ours is dropped outside the lock.
        let mut readers = errors::lock(py, &self.tool_args, "assembler")?;
        Ok(readers.entry((generation, part)).or_insert(kept).clone_ref(py))
    }

    /// The counts, `None` until some came.
    #[getter]
    pub(crate) fn usage<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let usage = self.read(py, |fold| {
            fold.core.usage().map(|usage| usage.map(|text| Box::<str>::from(*text)))
        })?;
        usage.map(|usage| types::usage(py, &usage.map(AsRef::as_ref))).transpose()
    }

    /// The failure of a stream that ended in `error`, with the partial message; `None` otherwise.
    #[getter(error)]
    fn failed_with<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.model_error(py)
    }

    /// The visible text so far.
    #[getter]
    pub(crate) fn text(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |fold| fold.core.text())
    }

    /// Takes a delta, a batch, or a mapping in wire names.
    ///
    /// Raises:
    ///     ContractError: a delta breaks the contract or belongs to another run; those before it in its batch were taken,
    ///         it and later ones were not.
    #[pyo3(signature = (delta, /))]
    fn consume(&self, py: Python<'_>, delta: &Bound<'_, PyAny>) -> PyResult<()> {
        let outcome = if let Ok(batch) = delta.cast::<DeltaBatch>() {
            let batch = batch.get();
            let run_id = batch.run_id_str(py)?;
            errors::guarded(py, &self.fold, "assembler", |fold| {
                fold.take_batch(run_id, batch.now, &batch.core)
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
            errors::guarded(py, &self.fold, "assembler", |fold| {
                fold.take(run_id, delta.now(), &core)
            })?
        };
        outcome.map_err(|violation| errors::contract_violation(py, &violation))
    }

    /// The message so far; in `idle` an empty assistant message.
    pub(crate) fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let view = self.view(py)?;
        self.message(py, &view)
    }

    /// The message, after `done`.
    ///
    /// Raises:
    ///     ModelError: the stream ended in `error`; `.partial_message` holds what came.
    ///     MisuseError: the stream has not ended.
    pub(crate) fn build_final_message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let view = self.view(py)?;
        match view.status {
            Status::Done => self.message(py, &view),
            Status::Error => match self.model_error(py)? {
                Some(error) => Err(PyErr::from_value(error)),
                None => Err(errors::misuse(py, "the assembler was reset meanwhile")),
            },
            Status::Idle | Status::Started => {
                let status = view.status.as_str();
                let message = format!(
                    "no final message while the stream is {status}; snapshot() shows what came so far"
                );
                Err(errors::misuse(py, &message))
            }
        }
    }

    /// Back to `idle`; a run id that was given stays.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let old = {
            let mut fold = errors::lock(py, &self.fold, "assembler")?;
            let fresh = Fold::new(self.given_run_id.clone(), fold.generation + 1);
            std::mem::replace(&mut *fold, fresh)
        };
        drop(old);
        let old = std::mem::take(&mut *errors::lock(py, &self.tool_args, "assembler")?);
        drop(old);
        let old = errors::lock(py, &self.message_id, "assembler")?.take();
        drop(old);
        Ok(())
    }

    /// The failure of a stream that ended in `error`; `None` otherwise.
    #[pyo3(name = "get_error")]
    fn failure<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.model_error(py)
    }

    /// The readers of arguments hold what can be given up: containers that the caller has too.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.tool_args.try_lock() {
            Ok(readers) => readers.values().try_for_each(|reader| visit.call(reader)),
            Err(_) => Ok(()),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |fold| {
            let parts: &[_] = fold.core.parts();
            format!(
                "<MessageAssembler {}, {} parts, last seq {}>",
                fold.core.status().as_str(),
                parts.len(),
                fold.core.last_seq()
            )
        })
    }
}
