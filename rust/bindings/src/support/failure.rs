//! Failures that a caller describes: a failed transport, or a caller that stops.
//!
//! In: a code, a message and evidence.  Out: the failure of the core.

use deltafold::contract::{ErrorCode, Failure};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::support::text;

/// Evidence of a failure, beside its code and message.
#[derive(Clone, Copy)]
pub(crate) struct Evidence<'a, 'py> {
    pub(crate) retry_after: Option<f64>,
    pub(crate) status: Option<u16>,
    pub(crate) provider_code: Option<&'a Bound<'py, PyString>>,
    pub(crate) http_request_id: Option<&'a Bound<'py, PyString>>,
}

/// Build the failure that a caller describes.
pub(crate) fn failure(
    code: &Bound<'_, PyString>,
    message: &Bound<'_, PyString>,
    retryable: Option<bool>,
    evidence: Evidence<'_, '_>,
) -> PyResult<Failure<Box<str>>> {
    let Evidence { retry_after, status, provider_code, http_request_id } = evidence;
    let name = code.to_str()?;
    let Some(code) = ErrorCode::from_wire(name) else {
        let known: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        return Err(PyValueError::new_err(format!(
            "unknown error code {name:?}; known: {}",
            known.join(", ")
        )));
    };
    Ok(Failure {
        retryable: Some(retryable.unwrap_or_else(|| code.retryable())),
        retry_after,
        status,
        provider_code: text::boxed(provider_code)?,
        http_request_id: text::boxed(http_request_id)?,
        ..Failure::new(code, text::from_outside(message)?.into())
    })
}
