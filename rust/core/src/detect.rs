//! Detection of the dialect of a body, for callers that record or forward streams without knowing their dialect.
//!
//! In: the first bytes of a body, cut anywhere, and its content type.  Out: the possible dialects.  One if the bytes
//! identify it, two if the bytes fit both (common for a body that is only an error), none without any sign.
//!
//! `dialect::members` tells the dialect of one event.
//!
//! Law: only the members of the first events count.  Text that a model wrote is never inspected.

use crate::dialect::batch::{BatchLine, may_be_line};
use crate::dialect::members::{by_frame, dialects_of};
use crate::dialect::{Dialect, REGISTRY};
use crate::framing::aws_event_stream::AwsEventStream;
use crate::framing::{Frame, Framing};

use std::ops::ControlFlow;

/// Maximum number of bytes to inspect.
const ENOUGH: usize = 64 << 10;
/// Maximum nesting depth of a line of a batch.
const LINE_DEPTH: usize = 256;
/// Maximum number of events to inspect.
const EVENTS: usize = 16;

/// Return the dialects that fit the first bytes of a body; at most two.
///
/// ```
/// use deltafold::detect::detect;
/// assert_eq!(detect(b"data: {\"choices\":[]}\n\n", None), ["openai-chat"]);
/// assert_eq!(detect(b"hello", None), [""; 0]);
/// ```
pub fn detect(first_bytes: &[u8], content_type: Option<&str>) -> Vec<&'static str> {
    let bytes = first_bytes.get(..ENOUGH).unwrap_or(first_bytes);
    let binary = content_type.is_some_and(|name| name.contains("vnd.amazon.eventstream"));
    if binary || bytes.first() == Some(&0) {
        return binary_frames(bytes);
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    if text.starts_with('{')
        && let Some(found) = of_batch_line(first_bytes)
    {
        return found;
    }
    let mut doubt = Vec::new();
    for (name, json) in events(text).into_iter().take(EVENTS) {
        let found = dialects_of(name, json);
        if found.len() == 1 {
            return found;
        }
        if doubt.is_empty() {
            doubt = found;
        }
    }
    doubt
}

/// Return whether a text is a line of a batch's result file, which may be cut.
///
/// ```
/// use deltafold::detect::is_batch_line;
/// assert!(is_batch_line(br#"{"id": "batch_req_1", "custom_id": "a", "resp"#));
/// assert!(!is_batch_line(br#"{"id": "chatcmpl-1", "object": "chat.completion"}"#));
/// ```
pub fn is_batch_line(text: &[u8]) -> bool {
    of_batch_line(text).is_some()
}

/// Return the dialects of the answer in the line of a batch's result file.
///
/// The answer may come after a long request, so that the whole text is read.
fn of_batch_line(text: &[u8]) -> Option<Vec<&'static str>> {
    let text = text.trim_ascii_start();
    let line = text.get(..memchr::memchr(b'\n', text).unwrap_or(text.len())).unwrap_or(text);
    if !may_be_line(line) {
        return None;
    }
    let read = |json: &[u8]| {
        let json = String::from_utf8_lossy(json);
        BatchLine::read(&json, LINE_DEPTH).map(|line| line.dialects())
    };
    // A line that is printed over several ones begins with a bracket alone.
    read(if line.trim_ascii_end() == b"{" { text } else { line })
}

fn binary_frames(bytes: &[u8]) -> Vec<&'static str> {
    let in_frames = |row: &&Dialect| row.framing == Framing::AwsEventStream;
    let mut found: Vec<_> = REGISTRY.iter().filter(in_frames).map(|row| row.name).collect();
    let _ = AwsEventStream::new(ENOUGH).feed(bytes, |frame| {
        let Frame::Event { name, .. } = frame else { return ControlFlow::Continue(()) };
        let Some(dialect) = std::str::from_utf8(name).ok().and_then(by_frame) else {
            return ControlFlow::Continue(());
        };
        found = vec![dialect];
        ControlFlow::Break(())
    });
    found
}

/// Return the JSON texts at the beginning of a body, each with its event name.  The last text may be cut.
fn events(text: &str) -> Vec<(&str, &str)> {
    if text.starts_with(['{', '[']) {
        let object = text.trim_start_matches(|byte: char| byte == '[' || byte.is_whitespace());
        return std::iter::once(("", object))
            .chain(text.lines().skip(1).filter(|line| line.starts_with('{')).map(|line| ("", line)))
            .collect();
    }
    let mut name = "";
    let mut found = Vec::new();
    for line in text.split(['\n', '\r']) {
        if let Some(value) = line.strip_prefix("event:") {
            name = value.trim();
        } else if let Some(value) = line.strip_prefix("data:") {
            let value = value.trim_start();
            found.push((name, value.trim_start_matches('[')));
            name = "";
        } else if line.starts_with('{') {
            found.push(("", line));
        }
    }
    found
}
