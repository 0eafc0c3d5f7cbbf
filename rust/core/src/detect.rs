//! Detection of the dialect of a body, for callers that record or forward streams without knowing their dialect.
//!
//! In: the first bytes of a body, cut anywhere, and its content type.  Out: the possible dialects.  One if the bytes
//! identify it, two if the bytes fit both (common for a body that is only an error), none without any sign.
//!
//! Law: only the members of the first events count.  Text that a model wrote is never inspected.

use crate::framing::Frame;
use crate::framing::aws_event_stream::AwsEventStream;
use crate::json::{Kind, Reader, Result, Str};

use std::ops::ControlFlow;

/// Maximum number of bytes to inspect.
const ENOUGH: usize = 64 << 10;
/// Maximum number of events to inspect.
const EVENTS: usize = 16;
/// Maximum nesting depth of the JSON to inspect.
const DEPTH: usize = 64;

const ANTHROPIC: &str = "anthropic-messages";
const CHAT: &str = "openai-chat";
const RESPONSES: &str = "openai-responses";
const MISTRAL: &str = "mistral";
const GEMINI: &str = "gemini";
const INTERACTIONS: &str = "gemini-interactions";
const CONVERSE: &str = "bedrock-converse";
const INVOKE: &str = "bedrock-invoke";
const OLLAMA: &str = "ollama";
const COHERE: &str = "cohere-chat";

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
    let mut doubt = Vec::new();
    for (name, json) in events(text).into_iter().take(EVENTS) {
        let found = Members::from_event(name, json).dialects();
        if found.len() == 1 {
            return found;
        }
        if doubt.is_empty() {
            doubt = found;
        }
    }
    doubt
}

fn binary_frames(bytes: &[u8]) -> Vec<&'static str> {
    let mut found = vec![CONVERSE, INVOKE];
    let _ = AwsEventStream::new(ENOUGH).feed(bytes, |frame| {
        let Frame::Event { name, .. } = frame else { return ControlFlow::Continue(()) };
        found = match name {
            b"chunk" => vec![INVOKE],
            b"messageStart" | b"contentBlockStart" | b"contentBlockDelta" => vec![CONVERSE],
            _ => return ControlFlow::Continue(()),
        };
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

/// The members of one JSON object that identify a dialect.  The object may be cut.
#[derive(Default)]
struct Members<'a> {
    name: &'a str,
    kind: Option<Str<'a>>,
    event_kind: Option<Str<'a>>,
    object: Option<Str<'a>>,
    model: Option<Str<'a>>,
    error: Option<&'a str>,
    names: Vec<&'a str>,
}

impl<'a> Members<'a> {
    fn from_event(name: &'a str, json: &'a str) -> Self {
        let mut found = Self { name, ..Self::default() };
        // The error is ignored: a cut object keeps the members that were read before the cut.
        let _: Result<()> = Reader::new(json, DEPTH).entries(|reader, key| {
            found.names.push(key.raw);
            match (key.raw, reader.kind()?) {
                ("type", Kind::String) => found.kind = Some(reader.string()?),
                ("event_type", Kind::String) => found.event_kind = Some(reader.string()?),
                ("object", Kind::String) => found.object = Some(reader.string()?),
                ("model", Kind::String) => found.model = Some(reader.string()?),
                ("error", _) => found.error = reader.opt_raw()?,
                _ => reader.skip()?,
            }
            Ok(())
        });
        found
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    fn dialects(&self) -> Vec<&'static str> {
        let kind = self.kind.map_or(self.name, |kind| kind.raw);
        if let Some(found) = self.by_event_kind().or_else(|| by_kind(kind)) {
            return vec![found];
        }
        match self.object.map_or("", |object| object.raw) {
            "response" => return vec![RESPONSES],
            "interaction" => return vec![INTERACTIONS],
            "chat.completion" | "chat.completion.chunk" => return vec![self.chat()],
            _ => {}
        }
        let begins_a_chunk = ["id", "created", "model"].iter().all(|name| self.has(name));
        if self.has("choices") || begins_a_chunk {
            return vec![self.chat()];
        }
        if self.has_any(&["candidates", "promptFeedback", "usageMetadata", "modelVersion"]) {
            return vec![GEMINI];
        }
        if self.has("done") || (self.has("created_at") && self.has_any(&["message", "response"])) {
            return vec![OLLAMA];
        }
        if self.has("stopReason")
            || self.has_any(&[
                "contentBlockStart",
                "contentBlockDelta",
                "contentBlockStop",
                "contentBlockIndex",
                "messageStart",
                "messageStop",
            ])
        {
            return vec![CONVERSE];
        }
        if self.has_any(&["chunk", "bytes", "inputTextTokenCount", "outputText"]) {
            return vec![INVOKE];
        }
        if self.has("generation_id") || (self.has("finish_reason") && self.has("message")) {
            return vec![COHERE];
        }
        self.by_error(kind)
    }

    fn by_event_kind(&self) -> Option<&'static str> {
        let kind = self.event_kind?.raw;
        match kind {
            "stream-start" | "stream-end" | "text-generation" => Some(COHERE),
            _ if kind.starts_with("tool-calls-") || kind.starts_with("search-") => Some(COHERE),
            _ => Some(INTERACTIONS),
        }
    }

    fn chat(&self) -> &'static str {
        // Mistral is recognized by its model names, because its servers send no other sign in the first events.
        const NAMES: [&str; 8] = [
            "codestral",
            "devstral",
            "magistral",
            "ministral",
            "mistral-",
            "open-mi",
            "pixtral",
            "voxtral",
        ];
        let model = self.model.map_or("", |model| model.raw);
        if NAMES.iter().any(|name| model.starts_with(name)) { MISTRAL } else { CHAT }
    }

    fn by_error(&self, kind: &str) -> Vec<&'static str> {
        let Some(error) = self.error else {
            // A `message` without an `error` object and without a type: both dialects send such errors.
            return if self.has("message") && kind.is_empty() {
                vec![COHERE, CONVERSE]
            } else {
                Vec::new()
            };
        };
        let inner = Members::from_event("", error);
        if inner.has("status") {
            // Google's OpenAI-compatible endpoint sends the same errors.
            return vec![GEMINI, CHAT];
        }
        match kind {
            "error" if self.has("sequence_number") => vec![RESPONSES],
            "error" if self.has("request_id") => vec![ANTHROPIC],
            "error" => vec![ANTHROPIC, RESPONSES],
            _ if error.starts_with('"') && self.names.len() == 1 => vec![OLLAMA, CHAT],
            _ => vec![CHAT, RESPONSES],
        }
    }
}

/// Return the dialect that uses this event type.
fn by_kind(kind: &str) -> Option<&'static str> {
    match kind {
        "message_start" | "message_delta" | "message_stop" | "message" | "ping" => Some(ANTHROPIC),
        "message-start" | "message-end" | "tool-plan-delta" => Some(COHERE),
        _ if kind.starts_with("response.") => Some(RESPONSES),
        _ if kind.starts_with("content_block_") => Some(ANTHROPIC),
        _ if kind.starts_with("content-") || kind.starts_with("citation-") => Some(COHERE),
        _ if kind.starts_with("tool-call-") => Some(COHERE),
        _ => None,
    }
}
