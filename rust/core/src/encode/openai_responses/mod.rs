//! Writer of OpenAI Responses.
//!
//! ```text
//! stream    = created, in_progress, { item }, ( completed | incomplete | error, failed )
//! item      = output_item.added, body, output_item.done
//! message   = content_part.added, ( output_text.delta*, annotation.added*, output_text.done | refusal.delta*, refusal.done ),
//!             content_part.done
//! reasoning = summary_part.added, summary_text.delta*, .done, summary_part.done
//!             | content_part.added, reasoning_text.delta*, .done, content_part.done | nothing
//! call      = function_call_arguments.delta*, .done | custom_tool_call_input.delta*, .done | nothing (tool_search_call)
//! ```
//!
//! Laws: every event has the next `sequence_number`.  One item is open at a time, and every text part is an item of its own.
//! Skeletons are empty, done forms repeat everything, and the last event repeats the done items.  Ids are fixed when an item
//! opens.
//! Source: platform.openai.com, "Responses: streaming events"; types of the official clients; Codex's parser
//! (docs/protocols/encoding.md#openai-responses).

mod item;
mod parts;
mod response;
mod state;
mod whole_items;

use std::collections::BTreeSet;

use item::{Item, Kind};
use parts::write_parts;
use state::{Origin, is_audio_part, is_own_raw, own_forms, own_id, own_origin, own_phase, quoted};

use crate::contract::{Failure, FinishReason, InputFormat};
use crate::dialect::openai_responses::facts::FACTS;
use crate::encode::audio::{is_audio, rest_of_audio};
use crate::encode::parts::member;
use crate::encode::{
    Call, Draft, Ending, Extras, Form, Freeform, Order, Owner, Prefix, State, TextKind, TextPart,
    ToolKind, WholeContent, WholePart, Writer, call_envelope, envelope, errors, finish_word,
    write_compact,
};
use crate::fold::MessageAssembler;
use crate::json::{ObjectWriter, object, write_string};

/// Reasons of `incomplete_details`.
const REASONS: &[&str] = &["max_output_tokens", "content_filter", "max_messages", "steered"];

/// Writer of Responses events.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ResponsesWriter {
    /// Number of the next event.
    sequence: u64,
    /// JSON of the done items.
    output: Vec<String>,
    /// The open item, or the last text, which is closed by what follows: only the terminal tells whether it was cut.
    item: Option<Item>,
    /// The open item had its last delta.
    ended: bool,
    /// Beginning of the deltas of the open item.
    delta: Prefix,
    /// Reader of the arguments of a custom tool that the source calls as a function.
    freeform: Option<Freeform>,
    /// The state of the open call is written.
    is_sealed: bool,
    refused: bool,
    /// Number of the part whose item is open.
    last_part: Option<usize>,
    /// Ids of the source that were written; the clients refuse an id that comes twice.
    ids: BTreeSet<String>,
    /// Bytes of audio that were written before its part.
    audio_said: usize,
}

impl ResponsesWriter {
    fn event(
        &mut self,
        draft: &mut Draft,
        name: &'static str,
        fill: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let sequence = self.sequence;
        self.sequence += 1;
        draft.out.event(name, |event| {
            event.text("type", name);
            event.number("sequence_number", sequence);
            fill(event);
        });
    }

    /// Return the id of the next item.
    fn next_id(&self, draft: &Draft, prefix: &str) -> String {
        format!("{prefix}_{}_{}", draft.head.request_id, self.output.len())
    }

    /// Return the id of the source's item, or that of the next item if it has none or it was written before.
    fn own_or_next_id(&mut self, draft: &Draft, state: Option<&str>, prefix: &str) -> String {
        let id = own_id(state).filter(|id| self.ids.insert(id.clone()));
        id.unwrap_or_else(|| self.next_id(draft, prefix))
    }

    fn open(&mut self, draft: &mut Draft, item: Item) {
        let index = self.output.len();
        let skeleton = item.json("in_progress", true);
        self.event(draft, "response.output_item.added", |event| {
            event.number("output_index", index);
            event.json("item", &skeleton);
        });
        if let Some((name, number)) = item.part_added() {
            let part = item.part_json(true);
            let id = item.id.clone();
            self.event(draft, name, |event| {
                event.text("item_id", &id);
                event.number("output_index", index);
                event.number(number, 0);
                event.json("part", &part);
            });
        }
        draft.out.prepare(&mut self.delta, item.delta_event(), |out| {
            out.push_str("{\"type\":\"");
            out.push_str(item.delta_event());
            out.push_str("\",\"item_id\":");
            write_string(out, &item.id);
            out.push_str(",\"output_index\":");
            out.push_str(&index.to_string());
            if let Some((_, number)) = item.part_added() {
                out.push_str(",\"");
                out.push_str(number);
                out.push_str("\":0");
            }
        });
        self.item = Some(item);
        self.ended = false;
    }

    #[inline]
    fn more(&mut self, draft: &mut Draft, text: &str, extras: Extras<'_>) {
        let Some(item) = &mut self.item else { return };
        item.text.push_str(text);
        let out = &mut draft.out;
        out.repeat(&self.delta);
        if item.has_logprobs() {
            let merged = item.pending.take().map(|mut pending| {
                if let Some(logprobs) = extras.logprobs {
                    pending.append(logprobs);
                }
                pending
            });
            match merged.as_deref().or(extras.logprobs) {
                None => out.piece(",\"logprobs\":[]"),
                Some(logprobs) => {
                    item.keep_logprobs(logprobs);
                    out.piece(",\"logprobs\":").value(|out| logprobs.write_openai(out, false))
                }
            };
        }
        out.piece(",\"delta\":\"").escaped(text).piece("\",\"sequence_number\":");
        out.number(self.sequence).piece("}");
        out.finish(&self.delta);
        self.sequence += 1;
    }

    /// Close the open item.
    fn close(&mut self, draft: &mut Draft, status: &'static str) {
        if self.item.as_ref().is_some_and(|item| item.pending.is_some() && item.has_logprobs()) {
            self.more(draft, "", Extras::default());
        }
        let Some(item) = self.item.take() else { return };
        if item.pending.is_some() {
            draft.notes.add("logprobs", "log probabilities without a text");
        }
        self.last_part = None;
        let index = self.output.len();
        let id = item.id.clone();
        for (number, annotation) in item.annotations.iter().enumerate() {
            self.event(draft, "response.output_text.annotation.added", |event| {
                event.text("item_id", &id);
                event.number("output_index", index);
                event.number("content_index", 0);
                event.number("annotation_index", number);
                event.json("annotation", annotation);
            });
        }
        let (name, member) = item.done_event();
        if !name.is_empty() {
            let number = item.part_added().map(|(_, number)| number);
            self.event(draft, name, |event| {
                event.text("item_id", &id);
                event.number("output_index", index);
                if let Some(number) = number {
                    event.number(number, 0);
                }
                if item.has_logprobs() {
                    event.json("logprobs", &item.logprobs_json());
                }
                if member == "arguments" {
                    event.text("name", &item.name);
                }
                event.text(member, &item.text);
            });
        }
        if let Some((name, number)) = item.part_done() {
            let part = item.part_json(false);
            self.event(draft, name, |event| {
                event.text("item_id", &id);
                event.number("output_index", index);
                event.number(number, 0);
                event.json("part", &part);
            });
        }
        let done = item.json(status, false);
        self.event(draft, "response.output_item.done", |event| {
            event.number("output_index", index);
            event.json("item", &done);
        });
        self.output.push(done);
    }

    /// Close the last text, which another part follows.
    #[inline]
    fn settle(&mut self, draft: &mut Draft) {
        if self.ended {
            self.close(draft, "completed");
            self.ended = false;
        }
    }

    /// Take the encrypted form of reasoning for the open item.  Its own form needs the id that it came with.
    fn keep_state(&mut self, draft: &mut Draft, part: &TextPart, json: &str) {
        let state = State::read(json);
        let Some(item) = &mut self.item else { return };
        let is_own = state.is_own(&draft.settings, Self::DIALECT)
            || (state.dialect == Self::DIALECT && !item.is_reasoning());
        if is_own {
            let [summary, content] = own_forms(Some(json)).unwrap_or_default();
            let other = if item.is_raw() { summary } else { content };
            if other == Some(true) {
                draft
                    .notes
                    .add("item", "a second form of reasoning: an item has a summary or raw text");
            }
            let is_same = state.text_member("id").is_some_and(|id| item.has_id(id));
            let Some(encrypted) = state.text_member("encrypted_content") else {
                return self.note_late_id(draft, json);
            };
            if is_same {
                item.encrypted = Some(encrypted.to_owned());
            } else {
                draft.notes.add(
                    "provider_state",
                    "encrypted reasoning, whose id came after the item began (see `hold`)",
                );
            }
        } else if item.is_reasoning() && draft.settings.envelope {
            item.encrypted = Some(quoted(&envelope(&state, &Owner::thinking(part.redacted))));
        } else {
            draft.notes.add("provider_state", &format!("provider state of {}", state.dialect));
        }
    }

    /// Note the id of an item that the source named after the item had begun under another id.
    fn note_late_id(&self, draft: &mut Draft, json: &str) {
        if own_id(Some(json)).is_some_and(|id| !self.ids.contains(&id)) {
            draft.notes.add("provider_state", "the id of an item that came after its text");
        }
    }

    /// Write an item of reasoning that has no text and carries an envelope.
    fn sealed(&mut self, draft: &mut Draft, envelope: &str) {
        let mut item = Item::reasoning(self.next_id(draft, "rs"), false);
        item.encrypted = Some(quoted(envelope));
        self.whole(draft, item.json("", true));
    }

    fn terminal(&mut self, draft: &mut Draft, ending: &Ending<'_>) -> (&'static str, String) {
        // A request for approval among the items is the pause of an answer that completed.
        let asks = ending.reason == FinishReason::Pause && ending.raw == Some("completed");
        let forbids_calls = ending.forbids_calls();
        let cut = !asks
            && (forbids_calls
                || matches!(
                    ending.reason,
                    FinishReason::Length | FinishReason::ContentFilter | FinishReason::Pause
                ));
        self.close(draft, if cut { "incomplete" } else { "completed" });
        let incomplete = forbids_calls || (cut && !draft.settings.incomplete_as_completed);
        let status = if incomplete { "incomplete" } else { "completed" };
        let implied = self.refused || asks;
        let word = finish_word(draft, ending, &FACTS.finish_reasons, REASONS, implied);
        let details = incomplete.then_some(word);
        (status, response::json(draft, status, &self.output, details, None, ending.details))
    }
}

impl Writer for ResponsesWriter {
    const NAME: &'static str = "openai-responses";
    const DIALECT: &'static str = "openai-responses";
    const FORM: Form = Form::NamedSse;
    const ORDER: Order = Order::Serial;
    const FREE_TEXT: bool = true;

    fn head(&mut self, draft: &mut Draft) {
        for name in ["response.created", "response.in_progress"] {
            let response = response::json(draft, "in_progress", &[], None, None, None);
            self.event(draft, name, |event| event.json("response", &response));
        }
    }

    fn open_text(&mut self, draft: &mut Draft, part: &TextPart) {
        self.settle(draft);
        let item = match part.kind {
            TextKind::Thinking => {
                let state = part.state.as_deref();
                let id = self.own_or_next_id(draft, state, "rs");
                Item::reasoning(id, draft.settings.raw_reasoning || is_own_raw(state))
            }
            TextKind::Text => {
                let refusal = part.refusal && !draft.settings.refusals_as_text;
                self.refused |= refusal;
                let state = part.state.as_deref();
                let mut item = Item::message(self.own_or_next_id(draft, state, "msg"), refusal);
                item.phase = own_phase(state);
                item
            }
        };
        self.open(draft, item);
        self.last_part = Some(part.index);
    }

    #[inline]
    fn text(&mut self, draft: &mut Draft, _: &TextPart, text: &str, extras: Extras<'_>) {
        if !text.is_empty() {
            self.more(draft, text, extras);
        } else if let (Some(logprobs), Some(item)) = (extras.logprobs, &mut self.item) {
            // They ride on the next delta, or on an empty one before the item ends.
            item.pending.get_or_insert_default().append(logprobs);
        }
        if let Some(json) = extras.annotations {
            self.annotate(draft, json);
        }
    }

    fn close_text(&mut self, draft: &mut Draft, part: &TextPart) {
        if let Some(json) = part.state.as_deref() {
            if part.kind == TextKind::Thinking || State::read(json).dialect != Self::DIALECT {
                self.keep_state(draft, part, json);
            } else {
                self.note_late_id(draft, json);
            }
        } else if part.kind == TextKind::Text && !self.ids.is_empty() {
            draft.notes.add("item", "a content without an item, which becomes a message");
        }
        self.ended = true;
    }

    fn bare(&mut self, draft: &mut Draft, part: &TextPart) {
        let Some(json) = part.state.as_deref().filter(|_| part.kind == TextKind::Thinking) else {
            return;
        };
        self.settle(draft);
        let state = State::read(json);
        if state.is_own(&draft.settings, Self::DIALECT) {
            // Deltas made by hand may have the state of another item here, which is not whole without its content.
            if state.text_member("type") != Some("\"reasoning\"") {
                return draft
                    .notes
                    .add("provider_state", "the state of an item that is no reasoning");
            }
            let id = own_id(Some(json)).filter(|id| self.ids.insert(id.clone()));
            if id.is_some() {
                let mut item = String::new();
                write_compact(&mut item, state.data);
                self.whole(draft, item);
            }
        } else if draft.settings.envelope {
            self.sealed(draft, &envelope(&state, &Owner::thinking(part.redacted)));
        } else {
            draft.notes.add("provider_state", &format!("provider state of {}", state.dialect));
        }
    }

    fn late(&mut self, draft: &mut Draft, part: &TextPart, extras: Extras<'_>) {
        match part.state.as_deref() {
            Some(json)
                if part.kind == TextKind::Text && State::read(json).dialect == Self::DIALECT =>
            {
                self.note_late_id(draft, json);
            }
            Some(_) => draft.notes.add("provider_state", "provider state that came after its part"),
            None => {}
        }
        if let (Some(json), true) = (extras.annotations, self.last_part == Some(part.index)) {
            self.annotate(draft, json);
        } else if extras.annotations.is_some() {
            draft.notes.add("annotations", "annotations that came after their part");
        }
        if extras.logprobs.is_some() {
            draft.notes.add("logprobs", "log probabilities that came after their part");
        }
    }

    fn open_call(&mut self, draft: &mut Draft, call: &Call) {
        self.settle(draft);
        let envelope = call_envelope(draft, Self::DIALECT, call);
        self.is_sealed = envelope.is_some();
        if let Some(envelope) = envelope {
            self.sealed(draft, &envelope);
        }
        let tool = draft.settings.tools.get(&call.name).cloned();
        let (kind, prefix) = match tool.as_ref().map(|tool| tool.kind) {
            Some(ToolKind::Search) => (Kind::Search, "tsc"),
            Some(ToolKind::Custom) => (Kind::Custom, "ctc"),
            None if call.format == InputFormat::Text => (Kind::Custom, "ctc"),
            Some(ToolKind::Function) | None => (Kind::Function, "fc"),
        };
        let is_custom = kind == Kind::Custom;
        self.freeform = (is_custom && call.format == InputFormat::Json).then(Freeform::default);
        // The id of a call of another kind has another prefix.
        let is_same = kind != Kind::Search && is_custom == (call.format == InputFormat::Text);
        let id = self.own_or_next_id(draft, call.state.as_deref().filter(|_| is_same), prefix);
        let mut item = Item::call(id, &call.id, &call.name, kind);
        item.origin = own_origin(call);
        if let Some(tool) = tool {
            item.name.clone_from(&tool.name);
            item.namespace = tool.namespace;
        } else if let Some((namespace, name)) = item.origin.name.clone() {
            item.name = name;
            item.namespace = Some(namespace);
        }
        self.open(draft, item);
    }

    #[inline]
    fn args(&mut self, draft: &mut Draft, _: &Call, text: &str) {
        if let Some(item) = self.item.as_mut().filter(|item| item.is_search()) {
            return item.text.push_str(text);
        }
        match &mut self.freeform {
            None => self.more(draft, text, Extras::default()),
            Some(freeform) => {
                let mut plain = String::new();
                freeform.feed(text, &mut plain);
                if !plain.is_empty() {
                    self.more(draft, &plain, Extras::default());
                }
            }
        }
    }

    fn close_call(&mut self, draft: &mut Draft, call: &Call) -> bool {
        if let Some(mut freeform) = self.freeform.take() {
            let mut plain = String::new();
            freeform.end(&mut plain);
            if !plain.is_empty() {
                self.more(draft, &plain, Extras::default());
            }
        }
        let origin = own_origin(call);
        if origin != Origin::default()
            && self.item.as_ref().is_some_and(|item| item.origin != origin)
        {
            draft.notes.add("item", "members of a call that came after its item began");
        }
        self.close(draft, if call.incomplete { "incomplete" } else { "completed" });
        // The state of a call can come with its end.
        match call_envelope(draft, Self::DIALECT, call) {
            Some(envelope) if !self.is_sealed => self.sealed(draft, &envelope),
            Some(_) => {}
            None => note_foreign(draft, call.state.as_deref()),
        }
        if own_id(call.state.as_deref()).is_some_and(|id| !self.ids.contains(&id)) {
            draft.notes.add("item", "the id of the item of a call");
        }
        !call.incomplete
    }

    fn whole_call(&mut self, _: &mut Draft, _: &Call) -> bool {
        false
    }

    fn whole_part(&mut self, draft: &mut Draft, part: &WholePart) {
        self.settle(draft);
        let what = match part.content() {
            WholeContent::Provider { dialect, block } if is_audio(&dialect, block) => {
                let said = std::mem::take(&mut self.audio_said);
                let rest = rest_of_audio(block, said);
                if let Some(data) = rest.as_deref().and_then(|rest| member(rest, "data")) {
                    self.event(draft, "response.audio.delta", |event| event.json("delta", data));
                }
                return self.event(draft, "response.audio.done", |_| {});
            }
            WholeContent::Provider { dialect, block } if dialect == Self::DIALECT => {
                return self.block(draft, block);
            }
            WholeContent::Image { data: Some(data), .. } => return self.image(draft, data),
            WholeContent::Provider { dialect, .. } => format!("a part of {dialect}"),
            WholeContent::Image { .. } => "an image by its address".to_owned(),
            WholeContent::Other { kind } => format!("a part of the kind {kind}"),
        };
        draft.notes.add("part", &what);
    }

    fn audio(&mut self, draft: &mut Draft, data: &str) {
        self.audio_said += data.len();
        self.event(draft, "response.audio.delta", |event| event.text("delta", data));
    }

    fn finish(&mut self, draft: &mut Draft, ending: &Ending<'_>) {
        let (status, response) = self.terminal(draft, ending);
        let name = if status == "completed" { "response.completed" } else { "response.incomplete" };
        self.event(draft, name, |event| event.json("response", &response));
    }

    fn fail(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        self.settle(draft);
        let code = response::error_code(draft, failure);
        let message = errors::message(failure);
        self.event(draft, "error", |event| {
            event.text("code", code);
            event.text("message", message);
            event.json("param", "null");
            event.object("error", |error| {
                error.text("type", errors::openai_type(failure.code));
                error.text("code", code);
                error.text("message", message);
                error.json("param", "null");
            });
        });
        let error = object(|error| {
            error.text("code", code);
            error.text("message", message);
        });
        let details = failure.details;
        let response = response::json(draft, "failed", &self.output, None, Some(&error), details);
        self.event(draft, "response.failed", |event| event.json("response", &response));
    }

    fn keep_alive(&mut self, draft: &mut Draft) {
        self.event(draft, "keepalive", |_| {});
    }

    fn refusal(_: &mut Draft, failure: &Failure<&str>) -> (u16, String) {
        let mut status = 500;
        let body = object(|body| {
            body.object("error", |error| {
                status = errors::openai_members(error, &FACTS.errors, failure);
            });
        });
        (status, body)
    }

    fn body(draft: &mut Draft, message: &MessageAssembler) -> Option<String> {
        Some(response_body(draft, message))
    }
}

fn note_foreign(draft: &mut Draft, state: Option<&str>) {
    let Some(json) = state else { return };
    let state = State::read(json);
    if state.dialect != ResponsesWriter::DIALECT {
        draft.notes.add("provider_state", &format!("provider state of {}", state.dialect));
    }
}

/// Return a whole response: the one that would end the stream.
fn response_body(draft: &mut Draft, message: &MessageAssembler) -> String {
    let mut writer = ResponsesWriter::default();
    let calls = write_parts(&mut writer, draft, message);
    if message.parts().iter().any(is_audio_part) {
        draft.notes.add("part", "audio, which only a stream has");
    }
    writer.terminal(draft, &Ending::of(message, calls)).1
}
