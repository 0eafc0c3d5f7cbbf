//! The dialect of one event, by the members of its JSON object.
//!
//! The signs of each dialect are in its `mod.rs`.  Here are the signs of more than one: errors without a type, the names of
//! models that tell Mistral from Chat, and the forms of answers that no dialect reads.

use super::REGISTRY;
use super::signs::{self, Signs};
use crate::json::{Kind, Reader, Result, Str};

/// Maximum nesting depth of the JSON to inspect.
const DEPTH: usize = 64;

pub(super) const ANTHROPIC: &str = "anthropic-messages";
pub(super) const CHAT: &str = "openai-chat";
pub(super) const RESPONSES: &str = "openai-responses";
const MISTRAL: &str = "mistral";
pub(super) const GEMINI: &str = "gemini";
pub(super) const CONVERSE: &str = "bedrock-converse";
pub(super) const INVOKE: &str = "bedrock-invoke";
const OLLAMA: &str = "ollama";
const COHERE: &str = "cohere-chat";

/// Return the dialect whose binary frames have an event name.
pub(crate) fn by_frame(name: &str) -> Option<&'static str> {
    first(|signs| signs.frames.contains(&name))
}

/// Return the dialects that fit one event of text; at most two.  Its JSON may be cut.
pub(crate) fn dialects_of(name: &str, json: &str) -> Vec<&'static str> {
    Members::from_event(name, json).dialects()
}

/// Return whether a decoder of a dialect reads the events of one of these.
pub(crate) fn reads(dialect: &str, found: &[&str]) -> bool {
    let family = |name| if name == MISTRAL { CHAT } else { name };
    found.iter().any(|name| family(name) == family(dialect))
}

/// Return whether an object only says that the connection lives: an empty one, or a `ping`, which gateways write into the
/// streams of every protocol.
pub(crate) fn is_sign_of_life(name: &[u8], json: &[u8]) -> bool {
    json == b"{}"
        || name == b"ping"
        || (json.len() < LONGEST_PING
            && std::str::from_utf8(json)
                .is_ok_and(|json| Members::from_event("", json).kind() == "ping"))
}

/// Bytes of an object that may be a `ping`, with room for white space and a member.
const LONGEST_PING: usize = 64;

/// Members of bodies that no dialect reads, and what they are.
const FOREIGN_FORMS: [(&[&str], &str); 13] = [
    (&["text", "meta_info"], "an answer of SGLang's /generate, no chat protocol"),
    (&["token", "generated_text"], "an answer of TGI's /generate_stream, no chat protocol"),
    (
        &["content", "stop", "tokens_predicted"],
        "an answer of llama.cpp's /completion, no chat protocol",
    ),
    (&["model_name", "text_output"], "an answer of Triton's /generate_stream, no chat protocol"),
    (&["token", "finish_reason"], "an answer of KoboldCpp's own API; its /v1 speaks Chat"),
    (
        &["output", "request_id"],
        "an answer of DashScope's own API; its /compatible-mode speaks Chat",
    ),
    (&["result", "success"], "an answer of Cloudflare's own API; its /ai/v1 speaks Chat"),
    (&["response", "p"], "an answer of Cloudflare's own API; its /ai/v1 speaks Chat"),
    (&["apiFormat", "text"], "an answer of OCI's own API"),
    (&["message", "pad"], "an answer of OCI's own API"),
    (&["request_id", "intermediate_results"], "an answer of SAP's orchestration service"),
    (&["request_id", "orchestration_result"], "an answer of SAP's orchestration service"),
    (&["model", "responses"], "an answer of Reka's own API"),
];

/// Return what an object is that no dialect reads, if that is known.
pub(crate) fn foreign_form(json: &str) -> Option<&'static str> {
    let members = Members::from_event("", json);
    let fits = |names: &[&str]| names.iter().all(|name| members.has(name));
    FOREIGN_FORMS.iter().find(|(names, _)| fits(names)).map(|(_, form)| *form)
}

/// Return the first dialect whose signs match.
fn first(matches: impl Fn(&Signs) -> bool) -> Option<&'static str> {
    REGISTRY.iter().find(|row| matches(row.signs)).map(|row| row.name)
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

    /// Return the member `type`, or the name of the event without it.  `message` is the name of every event without one.
    fn kind(&self) -> &str {
        let name = if self.name == "message" { "" } else { self.name };
        self.kind.map_or(name, |kind| kind.raw)
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
