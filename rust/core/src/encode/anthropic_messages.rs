//! Writer of Anthropic Messages.
//!
//! ```text
//! stream = message_start, { content_block_start, { content_block_delta }, content_block_stop }, message_delta, message_stop
//! ```
//!
//! Laws: blocks are numbered densely and come one after another.  Each starts and stops once, and its deltas fit its type.
//! `message_delta` waits for the terminal.  `error` ends the stream; open blocks stay open, because a finished block keeps
//! Claude Code from asking again.
//! Source: docs.claude.com, "Streaming Messages"; types of the official clients
//! (docs/protocols/encoding.md#anthropic-messages).

use crate::contract::{ErrorCode, Failure};
use crate::dialect::anthropic_messages::facts::FACTS;
use crate::encode::{
    Call, Counts, Draft, Ending, Extras, Form, Order, Owner, Prefix, State, TextKind, TextPart,
    WholeContent, WholePart, Writer, annotations, call_envelope, envelope, errors, facts_of,
    finish_word, optional, write_compact, write_facts,
};
use crate::fold::{MessageAssembler, Part};
use crate::json::{ObjectWriter, members, object, write_list, write_members, write_string};

/// Stop reasons that the official clients know.
const STOP_REASONS: &[&str] = &[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "compaction",
];

/// Types of citations that a client of this protocol knows.
const CITATIONS: &[&str] = &[
    "char_location",
    "page_location",
    "content_block_location",
    "web_search_result_location",
    "search_result_location",
];

/// Writer of Messages events.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MessagesWriter {
    /// Number of the next block, or of the open one.
    block: usize,
    open: Option<Open>,
    /// Beginning of the deltas of the open block.
    delta: Prefix,
    /// The open call had arguments.
    has_args: bool,
    /// The state of the open call is written.
    is_sealed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
    Call,
}

const DELTA: &str = "content_block_delta";

impl Open {
    /// Return the type of the block's deltas, and the member that holds their text.
    fn delta(self) -> &'static str {
        match self {
            Self::Text => "{\"type\":\"text_delta\",\"text\":\"",
            Self::Thinking => "{\"type\":\"thinking_delta\",\"thinking\":\"",
            Self::Call => "{\"type\":\"input_json_delta\",\"partial_json\":\"",
        }
    }
}

impl MessagesWriter {
    fn start(&mut self, draft: &mut Draft, kind: Option<Open>, block: impl FnOnce(&mut String)) {
        let number = self.block;
        draft.out.event("content_block_start", |event| {
            event.text("type", "content_block_start");
            event.number("index", number);
            event.value("content_block", block);
        });
        self.open = kind;
        if let Some(kind) = kind {
            draft.out.prepare(&mut self.delta, DELTA, |out| {
                out.push_str("{\"type\":\"content_block_delta\",\"index\":");
                out.push_str(&number.to_string());
                out.push_str(",\"delta\":");
                out.push_str(kind.delta());
            });
        }
    }

    #[inline]
    fn more(&self, draft: &mut Draft, text: &str) {
        draft.out.repeat(&self.delta);
        draft.out.escaped(text).piece("\"}}");
        draft.out.finish(&self.delta);
    }

    fn other_delta(&self, draft: &mut Draft, delta: impl FnOnce(&mut ObjectWriter<'_>)) {
        draft.out.event(DELTA, |event| {
            event.text("type", DELTA);
            event.number("index", self.block);
            event.object("delta", delta);
        });
    }

    fn stop(&mut self, draft: &mut Draft) {
        let number = self.block;
        draft.out.event("content_block_stop", |event| {
            event.text("type", "content_block_stop");
            event.number("index", number);
        });
        self.block += 1;
        self.open = None;
    }

    /// Write a whole block without deltas.
    fn whole(&mut self, draft: &mut Draft, block: &str) {
        self.start(draft, None, |out| write_compact(out, block));
        self.stop(draft);
    }
}

/// Return the signature of thinking, as a JSON string: its own, or an envelope of another dialect's state.
fn signature(draft: &mut Draft, redacted: bool, json: &str) -> Option<String> {
    let state = State::read(json);
    if state.is_own(&draft.settings, MessagesWriter::DIALECT) {
        return state.text_member("signature").map(str::to_owned);
    }
    if draft.settings.envelope {
        return Some(quoted(&envelope(&state, &Owner::thinking(redacted))));
    }
    draft.notes.add("provider_state", &format!("provider state of {}", state.dialect));
    None
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    write_string(&mut out, text);
    out
}

fn withheld(data: &str) -> String {
    object(|block| {
        block.text("type", "redacted_thinking");
        block.text("data", data);
    })
}

/// Return the block of withheld thinking, if the target may have it.
fn redacted_block(draft: &mut Draft, json: &str) -> Option<String> {
    let state = State::read(json);
    if state.is_own(&draft.settings, MessagesWriter::DIALECT) {
        let is_block = state.text_member("data").is_some();
        return is_block.then(|| state.data.to_owned());
    }
    if draft.settings.envelope {
        return Some(withheld(&envelope(&state, &Owner::thinking(true))));
    }
    draft.notes.add("provider_state", &format!("withheld thinking of {}", state.dialect));
    None
}

fn own_citations<'a>(draft: &mut Draft, json: &'a str) -> Vec<&'a str> {
    let mut citations = annotations::list(json);
    citations.retain(|annotation| {
        let own = CITATIONS.contains(&annotations::kind(annotation).as_str());
        if !own {
            draft.notes.add("annotations", "annotations of another protocol");
        }
        own
    });
    citations
}

/// Write the counts of a usage record.
fn write_counts(object: &mut ObjectWriter<'_>, counts: Counts) {
    object.number("input_tokens", counts.input_without_cache());
    let (cache_read, cache_write) = counts.cache();
    optional(object, "cache_creation_input_tokens", cache_write);
    optional(object, "cache_read_input_tokens", cache_read);
    object.number("output_tokens", counts.output);
    if let Some(reasoning) = counts.reasoning() {
        object.object("output_tokens_details", |details| {
            details.number("thinking_tokens", reasoning);
        });
    }
}

/// Write the counts of the last record: an unknown input is left out, because the client keeps its first value then.
fn write_usage(draft: &mut Draft, object: &mut ObjectWriter<'_>) {
    let known = draft.head.usage.input.is_some();
    let counts = Counts::filled(draft);
    if known {
        write_counts(object, counts);
    } else {
        object.number("output_tokens", counts.output);
    }
}

/// Facts of the `delta` of `message_delta`, beside those of the stop reason.
const OF_DELTA: [&str; 1] = ["container"];

/// Facts beside the `delta`.
const BESIDE_DELTA: [&str; 3] = ["context_management", "diagnostics", "input_transformations"];

/// Write `stop_reason` and what belongs to it.
fn write_stop(object: &mut ObjectWriter<'_>, reason: &str, ending: &Ending<'_>) {
    object.text("stop_reason", reason);
    let details = members(ending.details.unwrap_or("{}"));
    let detail = |name: &str| details.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
    let sequence = detail("stop_sequence").filter(|value| value.starts_with('"'));
    object.json("stop_sequence", sequence.unwrap_or("null"));
    if let Some(details) = detail("stop_details").filter(|value| value.starts_with('{')) {
        object.value("stop_details", |out| write_compact(out, details));
    }
    write_facts(object, &facts_of(ending.details, &OF_DELTA));
}

fn write_error(object: &mut ObjectWriter<'_>, failure: &Failure<&str>) -> u16 {
    let (word, status) = FACTS.errors.word(failure.code);
    let message = errors::message(failure);
    object.text("type", "error");
    object.object("error", |error| {
        error.text("type", word.unwrap_or("api_error"));
        let too_long = failure.code == ErrorCode::ContextLengthExceeded
            && !message.to_lowercase().contains("prompt is too long");
        if too_long {
            error.text("message", &format!("prompt is too long: {message}"));
        } else {
            error.text("message", message);
        }
    });
    status
}

fn write_text_start(out: &mut String, kind: Open) {
    out.push_str(match kind {
        Open::Thinking => "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}",
        Open::Text | Open::Call => "{\"type\":\"text\",\"text\":\"\"}",
    });
}

/// Write the members of a call's block before its input.
fn write_call(block: &mut ObjectWriter<'_>, call: &Call, input: &str) {
    block.text("type", "tool_use");
    block.text("id", &call.id);
    block.text("name", &call.name);
    block.value("input", |out| write_compact(out, input));
    let Some(json) = call.state.as_deref() else { return };
    let state = State::read(json);
    if state.dialect == MessagesWriter::DIALECT {
        for (key, value) in members(state.data) {
            if !matches!(key.as_ref(), "type" | "id" | "name" | "input") {
                block.json_of(&key, value);
            }
        }
    }
}

fn note_call_state(draft: &mut Draft, call: &Call) {
    if let Some(json) = call.state.as_deref() {
        let state = State::read(json);
        if state.dialect != MessagesWriter::DIALECT {
            draft.notes.add("provider_state", &format!("provider state of {}", state.dialect));
        }
    }
}

impl Writer for MessagesWriter {
    const NAME: &'static str = "anthropic-messages";
    const DIALECT: &'static str = "anthropic-messages";
    const FORM: Form = Form::NamedSse;
    const ORDER: Order = Order::Serial;

    fn head(&mut self, draft: &mut Draft) {
        let usage = &draft.head.usage;
        let estimate = draft.settings.input_tokens;
        if usage.input.or(estimate).is_none() {
            draft
                .notes
                .add("usage", "the input tokens were unknown at the start and are written as 0");
        }
        let counts = Counts {
            input: usage.input.or(estimate).unwrap_or(0),
            output: usage.output.unwrap_or(0),
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            reasoning: None,
        };
        let (id, model) = (&draft.head.request_id, &draft.head.model_id);
        draft.out.event("message_start", |event| {
            event.text("type", "message_start");
            event.object("message", |message| {
                message.text("id", id);
                message.text("type", "message");
                message.text("role", "assistant");
                message.text("model", model);
                message.json("content", "[]");
                message.json("stop_reason", "null");
                message.json("stop_sequence", "null");
                message.object("usage", |usage| write_counts(usage, counts));
            });
        });
    }

    fn open_text(&mut self, draft: &mut Draft, part: &TextPart) {
        let kind = match part.kind {
            TextKind::Text => Open::Text,
            TextKind::Thinking => Open::Thinking,
        };
        self.start(draft, Some(kind), |out| write_text_start(out, kind));
    }

    #[inline]
    fn text(&mut self, draft: &mut Draft, _: &TextPart, text: &str, extras: Extras<'_>) {
        if !text.is_empty() {
            self.more(draft, text);
        }
        if !extras.is_empty() {
            if let Some(json) = extras.annotations {
                for citation in own_citations(draft, json) {
                    self.other_delta(draft, |delta| {
                        delta.text("type", "citations_delta");
                        delta.value("citation", |out| write_compact(out, citation));
                    });
                }
            }
            if extras.logprobs.is_some() {
                draft.notes.add("logprobs", "log probabilities");
            }
        }
    }

    fn close_text(&mut self, draft: &mut Draft, part: &TextPart) {
        if let Some(json) = part.state.as_deref() {
            if part.kind == TextKind::Text {
                draft.notes.add("provider_state", "provider state of a text");
            } else if let Some(signature) = signature(draft, part.redacted, json) {
                self.other_delta(draft, |delta| {
                    delta.text("type", "signature_delta");
                    delta.json("signature", &signature);
                });
            }
        }
        self.stop(draft);
    }

    fn bare(&mut self, draft: &mut Draft, part: &TextPart) {
        let Some(json) = part.state.as_deref() else { return };
        if part.redacted {
            if let Some(block) = redacted_block(draft, json) {
                self.whole(draft, &block);
            }
        } else if part.kind == TextKind::Thinking {
            if let Some(signature) = signature(draft, false, json) {
                self.start(draft, Some(Open::Thinking), |out| {
                    write_text_start(out, Open::Thinking);
                });
                self.other_delta(draft, |delta| {
                    delta.text("type", "signature_delta");
                    delta.json("signature", &signature);
                });
                self.stop(draft);
            }
        } else {
            draft.notes.add("provider_state", "provider state of a text");
        }
    }

    fn late(&mut self, draft: &mut Draft, part: &TextPart, extras: Extras<'_>) {
        if part.state.is_some() {
            draft.notes.add("provider_state", "provider state that came after its part");
        }
        if extras.annotations.is_some() {
            draft.notes.add("annotations", "annotations that came after their part");
        }
        if extras.logprobs.is_some() {
            draft.notes.add("logprobs", "log probabilities");
        }
    }

    fn open_call(&mut self, draft: &mut Draft, call: &Call) {
        self.has_args = false;
        let envelope = call_envelope(draft, Self::DIALECT, call);
        self.is_sealed = envelope.is_some();
        if let Some(envelope) = envelope {
            self.whole(draft, &withheld(&envelope));
        }
        self.start(draft, Some(Open::Call), |out| {
            write_members(out, |block| write_call(block, call, "{}"));
        });
    }

    #[inline]
    fn args(&mut self, draft: &mut Draft, _: &Call, text: &str) {
        self.has_args = true;
        self.more(draft, text);
    }

    fn close_call(&mut self, draft: &mut Draft, call: &Call) -> bool {
        if !self.has_args {
            self.more(draft, "");
        }
        self.stop(draft);
        // The state of a call can come with its end.
        match call_envelope(draft, Self::DIALECT, call) {
            Some(envelope) if !self.is_sealed => self.whole(draft, &withheld(&envelope)),
            Some(_) => {}
            None => note_call_state(draft, call),
        }
        !call.incomplete
    }

    fn whole_call(&mut self, _: &mut Draft, _: &Call) -> bool {
        false
    }

    fn whole_part(&mut self, draft: &mut Draft, part: &WholePart) {
        if let Some(block) = own_block(draft, part) {
            self.whole(draft, block);
        }
    }

    fn finish(&mut self, draft: &mut Draft, ending: &Ending<'_>) {
        let mut json = String::new();
        write_members(&mut json, |usage| write_usage(draft, usage));
        let reason = finish_word(draft, ending, &FACTS.finish_reasons, STOP_REASONS, false);
        draft.out.event("message_delta", |event| {
            event.text("type", "message_delta");
            event.object("delta", |delta| write_stop(delta, reason, ending));
            event.json("usage", &json);
            write_facts(event, &facts_of(ending.details, &BESIDE_DELTA));
        });
        draft.out.event("message_stop", |event| event.text("type", "message_stop"));
    }

    fn fail(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        draft.out.event("error", |event| {
            write_error(event, failure);
        });
    }

    fn keep_alive(&mut self, draft: &mut Draft) {
        draft.out.event("ping", |event| event.text("type", "ping"));
        if self.open.is_some() {
            self.more(draft, "");
        }
    }

    fn refusal(draft: &mut Draft, failure: &Failure<&str>) -> (u16, String) {
        let mut status = 500;
        let body = object(|body| {
            status = write_error(body, failure);
            match failure
                .http_request_id
                .or(Some(&draft.head.request_id))
                .filter(|id| !id.is_empty())
            {
                Some(id) => body.text("request_id", id),
                None => body.json("request_id", "null"),
            }
        });
        (status, body)
    }

    fn body(draft: &mut Draft, message: &MessageAssembler) -> Option<String> {
        Some(message_body(draft, message))
    }
}

/// Return the block of a provider part of this dialect; a note for any other part.
fn own_block<'a>(draft: &mut Draft, part: &'a WholePart) -> Option<&'a str> {
    let what = match part.content() {
        WholeContent::Provider { dialect, block } if dialect == MessagesWriter::DIALECT => {
            return Some(block);
        }
        WholeContent::Provider { dialect, .. } => format!("a part of {dialect}"),
        WholeContent::Image { .. } => "an image".to_owned(),
        WholeContent::Other { kind } => format!("a part of the kind {kind}"),
    };
    draft.notes.add("part", &what);
    None
}

/// Return a whole message.
fn message_body(draft: &mut Draft, message: &MessageAssembler) -> String {
    let mut blocks: Vec<String> = Vec::new();
    let mut whole_calls = 0;
    for (index, part) in message.parts().iter().enumerate() {
        match part {
            Part::Text(part) if part.text.is_empty() => {}
            Part::Text(part) => {
                let citations: Vec<&str> =
                    part.annotations.iter().flat_map(|json| own_citations(draft, json)).collect();
                blocks.push(object(|block| {
                    block.text("type", "text");
                    block.text("text", &part.text);
                    if !citations.is_empty() {
                        block.value("citations", |out| {
                            write_list(out, citations, write_compact);
                        });
                    }
                }));
                if part.provider_state.is_some() {
                    draft.notes.add("provider_state", "provider state of a text");
                }
            }
            Part::Thinking(part) if part.redacted && part.text.is_empty() => {
                let state = part.provider_state.as_deref();
                blocks.extend(state.and_then(|state| redacted_block(draft, state)));
            }
            Part::Thinking(part) => {
                let state = part.provider_state.as_deref();
                let signature = state.and_then(|state| signature(draft, part.redacted, state));
                if !part.text.is_empty() || signature.is_some() {
                    blocks.push(object(|block| {
                        block.text("type", "thinking");
                        block.text("thinking", &part.text);
                        block.json("signature", signature.as_deref().unwrap_or("\"\""));
                    }));
                }
            }
            Part::ToolCall(call) => {
                let call = Call::from_fold(index, whole_calls, call);
                match call.input_object().filter(|_| !call.incomplete && !call.name.is_empty()) {
                    Some(input) => {
                        match call_envelope(draft, MessagesWriter::DIALECT, &call) {
                            Some(envelope) => blocks.push(withheld(&envelope)),
                            None => note_call_state(draft, &call),
                        }
                        whole_calls += 1;
                        blocks.push(object(|block| write_call(block, &call, &input)));
                    }
                    None => {
                        draft
                            .notes
                            .add("call", "a call that was cut off or has no argument object");
                    }
                }
            }
            Part::Whole(json) => {
                let part = WholePart { index, json: json.clone() };
                blocks.extend(own_block(draft, &part).map(str::to_owned));
            }
        }
    }
    let ending = Ending::of(message, whole_calls);
    let reason = finish_word(draft, &ending, &FACTS.finish_reasons, STOP_REASONS, false);
    let counts = Counts::filled(draft);
    object(|body| {
        body.text("id", &draft.head.request_id);
        body.text("type", "message");
        body.text("role", "assistant");
        body.text("model", &draft.head.model_id);
        body.value("content", |out| {
            write_list(out, &blocks, |out, block| write_compact(out, block));
        });
        write_stop(body, reason, &ending);
        write_facts(body, &facts_of(ending.details, &BESIDE_DELTA));
        body.object("usage", |usage| write_counts(usage, counts));
    })
}
