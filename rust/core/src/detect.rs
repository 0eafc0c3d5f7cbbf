//! Detection of the dialect of a body, for callers that record or forward streams without knowing their dialect.
//!
//! In: the first bytes of a body, cut anywhere, and its content type.  Out: the possible dialects.  One if the bytes
//! identify it, two if the bytes fit both (common for a body that is only an error), none without any sign.
//!
//! The signs of each dialect are in its `mod.rs`.  Here are the signs of more than one: errors without a type, and the
//! names of models that tell Mistral from Chat.
//!
//! Law: only the members of the first events count.  Text that a model wrote is never inspected.

use crate::dialect::signs::{self, Signs};
use crate::dialect::{Dialect, REGISTRY};
use crate::framing::aws_event_stream::AwsEventStream;
use crate::framing::{Frame, Framing};
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
const CONVERSE: &str = "bedrock-converse";
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

/// Return the first dialect whose signs match.
fn first(matches: impl Fn(&Signs) -> bool) -> Option<&'static str> {
    REGISTRY.iter().find(|row| matches(row.signs)).map(|row| row.name)
}

fn binary_frames(bytes: &[u8]) -> Vec<&'static str> {
    let in_frames = |row: &&Dialect| row.framing == Framing::AwsEventStream;
    let mut found: Vec<_> = REGISTRY.iter().filter(in_frames).map(|row| row.name).collect();
    let _ = AwsEventStream::new(ENOUGH).feed(bytes, |frame| {
        let Frame::Event { name, .. } = frame else { return ControlFlow::Continue(()) };
        let known = |own: &str| own.as_bytes() == name;
        let Some(dialect) = first(|signs| signs.frames.iter().any(|own| known(own))) else {
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

/// The members of one JSON object that identify a dialect.  The object may be cut.
#[derive(Default)]
struct Members<'a> {
    name: &'a str,
    kind: Option<Str<'a>>,
    event_type: Option<Str<'a>>,
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
                ("event_type", Kind::String) => found.event_type = Some(reader.string()?),
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

    /// Return the member `type`, or the name of the event without it.
    fn kind(&self) -> &str {
        self.kind.map_or(self.name, |kind| kind.raw)
    }

    fn dialects(&self) -> Vec<&'static str> {
        let found = self.by_signs();
        if found.is_empty() { self.by_error() } else { found }
    }

    fn by_signs(&self) -> Vec<&'static str> {
        let is =
            |text: Option<Str<'_>>, entries| text.is_some_and(|it| signs::matches(entries, it.raw));
        let has_all =
            |groups: &[&[&str]]| groups.iter().any(|group| group.iter().all(|name| self.has(name)));
        let found = first(|signs| is(self.event_type, signs.event_types))
            .or_else(|| first(|signs| signs::matches(signs.types, self.kind())))
            .or_else(|| first(|signs| is(self.object, signs.objects)))
            .or_else(|| first(|signs| has_all(signs.members)))
            .or_else(|| first(|signs| has_all(signs.common_members)));
        match found {
            Some(CHAT | MISTRAL) => vec![self.chat()],
            found => found.into_iter().collect(),
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

    fn by_error(&self) -> Vec<&'static str> {
        let kind = self.kind();
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
