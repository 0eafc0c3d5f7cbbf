//! `Input`: bytes of a body, or one event that another package has parsed.
//!
//! In: `bytes` and its relatives; a dict of the wire, an object of an SDK, or any object with the same attributes.  Out: a byte
//! slice, or a frame.
//!
//! Law: a chunk of bytes is never looked at as an event, so that it costs one check of its type.

use std::sync::atomic::{AtomicUsize, Ordering};

use deltafold::decoder::UNDECIDED;
use deltafold::dialect::find;
use deltafold::framing::{Frame, Framing};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};

use crate::support::bytes::bytes_of;
use crate::support::imports::{DIALECT_OF_EVENT, JSON_OF_EVENT};
use crate::support::plain_json;

/// Input of a decoder.
#[derive(Clone, Copy)]
pub(crate) enum Input<'a> {
    Bytes(&'a [u8]),
    /// An event, and its dialect.
    Event(Frame<'a>, &'a str),
}

/// The feeds of one decoder.
#[derive(Default)]
pub(crate) struct Feeds {
    /// The number of feeds so far.  The error for a wrong object names it.
    count: AtomicUsize,
}

impl Feeds {
    /// Call `f` with the bytes, or with the event of `dialect`, which its first event tells if it is not decided.
    #[inline]
    pub(crate) fn take<R>(
        &self,
        dialect: &'static str,
        data: &Bound<'_, PyAny>,
        f: impl FnOnce(Input<'_>) -> PyResult<R>,
    ) -> PyResult<R> {
        let count = self.count.load(Ordering::Relaxed);
        self.count.store(count.wrapping_add(1), Ordering::Relaxed);
        if let Some(bytes) = bytes_of(data)? {
            return f(Input::Bytes(bytes.as_bytes()));
        }
        let told: PyBackedStr;
        let dialect = if dialect == UNDECIDED {
            told = DIALECT_OF_EVENT.get(data.py())?.call1((data,))?.extract()?;
            &*told
        } else {
            dialect
        };
        let event = Self::event_of(dialect, data, count)?;
        f(Input::Event(event.frame(), dialect))
    }

    #[cold]
    fn event_of(dialect: &str, data: &Bound<'_, PyAny>, place: usize) -> PyResult<Event> {
        // In Bedrock's protocols an event is a dict with one member, which has the name of the event or of the exception.
        if find(dialect).is_some_and(|row| row.framing == Framing::AwsEventStream)
            && let Ok(members) = data.cast::<PyDict>()
            && let Some((name, inner)) = members.iter().next()
            && members.len() == 1
            && let Ok(name) = name.extract::<String>()
        {
            let fails = name.ends_with("Exception");
            return Ok(Event { name, json: json_of(&inner, place)?, fails });
        }
        let (name, json) = named(data, place)?;
        Ok(Event { name, json, fails: false })
    }
}

/// Event that another package has parsed.
struct Event {
    name: String,
    json: Vec<u8>,
    /// The event is a failure.
    fails: bool,
}

impl Event {
    fn frame(&self) -> Frame<'_> {
        let (name, data) = (self.name.as_bytes(), &*self.json);
        if self.fails {
            return Frame::Failure { code: name, message: b"", data };
        }
        Frame::Event { name, data, offset: 0, closed: true, wire: b"" }
    }
}

/// Return the type of an event, which is also the name of its frame on the wire, and its JSON.
///
/// Classes write their members in an order of their own, in which the type may come late.
fn named(event: &Bound<'_, PyAny>, place: usize) -> PyResult<(String, Vec<u8>)> {
    let kind = intern!(event.py(), "type");
    let text = |found: Bound<'_, PyAny>| found.extract().unwrap_or_default();
    if let Ok(members) = event.cast::<PyDict>() {
        let name = members.get_item(kind)?.map(text).unwrap_or_default();
        return Ok((name, json_of(event, place)?));
    }
    // The serializer refuses texts with lone surrogates, which the other way writes.
    if let Some(serializer) = own_serializer(event)?
        && let Ok(json) = json_of_model(event, &serializer)
    {
        // To ask an object of pydantic for what its class does not have costs as much as to write it.
        let fields = event.get_type().getattr(intern!(event.py(), "__pydantic_fields__"))?;
        let is_typed = fields.contains(kind)?;
        let name = if is_typed { text(event.getattr(kind)?) } else { String::new() };
        return Ok((name, json));
    }
    Ok((String::new(), json_of(event, place)?))
}

/// Return the serializer of an object of pydantic that writes its event as the wire has it.
///
/// Not those of google-genai, which writes bytes in the base64 of URLs, and of mistralai, whose event holds the chunk.
fn own_serializer<'py>(event: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = event.py();
    let kind = event.get_type();
    let serializer = kind.getattr_opt(intern!(py, "__pydantic_serializer__"))?;
    if serializer.is_none()
        || kind.name()? == "CompletionEvent"
        || kind.module()?.to_str()?.starts_with("google.")
    {
        return Ok(None);
    }
    Ok(serializer)
}

/// Return what a serializer writes of an object.
fn json_of_model(event: &Bound<'_, PyAny>, serializer: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    static OPTIONS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let py = event.py();
    let options = OPTIONS.get_or_try_init(py, || {
        let options = PyDict::new(py);
        // None is the default of members that the wire did not have.
        options.set_item("exclude_unset", true)?;
        options.set_item("by_alias", true)?;
        options.set_item("warnings", false)?;
        PyResult::Ok(options.unbind())
    })?;
    let json = serializer.call_method(intern!(py, "to_json"), (event,), Some(options.bind(py)))?;
    Ok(json.cast::<PyBytes>()?.as_bytes().to_vec())
}

/// Return the JSON of a dict, or of an object with attributes.
fn json_of(event: &Bound<'_, PyAny>, place: usize) -> PyResult<Vec<u8>> {
    let mut json = String::new();
    if let Ok(members) = event.cast_exact::<PyDict>()
        && plain_json::write(&mut json, members, plain_json::MAX_DEPTH).is_some()
    {
        return Ok(json.into_bytes());
    }
    let json: String = JSON_OF_EVENT.get(event.py())?.call1((event, place))?.extract()?;
    Ok(json.into_bytes())
}
