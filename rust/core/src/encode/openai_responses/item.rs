//! `Item`: an item of the output while it is open.

use super::state::Origin;
use crate::contract::Logprobs;
use crate::encode::{argument_object, write_compact};
use crate::json::{ObjectWriter, object, write_list, write_members, write_string};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Refusal,
    Summary,
    RawReasoning,
    Function,
    Custom,
    /// A search for tools that the client runs: its arguments are an object, and no event brings a piece of them.
    Search,
}

/// Item of the output.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    kind: Kind,
    pub(super) id: String,
    /// Id and name of a call, "" for other items.
    call_id: Box<str>,
    pub(super) name: Box<str>,
    pub(super) namespace: Option<Box<str>>,
    /// Members of a call that belong to the API, as the source named them when the call began.
    pub(super) origin: Origin,
    /// Text or arguments so far.
    pub(super) text: String,
    /// JSON of the annotations.
    pub(super) annotations: Vec<String>,
    /// Tokens of the done form, without brackets.
    logprobs: String,
    /// Log probabilities that came without a text.
    pub(super) pending: Option<Box<Logprobs>>,
    /// JSON string of the encrypted reasoning.
    pub(super) encrypted: Option<String>,
    /// JSON string of the phase of a message.
    pub(super) phase: Option<String>,
}

impl Item {
    fn new(kind: Kind, id: String) -> Self {
        Self {
            kind,
            id,
            call_id: Box::default(),
            name: Box::default(),
            namespace: None,
            origin: Origin::default(),
            text: String::new(),
            annotations: Vec::new(),
            logprobs: String::new(),
            pending: None,
            encrypted: None,
            phase: None,
        }
    }

    pub(super) fn message(id: String, refusal: bool) -> Self {
        Self::new(if refusal { Kind::Refusal } else { Kind::Message }, id)
    }

    pub(super) fn reasoning(id: String, raw: bool) -> Self {
        Self::new(if raw { Kind::RawReasoning } else { Kind::Summary }, id)
    }

    pub(super) fn call(id: String, call_id: &str, name: &str, kind: Kind) -> Self {
        Self { call_id: call_id.into(), name: name.into(), ..Self::new(kind, id) }
    }

    /// Return true if the JSON string holds the id of this item.
    pub(super) fn has_id(&self, json: &str) -> bool {
        let id = crate::json::Reader::trusted(json).opt_string();
        id.ok().flatten().is_some_and(|id| id.is(&self.id))
    }

    pub(super) fn is_search(&self) -> bool {
        self.kind == Kind::Search
    }

    pub(super) fn is_reasoning(&self) -> bool {
        matches!(self.kind, Kind::Summary | Kind::RawReasoning)
    }

    /// Return true for raw reasoning, which has no summary.
    pub(super) fn is_raw(&self) -> bool {
        self.kind == Kind::RawReasoning
    }

    pub(super) fn is_refusal(&self) -> bool {
        self.kind == Kind::Refusal
    }

    pub(super) fn has_logprobs(&self) -> bool {
        self.kind == Kind::Message
    }

    pub(super) fn keep_logprobs(&mut self, logprobs: &Logprobs) {
        let mut list = String::new();
        logprobs.write_openai(&mut list, true);
        if !self.logprobs.is_empty() {
            self.logprobs.push(',');
        }
        self.logprobs.push_str(list.trim_start_matches('[').trim_end_matches(']'));
    }

    pub(super) fn logprobs_json(&self) -> String {
        format!("[{}]", self.logprobs)
    }

    /// Return the event that begins the part of the item, and the name of the part's number.
    pub(super) fn part_added(&self) -> Option<(&'static str, &'static str)> {
        match self.kind {
            Kind::Message | Kind::Refusal | Kind::RawReasoning => {
                Some(("response.content_part.added", "content_index"))
            }
            Kind::Summary => Some(("response.reasoning_summary_part.added", "summary_index")),
            Kind::Function | Kind::Custom | Kind::Search => None,
        }
    }

    /// Return the event that ends the part of the item, and the name of the part's number.
    pub(super) fn part_done(&self) -> Option<(&'static str, &'static str)> {
        match self.kind {
            Kind::Message | Kind::Refusal | Kind::RawReasoning => {
                Some(("response.content_part.done", "content_index"))
            }
            Kind::Summary => Some(("response.reasoning_summary_part.done", "summary_index")),
            Kind::Function | Kind::Custom | Kind::Search => None,
        }
    }

    pub(super) fn delta_event(&self) -> &'static str {
        match self.kind {
            Kind::Message => "response.output_text.delta",
            Kind::Refusal => "response.refusal.delta",
            Kind::Summary => "response.reasoning_summary_text.delta",
            Kind::RawReasoning => "response.reasoning_text.delta",
            Kind::Function => "response.function_call_arguments.delta",
            Kind::Custom => "response.custom_tool_call_input.delta",
            Kind::Search => "",
        }
    }

    /// Return the event that repeats the text, and the member that holds it; "" if there is none.
    pub(super) fn done_event(&self) -> (&'static str, &'static str) {
        match self.kind {
            Kind::Message => ("response.output_text.done", "text"),
            Kind::Refusal => ("response.refusal.done", "refusal"),
            Kind::Summary => ("response.reasoning_summary_text.done", "text"),
            Kind::RawReasoning => ("response.reasoning_text.done", "text"),
            Kind::Function => ("response.function_call_arguments.done", "arguments"),
            Kind::Custom => ("response.custom_tool_call_input.done", "input"),
            Kind::Search => ("", ""),
        }
    }

    /// Return the part of the item; without its text if it is a skeleton.
    pub(super) fn part_json(&self, skeleton: bool) -> String {
        object(|part| self.write_part(part, skeleton))
    }

    fn write_part(&self, part: &mut ObjectWriter<'_>, skeleton: bool) {
        let text = if skeleton { "" } else { self.text.as_str() };
        match self.kind {
            Kind::Refusal => {
                part.text("type", "refusal");
                part.text("refusal", text);
            }
            Kind::Summary => {
                part.text("type", "summary_text");
                part.text("text", text);
            }
            Kind::RawReasoning => {
                part.text("type", "reasoning_text");
                part.text("text", text);
            }
            Kind::Message | Kind::Function | Kind::Custom | Kind::Search => {
                part.text("type", "output_text");
                part.text("text", text);
                part.value("annotations", |out| {
                    write_list(out, &self.annotations, |out, json| out.push_str(json));
                });
                part.json("logprobs", &self.logprobs_json());
            }
        }
    }

    /// Return the item; without its text if it is a skeleton.
    pub(super) fn json(&self, status: &str, skeleton: bool) -> String {
        let parts = |out: &mut String| {
            write_list(out, (!skeleton).then_some(()), |out, ()| {
                write_members(out, |part| self.write_part(part, false));
            });
        };
        let text = if skeleton { "" } else { self.text.as_str() };
        object(|item| {
            item.text("id", &self.id);
            match self.kind {
                Kind::Message | Kind::Refusal => {
                    item.text("type", "message");
                    item.text("status", status);
                    item.text("role", "assistant");
                    item.value("content", parts);
                    if let Some(phase) = &self.phase {
                        item.json("phase", phase);
                    }
                }
                Kind::Summary | Kind::RawReasoning => {
                    item.text("type", "reasoning");
                    if self.kind == Kind::Summary {
                        item.value("summary", parts);
                    } else {
                        item.json("summary", "[]");
                        item.value("content", parts);
                    }
                    if let Some(encrypted) = &self.encrypted {
                        item.json("encrypted_content", encrypted);
                    }
                }
                Kind::Function | Kind::Custom => {
                    let custom = self.kind == Kind::Custom;
                    item.text("type", if custom { "custom_tool_call" } else { "function_call" });
                    item.text("status", status);
                    item.text("call_id", &self.call_id);
                    if let Some(namespace) = &self.namespace {
                        item.text("namespace", namespace);
                    }
                    item.text("name", &self.name);
                    for (name, json) in &self.origin.members {
                        item.json(name, json);
                    }
                    item.text(if custom { "input" } else { "arguments" }, text);
                }
                Kind::Search => {
                    item.text("type", "tool_search_call");
                    item.text("status", status);
                    item.text("call_id", &self.call_id);
                    item.text("execution", "client");
                    item.value("arguments", |out| match argument_object(text) {
                        Some(arguments) => write_compact(out, &arguments),
                        // The client reports arguments that are no object to the model.
                        None => write_string(out, text),
                    });
                }
            }
        })
    }
}
