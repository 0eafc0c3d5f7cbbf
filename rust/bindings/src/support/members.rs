//! `Members`: a reader of the members of a Python mapping that checks their types.
//!
//! In: a mapping in wire names.  Out: Rust values, or a `ContractError` that names the member and its owner.

use std::sync::Arc;

use deltafold::contract::{Logprobs, LogprobsError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::support::errors;
use crate::support::imports::{MAPPING, PART_FROM_WIRE};
use crate::support::json;

/// Reader of the members of a mapping.
pub(crate) struct Members<'a, 'py> {
    mapping: &'a Bound<'py, PyAny>,
    owner: String,
    seq: Option<u64>,
}

impl<'a, 'py> Members<'a, 'py> {
    pub(crate) fn new(
        mapping: &'a Bound<'py, PyAny>,
        owner: &str,
        seq: Option<u64>,
    ) -> PyResult<Self> {
        let members = Self { mapping, owner: owner.to_owned(), seq };
        if mapping.is_instance(MAPPING.get(mapping.py())?)? {
            Ok(members)
        } else {
            let message = format!("{owner} must be a mapping, not {}", kind_of(mapping));
            Err(errors::contract(mapping.py(), &message, seq, None))
        }
    }

    pub(crate) fn missing(&self, name: &str) -> PyErr {
        let message = format!("{} lacks {name}", self.owner);
        errors::contract(self.mapping.py(), &message, self.seq, Some(name))
    }

    fn wrong(&self, name: &str, want: &str, value: &Bound<'_, PyAny>) -> PyErr {
        let message = format!("{name} of {} must be {want}, not {}", self.owner, kind_of(value));
        errors::contract(self.mapping.py(), &message, self.seq, Some(name))
    }

    /// Return the member; `None` if it is missing or null.
    pub(crate) fn get(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !self.mapping.contains(name)? {
            return Ok(None);
        }
        Ok(Some(self.mapping.get_item(name)?).filter(|value| !value.is_none()))
    }

    pub(crate) fn opt_text(&self, name: &str) -> PyResult<Option<Box<str>>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        let Ok(text) = value.cast::<PyString>() else {
            return Err(self.wrong(name, "a string", &value));
        };
        if let Ok(text) = text.to_str() {
            Ok(Some(text.into()))
        } else {
            let message = format!("{name} of {} holds a lone surrogate", self.owner);
            Err(errors::contract(self.mapping.py(), &message, self.seq, Some(name)))
        }
    }

    pub(crate) fn text(&self, name: &str) -> PyResult<Box<str>> {
        self.opt_text(name)?.ok_or_else(|| self.missing(name))
    }

    pub(crate) fn member<T>(
        &self,
        name: &str,
        text: &str,
        find: impl Fn(&str) -> Option<T>,
    ) -> PyResult<T> {
        find(text).ok_or_else(|| {
            let message = format!("{name} of {} is unknown: {text:?}", self.owner);
            errors::contract(self.mapping.py(), &message, self.seq, Some(name))
        })
    }

    fn whole<T: for<'x> FromPyObject<'x, 'py>>(
        &self,
        name: &str,
        want: &str,
    ) -> PyResult<Option<T>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
            return Err(self.wrong(name, want, &value));
        }
        value.extract::<T>().map(Some).map_err(|_| self.wrong(name, want, &value))
    }

    pub(crate) fn count(&self, name: &str) -> PyResult<Option<u64>> {
        self.whole(name, "an integer that is not negative")
    }

    /// Return a required count; null means unknown.
    pub(crate) fn count_or_null(&self, name: &str) -> PyResult<Option<u64>> {
        if self.mapping.contains(name)? { self.count(name) } else { Err(self.missing(name)) }
    }

    /// Return a part of a kind that is emitted whole.
    pub(crate) fn whole_part(&self, name: &str) -> PyResult<Box<str>> {
        let text = self.object(name)?.ok_or_else(|| self.missing(name))?;
        let py = self.mapping.py();
        PART_FROM_WIRE.get(py)?.call1((json::to_python(py, &text)?,))?;
        Ok(text)
    }

    pub(crate) fn index(&self, name: &str) -> PyResult<Option<u32>> {
        self.whole(name, "a small integer that is not negative")
    }

    pub(crate) fn status(&self, name: &str) -> PyResult<Option<u16>> {
        self.whole(name, "an HTTP status")
    }

    pub(crate) fn number(&self, name: &str) -> PyResult<Option<f64>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        let numeric = value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>();
        let number = value.extract::<f64>().ok().filter(|number| number.is_finite());
        match number {
            Some(number) if numeric && !value.is_instance_of::<PyBool>() => Ok(Some(number)),
            _ => Err(self.wrong(name, "a finite number", &value)),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> PyResult<Option<bool>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        match value.cast::<PyBool>() {
            Ok(truth) => Ok(Some(truth.is_true())),
            Err(_) => Err(self.wrong(name, "a boolean", &value)),
        }
    }

    pub(crate) fn object(&self, name: &str) -> PyResult<Option<Box<str>>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        if !value.is_instance(MAPPING.get(value.py())?)? {
            return Err(self.wrong(name, "a mapping", &value));
        }
        self.json(name, &value)
    }

    pub(crate) fn logprobs(&self, name: &str) -> PyResult<Option<Arc<Logprobs>>> {
        let Some(text) = self.object(name)? else {
            return Ok(None);
        };
        let read = Logprobs::from_json(&text, deltafold::json::MAX_DEPTH);
        read.map(|read| Some(Arc::new(read))).map_err(|fault| {
            let owner = format!(", in {}", self.owner);
            logprobs_error(self.mapping.py(), &fault, &owner, self.seq)
        })
    }

    pub(crate) fn array(&self, name: &str) -> PyResult<Option<Box<str>>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
            return Err(self.wrong(name, "a list", &value));
        }
        self.json(name, &value)
    }

    fn json(&self, name: &str, value: &Bound<'py, PyAny>) -> PyResult<Option<Box<str>>> {
        // The text is later read with a bound on its nesting.  It is checked here, where an error reaches the caller.
        let text = json::from_python(value).and_then(|text| {
            json::to_python(value.py(), &text)?;
            Ok(text)
        });
        text.map(Some).map_err(|error| {
            let message =
                format!("{name} of {} is no JSON: {}", self.owner, error.value(value.py()));
            errors::contract(value.py(), &message, self.seq, Some(name))
        })
    }
}

fn kind_of(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// Build the `ContractError` of a defect in the log probabilities of `owner`.
pub(crate) fn logprobs_error(
    py: Python<'_>,
    fault: &LogprobsError,
    owner: &str,
    seq: Option<u64>,
) -> PyErr {
    let message = format!("logprobs: {} {}{owner}", fault.place, fault.wrong);
    errors::contract(py, &message, seq, Some("logprobs"))
}
