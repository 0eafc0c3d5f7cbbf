//! Output items of an OpenAI Responses stream: their parts, deltas and done forms.
//!
//! In: the events between `output_item.added` and `output_item.done`.  Out: the first broken rule.
//!
//! Laws: a skeleton is empty, a part is added before its deltas, and every done form repeats the text written before it.
//! Items that the provider runs pass with their own events; only their ids and indexes are checked.

use super::kept::{Room, Written};
use super::logprobs::{self, Form};
use super::tree::{Node, Rule, Value, quoted};

/// Members of a skeleton that the done item repeats, where it has them.
const FIXED: [&str; 8] = ["id", "type", "role", "call_id", "name", "namespace", "caller", "async"];

/// Beginnings of the events of items that the provider runs.
const PROVIDER_EVENTS: [&str; 11] = [
    "response.mcp_call.",
    "response.mcp_call_arguments.",
    "response.mcp_list_tools.",
    "response.web_search_call.",
    "response.file_search_call.",
    "response.code_interpreter_call.",
    "response.code_interpreter_call_code.",
    "response.image_generation_call.",
    "response.shell_call_command.",
    "response.shell_call_output_content.",
    "response.compaction.",
];

const ANNOTATION_ADDED: &str = "response.output_text.annotation.added";

/// Events of one type of part.
#[derive(Debug, PartialEq, Eq)]
struct PartForm {
    /// `type` of the part.
    kind: &'static str,
    /// `type` of the item.
    item: &'static str,
    /// Member that holds the text in the part and in the done event.
    member: &'static str,
    /// Member of the events that numbers the part.
    index: &'static str,
    added: &'static str,
    delta: &'static str,
    text_done: &'static str,
    done: &'static str,
}

const FORMS: [PartForm; 4] = [
    PartForm {
        kind: "output_text",
        item: "message",
        member: "text",
        index: "content_index",
        added: "response.content_part.added",
        delta: "response.output_text.delta",
        text_done: "response.output_text.done",
        done: "response.content_part.done",
    },
    PartForm {
        kind: "refusal",
        item: "message",
        member: "refusal",
        index: "content_index",
        added: "response.content_part.added",
        delta: "response.refusal.delta",
        text_done: "response.refusal.done",
        done: "response.content_part.done",
    },
    PartForm {
        kind: "summary_text",
        item: "reasoning",
        member: "text",
        index: "summary_index",
        added: "response.reasoning_summary_part.added",
        delta: "response.reasoning_summary_text.delta",
        text_done: "response.reasoning_summary_text.done",
        done: "response.reasoning_summary_part.done",
    },
    PartForm {
        kind: "reasoning_text",
        item: "reasoning",
        member: "text",
        index: "content_index",
        added: "response.content_part.added",
        delta: "response.reasoning_text.delta",
        text_done: "response.reasoning_text.done",
        done: "response.content_part.done",
    },
];

/// Events of one type of call.
#[derive(Debug, PartialEq, Eq)]
struct CallForm {
    /// `type` of the item.
    item: &'static str,
    /// Member that holds the arguments.
    member: &'static str,
    delta: &'static str,
    done: &'static str,
}

const CALLS: [CallForm; 2] = [
    CallForm {
        item: "function_call",
        member: "arguments",
        delta: "response.function_call_arguments.delta",
        done: "response.function_call_arguments.done",
    },
    CallForm {
        item: "custom_tool_call",
        member: "input",
        delta: "response.custom_tool_call_input.delta",
        done: "response.custom_tool_call_input.done",
    },
];

/// Return true for an event that belongs to an item.
pub(super) fn is_item_event(kind: &str) -> bool {
    kind == ANNOTATION_ADDED
        || FORMS
            .iter()
            .any(|form| [form.added, form.delta, form.text_done, form.done].contains(&kind))
        || CALLS.iter().any(|call| [call.delta, call.done].contains(&kind))
        || is_provider_event(kind)
}

fn is_provider_event(kind: &str) -> bool {
    PROVIDER_EVENTS.iter().any(|start| kind.starts_with(start))
}

/// The open item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    index: u64,
    id: String,
    kind: String,
    /// The skeleton.
    added: Value,
    body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    /// A message or a reasoning item.
    Parts { open: Option<Part>, form: Option<&'static PartForm>, done: Vec<Value> },
    /// A call.
    Call { form: &'static CallForm, written: Written, done: bool },
    /// An item that the provider runs.
    Provider,
}

/// The open part of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    form: &'static PartForm,
    index: u64,
    written: Written,
    tokens: usize,
    annotations: Vec<Value>,
    text_done: bool,
}

impl Item {
    /// Check the skeleton of an item and open the item.
    pub(super) fn open(added: &Node<'_>, index: u64) -> Rule<Self> {
        let kind = added.filled("type")?;
        let body = match kind {
            "message" => {
                added.is("role", "assistant")?;
                added.is("status", "in_progress")?;
                added.empty_list("content")?;
                Body::Parts { open: None, form: None, done: Vec::new() }
            }
            "reasoning" => {
                added.empty_list("summary")?;
                Body::Parts { open: None, form: None, done: Vec::new() }
            }
            _ => match CALLS.iter().find(|form| form.item == kind) {
                Some(form) => {
                    call_members(added)?;
                    added.is(form.member, "")?;
                    if kind == "function_call" {
                        added.is("status", "in_progress")?;
                    }
                    Body::Call { form, written: Written::default(), done: false }
                }
                None => Body::Provider,
            },
        };
        Ok(Self {
            index,
            id: added.filled("id")?.to_owned(),
            kind: kind.to_owned(),
            added: added.value().clone(),
            body,
        })
    }

    /// Return the index of the item.
    pub(super) fn index(&self) -> u64 {
        self.index
    }

    /// Return the id of the item.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Return the `call_id` of a call.
    pub(super) fn call_id(&self) -> Option<&str> {
        let is_call = matches!(self.body, Body::Call { .. });
        Node::root(&self.added).text("call_id").ok().filter(|_| is_call)
    }

    /// Check an event of the item.
    pub(super) fn read(&mut self, kind: &str, event: &Node<'_>, room: &mut Room) -> Rule {
        match &mut self.body {
            Body::Provider if is_provider_event(kind) => Ok(()),
            Body::Call { form, written, done } if kind == form.delta && !*done => {
                written.push(event.filled("delta")?)
            }
            Body::Call { form, written, done } if kind == form.done && !*done => {
                *done = true;
                event.repeats(form.member, written.text())
            }
            Body::Call { done: true, .. } => {
                Err(format!("`{kind}` after the arguments of the call were done"))
            }
            Body::Provider | Body::Call { .. } => {
                Err(format!("`{kind}` does not fit an item of type `{}`", quoted(&self.kind)))
            }
            Body::Parts { open: Some(part), done, .. } => {
                if part.read(kind, event, room)? {
                    let part = event.at("part")?;
                    room.take(part.value().bytes())?;
                    done.push(part.value().clone());
                    self.close_part();
                }
                Ok(())
            }
            Body::Parts { open, form, done } => {
                let part = Part::open(&self.kind, kind, event, done.len() as u64)?;
                if form.is_some_and(|form| form != part.form) {
                    return Err("an item has parts of one type".to_owned());
                }
                *form = Some(part.form);
                *open = Some(part);
                Ok(())
            }
        }
    }

    fn close_part(&mut self) {
        if let Body::Parts { open, .. } = &mut self.body {
            *open = None;
        }
    }

    /// Check the done item.
    pub(super) fn close(&self, done: &Node<'_>) -> Rule {
        let added = Node::root(&self.added);
        for key in FIXED {
            let (before, after) = (added.maybe(key), done.maybe(key));
            if before.as_ref().map(Node::value) != after.as_ref().map(Node::value) {
                return Err(format!("`item.{key}` differs from `output_item.added`"));
            }
        }
        whole(done)?;
        match &self.body {
            Body::Provider => Ok(()),
            Body::Call { done: false, form, .. } => Err(format!("`{}` is missing", form.done)),
            Body::Call { form, written, .. } => done.repeats(form.member, written.text()),
            Body::Parts { open: Some(part), .. } => {
                Err(format!("part {} is open when its item is done", part.index))
            }
            Body::Parts { form, done: parts, .. } => {
                if self.kind == "message" && parts.is_empty() {
                    return Err("a message has one part (got none)".to_owned());
                }
                if form.is_some_and(|form| form.kind == "summary_text") {
                    return repeats(done, "summary", parts);
                }
                if self.kind == "reasoning" {
                    done.empty_list("summary")?;
                }
                if parts.is_empty() { Ok(()) } else { repeats(done, "content", parts) }
            }
        }
    }
}

/// Check that a list repeats the done parts.
fn repeats(item: &Node<'_>, key: &str, parts: &[Value]) -> Rule {
    let list = item.at(key)?;
    let found = list.as_list()?;
    let same = found.len() == parts.len()
        && found.iter().zip(parts).all(|(one, two)| one.value().same(two));
    if same { Ok(()) } else { Err(list.wrong(&format!("the {} done parts", parts.len()))) }
}

impl Part {
    fn open(item: &str, kind: &str, event: &Node<'_>, index: u64) -> Rule<Self> {
        if !FORMS.iter().any(|form| form.added == kind) {
            return Err(format!("`{kind}` without an open part: its `added` must come first"));
        }
        let part = event.object("part")?;
        let part_kind = part.filled("type")?;
        let form = FORMS
            .iter()
            .find(|form| form.kind == part_kind && form.item == item && form.added == kind)
            .ok_or_else(|| {
                let part_kind = quoted(part_kind);
                format!("`{kind}` of a `{part_kind}` does not fit an item of type `{item}`")
            })?;
        if item == "message" && index > 0 {
            return Err("a message has one part (got a second one)".to_owned());
        }
        event.counts(form.index, index)?;
        part.is(form.member, "")?;
        if form.kind == "output_text" {
            part.empty_list("annotations")?;
            part.empty_list("logprobs")?;
        }
        Ok(Self {
            form,
            index,
            written: Written::default(),
            tokens: 0,
            annotations: Vec::new(),
            text_done: false,
        })
    }

    /// Check an event of the part, and return true if it ends the part.
    fn read(&mut self, kind: &str, event: &Node<'_>, room: &mut Room) -> Rule<bool> {
        let form = self.form;
        let is_text = form.kind == "output_text";
        if kind == form.done {
            if !self.text_done {
                return Err(format!("`{}` must come before `{kind}`", form.text_done));
            }
            event.counts(form.index, self.index)?;
            self.check_done(&event.object("part")?)?;
            return Ok(true);
        }
        if FORMS.iter().any(|form| form.added == kind) {
            return Err(format!("part {} is open: parts are serial", self.index));
        }
        let known = kind == form.delta || kind == form.text_done || kind == ANNOTATION_ADDED;
        if !known || (kind == ANNOTATION_ADDED && !is_text) {
            return Err(format!("`{kind}` does not fit a part of type `{}`", form.kind));
        }
        event.counts(form.index, self.index)?;
        if self.text_done {
            return Err(format!("`{kind}` after `{}`", form.text_done));
        }
        if kind == ANNOTATION_ADDED {
            event.counts("annotation_index", self.annotations.len() as u64)?;
            let annotation = event.object("annotation")?;
            room.take(annotation.value().bytes())?;
            self.annotations.push(annotation.value().clone());
        } else if kind == form.delta {
            if !self.annotations.is_empty() {
                return Err("text after the annotations of its part".to_owned());
            }
            let delta = event.text("delta")?;
            let tokens =
                if is_text { logprobs::check(&event.at("logprobs")?, Form::Top)? } else { 0 };
            if delta.is_empty() && tokens == 0 {
                return Err("an empty `delta` carries nothing".to_owned());
            }
            self.tokens += tokens;
            self.written.push(delta)?;
        } else {
            event.repeats(form.member, self.written.text())?;
            if is_text {
                self.check_tokens(event)?;
            }
            self.text_done = true;
        }
        Ok(false)
    }

    fn check_done(&self, part: &Node<'_>) -> Rule {
        part.is("type", self.form.kind)?;
        part.repeats(self.form.member, self.written.text())?;
        if self.form.kind == "output_text" {
            repeats(part, "annotations", &self.annotations)
                .map_err(|_| "`part.annotations` must repeat the added annotations".to_owned())?;
            self.check_tokens(part)?;
        }
        Ok(())
    }

    fn check_tokens(&self, done: &Node<'_>) -> Rule {
        let list = done.at("logprobs")?;
        if logprobs::check(&list, Form::Full)? == self.tokens {
            return Ok(());
        }
        Err(list.wrong(&format!("a list of the {} tokens that were written", self.tokens)))
    }
}

fn call_members<'a>(item: &Node<'a>) -> Rule<&'a str> {
    item.filled("name")?;
    if let Some(namespace) = item.maybe("namespace") {
        namespace.as_filled()?;
    }
    item.filled("call_id")
}

/// Check a done item, and return the `call_id` of a call.
pub(super) fn whole<'a>(item: &Node<'a>) -> Rule<Option<&'a str>> {
    item.filled("id")?;
    let kind = item.filled("type")?;
    match kind {
        "message" => {
            item.is("role", "assistant")?;
            item.one_of("status", &["completed", "incomplete"])?;
            for part in item.list("content")? {
                if part.one_of("type", &["output_text", "refusal"])? == "refusal" {
                    part.text("refusal")?;
                } else {
                    part.text("text")?;
                    part.list("annotations")?;
                    logprobs::check(&part.at("logprobs")?, Form::Full)?;
                }
            }
        }
        "reasoning" => {
            for part in item.list("summary")? {
                part.is("type", "summary_text")?;
                part.text("text")?;
            }
            if item.has("encrypted_content") {
                item.text_or_null("encrypted_content")?;
            }
        }
        _ => {
            if let Some(form) = CALLS.iter().find(|form| form.item == kind) {
                item.text(form.member)?;
                if kind == "function_call" {
                    item.one_of("status", &["completed", "incomplete"])?;
                }
                return call_members(item).map(Some);
            }
        }
    }
    Ok(None)
}
