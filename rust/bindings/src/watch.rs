//! `Watch`: what limits the waits of a call, under asyncio or under another event loop.
//!
//! In: an argument of Python.  Out: a `TaskWatch`, or any other object that limits a wait by a scope around it: `watch(seconds,
//! read)` returns an awaitable, and `watch.allow(seconds)` moves the end of the current wait.

use std::convert::Infallible;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;

use crate::task_watch::TaskWatch;

/// Limiter of the waits.
pub(crate) enum Watch {
    Task(Py<TaskWatch>),
    Scope(Py<PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Watch {
    type Error = Infallible;

    fn extract(watch: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(match watch.cast::<TaskWatch>() {
            Ok(watch) => Self::Task(watch.to_owned().unbind()),
            Err(_) => Self::Scope(watch.to_owned().unbind()),
        })
    }
}

impl Watch {
    /// Let the current wait take so many seconds from now on; `None` removes the limit.
    pub(crate) fn allow(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        match self {
            Self::Task(watch) => watch.get().allow(py, seconds),
            Self::Scope(watch) => {
                watch.call_method1(py, intern!(py, "allow"), (seconds,)).map(drop)
            }
        }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Task(watch) => visit.call(watch),
            Self::Scope(watch) => visit.call(watch),
        }
    }
}
