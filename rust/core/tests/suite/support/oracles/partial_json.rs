//! The reader of unfinished JSON ends at the value that serde_json reads of the whole, however the text is cut.

#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "an oracle fails loudly, and where it stands"
)]

use deltafold::fold::partial_json::{Event, PartialJson};
use deltafold::json::ErrorKind;
use serde_json::{Map, Value, json};

use super::pieces;

/// Nesting under serde_json's own bound of 128.
pub const DEPTH: usize = 100;

/// A reader of these pieces.
pub fn read(pieces: &[&[u8]]) -> PartialJson {
    let mut reader = PartialJson::new(DEPTH);
    for piece in pieces {
        reader.feed(piece);
    }
    reader
}

enum Open {
    Object(Map<String, Value>, String),
    Array(Vec<Value>),
}

impl Open {
    fn put(&mut self, value: Value) {
        match self {
            Self::Object(map, key) => drop(map.insert(key.clone(), value)),
            Self::Array(list) => list.push(value),
        }
    }

    fn whole(self) -> Value {
        match self {
            Self::Object(map, _) => Value::Object(map),
            Self::Array(list) => Value::Array(list),
        }
    }
}

/// Integers beyond a double are null to serde_json.
fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// The value built from the events, with its open parts; `None` before the first event.
pub fn told<'a>(events: impl IntoIterator<Item = Event<'a>>) -> Option<Value> {
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    let mut string = None;
    for event in events {
        let value = match event {
            Event::Object => {
                open.push(Open::Object(Map::new(), String::new()));
                continue;
            }
            Event::Array => {
                open.push(Open::Array(Vec::new()));
                continue;
            }
            Event::Key(text) => {
                let Some(Open::Object(_, key)) = open.last_mut() else { panic!("a key nowhere") };
                text.clone_into(key);
                continue;
            }
            Event::String => {
                assert!(string.replace(String::new()).is_none(), "a string in a string");
                continue;
            }
            Event::Text(text) => {
                assert!(!text.is_empty());
                string.as_mut().expect("a string").push_str(text);
                continue;
            }
            Event::StringEnd => Value::String(string.take().expect("a string")),
            Event::End => open.pop().expect("a container").whole(),
            Event::Integer(text) => number(text),
            Event::Float(value) => json!(value),
            Event::Bool(truth) => Value::Bool(truth),
            Event::Null => Value::Null,
        };
        match open.last_mut() {
            Some(outer) => outer.put(value),
            None => root = Some(value),
        }
    }
    let mut inner = string.map(Value::String);
    while let Some(mut outer) = open.pop() {
        if let Some(inner) = inner {
            outer.put(inner);
        }
        inner = Some(outer.whole());
    }
    root.or(inner)
}

/// The value so far.
pub fn value(reader: &PartialJson) -> Option<Value> {
    told(reader.log().events())
}

/// Equal but for the last bit of a double, which serde_json does not always get right.
pub fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) if a != b => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= a.abs() * 2.0 * f64::EPSILON
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// A reader of the whole text, closed, agrees with serde_json.
pub fn agree_with_serde(whole: &PartialJson, text: &[u8]) {
    let mut closed = whole.clone();
    closed.close();
    if closed.error().is_some_and(|error| error.kind == ErrorKind::TooDeep) {
        return; // the bounds of the two differ
    }
    match serde_json::from_slice::<Value>(text) {
        Ok(expected) => {
            assert!(closed.complete(), "{closed:?}");
            let known = value(&closed).unwrap();
            assert!(same(&known, &expected), "{known} is not {expected}");
        }
        // serde_json refuses lone surrogates and invalid UTF-8, which we replace, and integers beyond a double.
        Err(_) if closed.complete() => {
            let lossy = String::from_utf8_lossy(text);
            let digits = lossy.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
            let beyond = lossy.contains("\\u") || lossy.contains('\u{FFFD}') || digits > Some(300);
            assert!(beyond, "{lossy}");
        }
        Err(_) => assert!(closed.error().is_some()),
    }
}

/// In one feed, in these pieces and byte by byte the reader is the same, and right.
pub fn cuts_agree(text: &[u8], cuts: &[usize]) {
    let whole = read(&[text]);
    assert_eq!(read(&pieces(text, cuts)), whole);
    assert_eq!(read(&text.chunks(1).collect::<Vec<_>>()), whole);
    agree_with_serde(&whole, text);
}
