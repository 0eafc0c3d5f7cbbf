//! Bytes of a Python object, borrowed for the duration of a call.
//!
//! In: a `bytes`, `bytearray` or `memoryview` object.  Out: a byte slice.
//!
//! Law: the bytes do not change during the call.  `bytes` is immutable and is borrowed; mutable buffers are copied first.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

/// Return the bytes of a `bytes`, `bytearray` or `memoryview` object; `None` for another object.
#[inline]
pub(crate) fn bytes_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(Some(bytes.clone()));
    }
    if data.is_instance_of::<PyByteArray>() || data.is_instance_of::<PyMemoryView>() {
        let copy = data.py().get_type::<PyBytes>().call1((data,))?;
        return Ok(Some(copy.cast_into::<PyBytes>()?));
    }
    Ok(None)
}

/// Call `f` with the bytes of a `bytes`, `bytearray` or `memoryview` object.
pub(crate) fn with_bytes<R>(
    data: &Bound<'_, PyAny>,
    f: impl FnOnce(&[u8]) -> PyResult<R>,
) -> PyResult<R> {
    if let Some(bytes) = bytes_of(data)? {
        return f(bytes.as_bytes());
    }
    let kind = data.get_type().name()?;
    Err(PyTypeError::new_err(format!("data must be bytes, bytearray or memoryview, not {kind}")))
}
