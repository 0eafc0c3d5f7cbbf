//! Columns of response bodies: folding of Arrow arrays on all cores.
//!
//! In: the buffers of a column of bodies, and decoders.  Out: the buffers of the struct column of their messages.
//!
//! Laws: no Python object is made for a row, and the GIL is released while rows are folded.  A row that fails holds its error
//! and the received parts; other rows are not affected.  A row has the same message in every batch and on every machine.

use std::sync::Arc;

use deltafold::contract::ErrorCode;
use deltafold::decoder::Options;
use deltafold::detect::detect;
use deltafold::fold::MessageAssembler;
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::columns::Column;
use crate::arrow::input::{Bodies, Numbers, Piece, Pieces};
use crate::arrow::messages::{MESSAGE, Timing, push_failure, push_message, push_unread};
use crate::decode::bodies::{DEFECT, fold_one};
use crate::decode::decoder::Decoder;
use crate::support::clock::Timestamp;
use crate::support::parallel::{self, Look, Results, Stopped};

/// Bytes of bodies that one thread folds into one part of the columns.
const PART_BYTES: usize = 1 << 20;

/// Bytes that each row counts beside its body, so that many empty rows are shared out as well.
const ROW_BYTES: usize = 1 << 10;

/// Number of a row whose dialect is detected.
const DETECTED: i32 = -1;

/// Fold a column of bodies into the buffers of the column of their messages, depth first.
///
/// Args:
///     bodies: validity (or None), offsets, bytes, first row, number of rows, and whether offsets have 64 bits.
///     decoders: pairs of a name and a decoder, whose options the rows use.  The decoders are not fed.  A name without a
///         decoder is no dialect: its rows are errors.
///     detected: pairs of a dialect and a decoder, for rows whose dialect is detected.
///     codes: 32-bit numbers, one a row: a position in `decoders`, or -1 to detect the dialect; and the first row.  Without
///         codes all rows use the first decoder, or are detected if there is none.
///     statuses: 32-bit numbers, the HTTP status of each row; and the first row.
///     pieces: validity and offsets of the pieces of each body with their first row, then seconds and sizes, each with its
///         first row.
///     threads: number of threads; the default is the number of cores.
///
/// Raises:
///     ValueError: `threads` is 0, or the array is invalid.
///     OverflowError: a column of the result is larger than 2 GiB.
#[pyfunction]
#[pyo3(signature = (bodies, decoders, detected, *, codes=None, statuses=None, pieces=None, threads=None))]
#[expect(clippy::needless_pass_by_value, reason = "what Python hands over")]
#[expect(clippy::too_many_arguments, reason = "one keyword a column")]
pub(crate) fn fold_columns<'py>(
    py: Python<'py>,
    bodies: Bodies,
    decoders: Vec<(String, Option<Bound<'py, Decoder>>)>,
    detected: Vec<(String, Option<Bound<'py, Decoder>>)>,
    codes: Option<Numbers>,
    statuses: Option<Numbers>,
    pieces: Option<Pieces>,
    threads: Option<usize>,
) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
    let job = Job {
        rows: bodies.rows()?,
        now: match decoders.iter().chain(&detected).find_map(|(_, decoder)| decoder.as_ref()) {
            Some(decoder) => decoder.get().now(py)?,
            None => Timestamp::now(),
        },
        decoders: with_options(py, decoders)?,
        detected: with_options(py, detected)?,
        codes,
        statuses,
        pieces,
    };
    let parts = job.parts();
    let threads = parallel::thread_count(threads, parts.len())?;
    let buffers = py.detach(|| {
        let folded = Results::of(parts.len());
        let fold = |part: usize, look: Look<'_>| {
            let rows = parts.get(part).copied().unwrap_or_default();
            folded.keep(part, job.fold(rows, look)?);
            Ok(())
        };
        parallel::work_on(parts.len(), threads, &|_| PART_BYTES, &fold)?;
        let mut all = Column::new(MESSAGE);
        folded.in_order().try_for_each(|part| part.map(|part| all.append(part)))?;
        let mut buffers = Vec::new();
        all.write(&mut buffers).map_err(|_| {
            PyOverflowError::new_err(
                "a column of the messages is larger than 2 GiB: fold fewer rows at once",
            )
        })?;
        Ok::<_, PyErr>(buffers)
    })?;
    let bytes = |buffer: Option<Vec<u8>>| buffer.map(|buffer| PyBytes::new(py, &buffer));
    Ok(buffers.into_iter().map(bytes).collect())
}

/// Name and options of a decoder; no options for a name that is no dialect.
type Named = (String, Option<Options>);

fn with_options(
    py: Python<'_>,
    decoders: Vec<(String, Option<Bound<'_, Decoder>>)>,
) -> PyResult<Vec<Named>> {
    let options = decoders.into_iter().map(|(name, decoder)| {
        Ok((name, decoder.map(|decoder| decoder.get().options(py)).transpose()?))
    });
    options.collect()
}

/// Rows to fold.
struct Job<'a> {
    rows: Vec<Option<&'a [u8]>>,
    now: Timestamp,
    decoders: Vec<Named>,
    detected: Vec<Named>,
    codes: Option<Numbers>,
    statuses: Option<Numbers>,
    pieces: Option<Pieces>,
}

impl Job<'_> {
    /// Divide the rows into ranges of about the same number of bytes.
    fn parts(&self) -> Vec<(usize, usize)> {
        let mut parts = Vec::new();
        let (mut start, mut bytes) = (0, 0);
        for (at, row) in self.rows.iter().enumerate() {
            bytes += row.map_or(0, <[u8]>::len) + ROW_BYTES;
            if bytes >= PART_BYTES {
                parts.push((start, at + 1));
                (start, bytes) = (at + 1, 0);
            }
        }
        if start < self.rows.len() {
            parts.push((start, self.rows.len()));
        }
        parts
    }

    /// Fold a range of rows.  The inner error is a mistake in the array, which ends the call.
    fn fold(
        &self,
        (start, end): (usize, usize),
        look: Look<'_>,
    ) -> Result<PyResult<Column>, Stopped> {
        let mut messages = Column::new(MESSAGE);
        for (row, body) in self.rows.iter().enumerate().take(end).skip(start) {
            let Some(body) = body else {
                messages.push_null();
                continue;
            };
            if let Err(error) = self.fold_row(row, body, &mut messages, look)? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(messages))
    }

    fn fold_row(
        &self,
        row: usize,
        body: &[u8],
        messages: &mut Column,
        look: Look<'_>,
    ) -> Result<PyResult<()>, Stopped> {
        let (named, status, pieces) = match self.facts(row, body) {
            Ok(facts) => facts,
            Err(error) => return Ok(Err(error)),
        };
        let Some((name, options)) = named else {
            let message = "the first bytes of the body fit no dialect";
            push_failure(messages, None, ErrorCode::ProtocolError, message);
            return Ok(Ok(()));
        };
        let Some(options) = options else {
            push_unread(
                messages,
                ErrorCode::ProtocolError,
                &format!("there is no dialect {name:?}"),
            );
            return Ok(Ok(()));
        };
        let mut options = options.clone();
        if let Some(status) = status {
            options.stream.response.status = status;
        }
        let run_id = Arc::clone(&options.stream.run_id);
        let mut clock = Clock::new(pieces.as_deref());
        let cut: Vec<&[u8]> = match &pieces {
            Some(pieces) if !pieces.is_empty() => pieces.iter().map(|(_, piece)| *piece).collect(),
            _ => vec![body],
        };
        let state = fold_one(options, self.now, &cut, look, &mut |piece, state| {
            clock.arrived(piece, state.core());
        })?;
        match state {
            Some(state) => push_message(messages, name, state.core(), &run_id, clock.timing()),
            None => push_failure(messages, Some(name), ErrorCode::ProtocolError, DEFECT),
        }
        Ok(Ok(()))
    }

    /// Return what is known of a row beside its body: its decoder, its status, its pieces.
    #[expect(clippy::type_complexity, reason = "three facts of one row")]
    fn facts<'a>(
        &'a self,
        row: usize,
        body: &'a [u8],
    ) -> PyResult<(Option<&'a Named>, Option<u16>, Option<Vec<Piece<'a>>>)> {
        let default = if self.decoders.is_empty() { DETECTED } else { 0 };
        let code = self.codes.as_ref().map_or(Ok(default), |codes| codes.get(row))?;
        let named = if code == DETECTED {
            detect(body, None)
                .first()
                .and_then(|name| self.detected.iter().find(|(detected, _)| detected == name))
        } else {
            let known = usize::try_from(code).ok().and_then(|code| self.decoders.get(code));
            Some(known.ok_or_else(|| PyIndexError::new_err("a row has an unknown dialect"))?)
        };
        let status = self.statuses.as_ref().map(|statuses| statuses.get(row)).transpose()?;
        let status = status.map(|status| u16::try_from(status).unwrap_or(0));
        let pieces = self.pieces.as_ref().map(|pieces| pieces.cut(row, body)).transpose()?;
        Ok((named, status, pieces))
    }
}

/// Clock of a recorded stream.
struct Clock<'a> {
    pieces: &'a [Piece<'a>],
    timing: Timing,
}

impl<'a> Clock<'a> {
    fn new(pieces: Option<&'a [Piece<'a>]>) -> Self {
        Self { pieces: pieces.unwrap_or_default(), timing: Timing::default() }
    }

    /// Note what a piece of the body has brought.
    fn arrived(&mut self, piece: usize, message: &MessageAssembler) {
        let Some((after, bytes)) = self.pieces.get(piece) else { return };
        let timing = &mut self.timing;
        timing.duration += after;
        let now = timing.duration;
        if !bytes.is_empty() {
            timing.first_byte.get_or_insert(now);
        }
        if message.last_seq() > 0 {
            timing.first_delta.get_or_insert(now);
        }
        if message.has_text() {
            timing.first_text.get_or_insert(now);
        }
    }

    /// Return the times; `None` if they were not recorded.
    fn timing(&self) -> Option<Timing> {
        (!self.pieces.is_empty()).then_some(self.timing)
    }
}
