//! The object of a call's arguments, for targets that carry no text.

use crate::json::{Kind, MAX_DEPTH, Reader};

/// Return the argument object of a call as JSON text; `None` if the text means no object.
///
/// The rules are those of the contract: nothing sent and `null` mean `{}`, and a JSON string may hold the object.
pub fn argument_object(text: &str) -> Option<String> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Some("{}".to_owned());
    }
    let mut reader = Reader::new(text, MAX_DEPTH);
    match reader.kind().ok()? {
        Kind::Object => {
            reader.raw().ok()?;
            reader.end().ok()?;
            Some(text.to_owned())
        }
        Kind::Null => {
            reader.raw().ok()?;
            reader.end().ok()?;
            Some("{}".to_owned())
        }
        Kind::String => {
            let inner = reader.string().ok()?.text();
            reader.end().ok()?;
            let mut inside = Reader::new(inner.trim_ascii(), MAX_DEPTH);
            (inside.kind().ok()? == Kind::Object).then_some(())?;
            inside.raw().ok()?;
            inside.end().ok()?;
            Some(inner)
        }
        _ => None,
    }
}
