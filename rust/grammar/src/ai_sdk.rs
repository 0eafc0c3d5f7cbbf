//! Grammar of the UI message stream of Vercel's `ai`, version 1 (docs/protocols/encoding.md#ai-sdk).
//!
//! In: events of server-sent events without names.  Out: the first broken rule.
//!
//! Laws: steps inside of one message, one of them in the stream of one answer.  Parts are keyed, and each starts and ends once
//! inside of its step.  No member is null, because the client's schema refuses the whole stream then.  `[DONE]` follows the
//! terminal.  In a run, each call that was written has one result, or waits for a person, before the next step and the end;
//! results of an earlier run's calls come before the first step.

use std::collections::{BTreeSet, HashMap};

use super::event::Event;
use super::kept::{Ids, Parts};
use super::tree::{Node, Rule, Value};

const TEXT: &str = "the text part";
const REASONING: &str = "the reasoning part";
const FINISH_REASONS: [&str; 6] =
    ["stop", "length", "content-filter", "tool-calls", "error", "other"];
/// The reason of a run that a limit ended; the client does not go on by itself.
const INTERRUPTED: &str = "interrupted";

/// Checker of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AiSdk {
    state: State,
    texts: Parts,
    reasonings: Parts,
    call_ids: Ids,
    open_calls: HashMap<String, Call>,
    /// A call was written whole.
    called: bool,
    /// The stream of a run: several steps, and results.
    is_run: bool,
    /// Calls of this step, which a reset takes back.
    step_calls: Vec<String>,
    /// Calls without a result.
    unanswered: BTreeSet<String>,
    /// Calls that wait for a person.
    waiting: BTreeSet<String>,
    /// Approvals, by the id that answers them.
    approvals: HashMap<String, String>,
    steering: Ids,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before `start`.
    #[default]
    Begin,
    /// Before `start-step`.
    Started,
    /// Inside of the step.
    Step,
    /// After `finish-step`.
    Stepped,
    /// After `finish` or `error`, before `[DONE]`.
    Finished,
    /// After `abort`, where `[DONE]` may be missing.
    Aborted,
    /// After `[DONE]`.
    Done,
}

/// A call whose input is not available yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    name: String,
    dynamic: bool,
}

impl AiSdk {
    /// Build the checker of the stream of a run.
    pub(super) fn of_run() -> Self {
        Self { is_run: true, ..Self::default() }
    }

    /// Check the next event.
    pub(super) fn read(&mut self, event: Event<'_>) -> Rule {
        let data = event.unnamed()?;
        if self.state == State::Done {
            return Err("nothing may follow `[DONE]`".to_owned());
        }
        let ended = matches!(self.state, State::Finished | State::Aborted);
        let Some(data) = data else {
            return if ended { Err("a comment after the terminal".to_owned()) } else { Ok(()) };
        };
        if data == "[DONE]" {
            if !ended {
                return Err("`[DONE]` before `finish`, `error` or `abort`".to_owned());
            }
            self.state = State::Done;
            return Ok(());
        }
        if ended {
            return Err("only `[DONE]` may follow `finish`, `error` and `abort`".to_owned());
        }
        let value = Value::parse(data)?;
        let part = Node::root(&value);
        let kind = part.filled("type")?;
        part.no_nulls(if kind.starts_with("data-") { &["data"] } else { &[] })?;
        metadata(&part)?;
        match (self.state, kind) {
            (State::Begin, "start") => {
                self.state = State::Started;
                part.text_if("messageId").map(drop)
            }
            (State::Begin, _) => Err(format!("`start` must come first (got {kind})")),
            (_, "start") => Err("`start` came twice".to_owned()),
            (_, "error") => {
                self.state = State::Finished;
                part.text("errorText").map(drop)
            }
            (_, "abort") => {
                self.state = State::Aborted;
                part.text_if("reason").map(drop)
            }
            (State::Started | State::Stepped, "start-step")
                if self.is_run || self.state == State::Started =>
            {
                self.all_answered("`start-step`")?;
                self.step_calls.clear();
                self.state = State::Step;
                Ok(())
            }
            (State::Step, "reset-step") if self.is_run => {
                self.reset();
                Ok(())
            }
            (State::Started | State::Stepped, "finish") if self.is_run => {
                self.state = State::Finished;
                self.finish(&part)
            }
            (State::Started | State::Stepped, _) if self.is_run => self.between(kind, &part),
            (State::Started, _) => Err(format!("`start-step` must follow `start` (got {kind})")),
            (State::Step, "finish-step") => {
                self.state = State::Stepped;
                self.all_ended()
            }
            (State::Step, _) => self.part(kind, &part),
            (State::Stepped, "finish") => {
                self.state = State::Finished;
                self.finish(&part)
            }
            _ => Err(format!("only `finish` may follow `finish-step` (got {kind})")),
        }
    }

    /// Check the end of the body.
    pub(super) fn close(&self) -> Rule {
        if matches!(self.state, State::Done | State::Aborted) {
            Ok(())
        } else {
            Err("the stream ends without `[DONE]`".to_owned())
        }
    }

    fn all_ended(&self) -> Rule {
        let place = "`finish-step`";
        self.texts.all_ended(TEXT, place)?;
        self.reasonings.all_ended(REASONING, place)?;
        match self.open_calls.keys().min() {
            Some(id) => Err(format!("the call {id:?} is open at {place}")),
            None => Ok(()),
        }
    }

    fn part(&mut self, kind: &str, part: &Node<'_>) -> Rule {
        match kind {
            "text-start" => self.texts.start(TEXT, part.filled("id")?),
            "text-delta" => delta(&self.texts, TEXT, part),
            "text-end" => self.texts.end(TEXT, part.filled("id")?),
            "reasoning-start" => self.reasonings.start(REASONING, part.filled("id")?),
            "reasoning-delta" => delta(&self.reasonings, REASONING, part),
            "reasoning-end" => self.reasonings.end(REASONING, part.filled("id")?),
            "tool-input-start" => self.call_start(part),
            "tool-input-delta" => {
                self.call(part)?;
                part.filled("inputTextDelta").map(drop)
            }
            "tool-input-available" | "tool-input-error" => self.call_end(kind, part),
            _ if self.is_run && kind.starts_with("tool-") => self.outcome(kind, part),
            "file" => file(part),
            "source-url" => {
                part.filled("sourceId")?;
                part.filled("url").map(drop)
            }
            "source-document" => {
                part.filled("sourceId")?;
                part.filled("mediaType")?;
                part.text("title").map(drop)
            }
            _ if kind.strip_prefix("data-").is_some_and(|name| !name.is_empty()) => {
                part.at("data").map(drop)
            }
            _ => Err(format!("`{kind}` is not a part of the target")),
        }
    }

    fn call(&self, part: &Node<'_>) -> Rule<&Call> {
        let id = part.filled("toolCallId")?;
        self.open_calls.get(id).ok_or_else(|| {
            let why = if self.call_ids.has(id) { "has ended" } else { "was not started" };
            format!("the call {id:?} {why}")
        })
    }

    fn call_start(&mut self, part: &Node<'_>) -> Rule {
        let id = part.filled("toolCallId")?;
        self.call_ids.add("the toolCallId", id)?;
        let call = Call { name: part.filled("toolName")?.to_owned(), dynamic: dynamic(part)? };
        encoding(part)?;
        self.open_calls.insert(id.to_owned(), call);
        self.step_calls.push(id.to_owned());
        self.unanswered.insert(id.to_owned());
        Ok(())
    }

    fn call_end(&mut self, kind: &str, part: &Node<'_>) -> Rule {
        let call = self.call(part)?;
        part.is("toolName", &call.name)?;
        if dynamic(part)? != call.dynamic {
            return Err("`dynamic` differs from `tool-input-start`".to_owned());
        }
        encoding(part)?;
        part.at("input")?;
        if kind == "tool-input-error" {
            part.text("errorText")?;
        } else {
            self.called = true;
        }
        self.open_calls.remove(part.filled("toolCallId")?);
        Ok(())
    }

    /// Check what a run has between its steps.
    fn between(&mut self, kind: &str, part: &Node<'_>) -> Rule {
        match kind {
            "steering-message" => {
                self.steering.add("the id", part.filled("id")?)?;
                for item in part.list("parts")? {
                    if item.one_of("type", &["text", "file"])? == "text" {
                        item.filled("text")?;
                    } else {
                        file(&item)?;
                    }
                }
                Ok(())
            }
            "file" => file(part),
            "tool-input-available" => {
                let id = part.filled("toolCallId")?;
                self.call_ids.add("the toolCallId", id)?;
                part.filled("toolName")?;
                part.at("input")?;
                self.unanswered.insert(id.to_owned());
                self.called = true;
                Ok(())
            }
            _ if kind.starts_with("tool-") => self.outcome(kind, part),
            _ if kind.starts_with("data-") => part.at("data").map(drop),
            _ => Err(format!("`{kind}` is outside of a step")),
        }
    }

    /// Check what becomes of a call.
    fn outcome(&mut self, kind: &str, part: &Node<'_>) -> Rule {
        let answered = kind == "tool-approval-response";
        let id = if answered {
            let approval = part.filled("approvalId")?;
            let known = self.approvals.get(approval);
            known.ok_or_else(|| format!("the approval {approval:?} was not asked for"))?.clone()
        } else {
            part.filled("toolCallId")?.to_owned()
        };
        if self.open_calls.contains_key(&id) || !self.call_ids.has(&id) {
            return Err(format!("`{kind}` of the call {id:?}, whose input is not available"));
        }
        if !self.unanswered.contains(&id) {
            return Err(format!("`{kind}` of the call {id:?}, which has a result"));
        }
        match kind {
            "tool-approval-request" => {
                self.approvals.insert(part.filled("approvalId")?.to_owned(), id.clone());
                self.waiting.insert(id);
                return Ok(());
            }
            "tool-approval-response" => {
                part.flag("approved")?;
                part.text_if("reason")?;
                self.waiting.remove(&id);
                return Ok(());
            }
            "tool-output-available" => {
                part.at("output")?;
                if part.has("preliminary") && part.flag("preliminary")? {
                    return Ok(());
                }
            }
            "tool-output-error" => {
                part.text("errorText")?;
            }
            "tool-output-denied" if self.approvals.values().any(|call| *call == id) => {}
            _ => return Err(format!("`{kind}` is not a part of the target")),
        }
        self.waiting.remove(&id);
        self.unanswered.remove(&id);
        Ok(())
    }

    /// Take back what the step has so far.
    fn reset(&mut self) {
        self.texts = Parts::default();
        self.reasonings = Parts::default();
        self.open_calls.clear();
        for id in self.step_calls.drain(..) {
            self.unanswered.remove(&id);
            self.waiting.remove(&id);
            self.call_ids.forget(&id);
        }
    }

    /// Check that every call but those that wait has its result.
    fn all_answered(&self, place: &str) -> Rule {
        match self.unanswered.difference(&self.waiting).next() {
            Some(id) if self.is_run => Err(format!("the call {id:?} has no result at {place}")),
            _ => Ok(()),
        }
    }

    fn finish(&self, part: &Node<'_>) -> Rule {
        if self.is_run {
            self.all_answered("`finish`")?;
            if part.text_if("finishReason")? == Some(INTERRUPTED) {
                return Ok(());
            }
        }
        let reason = part.one_of("finishReason", &FINISH_REASONS)?;
        if reason == "tool-calls" && !self.called {
            return Err("`finishReason` is tool-calls, but no call was written".to_owned());
        }
        Ok(())
    }
}

/// Check a delta of a text or reasoning part.
fn delta(parts: &Parts, what: &str, part: &Node<'_>) -> Rule {
    parts.expect(what, part.filled("id")?)?;
    if part.text("delta")?.is_empty() && !part.has("providerMetadata") {
        return Err("an empty `delta` carries nothing".to_owned());
    }
    Ok(())
}

fn file(part: &Node<'_>) -> Rule {
    part.filled("url")?;
    part.filled("mediaType").map(drop)
}

fn dynamic(part: &Node<'_>) -> Rule<bool> {
    if part.has("dynamic") { part.flag("dynamic") } else { Ok(false) }
}

/// Check the mark of free text.
fn encoding(part: &Node<'_>) -> Rule {
    if part.has("inputEncoding") { part.is("inputEncoding", "text") } else { Ok(()) }
}

/// Check that provider metadata holds objects only.
fn metadata(part: &Node<'_>) -> Rule {
    let Some(metadata) = part.maybe("providerMetadata") else { return Ok(()) };
    for (provider, _) in metadata.as_object()? {
        metadata.object(provider)?;
    }
    Ok(())
}
