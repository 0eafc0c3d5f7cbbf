//! Writer of Gemini's `streamGenerateContent`.
//!
//! ```text
//! stream = { chunk } ;   the end of the body ends it
//! ```
//!
//! Laws: every chunk has a part, because the clients' chats forget the answer after one without.  A call is one part, at its
//! end.  The last part of a text carries its signature.  No comment and no end marker is written.
//! Source: ai.google.dev, "GenerateContentResponse"; types of the official clients (docs/protocols/encoding.md#gemini).

mod logprobs;
mod parts;

use logprobs::write_logprobs;
use parts::{call_part, signature, text_part, whole_part};

use crate::contract::{ErrorCode, Failure, FinishReason, Logprobs};
use crate::dialect::gemini::facts::{CONTINUATION, FACTS, METADATA};
use crate::encode::{
    Answers, Call, Counts, Draft, Ending, Extras, Form, Order, Out, Owner, Prefix, Spans, State,
    TextKind, TextPart, WholePart, Writer, annotations, errors, facts_of, finish_word, note_reason,
    optional, write_compact, write_facts,
};
use crate::fold::{MessageAssembler, Part};
use crate::json::{ObjectWriter, members, object, write_list, write_members};

/// Finish reasons that the official clients know.
const WORDS: &[&str] = &[
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "IMAGE_SAFETY",
    "UNEXPECTED_TOOL_CALL",
    "IMAGE_PROHIBITED_CONTENT",
    "NO_IMAGE",
    "IMAGE_RECITATION",
    "IMAGE_OTHER",
];

/// Writer of chunks: as server-sent events, or with `ARRAY` as the elements of one JSON array.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GeminiWriter<const ARRAY: bool> {
    text: Prefix,
    thought: Prefix,
    /// The end of a chunk of text: closing brackets, the model and the response id.
    rest: String,
    /// JSON of the annotations of other dialects.
    annotations: Vec<String>,
    /// Own sources of the text, which a whole answer has at its end: name and JSON.
    sources: Vec<(&'static str, String)>,
    logprobs: Option<Box<Logprobs>>,
    /// Raw arguments of a call that has no object.
    malformed: Option<String>,
    /// Token of an answer that paused, as a JSON string.
    continuation: Option<String>,
    spans: Spans,
}

const DIALECT: &str = "gemini";

/// Finish reason of an answer that another request continues.
const PAUSED: &str = "CONTINUATION";

const TEXT: &str = "{\"text\":\"";
/// Content without content: a chunk without parts makes chat objects forget the answer.
const EMPTY: &str = "{\"role\":\"model\",\"parts\":[{\"text\":\"\"}]}";
const THOUGHT: &str = "{\"thought\":true,\"text\":\"";

fn write_names(object: &mut ObjectWriter<'_>, draft: &Draft) {
    object.text("modelVersion", &draft.head.model_id);
    object.text("responseId", &draft.head.request_id);
}

impl<const ARRAY: bool> GeminiWriter<ARRAY> {
    fn prefix(&self, kind: TextKind) -> &Prefix {
        if kind == TextKind::Thinking { &self.thought } else { &self.text }
    }

    /// Write a chunk with one part.
    fn part(draft: &mut Draft, part: &str) {
        let page_ref = &*draft;
        let chunk = object(|chunk| {
            chunk.value("candidates", |out| {
                write_list(out, [part], |out, part| {
                    write_members(out, |candidate| {
                        candidate.number("index", page_ref.answer_number());
                        candidate.object("content", |content| {
                            content.text("role", "model");
                            content.value("parts", |out| {
                                write_list(out, [part], std::string::String::push_str);
                            });
                        });
                    });
                });
            });
            write_names(chunk, page_ref);
        });
        draft.out.json_event("", &chunk);
    }

    fn finish_chunk(&mut self, draft: &mut Draft, ending: &Ending<'_>) {
        let reason = reason_word(draft, ending, self.continuation.is_some());
        let mut chunk = String::new();
        write_members(&mut chunk, |chunk| {
            chunk.value("candidates", |out| {
                write_list(out, [()], |out, ()| {
                    write_members(out, |candidate| {
                        candidate.number("index", draft.answer_number());
                        candidate.json("content", EMPTY);
                        self.write_end(candidate, reason);
                        write_facts(candidate, &facts_of(ending.details, &OF_CANDIDATE));
                    });
                });
            });
            write_usage(chunk, draft);
            write_names(chunk, draft);
            write_facts(chunk, &facts_of(ending.details, &OF_CHUNK));
        });
        draft.out.json_event("", &chunk);
    }

    /// Write the last members of a candidate.
    fn write_end(&self, candidate: &mut ObjectWriter<'_>, reason: &str) {
        if let Some(raw) = &self.malformed {
            candidate.text("finishReason", "MALFORMED_FUNCTION_CALL");
            candidate.text("finishMessage", raw);
        } else {
            candidate.text("finishReason", reason);
            if reason == "MALFORMED_FUNCTION_CALL" {
                // The source's own message is not in the contract.
                candidate.text("finishMessage", "");
            }
        }
        if let Some(token) = self.continuation.as_deref().filter(|_| reason == PAUSED) {
            candidate.json(CONTINUATION, token);
        }
        for (name, json) in &self.sources {
            candidate.json(name, json);
        }
        let has_grounding = self.sources.iter().any(|(name, _)| *name == "groundingMetadata");
        if !self.annotations.is_empty() && !has_grounding {
            candidate.object("groundingMetadata", |grounding| {
                grounding.value("groundingChunks", |out| {
                    write_list(out, &self.annotations, |out, json| out.push_str(json));
                });
            });
        }
        if let Some(logprobs) = self.logprobs.as_deref().filter(|logprobs| !logprobs.is_empty()) {
            candidate.object("logprobsResult", |result| write_logprobs(result, logprobs));
        }
    }

    /// Keep the token of an answer that paused, which the last chunk has.
    fn keep_continuation(&mut self, state: Option<&str>) {
        let Some(json) = state else { return };
        let state = State::read(json);
        if state.dialect == DIALECT
            && let Some(token) = state.text_member(CONTINUATION)
        {
            self.continuation = Some(token.to_owned());
        }
    }

    /// Keep what the last chunk has, and return the own sources of the text.
    fn keep_extras(
        &mut self,
        draft: &mut Draft,
        extras: Extras<'_>,
    ) -> Vec<(&'static str, String)> {
        let mut sources = Vec::new();
        if let Some(json) = extras.annotations {
            for annotation in annotations::list(json) {
                if let Some(source) = own_source(annotation) {
                    sources.push(source);
                    continue;
                }
                match annotations::citation(annotation) {
                    Some(citation) => self.annotations.push(object(|chunk| {
                        chunk.object("web", |web| {
                            web.text("uri", &citation.url);
                            web.text("title", citation.title.as_deref().unwrap_or(""));
                        });
                    })),
                    None => draft.notes.add("annotations", "an annotation without an address"),
                }
            }
        }
        if let Some(logprobs) = extras.logprobs {
            self.logprobs.get_or_insert_default().append(logprobs);
        }
        sources
    }

    /// Keep what the last chunk has, and write the own sources of the text as they come.
    fn extras(&mut self, draft: &mut Draft, extras: Extras<'_>) {
        for (name, json) in self.keep_extras(draft, extras) {
            let page_ref = &*draft;
            let chunk = object(|chunk| {
                chunk.value("candidates", |out| {
                    write_list(out, [()], |out, ()| {
                        write_members(out, |candidate| {
                            candidate.number("index", page_ref.answer_number());
                            candidate.json("content", EMPTY);
                            candidate.json(name, &json);
                        });
                    });
                });
                write_names(chunk, page_ref);
            });
            draft.out.json_event("", &chunk);
        }
    }
}

/// Return the name and the JSON of an annotation that is Gemini's own, such as `groundingMetadata`.
fn own_source(annotation: &str) -> Option<(&'static str, String)> {
    let kind = annotations::kind(annotation);
    let name = METADATA.into_iter().find(|name| *name == kind)?;
    let (_, json) = members(annotation).into_iter().find(|(key, _)| key == name)?;
    let mut out = String::new();
    write_compact(&mut out, json);
    out.starts_with('{').then_some((name, out))
}

/// Return the finish reason.
///
/// `CONTINUATION` makes the clients go on by themselves, which needs a token.  An error that the source does not name as Gemini
/// does is `OTHER`, but a word of an error beside calls, because `OTHER` lets them run.
fn reason_word<'a>(draft: &mut Draft, ending: &Ending<'a>, has_token: bool) -> &'a str {
    let word = finish_word(draft, ending, &FACTS.finish_reasons, WORDS, false);
    let is_named = ending.reason != FinishReason::Error || ending.raw == Some(word);
    if is_named && (word != PAUSED || has_token) {
        return word;
    }
    note_reason(draft, ending);
    if ending.forbids_calls() { word } else { "OTHER" }
}

fn write_usage(chunk: &mut ObjectWriter<'_>, draft: &Draft) {
    let usage = &draft.head.usage;
    if usage.input.is_none() && usage.output.is_none() {
        return;
    }
    let reasoning = usage.reasoning.map(|count| count.min(usage.output.unwrap_or(count)));
    chunk.object("usageMetadata", |object| {
        optional(object, "promptTokenCount", usage.input);
        let within = |cached: &u64| usage.input.is_none_or(|input| *cached <= input);
        optional(object, "cachedContentTokenCount", usage.cache_read.filter(within));
        optional(
            object,
            "candidatesTokenCount",
            usage.output.map(|output| output.saturating_sub(reasoning.unwrap_or(0))),
        );
        optional(object, "thoughtsTokenCount", reasoning);
        optional(object, "totalTokenCount", Counts::known(draft).map(Counts::total));
    });
}

fn write_error(body: &mut ObjectWriter<'_>, failure: &Failure<&str>) -> u16 {
    let (word, status) = FACTS.errors.word(failure.code);
    // The JavaScript client takes any other code for an empty chunk.
    let status = status.clamp(400, 599);
    body.object("error", |error| {
        error.number("code", status);
        error.text("message", errors::message(failure));
        error.text("status", word.unwrap_or("INTERNAL"));
    });
    status
}

impl<const ARRAY: bool> Writer for GeminiWriter<ARRAY> {
    const NAME: &'static str = if ARRAY { "gemini-array" } else { DIALECT };
    const DIALECT: &'static str = DIALECT;
    const FORM: Form = if ARRAY { Form::JsonArray } else { Form::Sse };
    const ORDER: Order = Order::Serial;
    const WHOLE_CALLS: bool = true;
    const HAS_ANSWERS: bool = true;
    const ERROR_REASON_FAILS: bool = false;

    fn head(&mut self, draft: &mut Draft) {
        let begin = |part: &'static str| {
            let number = draft.answer_number();
            move |out: &mut String| {
                out.push_str("{\"candidates\":[{\"index\":");
                out.push_str(&number.to_string());
                out.push_str(",\"content\":{\"role\":\"model\",\"parts\":[");
                out.push_str(part);
            }
        };
        draft.out.prepare(&mut self.text, "", begin(TEXT));
        draft.out.prepare(&mut self.thought, "", begin(THOUGHT));
        self.rest = Out::rest(|out| {
            out.push_str("\"}]}}],");
            let names = object(|names| write_names(names, draft));
            out.push_str(names.strip_prefix('{').unwrap_or(""));
        });
    }

    fn open_text(&mut self, _: &mut Draft, part: &TextPart) {
        self.spans.open(part);
    }

    #[inline]
    fn text(&mut self, draft: &mut Draft, part: &TextPart, text: &str, extras: Extras<'_>) {
        if !extras.is_empty() {
            self.extras(draft, extras);
        }
        if text.is_empty() {
            return;
        }
        if draft.settings.envelope {
            self.spans.add(part, text);
        }
        let prefix = self.prefix(part.kind);
        draft.out.repeat(prefix);
        draft.out.escaped(text).piece(&self.rest);
        draft.out.finish(prefix);
    }

    fn close_text(&mut self, draft: &mut Draft, part: &TextPart) {
        self.keep_continuation(part.state.as_deref());
        // The clients keep each chunk as a part, and the signature follows its text.
        let owner = Owner { span: self.spans.of(part), ..Owner::thinking(part.redacted) };
        if let Some(signature) = signature(draft, part.state.as_deref(), &owner) {
            Self::part(draft, &text_part("", part.kind, Some(&signature)));
        }
    }

    fn bare(&mut self, draft: &mut Draft, part: &TextPart) {
        self.spans.open(part);
        self.close_text(draft, part);
    }

    fn late(&mut self, draft: &mut Draft, part: &TextPart, extras: Extras<'_>) {
        self.extras(draft, extras);
        if part.state.is_some() {
            draft.notes.add("provider_state", "provider state that came after its part");
        }
    }

    fn open_call(&mut self, _: &mut Draft, _: &Call) {}

    fn args(&mut self, _: &mut Draft, _: &Call, _: &str) {}

    fn close_call(&mut self, _: &mut Draft, _: &Call) -> bool {
        false
    }

    fn whole_call(&mut self, draft: &mut Draft, call: &Call) -> bool {
        if let Some(part) = call_part(draft, call) {
            Self::part(draft, &part);
            return true;
        }
        draft.notes.add("arguments", "a call whose arguments are no JSON object");
        self.malformed = Some(format!("{}: {}", call.name, call.args));
        false
    }

    fn whole_part(&mut self, draft: &mut Draft, part: &WholePart) {
        if let Some(part) = whole_part(draft, part) {
            Self::part(draft, &part);
        }
    }

    fn finish(&mut self, draft: &mut Draft, ending: &Ending<'_>) {
        self.finish_chunk(draft, ending);
        if draft.answer.is_none() {
            self.end(draft);
        }
    }

    fn fail(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        if failure.code == ErrorCode::ContentBlocked {
            let reason = FinishReason::ContentFilter;
            let ending =
                Ending { reason, has_calls: false, raw: failure.provider_code, details: None };
            self.finish_chunk(draft, &ending);
        } else {
            draft.out.event("", |event| {
                write_error(event, failure);
            });
        }
        self.end(draft);
    }

    fn end(&mut self, draft: &mut Draft) {
        if ARRAY {
            draft.out.end_array();
        }
    }

    fn keep_alive(&mut self, draft: &mut Draft) {
        Self::part(draft, "{\"text\":\"\"}");
    }

    fn refusal(draft: &mut Draft, failure: &Failure<&str>) -> (u16, String) {
        let mut status = 500;
        if failure.code == ErrorCode::ContentBlocked {
            let known = ["SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"];
            let reason =
                failure.provider_code.filter(|word| known.contains(word)).unwrap_or("OTHER");
            let body = object(|body| {
                body.object("promptFeedback", |feedback| {
                    feedback.text("blockReason", reason);
                    feedback.text("blockReasonMessage", errors::message(failure));
                });
                write_names(body, draft);
            });
            return (200, body);
        }
        let body = object(|body| status = write_error(body, failure));
        (status, body)
    }

    fn body(draft: &mut Draft, message: &MessageAssembler) -> Option<String> {
        Some(whole_chunk(draft, &[(0, message)]))
    }

    fn body_of_answers(draft: &mut Draft, answers: &Answers<'_>) -> Option<String> {
        Some(whole_chunk(draft, answers))
    }
}

/// Return the answers as one chunk.
fn whole_chunk(draft: &mut Draft, answers: &Answers<'_>) -> String {
    let candidates: Vec<String> =
        answers.iter().map(|(number, message)| candidate(draft, *number, message)).collect();
    object(|chunk| {
        chunk.value("candidates", |out| {
            write_list(out, &candidates, |out, candidate| out.push_str(candidate));
        });
        write_usage(chunk, draft);
        write_names(chunk, draft);
        let details = answers.iter().find_map(|(_, message)| message.details());
        write_facts(chunk, &facts_of(details, &OF_CHUNK));
    })
}

/// Facts of a candidate.
const OF_CANDIDATE: [&str; 2] = ["avgLogprobs", "safetyRatings"];

/// Facts beside the candidates.
const OF_CHUNK: [&str; 2] = ["createTime", "modelStatus"];

/// Return a candidate of a whole answer.
fn candidate(draft: &mut Draft, number: u64, message: &MessageAssembler) -> String {
    let mut writer = GeminiWriter::<false>::default();
    let mut parts: Vec<String> = Vec::new();
    let mut calls = 0;
    for (index, part) in message.parts().iter().enumerate() {
        match part {
            Part::Text(folded) | Part::Thinking(folded) => {
                let kind =
                    if matches!(part, Part::Text(_)) { TextKind::Text } else { TextKind::Thinking };
                for json in &folded.annotations {
                    let extras = Extras { annotations: Some(json), logprobs: None };
                    for (name, json) in writer.keep_extras(draft, extras) {
                        writer.sources.retain(|(known, _)| *known != name);
                        writer.sources.push((name, json));
                    }
                }
                writer.keep_continuation(folded.provider_state.as_deref());
                let signature = signature(
                    draft,
                    folded.provider_state.as_deref(),
                    &Owner::thinking(folded.redacted),
                );
                if !folded.text.is_empty() || signature.is_some() {
                    parts.push(text_part(&folded.text, kind, signature.as_deref()));
                }
            }
            Part::ToolCall(folded) => {
                let call = Call::from_fold(index, calls, folded);
                if call.incomplete || call.name.is_empty() {
                    draft.notes.add("call", "a call that was cut off");
                } else if let Some(part) = call_part(draft, &call) {
                    calls += 1;
                    parts.push(part);
                } else {
                    draft.notes.add("arguments", "a call whose arguments are no JSON object");
                    writer.malformed = Some(format!("{}: {}", call.name, call.args));
                }
            }
            Part::Whole(json) => {
                parts.extend(whole_part(draft, &WholePart { index, json: json.clone() }));
            }
        }
    }
    writer.logprobs = message.logprobs().map(|logprobs| Box::new((**logprobs).clone()));
    let has_token = writer.continuation.is_some();
    let reason = reason_word(draft, &Ending::of(message, calls), has_token);
    if parts.is_empty() {
        parts.push("{\"text\":\"\"}".to_owned());
    }
    object(|candidate| {
        candidate.number("index", number);
        candidate.object("content", |content| {
            content.text("role", "model");
            content.value("parts", |out| {
                write_list(out, &parts, |out, part| out.push_str(part));
            });
        });
        writer.write_end(candidate, reason);
        write_facts(candidate, &facts_of(message.details(), &OF_CANDIDATE));
    })
}
