//! Python objects that are imported once, at first use.
//!
//! In: the name of a module and of an object in that module.  Out: the object.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// An object of a Python module, imported at first use.
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

pub(crate) static DELTA_SCHEMA: LazyImport =
    LazyImport::new("deltafold.contract.wire_fields", "delta_core_schema");
pub(crate) static DIALECT_OF_EVENT: LazyImport =
    LazyImport::new("deltafold.streams.first_events", "dialect_of_event");
pub(crate) static JSON_OF_EVENT: LazyImport =
    LazyImport::new("deltafold.contract.event_objects", "json_of_event");
pub(crate) static LOGPROBS_SCHEMA: LazyImport =
    LazyImport::new("deltafold.contract.wire_fields", "logprobs_core_schema");
pub(crate) static PARSE_ARGUMENTS: LazyImport =
    LazyImport::new("deltafold.contract.call_arguments", "parse_arguments");
pub(crate) static PART_FROM_WIRE: LazyImport =
    LazyImport::new("deltafold.message.parts", "part_from_wire");
pub(crate) static VALIDATED_MESSAGE: LazyImport =
    LazyImport::new("deltafold.message.messages", "validated_message_of_text");
pub(crate) static WELL_FORMED: LazyImport =
    LazyImport::new("deltafold.contract.foreign_text", "well_formed");
pub(crate) static JSON_DUMPS: LazyImport = LazyImport::new("json", "dumps");
pub(crate) static JSON_LOADS: LazyImport = LazyImport::new("json", "loads");
pub(crate) static DATETIME: LazyImport = LazyImport::new("datetime", "datetime");
pub(crate) static TIMEDELTA: LazyImport = LazyImport::new("datetime", "timedelta");
pub(crate) static TIMEZONE: LazyImport = LazyImport::new("datetime", "timezone");
pub(crate) static MAPPING: LazyImport = LazyImport::new("collections.abc", "Mapping");
pub(crate) static BASE_MODEL: LazyImport = LazyImport::new("pydantic", "BaseModel");
pub(crate) static UUID: LazyImport = LazyImport::new("uuid", "UUID");
pub(crate) static MAPPING_PROXY: LazyImport = LazyImport::new("types", "MappingProxyType");
