//! Writer of Ollama: one record a line.
//!
//! ```text
//! stream = { record }, final
//! ```
//!
//! Laws: every record has `message`.  Calls are whole, and their arguments are objects.  They wait for the finish reason, because
//! no word of Ollama keeps a client from running them.  One record says `done`, the last one.
//! Source: the API document of Ollama's repository; types of the official clients (protocols/encode.md, section 6).

use crate::contract::{Failure, Logprobs};
use crate::dialect::ollama::facts::FACTS;
use crate::encode::{
    Call, Ending, Form, Lead, Order, Page, Riders, TextKind, TextPart, WholeContent, WholePart,
    Writer, errors, finish_word, optional, rfc3339, write_compact,
};
use crate::fold::{MessageAssembler, Part};
use crate::json::{ObjectWriter, object, write_list, write_members, write_string};

/// Words that Ollama writes.
const DONE_REASONS: &[&str] = &["stop", "length", "load", "unload"];

/// Writer of records: those of `/api/chat`, or with `GENERATE` those of `/api/generate`, which have no calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OllamaWriter<const GENERATE: bool> {
    text: Lead,
    thinking: Lead,
}

fn begin_record(page: &Page, out: &mut String) {
    out.push_str("{\"model\":");
    write_string(out, &page.head.model_id);
    out.push_str(",\"created_at\":");
    write_string(out, &rfc3339(page.head.created).unwrap_or_default());
}

impl<const GENERATE: bool> OllamaWriter<GENERATE> {
    /// Write a record; `fill` writes the members of the message beside role and content.
    fn record(
        page: &mut Page,
        done: Option<&str>,
        text: &str,
        fill: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut record = String::new();
        begin_record(page, &mut record);
        let mut object = ObjectWriter::resume(&mut record);
        if GENERATE {
            object.text("response", text);
            fill(&mut object);
        } else {
            object.object("message", |message| {
                message.text("role", "assistant");
                message.text("content", text);
                fill(message);
            });
        }
        write_end(&mut object, page, done);
        object.end();
        page.out.json_event("", &record);
    }

    fn calls(page: &mut Page, calls: &[(Call, String)]) {
        Self::record(page, None, "", |message| write_calls(message, calls));
    }
}

fn write_calls(message: &mut ObjectWriter<'_>, calls: &[(Call, String)]) {
    message.value("tool_calls", |out| {
        write_list(out, calls, |out, (call, input)| {
            write_members(out, |item| {
                item.text("id", &call.id);
                item.object("function", |function| {
                    function.number("index", call.ordinal);
                    function.text("name", &call.name);
                    function.value("arguments", |out| write_compact(out, input));
                });
            });
        });
    });
}

fn write_end(object: &mut ObjectWriter<'_>, page: &Page, done: Option<&str>) {
    match done {
        None => object.json("done", "false"),
        Some(reason) => {
            object.json("done", "true");
            object.text("done_reason", reason);
            optional(object, "prompt_eval_count", page.head.usage.input);
            optional(object, "eval_count", page.head.usage.output);
        }
    }
}

fn done_word<'a>(page: &mut Page, ending: &Ending<'a>) -> &'a str {
    finish_word(page, ending, &FACTS.finish_reasons, DONE_REASONS, false)
}

fn note_state(page: &mut Page, state: Option<&str>) {
    if state.is_some() {
        page.notes.add("provider_state", "provider state");
    }
}

fn note_part(page: &mut Page, part: &WholePart) {
    let what = match part.content() {
        WholeContent::Provider { dialect, .. } => format!("a part of {dialect}"),
        WholeContent::Image { .. } => "an image".to_owned(),
        WholeContent::Other { kind } => format!("a part of the kind {kind}"),
    };
    page.notes.add("part", &what);
}

fn write_logprobs(out: &mut String, logprobs: &Logprobs) {
    logprobs.write_openai(out, true);
}

impl<const GENERATE: bool> Writer for OllamaWriter<GENERATE> {
    const NAME: &'static str = if GENERATE { "ollama-generate" } else { "ollama" };
    const DIALECT: &'static str = "ollama";
    const FORM: Form = Form::Ndjson;
    const ORDER: Order = Order::SerialCalls;
    const WHOLE_CALLS: bool = true;
    const CALLS_AT_END: bool = true;

    fn head(&mut self, page: &mut Page) {
        let members = if GENERATE {
            [",\"response\":\"", ",\"response\":\"\",\"thinking\":\""]
        } else {
            [
                ",\"message\":{\"role\":\"assistant\",\"content\":\"",
                ",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"",
            ]
        };
        for (lead, member) in [&mut self.text, &mut self.thinking].into_iter().zip(members) {
            page.out.lead(lead, "", |out| {
                begin_record(page, out);
                out.push_str(member);
            });
        }
    }

    fn open_text(&mut self, _: &mut Page, _: &TextPart) {}

    #[inline]
    fn text(&mut self, page: &mut Page, part: &TextPart, text: &str, riders: Riders<'_>) {
        if riders.annotations.is_some() {
            page.notes.add("annotations", "annotations");
        }
        if text.is_empty() && riders.logprobs.is_none() {
            return;
        }
        let lead = if part.kind == TextKind::Thinking { &self.thinking } else { &self.text };
        let out = &mut page.out;
        out.repeat(lead);
        out.escaped(text).piece(if GENERATE { "\"" } else { "\"}" });
        if let Some(logprobs) = riders.logprobs {
            out.piece(",\"logprobs\":").value(|out| write_logprobs(out, logprobs));
        }
        out.piece(",\"done\":false}");
        out.finish(lead);
    }

    fn close_text(&mut self, page: &mut Page, part: &TextPart) {
        note_state(page, part.state.as_deref());
    }

    fn bare(&mut self, page: &mut Page, part: &TextPart) {
        note_state(page, part.state.as_deref());
    }

    fn late(&mut self, page: &mut Page, part: &TextPart, riders: Riders<'_>) {
        note_state(page, part.state.as_deref());
        self.text(page, part, "", riders);
    }

    fn open_call(&mut self, _: &mut Page, _: &Call) {}

    fn args(&mut self, _: &mut Page, _: &Call, _: &str) {}

    fn close_call(&mut self, _: &mut Page, _: &Call) -> bool {
        false
    }

    fn whole_call(&mut self, page: &mut Page, call: &Call) -> bool {
        note_state(page, call.state.as_deref());
        if GENERATE {
            page.notes.add("call", "a call, for which /api/generate has no form");
            return false;
        }
        let Some(input) = call.input_object() else {
            page.notes.add("arguments", "a call whose arguments are no JSON object");
            return false;
        };
        Self::calls(page, &[(call.clone(), input)]);
        true
    }

    fn whole_part(&mut self, page: &mut Page, part: &WholePart) {
        note_part(page, part);
    }

    fn finish(&mut self, page: &mut Page, ending: &Ending<'_>) {
        let reason = done_word(page, ending);
        Self::record(page, Some(reason), "", |_| {});
    }

    fn fail(&mut self, page: &mut Page, failure: &Failure<&str>) {
        page.out.event("", |event| event.text("error", errors::message(failure)));
    }

    fn keep_alive(&mut self, page: &mut Page) {
        Self::record(page, None, "", |_| {});
    }

    fn refusal(_: &mut Page, failure: &Failure<&str>) -> (u16, String) {
        let body = object(|body| body.text("error", errors::message(failure)));
        (FACTS.errors.word(failure.code).1, body)
    }

    fn body(page: &mut Page, message: &MessageAssembler) -> Option<String> {
        Some(whole_record::<GENERATE>(page, message))
    }
}

/// Return the answer as one record.
fn whole_record<const GENERATE: bool>(page: &mut Page, message: &MessageAssembler) -> String {
    let (mut text, mut thinking) = (String::new(), String::new());
    let forbids_calls = Ending::of(message, 0).forbids_calls();
    let mut calls: Vec<(Call, String)> = Vec::new();
    for (index, part) in message.parts().iter().enumerate() {
        match part {
            Part::Text(part) => {
                text.push_str(&part.text);
                note_state(page, part.provider_state.as_deref());
                if !part.annotations.is_empty() {
                    page.notes.add("annotations", "annotations");
                }
            }
            Part::Thinking(part) => {
                thinking.push_str(&part.text);
                note_state(page, part.provider_state.as_deref());
            }
            Part::ToolCall(folded) => {
                let call = Call::from_fold(index, calls.len(), folded);
                let input =
                    call.input_object().filter(|_| !call.incomplete && !call.name.is_empty());
                match input {
                    Some(_) if forbids_calls => {
                        page.notes.add("call", "a call that may not run after this end");
                    }
                    Some(input) if !GENERATE => calls.push((call, input)),
                    Some(_) => {
                        page.notes.add("call", "a call, for which /api/generate has no form");
                    }
                    None => {
                        page.notes.add("call", "a call that was cut off or has no argument object");
                    }
                }
            }
            Part::Whole(json) => note_part(page, &WholePart { index, json: json.clone() }),
        }
    }
    let done = done_word(page, &Ending::of(message, calls.len()));
    let mut record = String::new();
    begin_record(page, &mut record);
    let mut object = ObjectWriter::resume(&mut record);
    let fill = |message: &mut ObjectWriter<'_>| {
        if !thinking.is_empty() {
            message.text("thinking", &thinking);
        }
        if !calls.is_empty() {
            write_calls(message, &calls);
        }
    };
    if GENERATE {
        object.text("response", &text);
        fill(&mut object);
    } else {
        object.object("message", |message| {
            message.text("role", "assistant");
            message.text("content", &text);
            fill(message);
        });
    }
    if let Some(logprobs) = message.logprobs().filter(|logprobs| !logprobs.is_empty()) {
        object.value("logprobs", |out| write_logprobs(out, logprobs));
    }
    write_end(&mut object, page, Some(done));
    object.end();
    record
}
