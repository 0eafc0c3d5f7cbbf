//! Writer of Ollama: one record a line.
//!
//! ```text
//! stream = { record }, final
//! ```
//!
//! Laws: every record has `message`.  Calls are whole, and their arguments are objects.  They wait for the finish reason, because
//! no word of Ollama keeps a client from running them.  One record says `done`, the last one.
//! Source: the API document of Ollama's repository; types of the official clients (docs/protocols/encoding.md#ollama).

use crate::contract::{Failure, Logprobs};
use crate::dialect::ollama::facts::FACTS;
use crate::encode::{
    Call, Draft, Ending, Extras, Form, Order, Prefix, TextKind, TextPart, WholeContent, WholePart,
    Writer, errors, finish_word, optional, rfc3339, write_compact,
};
use crate::fold::{MessageAssembler, Part};
use crate::json::{ObjectWriter, object, write_list, write_members, write_string};

/// Words that Ollama writes.
const DONE_REASONS: &[&str] = &["stop", "length", "load", "unload"];

/// Writer of records: those of `/api/chat`, or with `GENERATE` those of `/api/generate`, which have no calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OllamaWriter<const GENERATE: bool> {
    text: Prefix,
    thinking: Prefix,
}

fn begin_record(draft: &Draft, out: &mut String) {
    out.push_str("{\"model\":");
    write_string(out, &draft.head.model_id);
    out.push_str(",\"created_at\":");
    write_string(out, &rfc3339(draft.head.created).unwrap_or_default());
}

impl<const GENERATE: bool> OllamaWriter<GENERATE> {
    /// Write a record; `fill` writes the members of the message beside role and content.
    fn record(
        draft: &mut Draft,
        done: Option<&str>,
        text: &str,
        fill: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut record = String::new();
        begin_record(draft, &mut record);
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
        write_end(&mut object, draft, done);
        object.end();
        draft.out.json_event("", &record);
    }

    fn calls(draft: &mut Draft, calls: &[(Call, String)]) {
        Self::record(draft, None, "", |message| write_calls(message, calls));
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

fn write_end(object: &mut ObjectWriter<'_>, draft: &Draft, done: Option<&str>) {
    match done {
        None => object.json("done", "false"),
        Some(reason) => {
            object.json("done", "true");
            object.text("done_reason", reason);
            optional(object, "prompt_eval_count", draft.head.usage.input);
            optional(object, "eval_count", draft.head.usage.output);
        }
    }
}

fn done_word<'a>(draft: &mut Draft, ending: &Ending<'a>) -> &'a str {
    finish_word(draft, ending, &FACTS.finish_reasons, DONE_REASONS, false)
}

fn note_state(draft: &mut Draft, state: Option<&str>) {
    if state.is_some() {
        draft.notes.add("provider_state", "provider state");
    }
}

fn note_part(draft: &mut Draft, part: &WholePart) {
    let what = match part.content() {
        WholeContent::Provider { dialect, .. } => format!("a part of {dialect}"),
        WholeContent::Image { .. } => "an image".to_owned(),
        WholeContent::Other { kind } => format!("a part of the kind {kind}"),
    };
    draft.notes.add("part", &what);
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

    fn head(&mut self, draft: &mut Draft) {
        let members = if GENERATE {
            [",\"response\":\"", ",\"response\":\"\",\"thinking\":\""]
        } else {
            [
                ",\"message\":{\"role\":\"assistant\",\"content\":\"",
                ",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"",
            ]
        };
        for (prefix, member) in [&mut self.text, &mut self.thinking].into_iter().zip(members) {
            draft.out.prepare(prefix, "", |out| {
                begin_record(draft, out);
                out.push_str(member);
            });
        }
    }

    fn open_text(&mut self, _: &mut Draft, _: &TextPart) {}

    #[inline]
    fn text(&mut self, draft: &mut Draft, part: &TextPart, text: &str, extras: Extras<'_>) {
        if extras.annotations.is_some() {
            draft.notes.add("annotations", "annotations");
        }
        if text.is_empty() && extras.logprobs.is_none() {
            return;
        }
        let prefix = if part.kind == TextKind::Thinking { &self.thinking } else { &self.text };
        let out = &mut draft.out;
        out.repeat(prefix);
        out.escaped(text).piece(if GENERATE { "\"" } else { "\"}" });
        if let Some(logprobs) = extras.logprobs {
            out.piece(",\"logprobs\":").value(|out| write_logprobs(out, logprobs));
        }
        out.piece(",\"done\":false}");
        out.finish(prefix);
    }

    fn close_text(&mut self, draft: &mut Draft, part: &TextPart) {
        note_state(draft, part.state.as_deref());
    }

    fn bare(&mut self, draft: &mut Draft, part: &TextPart) {
        note_state(draft, part.state.as_deref());
    }

    fn late(&mut self, draft: &mut Draft, part: &TextPart, extras: Extras<'_>) {
        note_state(draft, part.state.as_deref());
        self.text(draft, part, "", extras);
    }

    fn open_call(&mut self, _: &mut Draft, _: &Call) {}

    fn args(&mut self, _: &mut Draft, _: &Call, _: &str) {}

    fn close_call(&mut self, _: &mut Draft, _: &Call) -> bool {
        false
    }

    fn whole_call(&mut self, draft: &mut Draft, call: &Call) -> bool {
        note_state(draft, call.state.as_deref());
        if GENERATE {
            draft.notes.add("call", "a call, for which /api/generate has no form");
            return false;
        }
        let Some(input) = call.input_object() else {
            draft.notes.add("arguments", "a call whose arguments are no JSON object");
            return false;
        };
        Self::calls(draft, &[(call.clone(), input)]);
        true
    }

    fn whole_part(&mut self, draft: &mut Draft, part: &WholePart) {
        note_part(draft, part);
    }

    fn finish(&mut self, draft: &mut Draft, ending: &Ending<'_>) {
        let reason = done_word(draft, ending);
        Self::record(draft, Some(reason), "", |_| {});
    }

    fn fail(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        draft.out.event("", |event| event.text("error", errors::message(failure)));
    }

    fn keep_alive(&mut self, draft: &mut Draft) {
        Self::record(draft, None, "", |_| {});
    }

    fn refusal(_: &mut Draft, failure: &Failure<&str>) -> (u16, String) {
        let body = object(|body| body.text("error", errors::message(failure)));
        (FACTS.errors.word(failure.code).1, body)
    }

    fn body(draft: &mut Draft, message: &MessageAssembler) -> Option<String> {
        Some(whole_record::<GENERATE>(draft, message))
    }
}

/// Return the answer as one record.
fn whole_record<const GENERATE: bool>(draft: &mut Draft, message: &MessageAssembler) -> String {
    let (mut text, mut thinking) = (String::new(), String::new());
    let forbids_calls = Ending::of(message, 0).forbids_calls();
    let mut calls: Vec<(Call, String)> = Vec::new();
    for (index, part) in message.parts().iter().enumerate() {
        match part {
            Part::Text(part) => {
                text.push_str(&part.text);
                note_state(draft, part.provider_state.as_deref());
                if !part.annotations.is_empty() {
                    draft.notes.add("annotations", "annotations");
                }
            }
            Part::Thinking(part) => {
                thinking.push_str(&part.text);
                note_state(draft, part.provider_state.as_deref());
            }
            Part::ToolCall(folded) => {
                let call = Call::from_fold(index, calls.len(), folded);
                let input =
                    call.input_object().filter(|_| !call.incomplete && !call.name.is_empty());
                match input {
                    Some(_) if forbids_calls => {
                        draft.notes.add("call", "a call that may not run after this end");
                    }
                    Some(input) if !GENERATE => calls.push((call, input)),
                    Some(_) => {
                        draft.notes.add("call", "a call, for which /api/generate has no form");
                    }
                    None => {
                        draft
                            .notes
                            .add("call", "a call that was cut off or has no argument object");
                    }
                }
            }
            Part::Whole(json) => note_part(draft, &WholePart { index, json: json.clone() }),
        }
    }
    let done = done_word(draft, &Ending::of(message, calls.len()));
    let mut record = String::new();
    begin_record(draft, &mut record);
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
    write_end(&mut object, draft, Some(done));
    object.end();
    record
}
