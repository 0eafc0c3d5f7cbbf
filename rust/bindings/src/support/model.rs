//! `Model`: builds pydantic models from valid fields, without pydantic's validation.
//!
//! In: a blueprint of the pure-Python half (`deltafold.contract.wire_models.Blueprint`), and the fields that differ from it.  Out: the
//! model, or a lazy model whose fields are made when they are first read.
//!
//! Law: only `__dict__` is filled.  The Python half fills pydantic's other slots when they are first read.
//!
//! No other module calls Python's C API directly.  Calls through Python callables take 0.4 µs more for each model.

use std::ptr;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{ffi, intern};

use crate::support::imports::{BASE_MODEL, LazyImport};

/// Blueprint of a model, looked up once.
pub(crate) struct Model {
    blueprint: LazyImport,
    plan: PyOnceLock<Plan>,
}

struct Plan {
    class: CheckedClass,
    fields: Py<PyDict>,
    names: Py<PyTuple>,
}

/// Fields of a model under construction.
pub(crate) struct Fields<'py>(Bound<'py, PyDict>);

impl<'py> Fields<'py> {
    /// Set one of the fields of the blueprint.
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
        Self { blueprint: LazyImport::new(module, name), plan: PyOnceLock::new() }
    }

    fn plan(&self, py: Python<'_>) -> PyResult<&Plan> {
        self.plan.get_or_try_init(py, || {
            let blueprint = self.blueprint.get(py)?;
            let class = blueprint.getattr("cls")?;
            Ok(Plan {
                class: CheckedClass::model(&class)?,
                names: class
                    .getattr("model_fields")?
                    .cast_into::<PyDict>()?
                    .keys()
                    .to_tuple()
                    .unbind(),
                fields: blueprint.getattr("fields")?.cast_into::<PyDict>()?.unbind(),
            })
        })
    }

    /// Return the names of all fields in the order of the model.
    pub(crate) fn names<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTuple>> {
        Ok(self.plan(py)?.names.bind(py))
    }

    /// Return the fields of the blueprint with their default values.
    pub(crate) fn fields<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyDict>> {
        Ok(self.plan(py)?.fields.bind(py))
    }

    /// Build a model.  Fields that `fill` does not set have the values of the blueprint.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        fill: impl FnOnce(&Fields<'py>) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let plan = self.plan(py)?;
        let fields = Fields(plan.fields.bind(py).copy()?);
        fill(&fields)?;
        let model = plan.class.instance(py)?;
        set_dict(&model, Some(&fields.0))?;
        Ok(model)
    }

    /// Build a model that has a single entry in its `__dict__`: the source of its fields.
    pub(crate) fn lazy<'py>(
        &self,
        name: &Bound<'py, PyString>,
        source: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.lazy_with(name, source, |_| Ok(()))
    }

    /// Build a lazy model, some of whose fields are made at once.
    pub(crate) fn lazy_with<'py>(
        &self,
        name: &Bound<'py, PyString>,
        source: &Bound<'py, PyAny>,
        fill: impl FnOnce(&Fields<'py>) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = source.py();
        let entries = Fields(PyDict::new(py));
        entries.0.set_item(name, source)?;
        fill(&entries)?;
        let model = self.plan(py)?.class.instance(py)?;
        set_dict(&model, Some(&entries.0))?;
        Ok(model)
    }
}

/// Return the `__dict__` of an instance, whatever descriptor of that name its class has.
#[expect(unsafe_code, reason = "the class may hide its dict behind a descriptor of ours")]
pub(crate) fn dict<'py>(model: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    // SAFETY: the reference is live.  The function returns a new reference, or null with an exception set.
    let dict = unsafe {
        let dict = ffi::PyObject_GenericGetDict(model.as_ptr(), ptr::null_mut());
        Bound::from_owned_ptr_or_err(model.py(), dict)?
    };
    Ok(dict.cast_into::<PyDict>()?)
}

/// Replace or delete the `__dict__` of an instance, whatever descriptor of that name its class has.
#[expect(unsafe_code, reason = "the class may hide its dict behind a descriptor of ours")]
pub(crate) fn set_dict<'py>(
    model: &Bound<'py, PyAny>,
    dict: Option<&Bound<'py, PyDict>>,
) -> PyResult<()> {
    let dict = dict.map_or(ptr::null_mut(), Bound::as_ptr);
    // SAFETY: the references are live, and the call steals none of them.  A null dict deletes the old one.
    let code = unsafe { ffi::PyObject_GenericSetDict(model.as_ptr(), dict, ptr::null_mut()) };
    if code == 0 { Ok(()) } else { Err(PyErr::fetch(model.py())) }
}

/// Class whose instances `object.__new__` can build, checked once.
///
/// A class of the Python half may have been replaced.  In that case the check raises.  Without the check, an instance could
/// have a memory layout that its class does not expect.
pub(crate) struct CheckedClass(Py<PyType>);

impl CheckedClass {
    /// Check a class by letting CPython build one instance.
    ///
    /// `object.__new__` refuses any class with its own instance layout.  An accepted class keeps its layout, because CPython
    /// refuses bases with another one.
    pub(crate) fn checked(class: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(class) = class.cast::<PyType>() else {
            let kind = class.get_type().name()?;
            return Err(PyTypeError::new_err(format!("expected a class, not {kind}")));
        };
        class.py().get_type::<PyAny>().call_method1(intern!(class.py(), "__new__"), (class,))?;
        Ok(Self(class.clone().unbind()))
    }

    /// Check a class as [`CheckedClass::checked`] does, and require a pydantic model.
    fn model(class: &Bound<'_, PyAny>) -> PyResult<Self> {
        let checked = Self::checked(class)?;
        let class = checked.0.bind(class.py());
        if class.is_subclass(BASE_MODEL.get(class.py())?)? {
            return Ok(checked);
        }
        Err(PyTypeError::new_err(format!("expected a pydantic model, not {}", class.name()?)))
    }

    /// Build an instance with `object.__new__(class)`.
    #[expect(unsafe_code, reason = "the call is half of what making a model costs")]
    pub(crate) fn instance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (none, class) = (std::ptr::null_mut(), self.0.bind(py).as_type_ptr());
        // SAFETY: `class` is a live type, and `object.__new__` has built an instance of it with this same function.  The
        // function reads neither arguments nor keywords.  It returns a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericNew(class, none, none)) }
    }
}

/// Set an attribute with `object.__setattr__(model, name, value)`, which bypasses the model's own method.
#[expect(unsafe_code, reason = "the call is half of what making a model costs")]
pub(crate) fn set<'py>(
    model: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    value: &Bound<'py, PyAny>,
) -> PyResult<()> {
    // SAFETY: all three references are live, and the call steals none of them.
    let code =
        unsafe { ffi::PyObject_GenericSetAttr(model.as_ptr(), name.as_ptr(), value.as_ptr()) };
    if code == 0 { Ok(()) } else { Err(PyErr::fetch(model.py())) }
}
