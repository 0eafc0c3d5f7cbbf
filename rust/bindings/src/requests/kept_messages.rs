//! `KeptMessages`: snapshot of messages, to detect changes.
//!
//! In: messages of a conversation.  Out: whether a later list has them unchanged.
//!
//! Laws: parts are frozen and compared by identity.  A message may have been changed, or be another object with the same parts.
//! Conversations with the same beginning share one snapshot.  It only grows at its end, and each user passes the number of
//! messages that belong to its conversation.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBool, PyDict, PyList, PyType};

use crate::support::model;

/// Members of a message on which its form in a request depends.
struct KeptMessage {
    class: Py<PyType>,
    role: Py<PyAny>,
    parts: Vec<Py<PyAny>>,
    /// Its metadata is read in answers alone.
    answer: Option<Py<PyAny>>,
}

impl KeptMessage {
    fn of(message: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = message.py();
        let fields = model::dict(message)?;
        let Some(role) = fields.get_item(intern!(py, "role"))? else { return Ok(None) };
        let Some(parts) = list(&fields)? else { return Ok(None) };
        let answer = if is_answer(&role)? {
            let Some(model_id) = model_of(&fields)? else { return Ok(None) };
            Some(model_id.unbind())
        } else {
            None
        };
        let parts = parts.iter().map(Bound::unbind).collect();
        Ok(Some(Self { class: message.get_type().unbind(), role: role.unbind(), parts, answer }))
    }

    fn is(&self, message: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = message.py();
        if !message.get_type().is(&self.class) {
            return Ok(false);
        }
        let fields = model::dict(message)?;
        let role = fields.get_item(intern!(py, "role"))?;
        if !role.is_some_and(|role| role.is(&self.role)) {
            return Ok(false);
        }
        let Some(parts) = list(&fields)? else { return Ok(false) };
        let are_same = parts.len() == self.parts.len()
            && self
                .parts
                .iter()
                .enumerate()
                .all(|(place, kept)| parts.get_item(place).is_ok_and(|part| part.is(kept)));
        match &self.answer {
            Some(kept) if are_same => match model_of(&fields)? {
                Some(model_id) => Ok(model_id.is(kept) || model_id.eq(kept)?),
                None => Ok(false),
            },
            _ => Ok(are_same),
        }
    }
}

fn list<'py>(fields: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyList>>> {
    let parts = fields.get_item(intern!(fields.py(), "parts"))?;
    Ok(parts.and_then(|parts| parts.cast_into_exact::<PyList>().ok()))
}

fn is_answer(role: &Bound<'_, PyAny>) -> PyResult<bool> {
    role.eq(intern!(role.py(), "assistant"))
}

/// Return the model of an answer, `None` for one that failed, or whose metadata nobody has read.
fn model_of<'py>(fields: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = fields.py();
    let Some(meta) = fields.get_item(intern!(py, "meta"))? else { return Ok(None) };
    let meta = model::dict(&meta)?;
    let has_failed = meta.get_item(intern!(py, "is_api_error_message"))?;
    if !has_failed.is_some_and(|failed| failed.is(PyBool::new(py, false))) {
        return Ok(None);
    }
    meta.get_item(intern!(py, "model_id"))
}

#[derive(Default)]
struct Kept {
    messages: Vec<KeptMessage>,
    /// For each id of a call the number of messages before it.
    calls: HashMap<String, usize>,
}

/// The beginning of a conversation, as it was when something was made of it.
#[pyclass(module = "deltafold._core", frozen)]
pub(crate) struct KeptMessages {
    kept: Mutex<Kept>,
}

#[pymethods]
impl KeptMessages {
    #[new]
    fn new() -> Self {
        Self { kept: Mutex::default() }
    }

    /// Return whether `messages` has the first `count` of these unchanged from `start` on.
    #[pyo3(signature = (count, messages, start, /))]
    fn are_in(&self, count: usize, messages: &Bound<'_, PyList>, start: usize) -> PyResult<bool> {
        let kept = self.lock(messages.py());
        let Some(own) = kept.messages.get(..count) else { return Ok(false) };
        for (place, message) in own.iter().enumerate() {
            let Ok(given) = messages.get_item(start + place) else { return Ok(false) };
            if !message.is(&given)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Return whether the first `count` of these have a call with one of some ids.
    #[pyo3(signature = (count, ids, /))]
    fn has_calls(&self, count: usize, ids: &Bound<'_, PyList>) -> PyResult<bool> {
        for id in ids {
            let id: String = id.extract()?;
            if self.lock(ids.py()).calls.get(&id).is_some_and(|place| *place < count) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Return the first `count` of these with more messages behind them; None if an answer among them has failed, or its metadata
    /// was never read.
    ///
    /// Args:
    ///     count: number of the messages.
    ///     messages: a conversation.
    ///     start: place of the first message to add.
    ///     stop: place behind the last one.
    #[pyo3(signature = (count, messages, start, stop, /))]
    fn with_more(
        this: Bound<'_, Self>,
        count: usize,
        messages: &Bound<'_, PyList>,
        start: usize,
        stop: usize,
    ) -> PyResult<Option<Py<Self>>> {
        let py = this.py();
        let mut added = Vec::with_capacity(stop.saturating_sub(start));
        let mut calls = Vec::new();
        for place in start..stop {
            let Some(message) = KeptMessage::of(&messages.get_item(place)?)? else {
                return Ok(None);
            };
            message.calls(py, count + added.len(), &mut calls)?;
            added.push(message);
        }
        let mut kept = this.get().lock(py);
        if kept.messages.len() == count {
            kept.calls.extend(calls);
            kept.messages.append(&mut added);
            drop(kept);
            return Ok(Some(this.unbind()));
        }
        // Another conversation has the same beginning.
        let mut other = Kept::default();
        for message in kept.messages.get(..count).unwrap_or(&[]) {
            other.messages.push(message.clone_ref(py));
        }
        let own = kept.calls.iter().filter(|(_, place)| **place < count);
        other.calls = own.map(|(id, place)| (id.clone(), *place)).collect();
        drop(kept);
        other.calls.extend(calls);
        other.messages.append(&mut added);
        Ok(Some(Py::new(py, Self { kept: Mutex::new(other) })?))
    }
}

impl KeptMessages {
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Kept> {
        self.kept.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptMessage {
    /// Add the ids of the calls in an answer, each with the place of the answer.
    fn calls(
        &self,
        py: Python<'_>,
        place: usize,
        calls: &mut Vec<(String, usize)>,
    ) -> PyResult<()> {
        if self.answer.is_none() {
            return Ok(());
        }
        for part in &self.parts {
            let fields = model::dict(part.bind(py))?;
            if let Some(id) = fields.get_item(intern!(py, "tool_call_id"))? {
                calls.push((id.extract()?, place));
            }
        }
        Ok(())
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            class: self.class.clone_ref(py),
            role: self.role.clone_ref(py),
            parts: self.parts.iter().map(|part| part.clone_ref(py)).collect(),
            answer: self.answer.as_ref().map(|model_id| model_id.clone_ref(py)),
        }
    }
}
