//! Text from outside: conversion of a Python `str`, which may hold lone surrogates, to Rust text.
//!
//! The functions are for texts of a provider or an HTTP client.  Names that the caller gives (dialects, ids, tools) are not
//! converted; a lone surrogate in a name is refused.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::support::imports::WELL_FORMED;

/// Return the text with U+FFFD in place of each lone surrogate.
pub(crate) fn from_outside<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, str>> {
    match text.to_str() {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => WELL_FORMED.get(text.py())?.call1((text,))?.extract().map(Cow::Owned),
    }
}

/// Convert an optional text as [`from_outside`] does.
pub(crate) fn boxed(text: Option<&Bound<'_, PyString>>) -> PyResult<Option<Box<str>>> {
    text.map(|text| from_outside(text).map(Into::into)).transpose()
}
