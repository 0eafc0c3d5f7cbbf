//! `response_headers`: the headers of a response as texts, from the bytes that HTTP clients keep.
//!
//! In: pairs of names and values, as bytes.  Out: a dict of texts, the names in lower case.
//!
//! Law: several values of one name are joined by a comma and a space.  Source: RFC 9110, section 5.2.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

/// Return the headers of a response as texts, the names in lower case.  Return None for anything but pairs of bytes.
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

/// Put the headers into a dict.  Return false at the first object that is anything but a pair of bytes.
///
/// The cost is linear in the bytes, also where a name comes many times.
fn put_all<'py>(
    headers: &Bound<'py, PyDict>,
    pairs: impl Iterator<Item = Bound<'py, PyAny>>,
) -> PyResult<bool> {
    let mut repeated: HashMap<String, String> = HashMap::new();
    for pair in pairs {
        let Ok((name, value)) = pair.extract::<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>() else {
            return Ok(false);
        };
        let name = text(&name).to_lowercase();
        let (key, value) = (PyString::new(headers.py(), &name), text(&value));
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
    Ok(true)
}

fn text<'a>(bytes: &'a Bound<'_, PyBytes>) -> Cow<'a, str> {
    let bytes = bytes.as_bytes();
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
    }
}
