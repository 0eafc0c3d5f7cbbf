//! `ResponseHeaders`: the headers of a response as texts, from the bytes that HTTP clients keep.
//!
//! In: pairs of names and values, as bytes.  Out: a mapping of texts, the names in lower case.
//!
//! Laws: the texts are made when they are first read, because most calls need one header of twenty.  Several values of one name
//! are joined by a comma and a space.  Source: RFC 9110, section 5.2.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList, PyString, PyTuple};

/// Headers of a response as texts, the names in lower case.
///
/// Bytes that are not UTF-8 are read as ISO 8859-1, as httpx does.  Source: RFC 9110, section 5.5.
#[pyclass(frozen, mapping, module = "deltafold._core")]
pub(crate) struct ResponseHeaders {
    pairs: Vec<(Py<PyBytes>, Py<PyBytes>)>,
    texts: PyOnceLock<Py<PyDict>>,
}

/// Return the headers of a response.  Return None for anything but a tuple or a list of pairs of bytes.
#[pyfunction]
#[pyo3(signature = (pairs, /))]
pub(crate) fn response_headers(pairs: &Bound<'_, PyAny>) -> Option<ResponseHeaders> {
    let pairs = if let Ok(pairs) = pairs.cast::<PyTuple>() {
        pairs.iter().map(|pair| pair.extract().ok()).collect()
    } else if let Ok(pairs) = pairs.cast::<PyList>() {
        pairs.iter().map(|pair| pair.extract().ok()).collect()
    } else {
        None
    };
    Some(ResponseHeaders { pairs: pairs?, texts: PyOnceLock::new() })
}

impl ResponseHeaders {
    /// Return the names and values in their order, the names in any case.
    pub(crate) fn pairs<'a>(
        &'a self,
        py: Python<'a>,
    ) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        self.pairs
            .iter()
            .map(move |(name, value)| (text(name.as_bytes(py)), text(value.as_bytes(py))))
    }

    /// Return false if no header has this name in lower case, without making the texts.
    fn may_have(&self, py: Python<'_>, name: &str) -> bool {
        self.pairs.iter().any(|(known, _)| {
            let known = known.as_bytes(py);
            known.eq_ignore_ascii_case(name.as_bytes()) || !known.is_ascii()
        })
    }

    fn texts<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyDict>> {
        let texts = self.texts.get_or_try_init(py, || self.joined(py).map(Bound::unbind))?;
        Ok(texts.bind(py))
    }

    /// Make the texts.  The cost is linear in the bytes, also where a name comes many times.
    fn joined<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let headers = PyDict::new(py);
        let mut repeated: HashMap<String, String> = HashMap::new();
        for (name, value) in self.pairs(py) {
            let name = name.to_lowercase();
            let key = PyString::new(py, &name);
            let Some(first) = headers.get_item(&key)? else {
                headers.set_item(key, value)?;
                continue;
            };
            let values = match repeated.entry(name) {
                Entry::Occupied(values) => values.into_mut(),
                Entry::Vacant(place) => place.insert(first.extract()?),
            };
            values.push_str(", ");
            values.push_str(&value);
        }
        for (name, values) in repeated {
            headers.set_item(name, values)?;
        }
        Ok(headers)
    }
}

/// The methods of a mapping, which those of a dict implement.
#[pymethods]
impl ResponseHeaders {
    fn __getitem__<'py>(&self, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.texts(name.py())?.as_any().get_item(name)
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.texts(name.py())?.contains(name)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.texts(py)?.as_any().try_iter()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.texts(py)?.len())
    }

    fn __bool__(&self) -> bool {
        !self.pairs.is_empty()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let texts = self.texts(py)?;
        match other.cast::<Self>() {
            Ok(other) => texts.eq(other.get().texts(py)?),
            Err(_) => texts.eq(other),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.texts(py)?.repr()?.to_string())
    }

    #[pyo3(signature = (key, default=None, /))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        if self.texts.get(py).is_none()
            && let Ok(name) = key.cast::<PyString>()
            && let Ok(name) = name.to_str()
            && !self.may_have(py, name)
        {
            return Ok(default);
        }
        Ok(self.texts(py)?.get_item(key)?.or(default))
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.texts(py)?.call_method0(intern!(py, "keys"))
    }

    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.texts(py)?.call_method0(intern!(py, "values"))
    }

    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.texts(py)?.call_method0(intern!(py, "items"))
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
    }
}
