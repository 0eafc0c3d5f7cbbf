//! Grammar of an AG-UI run (docs/protocols/encoding.md#ag-ui).
//!
//! In: events of server-sent events without names.  Out: the first broken rule.
//!
//! Laws: `RUN_STARTED` comes first, and `RUN_FINISHED` or `RUN_ERROR` last.  Messages, calls and reasoning are keyed, and each
//! starts and ends once before `RUN_FINISHED`.  No member of an event is null.  In the run of an agent, each call has one result
//! or is an interrupt before `RUN_FINISHED`, and answers are steps.

use std::collections::BTreeSet;

use super::event::Event;
use super::kept::{Ids, Parts};
use super::tree::{Node, Rule, Value};

const TEXT: &str = "the text message";
const CALL: &str = "the call";
const STEP: &str = "the step";
const REASONING: &str = "the reasoning";
const REASONING_MESSAGE: &str = "the reasoning message";

/// Checker of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AgUi {
    state: State,
    thread_id: String,
    run_id: String,
    texts: Parts,
    calls: Parts,
    reasonings: Parts,
    reasoning_messages: Parts,
    /// The run of an agent: steps, results and messages of the user.
    is_run: bool,
    steps: Parts,
    results: Ids,
    /// Calls without a result.
    unanswered: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before `RUN_STARTED`.
    #[default]
    Begin,
    /// Inside of the run.
    Open,
    /// After the terminal.
    Ended,
}

impl AgUi {
    /// Build the checker of the run of an agent.
    pub(super) fn of_run() -> Self {
        Self { is_run: true, ..Self::default() }
    }

    /// Check the next event.
    pub(super) fn read(&mut self, event: Event<'_>) -> Rule {
        let data = event.unnamed()?;
        if self.state == State::Ended {
            return Err("nothing may follow `RUN_FINISHED` or `RUN_ERROR`".to_owned());
        }
        let Some(data) = data else { return Ok(()) };
        if data == "[DONE]" {
            return Err("the target has no `[DONE]`".to_owned());
        }
        let value = Value::parse(data)?;
        let event = Node::root(&value);
        let kind = event.filled("type")?;
        event.no_nulls(&["value", "rawEvent", "result"])?;
        event.count_if("timestamp")?;
        match (self.state, kind) {
            (State::Begin, "RUN_STARTED") => {
                self.state = State::Open;
                event.filled("threadId")?.clone_into(&mut self.thread_id);
                event.filled("runId")?.clone_into(&mut self.run_id);
                Ok(())
            }
            (State::Begin, _) => Err(format!("`RUN_STARTED` must come first (got {kind})")),
            (_, "RUN_STARTED") => Err("`RUN_STARTED` came twice".to_owned()),
            (_, "RUN_FINISHED") => {
                self.state = State::Ended;
                self.finished(&event)
            }
            (_, "RUN_ERROR") => {
                self.state = State::Ended;
                event.text("message")?;
                event.text_if("code")?;
                counts(&event)
            }
            (_, "CUSTOM") => {
                event.filled("name")?;
                event.at("value").map(drop)
            }
            _ => self.part(kind, &event),
        }
    }

    /// Check the end of the body.
    pub(super) fn close(&self) -> Rule {
        if self.state == State::Ended {
            Ok(())
        } else {
            Err("the stream ends without `RUN_FINISHED` or `RUN_ERROR`".to_owned())
        }
    }

    fn part(&mut self, kind: &str, event: &Node<'_>) -> Rule {
        match kind {
            "TEXT_MESSAGE_START" => {
                if event.has("role") {
                    if self.is_run {
                        event.one_of("role", &["assistant", "user"])?;
                    } else {
                        event.is("role", "assistant")?;
                    }
                }
                let id = event.filled("messageId")?;
                unused(&self.reasoning_messages, id)?;
                self.texts.start(TEXT, id)
            }
            "TEXT_MESSAGE_CONTENT" => {
                self.texts.expect(TEXT, event.filled("messageId")?)?;
                event.filled("delta").map(drop)
            }
            "TEXT_MESSAGE_END" => self.texts.end(TEXT, event.filled("messageId")?),
            "TOOL_CALL_START" => {
                event.filled("toolCallName")?;
                if let Some(parent) = event.maybe("parentMessageId") {
                    parent.as_filled()?;
                }
                let id = event.filled("toolCallId")?;
                self.unanswered.insert(id.to_owned());
                self.calls.start(CALL, id)
            }
            "STEP_STARTED" if self.is_run && !self.steps.is_open() => {
                self.steps.start(STEP, event.filled("stepName")?)
            }
            "STEP_FINISHED" if self.is_run => self.steps.end(STEP, event.filled("stepName")?),
            "TOOL_CALL_RESULT" if self.is_run => self.result(event),
            "TOOL_CALL_ARGS" => {
                self.calls.expect(CALL, event.filled("toolCallId")?)?;
                event.filled("delta").map(drop)
            }
            "TOOL_CALL_END" => self.calls.end(CALL, event.filled("toolCallId")?),
            _ => self.reasoning(kind, event),
        }
    }

    fn reasoning(&mut self, kind: &str, event: &Node<'_>) -> Rule {
        match kind {
            "REASONING_START" => self.reasonings.start(REASONING, event.filled("messageId")?),
            "REASONING_MESSAGE_START" => {
                event.is("role", "reasoning")?;
                if !self.reasonings.is_open() {
                    return Err("`REASONING_MESSAGE_START` without `REASONING_START`".to_owned());
                }
                let id = event.filled("messageId")?;
                unused(&self.texts, id)?;
                self.reasoning_messages.start(REASONING_MESSAGE, id)
            }
            "REASONING_MESSAGE_CONTENT" => {
                self.reasoning_messages.expect(REASONING_MESSAGE, event.filled("messageId")?)?;
                event.filled("delta").map(drop)
            }
            "REASONING_MESSAGE_END" => {
                self.reasoning_messages.end(REASONING_MESSAGE, event.filled("messageId")?)
            }
            "REASONING_END" => {
                let id = event.filled("messageId")?;
                if self.reasoning_messages.expect("", id).is_ok() {
                    return Err(format!("{REASONING_MESSAGE} {id:?} is open at `REASONING_END`"));
                }
                self.reasonings.end(REASONING, id)?;
                if self.reasonings.is_open() {
                    return Ok(());
                }
                self.reasoning_messages.all_ended(REASONING_MESSAGE, "`REASONING_END`")
            }
            "REASONING_ENCRYPTED_VALUE" => {
                let subtype = event.one_of("subtype", &["message", "tool-call"])?;
                let entity = event.at("entityId")?;
                let id = entity.as_filled()?;
                event.filled("encryptedValue")?;
                let known = if subtype == "tool-call" {
                    self.calls.has(id)
                } else {
                    [&self.texts, &self.reasoning_messages, &self.reasonings]
                        .iter()
                        .any(|parts| parts.has(id))
                };
                if known { Ok(()) } else { Err(entity.wrong(&format!("the id of a {subtype}"))) }
            }
            _ => Err(format!("`{kind}` is not an event of the target")),
        }
    }

    fn result(&mut self, event: &Node<'_>) -> Rule {
        let (message, call) = (event.filled("messageId")?, event.filled("toolCallId")?);
        unused(&self.texts, message)?;
        self.results.add("the result of", call)?;
        if self.calls.expect("", call).is_ok() {
            return Err(format!("a result of the call {call:?}, which is open"));
        }
        self.unanswered.remove(call);
        if event.has("role") {
            event.is("role", "tool")?;
        }
        let Ok(parts) = event.list("content") else { return event.text("content").map(drop) };
        for part in parts {
            let kinds = ["text", "image", "audio", "video", "document"];
            if part.one_of("type", &kinds)? == "text" {
                part.filled("text")?;
            } else {
                let source = part.object("source")?;
                source.filled("value")?;
                if source.one_of("type", &["data", "url"])? == "data" {
                    source.filled("mimeType")?;
                }
            }
        }
        Ok(())
    }

    /// Check the end of the run of an agent.
    fn run_ended(&self, event: &Node<'_>) -> Rule {
        self.steps.all_ended(STEP, "`RUN_FINISHED`")?;
        let outcome = event.object("outcome")?;
        let mut waiting = BTreeSet::new();
        if outcome.one_of("type", &["success", "cancelled", "interrupt"])? == "interrupt" {
            let interrupts = outcome.list("interrupts")?;
            if interrupts.is_empty() {
                return Err("an interrupt without `interrupts`".to_owned());
            }
            for interrupt in interrupts {
                interrupt.no_nulls(&[])?;
                interrupt.filled("id")?;
                interrupt.filled("reason")?;
                waiting.insert(interrupt.filled("toolCallId")?.to_owned());
            }
        }
        match self.unanswered.difference(&waiting).next() {
            Some(id) => Err(format!("the call {id:?} has no result at `RUN_FINISHED`")),
            None => Ok(()),
        }
    }

    fn finished(&self, event: &Node<'_>) -> Rule {
        event.repeats("threadId", &self.thread_id)?;
        event.repeats("runId", &self.run_id)?;
        let place = "`RUN_FINISHED`";
        self.texts.all_ended(TEXT, place)?;
        self.calls.all_ended(CALL, place)?;
        self.reasoning_messages.all_ended(REASONING_MESSAGE, place)?;
        self.reasonings.all_ended(REASONING, place)?;
        if self.is_run {
            self.run_ended(event)?;
        } else if let Some(outcome) = event.object_if("outcome")? {
            outcome.no_nulls(&[])?;
            let kind = outcome.one_of("type", &["success", "cancelled"])?;
            if let Some(pending) = outcome.maybe("pendingToolCallIds") {
                let ids = pending.as_list()?;
                if ids.is_empty() || kind != "success" {
                    return Err(pending.wrong("absent, or ids of calls after a success"));
                }
                for id in ids {
                    if !self.calls.has(id.as_filled()?) {
                        return Err(id.wrong("the id of a call of the run"));
                    }
                }
            }
        }
        if let Some(metadata) = event.object_if("metadata")?
            && metadata.has("finishReason")
        {
            metadata.filled("finishReason")?;
        }
        counts(event)
    }
}

/// Check that a message of another kind does not have the id.
fn unused(others: &Parts, id: &str) -> Rule {
    if others.has(id) { Err(format!("the messageId {id:?} was used before")) } else { Ok(()) }
}

/// Check the usage records of a terminal.
fn counts(event: &Node<'_>) -> Rule {
    let Some(usage) = event.maybe("usage") else { return Ok(()) };
    for usage in usage.as_list()? {
        usage.no_nulls(&[])?;
        usage.text_if("model")?;
        let (input, output) = (usage.count_if("inputTokens")?, usage.count_if("outputTokens")?);
        for key in ["reasoningTokens", "cachedInputTokens", "cacheWriteInputTokens"] {
            usage.count_if(key)?;
        }
        if let Some(input) = input {
            usage.within("cachedInputTokens", input)?;
            usage.within("cacheWriteInputTokens", input)?;
        }
        if let Some(output) = output {
            usage.within("reasoningTokens", output)?;
        }
        if usage.has("totalTokens") {
            let (Some(input), Some(output)) = (input, output) else {
                return Err(usage.at("totalTokens")?.wrong("absent without the counts of its sum"));
            };
            usage.counts("totalTokens", input.saturating_add(output))?;
        }
    }
    Ok(())
}
