//! Enumerations and `Usage` of the contract as Python objects of `deltafold.contract`.
//!
//! In: values of the core.  Out: enum members, which are looked up once, and models.

use deltafold::contract::{DeltaKind, ErrorCode, FinishReason, Usage};
use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::imports::LazyImport;
use crate::json;
use crate::model::Model;

static USAGE: Model = Model::new("deltafold.contract", "USAGE_BLUEPRINT");

/// A Python enum of the contract, with its members in the order of the core's enum.
struct ClosedList {
    class: LazyImport,
    members: PyOnceLock<Vec<Py<PyAny>>>,
}

impl ClosedList {
    const fn new(name: &'static str) -> Self {
        Self { class: LazyImport::new("deltafold.contract", name), members: PyOnceLock::new() }
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

/// Return the Python enum member of an error code.
pub(crate) fn error_code(py: Python<'_>, code: ErrorCode) -> PyResult<Bound<'_, PyAny>> {
    ERROR_CODE.member(py, code as usize, ErrorCode::ALL.iter().map(|code| code.as_str()))
}

/// Build the Python `Usage` of token counts.
pub(crate) fn usage<'py>(py: Python<'py>, counts: &Usage<&str>) -> PyResult<Bound<'py, PyAny>> {
    USAGE.make(py, |fields| {
        fields.set(intern!(py, "input_tokens"), counts.input)?;
        fields.set(intern!(py, "output_tokens"), counts.output)?;
        fields.set(intern!(py, "total_tokens"), counts.total)?;
        if let Some(cost) = counts.cost {
            fields.set(intern!(py, "cost"), cost)?;
        }
        if let Some(cache_read) = counts.cache_read {
            fields.set(intern!(py, "cache_read_tokens"), cache_read)?;
        }
        if let Some(cache_write) = counts.cache_write {
            fields.set(intern!(py, "cache_write_tokens"), cache_write)?;
        }
        if let Some(reasoning) = counts.reasoning {
            fields.set(intern!(py, "reasoning_tokens"), reasoning)?;
        }
        if let Some(details) = counts.details {
            fields.set(intern!(py, "details"), json::to_python(py, details)?)?;
        }
        Ok(())
    })
}
