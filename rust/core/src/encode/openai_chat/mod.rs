//! Writer of OpenAI Chat Completions.
//!
//! ```text
//! stream = head, { text | thinking | refusal | call | arguments | image | audio | rider }, finish, [usage], "[DONE]"
//! ```
//!
//! Laws: only the head contains the role.  Calls are numbered densely and written one after another.  An error ends the
//! stream without `[DONE]`.
//! Source: platform.openai.com, "Chat: streaming"; types of the official clients
//! (docs/protocols/encoding.md#openai-chat).

mod body;
mod media;
mod members;
mod states;

use body::chat_body;
use media::{Medium, Sources, is_transcript, medium};
use members::{FINISH_REASONS, facts_of_chat, own_extra, write_all, write_call, write_usage};
use states::{OfCall, States};

use crate::contract::{Failure, InputFormat};
use crate::dialect::openai_chat::facts::{AUDIO, FACTS};
use crate::encode::audio::rest_of_audio;
use crate::encode::{
    Answers, Call, Counts, Draft, Ending, Extras, Fact, Form, Order, Prefix, TextKind, TextPart,
    WholePart, Writer, errors, finish_word, write_compact,
};
use crate::fold::MessageAssembler;
use crate::json::{ObjectWriter, object, write_list, write_members};

/// Writer of Chat chunks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ChatWriter {
    text: Prefix,
    thinking: Prefix,
    refusal: Prefix,
    transcript: Prefix,
    args: Prefix,
    /// Ends of chunks with and without `logprobs`.
    end: String,
    /// Number of the call that `args` is for, and its format.
    call: Option<(usize, InputFormat)>,
    thinking_parts: usize,
    refused: bool,
    /// Annotations leave once before the finish, lists of sources with it.
    sources: Sources,
    /// Number of the images so far.
    images: usize,
    /// Number of the part that is the transcript of audio.
    transcript_part: Option<usize>,
    /// Bytes of audio that were written before its part.
    audio_said: usize,
    states: States,
}

fn begin_chunk(draft: &Draft, out: &mut String) {
    let mut chunk = ObjectWriter::begin(out);
    chunk.text("id", &draft.head.request_id);
    chunk.text("object", "chat.completion.chunk");
    chunk.number("created", draft.head.created_seconds());
    chunk.text("model", &draft.head.model_id);
}

/// Begin a chunk with a choice, up to the value of its `delta`.
fn begin_choice(draft: &Draft, out: &mut String) {
    begin_chunk(draft, out);
    out.push_str(",\"choices\":[{\"index\":");
    out.push_str(&draft.answer_number().to_string());
    out.push_str(",\"delta\":");
}

impl ChatWriter {
    fn prepare(&mut self, draft: &Draft) {
        let delta = |member: &'static str| {
            move |out: &mut String| {
                begin_choice(draft, out);
                out.push_str("{\"");
                out.push_str(member);
                out.push_str("\":\"");
            }
        };
        draft.out.prepare(&mut self.text, "", delta("content"));
        draft.out.prepare(&mut self.thinking, "", delta(draft.settings.reasoning_member));
        draft.out.prepare(&mut self.refusal, "", delta("refusal"));
        draft.out.prepare(&mut self.transcript, "", |out| {
            begin_choice(draft, out);
            out.push_str("{\"audio\":{\"transcript\":\"");
        });
        "}],\"usage\":null}".clone_into(&mut self.end);
        if !draft.settings.include_usage {
            "}]}".clone_into(&mut self.end);
        }
    }

    /// Write a chunk whose `delta` has the members that `fill` writes.
    fn chunk(
        &self,
        draft: &mut Draft,
        finish: Option<(&str, &[Fact<'_>])>,
        fill: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut prefix = Prefix::default();
        draft.out.prepare(&mut prefix, "", |out| {
            begin_choice(draft, out);
            write_members(out, fill);
        });
        draft.out.repeat(&prefix);
        match finish {
            Some((reason, _)) => draft
                .out
                .piece(",\"logprobs\":null,\"finish_reason\":\"")
                .escaped(reason)
                .piece("\""),
            None => draft.out.piece(",\"logprobs\":null,\"finish_reason\":null"),
        };
        let lists = finish.map_or(&[][..], |_| &self.sources.lists);
        let (choice, rest) = self.end.split_at_checked("}]".len()).unwrap_or_default();
        draft.out.piece(choice);
        for (name, list) in lists {
            draft.out.piece(",\"").piece(name).piece("\":").value(|out| out.push_str(list));
        }
        for (name, json) in finish.map_or(&[][..], |(_, facts)| facts) {
            let json = |out: &mut String| write_compact(out, json);
            draft.out.piece(",\"").escaped(name).piece("\":").value(json);
        }
        draft.out.piece(rest);
        draft.out.finish(&prefix);
    }

    /// Write provider state of a part: members of the own dialect, or a signature in the place that the caller chose.
    fn state(&mut self, draft: &mut Draft, part: &TextPart) {
        if is_transcript(part.state.as_deref()) {
            // The audio has its own members.
        } else if let Some(data) = self.states.of_text(draft, part) {
            self.chunk(draft, None, |delta| write_all(delta, &data));
        }
    }
}

impl Writer for ChatWriter {
    const NAME: &'static str = "openai-chat";
    const DIALECT: &'static str = "openai-chat";
    const FORM: Form = Form::Sse;
    const ORDER: Order = Order::SerialCalls;
    const FREE_TEXT: bool = true;
    const HAS_ANSWERS: bool = true;

    fn head(&mut self, draft: &mut Draft) {
        self.prepare(draft);
        self.chunk(draft, None, |delta| {
            delta.text("role", "assistant");
            delta.text("content", "");
        });
    }

    fn open_text(&mut self, draft: &mut Draft, part: &TextPart) {
        if part.kind == TextKind::Thinking {
            self.thinking_parts += 1;
            if self.thinking_parts > 1 {
                self.text(draft, part, "\n\n", Extras::default());
            }
        }
        if part.kind == TextKind::Text && is_transcript(part.state.as_deref()) {
            self.transcript_part = Some(part.index);
        }
        self.states.spans.open(part);
    }

    #[inline]
    fn text(&mut self, draft: &mut Draft, part: &TextPart, text: &str, extras: Extras<'_>) {
        if let Some(json) = extras.annotations {
            self.sources.keep(draft, json);
            if text.is_empty() && extras.logprobs.is_none() {
                return;
            }
        }
        let (prefix, end) = match part.kind {
            TextKind::Thinking if !text.is_empty() => (&self.thinking, "\"}"),
            TextKind::Text if part.refusal => {
                self.refused = true;
                (&self.refusal, "\"}")
            }
            TextKind::Text if self.transcript_part == Some(part.index) && !text.is_empty() => {
                (&self.transcript, "\"}}")
            }
            // Log probabilities without a text ride on an empty content.
            TextKind::Text | TextKind::Thinking => (&self.text, "\"}"),
        };
        if draft.settings.envelope {
            self.states.spans.add(part, text);
        }
        let out = &mut draft.out;
        out.repeat(prefix);
        out.escaped(text).piece(end);
        match extras.logprobs {
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
        out.finish(prefix);
    }

    fn close_text(&mut self, draft: &mut Draft, part: &TextPart) {
        if draft.settings.envelope {
            self.states.spans.end(part);
        }
        self.state(draft, part);
    }

    fn bare(&mut self, draft: &mut Draft, part: &TextPart) {
        self.states.spans.open(part);
        self.close_text(draft, part);
    }

    fn late(&mut self, draft: &mut Draft, part: &TextPart, extras: Extras<'_>) {
        self.state(draft, part);
        if !extras.is_empty() {
            self.text(draft, part, "", extras);
        }
    }

    fn open_call(&mut self, draft: &mut Draft, call: &Call) {
        let extra = own_extra(&draft.settings, call);
        self.chunk(draft, None, |delta| {
            delta.value("tool_calls", |out| {
                write_list(out, [call], |out, call| {
                    write_members(out, |item| {
                        item.number("index", call.ordinal);
                        write_call(item, call, "");
                        if let Some(extra) = extra {
                            item.json("extra_content", extra);
                        }
                    });
                });
            });
        });
        self.call = None;
    }

    #[inline]
    fn args(&mut self, draft: &mut Draft, call: &Call, text: &str) {
        if self.call != Some((call.ordinal, call.format)) {
            self.call = Some((call.ordinal, call.format));
            let member = if call.format == InputFormat::Text {
                "\"custom\":{\"input\":\""
            } else {
                "\"function\":{\"arguments\":\""
            };
            let draft = &*draft;
            draft.out.prepare(&mut self.args, "", |out| {
                begin_choice(draft, out);
                out.push_str("{\"tool_calls\":[{\"index\":");
                out.push_str(&call.ordinal.to_string());
                out.push(',');
                out.push_str(member);
            });
        }
        draft.out.repeat(&self.args);
        draft
            .out
            .escaped(text)
            .piece("\"}}]},\"logprobs\":null,\"finish_reason\":null")
            .piece(&self.end);
        draft.out.finish(&self.args);
    }

    fn close_call(&mut self, draft: &mut Draft, call: &Call) -> bool {
        match self.states.of_call(draft, call) {
            Some(OfCall::Call(data)) => self.chunk(draft, None, |delta| {
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
                self.chunk(draft, None, |delta| write_all(delta, &data));
            }
            None => {}
        }
        !call.incomplete
    }

    fn whole_call(&mut self, _: &mut Draft, _: &Call) -> bool {
        false
    }

    fn whole_part(&mut self, draft: &mut Draft, part: &WholePart) {
        match medium(part, self.images) {
            Ok(Medium::Image(image)) => {
                self.images += 1;
                self.chunk(draft, None, |delta| {
                    delta.value("images", |out| {
                        write_list(out, [image], |out, one| out.push_str(&one));
                    });
                });
            }
            Ok(Medium::Audio(audio)) => {
                if let Some(rest) = rest_of_audio(&audio, std::mem::take(&mut self.audio_said)) {
                    self.chunk(draft, None, |delta| delta.json(AUDIO, &rest));
                }
            }
            Ok(Medium::Tools(tools)) => {
                self.chunk(draft, None, |delta| delta.json("executed_tools", &tools));
            }
            Err(what) => draft.notes.add("part", &what),
        }
    }

    fn audio(&mut self, draft: &mut Draft, data: &str) {
        self.audio_said += data.len();
        self.chunk(draft, None, |delta| delta.object(AUDIO, |audio| audio.text("data", data)));
    }

    fn finish(&mut self, draft: &mut Draft, ending: &Ending<'_>) {
        if !self.sources.annotations.is_empty() {
            let annotations = std::mem::take(&mut self.sources.annotations);
            self.chunk(draft, None, |delta| {
                delta.value("annotations", |out| {
                    write_list(out, &annotations, |out, json| out.push_str(json));
                });
            });
        }
        let word = finish_word(draft, ending, &FACTS.finish_reasons, FINISH_REASONS, self.refused);
        let facts = facts_of_chat(ending.details);
        self.chunk(draft, Some((word, &facts)), |_| {});
        if draft.answer.is_none() {
            self.end_answers(draft);
        }
    }

    fn end_answers(&mut self, draft: &mut Draft) {
        if draft.settings.include_usage {
            if let Some(counts) = Counts::known(draft) {
                let mut prefix = Prefix::default();
                draft.out.prepare(&mut prefix, "", |out| {
                    begin_chunk(draft, out);
                    out.push_str(",\"choices\":[],\"usage\":");
                    write_members(out, |usage| write_usage(usage, counts));
                    out.push('}');
                });
                draft.out.repeat(&prefix);
                draft.out.finish(&prefix);
            } else if draft.head.has_usage {
                draft.notes.add("usage", "a usage record without both counts");
            }
        }
        draft.out.marker("data: [DONE]\n\n");
    }

    fn fail(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        draft.out.event("", |event| {
            event.object("error", |error| {
                errors::openai_members(error, &FACTS.errors, failure);
            });
        });
    }

    fn keep_alive(&mut self, draft: &mut Draft) {
        draft.out.marker(": keep-alive\n\n");
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
        Some(chat_body(draft, &[(0, message)]))
    }

    fn body_of_answers(draft: &mut Draft, answers: &Answers<'_>) -> Option<String> {
        Some(chat_body(draft, answers))
    }
}
