//! Writer of OpenAI Chat Completions.
//!
//! ```text
//! stream = head, { text | thinking | refusal | call | arguments | image | audio | rider }, finish, [usage], "[DONE]"
//! ```
//!
//! Laws: the role stands in the head only.  Calls are numbered densely and written one after another.  An error ends the
//! stream without `[DONE]`.
//! Source: platform.openai.com, "Chat: streaming"; types of the official clients (protocols/encode.md, section 2).

use super::facts::FACTS;
use super::media::{
    AUDIO, Medium, is_transcript, medium, own_annotation, source_list, with_transcript,
};
use super::states::{OfCall, States, joined};
use crate::contract::{Failure, InputFormat};
use crate::encode::annotations::{self, citation};
use crate::encode::{
    Answers, Call, Counts, Ending, Form, Lead, Order, Page, Riders, State, TextKind, TextPart,
    WholePart, Writer, errors, finish_word, optional,
};
use crate::fold::{MessageAssembler, Part};
use crate::json::{ObjectWriter, members, object, write_list, write_members};

/// Finish reasons that the official clients know.  `function_call` is none of them: it announces the member of that
/// name, and every call is written as one of `tool_calls`.
const FINISH_REASONS: &[&str] = &["stop", "length", "tool_calls", "content_filter"];

/// Writer of Chat chunks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatWriter {
    text: Lead,
    thinking: Lead,
    refusal: Lead,
    transcript: Lead,
    args: Lead,
    /// Ends of chunks with and without `logprobs`.
    end: String,
    /// Number of the call that `args` is for, and its format.
    call: Option<(usize, InputFormat)>,
    thinking_parts: usize,
    refused: bool,
    /// JSON of annotations, which leave once before the finish.
    annotations: Vec<String>,
    /// Lists of sources by their members of the chunk, which leave with the finish.
    lists: Vec<(&'static str, String)>,
    /// Number of the images so far.
    images: usize,
    /// Number of the part that is the transcript of audio.
    transcript_part: Option<usize>,
    states: States,
}

fn begin_chunk(page: &Page, out: &mut String) {
    let mut chunk = ObjectWriter::begin(out);
    chunk.text("id", &page.head.request_id);
    chunk.text("object", "chat.completion.chunk");
    chunk.number("created", page.head.created_seconds());
    chunk.text("model", &page.head.model_id);
}

/// Begin a chunk with a choice, up to the value of its `delta`.
fn begin_choice(page: &Page, out: &mut String) {
    begin_chunk(page, out);
    out.push_str(",\"choices\":[{\"index\":");
    out.push_str(&page.answer_number().to_string());
    out.push_str(",\"delta\":");
}

impl ChatWriter {
    fn prepare(&mut self, page: &Page) {
        let delta = |member: &'static str| {
            move |out: &mut String| {
                begin_choice(page, out);
                out.push_str("{\"");
                out.push_str(member);
                out.push_str("\":\"");
            }
        };
        page.out.lead(&mut self.text, "", delta("content"));
        page.out.lead(&mut self.thinking, "", delta(page.settings.reasoning_member));
        page.out.lead(&mut self.refusal, "", delta("refusal"));
        page.out.lead(&mut self.transcript, "", |out| {
            begin_choice(page, out);
            out.push_str("{\"audio\":{\"transcript\":\"");
        });
        "}],\"usage\":null}".clone_into(&mut self.end);
        if !page.settings.include_usage {
            "}]}".clone_into(&mut self.end);
        }
    }

    /// Write a chunk whose `delta` has the members that `fill` writes.
    fn chunk(
        &self,
        page: &mut Page,
        finish: Option<&str>,
        fill: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut lead = Lead::default();
        page.out.lead(&mut lead, "", |out| {
            begin_choice(page, out);
            write_members(out, fill);
        });
        page.out.repeat(&lead);
        match finish {
            Some(reason) => page
                .out
                .piece(",\"logprobs\":null,\"finish_reason\":\"")
                .escaped(reason)
                .piece("\""),
            None => page.out.piece(",\"logprobs\":null,\"finish_reason\":null"),
        };
        let lists = finish.map_or(&[][..], |_| &self.lists);
        let (choice, rest) = self.end.split_at_checked("}]".len()).unwrap_or_default();
        page.out.piece(choice);
        for (name, list) in lists {
            page.out.piece(",\"").piece(name).piece("\":").value(|out| out.push_str(list));
        }
        page.out.piece(rest);
        page.out.finish(&lead);
    }

    fn keep_annotations(&mut self, page: &mut Page, json: &str) {
        for annotation in annotations::list(json) {
            if let Some((name, list)) = source_list(annotation) {
                self.lists.retain(|(known, _)| *known != name);
                self.lists.push((name, list));
                continue;
            }
            if let Some(own) = own_annotation(annotation, self.annotations.len()) {
                self.annotations.push(own);
                continue;
            }
            match citation(annotation) {
                Some(citation) => {
                    let mut out = String::from("{\"index\":");
                    out.push_str(&self.annotations.len().to_string());
                    out.push_str(",\"type\":\"url_citation\",\"url_citation\":{");
                    citation.write_members(&mut out);
                    out.push_str("}}");
                    self.annotations.push(out);
                }
                None => page.notes.add("annotations", "an annotation without an address"),
            }
        }
    }

    /// Write provider state of a part: members of the own dialect, or a signature in the place that the caller chose.
    fn state(&mut self, page: &mut Page, part: &TextPart) {
        if is_transcript(part.state.as_deref()) {
            // The audio has its own members.
        } else if let Some(data) = self.states.of_text(page, part) {
            self.chunk(page, None, |delta| write_all(delta, &data));
        }
    }
}

fn write_all(object: &mut ObjectWriter<'_>, json: &str) {
    for (key, value) in members(json) {
        object.json_of(&key, value);
    }
}

/// Write the members of a usage record.
fn write_usage(object: &mut ObjectWriter<'_>, counts: Counts) {
    object.number("prompt_tokens", counts.input);
    object.number("completion_tokens", counts.output);
    object.number("total_tokens", counts.total());
    let (cache_read, cache_write) = counts.cache();
    if cache_read.is_some() || cache_write.is_some() {
        object.object("prompt_tokens_details", |details| {
            optional(details, "cached_tokens", cache_read);
            optional(details, "cache_write_tokens", cache_write);
        });
    }
    if let Some(reasoning) = counts.reasoning() {
        object.object("completion_tokens_details", |details| {
            details.number("reasoning_tokens", reasoning);
        });
    }
}

impl Writer for ChatWriter {
    const NAME: &'static str = "openai-chat";
    const DIALECT: &'static str = "openai-chat";
    const FORM: Form = Form::Sse;
    const ORDER: Order = Order::SerialCalls;
    const FREE_TEXT: bool = true;
    const HAS_ANSWERS: bool = true;

    fn head(&mut self, page: &mut Page) {
        self.prepare(page);
        self.chunk(page, None, |delta| {
            delta.text("role", "assistant");
            delta.text("content", "");
        });
    }

    fn open_text(&mut self, page: &mut Page, part: &TextPart) {
        if part.kind == TextKind::Thinking {
            self.thinking_parts += 1;
            if self.thinking_parts > 1 {
                self.text(page, part, "\n\n", Riders::default());
            }
        }
        if part.kind == TextKind::Text && is_transcript(part.state.as_deref()) {
            self.transcript_part = Some(part.index);
        }
        self.states.spans.open(part);
    }

    #[inline]
    fn text(&mut self, page: &mut Page, part: &TextPart, text: &str, riders: Riders<'_>) {
        if let Some(json) = riders.annotations {
            self.keep_annotations(page, json);
            if text.is_empty() && riders.logprobs.is_none() {
                return;
            }
        }
        let lead = match part.kind {
            TextKind::Thinking if !text.is_empty() => &self.thinking,
            TextKind::Text if part.refusal => {
                self.refused = true;
                &self.refusal
            }
            TextKind::Text if self.transcript_part == Some(part.index) => &self.transcript,
            // Log probabilities without a text ride on an empty content.
            TextKind::Text | TextKind::Thinking => &self.text,
        };
        if page.settings.envelope {
            self.states.spans.add(part, text);
        }
        let out = &mut page.out;
        out.repeat(lead);
        let is_transcript = std::ptr::eq(lead, &self.transcript);
        out.escaped(text).piece(if is_transcript { "\"}}" } else { "\"}" });
        match riders.logprobs {
            None => out.piece(",\"logprobs\":null,\"finish_reason\":null"),
            Some(logprobs) => out
                .piece(if part.refusal {
                    ",\"logprobs\":{\"refusal\":"
                } else {
                    ",\"logprobs\":{\"content\":"
                })
                .value(|out| logprobs.write_openai(out, true))
                .piece("},\"finish_reason\":null"),
        };
        out.piece(&self.end);
        out.finish(lead);
    }

    fn close_text(&mut self, page: &mut Page, part: &TextPart) {
        self.state(page, part);
    }

    fn bare(&mut self, page: &mut Page, part: &TextPart) {
        self.states.spans.open(part);
        self.state(page, part);
    }

    fn late(&mut self, page: &mut Page, part: &TextPart, riders: Riders<'_>) {
        self.state(page, part);
        if !riders.is_empty() {
            self.text(page, part, "", riders);
        }
    }

    fn open_call(&mut self, page: &mut Page, call: &Call) {
        self.chunk(page, None, |delta| {
            delta.value("tool_calls", |out| {
                write_list(out, [call], |out, call| {
                    write_members(out, |item| {
                        item.number("index", call.ordinal);
                        write_call(item, call, "");
                        write_own(item, call);
                    });
                });
            });
        });
        self.call = None;
    }

    #[inline]
    fn args(&mut self, page: &mut Page, call: &Call, text: &str) {
        if self.call != Some((call.ordinal, call.format)) {
            self.call = Some((call.ordinal, call.format));
            let member = if call.format == InputFormat::Text {
                "\"custom\":{\"input\":\""
            } else {
                "\"function\":{\"arguments\":\""
            };
            let page = &*page;
            page.out.lead(&mut self.args, "", |out| {
                begin_choice(page, out);
                out.push_str("{\"tool_calls\":[{\"index\":");
                out.push_str(&call.ordinal.to_string());
                out.push(',');
                out.push_str(member);
            });
        }
        page.out.repeat(&self.args);
        page.out
            .escaped(text)
            .piece("\"}}]},\"logprobs\":null,\"finish_reason\":null")
            .piece(&self.end);
        page.out.finish(&self.args);
    }

    fn close_call(&mut self, page: &mut Page, call: &Call) -> bool {
        match self.states.of_call(page, call) {
            Some(OfCall::Call(data)) => self.chunk(page, None, |delta| {
                delta.value("tool_calls", |out| {
                    write_list(out, [call], |out, call| {
                        write_members(out, |item| {
                            item.number("index", call.ordinal);
                            // The Python client raises without the member.
                            if call.format == InputFormat::Json {
                                item.object("function", |function| function.text("arguments", ""));
                            }
                            write_all(item, &data);
                        });
                    });
                });
            }),
            Some(OfCall::Message(data)) => {
                self.chunk(page, None, |delta| write_all(delta, &data));
            }
            None => {}
        }
        !call.incomplete
    }

    fn whole_call(&mut self, _: &mut Page, _: &Call) -> bool {
        false
    }

    fn whole_part(&mut self, page: &mut Page, part: &WholePart) {
        match medium(part, self.images) {
            Ok(Medium::Image(image)) => {
                self.images += 1;
                self.chunk(page, None, |delta| {
                    delta.value("images", |out| {
                        write_list(out, [image], |out, one| out.push_str(&one))
                    });
                });
            }
            Ok(Medium::Audio(audio)) => self.chunk(page, None, |delta| delta.json(AUDIO, &audio)),
            Err(what) => page.notes.add("part", &what),
        }
    }

    fn finish(&mut self, page: &mut Page, ending: &Ending<'_>) {
        if !self.annotations.is_empty() {
            let annotations = std::mem::take(&mut self.annotations);
            self.chunk(page, None, |delta| {
                delta.value("annotations", |out| {
                    write_list(out, &annotations, |out, json| out.push_str(json));
                });
            });
        }
        let word = finish_word(page, ending, &FACTS.finish_reasons, FINISH_REASONS, self.refused);
        self.chunk(page, Some(word), |_| {});
        if page.answer.is_none() {
            self.end_answers(page);
        }
    }

    fn end_answers(&mut self, page: &mut Page) {
        if page.settings.include_usage {
            if let Some(counts) = Counts::known(page) {
                let mut lead = Lead::default();
                page.out.lead(&mut lead, "", |out| {
                    begin_chunk(page, out);
                    out.push_str(",\"choices\":[],\"usage\":");
                    write_members(out, |usage| write_usage(usage, counts));
                    out.push('}');
                });
                page.out.repeat(&lead);
                page.out.finish(&lead);
            } else if page.head.has_usage {
                page.notes.add("usage", "a usage record without both counts");
            }
        }
        page.out.marker("data: [DONE]\n\n");
    }

    fn fail(&mut self, page: &mut Page, failure: &Failure<&str>) {
        page.out.event("", |event| {
            event.object("error", |error| {
                errors::openai_members(error, &FACTS.errors, failure);
            });
        });
    }

    fn keep_alive(&mut self, page: &mut Page) {
        page.out.marker(": keep-alive\n\n");
    }

    fn refusal(_: &mut Page, failure: &Failure<&str>) -> (u16, String) {
        let mut status = 500;
        let body = object(|body| {
            body.object("error", |error| {
                status = errors::openai_members(error, &FACTS.errors, failure);
            });
        });
        (status, body)
    }

    fn body(page: &mut Page, message: &MessageAssembler) -> Option<String> {
        Some(chat_body(page, &[(0, message)]))
    }

    fn body_of_answers(page: &mut Page, answers: &Answers<'_>) -> Option<String> {
        Some(chat_body(page, answers))
    }
}

fn write_call(item: &mut ObjectWriter<'_>, call: &Call, args: &str) {
    item.text("id", &call.id);
    if call.format == InputFormat::Text {
        item.text("type", "custom");
        item.object("custom", |custom| {
            custom.text("name", &call.name);
            custom.text("input", args);
        });
    } else {
        item.text("type", "function");
        item.object("function", |function| {
            function.text("name", &call.name);
            function.text("arguments", args);
        });
    }
}

/// Write the members of a call's own state.
fn write_own(item: &mut ObjectWriter<'_>, call: &Call) {
    let Some(json) = call.state.as_deref() else { return };
    let state = State::read(json);
    if state.dialect != ChatWriter::DIALECT || !state.data.starts_with('{') {
        return;
    }
    for (key, value) in members(state.data) {
        if !matches!(key.as_ref(), "index" | "id" | "type" | "function" | "custom") {
            item.json_of(&key, value);
        }
    }
}

/// Return a whole `chat.completion`.
fn chat_body(page: &mut Page, answers: &Answers<'_>) -> String {
    let mut lists = Vec::new();
    let choices: Vec<String> = answers
        .iter()
        .map(|(number, message)| choice(page, *number, message, &mut lists))
        .collect();
    let counts = Counts::known(page);
    object(|body| {
        body.text("id", &page.head.request_id);
        body.text("object", "chat.completion");
        body.number("created", page.head.created_seconds());
        body.text("model", &page.head.model_id);
        body.value("choices", |out| {
            write_list(out, &choices, |out, choice| out.push_str(choice));
        });
        if let Some(counts) = counts {
            body.object("usage", |usage| write_usage(usage, counts));
        }
        for (name, list) in &lists {
            body.json(name, list);
        }
    })
}

/// Return a choice of a whole `chat.completion`; its lists of sources belong to the body.
fn choice(
    page: &mut Page,
    number: u64,
    message: &MessageAssembler,
    lists: &mut Vec<(&'static str, String)>,
) -> String {
    let mut writer = ChatWriter::default();
    let (mut text, mut thinking, mut refusal) = (String::new(), String::new(), String::new());
    let mut calls: Vec<(Call, String)> = Vec::new();
    let mut states = Vec::new();
    let (mut transcript, mut audio, mut images) = (String::new(), None, Vec::new());
    for (index, part) in message.parts().iter().enumerate() {
        match part {
            Part::Text(folded) => {
                for json in &folded.annotations {
                    writer.keep_annotations(page, json);
                }
                if is_transcript(folded.provider_state.as_deref()) {
                    transcript.push_str(&folded.text);
                    continue;
                }
                if folded.refusal { &mut refusal } else { &mut text }.push_str(&folded.text);
                let part = TextPart::from_fold(index, TextKind::Text, folded);
                states.extend(writer.states.of_whole(page, &part, "", &folded.text));
            }
            Part::Thinking(folded) => {
                let follows = !thinking.is_empty() && !folded.text.is_empty();
                let separator = if follows { "\n\n" } else { "" };
                thinking.push_str(separator);
                thinking.push_str(&folded.text);
                let part = TextPart::from_fold(index, TextKind::Thinking, folded);
                states.extend(writer.states.of_whole(page, &part, separator, &folded.text));
            }
            Part::ToolCall(call)
                if call.name.is_empty() || (call.incomplete && call.args.is_empty()) =>
            {
                page.notes.add("call", "a call that was cut off");
            }
            Part::ToolCall(call) => {
                let call = Call::from_fold(index, calls.len(), call);
                let state = match writer.states.of_call(page, &call) {
                    Some(OfCall::Call(members)) => members,
                    Some(OfCall::Message(members)) => {
                        states.push(members);
                        String::new()
                    }
                    None => String::new(),
                };
                calls.push((call, state));
            }
            Part::Whole(json) => {
                match medium(&WholePart { index, json: json.clone() }, images.len()) {
                    Ok(Medium::Image(image)) => images.push(image),
                    Ok(Medium::Audio(members)) => audio = Some(members),
                    Err(what) => page.notes.add("part", &what),
                }
            }
        }
    }
    let whole_calls = calls.iter().filter(|(call, _)| !call.incomplete).count();
    let ending = Ending::of(message, whole_calls);
    let refused = !refusal.is_empty();
    let finish = finish_word(page, &ending, &FACTS.finish_reasons, FINISH_REASONS, refused);
    for (name, list) in std::mem::take(&mut writer.lists) {
        if lists.iter().all(|(known, _)| *known != name) {
            lists.push((name, list));
        }
    }
    let has_audio = audio.is_some() || !transcript.is_empty();
    object(|choice| {
        choice.number("index", number);
        choice.object("message", |answer| {
            answer.text("role", "assistant");
            let silent = text.is_empty() && (!calls.is_empty() || !refusal.is_empty() || has_audio);
            optional_text(answer, "content", (!silent).then_some(text.as_str()));
            optional_text(answer, "refusal", (!refusal.is_empty()).then_some(refusal.as_str()));
            if !thinking.is_empty() {
                answer.text(page.settings.reasoning_member, &thinking);
            }
            write_all(answer, &joined(&states));
            if !images.is_empty() {
                answer.value("images", |out| {
                    write_list(out, &images, |out, image| out.push_str(image));
                });
            }
            if has_audio {
                answer.json(AUDIO, &with_transcript(audio.as_deref(), &transcript));
            }
            if !calls.is_empty() {
                answer.value("tool_calls", |out| {
                    write_list(out, &calls, |out, (call, state)| {
                        write_members(out, |item| {
                            write_call(item, call, &call.args);
                            write_own(item, call);
                            write_all(item, state);
                        });
                    });
                });
            }
            if !writer.annotations.is_empty() {
                answer.value("annotations", |out| {
                    write_list(out, &writer.annotations, |out, json| {
                        out.push_str(json);
                    });
                });
            }
        });
        match message.logprobs().filter(|logprobs| !logprobs.is_empty()) {
            Some(logprobs) => choice.object("logprobs", |object| {
                object.value("content", |out| logprobs.write_openai(out, true));
            }),
            None => choice.json("logprobs", "null"),
        }
        choice.text("finish_reason", finish);
    })
}

fn optional_text(object: &mut ObjectWriter<'_>, key: &'static str, text: Option<&str>) {
    match text {
        Some(text) => object.text(key, text),
        None => object.json(key, "null"),
    }
}
