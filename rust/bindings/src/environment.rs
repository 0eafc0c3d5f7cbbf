//! `environment_values`: variables of the environment, to notice that one has changed.
//!
//! In: names.  Out: values.
//!
//! `os.environ` raises and catches two exceptions for a variable that is missing, as most are.  It sets the variables of the
//! process, which are read here.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Return the values of variables, None for those that are missing.
#[pyfunction]
#[pyo3(signature = (names, /))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn environment_values(names: Vec<OsString>) -> Vec<Option<OsString>> {
    names.iter().map(std::env::var_os).collect()
}
