//! The events of an agent's run in AG-UI: steps, results, messages of the user and interrupts.
//!
//! In: events of a run.  Out: AG-UI events.
//!
//! Law: every call has a result before RUN_FINISHED or is one of its interrupts, because a client runs the other ones.
//! Source: `Interrupt` and `RunFinishedOutcome` of @ag-ui/core 1.0 (docs/protocols/encoding.md#ag-ui-runs).

use super::{AgUiWriter, custom, event, run_ids, run_members, with_id, write_usage};
use crate::encode::run::write_parts;
use crate::encode::{
    CallStatus, Draft, FilePlace, RunCall, RunContent, RunEnd, RunFile, RunResult, RunStatus,
    WrittenCall, write_compact,
};
use crate::json::{ObjectWriter, members, object, write_list, write_members, write_string};

/// JSON Schema of the answer to an interrupt.
const DECISION: &str = r#"{"type":"object","properties":{"approved":{"type":"boolean"},"reason":{"type":"string"}},"required":["approved"]}"#;

impl AgUiWriter {
    pub(super) fn write_step(&mut self, draft: &mut Draft) {
        self.last_text = None;
        self.pending.clear();
        self.messages.clear();
        if !std::mem::replace(&mut self.in_step, true) {
            self.steps += 1;
            let name = format!("answer {}", self.steps);
            with_id(draft, "STEP_STARTED", "stepName", &name);
        }
    }

    pub(super) fn end_step(&mut self, draft: &mut Draft) {
        if std::mem::take(&mut self.in_step) {
            let name = format!("answer {}", self.steps);
            with_id(draft, "STEP_FINISHED", "stepName", &name);
        }
    }

    /// Write a retry with the messages that a page has to take back.
    pub(super) fn write_retry(&mut self, draft: &mut Draft, continues: bool, facts: &str) {
        let messages = std::mem::take(&mut self.messages);
        let value = object(|value| {
            for (name, json) in members(facts) {
                value.json_of(&name, json);
            }
            if !continues {
                value.value("messageIds", |out| {
                    write_list(out, &messages, |out, id| write_string(out, id));
                });
            }
        });
        custom(draft, "deltafold.retry", &value);
    }

    /// The end of the run tells what waits, and the owner of a run writes its end.
    pub(super) fn await_human(draft: &mut Draft) {
        if draft.settings.without_run {
            draft.notes.add("call", "a call that waits, of which the owner of the run must tell");
        }
    }

    pub(super) fn write_progress(draft: &mut Draft, call: &WrittenCall<'_>, value: &str) {
        let value = object(|object| {
            object.text("toolCallId", call.id);
            object.value("progress", |out| write_compact(out, value));
        });
        custom(draft, "deltafold.progress", &value);
    }

    pub(super) fn write_result(draft: &mut Draft, call: &WrittenCall<'_>, result: &RunResult) {
        event(draft, "TOOL_CALL_RESULT", |event| {
            event.text("messageId", &format!("{}-result", call.id));
            event.text("toolCallId", call.id);
            if result.content.files.is_empty() {
                event.text("content", &result.content.text);
            } else {
                event.value("content", |out| {
                    write_parts(out, &result.content.text, &result.content.files, write_file);
                });
            }
            event.text("role", "tool");
            if result.status != CallStatus::Success {
                event.object("metadata", |metadata| {
                    metadata.text("status", result.status.as_str());
                });
            }
        });
    }

    pub(super) fn write_input(draft: &mut Draft, content: &RunContent) {
        let RunContent { text, files, .. } = content;
        let number = draft.run.as_ref().map_or(0, |run| run.inputs);
        let id = format!("{}-input-{number}", draft.head.request_id);
        event(draft, "TEXT_MESSAGE_START", |event| {
            event.text("messageId", &id);
            event.text("role", "user");
        });
        if !text.is_empty() {
            event(draft, "TEXT_MESSAGE_CONTENT", |event| {
                event.text("messageId", &id);
                event.text("delta", text);
            });
        }
        with_id(draft, "TEXT_MESSAGE_END", "messageId", &id);
        if !files.is_empty() {
            // The events of a message carry text alone.
            let value = object(|value| {
                value.text("messageId", &id);
                value.value("content", |out| write_parts(out, "", files, write_file));
            });
            custom(draft, "deltafold.input", &value);
        }
    }

    pub(super) fn write_run_end(draft: &mut Draft, end: &RunEnd) {
        if draft.settings.without_run {
            if end.is_failure() {
                draft.notes.add("error", "a failure, which the owner of the run must tell");
            }
            return;
        }
        let json = if end.is_failure() {
            let (code, message) = end.failure();
            object(|event| {
                event.text("type", "RUN_ERROR");
                event.text("message", message);
                event.text("code", code);
                write_usage(event, draft);
            })
        } else {
            let (thread, run) = run_ids(draft);
            object(|event| {
                event.text("type", "RUN_FINISHED");
                run_members(event, &thread, &run);
                event.object("outcome", |outcome| write_outcome(outcome, draft, end));
                write_usage(event, draft);
                let key =
                    if end.status == RunStatus::Completed { "finishReason" } else { "reason" };
                if &*end.reason != "answered" && end.status != RunStatus::AwaitingHuman {
                    event.object("metadata", |metadata| metadata.text(key, &end.reason));
                }
            })
        };
        draft.out.json_event("", &json);
    }
}

fn write_outcome(outcome: &mut ObjectWriter<'_>, draft: &Draft, end: &RunEnd) {
    match end.status {
        RunStatus::AwaitingHuman => {
            outcome.text("type", "interrupt");
            outcome.value("interrupts", |out| {
                write_list(out, &end.pending, |out, call| write_interrupt(out, draft, call));
            });
        }
        RunStatus::Aborted => outcome.text("type", "cancelled"),
        RunStatus::Completed | RunStatus::Failed => outcome.text("type", "success"),
    }
}

fn write_interrupt(out: &mut String, draft: &Draft, call: &RunCall) {
    let known = draft.run.as_ref().map(|run| run.id_of(&call.id).0);
    write_members(out, |interrupt| {
        interrupt.text("id", &call.id);
        interrupt.text("reason", "tool_call");
        interrupt.text("toolCallId", known.as_deref().unwrap_or(&call.id));
        interrupt.json("responseSchema", DECISION);
        interrupt.object("metadata", |metadata| {
            metadata.text("toolName", &call.name);
            metadata.text("arguments", &call.args);
        });
    });
}

fn write_file(part: &mut ObjectWriter<'_>, file: &RunFile) {
    let kind = file.mime_type.split('/').next().unwrap_or("");
    let kind = if matches!(kind, "image" | "audio" | "video") { kind } else { "document" };
    part.text("type", kind);
    part.object("source", |source| {
        let (place, value) = match &file.place {
            FilePlace::Data(data) => ("data", data),
            FilePlace::Url(url) => ("url", url),
        };
        source.text("type", place);
        source.text("value", value);
        if !file.mime_type.is_empty() {
            source.text("mimeType", &file.mime_type);
        } else if place == "data" {
            source.text("mimeType", "application/octet-stream");
        }
    });
}
