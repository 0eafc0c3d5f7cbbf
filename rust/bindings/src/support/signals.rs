//! Signals during a call that reads many bytes: Ctrl-C ends the call.
//!
//! Law: signal handlers run between slices, in the calling thread.  An exception of a handler ends the call.

use std::time::Duration;

use pyo3::prelude::*;

/// Bytes between two checks for signals: some milliseconds of work, and far more than one read of a socket returns.
pub(crate) const SLICE: usize = 8 << 20;

/// Time between two checks of a thread that only waits.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Pass the bytes to `take` in slices, and call `look` between them.
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

/// Run the handlers of pending signals, in a thread that is detached from Python.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone has one lifetime")]
pub(crate) fn look_detached() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}
