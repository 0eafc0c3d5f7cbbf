//! The JSON reader and the JSON scanner agree with serde_json about any text.

#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "an oracle fails loudly, and where it stands"
)]

use deltafold::json::scan::{JsonScan, Verdict};
use deltafold::json::{self, ErrorKind, Kind, Reader};
use serde_json::{Map, Value};

/// Nesting under serde_json's own bound of 128.
pub const DEPTH: usize = 100;

/// The value as our reader shows it.
fn value(reader: &mut Reader<'_>) -> json::Result<Value> {
    Ok(match reader.kind()? {
        Kind::Object => {
            let mut object = Map::new();
            reader.object(|reader, key| {
                object.insert(key.to_owned(), value(reader)?);
                Ok(())
            })?;
            Value::Object(object)
        }
        Kind::Array => {
            let mut list = Vec::new();
            reader.array(|reader| {
                list.push(value(reader)?);
                Ok(())
            })?;
            Value::Array(list)
        }
        Kind::String => Value::String(reader.string()?.text()),
        Kind::Number => serde_json::from_str(reader.raw()?).unwrap_or(Value::Null),
        Kind::Bool => Value::Bool(reader.boolean()?.expect("a boolean")),
        Kind::Null => {
            reader.skip()?;
            Value::Null
        }
    })
}

/// The value of a text.
pub fn read(text: &str) -> json::Result<Value> {
    let mut reader = Reader::new(text, DEPTH);
    let found = value(&mut reader)?;
    reader.end()?;
    Ok(found)
}

/// Returns whether the text is one value that can be skipped.
pub fn skip(text: &str) -> json::Result<()> {
    let mut reader = Reader::new(text, DEPTH);
    reader.skip()?;
    reader.end()
}

/// Result of the scanner for a text.
pub fn verdict(text: &[u8]) -> Verdict {
    let mut scan = JsonScan::default();
    scan.feed(text);
    scan.verdict()
}

/// Lone surrogates: serde_json refuses them, this reader replaces them.  Numbers beyond f64: serde_json refuses them.
pub fn beyond_serde(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let digits = text.split(|character: char| !character.is_ascii_digit()).map(str::len).max();
    lower.contains("\\ud") || lower.contains('e') || digits > Some(300)
}

/// Returns whether both readers agree on the text.
pub fn agree(text: &str) {
    let theirs = serde_json::from_str::<Value>(text);
    let ours = read(text);
    if ours.as_ref().is_err_and(|error| error.kind == ErrorKind::TooDeep) {
        return; // the bounds of the two differ, the bound itself has its own test
    }
    assert_eq!(skip(text).is_ok(), ours.is_ok(), "skip and read differ on {text:?}");
    match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs, "{text:?}"),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(_)) if beyond_serde(text) => {}
        _ => panic!("ours {ours:?}, serde_json {theirs:?} on {text:?}"),
    }
    // The scanner knows no more than the grammar: whole where the reader accepts.
    assert_eq!(verdict(text.as_bytes()) == Verdict::Complete, ours.is_ok(), "scan of {text:?}");
}
