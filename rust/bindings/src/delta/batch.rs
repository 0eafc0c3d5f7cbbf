//! `DeltaBatch`: the deltas of one feed.
//!
//! In: a batch of the core.  Out: a Python sequence of `MessageDelta` objects.
//!
//! Law: a `MessageDelta` is built only when it is accessed.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use deltafold::contract::{DeltaBatch as Core, DeltaKind, Output as _};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::delta::message_delta::MessageDelta;
use crate::support::clock::{self, Timestamp};

/// Deltas of one feed, oldest first: a sequence that builds its `MessageDelta` objects on access.
///
/// Example:
///     >>> event = b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n'
///     >>> batch = Decoder("openai-chat").feed(event)
///     >>> len(batch), batch[-1].text
///     (2, 'Hi')
#[pyclass(frozen, module = "deltafold._core", sequence)]
pub(crate) struct DeltaBatch {
    pub(crate) core: Core,
    run_id: Py<PyString>,
    pub(crate) now: Timestamp,
}

impl DeltaBatch {
    pub(crate) fn new(core: Core, run_id: Py<PyString>, now: Timestamp) -> Self {
        Self { core, run_id, now }
    }

    pub(crate) fn run_id_str<'a>(&'a self, py: Python<'a>) -> PyResult<&'a str> {
        self.run_id.bind(py).to_str()
    }

    fn delta<'py>(
        &self,
        py: Python<'py>,
        position: usize,
    ) -> PyResult<Option<Bound<'py, MessageDelta>>> {
        delta(py, &self.core, &self.run_id, position, self.now)
    }
}

/// Build the delta at a position of a batch.
pub(crate) fn delta<'py>(
    py: Python<'py>,
    batch: &Core,
    run_id: &Py<PyString>,
    position: usize,
    now: Timestamp,
) -> PyResult<Option<Bound<'py, MessageDelta>>> {
    if let Some(delta) = batch.text_only(position) {
        return MessageDelta::from_text_only(py, run_id, batch.seq(position), delta, now).map(Some);
    }
    batch.get(position).map(|delta| MessageDelta::from_core(py, run_id, &delta, now)).transpose()
}

#[pymethods]
impl DeltaBatch {
    #[getter]
    fn run_id(&self, py: Python<'_>) -> Py<PyString> {
        self.run_id.clone_ref(py)
    }

    /// Time of the feed: an aware datetime in UTC.
    #[getter]
    fn timestamp<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        clock::to_datetime(py, self.now)
    }

    /// Visible text of these deltas, joined.
    #[getter]
    fn text(&self) -> Cow<'_, str> {
        self.core.text()
    }

    /// True if the last of these deltas ends the stream: done, or error.
    #[getter]
    fn ends_stream(&self) -> bool {
        let last = self.core.kind(self.core.len().saturating_sub(1));
        matches!(last, Some(DeltaKind::Done | DeltaKind::Error))
    }

    /// Return a copy with another message and provider code in its final error; `None` if the batch ends without an error.
    ///
    /// The Python half uses it to remove a secret that the provider repeated in its message.
    fn _with_error_texts(
        &self,
        py: Python<'_>,
        message: &str,
        provider_code: Option<&str>,
    ) -> Option<Self> {
        let core = self.core.with_error_texts(message.into(), provider_code.map(Into::into))?;
        Some(Self { core, run_id: self.run_id.clone_ref(py), now: self.now })
    }

    /// Return a batch of deltas of one run whose numbers follow one another; `None` without a delta.
    ///
    /// The Python half uses it for the deltas of an answer that another one continues.
    #[staticmethod]
    #[pyo3(signature = (deltas, /))]
    fn _of(py: Python<'_>, deltas: &Bound<'_, PyList>) -> PyResult<Option<Self>> {
        let mut core = Core::default();
        let mut batch = None;
        for delta in deltas {
            let delta = delta.cast::<MessageDelta>()?.get();
            core.delta(&delta.as_core(py)?);
            batch = Some((PyString::new(py, delta.run_id_str(py)?).unbind(), delta.now()));
        }
        Ok(batch.map(|(run_id, now)| Self { core, run_id, now }))
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: isize,
    ) -> PyResult<Bound<'py, MessageDelta>> {
        let position = if index < 0 {
            self.core.len().checked_sub(index.unsigned_abs())
        } else {
            Some(index.unsigned_abs())
        };
        let delta = position.map(|position| self.delta(py, position)).transpose()?.flatten();
        delta.ok_or_else(|| PyIndexError::new_err("batch index out of range"))
    }

    fn __iter__(this: &Bound<'_, Self>) -> DeltaBatchIterator {
        DeltaBatchIterator { batch: this.clone().unbind(), next: AtomicUsize::new(0) }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<DeltaBatch of {} deltas, run {}>", self.core.len(), self.run_id_str(py)?))
    }
}

/// Iterator over a batch.
///
/// Without a GIL, threads that share an iterator may get the same delta twice, as with built-in iterators.  No delta is
/// lost.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct DeltaBatchIterator {
    batch: Py<DeltaBatch>,
    /// Read and written in two steps, because one atomic step costs as much as building a small object.
    next: AtomicUsize,
}

#[pymethods]
impl DeltaBatchIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, MessageDelta>>> {
        let position = self.next.load(Ordering::Relaxed);
        let delta = self.batch.get().delta(py, position)?;
        self.next.store(position + usize::from(delta.is_some()), Ordering::Relaxed);
        Ok(delta)
    }
}
