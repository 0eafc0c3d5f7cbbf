//! Drive awaitables of Python, as an `await` expression does.
//!
//! In: an awaitable, and the event loop's answer.  Out: a value for the event loop, the result, or the exception.
//!
//! Laws: values that an awaitable yields and exceptions that the event loop throws are passed on unchanged.

use std::ptr;

use pyo3::exceptions::{PyBaseException, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyIterator, PyTuple, PyType};
use pyo3::{ffi, intern};

/// Outcome of driving an awaitable until it waits or ends.
pub(crate) enum Outcome<'py> {
    /// It yielded this to the event loop.
    Yielded(Bound<'py, PyAny>),
    Returned(Bound<'py, PyAny>),
    Raised(PyErr),
}

/// Return what drives an awaitable: an iterator, or a coroutine itself.
pub(crate) fn awaited(awaitable: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    static COROUTINE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = awaitable.py();
    if awaitable.get_type().is(COROUTINE.import(py, "types", "CoroutineType")?) {
        // The wrapper that `__await__` makes turns each result into an exception and back.
        return Ok(awaitable);
    }
    let iterator = match awaitable.getattr_opt(intern!(py, "__await__"))? {
        Some(method) => method.call0()?,
        // A coroutine that is a generator is its own iterator.
        None => awaitable,
    };
    Ok(iterator.cast_into::<PyIterator>()?.into_any())
}

/// Resume with the event loop's answer.
#[expect(unsafe_code, reason = "the safe function takes iterators alone, and a coroutine is none")]
pub(crate) fn resumed<'py>(inner: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> Outcome<'py> {
    let py = inner.py();
    let mut result = ptr::null_mut();
    // SAFETY: both objects live, and `PyIter_Send` takes any object. It gives a new reference, or sets an exception.
    let (sent, result) = unsafe {
        let sent = ffi::PyIter_Send(inner.as_ptr(), value.as_ptr(), &raw mut result);
        (sent, Bound::from_owned_ptr_or_opt(py, result))
    };
    match (sent, result) {
        (ffi::PySendResult::PYGEN_NEXT, Some(value)) => Outcome::Yielded(value),
        (ffi::PySendResult::PYGEN_RETURN, Some(value)) => Outcome::Returned(value),
        _ => Outcome::Raised(PyErr::fetch(py)),
    }
}

/// Return the exception with which an awaitable returns a value.
pub(crate) fn returning(value: Bound<'_, PyAny>) -> PyErr {
    // CPython takes the value as it is, without making the exception, unless it could be the exception's arguments.
    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyBaseException>() {
        PyStopIteration::new_err((value.unbind(),))
    } else {
        PyStopIteration::new_err(value.unbind())
    }
}

/// Resume with an exception of the event loop.
pub(crate) fn thrown_into<'py>(inner: &Bound<'py, PyAny>, error: PyErr) -> Outcome<'py> {
    let py = inner.py();
    let throw = match inner.getattr_opt(intern!(py, "throw")) {
        Ok(Some(throw)) => throw,
        Ok(None) => return Outcome::Raised(error),
        Err(other) => return Outcome::Raised(other),
    };
    match throw.call1((error.into_value(py),)) {
        Ok(value) => Outcome::Yielded(value),
        Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
            let value = error.value(py).getattr(intern!(py, "value"));
            value.map_or_else(Outcome::Raised, Outcome::Returned)
        }
        Err(error) => Outcome::Raised(error),
    }
}

/// Return the exception that the arguments of `throw` describe.
pub(crate) fn thrown<'py>(
    kind: Bound<'py, PyAny>,
    value: Option<Bound<'py, PyAny>>,
    traceback: Option<Bound<'py, PyAny>>,
) -> PyResult<PyErr> {
    let py = kind.py();
    let exception = match value {
        Some(value) if !value.is_none() && !kind.is_instance(&value.get_type())? => value,
        _ if kind.is_callable() && !kind.hasattr(intern!(py, "__traceback__"))? => kind.call0()?,
        _ => kind,
    };
    if let Some(traceback) = traceback.filter(|traceback| !traceback.is_none()) {
        exception.setattr(intern!(py, "__traceback__"), traceback)?;
    }
    Ok(PyErr::from_value(exception))
}

/// Close an awaitable whose result is not needed.
pub(crate) fn closed(inner: &Bound<'_, PyAny>) -> PyResult<()> {
    match inner.getattr_opt(intern!(inner.py(), "close"))? {
        Some(close) => close.call0().map(drop),
        None => Ok(()),
    }
}
