//! Search for the error object in the body of a refused HTTP response.
//!
//! In: at most [`BODY_BYTES`] bytes of JSON, server-sent events, lines of JSON, a page of markup, or plain text.
//! Out: an [`ErrorObject`] and the JSON document that it was read from.
//!
//! Laws: every body gives an error object, if only an empty one.  Of several documents, the first that describes an error
//! counts.

use std::borrow::Cow;

use super::ErrorObject;
use crate::json::Reader;

/// Maximum number of bytes to read of a refused body.  Real ones (moderation details, echoed schemas) need a quarter of it.
pub const BODY_BYTES: usize = 256 << 10;

/// Maximum number of bytes of a page or of plain text that become the message.
const MESSAGE_BYTES: usize = 4 << 10;

/// Maximum nesting of JSON values.  Deeper bodies are read up to this depth.
const MAX_DEPTH: usize = 64;

/// Read the error in a body.  Returns also the JSON that the error was read from, if the body holds JSON.
pub(super) fn read(body: &[u8]) -> (ErrorObject, Option<Cow<'_, str>>) {
    let body = body.get(..BODY_BYTES).unwrap_or(body);
    let text = String::from_utf8_lossy(body);
    let trimmed = text.trim_start_matches('\u{FEFF}').trim();
    if let Some(found) = document(trimmed) {
        return (found, Some(Cow::Owned(trimmed.to_owned())));
    }
    for piece in pieces(trimmed) {
        if let Some(found) = document(&piece).filter(ErrorObject::has_content) {
            return (found, Some(Cow::Owned(piece.into_owned())));
        }
    }
    match trimmed.as_bytes().first() {
        // A truncated document: its complete members count.
        Some(b'{' | b'[') => (ErrorObject::read_leniently(trimmed, MAX_DEPTH), None),
        Some(b'<') => (ErrorObject::from_message(&visible_text(trimmed)), None),
        // Compressed (gzip) or empty.
        Some(b'\x1f') | None => (ErrorObject::default(), None),
        Some(_) => (ErrorObject::from_message(truncated(trimmed)), None),
    }
}

/// Read one JSON document; `None` if the text is not one.
fn document(text: &str) -> Option<ErrorObject> {
    let mut reader = Reader::new(text, MAX_DEPTH);
    reader.skip().and_then(|()| reader.end()).ok()?;
    ErrorObject::read(text).ok()
}

/// Return the data of each server-sent event, then each line that begins an object.
fn pieces(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let text = if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    };
    let mut found = Vec::new();
    let mut data = String::new();
    for line in text.split('\n').chain([""]) {
        if let Some(value) = line.strip_prefix("data:") {
            data.push_str(value);
            data.push('\n');
        } else if line.is_empty() && !data.is_empty() {
            found.push(std::mem::take(&mut data).into());
        }
    }
    found.extend(
        text.split('\n').filter(|line| line.starts_with('{')).map(|line| line.to_owned().into()),
    );
    found.into_iter()
}

/// Return the title of a page, or its text without tags if it has no title.
fn visible_text(page: &str) -> String {
    let lowered = page.to_ascii_lowercase();
    let title = lowered.find("<title>").and_then(|start| {
        let start = start + "<title>".len();
        let end = lowered.get(start..)?.find("</title>")?;
        page.get(start..start + end)
    });
    let mut text = String::new();
    let mut in_tag = false;
    for character in title.unwrap_or(page).chars() {
        match character {
            '<' => in_tag = true,
            '>' if in_tag => {
                in_tag = false;
                text.push(' ');
            }
            _ if !in_tag => text.push(character),
            _ => {}
        }
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    truncated(&words.join(" ")).to_owned()
}

fn truncated(text: &str) -> &str {
    let ends = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MESSAGE_BYTES);
    let end = if text.len() > MESSAGE_BYTES { ends.last().unwrap_or(0) } else { text.len() };
    text.get(..end).unwrap_or(text)
}
