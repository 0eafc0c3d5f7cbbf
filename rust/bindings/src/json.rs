//! JSON text ↔ Python objects.

use deltafold::wire::{self, Kind, Reader};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString};

use crate::types::JSON_DUMPS;

/// The Python value of a JSON text.  Lone surrogate escapes become U+FFFD; integers beyond CPython's limit and
/// numbers beyond a float stay text.
pub(crate) fn to_python<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let mut reader = Reader::new(text, wire::MAX_DEPTH);
    let mut failure = None;
    let value = value(py, &mut reader, &mut failure);
    if let Some(error) = failure {
        return Err(error);
    }
    value.map_err(|error| PyValueError::new_err(error.to_string()))
}

type Read<T> = deltafold::wire::Result<T>;

/// `failure` holds a Python error: the reader has no room for one.
fn value<'py>(
    py: Python<'py>,
    reader: &mut Reader<'_>,
    failure: &mut Option<PyErr>,
) -> Read<Bound<'py, PyAny>> {
    Ok(match reader.kind()? {
        Kind::Null => {
            reader.skip()?;
            py.None().into_bound(py)
        }
        Kind::Bool => {
            let truth = reader.boolean()?.unwrap_or(false);
            pyo3::types::PyBool::new(py, truth).to_owned().into_any()
        }
        Kind::String => {
            let token = reader.string()?;
            if token.escaped {
                PyString::new(py, &token.text()).into_any()
            } else {
                PyString::new(py, token.raw).into_any()
            }
        }
        Kind::Number => number(py, reader.raw()?),
        Kind::Array => {
            let list = PyList::empty(py);
            reader.array(|reader| {
                let item = value(py, reader, failure)?;
                keep(list.append(item), failure);
                Ok(())
            })?;
            list.into_any()
        }
        Kind::Object => {
            let object = PyDict::new(py);
            reader.object(|reader, key| {
                let key = PyString::new(py, key);
                let item = value(py, reader, failure)?;
                keep(object.set_item(key, item), failure);
                Ok(())
            })?;
            object.into_any()
        }
    })
}

fn keep(result: PyResult<()>, failure: &mut Option<PyErr>) {
    if let Err(error) = result {
        failure.get_or_insert(error);
    }
}

fn number<'py>(py: Python<'py>, text: &str) -> Bound<'py, PyAny> {
    if let Ok(small) = text.parse::<i64>() {
        return PyInt::new(py, small).into_any();
    }
    if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return match text.parse::<f64>() {
            Ok(float) if float.is_finite() => PyFloat::new(py, float).into_any(),
            _ => PyString::new(py, text).into_any(),
        };
    }
    py.get_type::<PyInt>().call1((text,)).unwrap_or_else(|_| PyString::new(py, text).into_any())
}

/// The JSON text of a Python value; raises what `json.dumps` raises.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Box<str>> {
    let py = value.py();
    let options = PyDict::new(py);
    options.set_item("ensure_ascii", false)?;
    options.set_item("allow_nan", false)?;
    options.set_item("separators", (",", ":"))?;
    let text = JSON_DUMPS.get(py)?.call((value,), Some(&options))?;
    Ok(text.cast::<PyString>()?.to_str()?.into())
}
