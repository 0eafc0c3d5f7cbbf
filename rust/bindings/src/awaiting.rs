//! Drive awaitables of Python, as an `await` expression does.
//!
//! In: an awaitable, and the event loop's answer.  Out: a value for the event loop, the result, or the exception.
//!
//! Laws: values that an awaitable yields and exceptions that the event loop throws are passed on unchanged.

use pyo3::exceptions::PyStopIteration;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use pyo3::types::iterator::PySendResult;

/// Outcome of driving an awaitable until it waits or ends.
pub(crate) enum Outcome<'py> {
    /// It yielded this to the event loop.
    Yielded(Bound<'py, PyAny>),
    Returned(Bound<'py, PyAny>),
    Raised(PyErr),
}

/// Return the iterator that drives an awaitable.
pub(crate) fn awaited(awaitable: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = awaitable.py();
    match awaitable.getattr_opt(intern!(py, "__await__"))? {
        Some(method) => method.call0(),
        // A coroutine that is a generator is its own iterator.
        None => Ok(awaitable),
    }
}

/// Resume with the event loop's answer.
pub(crate) fn resumed<'py>(inner: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> Outcome<'py> {
    let sent = inner.cast::<PyIterator>().map_err(PyErr::from);
    match sent.and_then(|inner| inner.send(value)) {
        Ok(PySendResult::Next(value)) => Outcome::Yielded(value),
        Ok(PySendResult::Return(value)) => Outcome::Returned(value),
        Err(error) => Outcome::Raised(error),
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
