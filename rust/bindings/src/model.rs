//! `Model`: builds pydantic models from valid fields, without pydantic's validation.
//!
//! In: a blueprint of the pure-Python half (`deltafold.contract.Blueprint`), and the fields that differ from it.  Out: the
//! model.  A pydantic 2 model consists of four slots, whose content the Python half defines.
//!
//! No other module calls Python's C API directly.  Calls through Python callables take 0.4 µs more for each model, and the
//! message of a short stream consists of four models.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyType};
use pyo3::{ffi, intern};

use crate::imports::{BASE_MODEL, LazyImport};

/// Blueprint of a model, looked up once.
pub(crate) struct Model {
    blueprint: LazyImport,
    slots: PyOnceLock<Slots>,
}

struct Slots {
    class: CheckedClass,
    fields: Py<PyDict>,
    names: Py<PyAny>,
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
        Self { blueprint: LazyImport::new(module, name), slots: PyOnceLock::new() }
    }

    fn slots(&self, py: Python<'_>) -> PyResult<&Slots> {
        self.slots.get_or_try_init(py, || {
            let blueprint = self.blueprint.get(py)?;
            Ok(Slots {
                class: CheckedClass::model(&blueprint.getattr("cls")?)?,
                fields: blueprint.getattr("fields")?.cast_into::<PyDict>()?.unbind(),
                names: blueprint.getattr("names")?.unbind(),
            })
        })
    }

    /// Build a model.  Fields that `fill` does not set have the values of the blueprint.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        fill: impl FnOnce(&Fields<'py>) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.make_with(py, fill, None, None)
    }

    /// Build a model as [`Model::make`] does, with members beyond the fields and with private attributes.
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
        let model = slots.class.instance(py)?;
        set(&model, intern!(py, "__dict__"), &fields.0)?;
        set(&model, intern!(py, "__pydantic_fields_set__"), &set_of(slots.names.bind(py))?)?;
        let none = py.None();
        let none = none.bind(py);
        let or_none =
            |dict: Option<Bound<'py, PyDict>>| dict.map_or_else(|| none.clone(), Bound::into_any);
        set(&model, intern!(py, "__pydantic_extra__"), &or_none(extra))?;
        set(&model, intern!(py, "__pydantic_private__"), &or_none(private))?;
        Ok(model)
    }
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

/// Build `set(names)`.
#[expect(unsafe_code, reason = "the call is half of what making a model costs")]
fn set_of<'py>(names: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the reference is live and is not stolen.  The function returns a new one, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(names.py(), ffi::PySet_New(names.as_ptr())) }
}
