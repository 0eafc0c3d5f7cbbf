//! Conversion of the tools that a caller offered to the names and parameter types that markup needs.
//!
//! In: names, mappings and objects, in the forms of providers and of `ToolSpec`.  Out: names and parameter types.

use deltafold::markup::Tools;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::support::imports::MAPPING;
use crate::support::json;

/// Members that may hold the schema of a tool's arguments, in the specifications of different providers.
const SCHEMAS: &[&str] = &["parameter_schema", "parameters", "input_schema"];

fn is_mapping(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.is_instance(MAPPING.get(value.py())?)
}

fn kind(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(value.get_type().name()?.to_string())
}

/// Read an iterable of tools.
pub(crate) fn read(tools: &Bound<'_, PyAny>) -> PyResult<Tools> {
    let unusable = tools.is_instance_of::<PyString>() || is_mapping(tools)?;
    let items = if unusable { None } else { tools.try_iter().ok() };
    let Some(items) = items else {
        let message =
            format!("tools must be an iterable of names or tool specs, not {}", kind(tools)?);
        return Err(PyTypeError::new_err(message));
    };
    let mut found = Tools::default();
    for (position, tool) in items.enumerate() {
        add(&mut found, position, &tool?)?;
    }
    Ok(found)
}

fn add(found: &mut Tools, position: usize, tool: &Bound<'_, PyAny>) -> PyResult<()> {
    let field = |name: &str| format!("tools[{position}]{name}");
    if let Ok(name) = tool.cast::<PyString>() {
        return keep(found, &field(""), name, None);
    }
    let (whole, mapping) = (tool, is_mapping(tool)?);
    // The specification of OpenAI wraps the tool in `function`.
    let inner = if mapping { item(whole, "function")? } else { None };
    let wrapped = match &inner {
        Some(inner) => is_mapping(inner)?,
        None => false,
    };
    let tool = inner.as_ref().filter(|_| wrapped).unwrap_or(whole);
    let member = |name: &str| {
        if mapping { item(tool, name) } else { tool.getattr_opt(name) }
    };
    let prefix = if wrapped { ".function" } else { "" };
    let Some(name) = member("name")? else {
        let message = if mapping {
            format!("{} is missing", field(&format!("{prefix}.name")))
        } else {
            let kind = kind(tool)?;
            format!("{} must be a name or a tool spec, not {kind}", field(""))
        };
        return Err(PyTypeError::new_err(message));
    };
    let Ok(name) = name.cast::<PyString>() else {
        let field = field(&format!("{prefix}.name"));
        let message = format!("{field} must be a str, not {}", kind(&name)?);
        return Err(PyTypeError::new_err(message));
    };
    for schema in SCHEMAS {
        let Some(value) = member(schema)?.filter(|value| !value.is_none()) else { continue };
        let field = field(&format!("{prefix}.{schema}"));
        if !is_mapping(&value)? {
            let message = format!("{field} must be a mapping, not {}", kind(&value)?);
            return Err(PyTypeError::new_err(message));
        }
        let plain = tool.py().get_type::<PyDict>().call1((&value,))?;
        let json = json::from_python(&plain).map_err(|error| {
            PyValueError::new_err(format!("{field} is no JSON schema: {error}"))
        })?;
        return keep(found, &field, name, Some(&json));
    }
    keep(found, &field(""), name, None)
}

fn keep(
    found: &mut Tools,
    field: &str,
    name: &Bound<'_, PyString>,
    schema: Option<&str>,
) -> PyResult<()> {
    found
        .add(name.to_str()?, schema)
        .map_err(|error| PyValueError::new_err(format!("{field} is no JSON schema: {error}")))
}

fn item<'py>(mapping: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if mapping.contains(name)? { mapping.get_item(name).map(Some) } else { Ok(None) }
}
