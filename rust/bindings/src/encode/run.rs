//! Events of a run, as Python objects.
//!
//! In: an `AgentEvent`, known by its attributes.  Out: the delta that it holds, or the event of the core.

use deltafold::encode::RunEvent;
use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::delta::message_delta::MessageDelta;
use crate::support::json;

/// What an event of a run brings to an encoder.
pub(crate) enum Told<'py> {
    Delta(Bound<'py, MessageDelta>),
    Event(RunEvent),
    Nothing,
}

/// Return what an event of a run says; `None` for an object that is no event of a run.
pub(crate) fn told<'py>(event: &Bound<'py, PyAny>) -> PyResult<Option<Told<'py>>> {
    let py = event.py();
    let delta = match event.getattr(intern!(py, "delta")) {
        Ok(delta) => delta,
        Err(error) if error.is_instance_of::<PyAttributeError>(py) => return Ok(None),
        Err(error) => return Err(error),
    };
    if let Ok(delta) = delta.cast_into::<MessageDelta>() {
        return Ok(Some(Told::Delta(delta)));
    }
    let facts = match event.getattr(intern!(py, "facts")) {
        Ok(facts) => facts,
        Err(error) if error.is_instance_of::<PyAttributeError>(py) => return Ok(None),
        Err(error) => return Err(error),
    };
    let facts = json::from_python(&facts)?;
    Ok(Some(RunEvent::read(&facts).map_or(Told::Nothing, Told::Event)))
}
