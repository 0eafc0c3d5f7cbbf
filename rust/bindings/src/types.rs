//! Python objects that are looked up once: classes of the pure-Python half, of the standard library.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// A name in a module, imported at first use.
pub(crate) struct Imported {
    module: &'static str,
    name: &'static str,
    value: PyOnceLock<Py<PyAny>>,
}

impl Imported {
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

pub(crate) static DELTA_KIND: Imported = Imported::new("deltafold.contract", "DeltaKind");
pub(crate) static FINISH_REASON: Imported = Imported::new("deltafold.contract", "FinishReason");
pub(crate) static ERROR_CODE: Imported = Imported::new("deltafold.contract", "ErrorCode");
pub(crate) static USAGE: Imported = Imported::new("deltafold.contract", "Usage");
pub(crate) static DELTA_SCHEMA: Imported = Imported::new("deltafold.contract", "delta_core_schema");
pub(crate) static MESSAGE_FROM_FOLD: Imported =
    Imported::new("deltafold.messages", "message_from_fold");
pub(crate) static PARTS_FROM_FOLD: Imported =
    Imported::new("deltafold.messages", "parts_from_fold");
pub(crate) static PART_FROM_WIRE: Imported = Imported::new("deltafold.parts", "part_from_wire");
pub(crate) static UUID4: Imported = Imported::new("uuid", "uuid4");
pub(crate) static JSON_DUMPS: Imported = Imported::new("json", "dumps");
pub(crate) static JSON_LOADS: Imported = Imported::new("json", "loads");
pub(crate) static DATETIME: Imported = Imported::new("datetime", "datetime");
pub(crate) static TIMEDELTA: Imported = Imported::new("datetime", "timedelta");
pub(crate) static TIMEZONE: Imported = Imported::new("datetime", "timezone");
pub(crate) static MAPPING: Imported = Imported::new("collections.abc", "Mapping");
pub(crate) static MAPPING_PROXY: Imported = Imported::new("types", "MappingProxyType");

/// A member of a closed list, by its wire name.
pub(crate) fn member<'py>(
    py: Python<'py>,
    list: &Imported,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    list.get(py)?.call1((name,))
}

/// The pydantic `Usage` of these counts.
pub(crate) fn usage<'py>(
    py: Python<'py>,
    counts: &deltafold::delta::Usage<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("input_tokens", counts.input)?;
    fields.set_item("output_tokens", counts.output)?;
    fields.set_item("total_tokens", counts.total)?;
    fields.set_item("cost", counts.cost)?;
    fields.set_item("cache_read_tokens", counts.cache_read)?;
    fields.set_item("cache_write_tokens", counts.cache_write)?;
    fields.set_item("reasoning_tokens", counts.reasoning)?;
    let details = counts.details.map(|text| crate::json::to_python(py, text)).transpose()?;
    fields.set_item("details", details)?;
    USAGE.get(py)?.call((), Some(&fields))
}
