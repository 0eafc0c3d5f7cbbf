//! State of a stream, and the application of an event to it.

use std::collections::BTreeMap;

use super::read::{self, Change, Content, Delta, Event, EventTemplate};
use super::steps::Step;

use crate::contract::{ErrorCode, Failure, FinishReason, Output};
use crate::dialect::gemini::usage::{audio, sum};
use crate::dialect::protocol::{Frame, Protocol, Wanted};
use crate::emit::{CallEnd, Counts, DeltaSink};
use crate::json::{Reader, Result, Str};
use crate::provider_error::ErrorObject;

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The steps that are open.
    steps: BTreeMap<i64, Step>,
    /// The step that came last.
    last: Option<i64>,
    /// What a status update said, until the end says it.
    status: Option<String>,
}

impl Protocol for State {
    type EventTemplate = EventTemplate;

    fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, wanted: Wanted) -> Result<Event<'a>> {
        read::read(frame, reader, wanted)
    }

    fn apply<O: Output>(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_, O>) {
        sink.merge_usage(event.usage, counts);
        match event.change {
            Change::More { content, index, text } => self.more(content, index, text, sink),
            // What `read` validated fails only by being no object.
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

    fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>) {
        for step in std::mem::take(&mut self.steps).into_values() {
            step.close(sink);
        }
        if let Some(status) = self.status.take() {
            finish(&status, None, sink);
        }
    }
}

impl State {
    /// The step that an index names, the last one for want of a name.
    #[inline]
    fn place(&self, index: Option<i64>) -> Option<i64> {
        index.or(self.last)
    }

    #[inline]
    fn more<O: Output>(
        &mut self,
        content: Content,
        index: Option<i64>,
        text: Str<'_>,
        sink: &mut DeltaSink<'_, O>,
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

    fn delta<O: Output>(
        &mut self,
        index: Option<i64>,
        json: &str,
        sink: &mut DeltaSink<'_, O>,
    ) -> Result<()> {
        let delta = Delta::read(&mut Reader::trusted(json))?;
        let kind = delta.kind.map(|kind| kind.text()).unwrap_or_default();
        let at = self.place(index).unwrap_or(0);
        let known = self.steps.get_mut(&at);
        if known.is_none_or(|step| !step.take(&kind, &delta, json, sink))
            && let Some(step) = self.stray(at, &kind, sink)
        {
            step.take(&kind, &delta, json, sink);
        }
        Ok(())
    }

    /// A step for a delta whose step was never announced, has stopped, or is of another kind.
    fn stray<O: Output>(
        &mut self,
        at: i64,
        kind: &str,
        sink: &mut DeltaSink<'_, O>,
    ) -> Option<&mut Step> {
        sink.warn("stray_delta", "a delta came for a step that was not open", None);
        if let Some(step) = self.steps.remove(&at) {
            abandon(step, sink);
        }
        self.last = Some(at);
        let step = Step::from_kind(kind, sink)?;
        Some(self.steps.entry(at).or_insert(step))
    }

    fn start<O: Output>(&mut self, index: Option<i64>, json: &str, sink: &mut DeltaSink<'_, O>) {
        let next = self.last.map_or(0, |last| last.saturating_add(1));
        let at = index.unwrap_or(next);
        if let Some(step) = self.steps.remove(&at) {
            sink.warn("repeated_step", "a step began while another had its index", None);
            abandon(step, sink);
        }
        self.last = Some(at);
        if let Some(step) = Step::open(json, sink) {
            self.steps.insert(at, step);
        }
    }

    fn interaction<O: Output>(
        &mut self,
        last: bool,
        json: &str,
        sink: &mut DeltaSink<'_, O>,
    ) -> Result<()> {
        let (mut id, mut model, mut agent) = (None, None, None);
        let (mut status, mut error, mut usage, mut steps) = (None, None, None, None);
        Reader::trusted(json).maybe_object(|reader, key| {
            match key {
                "id" => id = reader.id()?,
                "model" => model = reader.filled_string()?,
                "agent" => agent = reader.filled_string()?,
                "status" => status = reader.filled_string()?,
                "error" => error = reader.opt_raw()?,
                "usage" => usage = read::usage(reader)?,
                "steps" | "outputs" => steps = reader.opt_raw()?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        sink.identity(model.or(agent), id);
        if !last {
            return Ok(());
        }
        // After a stream they would repeat it.
        if let (None, Some(steps)) = (self.last, steps) {
            Reader::trusted(steps).maybe_array(|reader| {
                // The last step stays open: only the status says whether it was cut.
                if let Some(step) = self.last.and_then(|at| self.steps.remove(&at)) {
                    step.stop(sink);
                }
                self.start(None, reader.raw()?, sink);
                Ok(())
            })?;
        }
        sink.merge_usage(usage, counts);
        let status = status.map(|status| status.text()).or(self.status.take());
        self.status = None;
        self.close(sink);
        if let Some(status) = status {
            finish(&status, error, sink);
        }
        sink.end();
        Ok(())
    }
}

/// Another step takes its place: nobody may run what came of a call.
fn abandon<O: Output>(step: Step, sink: &mut DeltaSink<'_, O>) {
    match step {
        Step::Call(call) => sink.end_call(call, CallEnd::Abandoned),
        other => other.close(sink),
    }
}

fn goes_on(status: &str) -> bool {
    matches!(status, "in_progress" | "queued")
}

fn finish<O: Output>(status: &str, error: Option<&str>, sink: &mut DeltaSink<'_, O>) {
    let reason = match status {
        "completed" => FinishReason::Stop,
        "requires_action" => FinishReason::ToolCalls,
        "incomplete" | "budget_exceeded" => FinishReason::Length,
        "failed" | "cancelled" => return sink.defer_error(ended_badly(status, error, sink)),
        _ => FinishReason::Other,
    };
    sink.finish(reason, status);
}

fn ended_badly<O: Output>(
    status: &str,
    error: Option<&str>,
    sink: &DeltaSink<'_, O>,
) -> Failure<Box<str>> {
    match error {
        Some(json) => ErrorObject::read(json)
            .unwrap_or_default()
            .failure(&sink.options().response, "the interaction failed without saying why"),
        None if status == "cancelled" => {
            Failure::new(ErrorCode::Cancelled, "the interaction was cancelled".into())
        }
        None => {
            Failure::new(ErrorCode::ServerError, "the interaction failed without saying why".into())
        }
    }
}

/// Counts of a merged record: the input's includes what the cache gave and not what tools put in, the output's excludes
/// thoughts.
fn counts(usage: &str) -> Result<Counts> {
    let mut counts = Counts::default();
    let (mut input, mut tools, mut output) = (None, None, None);
    Reader::trusted(usage).maybe_object(|reader, key| {
        match key {
            "total_input_tokens" => input = reader.count()?,
            "total_tool_use_tokens" => tools = reader.count()?,
            "total_output_tokens" => output = reader.count()?,
            "total_thought_tokens" => counts.reasoning = reader.count()?,
            // The older name.
            "total_reasoning_tokens" => {
                counts.reasoning = counts.reasoning.or(reader.count()?);
            }
            "total_cached_tokens" => counts.cache_read = reader.count()?,
            "input_tokens_by_modality" => counts.audio_input = audio(reader)?,
            "output_tokens_by_modality" => counts.audio_output = audio(reader)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    let beside = counts.cache_read.filter(|cached| input.is_some_and(|input| *cached > input));
    counts.input = sum([input, tools, beside]);
    counts.output = sum([output, counts.reasoning]);
    Ok(counts)
}
