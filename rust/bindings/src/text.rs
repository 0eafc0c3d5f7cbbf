//! Text from outside: a `str` of Python that may hold lone surrogates → Rust's text.
//!
//! For texts of a provider or an HTTP client.  Names that the caller gives (dialects, ids, tools) are refused instead.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::imports::WELL_FORMED;

/// The text with U+FFFD in place of each lone surrogate.
pub(crate) fn from_outside<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, str>> {
    match text.to_str() {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => WELL_FORMED.get(text.py())?.call1((text,))?.extract().map(Cow::Owned),
    }
}

/// An optional text.
pub(crate) fn boxed(text: Option<&Bound<'_, PyString>>) -> PyResult<Option<Box<str>>> {
    text.map(|text| from_outside(text).map(Into::into)).transpose()
}
