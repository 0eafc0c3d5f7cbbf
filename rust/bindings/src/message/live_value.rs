//! `Live`: the value of a JSON text under construction as one Python object that grows in place.
//!
//! In: events of the core's `PartialJson`.  Out: the object.
//!
//! Laws: a value is in its container from its first event on.  An update costs the size of the new text, also at the end of
//! a long string, unless the caller holds that string.

use deltafold::fold::partial_json::{Event, Log};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::message::partial_tree::scalar;

/// Object or array that has not ended.
enum Open {
    Object { dict: Py<PyDict>, key: Py<PyString> },
    Array(Py<PyList>),
}

/// Value that grows in place.
#[derive(Default)]
pub(crate) struct Live {
    root: Option<Py<PyAny>>,
    open: Vec<Open>,
    /// Text of the unfinished string that its container does not have yet; `None` outside a string.
    unshown: Option<String>,
}

impl Live {
    /// Visit the value for the garbage collector, because the caller holds it too.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for open in &self.open {
            match open {
                Open::Object { dict, .. } => visit.call(dict)?,
                Open::Array(list) => visit.call(list)?,
            }
        }
        visit.call(&self.root)
    }

    /// Apply the events of a log.
    pub(crate) fn apply(&mut self, py: Python<'_>, log: &Log) -> PyResult<()> {
        for event in log.events() {
            match event {
                Event::Object => {
                    let dict = PyDict::new(py);
                    self.begin(dict.as_any())?;
                    let key = PyString::new(py, "").unbind();
                    self.open.push(Open::Object { dict: dict.unbind(), key });
                }
                Event::Array => {
                    let list = PyList::empty(py);
                    self.begin(list.as_any())?;
                    self.open.push(Open::Array(list.unbind()));
                }
                Event::End => drop(self.open.pop()),
                Event::Key(text) => {
                    if let Some(Open::Object { key, .. }) = self.open.last_mut() {
                        *key = PyString::new(py, text).unbind();
                    }
                }
                Event::String => {
                    self.begin(PyString::new(py, "").as_any())?;
                    self.unshown = Some(String::new());
                }
                Event::Text(text) => {
                    if let Some(unshown) = &mut self.unshown {
                        unshown.push_str(text);
                    }
                }
                Event::StringEnd => {
                    self.show(py)?;
                    self.unshown = None;
                }
                Event::Integer(_) | Event::Float(_) | Event::Bool(_) | Event::Null => {
                    self.begin(&scalar(py, event)?)?;
                }
            }
        }
        self.show(py)
    }

    /// Return the value so far; `None` before its first byte.
    pub(crate) fn value<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.root.as_ref().map_or_else(|| py.None().into_bound(py), |root| root.bind(py).clone())
    }

    /// Put a value that begins into its container.
    fn begin(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        match self.open.last() {
            Some(Open::Object { dict, key }) => dict.bind(py).set_item(key, value),
            Some(Open::Array(list)) => list.bind(py).append(value),
            None => {
                self.root = Some(value.clone().unbind());
                Ok(())
            }
        }
    }

    /// Add the new text of the unfinished string to the string in its container.
    fn show(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(unshown) = self.unshown.as_mut().filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        let more = PyString::new(py, unshown);
        unshown.clear();
        // The container gives its reference away, so that the string can grow in place.
        let none = py.None().into_bound(py);
        match self.open.last() {
            Some(Open::Object { dict, key }) => {
                let dict = dict.bind(py);
                let shown = dict.get_item(key)?.unwrap_or_else(|| more.as_any().clone());
                dict.set_item(key, &none)?;
                dict.set_item(key, joined(shown, &more)?)
            }
            Some(Open::Array(list)) => {
                let list = list.bind(py);
                let index = list.len().saturating_sub(1);
                let shown = list.get_item(index)?;
                list.set_item(index, &none)?;
                list.set_item(index, joined(shown, &more)?)
            }
            None => {
                let shown = self.root.take().map(|root| root.into_bound(py));
                let text = shown.map_or_else(|| Ok(more.as_any().clone()), |it| joined(it, &more));
                self.root = Some(text?.unbind());
                Ok(())
            }
        }
    }
}

/// Return a string with more text, in the memory of the string if this is its only reference.
#[expect(unsafe_code, reason = "only this function of CPython adds to a string in place")]
fn joined<'py>(
    text: Bound<'py, PyAny>,
    more: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    if !text.is_instance_of::<PyString>() {
        return Ok(more.as_any().clone()); // the caller has changed the value
    }
    let mut pointer = text.into_ptr();
    // SAFETY: `pointer` is an owned reference to a str, which the call takes over. It leaves an owned reference, or null
    // with an exception. `more` is a str that lives during the call.
    unsafe {
        ffi::PyUnicode_Append(&raw mut pointer, more.as_ptr());
        Bound::from_owned_ptr_or_err(py, pointer)
    }
}
