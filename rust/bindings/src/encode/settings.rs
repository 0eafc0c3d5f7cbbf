//! Settings of an encoder from Python keywords.
//!
//! In: keywords of `Encoder` and of the functions that encode.  Out: settings of the core; an error names the keyword.

use std::collections::BTreeMap;
use std::sync::Arc;

use deltafold::encode::{
    self, DeclinedCalls, OWN_RESPONSE_FIELDS, Place, Settings, TARGETS, Target, ToolKind, ToolName,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use crate::support::errors;
use crate::support::json;
use crate::support::limits::Limits;

/// Return the names of all targets.
///
/// >>> "gemini-array" in deltafold.target_names()
/// True
#[pyfunction]
pub(crate) fn target_names() -> Vec<&'static str> {
    TARGETS.iter().map(|row| row.name).collect()
}

/// Return the row of a target.
pub(crate) fn find(py: Python<'_>, name: &str) -> PyResult<&'static Target> {
    encode::find(name).ok_or_else(|| {
        let message = format!("unknown target {name:?}; known: {}", target_names().join(", "));
        errors::unknown_dialect(py, &message)
    })
}

fn tool_name(flat: &str, value: &Bound<'_, PyAny>) -> PyResult<ToolName> {
    let wrong = || {
        PyTypeError::new_err(format!(
            "tools[{flat:?}] must be a mapping {{kind?, namespace?, name?}}, not {value}"
        ))
    };
    let mapping = value.cast::<PyMapping>().map_err(|_| wrong())?;
    let member = |key: &str| -> PyResult<Option<String>> {
        if mapping.contains(key)? { mapping.get_item(key)?.extract() } else { Ok(None) }
    };
    let kind = match member("kind")?.as_deref() {
        None | Some("function") => ToolKind::Function,
        Some("custom") => ToolKind::Custom,
        Some("tool_search") => ToolKind::Search,
        Some(other) => {
            return Err(PyValueError::new_err(format!(
                "tools[{flat:?}].kind must be 'function', 'custom' or 'tool_search', not {other:?}"
            )));
        }
    };
    Ok(ToolName {
        kind,
        namespace: member("namespace")?.map(Into::into),
        name: member("name")?.unwrap_or_else(|| flat.to_owned()).into(),
    })
}

fn tools(value: &Bound<'_, PyAny>) -> PyResult<BTreeMap<Box<str>, ToolName>> {
    let mapping = value
        .cast::<PyMapping>()
        .map_err(|_| PyTypeError::new_err(format!("tools must be a mapping, not {value}")))?;
    let mut tools = BTreeMap::new();
    for item in mapping.items()? {
        let (name, tool): (String, Bound<'_, PyAny>) = item.extract()?;
        let tool = tool_name(&name, &tool)?;
        tools.insert(name.into(), tool);
    }
    Ok(tools)
}

fn response_fields(value: &Bound<'_, PyAny>) -> PyResult<BTreeMap<Box<str>, Box<str>>> {
    let mapping = value.cast::<PyMapping>().map_err(|_| {
        PyTypeError::new_err(format!("response_fields must be a mapping, not {value}"))
    })?;
    let mut fields = BTreeMap::new();
    for item in mapping.items()? {
        let (name, field): (String, Bound<'_, PyAny>) = item.extract()?;
        if OWN_RESPONSE_FIELDS.contains(&name.as_str()) {
            let message = format!("response_fields: {name:?} is what the answer says");
            return Err(PyValueError::new_err(message));
        }
        fields.insert(name.into(), json::from_python(&field)?);
    }
    Ok(fields)
}

fn place(name: &str) -> PyResult<Place> {
    match name {
        "reasoning_details" => Ok(Place::ReasoningDetails),
        "thinking_blocks" => Ok(Place::ThinkingBlocks),
        "extra_content" => Ok(Place::ExtraContent),
        other => Err(PyValueError::new_err(format!(
            "signatures must be 'reasoning_details', 'thinking_blocks' or 'extra_content', not {other:?}"
        ))),
    }
}

fn declined_calls(name: &str) -> PyResult<DeclinedCalls> {
    match name {
        "filter" => Ok(DeclinedCalls::Filter),
        "hold" => Ok(DeclinedCalls::Hold),
        "keep" => Ok(DeclinedCalls::Keep),
        other => Err(PyValueError::new_err(format!(
            "declined_calls must be 'filter', 'hold' or 'keep', not {other:?}"
        ))),
    }
}

fn reasoning_member(name: &str) -> PyResult<&'static str> {
    match name {
        "reasoning_content" => Ok("reasoning_content"),
        "reasoning" => Ok("reasoning"),
        other => Err(PyValueError::new_err(format!(
            "reasoning_member must be 'reasoning_content' or 'reasoning', not {other:?}"
        ))),
    }
}

/// Choices of an encoder: settings of the core, and the form of the output.
pub(crate) struct Choices {
    pub(crate) settings: Settings,
    pub(crate) as_bytes: bool,
}

/// Read the keywords of an encoder.
pub(crate) fn read(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Choices> {
    let mut settings = Settings::default();
    let mut as_bytes = true;
    for (key, value) in keywords.into_iter().flatten() {
        let key: String = key.extract()?;
        let text = || value.extract::<Option<String>>();
        let flag = || value.extract::<bool>();
        match key.as_str() {
            "model_id" => settings.model_id = text()?.map(Into::into),
            "request_id" => settings.request_id = text()?.map(Into::into),
            "response_id" => settings.response_id = text()?.map(Into::into),
            "include_usage" => settings.include_usage = flag()?,
            "input_tokens" => settings.input_tokens = value.extract()?,
            "reasoning_member" => {
                settings.reasoning_member = reasoning_member(&value.extract::<String>()?)?;
            }
            "signatures" => {
                settings.signatures =
                    text()?.as_deref().map(place).transpose()?.unwrap_or_default();
            }
            "envelope" => settings.envelope = flag()?,
            "own_models" => {
                let names: Option<Vec<String>> = value.extract()?;
                settings.own_models =
                    names.map(|names| Arc::new(names.into_iter().map(Into::into).collect()));
            }
            "hold" => settings.hold = flag()?,
            "declined_calls" => {
                settings.declined_calls = declined_calls(&value.extract::<String>()?)?;
            }
            "raw_reasoning" => settings.raw_reasoning = flag()?,
            "codex" => {
                settings.refusals_as_text = flag()?;
                settings.final_errors_end_turn = settings.refusals_as_text;
            }
            "incomplete_as_completed" => settings.incomplete_as_completed = flag()?,
            "tools" | "limits" | "response_fields" if value.is_none() => {}
            "response_fields" => settings.response_fields = Arc::new(response_fields(&value)?),
            "tools" => settings.tools = Arc::new(tools(&value)?),
            "thread_id" => settings.thread_id = text()?.map(Into::into),
            "without_run" => settings.without_run = flag()?,
            "as_bytes" => as_bytes = flag()?,
            "limits" => settings.limits = value.cast::<Limits>()?.get().core,
            other => {
                return Err(PyTypeError::new_err(format!("an encoder has no option {other:?}")));
            }
        }
    }
    Ok(Choices { settings, as_bytes })
}
