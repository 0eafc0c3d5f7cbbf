//! `Callback`: a function of the caller that an object of the extension holds.
//!
//! A reference cycle may run through the function.
//!
//! Laws: the garbage collector visits and clears the callback.  Without a callback no lock is taken.  With one, the lock is
//! held only to copy the reference.

use std::sync::{Mutex, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

/// Optional function of the caller.
pub(crate) struct Callback {
    held: Option<Mutex<Option<Py<PyAny>>>>,
}

impl Callback {
    pub(crate) fn new(function: Option<Py<PyAny>>) -> Self {
        Self { held: function.map(|function| Mutex::new(Some(function))) }
    }

    /// Return the function, if there is one.
    #[inline]
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let held = self.held.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(|function| function.bind(py).clone())
    }

    /// Visit the function for the garbage collector.
    ///
    /// While another thread copies the reference, the function is skipped and so counts as referenced from outside.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.held.as_ref().map(Mutex::try_lock) {
            Some(Ok(held)) => visit.call(&*held),
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// Drop the function.  It is dropped outside the lock, because dropping may run code of the caller.
    pub(crate) fn clear(&self) {
        let taken = self
            .held
            .as_ref()
            .and_then(|held| held.lock().unwrap_or_else(PoisonError::into_inner).take());
        drop(taken);
    }
}
