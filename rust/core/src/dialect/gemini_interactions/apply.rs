//! State of an Interactions stream, and the application of events to it.

use std::collections::BTreeMap;

use super::read::{self, Change, Content, Delta, Event, EventTemplate};
use super::steps::Step;

use super::facts::FACTS;
use crate::contract::{ErrorCode, Failure, FinishReason};
use crate::dialect::protocol::{Frame, Protocol, Wanted};
use crate::dialect::unread::Unread;
use crate::emit::{CallEnd, PartKind};
use crate::facts::Ending;
use crate::json::{self, Reader, Result, Str};
use crate::provider_error::ErrorObject;
use crate::sink::DeltaSink;

/// Members of an interaction that repeat the request, or that say nothing about the answer.
///
/// Source: the types `Interaction` and `CreateModelInteractionParams` of google-genai 3.6.
const OF_THE_REQUEST: [&str; 17] = [
    "agent_config",
    "background",
    "cached_content",
    "environment",
    "generation_config",
    "input",
    "previous_interaction_id",
    "response_format",
    "response_mime_type",
    "response_modalities",
    "role",
    "safety_settings",
    "store",
    "stream",
    "system_instruction",
    "tools",
    "webhook_config",
];

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The open steps, by index.
    steps: BTreeMap<i64, Step>,
    /// The index of the latest step.
    last: Option<i64>,
    /// The status of the last status update.  Used at the end of the stream if the last event has none.
    status: Option<String>,
    /// The error of the latest output of the model: a JSON object, empty without one.
    failed_step: String,
    /// The last token with which another request continues the interaction: a JSON object, empty without one.
    continuation: String,
}

impl Protocol for State {
    type EventTemplate = EventTemplate;

    fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, wanted: Wanted) -> Result<Event<'a>> {
        read::read(frame, reader, wanted)
    }

    fn apply(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_>) {
        if let Change::Interaction { interaction, .. } = event.change {
            let _ = identify(interaction, sink);
        } else if event.interaction_id.is_some() {
            sink.identity(None, event.interaction_id);
        }
        event.unread.send(sink);
        sink.merge_usage(event.usage, &FACTS.usage);
        if event.continuation_token.is_some() {
            self.set_continuation(event.continuation_token, sink);
        }
        match event.change {
            Change::More { content, index, text } => self.more(content, index, text, sink),
            // `read` validated the JSON, so that an error here only means a value that is not an object.
            Change::Delta { index, delta } => {
                let _ = self.delta(index, delta, sink);
            }
            Change::Start { index, step } => self.start(index, step, sink),
            Change::Stop { index } => {
                if let Some(step) = self.place(index).and_then(|at| self.steps.remove(&at)) {
                    step.stop(sink);
                }
            }
            Change::Status(status) => {
                self.status = Some(status.text()).filter(|status| !goes_on(status));
            }
            Change::Interaction { last, interaction } => {
                let _ = self.interaction(last, interaction, sink);
            }
            Change::Failed(json) => {
                self.status = None;
                self.close(sink);
                sink.error(sink.failure(json));
            }
            Change::Progress => {}
            Change::Unknown(kind) => {
                sink.warn_unknown("event", kind);
            }
        }
    }

    fn close(&mut self, sink: &mut DeltaSink<'_>) {
        for step in std::mem::take(&mut self.steps).into_values() {
            step.close(sink);
        }
        if let Some(status) = self.status.take() {
            self.finish(&status, None, sink);
        }
    }
}

impl State {
    /// Return the given index, or that of the latest step if the event has none.
    #[inline]
    fn place(&self, index: Option<i64>) -> Option<i64> {
        index.or(self.last)
    }

    #[inline]
    fn more(
        &mut self,
        content: Content,
        index: Option<i64>,
        text: Str<'_>,
        sink: &mut DeltaSink<'_>,
    ) {
        let at = self.place(index).unwrap_or(0);
        let known = self.steps.get_mut(&at);
        if known.is_none_or(|step| !step.more(content, text, sink)) {
            let kind = match content {
                Content::Text => "text",
                Content::Thought => "thought_summary",
                Content::Arguments => "arguments_delta",
            };
            if let Some(step) = self.stray(at, kind, sink) {
                step.more(content, text, sink);
            }
        }
    }

    fn delta(&mut self, index: Option<i64>, json: &str, sink: &mut DeltaSink<'_>) -> Result<()> {
        let mut unread = Unread::default();
        let delta = Delta::read(&mut Reader::trusted(json), &mut unread)?;
        let kind = delta.kind.map(|kind| kind.text()).unwrap_or_default();
        let at = self.place(index).unwrap_or(0);
        let known = self.steps.get_mut(&at);
        if known.is_none_or(|step| !step.take(&kind, &delta, (json, &unread), sink))
            && let Some(step) = self.stray(at, &kind, sink)
        {
            step.take(&kind, &delta, (json, &unread), sink);
        }
        Ok(())
    }

    /// Open a step for a delta whose step was never announced, has stopped, or is of another kind.
    fn stray(&mut self, at: i64, kind: &str, sink: &mut DeltaSink<'_>) -> Option<&mut Step> {
        sink.warn("stray_delta", "a delta came for a step that was not open", None);
        if let Some(step) = self.steps.remove(&at) {
            abandon(step, sink);
        }
        self.last = Some(at);
        let step = Step::from_kind(kind, sink)?;
        Some(self.steps.entry(at).or_insert(step))
    }

    fn start(&mut self, index: Option<i64>, json: &str, sink: &mut DeltaSink<'_>) {
        let next = self.last.map_or(0, |last| last.saturating_add(1));
        let at = index.unwrap_or(next);
        if let Some(step) = self.steps.remove(&at) {
            sink.warn("repeated_step", "a step began while another had its index", None);
            abandon(step, sink);
        }
        self.last = Some(at);
        if let Some((step, error)) = Step::open(json, sink) {
            if matches!(step, Step::Output(_)) {
                self.set_failed_step(error.unwrap_or_default(), sink);
            }
            self.steps.insert(at, step);
        }
    }

    fn set_failed_step(&mut self, error: &str, sink: &mut DeltaSink<'_>) {
        if !self.failed_step.is_empty() {
            sink.warn("failed_step", "an output of the model failed, and another followed", None);
        }
        sink.give_back_state_bytes(self.failed_step.len());
        self.failed_step.clear();
        if sink.take_state_bytes(error.len()) {
            self.failed_step.push_str(error);
        }
    }

    fn interaction(&mut self, last: bool, json: &str, sink: &mut DeltaSink<'_>) -> Result<()> {
        if !last {
            return Ok(());
        }
        let (mut status, mut error, mut usage, mut steps) = (None, None, None, None);
        let mut token = None;
        let mut unread = Unread::default();
        Reader::trusted(json).maybe_object(|reader, key| {
            match key {
                "status" => status = reader.filled_string()?,
                "error" => error = reader.opt_raw()?,
                "usage" => usage = read::usage(reader)?,
                "continuation_token" => token = reader.filled_string()?,
                "steps" | "outputs" => steps = reader.opt_raw()?,
                "id" | "model" | "agent" => reader.skip()?,
                _ if OF_THE_REQUEST.contains(&key) => reader.skip()?,
                key => unread.fact(reader, key)?,
            }
            Ok(())
        })?;
        unread.send(sink);
        // After a stream, the steps would repeat the streamed content.
        if let (None, Some(steps)) = (self.last, steps) {
            Reader::trusted(steps).maybe_array(|reader| {
                // The last step stays open, because only the status tells whether it was cut.
                if let Some(step) = self.last.and_then(|at| self.steps.remove(&at)) {
                    step.stop(sink);
                }
                self.start(None, reader.raw()?, sink);
                Ok(())
            })?;
        }
        sink.merge_usage(usage, &FACTS.usage);
        let status = status.map(|status| status.text()).or(self.status.take());
        self.status = None;
        self.close(sink);
        // The last event knows best: without a token in it, the interaction does not go on.
        self.set_continuation(token, sink);
        if let Some(status) = status {
            self.finish(&status, error, sink);
        }
        sink.says_whole();
        sink.end();
        Ok(())
    }

    fn set_continuation(&mut self, token: Option<Str<'_>>, sink: &mut DeltaSink<'_>) {
        sink.give_back_state_bytes(self.continuation.len());
        self.continuation.clear();
        if let Some(token) = token {
            let state = json::object(|state| state.wire_text("continuation_token", token));
            if sink.take_state_bytes(state.len()) {
                self.continuation = state;
            }
        }
    }

    /// Record the end.  The token of an interaction that paused becomes the state of an empty text.
    fn finish(&mut self, status: &str, error: Option<&str>, sink: &mut DeltaSink<'_>) {
        match sink.ending(&FACTS.finish_reasons, status) {
            Ending::Finish(_) if !self.failed_step.is_empty() => {
                let error = std::mem::take(&mut self.failed_step);
                sink.give_back_state_bytes(error.len());
                sink.defer_error(ended_badly(ErrorCode::ServerError, Some(&error), sink));
            }
            Ending::Finish(reason) => {
                let state = std::mem::take(&mut self.continuation);
                sink.give_back_state_bytes(state.len());
                if reason == FinishReason::Pause && !state.is_empty() {
                    let part = sink.open_part(PartKind::Text);
                    sink.part_state(part, &state);
                } else if let Some((name, token)) = json::members(&state).first() {
                    sink.unknown_detail(name, token);
                }
                sink.finish_word(&FACTS.finish_reasons, status);
            }
            Ending::Failure(code) => sink.defer_error(ended_badly(code, error, sink)),
        }
    }
}

/// Name the interaction, before anything else is said of it.
fn identify(json: &str, sink: &mut DeltaSink<'_>) -> Result<()> {
    let (mut id, mut model, mut agent) = (None, None, None);
    Reader::trusted(json).maybe_object(|reader, key| {
        match key {
            "id" => id = reader.id()?,
            "model" => model = reader.filled_string()?,
            "agent" => agent = reader.filled_string()?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    sink.identity(model.or(agent), id);
    if let Some(agent) = agent {
        sink.unknown_detail("agent", &format!("\"{}\"", agent.raw));
    }
    Ok(())
}

/// End a step that another step replaces.  The fragments of a call must not be run.
fn abandon(step: Step, sink: &mut DeltaSink<'_>) {
    match step {
        Step::Call(call) => sink.end_call(call, CallEnd::Abandoned),
        other => other.close(sink),
    }
}

fn goes_on(status: &str) -> bool {
    matches!(status, "in_progress" | "queued")
}

fn ended_badly(code: ErrorCode, error: Option<&str>, sink: &DeltaSink<'_>) -> Failure<Box<str>> {
    match error {
        Some(json) => ErrorObject::read(json)
            .unwrap_or_default()
            .failure(&sink.options().response, "the interaction failed without saying why"),
        None if code == ErrorCode::Cancelled => {
            Failure::new(code, "the interaction was cancelled".into())
        }
        None => Failure::new(code, "the interaction failed without saying why".into()),
    }
}
