//! `CallLimits`: the timeouts of a call that has begun, and the seconds until the whole call must end.
//!
//! In: the timeouts of the call, in seconds.  Out: the limit that a wait reaches first, and its seconds; a watch that obeys it.
//!
//! The Python half derives the errors that name a limit from this class: `failed(exception, limit, is_late)` returns the
//! exception to raise.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::watch::Watch;

/// Timeouts of a call that has begun.
///
/// Args:
///     timeouts: the waiting times in seconds, with the members of `deltafold.Timeouts`.
#[pyclass(frozen, subclass, module = "deltafold._core")]
pub(crate) struct CallLimits {
    #[pyo3(get)]
    timeouts: Py<PyAny>,
    /// Time at which the whole call has to be over.
    ends: Mutex<Option<Instant>>,
}

impl CallLimits {
    fn ends(&self) -> MutexGuard<'_, Option<Instant>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Return the seconds of a timeout; `None` if it is not set.
    pub(crate) fn seconds(&self, limit: &Bound<'_, PyString>) -> PyResult<Option<f64>> {
        self.timeouts.bind(limit.py()).getattr(limit)?.extract()
    }

    /// Shorten the seconds of a wait to those until the whole call has to be over.  Return true if it is shortened.
    pub(crate) fn shorten(&self, seconds: Option<f64>) -> (Option<f64>, bool) {
        let Some(ends) = *self.ends() else { return (seconds, false) };
        let left = ends.saturating_duration_since(Instant::now()).as_secs_f64();
        match seconds {
            Some(seconds) if seconds < left => (Some(seconds), false),
            _ => (Some(left), true),
        }
    }
}

#[pymethods]
impl CallLimits {
    #[new]
    fn new(timeouts: Bound<'_, PyAny>) -> PyResult<Self> {
        let total: Option<f64> = timeouts.getattr(intern!(timeouts.py(), "total"))?.extract()?;
        Ok(Self { timeouts: timeouts.unbind(), ends: Mutex::new(total.and_then(after)) })
    }

    /// Return the limit that a wait reaches first, and how many seconds are left until then.
    fn of<'py>(
        &self,
        limit: Bound<'py, PyString>,
    ) -> PyResult<(Bound<'py, PyString>, Option<f64>)> {
        let (seconds, by_total) = self.shorten(self.seconds(&limit)?);
        let first = if by_total { intern!(limit.py(), "total").clone() } else { limit };
        Ok((first, seconds))
    }

    /// Limit the current wait of a watch from now on, and return the name of the limit that ends it first.
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
    fn allow<'py>(
        &self,
        limit: Bound<'py, PyString>,
        watch: Watch,
    ) -> PyResult<Bound<'py, PyString>> {
        let (first, seconds) = self.of(limit)?;
        watch.allow(first.py(), seconds)?;
        Ok(first)
    }

    /// Let the call take so many seconds at most from now on.
    fn end_within(&self, seconds: f64) {
        let sooner = after(seconds);
        let mut ends = self.ends();
        *ends = ends.into_iter().chain(sooner).min();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.timeouts)
    }
}

/// Return the time so many seconds from now; `None` if no clock reaches it.
fn after(seconds: f64) -> Option<Instant> {
    Instant::now().checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}
