//! The framing alone: `EventFramer`, for readers that parse the data of events themselves, and `event_ends`, for those that
//! show the bytes of events.
//!
//! In: bytes of a body in any chunking, or a whole body.  Out: pairs of an event's name and its data, or offsets.
//!
//! Laws: the framing is that of the decoder (`framing`).  The pairs do not depend on the chunking.  No pair is built under
//! the lock.

use std::ops::{ControlFlow, Range};

use deltafold::dialect;
use deltafold::framing::sniff::{BodyKind, BodySniffer};
use deltafold::framing::{Frame, Framer, Framing};
use deltafold::json::write_string;
use deltafold::limits::Limits;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::support::bytes::with_bytes;
use crate::support::errors;
use crate::support::try_lock::TryLock;

const NAME: &str = "event framer";

/// Names and data of events, in one buffer.
#[derive(Default)]
struct Events {
    bytes: Vec<u8>,
    /// Ranges of the name and of the data of each event.
    ranges: Vec<(Range<usize>, Range<usize>)>,
    /// True if the bytes are malformed.
    broken: bool,
}

impl Events {
    fn take(&mut self, frame: Frame<'_>) -> ControlFlow<()> {
        match frame {
            Frame::Event { data: [], .. } | Frame::Stray { .. } => {}
            Frame::Event { name, data, .. } => self.push(&[name], data),
            Frame::Failure { code, message: b"", data } => self.push(&[b":", code], data),
            Frame::Failure { code, message, .. } => {
                let mut data = String::from("{\"message\":");
                write_string(&mut data, &String::from_utf8_lossy(message));
                data.push('}');
                self.push(&[b":", code], data.as_bytes());
            }
            Frame::Corrupt { .. } | Frame::TooLong => {
                self.broken = true;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn push(&mut self, name: &[&[u8]], data: &[u8]) {
        let start = self.bytes.len();
        for piece in name {
            self.bytes.extend_from_slice(piece);
        }
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(data);
        self.ranges.push((start..middle, middle..self.bytes.len()));
    }

    fn list(self, py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
        let piece =
            |range: Range<usize>| PyBytes::new(py, self.bytes.get(range).unwrap_or_default());
        PyList::new(py, self.ranges.into_iter().map(|(name, data)| (piece(name), piece(data))))
    }
}

struct State {
    framer: Framer,
    broken: bool,
}

impl State {
    fn read(&mut self, work: impl FnOnce(&mut Framer, &mut Events) -> ControlFlow<()>) -> Events {
        let mut events = Events::default();
        // After malformed bytes, nothing is known of the bytes that follow.
        if !self.broken {
            let _ = work(&mut self.framer, &mut events);
            self.broken = events.broken;
        }
        events
    }
}

/// Splits the bytes of a body into events: pairs of a name and of data.
///
/// An event may have 32 MiB, as in a `Decoder` without limits of its own; a longer one counts as malformed.
/// The name is empty if the event has none. Events without data are skipped. A failure that the framing itself reports has
/// `:` and its code as its name.
///
/// Args:
///     framing: `sse` for server-sent events, `aws-event-stream` for binary frames.
///
/// Raises:
///     ValueError: no framing has this name.
///     MisuseError: a method was called while another thread is inside one.
///
/// Example:
///     >>> EventFramer().feed(b"event: ping\ndata: {}\n\n")
///     [(b'ping', b'{}')]
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct EventFramer {
    state: TryLock<State>,
}

#[pymethods]
impl EventFramer {
    #[new]
    #[pyo3(signature = (framing="sse"))]
    fn new(framing: &str) -> PyResult<Self> {
        let framing = match framing {
            "sse" => Framing::Sse,
            "aws-event-stream" => Framing::AwsEventStream,
            _ => return Err(PyValueError::new_err(format!("there is no framing {framing:?}"))),
        };
        let framer = Framer::new(framing, Limits::default().event_bytes);
        Ok(Self { state: TryLock::new(State { framer, broken: false }) })
    }

    /// True after malformed bytes, which end the events.
    #[getter]
    fn broken(&self, py: Python<'_>) -> PyResult<bool> {
        errors::guarded(py, &self.state, NAME, |state| state.broken)
    }

    /// Return the events that a chunk completes.  The chunk may end anywhere.
    #[pyo3(signature = (chunk, /))]
    fn feed<'py>(&self, chunk: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = chunk.py();
        let events = with_bytes(chunk, |bytes| {
            errors::guarded(py, &self.state, NAME, |state| {
                state.read(|framer, events| {
                    framer.feed(bytes, |frame: Frame<'_>| events.take(frame))
                })
            })
        })?;
        events.list(py)
    }

    /// Return the event at the end of the body that no blank line ended, in a list.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let events = errors::guarded(py, &self.state, NAME, |state| {
            state.read(|framer, events| framer.close(|frame: Frame<'_>| events.take(frame)))
        })?;
        events.list(py)
    }
}

/// Return the offsets at which the events of a whole body end, in rising order.
///
/// The framing is chosen as a decoder of `dialect` chooses it.  A frame of the framing ends an event, and so does the
/// blank line after a comment of server-sent events.  Separators after an event belong to it.  Bytes after the last offset
/// are an event that the framing did not end.  A body without a framing, such as an HTML page, has no offsets.
///
/// Raises:
///     UnknownDialectError: there is no such dialect.
#[pyfunction]
pub(crate) fn event_ends(
    py: Python<'_>,
    body: &Bound<'_, PyBytes>,
    dialect: &str,
) -> PyResult<Vec<usize>> {
    let row = dialect::find(dialect)
        .ok_or_else(|| errors::unknown_dialect(py, &format!("unknown dialect {dialect:?}")))?;
    let body = body.as_bytes();
    let max_bytes = Limits::default().event_bytes;
    match BodySniffer::default().inspect(body, row.framing, max_bytes) {
        Some(BodyKind::Framed(framing)) => Ok(py.detach(|| ends_of(body, framing, max_bytes))),
        Some(BodyKind::HtmlPage | BodyKind::Compressed(_)) | None => Ok(Vec::new()),
    }
}

/// Feed a framer byte by byte: a frame is passed on in the feed of its last byte.
fn ends_of(body: &[u8], framing: Framing, max_bytes: usize) -> Vec<usize> {
    let mut framer = Framer::new(framing, max_bytes);
    let mut ends: Vec<usize> = Vec::new();
    let (mut begun, mut after_line, mut after_cr) = (false, false, false);
    for (at, byte) in body.chunks(1).enumerate() {
        let newline = matches!(byte, b"\n" | b"\r");
        // The LF of a CR LF ends no line of its own.
        let line_end = newline && !(byte == b"\n" && after_cr);
        let blank = framing == Framing::Sse && begun && line_end && after_line;
        let separator = newline || (framing == Framing::JsonArray && matches!(byte, b"," | b"]"));
        let mut passed_on = false;
        let flow = framer.feed(byte, |_: Frame<'_>| {
            passed_on = true;
            ControlFlow::Continue(())
        });
        match ends.last_mut().filter(|last| **last == at) {
            Some(last) if separator && !passed_on => *last = at + 1,
            _ if passed_on || blank => ends.push(at + 1),
            _ => {}
        }
        if flow.is_break() {
            break;
        }
        begun |= !newline;
        after_line = newline;
        after_cr = byte == b"\r";
    }
    ends
}
