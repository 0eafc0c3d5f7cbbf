//! pydantic models made of fields that are known to be right, without their validation.
//!
//! In: a blueprint of the pure-Python half (`deltafold.contract.Blueprint`), and the fields that differ from it.  Out: the
//! model.  The four slots are all that a pydantic 2 model consists of; what is in them stays the Python half's business.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::types::Imported;

/// A blueprint, looked up once.
pub(crate) struct Model {
    blueprint: Imported,
    slots: PyOnceLock<Slots>,
}

struct Slots {
    class: Py<PyAny>,
    new: Py<PyAny>,
    set_fields: Py<PyAny>,
    set_names: Py<PyAny>,
    set_extra: Py<PyAny>,
    set_private: Py<PyAny>,
    fields: Py<PyDict>,
    names: Py<PyAny>,
}

/// The fields of a model that is being made.
pub(crate) struct Fields<'py>(Bound<'py, PyDict>);

impl<'py> Fields<'py> {
    /// Sets one of the blueprint's fields.
    pub(crate) fn set(
        &self,
        name: &Bound<'py, PyString>,
        value: impl IntoPyObject<'py>,
    ) -> PyResult<()> {
        self.0.set_item(name, value)
    }
}

impl Model {
    pub(crate) const fn new(module: &'static str, name: &'static str) -> Self {
        Self { blueprint: Imported::new(module, name), slots: PyOnceLock::new() }
    }

    fn slots(&self, py: Python<'_>) -> PyResult<&Slots> {
        self.slots.get_or_try_init(py, || {
            let blueprint = self.blueprint.get(py)?;
            let get = |name: &str| blueprint.getattr(name).map(Bound::unbind);
            Ok(Slots {
                class: get("cls")?,
                new: get("new")?,
                set_fields: get("set_fields")?,
                set_names: get("set_names")?,
                set_extra: get("set_extra")?,
                set_private: get("set_private")?,
                fields: blueprint.getattr("fields")?.cast_into::<PyDict>()?.unbind(),
                names: get("names")?,
            })
        })
    }

    /// A model whose other fields are as in the blueprint.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        fill: impl FnOnce(&Fields<'py>) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.make_with(py, fill, None, None)
    }

    /// As [`Model::make`], with members beyond the fields and with private attributes.
    pub(crate) fn make_with<'py>(
        &self,
        py: Python<'py>,
        fill: impl FnOnce(&Fields<'py>) -> PyResult<()>,
        extra: Option<Bound<'py, PyDict>>,
        private: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let slots = self.slots(py)?;
        let fields = Fields(slots.fields.bind(py).copy()?);
        fill(&fields)?;
        let model = slots.new.bind(py).call1((&slots.class,))?;
        slots.set_fields.bind(py).call1((&model, fields.0))?;
        let names = slots.names.bind(py).call_method0(intern!(py, "copy"))?;
        slots.set_names.bind(py).call1((&model, names))?;
        slots.set_extra.bind(py).call1((&model, extra))?;
        slots.set_private.bind(py).call1((&model, private))?;
        Ok(model)
    }
}
