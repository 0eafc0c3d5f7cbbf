//! Check that the interpreter of an import is the main one.
//!
//! In: the interpreter that initialises the module.  Out: nothing, or an `ImportError`.

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Return an `ImportError` in a subinterpreter.
///
/// PyO3 caches classes and imported objects for the process.  An interpreter would get those of another one, whose `isinstance`
/// is false, and whose memory ends with their interpreter.  PyO3 makes this check itself for submodules only.
#[expect(unsafe_code, reason = "only these functions of CPython tell interpreters apart")]
pub(crate) fn require_main(_py: Python<'_>) -> PyResult<()> {
    // SAFETY: the thread is attached to an interpreter, which `_py` proves.
    let id = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if id == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "deltafold works in the main interpreter only, and so does pydantic-core, which it needs: import it there, and use threads or \
         processes in place of subinterpreters",
    ))
}
