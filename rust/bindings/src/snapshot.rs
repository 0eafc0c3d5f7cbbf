//! A message that is being folded, as Python sees it: part dicts for `deltafold.messages`, and tool call buffers.

use deltafold::assemble::{Part, TextPart, ToolCall};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::json;

/// The parts as `message_from_fold` takes them.
pub(crate) fn parts<'py>(py: Python<'py>, parts: &[Part]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for part in parts {
        let dict = PyDict::new(py);
        match part {
            Part::Text(part) => text_part(&dict, "text", part)?,
            Part::Thinking(part) => text_part(&dict, "thinking", part)?,
            Part::ToolCall(call) => {
                dict.set_item(intern!(dict.py(), "kind"), "tool_call")?;
                dict.set_item(intern!(dict.py(), "tool_call_id"), &*call.id)?;
                dict.set_item(intern!(dict.py(), "tool_name"), &*call.name)?;
                dict.set_item(intern!(dict.py(), "raw_args_text"), &call.args)?;
                dict.set_item(intern!(dict.py(), "incomplete"), call.incomplete)?;
                dict.set_item(intern!(dict.py(), "input_format"), call.input_format.as_str())?;
                dict.set_item(intern!(dict.py(), "ended"), call.ended)?;
                set_json(
                    &dict,
                    intern!(dict.py(), "provider_state"),
                    call.provider_state.as_deref(),
                )?;
            }
            Part::Whole(part) => {
                dict.set_item(intern!(dict.py(), "kind"), "part")?;
                set_json(&dict, intern!(dict.py(), "part"), Some(part))?;
            }
        }
        list.append(dict)?;
    }
    Ok(list)
}

fn set_json(
    dict: &Bound<'_, PyDict>,
    name: &Bound<'_, PyString>,
    text: Option<&str>,
) -> PyResult<()> {
    let value = text.map(|text| json::to_python(dict.py(), text)).transpose()?;
    dict.set_item(name, value)
}

fn text_part(dict: &Bound<'_, PyDict>, kind: &str, part: &TextPart) -> PyResult<()> {
    dict.set_item(intern!(dict.py(), "kind"), kind)?;
    dict.set_item(intern!(dict.py(), "text"), &part.text)?;
    if kind == "text" {
        dict.set_item(intern!(dict.py(), "refusal"), part.refusal)?;
        dict.set_item(intern!(dict.py(), "annotations"), joined(dict.py(), &part.annotations)?)?;
    } else {
        dict.set_item(intern!(dict.py(), "redacted"), part.redacted)?;
    }
    set_json(dict, intern!(dict.py(), "provider_state"), part.provider_state.as_deref())
}

/// Lists that came one after another as one; `None` when none came.
fn joined<'py>(py: Python<'py>, lists: &[Box<str>]) -> PyResult<Option<Bound<'py, PyAny>>> {
    if lists.is_empty() {
        return Ok(None);
    }
    let all = PyList::empty(py);
    for list in lists {
        all.call_method1("extend", (json::to_python(py, list)?,))?;
    }
    Ok(Some(all.into_any()))
}

/// A tool call as far as it came.
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
