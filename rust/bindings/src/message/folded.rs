//! `FoldedMessage`: the state of a fold from which a lazy message makes its fields.
//!
//! In: the state of an assembler.  Out: the fields of `Message` and `Meta`, each made when it is first read.
//!
//! Laws:
//! - The state is shared with the assembler and never changes.  An assembler that goes on copies it first.
//! - The list of parts is made once, and holds the tool calls that were made before it.  Afterwards the text of the parts is
//!   released.
//! - A field that needs Python objects is made outside the lock.  The lock is held for a few instructions and is waited for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deltafold::contract::Logprobs;
use deltafold::fold::{MessageAssembler, Metadata, Part, Terminal};
use pyo3::exceptions::PyAttributeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use uuid::Uuid;

use crate::delta::logprobs;
use crate::message::snapshot;
use crate::support::clock::{self, Timestamp};
use crate::support::contract::{self, USAGE};
use crate::support::imports::{PARSE_ARGUMENTS, UUID};
use crate::support::json;
use crate::support::model::{self, CheckedClass, Model};

pub(crate) static META: Model = Model::new("deltafold.message.messages", "META_BLUEPRINT");
pub(crate) static MESSAGE: Model = Model::new("deltafold.message.messages", "MESSAGE_BLUEPRINT");

static UUID_CLASS: PyOnceLock<CheckedClass> = PyOnceLock::new();

/// `uuid.SafeUUID.unknown`.
static SAFETY_UNKNOWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Name of the entry of a lazy model's `__dict__` that holds the source of its fields.
pub(crate) const SOURCE: &str = "_fold";

/// Name of the entry that holds the function of fields that are not in the fold, such as the cost of a call.
pub(crate) const LATE: &str = "_late";

/// State of a fold, shared by a lazy message and its metadata.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct FoldedMessage {
    content: Mutex<Content>,
    pub(crate) metadata: Arc<Metadata>,
    pub(crate) logprobs: Option<Arc<Logprobs>>,
    pub(crate) run_id: Option<Arc<str>>,
    pub(crate) began: Timestamp,
    pub(crate) id: Uuid,
}

/// Parts of the message.
enum Content {
    /// No Python object was made of the parts.
    Unmade(Arc<MessageAssembler>),
    /// Only the tool calls were made.  The list of parts will hold these objects.
    Calls(Arc<MessageAssembler>, Py<PyTuple>),
    /// The tool calls among the parts that were made.
    Made(Py<PyTuple>),
}

impl FoldedMessage {
    /// Keep the state of an assembler for a message.
    pub(crate) fn new(
        core: &Arc<MessageAssembler>,
        run_id: Option<Arc<str>>,
        began: Timestamp,
        id: Uuid,
    ) -> Self {
        Self {
            metadata: Arc::clone(core.metadata()),
            logprobs: core.logprobs().cloned(),
            content: Mutex::new(Content::Unmade(Arc::clone(core))),
            run_id,
            began,
            id,
        }
    }

    /// Build the lazy message.
    pub(crate) fn into_message(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        MESSAGE.lazy(intern!(py, SOURCE), Bound::new(py, self)?.as_any())
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Return the fold, as long as no Python object was made of its parts.
    pub(crate) fn fold(&self) -> Option<Arc<MessageAssembler>> {
        match &*self.content() {
            Content::Unmade(core) => Some(Arc::clone(core)),
            Content::Calls(..) | Content::Made(_) => None,
        }
    }

    /// Return the fold, as long as its list of parts was not made, and the tool calls that were made.
    fn unmade(&self, py: Python<'_>) -> Option<(Arc<MessageAssembler>, Option<Py<PyTuple>>)> {
        match &*self.content() {
            Content::Unmade(core) => Some((Arc::clone(core), None)),
            Content::Calls(core, calls) => Some((Arc::clone(core), Some(calls.clone_ref(py)))),
            Content::Made(_) => None,
        }
    }

    /// Return the text, or the thinking; `None` once the list of parts was made.
    pub(crate) fn text<'py>(
        &self,
        py: Python<'py>,
        thinking: bool,
    ) -> Option<Bound<'py, PyString>> {
        self.unmade(py).map(|(core, _)| joined_text(py, core.parts(), thinking))
    }

    /// Return the tool calls, of which only those are made; `None` once the list of parts was made.
    pub(crate) fn tool_calls<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some((core, calls)) = self.unmade(py) else { return Ok(None) };
        if core.tool_calls().next().is_none() {
            return Ok(Some(PyList::empty(py)));
        }
        if let Some(calls) = calls {
            return Ok(Some(calls.bind(py).to_list()));
        }
        let made = snapshot::tool_calls(py, core.parts())?;
        let kept = made.to_tuple().unbind();
        let mut content = self.content();
        if let Content::Unmade(_) = &*content {
            // The former content holds the fold as well, so that nothing is dropped under the lock.
            *content = Content::Calls(core, kept);
            return Ok(Some(made));
        }
        // Another thread has made calls or parts meanwhile.
        drop(content);
        self.tool_calls(py)
    }
}

/// Fields of a message.
impl FoldedMessage {
    /// Make a field of `Message` and keep it in `fields`, which belong to the message.
    ///
    /// Two threads may make a field at once.  Both get the one that was kept first.
    pub(crate) fn message_field<'py>(
        this: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        fields: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, fold) = (this.py(), this.get());
        let value = match name.to_str()? {
            "id" => message_id(py, fold.id)?,
            "run_id" => fold.run_id.as_deref().into_pyobject(py)?,
            "timestamp" => clock::to_datetime(py, fold.began)?,
            "meta" => {
                let meta = META.lazy(intern!(py, SOURCE), this.as_any())?;
                if let Some(late) = fields.get_item(intern!(py, LATE))? {
                    model::dict(&meta)?.set_item(intern!(py, LATE), late)?;
                }
                meta
            }
            // The calls are made first: another thread may make them while the other parts are made.
            "parts" => match fold.tool_calls(py).map(|_| fold.unmade(py))? {
                Some((core, calls)) => {
                    let calls = calls.map(|calls| calls.into_bound(py));
                    let parts = snapshot::parts(py, core.parts(), calls.as_ref())?;
                    return fold.keep_parts(name, &core, &parts, fields);
                }
                // Another thread has made the list, which it kept before it released the fold.  `keep` returns that one.
                None => PyList::empty(py).into_any(),
            },
            _ => default(&MESSAGE, name)?,
        };
        keep(fields, name, value)
    }

    /// Keep the list of parts, unless another thread was first, and release the fold.
    fn keep_parts<'py>(
        &self,
        name: &Bound<'py, PyString>,
        core: &MessageAssembler,
        parts: &Bound<'py, PyList>,
        fields: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = parts.py();
        let kept = keep(fields, name, parts.as_any().clone())?;
        if kept.is(parts) {
            let made = parts.iter().zip(core.parts());
            let calls = made.filter_map(|(made, part)| match part {
                Part::ToolCall(_) => Some(made),
                _ => None,
            });
            let made = Content::Made(PyTuple::new(py, calls.collect::<Vec<_>>())?.unbind());
            let unmade = std::mem::replace(&mut *self.content(), made);
            drop(unmade);
        }
        Ok(kept)
    }
}

/// Fields of the metadata.
impl FoldedMessage {
    /// Make a field of `Meta` and keep it in `fields`, as [`FoldedMessage::message_field`] does.
    pub(crate) fn meta_field<'py>(
        this: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        fields: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, fold) = (this.py(), this.get());
        let (metadata, done) = (&fold.metadata, fold.metadata.done());
        let none = || py.None().into_bound(py);
        let value = match name.to_str()? {
            "usage" => match usage(py, metadata)? {
                Some(usage) => usage,
                None => none(),
            },
            "response_id" => known_id(py, &metadata.request_id)?,
            "model_id" => known_id(py, &metadata.model_id)?,
            "finish_reason" => match done {
                Some((finish_reason, _)) => contract::finish_reason(py, finish_reason)?,
                None => none(),
            },
            "raw_finish_reason" => done.and_then(|(_, raw)| raw).into_pyobject(py)?,
            "is_api_error_message" => {
                let failed = matches!(metadata.terminal, Some(Terminal::Error(_)));
                failed.into_pyobject(py)?.to_owned().into_any()
            }
            "details" => match &metadata.details {
                Some(details) => json::to_python(py, details)?,
                None => none(),
            },
            "warnings" => match &metadata.warnings {
                Some(warnings) => json::to_python(py, warnings)?,
                None => PyList::empty(py).into_any(),
            },
            "approvals" => PyList::empty(py).into_any(),
            "parse_errors" => fold.parse_errors(py)?.into_any(),
            "logprobs" => match &fold.logprobs {
                Some(core) => Bound::new(py, logprobs::Logprobs::new(Arc::clone(core)))?.into_any(),
                None => none(),
            },
            _ => match late(metadata, name, fields)? {
                Some(value) => value,
                None => default(&META, name)?,
            },
        };
        keep(fields, name, value)
    }

    /// List the calls whose arguments are not an object, as `{toolCallId, message}`.
    fn parse_errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let errors = PyList::empty(py);
        let note = |id: Bound<'py, PyAny>, error: Bound<'py, PyAny>| {
            if error.is_none() {
                return Ok(());
            }
            let fields = PyDict::new(py);
            fields.set_item(intern!(py, "toolCallId"), id)?;
            fields.set_item(intern!(py, "message"), error)?;
            errors.append(fields)
        };
        let made = match &*self.content() {
            Content::Unmade(core) => Err(Arc::clone(core)),
            Content::Calls(_, calls) | Content::Made(calls) => Ok(calls.clone_ref(py)),
        };
        match made {
            Ok(calls) => {
                for call in calls.bind(py) {
                    let id = call.getattr(intern!(py, "tool_call_id"))?;
                    note(id, call.getattr(intern!(py, "parse_error"))?)?;
                }
            }
            Err(core) => {
                let calls = core.tool_calls().filter(|(_, call)| call.ended && !call.incomplete);
                for (_, call) in calls {
                    let id = PyString::new(py, &call.id).into_any();
                    let raw = PyString::new(py, &call.args);
                    let format = PyString::new(py, call.input_format.as_str());
                    note(id, Arguments::parse(&raw, &format)?.error)?;
                }
            }
        }
        Ok(errors)
    }
}

#[pymethods]
impl FoldedMessage {
    /// Visit the calls, because their arguments are containers that the caller may change.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.content.try_lock().as_deref() {
            Ok(Content::Calls(_, calls) | Content::Made(calls)) => visit.call(calls),
            _ => Ok(()),
        }
    }
}

/// Source of the fields of a lazy `Usage`: the metadata without the parts, which a kept record must not hold.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct FoldedUsage(Arc<Metadata>);

impl FoldedUsage {
    /// Make a field of `Usage` and keep it in `fields`, as [`FoldedMessage::message_field`] does.
    pub(crate) fn field<'py>(
        &self,
        name: &Bound<'py, PyString>,
        fields: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let counts = self.0.usage.as_ref().map(|usage| usage.map(AsRef::as_ref));
        keep(fields, name, contract::usage_field(&counts.unwrap_or_default(), name)?)
    }
}

/// Build the lazy token counts of a fold, if the stream had any.
pub(crate) fn usage<'py>(
    py: Python<'py>,
    metadata: &Arc<Metadata>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if metadata.usage.is_none() {
        return Ok(None);
    }
    let source = Bound::new(py, FoldedUsage(Arc::clone(metadata)))?;
    USAGE.lazy(intern!(py, SOURCE), source.as_any()).map(Some)
}

/// Parsed arguments of a tool call.
pub(crate) struct Arguments<'py> {
    pub(crate) value: Bound<'py, PyAny>,
    pub(crate) error: Bound<'py, PyAny>,
    pub(crate) warning: Bound<'py, PyAny>,
}

impl<'py> Arguments<'py> {
    /// Parse the raw text of arguments.  The Python half parses text that is not an unambiguous object.
    pub(crate) fn parse(
        raw: &Bound<'py, PyAny>,
        input_format: &Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        let py = raw.py();
        let none = || py.None().into_bound(py);
        if let Ok(text) = raw.cast::<PyString>().map(|text| text.to_str())
            && let Ok(text) = text
            && input_format.eq(intern!(py, "json"))?
            && let Some(value) = json::arguments(py, text)
        {
            return Ok(Self { value: value.into_any(), error: none(), warning: none() });
        }
        let parsed = PARSE_ARGUMENTS.get(py)?.call1((raw, input_format))?;
        Ok(Self {
            value: parsed.get_item(0)?,
            error: parsed.get_item(1)?,
            warning: parsed.get_item(2)?,
        })
    }
}

/// Set a field unless it is set, in one step for other threads, and return its value.
pub(crate) fn keep<'py>(
    fields: &Bound<'py, PyDict>,
    name: &Bound<'py, PyString>,
    value: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (_, kept) = fields.set_default_with_result(name, value)?;
    Ok(kept)
}

/// Join the text parts, or the thinking parts.  A single text is copied once.
pub(crate) fn joined_text<'py>(
    py: Python<'py>,
    parts: &[Part],
    thinking: bool,
) -> Bound<'py, PyString> {
    let mut texts = parts.iter().filter_map(|part| match part {
        Part::Text(part) if !thinking => Some(part.text.as_str()),
        Part::Thinking(part) if thinking => Some(part.text.as_str()),
        _ => None,
    });
    let first = texts.next().unwrap_or_default();
    let Some(second) = texts.next() else { return PyString::new(py, first) };
    let mut all = [first, second].concat();
    all.extend(texts);
    PyString::new(py, &all)
}

/// Return the value of the blueprint for a field.
pub(crate) fn default<'py>(
    model: &Model,
    name: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    let value = model.fields(name.py())?.get_item(name)?;
    value.ok_or_else(|| PyAttributeError::new_err(name.clone().unbind()))
}

/// Call the function of the fields that are not in the fold, keep these fields, and return one of them.
fn late<'py>(
    metadata: &Arc<Metadata>,
    name: &Bound<'py, PyString>,
    fields: &Bound<'py, PyDict>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = fields.py();
    let Some(make) = fields.get_item(intern!(py, LATE))? else { return Ok(None) };
    let late = make.call1((usage(py, metadata)?,))?.cast_into::<PyDict>()?;
    for (key, value) in late.iter() {
        keep(fields, key.cast::<PyString>()?, value)?;
    }
    fields.get_item(name)
}

/// Return an id.  An empty id means an unknown id.
fn known_id<'py>(py: Python<'py>, id: &str) -> PyResult<Bound<'py, PyAny>> {
    Ok(Some(id).filter(|id| !id.is_empty()).into_pyobject(py)?)
}

/// Make a `uuid.UUID`.
///
/// The constructor of the Python class is avoided.  Its checks cost more than the fold of a short message.
pub(crate) fn message_id(py: Python<'_>, id: Uuid) -> PyResult<Bound<'_, PyAny>> {
    let unknown = SAFETY_UNKNOWN.get_or_try_init(py, || {
        py.import("uuid")?.getattr("SafeUUID")?.getattr("unknown").map(Bound::unbind)
    })?;
    let class = UUID_CLASS.get_or_try_init(py, || CheckedClass::checked(UUID.get(py)?))?;
    let made = class.instance(py)?;
    model::set(&made, intern!(py, "int"), id.as_u128().into_pyobject(py)?.as_any())?;
    model::set(&made, intern!(py, "is_safe"), unknown.bind(py))?;
    Ok(made)
}
