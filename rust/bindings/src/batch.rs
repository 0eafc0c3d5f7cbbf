//! `DeltaBatch`: the deltas of one feed.

use std::borrow::Cow;

use deltafold::batch::DeltaBatch as Core;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::clock;
use crate::delta::MessageDelta;

/// The deltas of one feed, oldest first: a sequence that makes its `MessageDelta` objects when they are looked at.
///
/// Example:
///     >>> batch = Decoder("openai-chat").feed(b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n')
///     >>> len(batch), batch[-1].text
///     (2, 'Hi')
#[pyclass(frozen, module = "deltafold._core", sequence)]
pub(crate) struct DeltaBatch {
    pub(crate) core: Core,
    run_id: Py<PyString>,
}

impl DeltaBatch {
    pub(crate) fn new(core: Core, run_id: Py<PyString>) -> Self {
        Self { core, run_id }
    }

    pub(crate) fn run_id_str<'a>(&'a self, py: Python<'a>) -> PyResult<&'a str> {
        self.run_id.bind(py).to_str()
    }

    fn delta(&self, py: Python<'_>, position: usize) -> Option<MessageDelta> {
        let delta = self.core.get(position)?;
        Some(MessageDelta::from_core(py, self.run_id.clone_ref(py), &delta, self.core.now()))
    }
}

#[pymethods]
impl DeltaBatch {
    #[getter]
    fn run_id(&self, py: Python<'_>) -> Py<PyString> {
        self.run_id.clone_ref(py)
    }

    /// When the feed was: an aware datetime in UTC.
    #[getter]
    fn timestamp<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        clock::to_datetime(py, self.core.now())
    }

    /// The visible text of these deltas, joined.
    #[getter]
    fn text(&self) -> Cow<'_, str> {
        self.core.text()
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    fn __getitem__(&self, py: Python<'_>, index: isize) -> PyResult<MessageDelta> {
        let position = if index < 0 {
            self.core.len().checked_sub(index.unsigned_abs())
        } else {
            Some(index.unsigned_abs())
        };
        position
            .and_then(|position| self.delta(py, position))
            .ok_or_else(|| PyIndexError::new_err("batch index out of range"))
    }

    fn __iter__(this: &Bound<'_, Self>) -> DeltaBatchIterator {
        DeltaBatchIterator {
            batch: this.clone().unbind(),
            next: std::sync::atomic::AtomicUsize::new(0),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<DeltaBatch of {} deltas, run {}>", self.core.len(), self.run_id_str(py)?))
    }
}

/// Iterates a batch.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct DeltaBatchIterator {
    batch: Py<DeltaBatch>,
    next: std::sync::atomic::AtomicUsize,
}

#[pymethods]
impl DeltaBatchIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> Option<MessageDelta> {
        let position = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.batch.get().delta(py, position)
    }
}
