//! `response_headers`: the headers of a response as texts, from the bytes that HTTP clients keep.
//!
//! In: pairs of names and values, as bytes.  Out: a dict of texts, the names in lower case.
//!
//! Law: the values of one name become one value, separated by a comma and a space.  Source: RFC 9110, section 5.2.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

/// Return the headers of a response as texts, the names in lower case; None if these are no pairs of bytes.
///
/// Bytes that are not UTF-8 are read as ISO 8859-1, as httpx does.  Source: RFC 9110, section 5.5.
#[pyfunction]
#[pyo3(signature = (pairs, /))]
pub(crate) fn response_headers<'py>(
    pairs: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let headers = PyDict::new(pairs.py());
    let whole = if let Ok(pairs) = pairs.cast::<PyTuple>() {
        put_all(&headers, pairs.iter())?
    } else if let Ok(pairs) = pairs.cast::<PyList>() {
        put_all(&headers, pairs.iter())?
    } else {
        false
    };
    Ok(whole.then_some(headers))
}

/// Put the headers into a dict; return false at the first object that is no pair of bytes.
fn put_all<'py>(
    headers: &Bound<'py, PyDict>,
    pairs: impl Iterator<Item = Bound<'py, PyAny>>,
) -> PyResult<bool> {
    for pair in pairs {
        let Ok((name, value)) = pair.extract::<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>() else {
            return Ok(false);
        };
        let name = PyString::new(headers.py(), &text(&name).to_lowercase());
        let value = text(&value);
        match headers.get_item(&name)? {
            None => headers.set_item(name, value)?,
            Some(before) => {
                let before = before.cast_into::<PyString>()?;
                headers.set_item(name, format!("{}, {value}", before.to_str()?))?;
            }
        }
    }
    Ok(true)
}

fn text<'a>(bytes: &'a Bound<'_, PyBytes>) -> Cow<'a, str> {
    let bytes = bytes.as_bytes();
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
    }
}
