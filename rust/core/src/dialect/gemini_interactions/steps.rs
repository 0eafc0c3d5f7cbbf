//! Conversion of one step of an interaction to deltas.
//!
//! Laws:
//! - The output of a model is a text part.  Each medium in it ends the part.
//! - A thought is one thinking part.  Its signature is the provider state.
//! - A function call is a tool call.
//! - Every other step becomes one provider part when it stops.  If the stream ends before, the part holds the content
//!   that arrived.

use std::collections::HashMap;

use super::read::{Content, Delta};
use crate::contract::InputFormat;
use crate::dialect::unread::Unread;
use crate::emit::{CallEnd, CallHandle, ImageContent, PartHandle, PartKind};
use crate::json::{self, Reader, Result, Str};
use crate::sink::DeltaSink;

/// Bytes that count for a step beside its text.
const STEP_BYTES: usize = 128;

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Output(Option<PartHandle>),
    Thought(Option<PartHandle>),
    Call(CallHandle),
    Provider {
        begun: String,
        /// The deltas of the step, each a JSON object.
        deltas: Vec<String>,
        held: usize,
    },
}

impl Step {
    /// Open the step of a start event, and return its error, if it has one.  Returns `None` if the limit on state is reached, or
    /// if the step is caller input.
    pub(super) fn open<'a>(
        json: &'a str,
        sink: &mut DeltaSink<'_>,
    ) -> Option<(Self, Option<&'a str>)> {
        if !sink.take_state_bytes(STEP_BYTES) {
            return None;
        }
        // `read` validated the step, so that an error here only means a value that is not an object.
        let mut unread = Unread::default();
        let members = Delta::read(&mut Reader::trusted(json), &mut unread).ok()?;
        let mut step = match members.kind.map_or("", |kind| kind.raw) {
            // A whole body repeats the caller's input among its steps.
            "user_input" | "function_result" => return None,
            "model_output" | "text" => Self::Output(None),
            "thought" => Self::Thought(None),
            "function_call" => Self::Call(sink.open_call(InputFormat::Json)),
            _ => {
                let held = json.len();
                let begun = if sink.take_state_bytes(held) { json } else { "{}" };
                Self::Provider { begun: begun.to_owned(), deltas: Vec::new(), held }
            }
        };
        if !matches!(step, Self::Provider { .. }) {
            unread.send(sink);
        }
        step.begin(&members, sink);
        Some((step, members.error))
    }

    /// Create the step for a delta that belongs to a step without a start event.
    pub(super) fn from_kind(kind: &str, sink: &mut DeltaSink<'_>) -> Option<Self> {
        if !sink.take_state_bytes(STEP_BYTES) {
            return None;
        }
        Some(match kind {
            "text" | "text_annotation_delta" | "image" | "audio" | "video" | "document" => {
                Self::Output(None)
            }
            "thought_summary" | "thought_signature" => Self::Thought(None),
            "function_call" => Self::Call(sink.open_call(InputFormat::Json)),
            // Arguments without a known tool call: kept as a provider part, which cannot be run as a call.
            "arguments_delta" => {
                let begun = "{\"type\":\"function_call\"}".to_owned();
                Self::Provider { begun, deltas: Vec::new(), held: 0 }
            }
            _ => Self::Provider { begun: "{}".to_owned(), deltas: Vec::new(), held: 0 },
        })
    }

    /// Accept the content that a step has at its start.  In a whole body this is all of it.
    fn begin(&mut self, members: &Delta<'_>, sink: &mut DeltaSink<'_>) {
        match self {
            Self::Call(_) => self.call(members, sink),
            Self::Output(_) | Self::Thought(_) => {
                let thought = matches!(self, Self::Thought(_));
                // `read` validated the JSON, so that an error here only means a value that is not a list.
                let _ = Reader::trusted(members.contents.unwrap_or("[]")).maybe_array(|reader| {
                    let start = reader.position();
                    let mut unread = Unread::default();
                    let content = Delta::read(reader, &mut unread)?;
                    let json = reader.since(start);
                    let kind = content.kind.map_or("text", |kind| kind.raw);
                    let kind = if thought && kind == "text" { "thought_summary" } else { kind };
                    self.take(kind, &content, (json, &unread), sink);
                    Ok(())
                });
                if members.text.is_some() || members.annotations.is_some() {
                    let kind = if thought { "thought_summary" } else { "text" };
                    self.take(kind, members, ("{}", &Unread::default()), sink);
                }
                if members.signature.is_some() {
                    self.take("thought_signature", members, ("{}", &Unread::default()), sink);
                }
            }
            Self::Provider { .. } => {}
        }
    }

    /// Accept a fragment of text.  Returns false if the step is of another kind.
    #[inline]
    pub(super) fn more(
        &mut self,
        content: Content,
        text: Str<'_>,
        sink: &mut DeltaSink<'_>,
    ) -> bool {
        match (self, content) {
            (Self::Output(part), Content::Text) => say(part, PartKind::Text, text, sink),
            (Self::Thought(part), Content::Thought) => {
                say(part, PartKind::Thinking, text, sink);
            }
            (Self::Call(call), Content::Arguments) => sink.call_args(*call, text),
            (Self::Provider { deltas, held, .. }, Content::Arguments) => {
                let text = json::object(|delta| delta.wire_text("arguments", text));
                hold(deltas, held, text, sink);
            }
            _ => return false,
        }
        true
    }

    /// Accept a delta of any kind: its members, its JSON, and the members that no rule knows.  Returns false if the step is of
    /// another kind.
    pub(super) fn take(
        &mut self,
        kind: &str,
        delta: &Delta<'_>,
        (json, unread): (&str, &Unread<'_>),
        sink: &mut DeltaSink<'_>,
    ) -> bool {
        // A part with the whole delta has its unknown members too.
        let mut is_kept_whole = false;
        match (self, kind) {
            (Self::Output(part), "text" | "text_annotation_delta") => {
                let part = opened(part, PartKind::Text, sink);
                if let Some(text) = delta.text {
                    sink.text(part, text);
                }
                if let Some(annotations) = delta.annotations {
                    sink.annotate(part, annotations);
                }
            }
            (Self::Output(part), "thought_signature") => sign(part, PartKind::Text, delta, sink),
            (Self::Thought(part), "thought_signature") => {
                sign(part, PartKind::Thinking, delta, sink);
            }
            (Self::Thought(part), "thought_summary") => {
                if let Some(text) = delta.text {
                    say(part, PartKind::Thinking, text, sink);
                }
                if delta.text.is_none() {
                    is_kept_whole = true;
                    sink.provider_part(json);
                } else if delta.annotations.is_some() {
                    // Thinking has no annotations.
                    sink.warn_unread("annotations of a thought");
                }
            }
            // A medium in a thought is not part of the answer.
            (Self::Thought(_), "image" | "audio" | "video" | "document") => {
                is_kept_whole = true;
                sink.provider_part(json);
            }
            (step @ Self::Call(_), "function_call" | "arguments_delta") => step.call(delta, sink),
            (Self::Output(part), "image" | "audio" | "video" | "document") => {
                if let Some(part) = part.take() {
                    sink.end_part(part);
                }
                is_kept_whole = !medium(kind, delta, json, sink);
            }
            (Self::Provider { deltas, held, .. }, _) => {
                is_kept_whole = true;
                hold(deltas, held, json.to_owned(), sink);
            }
            _ => return false,
        }
        if !is_kept_whole {
            unread.send(sink);
        }
        true
    }

    fn call(&mut self, members: &Delta<'_>, sink: &mut DeltaSink<'_>) {
        let Self::Call(call) = *self else { return };
        if let Some(signature) = members.signature {
            sink.call_state(call, &signature_state(signature));
        }
        sink.name_call(call, members.id, members.name);
        if let Some(arguments) = members.arguments {
            sink.call_args(call, arguments);
        }
    }

    /// End the step at its stop event.
    pub(super) fn stop(self, sink: &mut DeltaSink<'_>) {
        match self {
            Self::Call(call) => sink.end_call(call, CallEnd::Provider),
            other => other.close(sink),
        }
    }

    /// End the step together with the stream.  A call stays open: the end of the stream decides whether it is complete.
    pub(super) fn close(self, sink: &mut DeltaSink<'_>) {
        match self {
            Self::Output(Some(part)) | Self::Thought(Some(part)) => sink.end_part(part),
            Self::Output(None) | Self::Thought(None) | Self::Call(_) => {}
            Self::Provider { begun, deltas, held } => {
                sink.give_back_state_bytes(held);
                sink.provider_part(&joined(&begun, &deltas));
            }
        }
    }
}

fn opened(part: &mut Option<PartHandle>, kind: PartKind, sink: &mut DeltaSink<'_>) -> PartHandle {
    *part.get_or_insert_with(|| sink.open_block(kind))
}

fn say(part: &mut Option<PartHandle>, kind: PartKind, text: Str<'_>, sink: &mut DeltaSink<'_>) {
    let part = opened(part, kind, sink);
    sink.text(part, text);
}

fn sign(
    part: &mut Option<PartHandle>,
    kind: PartKind,
    delta: &Delta<'_>,
    sink: &mut DeltaSink<'_>,
) {
    if let Some(signature) = delta.signature {
        let part = opened(part, kind, sink);
        sink.part_state(part, &signature_state(signature));
    }
}

fn signature_state(signature: Str<'_>) -> String {
    json::object(|state| state.wire_text("signature", signature))
}

fn hold(deltas: &mut Vec<String>, held: &mut usize, json: String, sink: &mut DeltaSink<'_>) {
    if sink.take_state_bytes(json.len()) {
        *held += json.len();
        deltas.push(json);
    }
}

/// Emit an image of the answer, and return true.  Other media, and images that are only linked, become provider parts.
fn medium(kind: &str, delta: &Delta<'_>, json: &str, sink: &mut DeltaSink<'_>) -> bool {
    let Some(data) = delta.data.filter(|_| kind == "image") else {
        sink.provider_part(json);
        return false;
    };
    let mime_type = delta.mime_type.unwrap_or(Str::plain("image/*"));
    sink.image_part(&mime_type.text(), ImageContent::Base64(&data.text()), None);
    true
}

/// Join a step and its deltas.  Strings and lists under the same name are concatenated; other values replace earlier ones.
fn joined(begun: &str, deltas: &[String]) -> String {
    let mut members: Vec<(String, Vec<&str>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for json in std::iter::once(begun).chain(deltas.iter().map(String::as_str)) {
        // `read` validated the JSON, so that an error here only means a value that is not an object.
        let _: Result<()> = Reader::trusted(json).entries(|reader, key| {
            let (key, value) = (key.text(), reader.raw()?);
            let known = places.get(&key).and_then(|at| members.get_mut(*at));
            if let Some((_, values)) = known {
                values.push(value);
            } else {
                places.insert(key.clone(), members.len());
                members.push((key, vec![value]));
            }
            Ok(())
        });
    }
    let values: Vec<String> =
        members.iter().map(|(key, values)| joined_value(key, values)).collect();
    let members: Vec<(&str, &str)> = members
        .iter()
        .zip(&values)
        .map(|((key, _), value)| (key.as_str(), value.as_str()))
        .collect();
    json::write_object(&members)
}

fn joined_value(key: &str, values: &[&str]) -> String {
    let last = values.last().copied().unwrap_or("null");
    let bracket = match last.as_bytes() {
        // These members identify the step.  The start holds their values, and the deltas use other values.
        _ if matches!(key, "type" | "id" | "call_id" | "name") => {
            return values.first().copied().unwrap_or("null").to_owned();
        }
        [b'"', .., b'"'] => ('"', '"', ""),
        [b'[', .., b']'] => ('[', ']', ","),
        _ => return last.to_owned(),
    };
    let (open, close, between) = bracket;
    let inner = values.iter().filter_map(|value| value.strip_prefix(open)?.strip_suffix(close));
    let inner: Vec<&str> = inner.filter(|inner| !inner.trim_ascii().is_empty()).collect();
    format!("{open}{}{close}", inner.join(between))
}
