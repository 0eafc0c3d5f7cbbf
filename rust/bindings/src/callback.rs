//! A callback of the caller: the member of an object of the extension through which a reference cycle may run.
//!
//! Laws: the garbage collector visits and clears the callback.  Without a callback nothing is locked; with one, the lock is
//! held only to copy the reference.

use std::sync::{Mutex, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

/// An optional function.
pub(crate) struct Callback {
    held: Option<Mutex<Option<Py<PyAny>>>>,
}

impl Callback {
    pub(crate) fn new(function: Option<Py<PyAny>>) -> Self {
        Self { held: function.map(|function| Mutex::new(Some(function))) }
    }

    /// The function, `None` where none was given.
    #[inline]
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let held = self.held.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(|function| function.bind(py).clone())
    }

    /// Shows it to the garbage collector.  While another thread copies it, it counts as referenced from outside.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.held.as_ref().map(Mutex::try_lock) {
            Some(Ok(held)) => visit.call(&*held),
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// Gives it up; it is dropped outside the lock, since that may run code of the caller's.
    pub(crate) fn clear(&self) {
        let taken = self
            .held
            .as_ref()
            .and_then(|held| held.lock().unwrap_or_else(PoisonError::into_inner).take());
        drop(taken);
    }
}
