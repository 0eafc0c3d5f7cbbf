//! Writer of the UI message stream, version 1, of Vercel's `ai` package.
//!
//! ```text
//! stream = start, start-step, { text | reasoning | tool | file | source | data }, finish-step, finish, "[DONE]"
//! ```
//!
//! The stream of a run has a step for each answer.
//!
//! Laws: parts may interleave, each under its id, with a start and an end.  No optional member is null.  An error is a part,
//! and only the end marker follows it.
//! Source: the schema `uiMessageChunkSchema` of `ai` 7 (docs/protocols/encoding.md#ai-sdk).

mod run;

use std::collections::BTreeMap;

use crate::contract::{ErrorCode, Failure, FinishReason, InputFormat};
use crate::encode::{
    Call, Counts, Draft, Ending, Extras, Form, Order, Prefix, RunContent, RunEnd, RunResult, State,
    TextKind, TextPart, WholeContent, WholePart, Writer, WrittenCall, annotations, argument_object,
    errors, optional, write_compact, write_escaped,
};
use crate::fold::MessageAssembler;
use crate::json::{ObjectWriter, write_members, write_string};

#[derive(Clone, Debug, PartialEq)]
struct Open {
    prefix: Prefix,
    /// Argument text of a call.
    args: String,
}

/// Writer of UI message chunks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AiSdkWriter {
    open: BTreeMap<usize, Open>,
    sources: usize,
    /// A step of a run is open.
    in_step: bool,
}

fn chunk(draft: &mut Draft, name: &str, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
    draft.out.event("", |event| {
        event.text("type", name);
        fill(event);
    });
}

fn part_id(draft: &Draft, index: usize) -> String {
    draft.part_number(index).to_string()
}

fn prefix(draft: &Draft, name: &str, id_member: &str, id: &str, text_member: &str) -> Prefix {
    let mut prefix = Prefix::default();
    draft.out.prepare(&mut prefix, "", |out| {
        out.push_str("{\"type\":\"");
        out.push_str(name);
        out.push_str("\",\"");
        out.push_str(id_member);
        out.push_str("\":");
        write_string(out, id);
        out.push_str(",\"");
        out.push_str(text_member);
        out.push_str("\":\"");
    });
    prefix
}

fn kind_name(kind: TextKind) -> &'static str {
    if kind == TextKind::Thinking { "reasoning" } else { "text" }
}

/// Write provider state as the metadata of its dialect.
fn write_state(object: &mut ObjectWriter<'_>, json: Option<&str>) {
    let Some(json) = json else { return };
    let state = State::read(json);
    if state.dialect.is_empty() {
        return;
    }
    object.object("providerMetadata", |metadata| {
        let mut own = String::new();
        write_members(&mut own, |own| {
            own.text("modelId", &state.model_id);
            own.value("data", |out| write_compact(out, state.data));
        });
        metadata.json_of(&state.dialect, &own);
    });
}

fn finish_word(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool-calls",
        FinishReason::ContentFilter | FinishReason::Refusal => "content-filter",
        FinishReason::Error => "error",
        FinishReason::Pause | FinishReason::Other => "other",
    }
}

fn write_usage(metadata: &mut ObjectWriter<'_>, counts: Option<Counts>, cost: Option<f64>) {
    if let Some(counts) = counts {
        let (cache_read, cache_write) = counts.cache();
        metadata.object("usage", |usage| {
            usage.number("inputTokens", counts.input);
            usage.number("outputTokens", counts.output);
            usage.number("totalTokens", counts.total());
            optional(usage, "reasoningTokens", counts.reasoning());
            optional(usage, "cachedInputTokens", cache_read);
            optional(usage, "cacheWriteInputTokens", cache_write);
        });
    }
    if let Some(cost) = cost.filter(|cost| cost.is_finite()) {
        metadata.number("cost", cost);
    }
}

impl AiSdkWriter {
    fn source(&mut self, draft: &mut Draft, json: &str) {
        for annotation in annotations::list(json) {
            match annotations::citation(annotation) {
                Some(citation) => {
                    let id = format!("source-{}", self.sources);
                    self.sources += 1;
                    chunk(draft, "source-url", |chunk| {
                        chunk.text("sourceId", &id);
                        chunk.text("url", &citation.url);
                        if let Some(title) = &citation.title {
                            chunk.text("title", title);
                        }
                    });
                }
                None => draft.notes.add("annotations", "an annotation without an address"),
            }
        }
    }
}

impl Writer for AiSdkWriter {
    const NAME: &'static str = "ai-sdk";
    const DIALECT: &'static str = "";
    const FORM: Form = Form::Sse;
    const ORDER: Order = Order::Keyed;
    const LAZY_CALLS: bool = false;
    const FREE_TEXT: bool = true;
    const HAS_RUNS: bool = true;
    const RETRACTS: bool = true;
    const ERROR_REASON_FAILS: bool = false;

    fn head(&mut self, draft: &mut Draft) {
        let is_run = draft.run.is_some();
        // The client gives its message the id, and a run may go on with the message of an earlier one.
        let id = if is_run {
            draft.settings.response_id.as_deref().unwrap_or("").to_owned()
        } else {
            draft.head.request_id.clone()
        };
        chunk(draft, "start", |chunk| {
            if !id.is_empty() {
                chunk.text("messageId", &id);
            }
        });
        if !is_run {
            chunk(draft, "start-step", |_| {});
        }
    }

    fn open_text(&mut self, draft: &mut Draft, part: &TextPart) {
        let (id, name) = (part_id(draft, part.index), kind_name(part.kind));
        chunk(draft, &format!("{name}-start"), |chunk| chunk.text("id", &id));
        let prefix = prefix(draft, &format!("{name}-delta"), "id", &id, "delta");
        self.open.insert(part.index, Open { prefix, args: String::new() });
    }

    #[inline]
    fn text(&mut self, draft: &mut Draft, part: &TextPart, text: &str, extras: Extras<'_>) {
        if !text.is_empty()
            && let Some(open) = self.open.get(&part.index)
        {
            draft.out.repeat(&open.prefix);
            draft.out.escaped(text).piece("\"}");
            draft.out.finish(&open.prefix);
        }
        if !extras.is_empty() {
            self.late(draft, &TextPart { state: None, ..part.clone() }, extras);
        }
    }

    fn close_text(&mut self, draft: &mut Draft, part: &TextPart) {
        if self.open.remove(&part.index).is_some() {
            let id = part_id(draft, part.index);
            chunk(draft, &format!("{}-end", kind_name(part.kind)), |chunk| {
                chunk.text("id", &id);
                write_state(chunk, part.state.as_deref());
            });
        }
    }

    fn bare(&mut self, draft: &mut Draft, part: &TextPart) {
        if part.state.is_some() {
            self.open_text(draft, part);
            self.close_text(draft, part);
        }
    }

    fn late(&mut self, draft: &mut Draft, part: &TextPart, extras: Extras<'_>) {
        if let Some(json) = extras.annotations {
            self.source(draft, json);
        }
        if extras.logprobs.is_some() {
            draft.notes.add("logprobs", "log probabilities");
        }
        if part.state.is_some() {
            draft.notes.add("provider_state", "provider state that came after its part");
        }
    }

    fn open_call(&mut self, draft: &mut Draft, call: &Call) {
        chunk(draft, "tool-input-start", |chunk| {
            chunk.text("toolCallId", &call.id);
            chunk.text("toolName", &call.name);
            if call.format == InputFormat::Text {
                chunk.text("inputEncoding", "text");
            }
        });
        let prefix = prefix(draft, "tool-input-delta", "toolCallId", &call.id, "inputTextDelta");
        self.open.insert(call.index, Open { prefix, args: String::new() });
    }

    #[inline]
    fn args(&mut self, draft: &mut Draft, call: &Call, text: &str) {
        if let Some(open) = self.open.get_mut(&call.index) {
            open.args.push_str(text);
            draft.out.repeat(&open.prefix);
            draft.out.escaped(text).piece("\"}");
            draft.out.finish(&open.prefix);
        }
    }

    fn close_call(&mut self, draft: &mut Draft, call: &Call) -> bool {
        let Some(open) = self.open.remove(&call.index) else { return false };
        let is_text = call.format == InputFormat::Text;
        let input = if is_text { Some(open.args.clone()) } else { argument_object(&open.args) };
        let whole = input.filter(|_| !call.incomplete);
        let name = if whole.is_some() { "tool-input-available" } else { "tool-input-error" };
        chunk(draft, name, |chunk| {
            chunk.text("toolCallId", &call.id);
            chunk.text("toolName", &call.name);
            match &whole {
                Some(input) if is_text => chunk.text("input", input),
                Some(input) => chunk.value("input", |out| write_compact(out, input)),
                None => {
                    chunk.text("input", &open.args);
                    let why = if call.incomplete {
                        "the arguments were cut off"
                    } else {
                        "the arguments are no JSON object"
                    };
                    chunk.text("errorText", why);
                }
            }
            write_state(chunk, call.state.as_deref());
        });
        whole.is_some()
    }

    fn whole_call(&mut self, _: &mut Draft, _: &Call) -> bool {
        false
    }

    fn whole_part(&mut self, draft: &mut Draft, part: &WholePart) {
        match part.content() {
            WholeContent::Image { mime_type, data: Some(data), .. } => {
                let data = data.trim_matches('"');
                draft.out.event("", |event| {
                    event.text("type", "file");
                    event.value("url", |out| {
                        out.push_str("\"data:");
                        write_escaped(out, &mime_type);
                        out.push_str(";base64,");
                        out.push_str(data);
                        out.push('"');
                    });
                    event.text("mediaType", &mime_type);
                });
            }
            // The client refuses a file without an address.
            WholeContent::Image { mime_type, url: Some(url), .. } if url != "\"\"" => {
                chunk(draft, "file", |chunk| {
                    chunk.json("url", url);
                    chunk.text("mediaType", &mime_type);
                });
            }
            _ => chunk(draft, "data-deltafold-part", |chunk| {
                chunk.value("data", |out| write_compact(out, &part.json));
            }),
        }
    }

    fn finish(&mut self, draft: &mut Draft, ending: &Ending<'_>) {
        chunk(draft, "finish-step", |_| {});
        let counts = Counts::known(draft);
        let cost = draft.head.usage.cost;
        let model = draft.head.model_id.clone();
        chunk(draft, "finish", |chunk| {
            chunk.text("finishReason", finish_word(ending.reason));
            chunk.object("messageMetadata", |metadata| {
                metadata.text("model", &model);
                write_usage(metadata, counts, cost);
                if ending.reason == FinishReason::Pause || ending.reason == FinishReason::Refusal {
                    metadata.text("finishReason", ending.reason.as_str());
                }
            });
        });
        draft.out.marker("data: [DONE]\n\n");
    }

    fn fail(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        if failure.code == ErrorCode::Cancelled {
            chunk(draft, "abort", |chunk| chunk.text("reason", errors::message(failure)));
        } else {
            chunk(draft, "error", |chunk| chunk.text("errorText", errors::message(failure)));
        }
        draft.out.marker("data: [DONE]\n\n");
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
        Self::write_notice(draft, name, facts);
    }

    fn approval(&mut self, draft: &mut Draft, call: &WrittenCall<'_>) {
        Self::write_approval(draft, call);
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

    /// The client shows the body as the message of its error.
    fn refusal(_: &mut Draft, failure: &Failure<&str>) -> (u16, String) {
        (errors::plain_refusal(failure).0, errors::message(failure).to_owned())
    }

    fn body(_: &mut Draft, _: &MessageAssembler) -> Option<String> {
        None
    }
}
