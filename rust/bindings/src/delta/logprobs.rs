//! `Logprobs`: log probabilities of a message as arrays that Python reads through `memoryview`.
//!
//! In: log probabilities of the core, or their wire form.  Out: arrays, lists, or the wire form.
//!
//! Law: each array is copied once, at its first use, into a `bytes` object.  All views, including those of numpy, read that
//! object.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use deltafold::contract::{Column, Logprobs as Core};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView, PyString, PyType};

use crate::support::imports::LOGPROBS_SCHEMA;
use crate::support::json;
use crate::support::members::{Members, logprobs_error};

/// Log probabilities of the tokens of a message, in the order of the stream.
///
/// A stream that is decoded with `logprobs=True` has them in `message.meta.logprobs`.  Arrays are contiguous and read-only;
/// `numpy.asarray(logprobs.logprobs)` copies nothing.  Missing values are NaN (a log probability), "" (a token) or -1 (an
/// id, if other tokens have one).
///
/// Raises:
///     ContractError: in `from_dict` and `from_json`, a member has the wrong type or length.
///
/// Example:
///     >>> logprobs = deltafold.fold(body, "openai-chat", logprobs=True).meta.logprobs
///     >>> numpy.asarray(logprobs.logprobs).mean()
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct Logprobs {
    core: Arc<Core>,
    values: Array,
    ids: Array,
    top_values: Array,
    top_offsets: Array,
}

/// Array as bytes, built at the first use.
type Array = PyOnceLock<Py<PyBytes>>;

impl Logprobs {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            values: PyOnceLock::new(),
            ids: PyOnceLock::new(),
            top_values: PyOnceLock::new(),
            top_offsets: PyOnceLock::new(),
        }
    }

    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        let core = Core::from_json(text, deltafold::json::MAX_DEPTH)
            .map_err(|fault| logprobs_error(py, &fault, "", None))?;
        Ok(Self::new(Arc::new(core)))
    }
}

/// Build a new view of 8-byte numbers.  Views are not shared, because each caller may release its view.
fn view<'py, T: Copy>(
    py: Python<'py>,
    array: &Array,
    numbers: &[T],
    bytes: impl Fn(T) -> [u8; 8],
    format: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let kept = array.get_or_try_init(py, || {
        let made = PyBytes::new_with(py, numbers.len() * 8, |target| {
            for (place, number) in target.chunks_exact_mut(8).zip(numbers) {
                place.copy_from_slice(&bytes(*number));
            }
            Ok(())
        });
        made.map(Bound::unbind)
    })?;
    PyMemoryView::from(kept.bind(py))?.call_method1(intern!(py, "cast"), (format,))
}

fn texts<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for text in column.texts() {
        list.append(PyString::new(py, text))?;
    }
    Ok(list)
}

#[pymethods]
impl Logprobs {
    /// Texts of the tokens, as a new list.
    #[getter]
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        texts(py, self.core.tokens())
    }

    /// Bytes of the tokens, as a new list: the UTF-8 of the texts, but for a token that ends inside a character.
    #[getter]
    fn token_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(
            py,
            self.core.tokens().rows().map(|row| PyBytes::new(py, row.bytes())).collect::<Vec<_>>(),
        )
    }

    /// Log probabilities of the tokens, float64.
    #[getter]
    fn logprobs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, &self.values, self.core.tokens().values(), f64::to_ne_bytes, "d")
    }

    /// Ids of the tokens, int64; `None` if the server sent none.
    #[getter]
    fn token_ids<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let ids = self.core.ids();
        ids.map(|ids| view(py, &self.ids, ids, i64::to_ne_bytes, "q")).transpose()
    }

    /// Alternatives of all tokens in order, as a new list; `None` if the server sent none.
    #[getter]
    fn top_tokens<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        self.core.alternatives().map(|top| texts(py, top)).transpose()
    }

    /// Log probabilities of the alternatives, float64; `None` if the server sent none.
    #[getter]
    fn top_logprobs<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let top = self.core.alternatives();
        top.map(|top| view(py, &self.top_values, top.values(), f64::to_ne_bytes, "d")).transpose()
    }

    /// Start offsets of the alternatives of each token, and the total at the end, int64; `None` if the server sent none.
    ///
    /// The alternatives of token `i` are `top_tokens[top_offsets[i]:top_offsets[i + 1]]`.
    #[getter]
    fn top_offsets<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let offsets = self.core.alternatives().map(|_| self.core.offsets());
        offsets
            .map(|offsets| view(py, &self.top_offsets, offsets, i64::to_ne_bytes, "q"))
            .transpose()
    }

    /// Return the wire form `{tokens, logprobs, tokenIds?, bytes?, top?}`.  Missing values are None.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.core.to_json())
    }

    /// Build log probabilities from a mapping in wire names.
    #[classmethod]
    fn from_dict(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        // Wrapped in a mapping, because the checks read members of a mapping.
        let holder = PyDict::new(py);
        holder.set_item("logprobs", data)?;
        let members = Members::new(holder.as_any(), "the log probabilities", None)?;
        let core = members.logprobs("logprobs")?.ok_or_else(|| members.missing("logprobs"))?;
        Ok(Self::new(core))
    }

    /// Return the wire form as JSON text.
    fn to_json(&self) -> String {
        self.core.to_json()
    }

    /// Build log probabilities from JSON text in wire names.
    #[classmethod]
    fn from_json(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        if let Ok(text) = data.cast::<PyString>() {
            return Self::parse(py, &text.to_string_lossy());
        }
        let Ok(bytes) = data.cast::<PyBytes>() else {
            let kind = data.get_type().name()?;
            return Err(PyTypeError::new_err(format!("from_json takes str or bytes, not {kind}")));
        };
        Self::parse(py, &String::from_utf8_lossy(bytes.as_bytes()))
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
        let py = other.py();
        other.cast::<Self>().map_or_else(
            |_| py.NotImplemented().into_bound(py),
            |other| {
                let equal = self.core == other.get().core;
                pyo3::types::PyBool::new(py, equal).to_owned().into_any()
            },
        )
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.core.len().hash(&mut hasher);
        self.core.tokens().texts().take(64).for_each(|token| token.hash(&mut hasher));
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let ids = if self.core.ids().is_some() { ", token ids" } else { "" };
        let top = self.core.alternatives().map_or(0, Column::len);
        let top = if top > 0 { format!(", {top} alternatives") } else { String::new() };
        format!("<Logprobs of {} tokens{ids}{top}>", self.core.len())
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = this.py();
        let from_json = py.get_type::<Self>().getattr(intern!(py, "from_json"))?;
        Ok((from_json, (PyBytes::new(py, this.get().core.to_json().as_bytes()),)))
    }

    #[classmethod]
    fn __get_pydantic_core_schema__<'py>(
        class: &Bound<'py, PyType>,
        source: &Bound<'py, PyAny>,
        handler: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        LOGPROBS_SCHEMA.get(class.py())?.call1((class, source, handler))
    }
}
