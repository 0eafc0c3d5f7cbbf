//! Signals of the process while much is read in one call: Ctrl-C ends it.
//!
//! Law: signal handlers run between slices, in the thread that called; what a handler raises ends the call.

use std::time::Duration;

use pyo3::prelude::*;

/// Bytes between two looks at the signals: some milliseconds of work, and far above what one read of a socket brings.
pub(crate) const SLICE: usize = 1 << 20;

/// Time between two looks of a thread that only waits.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Hands the bytes on in slices.
pub(crate) fn in_slices<E>(
    bytes: &[u8],
    mut take: impl FnMut(&[u8]),
    mut look: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let mut rest = bytes;
    while let Some((slice, next)) =
        rest.split_at_checked(SLICE).filter(|(_, next)| !next.is_empty())
    {
        take(slice);
        look()?;
        rest = next;
    }
    take(rest);
    Ok(())
}

/// Runs the handlers of signals that have come, of a thread that is detached from Python.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone has one lifetime")]
pub(crate) fn look_detached() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}
