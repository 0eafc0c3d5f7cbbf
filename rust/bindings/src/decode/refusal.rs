//! HTTP refusals for Python: the classifier of the core, for callers with a response and without a decoder.
//!
//! In: status, headers, and the body as bytes.  Out: the members of an error delta.

use std::borrow::Cow;

use deltafold::dialect::VOCABULARY;
use deltafold::provider_error::{self, Response};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyString};

use crate::support::text;

/// Read the facts that the core needs from a response; `now` is in seconds since 1970.
///
/// The headers are a mapping of texts, or the pairs of bytes that an HTTP client keeps.
pub(crate) fn response(
    status: u16,
    headers: Option<&Bound<'_, PyAny>>,
    now: Option<f64>,
) -> PyResult<Response> {
    if let Some(headers) = headers.filter(|headers| !headers.is_instance_of::<PyDict>())
        && let Ok(pairs) = headers.extract::<Vec<(PyBackedBytes, PyBackedBytes)>>()
    {
        let texts: Vec<_> =
            pairs.iter().map(|(name, value)| (raw_text(name), raw_text(value))).collect();
        return Ok(read(status, &texts, now));
    }
    let given = headers.map_or_else(|| Ok(Vec::new()), pairs_of)?;
    let pairs: Vec<_> = given
        .iter()
        .map(|(name, value)| Ok((text::from_outside(name)?, text::from_outside(value)?)))
        .collect::<PyResult<_>>()?;
    Ok(read(status, &pairs, now))
}

fn read(status: u16, headers: &[(Cow<'_, str>, Cow<'_, str>)], now: Option<f64>) -> Response {
    let borrowed = headers.iter().map(|(name, value)| (name.as_ref(), value.as_ref()));
    Response::new(VOCABULARY, status, borrowed, now)
}

/// Return a name or a value of the wire.  Bytes that are not UTF-8 are read as ISO 8859-1.  Source: RFC 9110, section 5.5.
fn raw_text(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
    }
}

type Pair<'py> = (Bound<'py, PyString>, Bound<'py, PyString>);

/// Return the items of a mapping of texts.
fn pairs_of<'py>(headers: &Bound<'py, PyAny>) -> PyResult<Vec<Pair<'py>>> {
    let no_texts = || PyTypeError::new_err("headers must be a mapping of str to str");
    if let Ok(headers) = headers.cast_exact::<PyDict>() {
        let texts = |(name, value): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
            Some((name.cast_into().ok()?, value.cast_into().ok()?))
        };
        return headers.iter().map(|pair| texts(pair).ok_or_else(no_texts)).collect();
    }
    let items = headers.call_method0("items")?;
    items.try_iter()?.map(|item| item?.extract().map_err(|_| no_texts())).collect()
}

/// Classify an HTTP refusal.
///
/// Args:
///     status: the HTTP status; 0 if unknown.
///     headers: the response headers, in any case.
///     body: the body of the response: JSON, server-sent events, lines of JSON, a page or plain text.
///     fallback: the message if the body has none.
///     now: the wall-clock time in seconds since 1970, for `retry-after` dates.
///
/// Returns:
///     `code`, `message`, `retryable`, `retry_after` (seconds), `status`, `provider_code`, `http_request_id`.
///
/// Example:
///     >>> fields = classify_refusal(402, {}, b"", fallback="", now=0.0)
///     >>> fields.get("code")
///     'quota_exceeded'
#[pyfunction]
#[pyo3(signature = (status, headers, body, *, fallback, now))]
pub(crate) fn classify_refusal<'py>(
    py: Python<'py>,
    status: u16,
    headers: &Bound<'py, PyAny>,
    body: &[u8],
    fallback: &str,
    now: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let response = response(status, Some(headers), Some(now))?;
    let (failure, _) = response.refusal(body, fallback);
    let fields = PyDict::new(py);
    fields.set_item("code", failure.code.as_str())?;
    fields.set_item("message", failure.message.as_deref().unwrap_or_default())?;
    fields.set_item("retryable", failure.retryable.unwrap_or_default())?;
    fields.set_item("retry_after", failure.retry_after)?;
    fields.set_item("status", failure.status)?;
    fields.set_item("provider_code", failure.provider_code.as_deref())?;
    fields.set_item("http_request_id", failure.http_request_id.as_deref())?;
    Ok(fields)
}

/// Return the seconds until a rate limit resets.
///
/// The text is a duration ("6m0s", "120ms", "30") or an RFC 3339 instant; None for any other text.  `now` is the wall-clock
/// time in seconds since 1970.
#[pyfunction]
pub(crate) fn seconds_until_reset(text: &Bound<'_, PyString>, now: f64) -> PyResult<Option<f64>> {
    let text = text::from_outside(text)?;
    Ok(provider_error::seconds_until_reset(&text, Some(now)))
}

/// Return the error code for a provider's error word or the name of an exception; None for any other word.
#[pyfunction]
pub(crate) fn error_code_from_word(word: &Bound<'_, PyString>) -> PyResult<Option<&'static str>> {
    let word = text::from_outside(word)?;
    Ok(VOCABULARY.code(&word).map(deltafold::contract::ErrorCode::as_str))
}
