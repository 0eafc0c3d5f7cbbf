//! Conversion of errors and panics of the core to Python exceptions, and access to locked objects.
//!
//! In: violations, failures, lock errors and panics.  Out: exceptions of deltafold.
//!
//! Laws: a lock is taken without waiting.  A panic under a lock poisons it.

use deltafold::contract::{ContractViolation, Failure};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::support::imports::LazyImport;
use crate::support::json;
use crate::support::try_lock::{Guard, Refused, TryLock, run_both};

static MISUSE: LazyImport = LazyImport::new("deltafold.contract.exceptions", "MisuseError");
static INTERNAL: LazyImport = LazyImport::new("deltafold.contract.exceptions", "InternalError");
static CONTRACT: LazyImport = LazyImport::new("deltafold.contract.exceptions", "ContractError");
static UNKNOWN_DIALECT: LazyImport =
    LazyImport::new("deltafold.contract.exceptions", "UnknownDialectError");
static MODEL_ERROR: LazyImport =
    LazyImport::new("deltafold.errors.model_error", "model_error_from_fold");

fn raised(py: Python<'_>, class: &LazyImport, message: &str) -> PyErr {
    match class.get(py).and_then(|class| Ok(class.cast::<PyType>()?.clone())) {
        Ok(class) => PyErr::from_type(class, (message.to_owned(),)),
        Err(error) => error,
    }
}

/// Build a `MisuseError`.
pub(crate) fn misuse(py: Python<'_>, message: &str) -> PyErr {
    raised(py, &MISUSE, message)
}

/// Build an `UnknownDialectError`.
pub(crate) fn unknown_dialect(py: Python<'_>, message: &str) -> PyErr {
    raised(py, &UNKNOWN_DIALECT, message)
}

/// Build a `ContractError`, with the sequence number and the member at fault.
pub(crate) fn contract(
    py: Python<'_>,
    message: &str,
    seq: Option<u64>,
    field: Option<&str>,
) -> PyErr {
    let make = || {
        let fields = PyDict::new(py);
        fields.set_item("seq", seq)?;
        fields.set_item("field", field)?;
        CONTRACT.get(py)?.call((message,), Some(&fields))
    };
    make().map_or_else(|error| error, PyErr::from_value)
}

/// Build the `ContractError` of a violation.
pub(crate) fn contract_violation(py: Python<'_>, violation: &ContractViolation) -> PyErr {
    contract(py, &violation.to_string(), Some(violation.seq), violation.field)
}

/// Build the `ModelError` of a failed stream.
pub(crate) fn model_error<'py>(
    py: Python<'py>,
    failure: &Failure<Box<str>>,
    warnings: Option<&str>,
    partial: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("code", failure.code.as_str())?;
    fields.set_item("message", failure.message.as_deref().unwrap_or(""))?;
    fields.set_item("retryable", failure.retryable.unwrap_or(failure.code.retryable()))?;
    fields.set_item("retry_after", failure.retry_after)?;
    fields.set_item("status", failure.status)?;
    fields.set_item("provider_code", failure.provider_code.as_deref())?;
    fields.set_item("http_request_id", failure.http_request_id.as_deref())?;
    fields.set_item("body", failure.body.as_deref())?;
    fields.set_item("warnings", json::to_python(py, warnings.unwrap_or("[]"))?)?;
    fields.set_item("partial_message", partial)?;
    MODEL_ERROR.get(py)?.call((), Some(&fields))
}

fn refused(py: Python<'_>, reason: Refused, what: &str) -> PyErr {
    match reason {
        Refused::Busy => in_use(py, what),
        Refused::Poisoned => failed_before(py, what),
    }
}

/// Build the error for an object that another thread uses.
pub(crate) fn in_use(py: Python<'_>, what: &str) -> PyErr {
    misuse(py, &format!("the {what} is busy: it is being used by another thread"))
}

/// Build the error for an object on which an earlier call panicked.
pub(crate) fn failed_before(py: Python<'_>, what: &str) -> PyErr {
    raised(py, &INTERNAL, &format!("the {what} failed internally before; make a new one"))
}

/// Build the error for a panic in the core.
pub(crate) fn bug(py: Python<'_>, what: &str) -> PyErr {
    raised(py, &INTERNAL, &format!("the {what} failed internally; this is a bug in deltafold"))
}

/// Take a lock without waiting.
#[inline]
pub(crate) fn lock<'a, T>(
    py: Python<'_>,
    lock: &'a TryLock<T>,
    what: &str,
) -> PyResult<Guard<'a, T>> {
    lock.try_lock().map_err(|reason| refused(py, reason, what))
}

/// Run code of the core under the lock.  A panic poisons the lock and becomes an `InternalError`.
#[inline]
pub(crate) fn guarded<T, R>(
    py: Python<'_>,
    lock: &TryLock<T>,
    what: &str,
    f: impl FnOnce(&mut T) -> R,
) -> PyResult<R> {
    self::lock(py, lock, what)?.run(f).ok_or_else(|| bug(py, what))
}

/// Run code of the core under two locks, as [`guarded`] does.
#[inline]
pub(crate) fn guarded_pair<A, B, R>(
    py: Python<'_>,
    (first, first_name): (&TryLock<A>, &str),
    (second, second_name): (&TryLock<B>, &str),
    f: impl FnOnce(&mut A, &mut B) -> R,
) -> PyResult<R> {
    let first = lock(py, first, first_name)?;
    let second = match second.try_lock() {
        Ok(guard) => guard,
        Err(reason) => {
            drop(first);
            return Err(refused(py, reason, second_name));
        }
    };
    run_both(first, second, f).ok_or_else(|| bug(py, first_name))
}
