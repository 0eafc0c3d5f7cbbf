//! `SourceGuard`: notices that a stream was dropped before it was closed.
//!
//! In: the reader of a stream, and its open source.  Out: a call of `deltafold.stream_core.abandoned`.
//!
//! A `__del__` of the stream would be a Python call for each stream, also for those that were closed.
//!
//! Law: a source that was never read, or that was released, is not reported.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyModule, PyType};

use crate::imports::ABANDONED;
use crate::stream_reader::StreamReader;

/// Guard of an open source, which the stream drops when it releases the source.
///
/// Args:
///     reader: the reader of the stream.
///     source: the open source.
///     kind: the class of the stream.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct SourceGuard {
    reader: Py<StreamReader>,
    source: Py<PyAny>,
    kind: Py<PyType>,
}

#[pymethods]
impl SourceGuard {
    #[new]
    fn new(reader: Py<StreamReader>, source: Py<PyAny>, kind: Py<PyType>) -> Self {
        reader.get().set_holding(true);
        Self { reader, source, kind }
    }

    /// Report the stream, if it was read and its source is still open.
    fn report(&self, py: Python<'_>) -> PyResult<()> {
        if !self.reader.get().is_holding() {
            return Ok(());
        }
        ABANDONED.get(py)?.call1((&self.reader, &self.source, &self.kind)).map(drop)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.reader)?;
        visit.call(&self.source)?;
        visit.call(&self.kind)
    }
}

/// Let the garbage collector report a stream that is part of a cycle, before it clears the source.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<SourceGuard>();
    class.setattr("__del__", class.getattr("report")?)
}

impl Drop for SourceGuard {
    fn drop(&mut self) {
        if !self.reader.get().is_holding() {
            return;
        }
        Python::try_attach(|py| {
            if let Err(error) = self.report(py) {
                error.write_unraisable(py, None);
            }
        });
    }
}
