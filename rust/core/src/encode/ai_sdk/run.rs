//! The events of a run in the UI message stream: steps, results, approvals and messages between two steps.
//!
//! In: events of a run.  Out: chunks.
//!
//! Laws: a call that the client has of an earlier run is written again before its result, so that the client finds it.
//! Source: `uiMessageChunkSchema` and `processUIMessageStream` of `ai` 7 (docs/protocols/encoding.md#ai-sdk-runs).

use super::{AiSdkWriter, chunk, finish_word, write_usage};
use crate::contract::FinishReason;
use crate::encode::run::write_parts;
use crate::encode::{
    CallStatus, Counts, Draft, FilePlace, RunContent, RunEnd, RunFile, RunResult, RunStatus,
    WrittenCall, argument_object, write_compact, write_escaped,
};
use crate::json::ObjectWriter;

/// Media type of a file whose type is unknown; the client requires one.
const ANY_TYPE: &str = "application/octet-stream";

impl AiSdkWriter {
    /// Write a call that no answer of this stream has.
    fn introduce(draft: &mut Draft, call: &WrittenCall<'_>) {
        if call.is_known {
            return;
        }
        chunk(draft, "tool-input-available", |chunk| {
            chunk.text("toolCallId", call.id);
            chunk.text("toolName", &call.call.name);
            match argument_object(&call.call.args) {
                Some(input) => chunk.value("input", |out| write_compact(out, &input)),
                None => chunk.text("input", &call.call.args),
            }
        });
    }

    pub(super) fn write_step(&mut self, draft: &mut Draft) {
        if !std::mem::replace(&mut self.in_step, true) {
            chunk(draft, "start-step", |_| {});
        }
    }

    pub(super) fn end_step(&mut self, draft: &mut Draft) {
        if std::mem::take(&mut self.in_step) {
            chunk(draft, "finish-step", |_| {});
        }
    }

    pub(super) fn write_retry(&mut self, draft: &mut Draft, continues: bool, facts: &str) {
        if self.in_step && !continues {
            chunk(draft, "reset-step", |_| {});
        }
        Self::write_notice(draft, "retry", facts);
    }

    /// Write facts for the page alone: they do not become a part of the message.
    pub(super) fn write_notice(draft: &mut Draft, name: &str, facts: &str) {
        chunk(draft, &format!("data-deltafold-{}", name.replace('_', "-")), |chunk| {
            chunk.value("data", |out| write_compact(out, facts));
            chunk.json("transient", "true");
        });
    }

    pub(super) fn write_approval(draft: &mut Draft, call: &WrittenCall<'_>) {
        Self::introduce(draft, call);
        chunk(draft, "tool-approval-request", |chunk| {
            chunk.text("approvalId", &call.call.id);
            chunk.text("toolCallId", call.id);
        });
    }

    pub(super) fn write_progress(draft: &mut Draft, call: &WrittenCall<'_>, value: &str) {
        Self::introduce(draft, call);
        chunk(draft, "tool-output-available", |chunk| {
            chunk.text("toolCallId", call.id);
            chunk.value("output", |out| write_compact(out, value));
            chunk.json("preliminary", "true");
        });
    }

    pub(super) fn write_result(draft: &mut Draft, call: &WrittenCall<'_>, result: &RunResult) {
        Self::introduce(draft, call);
        match result.status {
            CallStatus::Success => chunk(draft, "tool-output-available", |chunk| {
                chunk.text("toolCallId", call.id);
                match &result.json {
                    Some(json) => chunk.value("output", |out| write_compact(out, json)),
                    None => chunk.text("output", &result.content.text),
                }
                if call.is_output {
                    // No tool of the page's ran, so that a page must not answer it by another request.
                    chunk.json("providerExecuted", "true");
                }
            }),
            CallStatus::Rejected => Self::deny(draft, call, &result.content.text),
            CallStatus::Failed | CallStatus::Skipped => {
                chunk(draft, "tool-output-error", |chunk| {
                    chunk.text("toolCallId", call.id);
                    chunk.text("errorText", &result.content.text);
                });
            }
        }
        for file in &result.content.files {
            Self::write_file(draft, file, call.id);
        }
    }

    /// Write a rejection with its approval, which the client needs for the reason.
    fn deny(draft: &mut Draft, call: &WrittenCall<'_>, reason: &str) {
        chunk(draft, "tool-approval-request", |chunk| {
            chunk.text("approvalId", &call.call.id);
            chunk.text("toolCallId", call.id);
        });
        chunk(draft, "tool-approval-response", |chunk| {
            chunk.text("approvalId", &call.call.id);
            chunk.json("approved", "false");
            chunk.text("reason", reason);
        });
        chunk(draft, "tool-output-denied", |chunk| chunk.text("toolCallId", call.id));
    }

    fn write_file(draft: &mut Draft, file: &RunFile, call_id: &str) {
        chunk(draft, "file", |chunk| {
            file_members(chunk, file);
            chunk.object("providerMetadata", |metadata| {
                metadata.object("deltafold", |own| own.text("toolCallId", call_id));
            });
        });
    }

    pub(super) fn write_input(draft: &mut Draft, content: &RunContent) {
        let number = draft.run.as_ref().map_or(0, |run| run.inputs);
        let id = format!("{}-input-{number}", draft.head.request_id);
        let RunContent { text, files, .. } = content;
        chunk(draft, "steering-message", |chunk| {
            chunk.text("id", &id);
            chunk.value("parts", |out| {
                write_parts(out, text, files, |part, file| {
                    part.text("type", "file");
                    file_members(part, file);
                });
            });
        });
    }

    pub(super) fn write_run_end(draft: &mut Draft, end: &RunEnd) {
        if end.is_failure() {
            let (_, message) = end.failure();
            chunk(draft, "error", |chunk| chunk.text("errorText", message));
        } else {
            let (model, usage) = (draft.head.model_id.clone(), draft.head.usage.clone());
            let counts = Counts::known(draft);
            chunk(draft, "finish", |chunk| {
                chunk.text("finishReason", reason(end));
                chunk.object("messageMetadata", |metadata| {
                    metadata.text("model", &model);
                    write_usage(metadata, counts, usage.cost);
                    metadata.text("status", end.status.as_str());
                    metadata.text("reason", &end.reason);
                });
            });
        }
        draft.out.marker("data: [DONE]\n\n");
    }
}

/// Return the finish reason of a run that did not fail.
///
/// `interrupted` keeps the client from going on by itself after a limit.
fn reason(end: &RunEnd) -> &'static str {
    match end.status {
        RunStatus::AwaitingHuman => "tool-calls",
        RunStatus::Aborted | RunStatus::Failed => "interrupted",
        RunStatus::Completed if &*end.reason == "answered" => "stop",
        RunStatus::Completed => FinishReason::from_wire(&end.reason).map_or("other", finish_word),
    }
}

fn file_members(chunk: &mut ObjectWriter<'_>, file: &RunFile) {
    let mime_type = if file.mime_type.is_empty() { ANY_TYPE } else { &file.mime_type };
    match &file.place {
        FilePlace::Data(data) => chunk.value("url", |out| {
            out.push_str("\"data:");
            write_escaped(out, mime_type);
            out.push_str(";base64,");
            write_escaped(out, data);
            out.push('"');
        }),
        FilePlace::Url(url) => chunk.text("url", url),
    }
    chunk.text("mediaType", mime_type);
}
