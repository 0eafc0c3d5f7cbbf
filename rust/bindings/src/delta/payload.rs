//! Conversion between payloads and mappings in wire names.
//!
//! In: a payload or a mapping.  Out: the other.
//!
//! Law: each member of a mapping is checked.

use deltafold::contract::{
    DeltaKind, ErrorCode, Failure, FinishReason, InputFormat, Logprobs, Payload, TextAttributes,
    Usage,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::support::json;
use crate::support::members::Members;

/// Return the payload as a new dict in wire names, without absent members.
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
        Payload::ToolCallArgs { id, text, part_index } => {
            dict.set_item("toolCallId", id)?;
            dict.set_item("argsTextDelta", text)?;
            writer.some("partIndex", *part_index)?;
        }
        Payload::ToolCallEnd { id, part_index, incomplete, provider_state } => {
            dict.set_item("toolCallId", id)?;
            writer.some("partIndex", *part_index)?;
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
            writer.json("details", failure.details)?;
            writer.json("warnings", failure.warnings)?;
        }
        Payload::Part { part_index, part } => {
            writer.some("partIndex", *part_index)?;
            writer.json("part", Some(part))?;
        }
        Payload::PartEnd { part_index } => dict.set_item("partIndex", *part_index)?,
        Payload::Audio { data } => dict.set_item("audioDelta", data)?,
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

/// Read the payload of a mapping in wire names.
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
            part_index: members.index("partIndex")?,
        },
        DeltaKind::ToolCallEnd => Payload::ToolCallEnd {
            id: members.text("toolCallId")?,
            part_index: members.index("partIndex")?,
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
            details: members.object("details")?,
            warnings: members.array("warnings")?,
            body: None,
        }),
        DeltaKind::Part => Payload::Part {
            part_index: members.index("partIndex")?,
            part: members.whole_part("part")?,
        },
        DeltaKind::PartEnd => Payload::PartEnd {
            part_index: members.index("partIndex")?.ok_or_else(|| members.missing("partIndex"))?,
        },
        DeltaKind::Audio => Payload::Audio { data: members.text("audioDelta")? },
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
