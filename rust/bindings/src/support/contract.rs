//! Enumerations of `deltafold.contract.kinds` and `deltafold.contract.usage.Usage` as Python objects.
//!
//! In: values of the core.  Out: enum members, which are looked up once, and models.

use deltafold::contract::{DeltaKind, ErrorCode, FinishReason, Usage};
use pyo3::exceptions::{PyAttributeError, PyIndexError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use crate::support::imports::LazyImport;
use crate::support::json;
use crate::support::model::Model;

pub(crate) static USAGE: Model = Model::new("deltafold.contract.usage", "USAGE_BLUEPRINT");

/// A Python enum of the contract, with its members in the order of the core's enum.
struct ClosedList {
    class: LazyImport,
    members: PyOnceLock<Vec<Py<PyAny>>>,
}

impl ClosedList {
    const fn new(name: &'static str) -> Self {
        Self {
            class: LazyImport::new("deltafold.contract.kinds", name),
            members: PyOnceLock::new(),
        }
    }

    /// Return the member at `position` of the core's list.  `names` lists the wire names in that order.
    fn member<'py>(
        &self,
        py: Python<'py>,
        position: usize,
        names: impl Iterator<Item = &'static str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let members = self.members.get_or_try_init(py, || {
            let class = self.class.get(py)?;
            names.map(|name| class.call1((name,)).map(Bound::unbind)).collect::<PyResult<Vec<_>>>()
        })?;
        let member = members.get(position).map(|member| member.bind(py).clone());
        member.ok_or_else(|| PyIndexError::new_err("a closed list has no such member"))
    }
}

static DELTA_KIND: ClosedList = ClosedList::new("DeltaKind");
static FINISH_REASON: ClosedList = ClosedList::new("FinishReason");
static ERROR_CODE: ClosedList = ClosedList::new("ErrorCode");

/// Return the Python enum member of a kind.
pub(crate) fn delta_kind(py: Python<'_>, kind: DeltaKind) -> PyResult<Bound<'_, PyAny>> {
    DELTA_KIND.member(py, kind as usize, DeltaKind::ALL.iter().map(|kind| kind.as_str()))
}

/// Return the Python enum member of a finish reason.
pub(crate) fn finish_reason(py: Python<'_>, reason: FinishReason) -> PyResult<Bound<'_, PyAny>> {
    let names = FinishReason::ALL.iter().map(|reason| reason.as_str());
    FINISH_REASON.member(py, reason as usize, names)
}

/// Return the reason why no tool call may run after a finish reason; `None` if whole calls may, or for an unknown word.
#[pyfunction]
pub(crate) fn forbids_calls(finish_reason: &str) -> Option<&'static str> {
    FinishReason::from_wire(finish_reason)?.forbids_calls()
}

/// Return the Python enum member of an error code.
pub(crate) fn error_code(py: Python<'_>, code: ErrorCode) -> PyResult<Bound<'_, PyAny>> {
    ERROR_CODE.member(py, code as usize, ErrorCode::ALL.iter().map(|code| code.as_str()))
}

/// Build the Python `Usage` of token counts.
pub(crate) fn usage<'py>(py: Python<'py>, counts: &Usage<&str>) -> PyResult<Bound<'py, PyAny>> {
    USAGE.make(py, |fields| {
        for name in USAGE.names(py)? {
            let name = name.cast::<PyString>()?;
            fields.set(name, usage_field(counts, name)?)?;
        }
        Ok(())
    })
}

/// Return a field of the Python `Usage` of token counts.
pub(crate) fn usage_field<'py>(
    counts: &Usage<&str>,
    name: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = name.py();
    let count = match name.to_str()? {
        "input_tokens" => counts.input,
        "output_tokens" => counts.output,
        "total_tokens" => counts.total,
        "cache_read_tokens" => counts.cache_read,
        "cache_write_tokens" => counts.cache_write,
        "reasoning_tokens" => counts.reasoning,
        "cost" => return Ok(counts.cost.into_pyobject(py)?),
        "details" => match counts.details {
            Some(details) => return json::to_python(py, details),
            None => None,
        },
        _ => return Err(PyAttributeError::new_err(name.clone().unbind())),
    };
    Ok(count.into_pyobject(py)?)
}
