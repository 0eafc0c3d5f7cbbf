//! `EnvironmentValues`: variables of the environment at one time, to notice that one has changed.
//!
//! In: names.  Out: whether their values are still the same.
//!
//! `os.environ` raises and catches two exceptions for a variable that is missing, as most are.  It sets the variables of the
//! process, which are read here.

use std::env;
use std::ffi::OsString;

use pyo3::prelude::*;

/// Values that variables of the environment had when this was made.
///
/// Args:
///     names: the names of the variables.
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct EnvironmentValues(Vec<(OsString, Option<OsString>)>);

#[pymethods]
impl EnvironmentValues {
    #[new]
    #[pyo3(signature = (names, /))]
    fn new(names: Vec<OsString>) -> Self {
        let with_value = |name: OsString| {
            let value = env::var_os(&name);
            (name, value)
        };
        Self(names.into_iter().map(with_value).collect())
    }

    /// Return whether each variable still has its value, or is still missing.
    fn are_current(&self) -> bool {
        self.0.iter().all(|(name, value)| env::var_os(name) == *value)
    }
}
