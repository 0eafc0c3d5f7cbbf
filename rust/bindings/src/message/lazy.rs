//! Descriptors of lazy models: a field is made when it is first read, all fields when `__dict__` is.
//!
//! In: a model whose `__dict__` has the source of its fields.  Out: the fields, which are kept in `__dict__`.
//!
//! Laws: a model without a source is an ordinary pydantic model.  Reading `__dict__` removes the source; pydantic sees all
//! fields in the order of the model.  A set field is never made.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::PyClass;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList, PyString, PyType};

use crate::message::folded::{self, Arguments, FoldedMessage, FoldedUsage, LATE, SOURCE};
use crate::message::snapshot;
use crate::message::text_message::TextMessage;
use crate::message::to_json;
use crate::support::contract::USAGE;
use crate::support::model::{self, Model};

/// Class with lazy fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Message,
    Meta,
    Usage,
    ToolCall,
}

impl Owner {
    fn named(name: &str) -> PyResult<Self> {
        match name {
            "Message" => Ok(Self::Message),
            "Meta" => Ok(Self::Meta),
            "Usage" => Ok(Self::Usage),
            "ToolCallPart" => Ok(Self::ToolCall),
            _ => Err(PyValueError::new_err(format!("{name} has no lazy fields"))),
        }
    }

    /// Make a field and keep it in `fields`; `None` if the fields have no source.
    fn make<'py>(
        self,
        name: &Bound<'py, PyString>,
        fields: &Bound<'py, PyDict>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::Message => match source::<FoldedMessage>(fields)? {
                Some(source) => Some(FoldedMessage::message_field(&source, name, fields)),
                None => source::<TextMessage>(fields)?.map(|one| one.get().field(name, fields)),
            },
            Self::Meta => source::<FoldedMessage>(fields)?
                .map(|source| FoldedMessage::meta_field(&source, name, fields)),
            Self::Usage => {
                source::<FoldedUsage>(fields)?.map(|source| source.get().field(name, fields))
            }
            Self::ToolCall => None, // its fields are made together
        }
        .transpose()
    }

    fn model(self) -> &'static Model {
        match self {
            Self::Message => &folded::MESSAGE,
            Self::Meta => &folded::META,
            Self::Usage => &USAGE,
            Self::ToolCall => &snapshot::TOOL_CALL,
        }
    }

    /// Return the `__dict__` of a model with all fields in the order of the model, and without their source.
    fn complete<'py>(self, model: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let py = model.py();
        if self == Self::ToolCall {
            return with_arguments(model, intern!(py, "arguments"));
        }
        let fields = model::dict(model)?;
        if !fields.contains(intern!(py, SOURCE))? {
            return Ok(fields);
        }
        for name in self.model().names(py)? {
            let name = name.cast::<PyString>()?;
            if !fields.contains(name)? {
                self.make(name, &fields)?;
            }
        }
        replace_fields(self, model, &fields, &PyDict::new(py))
    }
}

/// Return the `__dict__` of a tool call.  If the field `name` of it is missing, its arguments are parsed.
fn with_arguments<'py>(
    model: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = model.py();
    let fields = model::dict(model)?;
    if fields.contains(name)? {
        return Ok(fields);
    }
    // A call that was built without validation may lack them.
    let Some(raw) = fields.get_item(intern!(py, "raw_args_text"))? else { return Ok(fields) };
    let Some(format) = fields.get_item(intern!(py, "input_format"))? else { return Ok(fields) };
    let parsed = Arguments::parse(&raw, &format)?;
    let made = PyDict::new(py);
    made.set_item(intern!(py, "arguments"), parsed.value)?;
    made.set_item(intern!(py, "parse_error"), parsed.error)?;
    made.set_item(intern!(py, "parse_warning"), parsed.warning)?;
    replace_fields(Owner::ToolCall, model, &fields, &made)
}

/// Replace the `__dict__` of a model by one with `fields` and `made` in the order of the model, and return it.
///
/// Nothing is removed from the old one, in which another thread may be about to look for a field.  CPython frees a replaced
/// `__dict__` only when no thread can be reading it, from 3.14 on.  If another thread was first, its `__dict__` is returned.
fn replace_fields<'py>(
    owner: Owner,
    model: &Bound<'py, PyAny>,
    fields: &Bound<'py, PyDict>,
    made: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = model.py();
    let (names, keys, sorted) = (owner.model().names(py)?, fields.keys(), PyDict::new(py));
    let _lock = lock(py);
    let now = model::dict(model)?;
    if !now.is(fields) {
        return Ok(now);
    }
    for name in names {
        let found =
            fields.get_item(&name)?.map_or_else(|| made.get_item(&name), |one| Ok(Some(one)));
        if let Some(value) = found? {
            sorted.set_item(name, value)?;
        }
    }
    for key in keys {
        let is_internal = key.is(intern!(py, SOURCE)) || key.is(intern!(py, LATE));
        if !is_internal
            && !sorted.contains(&key)?
            && let Some(value) = fields.get_item(&key)?
        {
            sorted.set_item(key, value)?;
        }
    }
    model::set_dict(model, Some(&sorted))?;
    Ok(sorted)
}

/// Lock for the replacement of a `__dict__`, and for [`set_lazy_field`], which writes to one that is not complete.
static REPLACING: Mutex<()> = Mutex::new(());

thread_local! {
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// The lock, or nothing if this thread holds it already.
///
/// While it is held, no container is made, which may collect garbage on CPython 3.11, and no object loses its last reference.
/// A free-threaded CPython may still run a finalizer of another object there, which may come here again.
struct Lock(Option<MutexGuard<'static, ()>>);

impl Drop for Lock {
    fn drop(&mut self) {
        if self.0.is_some() {
            HOLDS.set(false);
        }
    }
}

fn lock(py: Python<'_>) -> Lock {
    if HOLDS.get() {
        return Lock(None);
    }
    let guard = REPLACING.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
    HOLDS.set(true);
    Lock(Some(guard))
}

fn source<'py, T: PyClass>(fields: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, T>>> {
    let found = fields.get_item(intern!(fields.py(), SOURCE))?;
    Ok(found.and_then(|source| source.cast_into::<T>().ok()))
}

/// Non-data descriptor of a field that is made when it is first read.
///
/// Args:
///     owner: name of the class: `Message`, `Meta`, `Usage` or `ToolCallPart`.
///     name: name of the field.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct LazyField {
    owner: Owner,
    name: Py<PyString>,
}

#[pymethods]
impl LazyField {
    #[new]
    #[pyo3(signature = (owner, name, /))]
    fn new(owner: &str, name: Bound<'_, PyString>) -> PyResult<Self> {
        Ok(Self { owner: Owner::named(owner)?, name: name.unbind() })
    }

    /// Make the field.  A class has no such attribute, as it has none for any field of a pydantic model.
    fn __get__<'py>(
        &self,
        py: Python<'py>,
        instance: Option<&Bound<'py, PyAny>>,
        owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = owner;
        let name = self.name.bind(py);
        let found = match instance {
            Some(model) => {
                let fields = match self.owner {
                    Owner::ToolCall => with_arguments(model, name)?,
                    _ => model::dict(model)?,
                };
                // Without a source, another thread may have made the field after this one missed it.
                self.owner
                    .make(name, &fields)?
                    .map_or_else(|| fields.get_item(name), |made| Ok(Some(made)))?
            }
            None => None,
        };
        found.ok_or_else(|| PyAttributeError::new_err(self.name.clone_ref(py)))
    }
}

/// Data descriptor of the `__dict__` of a lazy model: reading it makes all fields.
///
/// Args:
///     owner: name of the class: `Message`, `Meta`, `Usage` or `ToolCallPart`.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct LazyDict {
    owner: Owner,
}

#[pymethods]
impl LazyDict {
    #[new]
    #[pyo3(signature = (owner, /))]
    fn new(owner: &str) -> PyResult<Self> {
        Ok(Self { owner: Owner::named(owner)? })
    }

    fn __get__<'py>(
        this: &Bound<'py, Self>,
        instance: Option<&Bound<'py, PyAny>>,
        owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = owner;
        let Some(model) = instance else { return Ok(this.as_any().clone()) };
        Ok(this.get().owner.complete(model)?.into_any())
    }

    #[expect(clippy::unused_self, reason = "the protocol of descriptors")]
    fn __set__(&self, instance: &Bound<'_, PyAny>, fields: &Bound<'_, PyAny>) -> PyResult<()> {
        replace(instance, Some(fields.cast::<PyDict>()?))
    }

    #[expect(clippy::unused_self, reason = "the protocol of descriptors")]
    fn __delete__(&self, instance: &Bound<'_, PyAny>) -> PyResult<()> {
        replace(instance, None)
    }
}

fn replace<'py>(instance: &Bound<'py, PyAny>, fields: Option<&Bound<'py, PyDict>>) -> PyResult<()> {
    if instance.is_instance_of::<PyType>() {
        return Err(PyTypeError::new_err("the __dict__ of a class cannot be replaced"));
    }
    let _former = model::dict(instance); // is released after the lock
    let _lock = lock(instance.py());
    model::set_dict(instance, fields)
}

/// Set a field of lazy metadata without making the others.  Return false for other models and names.
#[pyfunction]
#[pyo3(signature = (meta, name, value, /))]
pub(crate) fn set_lazy_field(
    meta: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    value: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let py = meta.py();
    if !folded::META.fields(py)?.contains(name)? {
        return Ok(false);
    }
    let fields = model::dict(meta)?;
    let _former; // is released after the lock
    let _lock = lock(py);
    if source::<FoldedMessage>(&fields)?.is_none() || !model::dict(meta)?.is(&fields) {
        return Ok(false);
    }
    _former = fields.get_item(name)?;
    fields.set_item(name, value)?;
    Ok(true)
}

/// Let a function make the fields of a lazy message's metadata that are not in the fold, when one of them is first read.
///
/// Return false for other messages, and where the metadata was made.  The function is called with the token counts of the
/// message and returns a dict of fields.  It may be called more than once.  No other thread may have the message yet.
#[pyfunction]
#[pyo3(signature = (message, make, /))]
pub(crate) fn set_late_fields(
    message: &Bound<'_, PyAny>,
    make: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let py = message.py();
    let fields = model::dict(message)?;
    if source::<FoldedMessage>(&fields)?.is_none() || fields.contains(intern!(py, "meta"))? {
        return Ok(false);
    }
    fields.set_item(intern!(py, LATE), make)?;
    Ok(true)
}

/// Return the text of a lazy message, or its thinking; `None` once its parts were made or set.
#[pyfunction]
#[pyo3(signature = (message, thinking, /))]
pub(crate) fn folded_text<'py>(
    message: &Bound<'py, PyAny>,
    thinking: bool,
) -> PyResult<Option<Bound<'py, PyString>>> {
    let py = message.py();
    let Some(source) = source::<FoldedMessage>(&model::dict(message)?)? else { return Ok(None) };
    Ok(source.get().text(py, thinking))
}

/// Return the tool calls of a lazy message, without making its other parts; `None` once its parts were made or set.
#[pyfunction]
#[pyo3(signature = (message, /))]
pub(crate) fn folded_tool_calls<'py>(
    message: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyList>>> {
    let Some(source) = source::<FoldedMessage>(&model::dict(message)?)? else { return Ok(None) };
    source.get().tool_calls(message.py())
}

/// Return the JSON of a lazy message; `None` once any of its parts were made or set, or if pydantic has to write it.
#[pyfunction]
#[pyo3(signature = (message, /))]
pub(crate) fn folded_json(message: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let py = message.py();
    let fields = model::dict(message)?;
    let Some(source) = source::<FoldedMessage>(&fields)? else { return Ok(None) };
    let Some(fold) = source.get().fold() else { return Ok(None) };
    // Metadata that was made may have been changed, and late fields are not in the fold.
    let meta = match fields.get_item(intern!(py, "meta"))? {
        None if fields.contains(intern!(py, LATE))? => {
            Some(FoldedMessage::message_field(&source, intern!(py, "meta"), &fields)?)
        }
        meta => meta,
    };
    let meta = meta.map(|meta| meta.call_method0(intern!(py, "model_dump_json"))).transpose()?;
    let meta = meta.as_ref().map(|meta| meta.cast::<PyString>()?.to_str()).transpose()?;
    Ok(to_json::write(source.get(), &fold, meta))
}
