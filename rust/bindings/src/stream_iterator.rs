//! `StreamIterator`: the synchronous ways to read a stream.
//!
//! In: the state of a stream, and the Python half that owns the source.  Out: deltas, batches or texts.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::batch::DeltaBatch;
use crate::stream_reader::{Form, StreamReader};

/// Reads of one call between two checks for signals.
const READS_BETWEEN_SIGNALS: usize = 64;

/// Iterator over a synchronous stream.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct StreamIterator {
    reader: Py<StreamReader>,
    stream: Py<PyAny>,
    form: Form,
}

impl StreamIterator {
    /// Read until there is a value of the form; `None` at the end.
    fn next_value<'py>(
        this: &Bound<'py, StreamReader>,
        stream: &Bound<'py, PyAny>,
        form: Form,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, reader) = (this.py(), this.get());
        if let Some(value) = reader.pending_value(py, form)? {
            return Ok(Some(value));
        }
        Self::read(this, stream, form).and_then(|found| match found {
            Some(value) => Ok(Some(value)),
            None => Self::finish(this, stream, form),
        })
    }

    /// Read chunks until there is a value of the form; `None` after the last one.
    fn read<'py>(
        this: &Bound<'py, StreamReader>,
        stream: &Bound<'py, PyAny>,
        form: Form,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, reader) = (this.py(), this.get());
        if reader.has_ended() {
            return Ok(None);
        }
        let _reading = reader.begin(py)?;
        let mut chunks = None;
        for count in 1_usize.. {
            if reader.has_ended() {
                break;
            }
            let read = Self::next_chunk(reader, stream, &mut chunks).and_then(|chunk| {
                // No code of Python runs between the chunks of a built-in iterable.
                if count % READS_BETWEEN_SIGNALS == 0 {
                    py.check_signals()?;
                }
                Ok(chunk)
            });
            if let Ok(Some(chunk)) = &read {
                StreamReader::note_chunk(this, chunk)?;
            }
            let slow = match read {
                Ok(Some(chunk)) => match reader.tee(stream, &chunk)? {
                    Some(handled) => Ok(handled),
                    None if reader.is_diverted() => {
                        stream.call_method1(intern!(py, "_received"), (chunk,))
                    }
                    None => match StreamReader::absorb(this, form, &chunk)? {
                        Some(value) => return Ok(Some(value)),
                        None => continue,
                    },
                },
                Ok(None) => stream.call_method1(intern!(py, "_received"), (py.None(),)),
                Err(error) => stream.call_method1(intern!(py, "_failed"), (error.into_value(py),)),
            };
            let batch = slow?.cast_into::<DeltaBatch>()?;
            if let Some(value) = StreamReader::deliver_batch(this, form, &batch)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Release the source after the last value.
    fn finish<'py>(
        this: &Bound<'py, StreamReader>,
        stream: &Bound<'py, PyAny>,
        form: Form,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, reader) = (this.py(), this.get());
        if reader.let_go(py)? {
            stream.call_method0(intern!(py, "_finish"))?;
        }
        if form == Form::Texts && reader.has_failed(py)? {
            this.call_method0(intern!(py, "final_message"))?;
        }
        Ok(None)
    }

    /// Return the next chunk.  `known` keeps the iterator between the reads of one call.
    fn next_chunk<'py>(
        reader: &StreamReader,
        stream: &Bound<'py, PyAny>,
        known: &mut Option<(usize, Bound<'py, PyIterator>)>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = stream.py();
        if let Some((changes, chunks)) = known
            && *changes == reader.changes()
        {
            return chunks.next().transpose();
        }
        let chunks = if let Some(chunks) = reader.chunks(py)? {
            chunks
        } else {
            let chunks = stream.call_method0(intern!(py, "_begin"))?;
            reader.set_chunks(py, Some(chunks.clone().unbind()))?;
            chunks
        };
        let changes = reader.changes();
        let (_, chunks) = known.insert((changes, chunks.cast_into::<PyIterator>()?));
        chunks.next().transpose()
    }
}

#[pymethods]
impl StreamIterator {
    /// Iterate over the deltas.
    #[staticmethod]
    fn deltas(reader: Py<StreamReader>, stream: Py<PyAny>) -> Self {
        Self { reader, stream, form: Form::Deltas }
    }

    /// Iterate over the deltas of each read.
    #[staticmethod]
    fn batches(reader: Py<StreamReader>, stream: Py<PyAny>) -> Self {
        Self { reader, stream, form: Form::Batches }
    }

    /// Iterate over the text.
    #[staticmethod]
    fn texts(reader: Py<StreamReader>, stream: Py<PyAny>) -> Self {
        Self { reader, stream, form: Form::Texts }
    }

    /// Fold the stream to its end.
    #[staticmethod]
    fn read_to_end(reader: &Bound<'_, StreamReader>, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::next_value(reader, stream, Form::Folded).map(drop)
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Self::next_value(self.reader.bind(py), self.stream.bind(py), self.form)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.reader)?;
        visit.call(&self.stream)
    }
}
