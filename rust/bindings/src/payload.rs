//! Payloads ↔ mappings in wire names, validated member by member.

use std::sync::Arc;

use deltafold::contract::{
    DeltaKind, ErrorCode, Failure, FinishReason, InputFormat, Logprobs, Payload, TextAttributes,
    Usage,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::errors;
use crate::json;
use crate::logprobs;
use crate::types::{MAPPING, PART_FROM_WIRE};

/// The payload as a fresh dict in wire names; absent members are left out.
pub(crate) fn to_dict<'py>(
    py: Python<'py>,
    payload: &Payload<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let writer = DictWriter { py, dict: &dict };
    match payload {
        Payload::Start { model_id, request_id } => {
            dict.set_item("modelId", model_id)?;
            dict.set_item("requestId", request_id)?;
        }
        Payload::Text { text, part_index, attributes }
        | Payload::Thinking { text, part_index, attributes } => {
            dict.set_item("textDelta", text)?;
            writer.some("partIndex", *part_index)?;
            writer.json("annotations", attributes.annotations)?;
            writer.flag("refusal", attributes.refusal)?;
            writer.flag("redacted", attributes.redacted)?;
            writer.json("logprobs", attributes.logprobs.map(Logprobs::to_json).as_deref())?;
            writer.json("providerState", attributes.provider_state)?;
        }
        Payload::ToolCallStart { id, name, part_index, input_format, provider_state } => {
            dict.set_item("toolCallId", id)?;
            dict.set_item("toolName", name)?;
            writer.some("partIndex", *part_index)?;
            if *input_format != InputFormat::Json {
                dict.set_item("inputFormat", input_format.as_str())?;
            }
            writer.json("providerState", *provider_state)?;
        }
        Payload::ToolCallArgs { id, text } => {
            dict.set_item("toolCallId", id)?;
            dict.set_item("argsTextDelta", text)?;
        }
        Payload::ToolCallEnd { id, incomplete, provider_state } => {
            dict.set_item("toolCallId", id)?;
            writer.flag("incomplete", *incomplete)?;
            writer.json("providerState", *provider_state)?;
        }
        Payload::Usage(usage) => {
            dict.set_item("inputTokens", usage.input)?;
            dict.set_item("outputTokens", usage.output)?;
            dict.set_item("totalTokens", usage.total)?;
            writer.some("cost", usage.cost)?;
            writer.some("cacheReadTokens", usage.cache_read)?;
            writer.some("cacheWriteTokens", usage.cache_write)?;
            writer.some("reasoningTokens", usage.reasoning)?;
            writer.json("details", usage.details)?;
        }
        Payload::Done { finish_reason, raw_finish_reason, model_id, details, warnings } => {
            dict.set_item("finishReason", finish_reason.as_str())?;
            writer.some("rawFinishReason", *raw_finish_reason)?;
            writer.some("modelId", *model_id)?;
            writer.json("details", *details)?;
            writer.json("warnings", *warnings)?;
        }
        Payload::Error(failure) => {
            dict.set_item("errorCode", failure.code.as_str())?;
            writer.some("message", failure.message)?;
            writer.some("retryable", failure.retryable)?;
            writer.some("retryAfter", failure.retry_after)?;
            writer.some("status", failure.status)?;
            writer.some("providerCode", failure.provider_code)?;
            writer.some("httpRequestId", failure.http_request_id)?;
            writer.json("warnings", failure.warnings)?;
        }
        Payload::Part { part_index, part } => {
            writer.some("partIndex", *part_index)?;
            writer.json("part", Some(part))?;
        }
        Payload::PartEnd { part_index } => dict.set_item("partIndex", *part_index)?,
    }
    Ok(dict)
}

struct DictWriter<'a, 'py> {
    py: Python<'py>,
    dict: &'a Bound<'py, PyDict>,
}

impl<'py> DictWriter<'_, 'py> {
    fn some<T: IntoPyObject<'py>>(&self, name: &str, value: Option<T>) -> PyResult<()> {
        value.map_or(Ok(()), |value| self.dict.set_item(name, value))
    }

    fn flag(&self, name: &str, value: bool) -> PyResult<()> {
        if value { self.dict.set_item(name, true) } else { Ok(()) }
    }

    fn json(&self, name: &str, text: Option<&str>) -> PyResult<()> {
        match text {
            Some(text) => self.dict.set_item(name, json::to_python(self.py, text)?),
            None => Ok(()),
        }
    }
}

/// The payload that a mapping in wire names says.
pub(crate) fn from_mapping(
    kind: DeltaKind,
    seq: Option<u64>,
    mapping: &Bound<'_, PyAny>,
) -> PyResult<Payload<Box<str>>> {
    let members = Members::new(mapping, &format!("the payload of {}", kind.as_str()), seq)?;
    Ok(match kind {
        DeltaKind::Start => Payload::Start {
            model_id: members.text("modelId")?,
            request_id: members.text("requestId")?,
        },
        DeltaKind::Text => Payload::Text {
            text: members.text("textDelta")?,
            part_index: members.index("partIndex")?,
            attributes: attributes(&members)?,
        },
        DeltaKind::Thinking => Payload::Thinking {
            text: members.text("textDelta")?,
            part_index: members.index("partIndex")?,
            attributes: attributes(&members)?,
        },
        DeltaKind::ToolCallStart => Payload::ToolCallStart {
            id: members.text("toolCallId")?,
            name: members.text("toolName")?,
            part_index: members.index("partIndex")?,
            input_format: match members.opt_text("inputFormat")? {
                None => InputFormat::Json,
                Some(name) => members.member("inputFormat", &name, InputFormat::from_wire)?,
            },
            provider_state: members.object("providerState")?,
        },
        DeltaKind::ToolCallArgs => Payload::ToolCallArgs {
            id: members.text("toolCallId")?,
            text: members.text("argsTextDelta")?,
        },
        DeltaKind::ToolCallEnd => Payload::ToolCallEnd {
            id: members.text("toolCallId")?,
            incomplete: members.flag("incomplete")?.unwrap_or(false),
            provider_state: members.object("providerState")?,
        },
        DeltaKind::Usage => Payload::Usage(Usage {
            input: members.count_or_null("inputTokens")?,
            output: members.count_or_null("outputTokens")?,
            total: members.count_or_null("totalTokens")?,
            cost: members.number("cost")?,
            cache_read: members.count("cacheReadTokens")?,
            cache_write: members.count("cacheWriteTokens")?,
            reasoning: members.count("reasoningTokens")?,
            details: members.object("details")?,
        }),
        DeltaKind::Done => Payload::Done {
            finish_reason: {
                let name = members.text("finishReason")?;
                members.member("finishReason", &name, FinishReason::from_wire)?
            },
            raw_finish_reason: members.opt_text("rawFinishReason")?,
            model_id: members.opt_text("modelId")?,
            details: members.object("details")?,
            warnings: members.array("warnings")?,
        },
        DeltaKind::Error => Payload::Error(Failure {
            code: {
                let name = members.text("errorCode")?;
                members.member("errorCode", &name, ErrorCode::from_wire)?
            },
            message: members.opt_text("message")?,
            retryable: members.flag("retryable")?,
            retry_after: members.number("retryAfter")?,
            status: members.status("status")?,
            provider_code: members.opt_text("providerCode")?,
            http_request_id: members.opt_text("httpRequestId")?,
            warnings: members.array("warnings")?,
        }),
        DeltaKind::Part => Payload::Part {
            part_index: members.index("partIndex")?,
            part: members.whole_part("part")?,
        },
        DeltaKind::PartEnd => Payload::PartEnd {
            part_index: members.index("partIndex")?.ok_or_else(|| members.missing("partIndex"))?,
        },
    })
}

fn attributes(members: &Members<'_, '_>) -> PyResult<TextAttributes<Box<str>>> {
    Ok(TextAttributes {
        annotations: members.array("annotations")?,
        refusal: members.flag("refusal")?.unwrap_or(false),
        redacted: members.flag("redacted")?.unwrap_or(false),
        logprobs: members.logprobs("logprobs")?,
        provider_state: members.object("providerState")?,
    })
}

/// Reads members and names what is wrong with them.
pub(crate) struct Members<'a, 'py> {
    mapping: &'a Bound<'py, PyAny>,
    owner: String,
    seq: Option<u64>,
}

impl<'a, 'py> Members<'a, 'py> {
    pub(crate) fn new(
        mapping: &'a Bound<'py, PyAny>,
        owner: &str,
        seq: Option<u64>,
    ) -> PyResult<Self> {
        let members = Self { mapping, owner: owner.to_owned(), seq };
        if mapping.is_instance(MAPPING.get(mapping.py())?)? {
            Ok(members)
        } else {
            let message = format!("{owner} must be a mapping, not {}", kind_of(mapping));
            Err(errors::contract(mapping.py(), &message, seq, None))
        }
    }

    pub(crate) fn missing(&self, name: &str) -> PyErr {
        let message = format!("{} lacks {name}", self.owner);
        errors::contract(self.mapping.py(), &message, self.seq, Some(name))
    }

    fn wrong(&self, name: &str, want: &str, value: &Bound<'_, PyAny>) -> PyErr {
        let message = format!("{name} of {} must be {want}, not {}", self.owner, kind_of(value));
        errors::contract(self.mapping.py(), &message, self.seq, Some(name))
    }

    /// The member, `None` when it is missing or null.
    pub(crate) fn get(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !self.mapping.contains(name)? {
            return Ok(None);
        }
        Ok(Some(self.mapping.get_item(name)?).filter(|value| !value.is_none()))
    }

    pub(crate) fn opt_text(&self, name: &str) -> PyResult<Option<Box<str>>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        let Ok(text) = value.cast::<PyString>() else {
            return Err(self.wrong(name, "a string", &value));
        };
        if let Ok(text) = text.to_str() {
            Ok(Some(text.into()))
        } else {
            let message = format!("{name} of {} holds a lone surrogate", self.owner);
            Err(errors::contract(self.mapping.py(), &message, self.seq, Some(name)))
        }
    }

    pub(crate) fn text(&self, name: &str) -> PyResult<Box<str>> {
        self.opt_text(name)?.ok_or_else(|| self.missing(name))
    }

    fn member<T>(&self, name: &str, text: &str, find: impl Fn(&str) -> Option<T>) -> PyResult<T> {
        find(text).ok_or_else(|| {
            let message = format!("{name} of {} is unknown: {text:?}", self.owner);
            errors::contract(self.mapping.py(), &message, self.seq, Some(name))
        })
    }

    fn whole<T: for<'x> FromPyObject<'x, 'py>>(
        &self,
        name: &str,
        want: &str,
    ) -> PyResult<Option<T>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
            return Err(self.wrong(name, want, &value));
        }
        value.extract::<T>().map(Some).map_err(|_| self.wrong(name, want, &value))
    }

    pub(crate) fn count(&self, name: &str) -> PyResult<Option<u64>> {
        self.whole(name, "an integer that is not negative")
    }

    /// A count that must be said, be it null for unknown.
    fn count_or_null(&self, name: &str) -> PyResult<Option<u64>> {
        if self.mapping.contains(name)? { self.count(name) } else { Err(self.missing(name)) }
    }

    /// A part of one of the kinds that come whole.
    fn whole_part(&self, name: &str) -> PyResult<Box<str>> {
        let text = self.object(name)?.ok_or_else(|| self.missing(name))?;
        let py = self.mapping.py();
        PART_FROM_WIRE.get(py)?.call1((json::to_python(py, &text)?,))?;
        Ok(text)
    }

    fn index(&self, name: &str) -> PyResult<Option<u32>> {
        self.whole(name, "a small integer that is not negative")
    }

    fn status(&self, name: &str) -> PyResult<Option<u16>> {
        self.whole(name, "an HTTP status")
    }

    fn number(&self, name: &str) -> PyResult<Option<f64>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        let numeric = value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>();
        let number = value.extract::<f64>().ok().filter(|number| number.is_finite());
        match number {
            Some(number) if numeric && !value.is_instance_of::<PyBool>() => Ok(Some(number)),
            _ => Err(self.wrong(name, "a finite number", &value)),
        }
    }

    fn flag(&self, name: &str) -> PyResult<Option<bool>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        match value.cast::<PyBool>() {
            Ok(truth) => Ok(Some(truth.is_true())),
            Err(_) => Err(self.wrong(name, "a boolean", &value)),
        }
    }

    pub(crate) fn object(&self, name: &str) -> PyResult<Option<Box<str>>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        if !value.is_instance(MAPPING.get(value.py())?)? {
            return Err(self.wrong(name, "a mapping", &value));
        }
        self.json(name, &value)
    }

    pub(crate) fn logprobs(&self, name: &str) -> PyResult<Option<Arc<Logprobs>>> {
        let Some(text) = self.object(name)? else {
            return Ok(None);
        };
        let read = Logprobs::from_json(&text, deltafold::json::MAX_DEPTH);
        read.map(|read| Some(Arc::new(read))).map_err(|fault| {
            let owner = format!(", in {}", self.owner);
            logprobs::wrong(self.mapping.py(), &fault, &owner, self.seq)
        })
    }

    fn array(&self, name: &str) -> PyResult<Option<Box<str>>> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
            return Err(self.wrong(name, "a list", &value));
        }
        self.json(name, &value)
    }

    fn json(&self, name: &str, value: &Bound<'py, PyAny>) -> PyResult<Option<Box<str>>> {
        // What comes back is read with a bound on its nesting, so it is checked here, where the caller can be told.
        let text = json::from_python(value).and_then(|text| {
            json::to_python(value.py(), &text)?;
            Ok(text)
        });
        text.map(Some).map_err(|error| {
            let message =
                format!("{name} of {} is no JSON: {}", self.owner, error.value(value.py()));
            errors::contract(value.py(), &message, self.seq, Some(name))
        })
    }
}

fn kind_of(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}
