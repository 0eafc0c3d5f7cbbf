//! Grammar of an OpenAI Responses stream (docs/protocols/encoding.md#openai-responses).
//!
//! In: events of server-sent events, named by their `type`.  Out: the first broken rule.
//!
//! Laws: `sequence_number` counts every event from 0.  Items come one after another under dense indexes, and each is added
//! and done once.  The terminal response repeats the done items.  Only `[DONE]` may follow the terminal.

use super::event::Event;
use super::kept::{Ids, Room};
use super::openai_chat;
use super::responses_items::{self as items, Item};
use super::tree::{Node, Rule, Value};

const INCOMPLETE_REASONS: [&str; 4] =
    ["max_output_tokens", "content_filter", "max_messages", "steered"];

/// Checker of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenaiResponses {
    state: State,
    sequence: u64,
    id: String,
    item_ids: Ids,
    call_ids: Ids,
    item: Option<Item>,
    /// The done items, which the terminal response repeats.
    output: Vec<Value>,
    room: Room,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before `response.created`.
    #[default]
    Begin,
    /// After `response.created`.
    Created,
    /// Among the items.
    Open,
    /// After `error`, before `response.failed`.
    Failing,
    /// After the terminal.
    Ended,
    /// After `[DONE]`.
    Done,
}

impl OpenaiResponses {
    /// Check the next event.
    pub(super) fn read(&mut self, event: Event<'_>) -> Rule {
        let (name, data) = match event {
            Event::Data { name, data } => (name, data),
            Event::Comment if self.state == State::Begin => return Ok(()),
            Event::Comment | Event::Exception { .. } => {
                return Err("a comment may only come before `response.created`".to_owned());
            }
        };
        if self.state == State::Ended && data == "[DONE]" && name.is_none() {
            self.state = State::Done;
            return Ok(());
        }
        if matches!(self.state, State::Ended | State::Done) {
            return Err("nothing but one `[DONE]` may follow the terminal event".to_owned());
        }
        let value = Value::parse(data)?;
        let event = Node::root(&value);
        let kind = event.filled("type")?;
        if name != Some(kind) {
            return Err(format!("`event:` must be {kind:?}, as `type` (got {name:?})"));
        }
        event.counts("sequence_number", self.sequence)?;
        self.sequence += 1;
        match (self.state, kind) {
            (State::Begin, "response.created") => {
                let response = event.object("response")?;
                response.filled("id")?.clone_into(&mut self.id);
                self.state = State::Created;
                self.skeleton(&response)
            }
            (State::Begin, _) => Err(format!("`response.created` must come first (got {kind})")),
            (State::Failing, "response.failed") => self.end(&event.object("response")?, "failed"),
            (State::Failing, _) => {
                Err(format!("only `response.failed` may follow `error` (got {kind})"))
            }
            (State::Created | State::Open, "keepalive") | (State::Open, "response.audio.done") => {
                event.only(&["type", "sequence_number"])
            }
            (State::Created, "response.in_progress") => {
                self.state = State::Open;
                self.skeleton(&event.object("response")?)
            }
            (State::Created, _) => {
                Err(format!("`response.in_progress` must follow `response.created` (got {kind})"))
            }
            (State::Open, "error") => {
                self.state = State::Failing;
                error(&event)
            }
            (State::Open, "response.audio.delta") => event.filled("delta").map(drop),
            (State::Open, "response.output_item.added") => self.added(&event),
            (State::Open, "response.output_item.done") => self.done(&event),
            (State::Open, "response.completed") => {
                self.end(&event.object("response")?, "completed")
            }
            (State::Open, "response.incomplete") => {
                self.end(&event.object("response")?, "incomplete")
            }
            (State::Open, "response.failed") => {
                Err("`error` must come before `response.failed`".to_owned())
            }
            (_, "response.created" | "response.in_progress") => Err(format!("`{kind}` came twice")),
            _ => self.item_event(kind, &event),
        }
    }

    /// Check the end of the body.
    pub(super) fn close(&self) -> Rule {
        if matches!(self.state, State::Ended | State::Done) {
            Ok(())
        } else {
            Err("the stream ends without a terminal event".to_owned())
        }
    }

    /// Check the response of the first two events.
    fn skeleton(&self, response: &Node<'_>) -> Rule {
        response.repeats("id", &self.id)?;
        response_members(response)?;
        response.is("status", "in_progress")?;
        response.empty_list("output")?;
        response.null("error")?;
        response.null("incomplete_details")?;
        response.null("usage")
    }

    /// Check the terminal response.
    fn end(&mut self, response: &Node<'_>, status: &str) -> Rule {
        if let Some(item) = &self.item
            && status != "failed"
        {
            return Err(format!("item {} is open at the terminal event", item.index()));
        }
        response.repeats("id", &self.id)?;
        response_members(response)?;
        response.is("status", status)?;
        terminal_members(response, status)?;
        let output = response.list("output")?;
        if output.len() != self.output.len() {
            return Err(format!(
                "`response.output` must hold the {} done items (got {})",
                self.output.len(),
                output.len()
            ));
        }
        let differs = output.iter().zip(&self.output).position(|(one, two)| !one.value().same(two));
        if let Some(at) = differs {
            return Err(format!("`response.output[{at}]` differs from its `output_item.done`"));
        }
        self.state = State::Ended;
        Ok(())
    }

    fn added(&mut self, event: &Node<'_>) -> Rule {
        if let Some(item) = &self.item {
            return Err(format!("item {} is open: items are serial", item.index()));
        }
        event.counts("output_index", self.output.len() as u64)?;
        let added = event.object("item")?;
        self.item_ids.add("the id of the item", added.filled("id")?)?;
        let item = Item::open(&added, self.output.len() as u64)?;
        if let Some(call_id) = item.call_id() {
            self.call_ids.add("the call_id", call_id)?;
        }
        self.item = Some(item);
        Ok(())
    }

    fn done(&mut self, event: &Node<'_>) -> Rule {
        let Some(item) = self.item.take() else {
            return Err("`response.output_item.done` without an open item".to_owned());
        };
        event.counts("output_index", item.index())?;
        let done = event.object("item")?;
        item.close(&done)?;
        self.room.take(done.value().bytes())?;
        self.output.push(done.value().clone());
        Ok(())
    }

    fn item_event(&mut self, kind: &str, event: &Node<'_>) -> Rule {
        if !items::is_item_event(kind) {
            return Err(format!("`{kind}` is not an event of the target"));
        }
        let Some(item) = &mut self.item else {
            return Err(format!("`{kind}` without an open item"));
        };
        event.is("item_id", item.id())?;
        event.counts("output_index", item.index())?;
        item.read(kind, event, &mut self.room)
    }
}

/// Check the members that every response has.
fn response_members(response: &Node<'_>) -> Rule {
    response.filled("id")?;
    response.is("object", "response")?;
    response.number("created_at")?;
    response.text("model")?;
    response.flag("parallel_tool_calls")?;
    response.list("tools")?;
    for key in ["error", "incomplete_details", "usage", "instructions", "metadata", "tool_choice"] {
        response.at(key)?;
    }
    response.at("temperature")?;
    response.at("top_p")?;
    Ok(())
}

/// Check the members that depend on the final status.
fn terminal_members(response: &Node<'_>, status: &str) -> Rule {
    if status == "failed" {
        let error = response.object("error")?;
        error.text_or_null("code")?;
        error.text("message")?;
    } else {
        response.null("error")?;
    }
    if status == "incomplete" {
        response.object("incomplete_details")?.one_of("reason", &INCOMPLETE_REASONS)?;
    } else {
        response.null("incomplete_details")?;
    }
    let usage = response.at("usage")?;
    if usage.is_null() { Ok(()) } else { counts(&usage) }
}

/// Check the usage record.  Codex rejects a null inside it.
fn counts(usage: &Node<'_>) -> Rule {
    let (input, output) = (usage.count("input_tokens")?, usage.count("output_tokens")?);
    usage.counts("total_tokens", input.saturating_add(output))?;
    let details = usage.object("input_tokens_details")?;
    details.count("cached_tokens")?;
    details.within("cached_tokens", input)?;
    details.within("cache_write_tokens", input)?;
    let details = usage.object("output_tokens_details")?;
    details.count("reasoning_tokens")?;
    details.within("reasoning_tokens", output)
}

fn error(event: &Node<'_>) -> Rule {
    let code = event.text_or_null("code")?;
    let message = event.text("message")?;
    event.null("param")?;
    let nested = event.object("error")?;
    openai_chat::error_members(&nested)?;
    nested.repeats("message", message)?;
    match code {
        Some(code) => nested.is("code", code),
        None => nested.null("code"),
    }
}

/// Check a whole body.
pub(super) fn body(status: u16, body: &str) -> Rule {
    let value = Value::parse(body)?;
    let body = Node::root(&value);
    if status >= 400 {
        return openai_chat::error(&body);
    }
    response_members(&body)?;
    let status = body.one_of("status", &["completed", "incomplete", "failed"])?;
    terminal_members(&body, status)?;
    let (mut ids, mut call_ids) = (Ids::default(), Ids::default());
    for item in body.list("output")? {
        ids.add("the id of the item", item.filled("id")?)?;
        if let Some(call_id) = items::whole(&item)? {
            call_ids.add("the call_id", call_id)?;
        }
    }
    Ok(())
}
