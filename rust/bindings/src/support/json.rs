//! Conversion between JSON text and Python objects.
//!
//! In: JSON text or a Python value.  Out: the other.
//!
//! Law: `to_python` accepts ambiguous content, and `read_json` refuses it.

use deltafold::json::{self, Carry, Kind, Reader, Str};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString};

use crate::support::imports::JSON_DUMPS;

/// Return the Python value of a JSON text.
///
/// Lone surrogate escapes become U+FFFD.  Integers beyond CPython's limit and numbers beyond the range of a float stay text.
pub(crate) fn to_python<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    PythonBuilder { py, strict: false, failure: None, room: Vec::new() }
        .whole(Reader::new(text, json::MAX_DEPTH))
}

/// Read a JSON text of at most `max_depth` levels, and refuse ambiguous content.
///
/// Implemented in Rust, because `json.loads` with hooks costs several times as much.
///
/// Raises:
///     ValueError: the text is not JSON, or is ambiguous: a duplicate key, a lone surrogate, a number that neither a float
///         nor an int of CPython can hold.
#[pyfunction]
#[pyo3(signature = (text, max_depth, /))]
pub(crate) fn read_json<'py>(
    py: Python<'py>,
    text: &str,
    max_depth: usize,
) -> PyResult<Bound<'py, PyAny>> {
    PythonBuilder { py, strict: true, failure: None, room: Vec::new() }
        .whole(Reader::new(text, max_depth))
}

/// Bound on the open objects and arrays of a tool call's arguments: the decoder's default, below pydantic's 200 for reading
/// JSON.
pub(crate) const MAX_ARGUMENT_DEPTH: usize = 128;

/// Return the object of a tool call's arguments; `None` if the text is not an object, or is ambiguous.
pub(crate) fn arguments<'py>(py: Python<'py>, text: &str) -> Option<Bound<'py, PyDict>> {
    read_json(py, text, MAX_ARGUMENT_DEPTH).ok()?.cast_into::<PyDict>().ok()
}

type Read<T> = deltafold::json::Result<T>;

/// Default bound of CPython on the number of digits of an `int`.
const MAX_INTEGER_DIGITS: usize = 4_300;

/// Builder of the Python value of a JSON text.
struct PythonBuilder<'py> {
    py: Python<'py>,
    /// True if ambiguous content is an error.
    strict: bool,
    /// First Python error, stored here because the reader's errors cannot hold one.
    failure: Option<PyErr>,
    /// Buffer for unescaped texts.
    room: Vec<u8>,
}

impl<'py> PythonBuilder<'py> {
    fn whole(mut self, mut reader: Reader<'_>) -> PyResult<Bound<'py, PyAny>> {
        let value = self.value(&mut reader).and_then(|value| {
            if self.strict {
                reader.end()?;
            }
            Ok(value)
        });
        match self.failure {
            Some(error) => Err(error),
            None => value.map_err(|error| PyValueError::new_err(error.to_string())),
        }
    }

    fn value(&mut self, reader: &mut Reader<'_>) -> Read<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match reader.kind()? {
            Kind::Null => {
                reader.skip()?;
                py.None().into_bound(py)
            }
            Kind::Bool => {
                let truth = reader.boolean()?.unwrap_or(false);
                pyo3::types::PyBool::new(py, truth).to_owned().into_any()
            }
            Kind::String => match reader.plain_text(&mut self.room) {
                Some(text) => PyString::new(py, text).into_any(),
                None => self.string(reader.string()?).into_any(),
            },
            Kind::Number => self.number(reader.raw()?),
            Kind::Array => {
                let list = PyList::empty(py);
                reader.array(|reader| {
                    let item = self.value(reader)?;
                    self.keep(list.append(item));
                    Ok(())
                })?;
                list.into_any()
            }
            Kind::Object => {
                let object = PyDict::new(py);
                let mut members = 0;
                reader.entries(|reader, key| {
                    let key = self.string(key);
                    let item = self.value(reader)?;
                    members += 1;
                    self.keep(object.set_item(key, item));
                    Ok(())
                })?;
                if object.len() < members {
                    self.decide("a key stands twice in an object");
                }
                object.into_any()
            }
        })
    }

    fn string(&mut self, token: Str<'_>) -> Bound<'py, PyString> {
        if !token.escaped {
            return PyString::new(self.py, token.raw);
        }
        let (mut text, mut carry) = (String::with_capacity(token.raw.len()), Carry::default());
        token.decode_into(&mut text, &mut carry);
        carry.flush(&mut text);
        if carry.lone > 0 {
            self.decide("a surrogate stands alone");
        }
        PyString::new(self.py, &text)
    }

    fn number(&mut self, text: &str) -> Bound<'py, PyAny> {
        let py = self.py;
        if let Ok(small) = text.parse::<i64>() {
            return PyInt::new(py, small).into_any();
        }
        if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            match text.parse::<f64>() {
                Ok(float) if float.is_finite() => return PyFloat::new(py, float).into_any(),
                _ => {}
            }
        } else if !(self.strict && text.len() > MAX_INTEGER_DIGITS)
            && let Ok(large) = py.get_type::<PyInt>().call1((text,))
        {
            return large;
        }
        self.decide("a number is too large");
        PyString::new(py, text).into_any()
    }

    fn decide(&mut self, what: &str) {
        if self.strict {
            self.keep(Err(PyValueError::new_err(what.to_owned())));
        }
    }

    fn keep(&mut self, result: PyResult<()>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }
}

/// Return the JSON text of a Python value.  Errors are those of `json.dumps`.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Box<str>> {
    let py = value.py();
    let options = PyDict::new(py);
    options.set_item("ensure_ascii", false)?;
    options.set_item("allow_nan", false)?;
    options.set_item("separators", (",", ":"))?;
    let text = JSON_DUMPS.get(py)?.call((value,), Some(&options))?;
    Ok(text.cast::<PyString>()?.to_str()?.into())
}
