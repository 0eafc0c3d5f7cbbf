//! Parts and tool call buffers of a message under construction, as Python objects.
//!
//! In: parts of the core.  Out: models of `deltafold.message.parts`, and `ToolCallBuffer` objects.

use deltafold::fold::{Part, TextPart, ToolCall};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::support::imports::PART_FROM_WIRE;
use crate::support::json;
use crate::support::model::{Fields, Model};

pub(crate) static TEXT: Model = Model::new("deltafold.message.parts", "TEXT_BLUEPRINT");
static THINKING: Model = Model::new("deltafold.message.parts", "THINKING_BLUEPRINT");
pub(crate) static TOOL_CALL: Model = Model::new("deltafold.message.parts", "TOOL_CALL_BLUEPRINT");
static OPEN_CALL: Model = Model::new("deltafold.message.parts", "OPEN_CALL_BLUEPRINT");

/// Build the Python models of the tool calls of a message.
pub(crate) fn tool_calls<'py>(py: Python<'py>, parts: &[Part]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for part in parts {
        if let Part::ToolCall(call) = part {
            list.append(tool_call(py, call)?)?;
        }
    }
    Ok(list)
}

/// Build the Python models of the parts of a message.  `calls` are the models of its tool calls, if they were made before.
pub(crate) fn parts<'py>(
    py: Python<'py>,
    parts: &[Part],
    calls: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let mut calls = calls.map(PyTupleMethods::iter);
    for part in parts {
        list.append(match part {
            Part::Text(part) => TEXT.make(py, |fields| {
                if part.refusal {
                    fields.set(intern!(py, "refusal"), true)?;
                }
                if !part.annotations.is_empty() {
                    fields.set(intern!(py, "annotations"), joined(py, &part.annotations)?)?;
                }
                text(py, fields, part)
            })?,
            Part::Thinking(part) => THINKING.make(py, |fields| {
                if part.redacted {
                    fields.set(intern!(py, "redacted"), true)?;
                }
                text(py, fields, part)
            })?,
            Part::ToolCall(call) => match calls.as_mut().and_then(Iterator::next) {
                Some(made) => made,
                None => tool_call(py, call)?,
            },
            Part::Whole(part) => PART_FROM_WIRE.get(py)?.call1((json::to_python(py, part)?,))?,
        })?;
    }
    Ok(list)
}

fn text<'py>(py: Python<'py>, fields: &Fields<'py>, part: &TextPart) -> PyResult<()> {
    fields.set(intern!(py, "text"), &part.text)?;
    provider_state(py, fields, part.provider_state.as_deref())
}

fn tool_call<'py>(py: Python<'py>, call: &ToolCall) -> PyResult<Bound<'py, PyAny>> {
    let blueprint = if call.incomplete || !call.ended { &OPEN_CALL } else { &TOOL_CALL };
    blueprint.make(py, |fields| {
        fields.set(intern!(py, "tool_call_id"), &*call.id)?;
        fields.set(intern!(py, "tool_name"), &*call.name)?;
        fields.set(intern!(py, "raw_args_text"), &call.args)?;
        fields.set(intern!(py, "incomplete"), call.incomplete)?;
        fields.set(intern!(py, "input_format"), call.input_format.as_str())?;
        provider_state(py, fields, call.provider_state.as_deref())
    })
}

fn provider_state<'py>(py: Python<'py>, fields: &Fields<'py>, state: Option<&str>) -> PyResult<()> {
    match state {
        Some(state) => fields.set(intern!(py, "provider_state"), json::to_python(py, state)?),
        None => Ok(()),
    }
}

/// Join lists that arrived one after another.
fn joined<'py>(py: Python<'py>, lists: &[Box<str>]) -> PyResult<Bound<'py, PyList>> {
    let all = PyList::empty(py);
    for list in lists {
        all.call_method1("extend", (json::to_python(py, list)?,))?;
    }
    Ok(all)
}

/// State of a tool call so far.
///
/// >>> decoder = deltafold.Decoder("anthropic-messages")
/// >>> assembler = deltafold.MessageAssembler()
/// >>> event = b'data: {"type":"content_block_start","index":0,"content_block":'
/// >>> call = b'{"type":"tool_use","id":"call_1","name":"weather","input":{}}}\n\n'
/// >>> assembler.consume(decoder.feed(event + call))
/// >>> assembler.tool_calls["call_1"].tool_name, assembler.tool_calls["call_1"].ended
/// ('weather', False)
#[pyclass(frozen, module = "deltafold._core", eq, hash, get_all)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ToolCallBuffer {
    tool_call_id: String,
    tool_name: String,
    args_text: String,
    part_index: usize,
    input_format: &'static str,
    ended: bool,
    incomplete: bool,
}

impl ToolCallBuffer {
    pub(crate) fn new(part_index: usize, call: &ToolCall) -> Self {
        Self {
            tool_call_id: call.id.to_string(),
            tool_name: call.name.to_string(),
            args_text: call.args.clone(),
            part_index,
            input_format: call.input_format.as_str(),
            ended: call.ended,
            incomplete: call.incomplete,
        }
    }
}

#[pymethods]
impl ToolCallBuffer {
    fn __repr__(&self) -> String {
        let state = match (self.ended, self.incomplete) {
            (false, _) => "open",
            (true, true) => "incomplete",
            (true, false) => "ended",
        };
        format!(
            "<ToolCallBuffer {} {} {state}, {} bytes of arguments>",
            self.tool_call_id,
            self.tool_name,
            self.args_text.len()
        )
    }
}
