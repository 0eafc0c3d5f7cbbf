//! Columns that Python hands over: the buffers of Arrow arrays, read in place.
//!
//! In: objects with the buffer protocol.  Out: rows as byte slices, and numbers.
//!
//! Laws: nothing is copied.  Offsets are not trusted: a row outside of its buffer is an error of the caller.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Buffer of an Arrow array.  The exporter keeps its memory until the buffer is dropped.
pub(crate) struct Bytes(PyBuffer<u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for Bytes {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::get(&value)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("a buffer of an Arrow array is contiguous"));
        }
        Ok(Self(buffer))
    }
}

impl Bytes {
    /// Return the bytes, which other threads may read while Python runs.
    #[expect(unsafe_code, reason = "a copy of each batch would cost its size in memory")]
    pub(crate) fn as_slice(&self) -> &[u8] {
        let Some(bytes) = self.0.as_slice_ptr().filter(|bytes| !bytes.is_empty()) else {
            return &[];
        };
        // SAFETY: the exporter keeps the memory as long as the buffer lives, and the slice borrows from the buffer.  The
        // memory of an Arrow array is immutable by the format, which every reader of the array relies on.
        unsafe { bytes.as_ref() }
    }
}

/// Read the number `at` of a buffer of numbers.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    let start = at.checked_mul(N)?;
    bytes.get(start..start.checked_add(N)?)?.try_into().ok()
}

/// Read the bit of a row in a validity buffer.
fn is_valid(validity: &[u8], at: usize) -> Option<bool> {
    Some(validity.get(at / 8)? >> (at % 8) & 1 == 1)
}

fn outside() -> PyErr {
    PyValueError::new_err("the array is invalid: a row lies outside of its buffers")
}

/// Column of bodies.
#[derive(FromPyObject)]
pub(crate) struct Bodies(Option<Bytes>, Bytes, Bytes, usize, usize, bool);

impl Bodies {
    /// Return the bodies; a null is `None`.
    pub(crate) fn rows(&self) -> PyResult<Vec<Option<&[u8]>>> {
        let Self(validity, offsets, data, first, count, large) = self;
        let (validity, offsets, data) =
            (validity.as_ref().map(Bytes::as_slice), offsets.as_slice(), data.as_slice());
        let offset = |at: usize| {
            let offset = if *large {
                i64::from_ne_bytes(number(offsets, at)?)
            } else {
                i64::from(i32::from_ne_bytes(number(offsets, at)?))
            };
            usize::try_from(offset).ok()
        };
        let row = |at: usize| {
            if let Some(validity) = validity
                && !is_valid(validity, at)?
            {
                return Some(None);
            }
            data.get(offset(at)?..offset(at.checked_add(1)?)?).map(Some)
        };
        let end = first.checked_add(*count).ok_or_else(outside)?;
        (*first..end).map(|at| row(at).ok_or_else(outside)).collect()
    }
}

/// Column of 32-bit numbers without a null, and its first row.
#[derive(FromPyObject)]
pub(crate) struct Numbers(Bytes, usize);

impl Numbers {
    pub(crate) fn get(&self, row: usize) -> PyResult<i32> {
        let at = self.1.checked_add(row).ok_or_else(outside)?;
        number(self.0.as_slice(), at).map(i32::from_ne_bytes).ok_or_else(outside)
    }
}

/// Column of lists of pieces: validity and offsets with their first row, then seconds and sizes, each with its first row.
#[derive(FromPyObject)]
pub(crate) struct Pieces(Option<Bytes>, Bytes, usize, Bytes, usize, Bytes, usize);

/// Piece of a body: the seconds of silence before it, and its bytes.
pub(crate) type Piece<'a> = (f64, &'a [u8]);

impl Pieces {
    /// Cut a body into its pieces; a null has none.  Bytes beyond the last piece belong to it; pieces beyond the body are
    /// empty.
    pub(crate) fn cut<'a>(&self, row: usize, body: &'a [u8]) -> PyResult<Vec<Piece<'a>>> {
        let Self(validity, offsets, first, seconds, first_seconds, sizes, first_size) = self;
        if let Some(validity) = validity {
            let at = first.checked_add(row).ok_or_else(outside)?;
            if !is_valid(validity.as_slice(), at).ok_or_else(outside)? {
                return Ok(Vec::new());
            }
        }
        let (offsets, seconds, sizes) = (offsets.as_slice(), seconds.as_slice(), sizes.as_slice());
        let offset = |at: usize| {
            usize::try_from(i32::from_ne_bytes(number(offsets, first.checked_add(at)?)?)).ok()
        };
        let mut rest = body;
        let mut piece = |at: usize| {
            let after = number(seconds, first_seconds.checked_add(at)?).map(f64::from_ne_bytes)?;
            let size = number(sizes, first_size.checked_add(at)?).map(i64::from_ne_bytes)?;
            let size = usize::try_from(size).unwrap_or(0).min(rest.len());
            let (piece, later) = rest.split_at_checked(size)?;
            rest = later;
            Some((after, piece))
        };
        let range = offset(row).zip(offset(row + 1)).ok_or_else(outside)?;
        let pieces = (range.0..range.1).map(|at| piece(at).ok_or_else(outside));
        let mut pieces = pieces.collect::<PyResult<Vec<_>>>()?;
        if let Some((_, last)) = pieces.last_mut() {
            *last = body.get(body.len() - rest.len() - last.len()..).unwrap_or(last);
        }
        Ok(pieces)
    }
}
