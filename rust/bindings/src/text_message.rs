//! Messages of one text: what most calls send, made at the cost of their dicts.
//!
//! In: a role and a text.  Out: a `Message`, as pydantic's validation would make it.
//!
//! Law: the caller has checked that the role may hold a text.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use uuid::Uuid;

use crate::clock::{self, Timestamp};
use crate::folded;
use crate::imports::VALIDATED_MESSAGE;
use crate::snapshot;

/// Make a message of the system or the user with one text, without pydantic's validation.
///
/// pydantic validates what is no plain string of Unicode, because its error names the place.
///
/// Raises:
///     ValidationError: the text is no string, or has a lone surrogate.
#[pyfunction]
#[pyo3(signature = (role, text, /))]
pub(crate) fn message_of_text<'py>(
    role: &Bound<'py, PyAny>,
    text: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    match text.cast_exact::<PyString>() {
        Ok(text) if text.to_str().is_ok() => make(role, text),
        _ => VALIDATED_MESSAGE.get(text.py())?.call1((role, text)),
    }
}

fn make<'py>(role: &Bound<'py, PyAny>, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    let part = snapshot::TEXT.make(py, |fields| fields.set(intern!(py, "text"), text))?;
    let meta = folded::META.make(py, |fields| {
        fields.set(intern!(py, "parse_errors"), PyList::empty(py))?;
        fields.set(intern!(py, "warnings"), PyList::empty(py))?;
        fields.set(intern!(py, "approvals"), PyList::empty(py))
    })?;
    folded::MESSAGE.make(py, |fields| {
        fields.set(intern!(py, "id"), folded::message_id(py, Uuid::new_v4())?)?;
        fields.set(intern!(py, "role"), role)?;
        fields.set(intern!(py, "parts"), PyList::new(py, [part])?)?;
        fields.set(intern!(py, "timestamp"), clock::to_datetime(py, Timestamp::now())?)?;
        fields.set(intern!(py, "meta"), meta)
    })
}
