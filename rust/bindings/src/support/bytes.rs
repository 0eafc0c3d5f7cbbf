//! Bytes of a Python object, borrowed for the duration of a call.
//!
//! In: a `bytes`, `bytearray` or `memoryview` object.  Out: a byte slice.
//!
//! Law: the bytes do not change during the call.  `bytes` is immutable and is borrowed; mutable buffers are copied first.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

/// Call `f` with the bytes of a `bytes`, `bytearray` or `memoryview` object.
pub(crate) fn with_bytes<R>(
    data: &Bound<'_, PyAny>,
    f: impl FnOnce(&[u8]) -> PyResult<R>,
) -> PyResult<R> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return f(bytes.as_bytes());
    }
    if data.is_instance_of::<PyByteArray>() || data.is_instance_of::<PyMemoryView>() {
        let copy = data.py().get_type::<PyBytes>().call1((data,))?;
        return f(copy.cast::<PyBytes>()?.as_bytes());
    }
    let kind = data.get_type().name()?;
    Err(PyTypeError::new_err(format!("data must be bytes, bytearray or memoryview, not {kind}")))
}
