//! Messages of one text, which most calls send.
//!
//! In: a role and a text.  Out: a `Message`, as pydantic's validation would make it.
//!
//! Laws: the caller has checked that the role may hold a text.  The id and the time are those of the call, although their Python
//! objects are made when they are first read.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use uuid::Uuid;

use crate::message::folded::{self, SOURCE};
use crate::message::snapshot;
use crate::support::clock::{self, Timestamp};
use crate::support::imports::VALIDATED_MESSAGE;

/// Make a message of the system or the user with one text, without pydantic's validation.
///
/// pydantic makes a message of any other object and of a text with a lone surrogate: its error names the position.
///
/// Raises:
///     ValidationError: the text has a lone surrogate, or it is another object.
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
    let source = TextMessage { id: Uuid::new_v4(), at: Timestamp::now() };
    folded::MESSAGE.lazy_with(intern!(py, SOURCE), Bound::new(py, source)?.as_any(), |fields| {
        fields.set(intern!(py, "role"), role)?;
        fields.set(intern!(py, "parts"), PyList::new(py, [part])?)
    })
}

/// Source of the fields that are made when they are first read, because rendering needs only the role and the part.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct TextMessage {
    id: Uuid,
    at: Timestamp,
}

impl TextMessage {
    /// Make a field of `Message` and keep it in `fields`, as [`folded::FoldedMessage::message_field`] does.
    pub(crate) fn field<'py>(
        &self,
        name: &Bound<'py, PyString>,
        fields: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = name.py();
        let value = match name.to_str()? {
            "id" => folded::message_id(py, self.id)?,
            "timestamp" => clock::to_datetime(py, self.at)?,
            "meta" => folded::META.make(py, |fields| {
                fields.set(intern!(py, "parse_errors"), PyList::empty(py))?;
                fields.set(intern!(py, "warnings"), PyList::empty(py))?;
                fields.set(intern!(py, "approvals"), PyList::empty(py))
            })?,
            _ => folded::default(&folded::MESSAGE, name)?,
        };
        folded::keep(fields, name, value)
    }
}
