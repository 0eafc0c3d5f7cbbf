//! Writer of OpenAI Chat Completions.
//!
//! ```text
//! stream = head, { text | thinking | refusal | call | arguments | image | audio | rider }, finish, [usage], "[DONE]"
//! ```
//!
//! Laws: only the head contains the role.  Calls are numbered densely and written one after another.  An error ends the
//! stream without `[DONE]`.
//! Source: platform.openai.com, "Chat: streaming"; types of the official clients (protocols/encode.md, section 2).

mod body;
mod media;
mod members;
mod states;

use body::chat_body;
use media::{Medium, Sources, is_transcript, medium};
use members::{FINISH_REASONS, own_extra, write_all, write_call, write_usage};
use states::{OfCall, States};

use crate::contract::{Failure, InputFormat};
use crate::dialect::openai_chat::facts::{AUDIO, FACTS};
use crate::encode::{
    Answers, Call, Counts, Ending, Form, Lead, Order, Page, Riders, TextKind, TextPart, WholePart,
    Writer, errors, finish_word,
};
use crate::fold::MessageAssembler;
use crate::json::{ObjectWriter, object, write_list, write_members};

/// Writer of Chat chunks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ChatWriter {
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
    /// Annotations leave once before the finish, lists of sources with it.
    sources: Sources,
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
        let lists = finish.map_or(&[][..], |_| &self.sources.lists);
        let (choice, rest) = self.end.split_at_checked("}]".len()).unwrap_or_default();
        page.out.piece(choice);
        for (name, list) in lists {
            page.out.piece(",\"").piece(name).piece("\":").value(|out| out.push_str(list));
        }
        page.out.piece(rest);
        page.out.finish(&lead);
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
            self.sources.keep(page, json);
            if text.is_empty() && riders.logprobs.is_none() {
                return;
            }
        }
        let (lead, end) = match part.kind {
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
        if page.settings.envelope {
            self.states.spans.add(part, text);
        }
        let out = &mut page.out;
        out.repeat(lead);
        out.escaped(text).piece(end);
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
        if page.settings.envelope {
            self.states.spans.end(part);
        }
        self.state(page, part);
    }

    fn bare(&mut self, page: &mut Page, part: &TextPart) {
        self.states.spans.open(part);
        self.close_text(page, part);
    }

    fn late(&mut self, page: &mut Page, part: &TextPart, riders: Riders<'_>) {
        self.state(page, part);
        if !riders.is_empty() {
            self.text(page, part, "", riders);
        }
    }

    fn open_call(&mut self, page: &mut Page, call: &Call) {
        let extra = own_extra(&page.settings, call);
        self.chunk(page, None, |delta| {
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
                        write_list(out, [image], |out, one| out.push_str(&one));
                    });
                });
            }
            Ok(Medium::Audio(audio)) => self.chunk(page, None, |delta| delta.json(AUDIO, &audio)),
            Err(what) => page.notes.add("part", &what),
        }
    }

    fn finish(&mut self, page: &mut Page, ending: &Ending<'_>) {
        if !self.sources.annotations.is_empty() {
            let annotations = std::mem::take(&mut self.sources.annotations);
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
