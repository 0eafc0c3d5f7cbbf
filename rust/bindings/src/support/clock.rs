//! Timestamps: instants of the system clock in Rust, aware datetimes or RFC 3339 text in Python.
//!
//! In: the system clock, or a Python datetime or text.  Out: datetimes and text in UTC.
//!
//! Law: Python sees whole milliseconds.

use std::hash::{Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDelta, PyDict, PyString};

use crate::support::imports::{DATETIME, TIMEDELTA, TIMEZONE};

static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

const DAY_SECONDS: u64 = 86_400;

/// Wall-clock timestamp.
///
/// Milliseconds are computed on demand: the conversion adds half the cost of reading the clock, and few callers need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamp(SystemTime);

impl Timestamp {
    /// Return the current time of the system clock.
    #[inline]
    pub(crate) fn now() -> Self {
        Self(SystemTime::now())
    }

    /// Build the timestamp of a number of milliseconds since 1970 in UTC; `None` beyond the range of the system clock.
    fn from_milliseconds(milliseconds: u64) -> Option<Self> {
        UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)).map(Self)
    }

    /// Return the seconds since 1970.
    pub(crate) fn seconds(self) -> f64 {
        self.0.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }

    /// Return RFC 3339 text in UTC with milliseconds; `None` after the year 9999, which Python cannot hold.
    pub(crate) fn to_rfc3339(self) -> Option<String> {
        deltafold::encode::rfc3339(self.milliseconds())
    }

    /// Return the milliseconds since 1970.
    pub(crate) fn milliseconds(self) -> u64 {
        let since = self.0.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Compares whole milliseconds, which is the precision in Python.
impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.milliseconds() == other.milliseconds()
    }
}

impl Hash for Timestamp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.milliseconds().hash(state);
    }
}

fn epoch(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let epoch = EPOCH.get_or_try_init(py, || {
        let fields = PyDict::new(py);
        fields.set_item("tzinfo", TIMEZONE.get(py)?.getattr("utc")?)?;
        DATETIME.get(py)?.call((1970, 1, 1), Some(&fields)).map(Bound::unbind)
    })?;
    Ok(epoch.bind(py))
}

/// Return an aware datetime in UTC.
///
/// The function adds a duration to the epoch, because `fromtimestamp` takes four times as long.
pub(crate) fn to_datetime(py: Python<'_>, timestamp: Timestamp) -> PyResult<Bound<'_, PyAny>> {
    let since = Duration::from_millis(timestamp.milliseconds());
    let days = i32::try_from(since.as_secs() / DAY_SECONDS).unwrap_or(i32::MAX);
    let seconds = i32::try_from(since.as_secs() % DAY_SECONDS).unwrap_or_default();
    let micros = i32::try_from(since.subsec_micros()).unwrap_or_default();
    epoch(py)?.add(PyDelta::new(py, days, seconds, micros, false)?)
}

/// Return the timestamp as RFC 3339 text in UTC with milliseconds.
pub(crate) fn to_text(timestamp: Timestamp) -> PyResult<String> {
    let text = timestamp.to_rfc3339();
    text.ok_or_else(|| PyOverflowError::new_err("the timestamp lies after the year 9999"))
}

/// Read an aware datetime or RFC 3339 text, to the millisecond.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Timestamp> {
    let py = value.py();
    let datetime = if let Ok(text) = value.cast::<PyString>() {
        DATETIME.get(py)?.call_method1("fromisoformat", (text,)).map_err(|error| {
            PyValueError::new_err(format!("timestamp is no RFC 3339 text: {}", error.value(py)))
        })?
    } else if value.is_instance(DATETIME.get(py)?)? {
        value.clone()
    } else {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "timestamp must be a datetime or RFC 3339 text, not {kind}"
        )));
    };
    if datetime.getattr("tzinfo")?.is_none() {
        return Err(PyValueError::new_err("timestamp must name its UTC offset"));
    }
    let fields = PyDict::new(py);
    fields.set_item("milliseconds", 1)?;
    let unit = TIMEDELTA.get(py)?.call((), Some(&fields))?;
    let milliseconds = datetime
        .sub(epoch(py)?)?
        .call_method1("__floordiv__", (unit,))?
        .extract()
        .map_err(|_| PyValueError::new_err("timestamp lies before 1970"))?;
    Timestamp::from_milliseconds(milliseconds)
        .ok_or_else(|| PyValueError::new_err("timestamp lies beyond the system's clock"))
}
