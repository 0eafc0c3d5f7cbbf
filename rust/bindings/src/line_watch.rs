//! `LineWatch`: comparison of the first two chunks of a body, which may be lines that have lost their ends.
//!
//! In: the chunks of a body, up to the second one that is not empty.  Out: a `MisuseError` for lines.
//!
//! Law: Python code is called without a lock, because the watch is taken out of its place for a comparison.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

use crate::bytes::with_bytes;
use crate::imports::REFUSE_LINES;

/// State of the comparison.
#[derive(Default)]
pub(crate) enum LineWatch {
    /// No chunk was looked at.
    #[default]
    Begun,
    /// The first chunk, which has no line end.
    First(Py<PyAny>),
    /// The comparison is over.
    Over,
}

impl LineWatch {
    /// Return true after the comparison.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }

    /// Compare the next chunk.  Chunks of other types than `bytes` and `bytearray` change nothing.
    pub(crate) fn compare(self, chunk: &Bound<'_, PyAny>) -> PyResult<Self> {
        let is_bytes = chunk.is_instance_of::<PyBytes>() || chunk.is_instance_of::<PyByteArray>();
        if self.is_over() || !is_bytes {
            return Ok(self);
        }
        let (is_empty, has_line_end) = with_bytes(chunk, |bytes| {
            Ok((bytes.is_empty(), bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r'))))
        })?;
        match self {
            _ if is_empty => Ok(self),
            Self::First(first) => {
                REFUSE_LINES.get(chunk.py())?.call1((first, chunk))?;
                Ok(Self::Over)
            }
            Self::Begun if !has_line_end => Ok(Self::First(chunk.clone().unbind())),
            Self::Begun | Self::Over => Ok(Self::Over),
        }
    }
}
