//! State of an InvokeModelWithResponseStream response, and the application of events to it.

use std::borrow::Cow;

use super::completion;
use super::facts::METRICS;
use super::read::{self, Event, EventTemplate};
use crate::base64;
use crate::contract::{ErrorCode, Failure, FinishReason};
use crate::dialect::protocol::{Frame, Protocol, ProtocolDriver, Wanted};
use crate::dialect::unread::ADDED;
use crate::dialect::{anthropic_messages, bedrock_converse, openai_chat};
use crate::emit::Counts;
use crate::json::{ErrorKind, Reader, Result};
use crate::limits::Limits;
use crate::sink::DeltaSink;

/// Action of a guardrail that changed or replaced the answer.  Without a finish reason of the model, the answer was filtered.
const INTERVENED: &str = "INTERVENED";

/// The protocol of the model, with its decoder.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one a stream, settled once")]
enum Model {
    #[default]
    Unknown,
    Anthropic(ProtocolDriver<anthropic_messages::State>),
    Chat(ProtocolDriver<openai_chat::State>),
    Converse(ProtocolDriver<bedrock_converse::State>),
    Completion(ProtocolDriver<completion::State>),
}

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    model: Model,
    /// The counts of Bedrock have arrived, which follow the last event of the model.
    metered: bool,
    guarded: bool,
    /// An event came without the frame of a chunk, as a whole body does.
    bare: bool,
    /// Reused buffer, empty between two events.
    decoded: Vec<u8>,
}

impl Protocol for State {
    type EventTemplate = EventTemplate;
    const HAS_CHOICES: bool = true;

    fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, _: Wanted) -> Result<Event<'a>> {
        read::read(frame, reader)
    }

    fn show_choices(&self, event: &Event<'_>, limits: &Limits, shown: &mut dyn FnMut(u64)) {
        let mut decoded = Vec::new();
        let json = match *event {
            Event::Chunk(text) => {
                let whole = base64::decode_into(text.text().as_bytes(), &mut decoded);
                String::from_utf8_lossy(if whole.is_some() { decoded.as_slice() } else { &[] })
            }
            Event::Bare(json) => json.into(),
            Event::Error(..) | Event::Unknown(_) => return,
        };
        let json = json.trim_ascii();
        if json.starts_with('{') {
            let frame = Frame { name: "", json, wire: "", max_depth: limits.depth };
            self.model.show_choices(frame, limits, shown);
        }
    }

    fn apply(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_>) {
        match *event {
            Event::Chunk(text) => {
                let mut decoded = std::mem::take(&mut self.decoded);
                // Base64 needs no JSON escapes, but a server may escape the slash.
                let whole = if text.escaped {
                    base64::decode_into(text.text().as_bytes(), &mut decoded)
                } else {
                    base64::decode_into(text.raw.as_bytes(), &mut decoded)
                };
                match whole {
                    Some(()) => self.decoded(&decoded, sink),
                    None => self.refuse("the bytes of a chunk are no base64".into(), sink),
                }
                decoded.clear();
                self.decoded = decoded;
            }
            Event::Bare(json) => {
                self.bare = true;
                self.event(json, sink);
            }
            Event::Error(name, json) => {
                self.close(sink);
                sink.error(sink.named_failure(name, json));
            }
            Event::Unknown(name) => {
                sink.warn_unknown("event", name);
            }
        }
    }

    fn close(&mut self, sink: &mut DeltaSink<'_>) {
        match &mut self.model {
            Model::Unknown => {}
            Model::Anthropic(driver) => driver.close(sink),
            Model::Chat(driver) => driver.close(sink),
            Model::Converse(driver) => driver.close(sink),
            Model::Completion(driver) => driver.close(sink),
        }
        // Without the counts that follow the last event, a stream was cut off.
        let ended = self.metered || (self.bare && matches!(self.model, Model::Completion(_)));
        if ended && self.guarded && !sink.finished() {
            sink.finish(FinishReason::ContentFilter, INTERVENED);
        }
    }
}

impl State {
    fn refuse(&mut self, message: Box<str>, sink: &mut DeltaSink<'_>) {
        self.close(sink);
        sink.error(Failure::new(ErrorCode::ProtocolError, message));
    }

    fn decoded(&mut self, bytes: &[u8], sink: &mut DeltaSink<'_>) {
        let json = String::from_utf8_lossy(bytes);
        if matches!(json, Cow::Owned(_)) {
            sink.warn("invalid_utf8", "invalid UTF-8 became U+FFFD", None);
        }
        self.event(&json, sink);
    }

    /// Handle an event of the model.
    fn event(&mut self, json: &str, sink: &mut DeltaSink<'_>) {
        let json = json.trim_ascii();
        if json.is_empty() {
            return;
        }
        if json == "[DONE]" {
            self.close(sink);
            return sink.end();
        }
        if !json.starts_with('{') {
            return sink.warn("noise", "data that is no JSON was skipped", None);
        }
        let max_depth = sink.options().limits.depth;
        let added = json.contains(ADDED);
        if !added && !sink.options().provider_raw && self.model.apply_template(json, sink) {
            return;
        }
        let seen = if added { self.added(json, max_depth, sink) } else { Ok(()) };
        let frame = Frame { name: "", json, wire: "", max_depth };
        if let Err(error) = seen.and_then(|()| self.model.frame(frame, sink)) {
            let message = if error.kind == ErrorKind::TooDeep {
                format!("limit reached: depth ({max_depth}) in the event of a chunk")
            } else {
                format!("{error} of the event of a chunk")
            };
            self.refuse(message.into(), sink);
        }
    }

    /// Handle the members that Bedrock adds to an event.
    fn added(&mut self, json: &str, max_depth: usize, sink: &mut DeltaSink<'_>) -> Result<()> {
        let mut metrics = None;
        Reader::new(json, max_depth).object(|reader, key| {
            let value = reader.raw()?;
            match key {
                "amazon-bedrock-invocationMetrics" => {
                    metrics = Some(value).filter(|json| json.starts_with('{'));
                }
                "amazon-bedrock-guardrailAction" => {
                    self.guarded |= value.trim_matches('"') == INTERVENED;
                }
                _ => {}
            }
            if key.starts_with(ADDED) {
                sink.unknown_detail(key, value);
            }
            Ok(())
        })?;
        if let Some(metrics) = metrics {
            self.metered = true;
            sink.usage_beside(Counts::read(&METRICS, metrics)?, metrics);
        }
        if self.guarded && (self.metered || self.bare) {
            sink.imply_finish(FinishReason::ContentFilter, INTERVENED);
        }
        Ok(())
    }
}

impl Model {
    fn apply_template(&mut self, json: &str, sink: &mut DeltaSink<'_>) -> bool {
        match self {
            Self::Unknown => false,
            Self::Anthropic(driver) => driver.apply_template(b"", json.as_bytes(), b"", sink),
            Self::Chat(driver) => driver.apply_template(b"", json.as_bytes(), b"", sink),
            Self::Converse(driver) => driver.apply_template(b"", json.as_bytes(), b"", sink),
            Self::Completion(driver) => driver.apply_template(b"", json.as_bytes(), b"", sink),
        }
    }

    fn frame(&mut self, frame: Frame<'_>, sink: &mut DeltaSink<'_>) -> Result<()> {
        if let Self::Unknown = self {
            let (model, name) = Self::recognise(frame)?;
            *self = model;
            if let Some(name) = name {
                sink.speak_as(name);
            }
        }
        match self {
            Self::Unknown => {
                sink.warn("unknown_event", "an event of a model that is not known", None);
                Ok(())
            }
            Self::Anthropic(driver) => driver.frame(frame, sink),
            Self::Chat(driver) => driver.frame(frame, sink),
            Self::Converse(driver) => driver.frame(frame, sink),
            Self::Completion(driver) => driver.frame(frame, sink),
        }
    }

    /// Pass the numbers of the answers that an event of the model holds to `shown`.
    fn show_choices(&self, frame: Frame<'_>, limits: &Limits, shown: &mut dyn FnMut(u64)) {
        match self {
            Self::Unknown => match Self::recognise(frame) {
                Err(_) | Ok((Self::Unknown, _)) => {}
                Ok((model, _)) => model.show_choices(frame, limits, shown),
            },
            Self::Anthropic(_) | Self::Converse(_) => shown(0),
            Self::Chat(driver) => driver.show_choices(frame, limits, shown),
            Self::Completion(_) => {
                completion::choices(frame, limits).into_iter().for_each(shown);
            }
        }
    }

    /// Return the protocol that the members of an event identify.  Its name is present if its parts can be sent back.
    fn recognise(frame: Frame<'_>) -> Result<(Self, Option<&'static str>)> {
        let mut found = Self::Unknown;
        let mut chunk = false;
        let mut reader = Reader::new(frame.json, frame.max_depth);
        reader.object(|reader, key| {
            let named = match key {
                "type" => {
                    // Claude's text completions have a `type` too.
                    let kind = reader.opt_string()?;
                    if found == Self::Unknown && kind.is_some_and(|kind| kind.raw != "completion") {
                        found = Self::Anthropic(ProtocolDriver::default());
                    }
                    return Ok(());
                }
                "messageStart" | "contentBlockStart" | "contentBlockDelta" | "contentBlockStop"
                | "messageStop" | "metadata" | "output" => {
                    Self::Converse(ProtocolDriver::default())
                }
                "choices" => {
                    reader.maybe_array(|reader| {
                        reader.maybe_object(|reader, key| {
                            chunk |= key == "delta";
                            reader.skip()
                        })
                    })?;
                    Self::Completion(ProtocolDriver::default())
                }
                "object" => {
                    let object = reader.opt_string()?;
                    chunk |= object.is_some_and(|object| object.raw.starts_with("chat."));
                    return Ok(());
                }
                "outputText" | "results" | "generation" | "completion" | "outputs" | "text"
                | "event_type" | "generations" | "is_finished" | "error" => {
                    Self::Completion(ProtocolDriver::default())
                }
                _ => return reader.skip(),
            };
            if key != "choices" {
                reader.skip()?;
            }
            if found == Self::Unknown {
                found = named;
            }
            Ok(())
        })?;
        reader.end()?;
        if chunk {
            found = Self::Chat(ProtocolDriver::default());
        }
        let name = match found {
            Self::Anthropic(_) => Some("anthropic-messages"),
            Self::Chat(_) => Some("openai-chat"),
            Self::Converse(_) => Some("bedrock-converse"),
            Self::Completion(_) | Self::Unknown => None,
        };
        Ok((found, name))
    }
}
