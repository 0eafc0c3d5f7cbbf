//! Writer of AG-UI 1.0, the protocol between agents and user interfaces.
//!
//! ```text
//! run  = RUN_STARTED, { text | call | reasoning | CUSTOM }, ( RUN_FINISHED | RUN_ERROR )
//! text = TEXT_MESSAGE_START, CONTENT*, END ;   call = TOOL_CALL_START, ARGS*, END
//! reasoning = REASONING_START, REASONING_MESSAGE_START, CONTENT*, END, [REASONING_ENCRYPTED_VALUE], REASONING_END
//! ```
//!
//! The run of an agent has a step for each answer.
//!
//! Laws: parts may interleave, each under its id.  Everything is ended before RUN_FINISHED; RUN_ERROR may leave parts open.
//! No optional member is null.
//! Source: docs.ag-ui.com, "Events"; `verifyEvents` of the official client (docs/protocols/encoding.md#ag-ui).

mod run;

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::{ErrorCode, Failure, FinishReason};
use crate::encode::{
    Call, Counts, Draft, Ending, Extras, Form, Order, Owner, Prefix, RunContent, RunEnd, RunResult,
    State, TextKind, TextPart, WholePart, Writer, WrittenCall, annotations, envelope, errors,
    optional, write_compact,
};
use crate::fold::MessageAssembler;
use crate::json::{ObjectWriter, object, write_list, write_members, write_string};

#[derive(Clone, Debug, PartialEq)]
enum Open {
    Text(Prefix),
    Reasoning(Prefix),
    Call(Prefix, Box<str>),
}

/// Writer of AG-UI events.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AgUiWriter {
    open: BTreeMap<usize, Open>,
    /// Id of the last text message, the parent of the calls that follow.
    last_text: Option<String>,
    /// Numbers of the parts whose message began.
    begun: BTreeSet<usize>,
    /// Ids of whole calls, which the caller must run.
    pending: Vec<Box<str>>,
    /// Number of steps of a run, and whether the last one is open.
    steps: usize,
    in_step: bool,
    /// Ids of the messages of this answer, of which a retry tells.
    messages: Vec<String>,
}

fn message_id(draft: &Draft, index: usize) -> String {
    format!("{}-{}", draft.head.request_id, draft.part_number(index))
}

fn event(draft: &mut Draft, name: &'static str, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
    draft.out.event("", |event| {
        event.text("type", name);
        fill(event);
    });
}

fn prefix(draft: &Draft, name: &str, id_member: &str, id: &str) -> Prefix {
    let mut prefix = Prefix::default();
    draft.out.prepare(&mut prefix, "", |out| {
        out.push_str("{\"type\":\"");
        out.push_str(name);
        out.push_str("\",\"");
        out.push_str(id_member);
        out.push_str("\":");
        write_string(out, id);
        out.push_str(",\"delta\":\"");
    });
    prefix
}

fn with_id(draft: &mut Draft, name: &'static str, member: &'static str, id: &str) {
    event(draft, name, |event| event.text(member, id));
}

fn encrypted(draft: &mut Draft, subtype: &str, entity: &str, state: &str) {
    let value = envelope(&State::read(state), &Owner::default());
    event(draft, "REASONING_ENCRYPTED_VALUE", |event| {
        event.text("subtype", subtype);
        event.text("entityId", entity);
        event.text("encryptedValue", &value);
    });
}

fn custom(draft: &mut Draft, name: &str, value: &str) {
    event(draft, "CUSTOM", |event| {
        event.text("name", name);
        event.value("value", |out| write_compact(out, value));
    });
}

fn run_members(event: &mut ObjectWriter<'_>, thread: &str, run: &str) {
    event.text("threadId", thread);
    event.text("runId", run);
}

fn write_usage(event: &mut ObjectWriter<'_>, draft: &Draft) {
    let Some(counts) = Counts::known(draft) else { return };
    let (cache_read, cache_write) = counts.cache();
    event.value("usage", |out| {
        write_list(out, [()], |out, ()| {
            write_members(out, |usage| {
                if draft.run.as_ref().is_none_or(|run| run.models.len() == 1) {
                    usage.text("model", &draft.head.model_id);
                }
                usage.number("inputTokens", counts.input);
                usage.number("outputTokens", counts.output);
                usage.number("totalTokens", counts.total());
                optional(usage, "reasoningTokens", counts.reasoning());
                optional(usage, "cachedInputTokens", cache_read);
                optional(usage, "cacheWriteInputTokens", cache_write);
            });
        });
    });
}

impl AgUiWriter {
    fn close(&mut self, draft: &mut Draft, index: usize, state: Option<&str>) {
        match self.open.remove(&index) {
            Some(Open::Text(_)) => {
                let id = message_id(draft, index);
                with_id(draft, "TEXT_MESSAGE_END", "messageId", &id);
                if let Some(state) = state {
                    encrypted(draft, "message", &id, state);
                }
            }
            Some(Open::Reasoning(_)) => {
                let id = message_id(draft, index);
                with_id(draft, "REASONING_MESSAGE_END", "messageId", &id);
                if let Some(state) = state {
                    encrypted(draft, "message", &id, state);
                }
                with_id(draft, "REASONING_END", "messageId", &id);
            }
            Some(Open::Call(_, id)) => {
                with_id(draft, "TOOL_CALL_END", "toolCallId", &id);
                if let Some(state) = state {
                    encrypted(draft, "tool-call", &id, state);
                }
            }
            None => {}
        }
    }

    fn close_all(&mut self, draft: &mut Draft) {
        while let Some((index, _)) = self.open.first_key_value() {
            let index = *index;
            self.close(draft, index, None);
        }
    }

    fn finished(
        draft: &mut Draft,
        outcome: impl FnOnce(&mut ObjectWriter<'_>),
        finish_reason: Option<&str>,
    ) {
        if draft.settings.without_run {
            return;
        }
        let (thread, run) = run_ids(draft);
        let json = object(|event| {
            event.text("type", "RUN_FINISHED");
            run_members(event, &thread, &run);
            event.object("outcome", outcome);
            write_usage(event, draft);
            if let Some(reason) = finish_reason {
                event.object("metadata", |metadata| metadata.text("finishReason", reason));
            }
        });
        draft.out.json_event("", &json);
    }
}

fn run_ids(draft: &Draft) -> (String, String) {
    let run = draft.head.request_id.clone();
    (draft.settings.thread_id.as_deref().unwrap_or(&run).to_owned(), run)
}

fn annotate(draft: &mut Draft, index: usize, json: &str) {
    let value = object(|value| {
        value.text("kind", "annotations");
        value.number("partIndex", index);
        value.value("annotations", |out| write_list(out, annotations::list(json), write_compact));
    });
    custom(draft, "deltafold.part", &value);
}

impl Writer for AgUiWriter {
    const NAME: &'static str = "ag-ui";
    const DIALECT: &'static str = "";
    const FORM: Form = Form::Sse;
    const ORDER: Order = Order::Keyed;
    const LAZY_CALLS: bool = false;
    const FREE_TEXT: bool = true;
    const HAS_RUNS: bool = true;

    fn head(&mut self, draft: &mut Draft) {
        if draft.settings.without_run {
            return;
        }
        let (thread, run) = run_ids(draft);
        let created = draft.head.created;
        event(draft, "RUN_STARTED", |event| {
            if created > 0 {
                event.number("timestamp", created);
            }
            run_members(event, &thread, &run);
        });
    }

    fn open_text(&mut self, draft: &mut Draft, part: &TextPart) {
        let id = message_id(draft, part.index);
        let open = match part.kind {
            TextKind::Text => {
                event(draft, "TEXT_MESSAGE_START", |event| {
                    event.text("messageId", &id);
                    event.text("role", "assistant");
                });
                self.last_text = Some(id.clone());
                Open::Text(prefix(draft, "TEXT_MESSAGE_CONTENT", "messageId", &id))
            }
            TextKind::Thinking => {
                with_id(draft, "REASONING_START", "messageId", &id);
                event(draft, "REASONING_MESSAGE_START", |event| {
                    event.text("messageId", &id);
                    event.text("role", "reasoning");
                });
                Open::Reasoning(prefix(draft, "REASONING_MESSAGE_CONTENT", "messageId", &id))
            }
        };
        if draft.run.is_some() {
            self.messages.push(id);
        }
        self.begun.insert(draft.part_number(part.index));
        self.open.insert(part.index, open);
    }

    #[inline]
    fn text(&mut self, draft: &mut Draft, part: &TextPart, text: &str, extras: Extras<'_>) {
        if !text.is_empty()
            && let Some(Open::Text(prefix) | Open::Reasoning(prefix)) = self.open.get(&part.index)
        {
            draft.out.repeat(prefix);
            draft.out.escaped(text).piece("\"}");
            draft.out.finish(prefix);
        }
        if !extras.is_empty() {
            self.late(draft, &TextPart { state: None, ..part.clone() }, extras);
        }
    }

    fn close_text(&mut self, draft: &mut Draft, part: &TextPart) {
        self.close(draft, part.index, part.state.as_deref());
    }

    fn bare(&mut self, draft: &mut Draft, part: &TextPart) {
        let Some(state) = part.state.as_deref() else { return };
        if part.kind == TextKind::Text {
            // The value belongs to a message, and a text that never began is none.
            return draft.notes.add("provider_state", "provider state of a text without text");
        }
        let id = message_id(draft, part.index);
        with_id(draft, "REASONING_START", "messageId", &id);
        encrypted(draft, "message", &id, state);
        with_id(draft, "REASONING_END", "messageId", &id);
    }

    fn late(&mut self, draft: &mut Draft, part: &TextPart, extras: Extras<'_>) {
        if let Some(json) = extras.annotations {
            annotate(draft, part.index, json);
        }
        if extras.logprobs.is_some() {
            draft.notes.add("logprobs", "log probabilities");
        }
        match part.state.as_deref() {
            Some(state) if self.begun.contains(&draft.part_number(part.index)) => {
                let id = message_id(draft, part.index);
                encrypted(draft, "message", &id, state);
            }
            Some(_) => draft.notes.add("provider_state", "provider state of a text without text"),
            None => {}
        }
    }

    fn open_call(&mut self, draft: &mut Draft, call: &Call) {
        let parent = self.last_text.clone();
        let parent = parent.unwrap_or_else(|| match draft.part_number(0) {
            0 => format!("{}-calls", draft.head.request_id),
            first => format!("{}-{first}-calls", draft.head.request_id),
        });
        event(draft, "TOOL_CALL_START", |event| {
            event.text("toolCallId", &call.id);
            event.text("toolCallName", &call.name);
            event.text("parentMessageId", &parent);
        });
        let prefix = prefix(draft, "TOOL_CALL_ARGS", "toolCallId", &call.id);
        self.open.insert(call.index, Open::Call(prefix, call.id.clone()));
    }

    #[inline]
    fn args(&mut self, draft: &mut Draft, call: &Call, text: &str) {
        if let Some(Open::Call(prefix, _)) = self.open.get(&call.index) {
            draft.out.repeat(prefix);
            draft.out.escaped(text).piece("\"}");
            draft.out.finish(prefix);
        }
    }

    fn close_call(&mut self, draft: &mut Draft, call: &Call) -> bool {
        if !call.incomplete {
            self.pending.push(call.id.clone());
        }
        self.close(draft, call.index, call.state.as_deref());
        !call.incomplete
    }

    fn whole_call(&mut self, _: &mut Draft, _: &Call) -> bool {
        false
    }

    fn whole_part(&mut self, draft: &mut Draft, part: &WholePart) {
        custom(draft, "deltafold.part", &part.json);
    }

    fn finish(&mut self, draft: &mut Draft, ending: &Ending<'_>) {
        self.close_all(draft);
        if let Some(why) = ending.reason.forbids_calls().filter(|_| ending.has_calls) {
            // After `RUN_FINISHED` a client would run the calls.
            return self.fail(draft, &Failure::new(ErrorCode::ContentBlocked, why));
        }
        let pending = std::mem::take(&mut self.pending);
        let calls = ending.reason == FinishReason::ToolCalls;
        let plain = calls || ending.reason == FinishReason::Stop;
        Self::finished(
            draft,
            |outcome| {
                outcome.text("type", "success");
                if calls {
                    outcome.value("pendingToolCallIds", |out| {
                        write_list(out, &pending, |out, id| write_string(out, id));
                    });
                }
            },
            (!plain).then_some(ending.reason.as_str()),
        );
    }

    fn fail(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        if failure.code == ErrorCode::Cancelled {
            self.close_all(draft);
            return Self::finished(draft, |outcome| outcome.text("type", "cancelled"), None);
        }
        if draft.settings.without_run {
            return draft.notes.add("error", "a failure, which the owner of the run must tell");
        }
        let json = object(|event| {
            event.text("type", "RUN_ERROR");
            event.text("message", errors::message(failure));
            event.text("code", failure.code.as_str());
            write_usage(event, draft);
        });
        draft.out.json_event("", &json);
    }

    fn open_step(&mut self, draft: &mut Draft) {
        self.write_step(draft);
    }

    fn close_step(&mut self, draft: &mut Draft) {
        self.end_step(draft);
    }

    fn retry(&mut self, draft: &mut Draft, continues: bool, facts: &str) {
        self.write_retry(draft, continues, facts);
    }

    fn notice(&mut self, draft: &mut Draft, name: &str, facts: &str) {
        custom(draft, &format!("deltafold.{name}"), facts);
    }

    fn approval(&mut self, draft: &mut Draft, _: &WrittenCall<'_>) {
        Self::await_human(draft);
    }

    fn progress(&mut self, draft: &mut Draft, call: &WrittenCall<'_>, value: &str) {
        Self::write_progress(draft, call, value);
    }

    fn result(&mut self, draft: &mut Draft, call: &WrittenCall<'_>, result: &RunResult) {
        Self::write_result(draft, call, result);
    }

    fn input(&mut self, draft: &mut Draft, content: &RunContent) {
        Self::write_input(draft, content);
    }

    fn end_run(&mut self, draft: &mut Draft, end: &RunEnd) {
        Self::write_run_end(draft, end);
    }

    fn keep_alive(&mut self, draft: &mut Draft) {
        draft.out.marker(": keep-alive\n\n");
    }

    fn refusal(_: &mut Draft, failure: &Failure<&str>) -> (u16, String) {
        errors::plain_refusal(failure)
    }

    fn body(_: &mut Draft, _: &MessageAssembler) -> Option<String> {
        None
    }
}
