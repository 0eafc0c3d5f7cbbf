//! `StreamTimer`: the arrival times of the reads of one stream.
//!
//! In: notes of a transport about requests, reads and ends.  Out: `StreamTimes`.
//!
//! Laws: memory does not grow with the stream.  Gaps between reads that completed deltas are counted in classes.  Each
//! doubling of the nanoseconds has eight classes, so a quantile of the gaps is exact within 6 %.

use std::time::Instant;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::support::callback::Callback;
use crate::support::errors;
use crate::support::try_lock::TryLock;

/// Binary logarithm of the number of classes in each doubling.
const CLASS_BITS: u32 = 3;

/// Recorder of the times of one stream, in nanoseconds: request, bytes, deltas and text.
///
/// Args:
///     clock: returns nanoseconds and never goes back; by default the monotonic clock of the system.
///
/// Example:
///     >>> timer = StreamTimer()
///     >>> timer.start()
///     >>> timer.read(2)
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct StreamTimer {
    clock: Callback,
    made: Instant,
    state: TryLock<TimerState>,
}

/// Times of one stream in nanoseconds of the timer's clock.
#[pyclass(frozen, get_all, module = "deltafold._core")]
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamTimes {
    /// Time at which the request was sent.
    started: Option<u64>,
    first_byte: Option<u64>,
    first_delta: Option<u64>,
    first_text: Option<u64>,
    last_delta: u64,
    /// End of the stream, or the current time while the stream runs; 0 before the start.
    until: u64,
    longest_gap: u64,
    /// Number of gaps by class, in ascending order of the class.
    gaps: Vec<(u32, u64)>,
}

/// State behind the timer's lock.
#[derive(Debug, Default)]
struct TimerState {
    times: StreamTimes,
    ended: Option<u64>,
    /// Position in `times.gaps` of the last gap; the next one is usually near it.
    last: usize,
}

impl TimerState {
    /// Count a gap in its class.
    fn count(&mut self, class: u32) {
        let gaps = &mut self.times.gaps;
        match gaps.get_mut(self.last) {
            Some((known, count)) if *known == class => *count += 1,
            _ => match gaps.binary_search_by_key(&class, |(known, _)| *known) {
                Ok(at) => {
                    self.last = at;
                    if let Some((_, count)) = gaps.get_mut(at) {
                        *count += 1;
                    }
                }
                Err(at) => {
                    self.last = at;
                    gaps.insert(at, (class, 1));
                }
            },
        }
    }

    fn read(&mut self, now: u64, deltas: usize) {
        let times = &mut self.times;
        times.first_byte.get_or_insert(now);
        if deltas == 0 {
            return;
        }
        if times.first_delta.is_none() {
            times.first_delta = Some(now);
        } else {
            let gap = now.saturating_sub(times.last_delta);
            times.longest_gap = times.longest_gap.max(gap);
            self.count(class(gap));
        }
        self.times.last_delta = now;
    }
}

/// Return the class of a gap: its number of significant bits, and the eighth of the last doubling in which the gap lies.
fn class(gap: u64) -> u32 {
    let doublings = u64::BITS - gap.leading_zeros();
    let eighth = doublings.checked_sub(CLASS_BITS + 1).map_or(0, |low| (gap >> low) & 0b111);
    (doublings << CLASS_BITS) | u32::try_from(eighth).unwrap_or(0)
}

impl StreamTimer {
    pub(crate) fn new(clock: Option<Py<PyAny>>) -> Self {
        Self { clock: Callback::new(clock), made: Instant::now(), state: TryLock::default() }
    }

    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        match self.clock.get(py) {
            Some(clock) => clock.call0()?.extract(),
            None => Ok(u64::try_from(self.made.elapsed().as_nanos()).unwrap_or(u64::MAX)),
        }
    }

    fn with<R>(&self, py: Python<'_>, f: impl FnOnce(&mut TimerState) -> R) -> PyResult<R> {
        Ok(f(&mut *errors::lock(py, &self.state, "stream timer")?))
    }
}

#[pymethods]
impl StreamTimer {
    #[new]
    #[pyo3(signature = (clock=None))]
    fn py_new(clock: Option<Py<PyAny>>) -> Self {
        Self::new(clock)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.clock.traverse(&visit)
    }

    fn __clear__(&self) {
        self.clock.clear();
    }

    /// Record that the request is sent.  Only the first call has an effect.
    pub(crate) fn start(&self, py: Python<'_>) -> PyResult<()> {
        let now = self.now(py)?;
        self.with(py, |state| {
            state.times.started.get_or_insert(now);
        })
    }

    /// Record that bytes arrived, and the number of deltas that they completed.  Return true until the first text.
    #[pyo3(signature = (deltas, /))]
    pub(crate) fn read(&self, py: Python<'_>, deltas: usize) -> PyResult<bool> {
        let now = self.now(py)?;
        self.with(py, |state| {
            state.read(now, deltas);
            state.times.first_text.is_none()
        })
    }

    /// Record that the deltas of the last read contained the first text.
    pub(crate) fn text_came(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |state| state.times.first_text = Some(state.times.last_delta))
    }

    /// Record the end.  Only the first call has an effect.
    pub(crate) fn end(&self, py: Python<'_>) -> PyResult<()> {
        let now = self.now(py)?;
        self.with(py, |state| {
            if state.times.started.is_some() {
                state.ended.get_or_insert(now);
            }
        })
    }

    /// Return the times so far.
    pub(crate) fn times(&self, py: Python<'_>) -> PyResult<StreamTimes> {
        let until = match self.with(py, |state| (state.times.started, state.ended))? {
            (Some(_), None) => self.now(py)?,
            (_, ended) => ended.unwrap_or(0),
        };
        self.with(py, |state| StreamTimes { until, ..state.times.clone() })
    }
}
