//! Writer of the UI message stream, version 1, of Vercel's `ai` package.
//!
//! ```text
//! stream = start, start-step, { text | reasoning | tool | file | source | data }, finish-step, finish, "[DONE]"
//! ```
//!
//! Laws: parts may interleave, each under its id, with a start and an end.  No optional member is null.  An error is a part,
//! and only the end marker follows it.
//! Source: the schema `uiMessageChunkSchema` of `ai` 7 (protocols/encode.md, section 8).

use std::collections::BTreeMap;

use crate::contract::{ErrorCode, Failure, FinishReason, InputFormat};
use crate::encode::{
    Call, Counts, Ending, Form, Lead, Order, Page, Riders, State, TextKind, TextPart, WholeContent,
    WholePart, Writer, annotations, argument_object, errors, optional, write_compact,
    write_escaped,
};
use crate::fold::MessageAssembler;
use crate::json::{ObjectWriter, write_members, write_string};

#[derive(Clone, Debug, PartialEq)]
struct Open {
    lead: Lead,
    /// Argument text of a call.
    args: String,
}

/// Writer of UI message chunks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AiSdkWriter {
    open: BTreeMap<usize, Open>,
    sources: usize,
}

fn chunk(page: &mut Page, name: &str, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
    page.out.event("", |event| {
        event.text("type", name);
        fill(event);
    });
}

fn part_id(index: usize) -> String {
    index.to_string()
}

fn lead(page: &Page, name: &str, id_member: &str, id: &str, text_member: &str) -> Lead {
    let mut lead = Lead::default();
    page.out.lead(&mut lead, "", |out| {
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
    lead
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

impl AiSdkWriter {
    fn source(&mut self, page: &mut Page, json: &str) {
        for annotation in annotations::list(json) {
            match annotations::citation(annotation) {
                Some(citation) => {
                    let id = format!("source-{}", self.sources);
                    self.sources += 1;
                    chunk(page, "source-url", |chunk| {
                        chunk.text("sourceId", &id);
                        chunk.text("url", &citation.url);
                        if let Some(title) = &citation.title {
                            chunk.text("title", title);
                        }
                    });
                }
                None => page.notes.add("annotations", "an annotation without an address"),
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
    const ERROR_REASON_FAILS: bool = false;

    fn head(&mut self, page: &mut Page) {
        let id = page.head.request_id.clone();
        chunk(page, "start", |chunk| {
            if !id.is_empty() {
                chunk.text("messageId", &id);
            }
        });
        chunk(page, "start-step", |_| {});
    }

    fn open_text(&mut self, page: &mut Page, part: &TextPart) {
        let (id, name) = (part_id(part.index), kind_name(part.kind));
        chunk(page, &format!("{name}-start"), |chunk| chunk.text("id", &id));
        let lead = lead(page, &format!("{name}-delta"), "id", &id, "delta");
        self.open.insert(part.index, Open { lead, args: String::new() });
    }

    #[inline]
    fn text(&mut self, page: &mut Page, part: &TextPart, text: &str, riders: Riders<'_>) {
        if !text.is_empty()
            && let Some(open) = self.open.get(&part.index)
        {
            page.out.repeat(&open.lead);
            page.out.escaped(text).piece("\"}");
            page.out.finish(&open.lead);
        }
        if !riders.is_empty() {
            self.late(page, &TextPart { state: None, ..part.clone() }, riders);
        }
    }

    fn close_text(&mut self, page: &mut Page, part: &TextPart) {
        if self.open.remove(&part.index).is_some() {
            let id = part_id(part.index);
            chunk(page, &format!("{}-end", kind_name(part.kind)), |chunk| {
                chunk.text("id", &id);
                write_state(chunk, part.state.as_deref());
            });
        }
    }

    fn bare(&mut self, page: &mut Page, part: &TextPart) {
        if part.state.is_some() {
            self.open_text(page, part);
            self.close_text(page, part);
        }
    }

    fn late(&mut self, page: &mut Page, part: &TextPart, riders: Riders<'_>) {
        if let Some(json) = riders.annotations {
            self.source(page, json);
        }
        if riders.logprobs.is_some() {
            page.notes.add("logprobs", "log probabilities");
        }
        if part.state.is_some() {
            page.notes.add("provider_state", "provider state that came after its part");
        }
    }

    fn open_call(&mut self, page: &mut Page, call: &Call) {
        chunk(page, "tool-input-start", |chunk| {
            chunk.text("toolCallId", &call.id);
            chunk.text("toolName", &call.name);
            if call.format == InputFormat::Text {
                chunk.text("inputEncoding", "text");
            }
        });
        let lead = lead(page, "tool-input-delta", "toolCallId", &call.id, "inputTextDelta");
        self.open.insert(call.index, Open { lead, args: String::new() });
    }

    #[inline]
    fn args(&mut self, page: &mut Page, call: &Call, text: &str) {
        if let Some(open) = self.open.get_mut(&call.index) {
            open.args.push_str(text);
            page.out.repeat(&open.lead);
            page.out.escaped(text).piece("\"}");
            page.out.finish(&open.lead);
        }
    }

    fn close_call(&mut self, page: &mut Page, call: &Call) -> bool {
        let Some(open) = self.open.remove(&call.index) else { return false };
        let is_text = call.format == InputFormat::Text;
        let input = if is_text { Some(open.args.clone()) } else { argument_object(&open.args) };
        let whole = input.filter(|_| !call.incomplete);
        let name = if whole.is_some() { "tool-input-available" } else { "tool-input-error" };
        chunk(page, name, |chunk| {
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

    fn whole_call(&mut self, _: &mut Page, _: &Call) -> bool {
        false
    }

    fn whole_part(&mut self, page: &mut Page, part: &WholePart) {
        match part.content() {
            WholeContent::Image { mime_type, data: Some(data), .. } => {
                let data = data.trim_matches('"');
                page.out.event("", |event| {
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
                chunk(page, "file", |chunk| {
                    chunk.json("url", url);
                    chunk.text("mediaType", &mime_type);
                });
            }
            _ => chunk(page, "data-deltafold-part", |chunk| {
                chunk.value("data", |out| write_compact(out, &part.json));
            }),
        }
    }

    fn finish(&mut self, page: &mut Page, ending: &Ending<'_>) {
        chunk(page, "finish-step", |_| {});
        let counts = Counts::known(page);
        let cost = page.head.usage.cost;
        let model = page.head.model_id.clone();
        chunk(page, "finish", |chunk| {
            chunk.text("finishReason", finish_word(ending.reason));
            chunk.object("messageMetadata", |metadata| {
                metadata.text("model", &model);
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
                if ending.reason == FinishReason::Pause || ending.reason == FinishReason::Refusal {
                    metadata.text("finishReason", ending.reason.as_str());
                }
            });
        });
        page.out.marker("data: [DONE]\n\n");
    }

    fn fail(&mut self, page: &mut Page, failure: &Failure<&str>) {
        if failure.code == ErrorCode::Cancelled {
            chunk(page, "abort", |chunk| chunk.text("reason", errors::message(failure)));
        } else {
            chunk(page, "error", |chunk| chunk.text("errorText", errors::message(failure)));
        }
        page.out.marker("data: [DONE]\n\n");
    }

    fn keep_alive(&mut self, page: &mut Page) {
        page.out.marker(": keep-alive\n\n");
    }

    /// The client shows the body as the message of its error.
    fn refusal(_: &mut Page, failure: &Failure<&str>) -> (u16, String) {
        (errors::plain_refusal(failure).0, errors::message(failure).to_owned())
    }

    fn body(_: &mut Page, _: &MessageAssembler) -> Option<String> {
        None
    }
}
