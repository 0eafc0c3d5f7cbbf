//! Writer of Amazon Bedrock's ConverseStream: frames of an AWS event stream.
//!
//! ```text
//! stream = messageStart, { [contentBlockStart], { contentBlockDelta }, contentBlockStop }, messageStop, metadata
//! ```
//!
//! Laws: blocks are numbered densely and come one after another.  Text and reasoning have no start.  `metadata` is required
//! and last.  An error is an exception frame.
//! Source: docs.aws.amazon.com, "ConverseStream"; botocore's model (docs/protocols/encoding.md#bedrock-converse).

mod blocks;

use std::sync::LazyLock;

use blocks::{citations, streamed_part, whole_block};

use crate::contract::{ErrorCode, Failure};
use crate::dialect::bedrock_converse::facts::FACTS;
use crate::encode::{
    Call, Counts, Draft, Ending, Extras, Fact, Form, Order, Owner, Prefix, State, TextKind,
    TextPart, WholePart, Writer, call_envelope, envelope, errors, event_headers, facts_of,
    finish_word, optional, write_compact, write_facts,
};
use crate::fold::{MessageAssembler, Part, TextPart as FoldedText};
use crate::framing::aws_event_stream::HeaderBlock;
use crate::json::{ObjectWriter, members, object, write_list, write_members};

/// Stop reasons of the service's model.
const STOP_REASONS: &[&str] = &[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "guardrail_intervened",
    "content_filtered",
    "malformed_model_output",
    "malformed_tool_use",
    "model_context_window_exceeded",
];

/// Writer of frames.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConverseWriter {
    /// Number of the next block, or of the open one.
    block: usize,
    text: Prefix,
    /// The state of the open call is written.
    is_sealed: bool,
    /// A text or a call is open, so that no other block can begin.
    is_open: bool,
    /// The open text has a delta: a text of nothing but log probabilities has none, and no block.
    has_begun: bool,
}

const DELTA: &str = "contentBlockDelta";

/// Headers of the event that repeats.  They depend on no stream.
static DELTA_HEADERS: LazyLock<HeaderBlock> =
    LazyLock::new(|| HeaderBlock::new(event_headers(DELTA)));

impl Default for ConverseWriter {
    fn default() -> Self {
        Self {
            block: 0,
            text: Prefix::of_frames(&DELTA_HEADERS),
            is_sealed: false,
            is_open: false,
            has_begun: false,
        }
    }
}

impl ConverseWriter {
    fn prepare(&mut self, draft: &Draft, json: &str) {
        let block = self.block;
        draft.out.prepare(&mut self.text, DELTA, |out| {
            out.push_str("{\"contentBlockIndex\":");
            out.push_str(&block.to_string());
            out.push_str(",\"delta\":");
            out.push_str(json);
        });
    }

    fn delta(&self, draft: &mut Draft, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        draft.out.event(DELTA, |event| {
            event.number("contentBlockIndex", self.block);
            event.object("delta", fill);
        });
    }

    fn stop(&mut self, draft: &mut Draft) {
        let block = self.block;
        draft.out.event("contentBlockStop", |event| event.number("contentBlockIndex", block));
        self.block += 1;
    }

    /// Write the citations among annotations into the open block of text, or begin one; false without citations.
    fn cite(&self, draft: &mut Draft, annotations: &str) -> bool {
        let citations = citations(draft, annotations);
        for citation in &citations {
            self.delta(draft, |delta| delta.json("citation", citation));
        }
        !citations.is_empty()
    }

    /// Write a block of withheld thinking that carries an envelope.
    fn sealed(&mut self, draft: &mut Draft, envelope: &str) {
        self.delta(draft, |delta| {
            delta.object("reasoningContent", |reasoning| {
                reasoning.text("redactedContent", envelope);
            });
        });
        self.stop(draft);
    }

    /// Write the signature or the withheld bytes of thinking; false if there are none to write.
    fn thinking_state(&self, draft: &mut Draft, part: &TextPart, has_text: bool) -> bool {
        let Some(members) = reasoning_state(draft, part, has_text) else { return false };
        self.delta(draft, |delta| delta.json("reasoningContent", &members));
        true
    }
}

/// Return a block of withheld thinking that carries an envelope.
fn sealed_block(envelope: &str) -> String {
    object(|block| {
        block.object("reasoningContent", |reasoning| reasoning.text("redactedContent", envelope));
    })
}

/// Return the member of `reasoningContent` that carries the state of thinking, as an object.
fn reasoning_state(draft: &mut Draft, part: &TextPart, has_text: bool) -> Option<String> {
    let state = State::read(part.state.as_deref()?);
    if state.is_own(&draft.settings, ConverseWriter::DIALECT) {
        for key in ["signature", "redactedContent"] {
            if let Some(value) = state.text_member(key) {
                return Some(object(|object| object.json(key, value)));
            }
        }
    } else if draft.settings.envelope && part.kind == TextKind::Thinking {
        let sealed = envelope(&state, &Owner::thinking(part.redacted));
        // Clients drop a block that has a signature and no text.
        let key = if has_text { "signature" } else { "redactedContent" };
        return Some(object(|object| object.text(key, &sealed)));
    }
    draft.notes.add("provider_state", &format!("provider state of {}", state.dialect));
    None
}

fn write_usage(draft: &mut Draft, object: &mut ObjectWriter<'_>) {
    let counts = Counts::filled(draft);
    let (cache_read, cache_write) = counts.cache();
    object.number("inputTokens", counts.input_without_cache());
    object.number("outputTokens", counts.output);
    object.number("totalTokens", counts.total());
    optional(object, "cacheReadInputTokens", cache_read);
    optional(object, "cacheWriteInputTokens", cache_write);
}

/// Return the name of an exception in the stream, and its HTTP status.
fn exception(code: ErrorCode) -> (&'static str, u16) {
    match code {
        ErrorCode::Authentication
        | ErrorCode::Permission
        | ErrorCode::NotFound
        | ErrorCode::InvalidRequest
        | ErrorCode::ContextLengthExceeded
        | ErrorCode::ReplayRefused
        | ErrorCode::ContentBlocked => ("validationException", 400),
        ErrorCode::RateLimited | ErrorCode::QuotaExceeded => ("throttlingException", 429),
        ErrorCode::Overloaded => ("serviceUnavailableException", 503),
        ErrorCode::Timeout | ErrorCode::ConnectionLost => ("modelStreamErrorException", 424),
        ErrorCode::ServerError | ErrorCode::ProtocolError | ErrorCode::Cancelled => {
            ("internalServerException", 500)
        }
    }
}

fn error_message(failure: &Failure<&str>) -> String {
    let message = errors::message(failure);
    if failure.code == ErrorCode::ContextLengthExceeded
        && !message.to_lowercase().contains("input is too long")
    {
        return format!("Input is too long for requested model: {message}");
    }
    message.to_owned()
}

impl Writer for ConverseWriter {
    const NAME: &'static str = "bedrock-converse";
    const DIALECT: &'static str = "bedrock-converse";
    const FORM: Form = Form::Frames;
    const ORDER: Order = Order::Serial;
    const ERROR_REASON_FAILS: bool = false;

    fn head(&mut self, draft: &mut Draft) {
        draft.out.event("messageStart", |event| event.text("role", "assistant"));
    }

    fn open_text(&mut self, draft: &mut Draft, part: &TextPart) {
        self.prepare(
            draft,
            match part.kind {
                TextKind::Text => "{\"text\":\"",
                TextKind::Thinking => "{\"reasoningContent\":{\"text\":\"",
            },
        );
        (self.is_open, self.has_begun) = (true, false);
    }

    #[inline]
    fn text(&mut self, draft: &mut Draft, part: &TextPart, text: &str, extras: Extras<'_>) {
        if !text.is_empty() {
            self.has_begun = true;
            draft.out.repeat(&self.text);
            draft.out.escaped(text).piece(match part.kind {
                TextKind::Text => "\"}}",
                TextKind::Thinking => "\"}}}",
            });
            draft.out.finish(&self.text);
        }
        match extras.annotations {
            Some(json) if part.kind == TextKind::Text => {
                self.has_begun |= self.cite(draft, json);
            }
            Some(_) => draft.notes.add("annotations", "annotations of thinking"),
            None => {}
        }
        if extras.logprobs.is_some() {
            draft.notes.add("logprobs", "log probabilities");
        }
    }

    fn close_text(&mut self, draft: &mut Draft, part: &TextPart) {
        if part.kind == TextKind::Thinking {
            self.has_begun |= self.thinking_state(draft, part, self.has_begun);
        } else if part.state.is_some() {
            draft.notes.add("provider_state", "provider state of a text");
        }
        self.is_open = false;
        if self.has_begun {
            self.stop(draft);
        }
    }

    fn bare(&mut self, draft: &mut Draft, part: &TextPart) {
        if part.kind == TextKind::Thinking {
            if self.thinking_state(draft, part, false) {
                self.stop(draft);
            }
        } else if part.state.is_some() {
            draft.notes.add("provider_state", "provider state of a text");
        }
    }

    fn late(&mut self, draft: &mut Draft, part: &TextPart, extras: Extras<'_>) {
        if part.state.is_some() {
            draft.notes.add("provider_state", "provider state that came after its part");
        }
        match extras.annotations {
            Some(_) if self.is_open => {
                draft.notes.add("annotations", "citations of an ended text, inside another block");
            }
            // Citations alone are a block of text, as the service writes those of its web search.
            Some(json) if part.kind == TextKind::Text => {
                let has_begun = self.cite(draft, json);
                if has_begun {
                    self.stop(draft);
                }
            }
            Some(_) => draft.notes.add("annotations", "annotations of thinking"),
            None => {}
        }
        if extras.logprobs.is_some() {
            draft.notes.add("logprobs", "log probabilities");
        }
    }

    fn open_call(&mut self, draft: &mut Draft, call: &Call) {
        let envelope = call_envelope(draft, Self::DIALECT, call);
        self.is_sealed = envelope.is_some();
        if let Some(envelope) = envelope {
            self.sealed(draft, &envelope);
        }
        let block = self.block;
        draft.out.event("contentBlockStart", |event| {
            event.number("contentBlockIndex", block);
            event.object("start", |start| {
                start.object("toolUse", |tool| {
                    tool.text("toolUseId", &call.id);
                    tool.text("name", &call.name);
                });
            });
        });
        self.prepare(draft, "{\"toolUse\":{\"input\":\"");
        self.is_open = true;
    }

    #[inline]
    fn args(&mut self, draft: &mut Draft, _: &Call, text: &str) {
        draft.out.repeat(&self.text);
        draft.out.escaped(text).piece("\"}}}");
        draft.out.finish(&self.text);
    }

    fn close_call(&mut self, draft: &mut Draft, call: &Call) -> bool {
        self.is_open = false;
        self.stop(draft);
        // The state of a call can come with its end.
        match call_envelope(draft, Self::DIALECT, call) {
            Some(envelope) if !self.is_sealed => self.sealed(draft, &envelope),
            None if call.state.is_some() => {
                draft.notes.add("provider_state", "provider state of a call");
            }
            Some(_) | None => {}
        }
        !call.incomplete
    }

    fn whole_call(&mut self, _: &mut Draft, _: &Call) -> bool {
        false
    }

    fn whole_part(&mut self, draft: &mut Draft, part: &WholePart) {
        let Some(streamed) = streamed_part(draft, part) else { return };
        let block = self.block;
        for (event, member, json) in [
            ("contentBlockStart", "start", streamed.start),
            ("contentBlockDelta", "delta", streamed.delta),
        ] {
            if let Some(json) = json {
                draft.out.event(event, |event| {
                    event.number("contentBlockIndex", block);
                    event.json(member, &json);
                });
            }
        }
        self.stop(draft);
    }

    fn finish(&mut self, draft: &mut Draft, ending: &Ending<'_>) {
        let reason = finish_word(draft, ending, &FACTS.finish_reasons, STOP_REASONS, false);
        draft.out.event("messageStop", |event| {
            event.text("stopReason", reason);
            write_facts(event, &facts_of(ending.details, &OF_STOP));
        });
        let mut usage = String::new();
        write_members(&mut usage, |usage| write_usage(draft, usage));
        draft.out.event("metadata", |event| {
            event.json("usage", &usage);
            write_metadata(event, ending.details);
        });
    }

    fn fail(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        let (name, status) = exception(failure.code);
        let message = error_message(failure);
        draft.out.event(name, |event| {
            event.text("message", &message);
            if name == "modelStreamErrorException" {
                event.number("originalStatusCode", status);
                event.text("originalMessage", &message);
            }
        });
    }

    fn keep_alive(&mut self, draft: &mut Draft) {
        draft.out.event("keepAlive", |_| {});
    }

    fn refusal(_: &mut Draft, failure: &Failure<&str>) -> (u16, String) {
        let (_, status) = FACTS.errors.word(failure.code);
        (status, object(|body| body.text("message", &error_message(failure))))
    }

    fn body(draft: &mut Draft, message: &MessageAssembler) -> Option<String> {
        Some(converse_body(draft, message))
    }
}

/// Return the name of the exception for the header `x-amzn-errortype`.
pub(super) fn error_type(code: ErrorCode) -> &'static str {
    FACTS.errors.word(code).0.unwrap_or("InternalServerException")
}

/// Return a block of text, with its citations if it has any; `None` for a text without either.
fn text_block(draft: &mut Draft, part: &FoldedText) -> Option<String> {
    let citations: Vec<String> =
        part.annotations.iter().flat_map(|json| citations(draft, json)).collect();
    if citations.is_empty() {
        let is_empty = part.text.is_empty();
        return (!is_empty).then(|| object(|block| block.text("text", &part.text)));
    }
    Some(object(|block| {
        block.object("citationsContent", |cited| {
            cited.value("content", |out| {
                let text = Some(part.text.as_str()).filter(|text| !text.is_empty());
                write_list(out, text, |out, text| {
                    write_members(out, |content| content.text("text", text));
                });
            });
            cited.value("citations", |out| {
                write_list(out, &citations, |out, citation| out.push_str(citation));
            });
        });
    }))
}

/// Return a whole response of Converse.
fn converse_body(draft: &mut Draft, message: &MessageAssembler) -> String {
    let mut blocks: Vec<String> = Vec::new();
    let mut calls = 0;
    for (index, part) in message.parts().iter().enumerate() {
        match part {
            Part::Text(folded) => {
                let state = folded.provider_state.as_deref();
                if state.is_some() {
                    draft.notes.add("provider_state", "provider state of a text");
                }
                blocks.extend(text_block(draft, folded));
            }
            Part::Thinking(folded) => {
                let part = TextPart::from_fold(index, TextKind::Thinking, folded);
                let state = reasoning_state(draft, &part, !folded.text.is_empty());
                let state = members(state.as_deref().unwrap_or("{}"));
                let own =
                    |name: &str| state.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
                if let Some(bytes) = own("redactedContent") {
                    blocks.push(object(|block| {
                        block.object("reasoningContent", |reasoning| {
                            reasoning.json("redactedContent", bytes);
                        });
                    }));
                } else if !folded.text.is_empty() || own("signature").is_some() {
                    blocks.push(object(|block| {
                        block.object("reasoningContent", |reasoning| {
                            reasoning.object("reasoningText", |text| {
                                text.text("text", &folded.text);
                                if let Some(signature) = own("signature") {
                                    text.json("signature", signature);
                                }
                            });
                        });
                    }));
                }
            }
            Part::ToolCall(folded) => {
                let call = Call::from_fold(index, calls, folded);
                match call.input_object().filter(|_| !call.incomplete && !call.name.is_empty()) {
                    Some(input) => {
                        if let Some(envelope) = call_envelope(draft, ConverseWriter::DIALECT, &call)
                        {
                            blocks.push(sealed_block(&envelope));
                        }
                        calls += 1;
                        blocks.push(object(|block| {
                            block.object("toolUse", |tool| {
                                tool.text("toolUseId", &call.id);
                                tool.text("name", &call.name);
                                tool.value("input", |out| write_compact(out, &input));
                            });
                        }));
                    }
                    None => {
                        draft
                            .notes
                            .add("call", "a call that was cut off or has no argument object");
                    }
                }
            }
            Part::Whole(json) => {
                blocks.extend(whole_block(draft, &WholePart { index, json: json.clone() }));
            }
        }
    }
    let ending = Ending::of(message, calls);
    let reason = finish_word(draft, &ending, &FACTS.finish_reasons, STOP_REASONS, false);
    let mut usage = String::new();
    write_members(&mut usage, |usage| write_usage(draft, usage));
    object(|body| {
        body.object("output", |output| {
            output.object("message", |message| {
                message.text("role", "assistant");
                message.value("content", |out| {
                    write_list(out, &blocks, |out, block| out.push_str(block));
                });
            });
        });
        body.text("stopReason", reason);
        body.json("usage", &usage);
        write_facts(body, &facts_of(ending.details, &OF_STOP));
        write_metadata(body, ending.details);
    })
}

/// Facts of `messageStop`.
const OF_STOP: [&str; 1] = ["additionalModelResponseFields"];

/// Facts of `metadata`.
const OF_METADATA: [&str; 4] = ["metrics", "performanceConfig", "serviceTier", "trace"];

/// Write the facts of `metadata`.  Its clients require a latency.
fn write_metadata(object: &mut ObjectWriter<'_>, details: Option<&str>) {
    let facts = facts_of(details, &OF_METADATA);
    let is_latency = |json: &str| json.contains("\"latencyMs\"");
    if !facts.iter().any(|(name, json)| name == "metrics" && is_latency(json)) {
        object.object("metrics", |metrics| metrics.number("latencyMs", 0));
    }
    let known = |(name, json): &&Fact<'_>| name != "metrics" || is_latency(json);
    write_facts(object, &facts.iter().filter(known).cloned().collect::<Vec<_>>());
}
