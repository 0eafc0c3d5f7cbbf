//! Times: milliseconds since 1970 UTC inside, aware datetimes and RFC 3339 text outside.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::types::{DATETIME, TIMEDELTA, TIMEZONE};

static UTC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static FROM_TIMESTAMP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Now, by the system's clock.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn epoch(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("tzinfo", TIMEZONE.get(py)?.getattr("utc")?)?;
    DATETIME.get(py)?.call((1970, 1, 1), Some(&fields))
}

/// An aware datetime in UTC.
pub(crate) fn to_datetime(py: Python<'_>, milliseconds: u64) -> PyResult<Bound<'_, PyAny>> {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of the year 200,000 are exact")]
    let seconds = milliseconds as f64 / 1_000.0;
    let utc = UTC.get_or_try_init(py, || TIMEZONE.get(py)?.getattr("utc").map(Bound::unbind))?;
    FROM_TIMESTAMP
        .get_or_try_init(py, || DATETIME.get(py)?.getattr("fromtimestamp").map(Bound::unbind))?
        .bind(py)
        .call1((seconds, utc))
}

/// RFC 3339 with milliseconds, in UTC.
pub(crate) fn to_text(py: Python<'_>, milliseconds: u64) -> PyResult<String> {
    let fields = PyDict::new(py);
    fields.set_item("timespec", "milliseconds")?;
    let text = to_datetime(py, milliseconds)?.call_method("isoformat", (), Some(&fields))?;
    Ok(text.cast::<PyString>()?.to_str()?.replace("+00:00", "Z"))
}

/// Milliseconds of an aware datetime or of RFC 3339 text.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<u64> {
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
    datetime
        .sub(epoch(py)?)?
        .call_method1("__floordiv__", (unit,))?
        .extract()
        .map_err(|_| PyValueError::new_err("timestamp lies before 1970"))
}
