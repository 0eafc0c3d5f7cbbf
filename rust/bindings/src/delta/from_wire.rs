//! `MessageDelta` from its wire form.
//!
//! In: a mapping in wire names.  Out: a delta, or a `ContractError` that names the wrong member.

use deltafold::contract::{Delta, DeltaKind};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::delta::message_delta::MessageDelta;
use crate::delta::payload;
use crate::support::clock;
use crate::support::errors;
use crate::support::members::Members;

impl MessageDelta {
    /// Build a delta from a mapping in wire names.
    pub(crate) fn from_wire<'py>(
        py: Python<'py>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let members = Members::new(data, "the delta", None)?;
        let seq = members.count("seq")?.ok_or_else(|| members.missing("seq"))?;
        if seq == 0 {
            return Err(errors::contract(
                py,
                "seq must be at least 1, not 0",
                Some(0),
                Some("seq"),
            ));
        }
        let run_id = members.text("runId")?;
        let kind = members.text("kind")?;
        let payload = members.get("payload")?.ok_or_else(|| members.missing("payload"))?;
        let timestamp = members.get("timestamp")?;
        Self::build(
            py,
            &run_id,
            seq,
            &kind,
            &payload,
            timestamp.as_ref(),
            members.object("providerRaw")?,
        )
    }

    fn build<'py>(
        py: Python<'py>,
        run_id: &str,
        seq: u64,
        kind: &str,
        mapping: &Bound<'_, PyAny>,
        timestamp: Option<&Bound<'_, PyAny>>,
        raw: Option<Box<str>>,
    ) -> PyResult<Bound<'py, Self>> {
        let Some(kind) = DeltaKind::from_wire(kind) else {
            let known: Vec<_> = DeltaKind::ALL.iter().map(|kind| kind.as_str()).collect();
            let message = format!("unknown kind {kind:?}; known: {}", known.join(", "));
            return Err(errors::contract(py, &message, Some(seq), Some("kind")));
        };
        let payload = payload::from_mapping(kind, Some(seq), mapping)?;
        let now = match timestamp {
            None => clock::Timestamp::now(),
            Some(timestamp) => clock::from_python(timestamp).map_err(|error| {
                errors::contract(py, &error.value(py).to_string(), Some(seq), Some("timestamp"))
            })?,
        };
        let delta = Delta { seq, payload, provider_raw: raw };
        Self::from_core(py, &PyString::new(py, run_id).unbind(), &delta.as_deref(), now)
    }
}
