//! Python objects that are looked up once: classes of the pure-Python half, of the standard library.

use deltafold::contract::{DeltaKind, ErrorCode, FinishReason};
use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::model::Model;

/// A name in a module, imported at first use.
pub(crate) struct LazyImport {
    module: &'static str,
    name: &'static str,
    value: PyOnceLock<Py<PyAny>>,
}

impl LazyImport {
    pub(crate) const fn new(module: &'static str, name: &'static str) -> Self {
        Self { module, name, value: PyOnceLock::new() }
    }

    pub(crate) fn get<'a, 'py>(&'a self, py: Python<'py>) -> PyResult<&'a Bound<'py, PyAny>> {
        let value = self.value.get_or_try_init(py, || {
            py.import(self.module)?.getattr(self.name).map(Bound::unbind)
        })?;
        Ok(value.bind(py))
    }
}

static USAGE: Model = Model::new("deltafold.contract", "USAGE_BLUEPRINT");
pub(crate) static DELTA_SCHEMA: LazyImport =
    LazyImport::new("deltafold.contract", "delta_core_schema");
pub(crate) static LOGPROBS_SCHEMA: LazyImport =
    LazyImport::new("deltafold.contract", "logprobs_core_schema");
pub(crate) static PART_FROM_WIRE: LazyImport = LazyImport::new("deltafold.parts", "part_from_wire");
pub(crate) static WELL_FORMED: LazyImport =
    LazyImport::new("deltafold.foreign_text", "well_formed");
pub(crate) static JSON_DUMPS: LazyImport = LazyImport::new("json", "dumps");
pub(crate) static JSON_LOADS: LazyImport = LazyImport::new("json", "loads");
pub(crate) static DATETIME: LazyImport = LazyImport::new("datetime", "datetime");
pub(crate) static TIMEDELTA: LazyImport = LazyImport::new("datetime", "timedelta");
pub(crate) static TIMEZONE: LazyImport = LazyImport::new("datetime", "timezone");
pub(crate) static MAPPING: LazyImport = LazyImport::new("collections.abc", "Mapping");
pub(crate) static BASE_MODEL: LazyImport = LazyImport::new("pydantic", "BaseModel");
pub(crate) static UUID: LazyImport = LazyImport::new("uuid", "UUID");
pub(crate) static MAPPING_PROXY: LazyImport = LazyImport::new("types", "MappingProxyType");

/// A closed list of the contract as Python's enum: its members, made once.
pub(crate) struct ClosedList {
    class: LazyImport,
    members: PyOnceLock<Vec<Py<PyAny>>>,
}

impl ClosedList {
    const fn new(name: &'static str) -> Self {
        Self { class: LazyImport::new("deltafold.contract", name), members: PyOnceLock::new() }
    }

    /// The member that stands at `position` in the core's list, which `names` spells out.
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

/// Python's member of a kind.
pub(crate) fn delta_kind(py: Python<'_>, kind: DeltaKind) -> PyResult<Bound<'_, PyAny>> {
    DELTA_KIND.member(py, kind as usize, DeltaKind::ALL.iter().map(|kind| kind.as_str()))
}

/// Python's member of a finish reason.
pub(crate) fn finish_reason(py: Python<'_>, reason: FinishReason) -> PyResult<Bound<'_, PyAny>> {
    let names = FinishReason::ALL.iter().map(|reason| reason.as_str());
    FINISH_REASON.member(py, reason as usize, names)
}

/// Python's member of an error code.
pub(crate) fn error_code(py: Python<'_>, code: ErrorCode) -> PyResult<Bound<'_, PyAny>> {
    ERROR_CODE.member(py, code as usize, ErrorCode::ALL.iter().map(|code| code.as_str()))
}

/// The `Usage` of these counts.
pub(crate) fn usage<'py>(
    py: Python<'py>,
    counts: &deltafold::contract::Usage<&str>,
) -> PyResult<Bound<'py, PyAny>> {
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
            fields.set(intern!(py, "details"), crate::json::to_python(py, details)?)?;
        }
        Ok(())
    })
}
