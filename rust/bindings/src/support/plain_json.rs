//! JSON of plain Python values: request bodies.
//!
//! In: dicts, lists, tuples, texts, numbers, booleans and None.  Out: compact JSON, as `json.dumps` writes it without ASCII
//! escapes.
//!
//! Law: any other value, key or class, and what JSON cannot hold, is left to `json`, which has its own rules and errors for it.

use deltafold::json::write_string;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Bound on nested containers, far below the limit of the stack.
pub(crate) const MAX_DEPTH: usize = 200;

/// Return the value as compact JSON; None if `json` has to write it.
#[pyfunction]
#[pyo3(signature = (value, /))]
pub(crate) fn plain_json<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyBytes>> {
    let mut out = String::new();
    write(&mut out, value, MAX_DEPTH)?;
    Some(PyBytes::new(value.py(), out.as_bytes()))
}

/// Write a value; `None` leaves all to `json`.
pub(crate) fn write(out: &mut String, value: &Bound<'_, PyAny>, depth: usize) -> Option<()> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        write_string(out, text.to_str().ok()?);
    } else if let Ok(members) = value.cast_exact::<PyDict>() {
        write_members(out, members, depth.checked_sub(1)?)?;
    } else if let Ok(items) = value.cast_exact::<PyList>() {
        write_items(out, items.iter(), depth.checked_sub(1)?)?;
    } else if value.is_none() {
        out.push_str("null");
    } else if let Ok(flag) = value.cast_exact::<PyBool>() {
        out.push_str(if flag.is_true() { "true" } else { "false" });
    } else if value.is_exact_instance_of::<PyInt>() {
        out.push_str(&value.extract::<i64>().ok()?.to_string());
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        if !number.value().is_finite() {
            return None;
        }
        out.push_str(number.repr().ok()?.to_str().ok()?);
    } else if let Ok(items) = value.cast_exact::<PyTuple>() {
        write_items(out, items.iter(), depth.checked_sub(1)?)?;
    } else {
        return None;
    }
    Some(())
}

fn write_members(out: &mut String, members: &Bound<'_, PyDict>, depth: usize) -> Option<()> {
    out.push('{');
    // A list of the members, because another thread may change the dict meanwhile.
    for (place, member) in members.items().iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        let (key, member) = member.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>().ok()?;
        write_string(out, key.cast_exact::<PyString>().ok()?.to_str().ok()?);
        out.push(':');
        write(out, &member, depth)?;
    }
    out.push('}');
    Some(())
}

fn write_items<'py>(
    out: &mut String,
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    depth: usize,
) -> Option<()> {
    out.push('[');
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push(',');
        }
        write(out, &item, depth)?;
    }
    out.push(']');
    Some(())
}
