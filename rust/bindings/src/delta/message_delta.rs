//! `MessageDelta`: one delta as an object that owns its text.
//!
//! In: a delta of the core, or a mapping or JSON in wire names.  Out: a Python object, a mapping or JSON.
//!
//! Law: frequent deltas are small, and their Python strings are built once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use deltafold::CallId;
use deltafold::contract::{
    Delta, DeltaKind, Failure, InputFormat, Payload, TextAttributes, TextOnlyDelta,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyType};

use crate::delta::logprobs::Logprobs;
use crate::delta::payload;
use crate::support::clock;
use crate::support::contract;
use crate::support::errors;
use crate::support::imports::{DELTA_SCHEMA, JSON_LOADS, PART_FROM_WIRE};
use crate::support::json;

/// One event of a stream.
///
/// Args:
///     run_id: the id of the agent run.
///     seq: the sequence number; rises strictly from 1 within a stream.
///     kind: a `DeltaKind` or its name.
///     payload: the members of the kind in wire names (`{"textDelta": "Hi"}`); see contract.schema.json.
///     timestamp: an aware datetime or RFC 3339 text, kept to the millisecond; by default the current time.
///     provider_raw: the event of the provider, for debugging.
///
/// Raises:
///     ContractError: a member is missing or has the wrong type; the message names it and the value's type.
///
/// Example:
///     >>> MessageDelta("run", 1, "text", {"textDelta": "Hi"}).text
///     'Hi'
#[pyclass(frozen, module = "deltafold._core")]
pub(crate) struct MessageDelta {
    #[pyo3(get)]
    run_id: Py<PyString>,
    /// New text of a text or thinking delta, None for other kinds.  Stored, because Python reads a member faster than a
    /// getter.
    #[pyo3(get)]
    text: Py<PyAny>,
    seq: u64,
    now: clock::Timestamp,
    body: Body,
}

/// Return the id of a call as a Python string, which is built once per stream.
fn shown_id(py: Python<'_>, id: &CallId) -> Py<PyString> {
    let make = || PyString::new(py, id).unbind();
    id.shown_as(make).map_or_else(make, |shown| shown.clone_ref(py))
}

/// Content of a delta: compact for the three frequent kinds, a payload for all others.
enum Body {
    Text {
        part_index: u32,
    },
    Thinking {
        part_index: u32,
    },
    Args {
        part_index: u32,
        id: Py<PyString>,
        text: Py<PyString>,
    },
    /// Boxed, because the payload is three times as large as the other variants.
    Rare(Box<Rare>),
}

struct Rare {
    payload: Payload<Box<str>>,
    raw: Option<Box<str>>,
}

impl MessageDelta {
    /// Build a delta that carries only text.
    pub(crate) fn from_text_only<'py>(
        py: Python<'py>,
        run_id: &Py<PyString>,
        seq: u64,
        delta: TextOnlyDelta<'_>,
        now: clock::Timestamp,
    ) -> PyResult<Bound<'py, Self>> {
        let string = |text: &str| PyString::new(py, text).unbind();
        let make = |text, body| {
            Bound::new(py, Self { run_id: run_id.clone_ref(py), text, seq, now, body })
        };
        match delta {
            TextOnlyDelta::Text { part, text } => {
                make(string(text).into_any(), Body::Text { part_index: part })
            }
            TextOnlyDelta::Thinking { part, text } => {
                make(string(text).into_any(), Body::Thinking { part_index: part })
            }
            TextOnlyDelta::Args { part, id, text } => {
                let (id, text) = (shown_id(py, id), string(text));
                make(py.None(), Body::Args { part_index: part, id, text })
            }
        }
    }

    pub(crate) fn from_core<'py>(
        py: Python<'py>,
        run_id: &Py<PyString>,
        delta: &Delta<&str>,
        now: clock::Timestamp,
    ) -> PyResult<Bound<'py, Self>> {
        if let (Some(text_only), None) = (delta.payload.text_only(), delta.provider_raw) {
            return Self::from_text_only(py, run_id, delta.seq, text_only, now);
        }
        let rare =
            Rare { payload: delta.payload.to_owned(), raw: delta.provider_raw.map(Into::into) };
        let text = match &rare.payload {
            Payload::Text { text, .. } | Payload::Thinking { text, .. } => {
                PyString::new(py, text).into_any().unbind()
            }
            _ => py.None(),
        };
        let body = Body::Rare(Box::new(rare));
        Bound::new(py, Self { run_id: run_id.clone_ref(py), text, seq: delta.seq, now, body })
    }

    pub(crate) fn now(&self) -> clock::Timestamp {
        self.now
    }

    pub(crate) fn run_id_str<'a>(&'a self, py: Python<'_>) -> PyResult<&'a str> {
        self.run_id.to_str(py)
    }

    /// Return the delta of the core, which borrows from this object.
    pub(crate) fn as_core<'a>(&'a self, py: Python<'a>) -> PyResult<Delta<&'a str>> {
        let attributes = TextAttributes::default();
        let text = || -> PyResult<&'a str> { self.text.bind(py).cast::<PyString>()?.to_str() };
        let payload = match &self.body {
            Body::Text { part_index } => {
                Payload::Text { text: text()?, part_index: Some(*part_index), attributes }
            }
            Body::Thinking { part_index } => {
                Payload::Thinking { text: text()?, part_index: Some(*part_index), attributes }
            }
            Body::Args { part_index, id, text } => Payload::ToolCallArgs {
                id: id.to_str(py)?,
                text: text.to_str(py)?,
                part_index: Some(*part_index),
            },
            Body::Rare(rare) => rare.payload.as_deref(),
        };
        Ok(Delta { seq: self.seq, payload, provider_raw: self.raw() })
    }

    fn rare(&self) -> Option<&Payload<Box<str>>> {
        match &self.body {
            Body::Rare(rare) => Some(&rare.payload),
            _ => None,
        }
    }

    /// Return the JSON of the frame.
    fn raw(&self) -> Option<&str> {
        match &self.body {
            Body::Rare(rare) => rare.raw.as_deref(),
            _ => None,
        }
    }

    fn core_kind(&self) -> DeltaKind {
        match &self.body {
            Body::Text { .. } => DeltaKind::Text,
            Body::Thinking { .. } => DeltaKind::Thinking,
            Body::Args { .. } => DeltaKind::ToolCallArgs,
            Body::Rare(rare) => rare.payload.kind(),
        }
    }

    /// Return the failure of an error delta.
    fn failure(&self) -> Option<&Failure<Box<str>>> {
        match self.rare() {
            Some(Payload::Error(failure)) => Some(failure),
            _ => None,
        }
    }

    /// Return the attributes of a text or thinking delta.
    fn attributes(&self) -> Option<&TextAttributes<Box<str>>> {
        match self.rare() {
            Some(Payload::Text { attributes, .. } | Payload::Thinking { attributes, .. }) => {
                Some(attributes)
            }
            _ => None,
        }
    }
}

#[pymethods]
impl MessageDelta {
    #[new]
    #[pyo3(signature = (run_id, seq, kind, payload, timestamp=None, provider_raw=None))]
    fn new<'py>(
        py: Python<'py>,
        run_id: &Bound<'_, PyAny>,
        seq: &Bound<'_, PyAny>,
        kind: &Bound<'_, PyAny>,
        payload: &Bound<'_, PyAny>,
        timestamp: Option<&Bound<'_, PyAny>>,
        provider_raw: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let wire = PyDict::new(py);
        wire.set_item("runId", run_id)?;
        wire.set_item("seq", seq)?;
        wire.set_item("kind", kind)?;
        wire.set_item("payload", payload)?;
        wire.set_item("timestamp", timestamp)?;
        wire.set_item("providerRaw", provider_raw)?;
        Self::from_wire(py, wire.as_any())
    }

    #[getter]
    fn seq(&self) -> u64 {
        self.seq
    }

    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        contract::delta_kind(py, self.core_kind())
    }

    /// Members in wire names, built on demand.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if let Body::Args { part_index, id, text } = &self.body {
            // The id may be long, so it is not copied for each delta that repeats it.
            let dict = PyDict::new(py);
            dict.set_item(intern!(py, "toolCallId"), id)?;
            dict.set_item(intern!(py, "argsTextDelta"), text)?;
            dict.set_item(intern!(py, "partIndex"), *part_index)?;
            return Ok(dict);
        }
        payload::to_dict(py, &self.as_core(py)?.payload)
    }

    /// Aware datetime in UTC, exact to the millisecond.
    #[getter]
    fn timestamp<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        clock::to_datetime(py, self.now)
    }

    #[getter]
    fn provider_raw<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.raw().map(|raw| json::to_python(py, raw)).transpose()
    }

    /// Number of the part, for text, thinking, the deltas of a call, part and part_end.
    #[getter]
    fn part_index(&self) -> Option<u32> {
        match &self.body {
            Body::Text { part_index }
            | Body::Thinking { part_index }
            | Body::Args { part_index, .. } => Some(*part_index),
            Body::Rare(rare) => match &rare.payload {
                Payload::Text { part_index, .. }
                | Payload::Thinking { part_index, .. }
                | Payload::ToolCallStart { part_index, .. }
                | Payload::ToolCallArgs { part_index, .. }
                | Payload::ToolCallEnd { part_index, .. }
                | Payload::Part { part_index, .. } => *part_index,
                Payload::PartEnd { part_index } => Some(*part_index),
                _ => None,
            },
        }
    }

    #[getter]
    fn annotations<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        optional(py, self.attributes().and_then(|attributes| attributes.annotations.as_deref()))
    }

    #[getter]
    fn refusal(&self) -> bool {
        self.attributes().is_some_and(|attributes| attributes.refusal)
    }

    #[getter]
    fn redacted(&self) -> bool {
        self.attributes().is_some_and(|attributes| attributes.redacted)
    }

    #[getter]
    fn logprobs(&self) -> Option<Logprobs> {
        let logprobs = self.attributes().and_then(|attributes| attributes.logprobs.as_ref());
        logprobs.map(|logprobs| Logprobs::new(Arc::clone(logprobs)))
    }

    #[getter]
    fn provider_state<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let state = match self.rare() {
            Some(
                Payload::ToolCallStart { provider_state, .. }
                | Payload::ToolCallEnd { provider_state, .. },
            ) => provider_state.as_deref(),
            _ => self.attributes().and_then(|attributes| attributes.provider_state.as_deref()),
        };
        optional(py, state)
    }

    #[getter]
    fn tool_call_id(&self, py: Python<'_>) -> Option<Py<PyString>> {
        if let Body::Args { id, .. } = &self.body {
            return Some(id.clone_ref(py));
        }
        match self.rare() {
            Some(
                Payload::ToolCallStart { id, .. }
                | Payload::ToolCallArgs { id, .. }
                | Payload::ToolCallEnd { id, .. },
            ) => Some(PyString::new(py, id).unbind()),
            _ => None,
        }
    }

    #[getter]
    fn tool_name(&self) -> Option<&str> {
        match self.rare() {
            Some(Payload::ToolCallStart { name, .. }) => Some(name),
            _ => None,
        }
    }

    /// New text of the arguments of a call.
    #[getter]
    fn args_text(&self, py: Python<'_>) -> Option<Py<PyString>> {
        if let Body::Args { text, .. } = &self.body {
            return Some(text.clone_ref(py));
        }
        match self.rare() {
            Some(Payload::ToolCallArgs { text, .. }) => Some(PyString::new(py, text).unbind()),
            _ => None,
        }
    }

    /// New audio of an `audio` delta in base64, as the provider cut it.
    #[getter]
    fn audio(&self) -> Option<&str> {
        match self.rare() {
            Some(Payload::Audio { data }) => Some(data),
            _ => None,
        }
    }

    #[getter]
    fn input_format(&self) -> Option<&'static str> {
        match self.rare() {
            Some(Payload::ToolCallStart { input_format, .. }) => {
                Some(InputFormat::as_str(*input_format))
            }
            _ => None,
        }
    }

    #[getter]
    fn incomplete(&self) -> bool {
        matches!(self.rare(), Some(Payload::ToolCallEnd { incomplete: true, .. }))
    }

    #[getter]
    fn usage<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.rare() {
            Some(Payload::Usage(usage)) => contract::usage(py, &usage.map(AsRef::as_ref)).map(Some),
            _ => Ok(None),
        }
    }

    #[getter]
    fn model_id(&self) -> Option<&str> {
        match self.rare() {
            Some(Payload::Start { model_id, .. }) => Some(model_id),
            Some(Payload::Done { model_id, .. }) => model_id.as_deref(),
            _ => None,
        }
    }

    #[getter]
    fn request_id(&self) -> Option<&str> {
        match self.rare() {
            Some(Payload::Start { request_id, .. }) => Some(request_id),
            _ => None,
        }
    }

    #[getter]
    fn finish_reason<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.rare() {
            Some(Payload::Done { finish_reason, .. }) => {
                contract::finish_reason(py, *finish_reason).map(Some)
            }
            _ => Ok(None),
        }
    }

    #[getter]
    fn raw_finish_reason(&self) -> Option<&str> {
        match self.rare() {
            Some(Payload::Done { raw_finish_reason, .. }) => raw_finish_reason.as_deref(),
            _ => None,
        }
    }

    /// Facts without a member in the contract, under the provider's names, on the terminal: `{"stop_sequence": …}`.
    #[getter]
    fn details<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.rare() {
            Some(Payload::Done { details, .. }) => optional(py, details.as_deref()),
            Some(Payload::Error(failure)) => optional(py, failure.details.as_deref()),
            _ => Ok(None),
        }
    }

    /// Warnings of the stream, on its terminal: `{"code", "message", "offset"?}` each.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let warnings = match self.rare() {
            Some(Payload::Done { warnings, .. }) => warnings.as_deref(),
            Some(Payload::Error(failure)) => failure.warnings.as_deref(),
            _ => None,
        };
        json::to_python(py, warnings.unwrap_or("[]"))
    }

    #[getter]
    fn error_code<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.failure().map(|failure| contract::error_code(py, failure.code)).transpose()
    }

    #[getter]
    fn error_message(&self) -> Option<&str> {
        self.failure().and_then(|failure| failure.message.as_deref())
    }

    #[getter]
    fn retryable(&self) -> Option<bool> {
        self.failure().and_then(|failure| failure.retryable)
    }

    /// Seconds to wait before a retry.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.failure().and_then(|failure| failure.retry_after)
    }

    #[getter]
    fn status(&self) -> Option<u16> {
        self.failure().and_then(|failure| failure.status)
    }

    #[getter]
    fn provider_code(&self) -> Option<&str> {
        self.failure().and_then(|failure| failure.provider_code.as_deref())
    }

    #[getter]
    fn http_request_id(&self) -> Option<&str> {
        self.failure().and_then(|failure| failure.http_request_id.as_deref())
    }

    /// The whole part of a `part` delta: an `ImagePart`, `FileRefPart` or `ProviderPart`.  The payload has its wire form.
    #[getter]
    fn part<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.rare() {
            Some(Payload::Part { part, .. }) => {
                PART_FROM_WIRE.get(py)?.call1((json::to_python(py, part)?,)).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Return the delta as a mapping in wire names.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("runId", &self.run_id)?;
        dict.set_item("seq", self.seq)?;
        dict.set_item("kind", self.core_kind().as_str())?;
        dict.set_item("payload", self.payload(py)?)?;
        dict.set_item("timestamp", clock::to_text(self.now)?)?;
        if let Some(raw) = self.provider_raw(py)? {
            dict.set_item("providerRaw", raw)?;
        }
        Ok(dict)
    }

    /// Build a delta from a mapping in wire names.
    ///
    /// Raises:
    ///     ContractError: a member is missing or has the wrong type.
    #[classmethod]
    fn from_dict<'py>(
        _class: &Bound<'_, PyType>,
        py: Python<'py>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        Self::from_wire(py, data)
    }

    /// Return the delta as JSON in wire names.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        json::from_python(self.to_dict(py)?.as_any()).map(String::from)
    }

    /// Build a delta from JSON in wire names.
    ///
    /// Raises:
    ///     ContractError: the text is not JSON, or a member is missing or has the wrong type.
    #[classmethod]
    fn from_json<'py>(
        _class: &Bound<'_, PyType>,
        py: Python<'py>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let value = JSON_LOADS.get(py)?.call1((data,)).map_err(|error| {
            errors::contract(py, &format!("the delta is no JSON: {}", error.value(py)), None, None)
        })?;
        Self::from_wire(py, &value)
    }

    /// Return true if all members except the timestamp are equal.  Members that the contract leaves open are compared as
    /// values.
    fn same_content(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<bool> {
        let other = other.get();
        if self.seq != other.seq
            || self.core_kind() != other.core_kind()
            || self.run_id_str(py)? != other.run_id_str(py)?
        {
            return Ok(false);
        }
        if self.as_core(py)? == other.as_core(py)? {
            return Ok(true);
        }
        // Open members are stored as JSON text, and a value may be written in several ways.
        Ok(self.payload(py)?.eq(other.payload(py)?)?
            && self.provider_raw(py)?.into_pyobject(py)?.eq(other.provider_raw(py)?)?)
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        if let Ok(other) = other.cast::<Self>() {
            let equal = self.now == other.get().now && self.same_content(py, other)?;
            Ok(pyo3::types::PyBool::new(py, equal).to_owned().into_any())
        } else {
            Ok(py.NotImplemented().into_bound(py))
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.run_id_str(py)?.hash(&mut hasher);
        (self.seq, self.now, self.core_kind()).hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut payload = self.payload(py)?.repr()?.to_string();
        if let Some((at, _)) = payload.char_indices().nth(80) {
            payload.truncate(at);
            payload.push('…');
        }
        Ok(format!("<MessageDelta {} {} {payload}>", self.seq, self.core_kind().as_str()))
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = this.py();
        let from_json = py.get_type::<Self>().getattr("from_json")?;
        let text = this.get().to_json(py)?;
        Ok((from_json, (PyBytes::new(py, text.as_bytes()),)))
    }

    #[classmethod]
    fn __get_pydantic_core_schema__<'py>(
        class: &Bound<'py, PyType>,
        source: &Bound<'py, PyAny>,
        handler: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        DELTA_SCHEMA.get(class.py())?.call1((class, source, handler))
    }
}

fn optional<'py>(py: Python<'py>, text: Option<&str>) -> PyResult<Option<Bound<'py, PyAny>>> {
    text.map(|text| json::to_python(py, text)).transpose()
}
