//! Writer of the content-block events of langchain-core, one JSON object a line.
//!
//! ```text
//! stream = message-start, { content-block-start, content-block-delta*, content-block-finish }, message-finish
//! ```
//!
//! Laws: blocks are numbered densely in the order in which they start.  Every block is finished with its whole content, in the order of the parts,
//! because the accumulator keeps the order of finishes.  A failure is the event `error`; an adapter must raise it.
//! Source: langchain-protocol and `chat_model_stream` of langchain-core (docs/protocols/encoding.md#langchain).

use std::collections::BTreeMap;

use crate::contract::Failure;
use crate::encode::{
    Call, Counts, Draft, Ending, Extras, Form, Order, Prefix, State, TextKind, TextPart,
    WholeContent, WholePart, Writer, annotations, argument_object, errors, optional, write_compact,
};
use crate::fold::MessageAssembler;
use crate::json::{ObjectWriter, object, write_list};

#[derive(Clone, Debug, PartialEq)]
struct Open {
    prefix: Prefix,
    /// Text or arguments so far.
    text: String,
    /// JSON of the annotations.
    annotations: Vec<String>,
    /// The finished block, which waits for earlier ones.
    done: Option<String>,
}

/// Writer of content-block events.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LangChainWriter {
    /// Unfinished blocks by number.
    open: BTreeMap<usize, Open>,
    /// Numbers of the unfinished blocks by part.
    numbers: BTreeMap<usize, usize>,
    /// Number of the blocks so far.
    blocks: usize,
}

fn event(draft: &mut Draft, name: &'static str, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
    draft.out.event("", |event| {
        event.text("event", name);
        fill(event);
    });
}

fn write_extras(block: &mut ObjectWriter<'_>, state: Option<&str>) {
    let Some(json) = state else { return };
    let state = State::read(json);
    block.object("extras", |extras| {
        for key in ["signature", "thoughtSignature"] {
            if let Some(signature) = state.text_member(key) {
                extras.json("signature", signature);
                break;
            }
        }
        extras.value("provider_state", |out| write_compact(out, json));
    });
}

impl LangChainWriter {
    fn start(&mut self, draft: &mut Draft, part: usize, block: &str, delta: &str) {
        let index = self.blocks;
        self.blocks += 1;
        event(draft, "content-block-start", |event| {
            event.number("index", index);
            event.json("content", block);
        });
        let mut prefix = Prefix::default();
        draft.out.prepare(&mut prefix, "", |out| {
            out.push_str("{\"event\":\"content-block-delta\",\"index\":");
            out.push_str(&index.to_string());
            out.push_str(",\"delta\":");
            out.push_str(delta);
        });
        let (text, annotations) = (String::new(), Vec::new());
        self.numbers.insert(part, index);
        self.open.insert(index, Open { prefix, text, annotations, done: None });
    }

    /// Return the unfinished block of a part.
    #[inline]
    fn block(&mut self, part: usize) -> Option<&mut Open> {
        self.open.get_mut(self.numbers.get(&part)?)
    }

    #[inline]
    fn more(&mut self, draft: &mut Draft, part: usize, text: &str) {
        if let Some(open) = self.block(part) {
            open.text.push_str(text);
            draft.out.repeat(&open.prefix);
            draft.out.escaped(text).piece("\"}}");
            draft.out.finish(&open.prefix);
        }
    }

    /// Finish a block, and write all whose turn it is.
    fn finish_block(
        &mut self,
        draft: &mut Draft,
        part: usize,
        block: impl FnOnce(&Open) -> String,
    ) {
        if let Some(open) = self.block(part) {
            open.done = Some(block(open));
        }
        self.numbers.remove(&part);
        while let Some(first) = self.open.first_entry()
            && let Some(block) = &first.get().done
        {
            let index = *first.key();
            event(draft, "content-block-finish", |event| {
                event.number("index", index);
                event.json("content", block);
            });
            first.remove();
        }
    }
}

impl Writer for LangChainWriter {
    const NAME: &'static str = "langchain";
    const DIALECT: &'static str = "";
    const FORM: Form = Form::Ndjson;
    const ORDER: Order = Order::Keyed;
    const LAZY_CALLS: bool = false;

    fn head(&mut self, draft: &mut Draft) {
        let (id, model) = (draft.head.request_id.clone(), draft.head.model_id.clone());
        event(draft, "message-start", |event| {
            event.text("role", "ai");
            event.text("id", &id);
            event.object("metadata", |metadata| {
                metadata.text("provider", "deltafold");
                metadata.text("model", &model);
            });
        });
    }

    fn open_text(&mut self, draft: &mut Draft, part: &TextPart) {
        let (block, delta) = match part.kind {
            TextKind::Text => {
                ("{\"type\":\"text\",\"text\":\"\"}", "{\"type\":\"text-delta\",\"text\":\"")
            }
            TextKind::Thinking => (
                "{\"type\":\"reasoning\",\"reasoning\":\"\"}",
                "{\"type\":\"reasoning-delta\",\"reasoning\":\"",
            ),
        };
        self.start(draft, part.index, block, delta);
    }

    #[inline]
    fn text(&mut self, draft: &mut Draft, part: &TextPart, text: &str, extras: Extras<'_>) {
        if !text.is_empty() {
            self.more(draft, part.index, text);
        }
        if let Some(json) = extras.annotations {
            let written = annotations::list(json).into_iter().map(citation);
            if let Some(open) = self.block(part.index) {
                open.annotations.extend(written);
            }
        }
        if extras.logprobs.is_some() {
            draft.notes.add("logprobs", "log probabilities");
        }
    }

    fn close_text(&mut self, draft: &mut Draft, part: &TextPart) {
        self.finish_block(draft, part.index, |open| {
            object(|block| {
                match part.kind {
                    TextKind::Text => {
                        block.text("type", "text");
                        block.text("text", &open.text);
                    }
                    TextKind::Thinking => {
                        block.text("type", "reasoning");
                        block.text("reasoning", &open.text);
                    }
                }
                if !open.annotations.is_empty() {
                    block.value("annotations", |out| {
                        write_list(out, &open.annotations, |out, json| out.push_str(json));
                    });
                }
                write_extras(block, part.state.as_deref());
            })
        });
    }

    fn bare(&mut self, draft: &mut Draft, part: &TextPart) {
        if part.state.is_some() {
            self.open_text(draft, part);
            self.close_text(draft, part);
        }
    }

    fn late(&mut self, draft: &mut Draft, part: &TextPart, extras: Extras<'_>) {
        if part.state.is_some() {
            draft.notes.add("provider_state", "provider state that came after its part");
        }
        if extras.annotations.is_some() {
            draft.notes.add("annotations", "annotations that came after their part");
        }
        if extras.logprobs.is_some() {
            draft.notes.add("logprobs", "log probabilities");
        }
    }

    fn open_call(&mut self, draft: &mut Draft, call: &Call) {
        let block = object(|block| {
            block.text("type", "tool_call_chunk");
            block.text("id", &call.id);
            block.text("name", &call.name);
            block.text("args", "");
        });
        self.start(draft, call.index, &block, "{\"type\":\"tool-call-delta\",\"args\":\"");
    }

    #[inline]
    fn args(&mut self, draft: &mut Draft, call: &Call, text: &str) {
        self.more(draft, call.index, text);
    }

    fn close_call(&mut self, draft: &mut Draft, call: &Call) -> bool {
        let mut is_whole = false;
        self.finish_block(draft, call.index, |open| {
            let args = argument_object(&open.text).filter(|_| !call.incomplete);
            is_whole = args.is_some();
            object(|block| {
                block.text("type", if args.is_some() { "tool_call" } else { "invalid_tool_call" });
                block.text("id", &call.id);
                block.text("name", &call.name);
                if let Some(args) = &args {
                    block.value("args", |out| write_compact(out, args));
                } else {
                    block.text("args", &open.text);
                    let why = if call.incomplete {
                        "the arguments were cut off"
                    } else {
                        "the arguments are no JSON object"
                    };
                    block.text("error", why);
                }
                write_extras(block, call.state.as_deref());
            })
        });
        is_whole
    }

    fn whole_call(&mut self, _: &mut Draft, _: &Call) -> bool {
        false
    }

    fn whole_part(&mut self, draft: &mut Draft, part: &WholePart) {
        let (skeleton, block) = match part.content() {
            WholeContent::Image { mime_type, data, url } => {
                let image = |content: bool| {
                    object(|block| {
                        block.text("type", "image");
                        if let Some(data) = data.filter(|_| content) {
                            block.json("base64", data);
                        }
                        if let Some(url) = url {
                            block.json("url", url);
                        }
                        block.text("mime_type", &mime_type);
                    })
                };
                (image(false), image(true))
            }
            _ => (
                "{\"type\":\"non_standard\",\"value\":{}}".to_owned(),
                object(|block| {
                    block.text("type", "non_standard");
                    block.value("value", |out| write_compact(out, &part.json));
                }),
            ),
        };
        self.start(draft, part.index, &skeleton, "");
        self.finish_block(draft, part.index, |_| block);
    }

    fn finish(&mut self, draft: &mut Draft, ending: &Ending<'_>) {
        let counts = Counts::known(draft);
        let cost = draft.head.usage.cost;
        event(draft, "message-finish", |event| {
            if let Some(counts) = counts {
                let (cache_read, cache_write) = counts.cache();
                event.object("usage", |usage| {
                    usage.number("input_tokens", counts.input);
                    usage.number("output_tokens", counts.output);
                    usage.number("total_tokens", counts.total());
                    if cache_read.is_some() || cache_write.is_some() {
                        usage.object("input_token_details", |details| {
                            optional(details, "cache_creation", cache_write);
                            optional(details, "cache_read", cache_read);
                        });
                    }
                    if let Some(reasoning) = counts.reasoning() {
                        usage.object("output_token_details", |details| {
                            details.number("reasoning", reasoning);
                        });
                    }
                });
            }
            event.object("metadata", |metadata| {
                metadata.text("finish_reason", ending.reason.as_str());
                if let Some(cost) = cost.filter(|cost| cost.is_finite()) {
                    metadata.number("cost", cost);
                }
            });
        });
    }

    fn fail(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        event(draft, "error", |event| {
            event.text("message", errors::message(failure));
            event.text("code", failure.code.as_str());
        });
    }

    /// An iterator of events in one process needs nothing that keeps it alive.
    fn keep_alive(&mut self, _: &mut Draft) {}

    fn refusal(_: &mut Draft, failure: &Failure<&str>) -> (u16, String) {
        errors::plain_refusal(failure)
    }

    fn body(_: &mut Draft, _: &MessageAssembler) -> Option<String> {
        None
    }
}

/// Return an annotation in LangChain's form: a citation of a page, or the provider's own.
fn citation(annotation: &str) -> String {
    match annotations::citation(annotation) {
        Some(citation) => object(|object| {
            object.text("type", "citation");
            object.text("url", &citation.url);
            if let Some(title) = &citation.title {
                object.text("title", title);
            }
            optional(object, "start_index", citation.start);
            optional(object, "end_index", citation.end);
        }),
        None => object(|object| {
            object.text("type", "non_standard_annotation");
            object.value("value", |out| write_compact(out, annotation));
        }),
    }
}
