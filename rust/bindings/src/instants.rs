//! `Instants`: when the reads of one stream came, noted at the cost of a clock.
//!
//! Laws: memory does not grow with the stream.  Gaps between reads that brought deltas are counted in classes, eight to
//! each doubling of their nanoseconds, so that what is said of them is right within 6 %.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::callback::Callback;
use crate::errors;

/// Classes to a doubling are two to the power of this.
const CLASS_BITS: u32 = 3;

/// Notes when a request went out and when bytes, deltas and text came, in nanoseconds.
///
/// Args:
///     clock: returns nanoseconds and never goes back; the system's monotonic clock if not given.
///
/// Example:
///     >>> instants = Instants()
///     >>> instants.start()
///     >>> instants.read(2)
#[pyclass(frozen, subclass, module = "deltafold._core")]
pub(crate) struct Instants {
    clock: Callback,
    made: Instant,
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    started: Option<u64>,
    first_byte: Option<u64>,
    first_delta: Option<u64>,
    first_text: Option<u64>,
    last_delta: u64,
    ended: Option<u64>,
    longest: u64,
    classes: BTreeMap<u32, u64>,
}

impl Noted {
    fn read(&mut self, now: u64, deltas: usize) {
        self.first_byte.get_or_insert(now);
        if deltas == 0 {
            return;
        }
        if self.first_delta.is_none() {
            self.first_delta = Some(now);
        } else {
            let gap = now.saturating_sub(self.last_delta);
            self.longest = self.longest.max(gap);
            *self.classes.entry(class(gap)).or_default() += 1;
        }
        self.last_delta = now;
    }
}

/// The class of a gap: how often one doubles to reach it, and the eighth of the last doubling in which it lies.
fn class(gap: u64) -> u32 {
    let doublings = u64::BITS - gap.leading_zeros();
    let eighth = doublings.checked_sub(CLASS_BITS + 1).map_or(0, |low| (gap >> low) & 0b111);
    (doublings << CLASS_BITS) | u32::try_from(eighth).unwrap_or(0)
}

impl Instants {
    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        match self.clock.get(py) {
            Some(clock) => clock.call0()?.extract(),
            None => Ok(u64::try_from(self.made.elapsed().as_nanos()).unwrap_or(u64::MAX)),
        }
    }

    fn note<R>(&self, py: Python<'_>, f: impl FnOnce(&mut Noted) -> R) -> PyResult<R> {
        Ok(f(&mut *errors::lock(py, &self.noted, "stopwatch")?))
    }
}

/// Started, first byte, first delta, first text, last delta, end or now, longest gap, gaps by class.
type Told = (Option<u64>, Option<u64>, Option<u64>, Option<u64>, u64, u64, u64, Vec<(u32, u64)>);

#[pymethods]
impl Instants {
    #[new]
    #[pyo3(signature = (clock=None))]
    fn new(clock: Option<Py<PyAny>>) -> Self {
        Self { clock: Callback::new(clock), made: Instant::now(), noted: Mutex::default() }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.clock.traverse(&visit)
    }

    fn __clear__(&self) {
        self.clock.clear();
    }

    /// Notes that the request goes out; the first time counts.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let now = self.now(py)?;
        self.note(py, |noted| {
            noted.started.get_or_insert(now);
        })
    }

    /// Notes that bytes came, and how many deltas they completed.
    #[pyo3(signature = (deltas, /))]
    fn read(&self, py: Python<'_>, deltas: usize) -> PyResult<()> {
        let now = self.now(py)?;
        self.note(py, |noted| noted.read(now, deltas))
    }

    /// Notes that the deltas of the last read brought the first text.
    fn text_came(&self, py: Python<'_>) -> PyResult<()> {
        self.note(py, |noted| noted.first_text = Some(noted.last_delta))
    }

    /// Notes the end; the first time counts.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let now = self.now(py)?;
        self.note(py, |noted| {
            if noted.started.is_some() {
                noted.ended.get_or_insert(now);
            }
        })
    }

    /// Whether no text has come.
    #[getter]
    fn wants_text(&self, py: Python<'_>) -> PyResult<bool> {
        self.note(py, |noted| noted.first_text.is_none())
    }

    /// What was noted, in nanoseconds: the start, the first byte, delta and text, the last delta, the end or while the
    /// stream runs the present, the longest gap, and the gaps by class.
    fn noted(&self, py: Python<'_>) -> PyResult<Told> {
        let until = match self.note(py, |noted| (noted.started, noted.ended))? {
            (Some(_), None) => self.now(py)?,
            (_, ended) => ended.unwrap_or(0),
        };
        self.note(py, |noted| {
            (
                noted.started,
                noted.first_byte,
                noted.first_delta,
                noted.first_text,
                noted.last_delta,
                until,
                noted.longest,
                noted.classes.iter().map(|(class, count)| (*class, *count)).collect(),
            )
        })
    }
}
