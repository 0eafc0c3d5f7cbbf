//! What every dialect leaves to one place: seq, `start`, part numbers, call ids, start/end pairing, usage, finish reason,
//! and the one terminal.
//!
//! In: what `apply` says through [`DeltaSink`].  Out: lawful deltas, to an [`Output`].
//! Laws: those of [`crate::laws`]; nothing leaves after the terminal; a limit that was reached ends the stream.

use std::collections::HashMap;
use std::sync::Arc;

use crate::delta::{
    Delta, ErrorCode, Failure, FinishReason, InputFormat, Output, Payload, Riders, Usage,
};
use crate::limits::Limits;
use crate::provider_error::Response;
use crate::scan::{JsonScan, Verdict};
use crate::warnings::Warnings;
use crate::wire::{Carry, Str, write_string};

/// What the caller knows of a stream before its first byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The registry's name.
    pub dialect: &'static str,
    /// The agent run.
    pub run_id: Box<str>,
    /// The model that was asked for.
    pub model_id: Option<Box<str>>,
    /// Stands in where the body names no response id.
    pub request_id: Option<Box<str>>,
    /// Status and headers.
    pub response: Response,
    /// Which of several answers is followed.
    pub choice: u64,
    /// Whether the first delta of a frame carries the frame's JSON.
    pub provider_raw: bool,
    /// Whether log probabilities ride on text deltas.
    pub logprobs: bool,
    /// Bounds.
    pub limits: Limits,
}

/// What a part holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Visible text.
    Text,
    /// Visible text that declines.
    Refusal,
    /// Reasoning.
    Thinking,
}

/// A part that a dialect opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartHandle(usize);

/// A tool call that a dialect opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallHandle(usize);

/// How a call's arguments came to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The provider closed the call.
    Provider,
    /// The message's finish reason or end marker.
    Finish(FinishReason),
    /// The stream failed or just stopped.
    Cut,
    /// Its message was abandoned, or what was sent is known to be half of it.
    Abandoned,
}

#[derive(Clone, Debug, PartialEq)]
struct Part {
    kind: PartKind,
    index: Option<u32>,
    carry: Carry,
}

#[derive(Clone, Debug, PartialEq)]
struct Call {
    id: String,
    given_id: bool,
    name: Option<String>,
    stage: Stage,
    format: InputFormat,
    scan: JsonScan,
    carry: Carry,
    /// Arguments that wait: for a name, or (exactly `{}`) for what follows.
    pending: String,
    sent: bool,
    provider_state: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    Started,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    Ended,
}

/// The outgoing side: numbering, `start`, limits.  Apart from parts and calls so that a payload may borrow from those.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    options: Arc<Options>,
    phase: Phase,
    seq: u64,
    model: String,
    response_id: String,
    started_model: String,
    next_part: u32,
    message_bytes: usize,
    state_bytes: usize,
    /// The frame's JSON until its first delta leaves.
    raw: Option<String>,
    /// The limit that was reached.
    breach: Option<String>,
}

impl Line {
    fn send<O: Output>(&mut self, out: &mut O, payload: Payload<&str>) {
        if self.phase == Phase::Waiting {
            self.start(out);
        }
        self.seq += 1;
        let raw = self.raw.take();
        out.delta(&Delta {
            seq: self.seq,
            payload,
            provider_raw: raw.as_deref(),
        });
    }

    fn start<O: Output>(&mut self, out: &mut O) {
        if self.phase != Phase::Waiting {
            return;
        }
        self.phase = Phase::Running;
        let options = Arc::clone(&self.options);
        if self.model.is_empty() {
            self.model
                .push_str(options.model_id.as_deref().unwrap_or(""));
        }
        if self.response_id.is_empty() {
            self.response_id
                .push_str(options.request_id.as_deref().unwrap_or(&options.run_id));
        }
        self.started_model.clone_from(&self.model);
        self.seq += 1;
        let payload = Payload::Start {
            model_id: self.model.as_str(),
            request_id: self.response_id.as_str(),
        };
        let raw = self.raw.take();
        out.delta(&Delta {
            seq: self.seq,
            payload,
            provider_raw: raw.as_deref(),
        });
    }

    /// Counts `added` against a bound; false, once and for all, when it is reached.
    fn within(&mut self, which: &str, used: usize, bound: usize) -> bool {
        if self.breach.is_none() && used > bound {
            self.breach = Some(format!("limit reached: {which} ({bound})"));
        }
        self.breach.is_none()
    }

    fn take_message_bytes(&mut self, added: usize) -> bool {
        self.message_bytes = self.message_bytes.saturating_add(added);
        let bound = self.options.limits.message_bytes;
        self.within("message_bytes", self.message_bytes, bound)
    }

    fn take_state_bytes(&mut self, added: usize) -> bool {
        self.state_bytes = self.state_bytes.saturating_add(added);
        let bound = self.options.limits.provider_state_bytes;
        self.within("provider_state_bytes", self.state_bytes, bound)
    }

    fn open_part(&mut self) -> Option<u32> {
        let index = self.next_part;
        let bound = self.options.limits.parts;
        if !self.within("parts", index as usize + 1, bound) {
            return None;
        }
        self.next_part += 1;
        Some(index)
    }

    fn provider_state(&self, data: &str) -> String {
        let mut out = String::with_capacity(data.len() + 64);
        out.push_str("{\"dialect\":");
        write_string(&mut out, self.options.dialect);
        out.push_str(",\"modelId\":");
        write_string(
            &mut out,
            self.options.model_id.as_deref().unwrap_or(&self.model),
        );
        out.push_str(",\"data\":");
        out.push_str(data);
        out.push('}');
        out
    }
}

/// The finisher's state.
#[derive(Clone, Debug, PartialEq)]
pub struct Finisher {
    line: Line,
    parts: Vec<Part>,
    calls: Vec<Call>,
    /// Every call before it has ended.
    first_open: usize,
    started_calls: usize,
    ids: HashMap<String, u32>,
    usage: Option<Usage<Box<str>>>,
    finish: Option<(FinishReason, String)>,
    deferred: Option<Failure<Box<str>>>,
    refused: bool,
    warnings: Warnings,
    scratch: String,
}

impl Finisher {
    /// Before the first byte.
    pub fn new(options: Arc<Options>) -> Self {
        Self {
            line: Line {
                options,
                phase: Phase::Waiting,
                seq: 0,
                model: String::new(),
                response_id: String::new(),
                started_model: String::new(),
                next_part: 0,
                message_bytes: 0,
                state_bytes: 0,
                raw: None,
                breach: None,
            },
            parts: Vec::new(),
            calls: Vec::new(),
            first_open: 0,
            started_calls: 0,
            ids: HashMap::new(),
            usage: None,
            finish: None,
            deferred: None,
            refused: false,
            warnings: Warnings::default(),
            scratch: String::new(),
        }
    }

    /// Whether the terminal has left.
    pub fn ended(&self) -> bool {
        self.line.phase == Phase::Ended
    }

    /// The seq of the last delta that left.
    pub fn last_seq(&self) -> u64 {
        self.line.seq
    }
}

/// What `apply` may say.
pub struct DeltaSink<'a, O> {
    finisher: &'a mut Finisher,
    out: &'a mut O,
}

impl<'a, O: Output> DeltaSink<'a, O> {
    /// Lets `finisher` speak to `out`.
    pub fn new(finisher: &'a mut Finisher, out: &'a mut O) -> Self {
        Self { finisher, out }
    }

    /// What the caller knew before the first byte.
    pub fn options(&self) -> &Options {
        &self.finisher.line.options
    }

    /// Whether the terminal has left.
    pub fn ended(&self) -> bool {
        self.finisher.ended()
    }

    /// Whether content may still leave: no terminal, no limit reached, no error remembered.
    fn open(&self) -> bool {
        !self.ended() && self.finisher.line.breach.is_none() && self.finisher.deferred.is_none()
    }

    /// Keeps the frame's JSON for its first delta, when asked for.
    pub fn begin_frame(&mut self, json: &str) {
        if self.options().provider_raw {
            self.finisher.line.raw = Some(json.to_owned());
        }
    }

    /// After each frame: a limit that was reached ends the stream.
    pub fn end_frame(&mut self) {
        self.finisher.line.raw = None;
        if let Some(message) = self.finisher.line.breach.take() {
            self.error(Failure::new(ErrorCode::ProtocolError, message.into()));
        }
    }

    /// Names model and response id; the first name of each counts.  `start` leaves once both are known.
    pub fn identity(&mut self, model: Option<Str<'_>>, response_id: Option<Str<'_>>) {
        if self.ended() {
            return;
        }
        let line = &mut self.finisher.line;
        if let Some(model) = model
            && line.model.is_empty()
        {
            line.model = model.text();
        }
        if line.phase == Phase::Waiting {
            if let Some(id) = response_id
                && line.response_id.is_empty()
            {
                line.response_id = id.text();
            }
            if !line.model.is_empty() && !line.response_id.is_empty() {
                line.start(self.out);
            }
        }
    }

    /// Another model took over.
    pub fn model_changed(&mut self, model: Str<'_>) {
        self.finisher.line.model = model.text();
    }

    /// Notes a warning; one that was noted before is only counted.
    pub fn warn(&mut self, code: &'static str, message: &str, offset: Option<u64>) {
        let max = self.options().limits.warnings;
        if !self.finisher.warnings.note(max, code, message, offset) {
            self.finisher.line.within("warnings", max + 1, max);
        }
    }

    /// Counts bytes that a dialect holds for a provider part; false when the limit is reached.
    pub fn take_state_bytes(&mut self, added: usize) -> bool {
        self.finisher.line.take_state_bytes(added)
    }

    fn warn_lone(&mut self, carry: Carry) {
        if carry.lone > 0 {
            self.warn(
                "lone_surrogate",
                "a lone surrogate escape became U+FFFD",
                None,
            );
        }
    }

    /// Opens a part; it gets its number when its first delta leaves.
    pub fn open_part(&mut self, kind: PartKind) -> PartHandle {
        self.finisher.parts.push(Part {
            kind,
            index: None,
            carry: Carry::default(),
        });
        PartHandle(self.finisher.parts.len() - 1)
    }

    /// More text of a part.
    #[inline]
    pub fn text(&mut self, part: PartHandle, text: Str<'_>) {
        if text.is_empty() || !self.open() {
            return;
        }
        let Finisher {
            line,
            parts,
            scratch,
            ..
        } = &mut *self.finisher;
        let Some(part) = parts.get_mut(part.0) else {
            return;
        };
        let lone = part.carry.lone;
        let plain = if !text.escaped && part.carry.high.is_none() {
            text.raw
        } else {
            scratch.clear();
            text.decode_into(scratch, &mut part.carry);
            scratch.as_str()
        };
        if !plain.is_empty() && line.take_message_bytes(plain.len()) {
            send_text(line, self.out, part, plain, Riders::default());
        }
        if part.carry.lone > lone {
            let carry = part.carry;
            self.warn_lone(carry);
        }
    }

    /// What rides on a part beside its text, on an empty delta.
    fn ride(&mut self, part: PartHandle, riders: Riders<&str>) {
        if !self.open() {
            return;
        }
        self.flush_part(part);
        let Finisher { line, parts, .. } = &mut *self.finisher;
        let bytes = [riders.annotations, riders.logprobs, riders.provider_state];
        let bytes = bytes.iter().flatten().map(|text| text.len()).sum();
        if let Some(part) = parts.get_mut(part.0)
            && line.take_state_bytes(bytes)
        {
            send_text(line, self.out, part, "", riders);
        }
    }

    /// Adds citations: a JSON array.
    pub fn annotate(&mut self, part: PartHandle, annotations: &str) {
        self.ride(
            part,
            Riders {
                annotations: Some(annotations),
                ..Riders::default()
            },
        );
    }

    /// Adds log probabilities: a JSON object of the contract's form.
    pub fn logprobs(&mut self, part: PartHandle, logprobs: &str) {
        self.ride(
            part,
            Riders {
                logprobs: Some(logprobs),
                ..Riders::default()
            },
        );
    }

    /// Sets what the provider must get back with this part; `data` is a JSON value.
    pub fn part_state(&mut self, part: PartHandle, data: &str) {
        let state = self.finisher.line.provider_state(data);
        self.ride(
            part,
            Riders {
                provider_state: Some(&state),
                ..Riders::default()
            },
        );
    }

    /// A thinking part of which only the provider state exists.
    pub fn redacted(&mut self, data: &str) -> PartHandle {
        let part = self.open_part(PartKind::Thinking);
        let state = self.finisher.line.provider_state(data);
        self.ride(
            part,
            Riders {
                redacted: true,
                provider_state: Some(&state),
                ..Riders::default()
            },
        );
        part
    }

    /// No more text comes for now: a surrogate that waits for its other half stays alone.
    pub fn flush_part(&mut self, part: PartHandle) {
        let Finisher {
            line,
            parts,
            scratch,
            ..
        } = &mut *self.finisher;
        let Some(part) = parts.get_mut(part.0) else {
            return;
        };
        if part.carry.high.is_none() {
            return;
        }
        scratch.clear();
        part.carry.flush(scratch);
        let carry = part.carry;
        send_text(line, self.out, part, scratch, Riders::default());
        self.warn_lone(carry);
    }

    /// A whole part at once; `part` is a JSON object `{kind, payload}`.
    pub fn whole_part(&mut self, part: &str) {
        if !self.open() || !self.finisher.line.take_state_bytes(part.len()) {
            return;
        }
        if let Some(index) = self.finisher.line.open_part() {
            self.finisher.line.send(
                self.out,
                Payload::Part {
                    part_index: Some(index),
                    part,
                },
            );
        }
    }

    /// A block that only its provider understands; `block` is its JSON.
    pub fn provider_part(&mut self, block: &str) {
        let mut part = String::from("{\"kind\":\"provider\",\"payload\":{\"dialect\":");
        write_string(&mut part, self.options().dialect);
        part.push_str(",\"block\":");
        part.push_str(block);
        part.push_str("}}");
        self.whole_part(&part);
    }

    /// Opens a tool call; it starts at its name and id, at its first arguments, or at its end.
    pub fn open_call(&mut self, format: InputFormat) -> CallHandle {
        let bound = self.options().limits.tool_calls;
        let used = self.finisher.calls.len() + 1;
        if self.finisher.line.within("tool_calls", used, bound) {
            self.finisher.calls.push(Call {
                id: String::new(),
                given_id: false,
                name: None,
                stage: Stage::Waiting,
                format,
                scan: JsonScan::default(),
                carry: Carry::default(),
                pending: String::new(),
                sent: false,
                provider_state: None,
            });
        }
        CallHandle(used - 1)
    }

    /// Names the call.  The first name counts; once it has started, another id or name is only warned of.
    pub fn name_call(&mut self, call: CallHandle, id: Option<Str<'_>>, name: Option<Str<'_>>) {
        if !self.open() {
            return;
        }
        let Some(state) = self.finisher.calls.get_mut(call.0) else {
            return;
        };
        let mut late = None;
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            if !state.given_id && state.stage == Stage::Waiting {
                state.id = id.text();
                state.given_id = true;
            } else if state.stage != Stage::Waiting && !state.given_id {
                late = Some("an id that came after its tool call had started was ignored");
            }
        }
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            match &state.name {
                None => state.name = Some(name.text()),
                Some(known) if name.is(known) => {}
                Some(_) => late = Some("a second, different name of a tool call was ignored"),
            }
        }
        let ready = state.stage == Stage::Waiting
            && state.name.is_some()
            && (state.given_id || !state.pending.is_empty());
        if let Some(message) = late {
            self.warn("tool_call_identity", message, None);
        }
        if ready {
            self.start_call(call);
        }
    }

    /// Sets what the provider must get back with this call; `data` is a JSON value.
    pub fn call_state(&mut self, call: CallHandle, data: &str) {
        let state = self.finisher.line.provider_state(data);
        if self.finisher.line.take_state_bytes(state.len())
            && let Some(call) = self.finisher.calls.get_mut(call.0)
        {
            call.provider_state = Some(state);
        }
    }

    /// More text of the call's arguments.
    #[inline]
    pub fn call_args(&mut self, call: CallHandle, text: Str<'_>) {
        if text.is_empty() || !self.open() {
            return;
        }
        let Finisher {
            line,
            calls,
            scratch,
            ..
        } = &mut *self.finisher;
        let Some(state) = calls
            .get_mut(call.0)
            .filter(|state| state.stage != Stage::Ended)
        else {
            return;
        };
        let lone = state.carry.lone;
        let plain = if !text.escaped && state.carry.high.is_none() {
            text.raw
        } else {
            scratch.clear();
            text.decode_into(scratch, &mut state.carry);
            scratch.as_str()
        };
        if plain.is_empty() || !line.take_message_bytes(plain.len()) {
            return;
        }
        state.scan.feed(plain.as_bytes());
        let lone_now = state.carry;
        if state.name.is_none() {
            state.pending.push_str(plain);
        } else if state.format == InputFormat::Json
            && !state.sent
            && state.pending.is_empty()
            && plain == "{}"
        {
            state.pending.push_str(plain);
            if state.stage == Stage::Waiting {
                self.start_call(call);
            }
        } else {
            if state.stage == Stage::Waiting {
                let held = plain.to_owned();
                self.start_call(call);
                self.send_args(call, &held);
            } else {
                if state.pending == "{}" {
                    // What was held gives way to what follows, for the scanner too.
                    state.pending.clear();
                    state.scan = JsonScan::default();
                    state.scan.feed(plain.as_bytes());
                }
                state.sent = true;
                line.send(
                    self.out,
                    Payload::ToolCallArgs {
                        id: &state.id,
                        text: plain,
                    },
                );
            }
        }
        if lone_now.lone > lone {
            self.warn_lone(lone_now);
        }
    }

    /// Whether the arguments that were sent are one whole JSON value.
    pub fn has_whole_arguments(&self, call: CallHandle) -> bool {
        self.finisher
            .calls
            .get(call.0)
            .is_some_and(|call| call.sent && call.scan.verdict() == Verdict::Complete)
    }

    fn send_args(&mut self, call: CallHandle, text: &str) {
        let Finisher { line, calls, .. } = &mut *self.finisher;
        if let Some(state) = calls.get_mut(call.0)
            && !text.is_empty()
        {
            state.sent = true;
            line.send(
                self.out,
                Payload::ToolCallArgs {
                    id: &state.id,
                    text,
                },
            );
        }
    }

    fn start_call(&mut self, call: CallHandle) {
        let Finisher {
            line,
            calls,
            ids,
            started_calls,
            ..
        } = &mut *self.finisher;
        let Some(state) = calls
            .get_mut(call.0)
            .filter(|state| state.stage == Stage::Waiting)
        else {
            return;
        };
        let Some(index) = line.open_part() else {
            return;
        };
        // Made-up ids derive from the response id, so `start` settles that first.
        line.start(self.out);
        if !state.given_id {
            state.id = made_up_id(&line.options.run_id, &line.response_id, call.0);
        }
        state.id = unique(ids, std::mem::take(&mut state.id));
        state.stage = Stage::Started;
        *started_calls += 1;
        let provider_state = state.provider_state.take();
        line.send(
            self.out,
            Payload::ToolCallStart {
                id: &state.id,
                name: state.name.as_deref().unwrap_or(""),
                part_index: Some(index),
                input_format: state.format,
                provider_state: provider_state.as_deref(),
            },
        );
        let pending = std::mem::take(&mut state.pending);
        if pending == "{}" && state.format == InputFormat::Json {
            state.pending = pending;
        } else {
            self.send_args(call, &pending);
        }
    }

    /// Ends a call.
    pub fn end_call(&mut self, call: CallHandle, how: CallEnd) {
        if self.ended() {
            return;
        }
        let Some(state) = self.finisher.calls.get_mut(call.0) else {
            return;
        };
        if state.stage == Stage::Waiting {
            if !state.given_id && state.name.is_none() && state.pending.is_empty() {
                state.stage = Stage::Ended;
                return;
            }
            self.start_call(call);
        }
        let Finisher {
            line,
            calls,
            scratch,
            ..
        } = &mut *self.finisher;
        let Some(state) = calls
            .get_mut(call.0)
            .filter(|state| state.stage == Stage::Started)
        else {
            return;
        };
        state.stage = Stage::Ended;
        let held = std::mem::take(&mut state.pending);
        scratch.clear();
        scratch.push_str(&held);
        state.carry.flush(scratch);
        let carry = state.carry;
        if !scratch.is_empty() {
            if held.is_empty() {
                state.scan.feed(scratch.as_bytes());
            }
            line.send(
                self.out,
                Payload::ToolCallArgs {
                    id: &state.id,
                    text: scratch,
                },
            );
        }
        let cut = matches!(how, CallEnd::Cut | CallEnd::Finish(FinishReason::Length));
        let incomplete = how == CallEnd::Abandoned
            || (how == CallEnd::Cut && !held.is_empty())
            || match state.format {
                InputFormat::Text => cut,
                InputFormat::Json => match state.scan.verdict() {
                    Verdict::Open => true,
                    Verdict::Empty => cut,
                    Verdict::Complete | Verdict::Wrong => false,
                },
            };
        let provider_state = state.provider_state.take();
        line.send(
            self.out,
            Payload::ToolCallEnd {
                id: &state.id,
                incomplete,
                provider_state: provider_state.as_deref(),
            },
        );
        state.scan = JsonScan::default();
        self.warn_lone(carry);
    }

    /// Ends every call that is open, in the order in which they were opened.
    pub fn end_calls(&mut self, how: CallEnd) {
        for position in self.finisher.first_open..self.finisher.calls.len() {
            self.end_call(CallHandle(position), how);
        }
        self.finisher.first_open = self.finisher.calls.len();
    }

    /// Takes the merged counts; a usage delta leaves when they changed.  `raw` is the provider's own record as JSON.
    pub fn usage(&mut self, counts: &Counts, raw: &str) {
        if self.ended() || counts.is_empty() {
            return;
        }
        let usage = counts.to_usage(raw);
        if self.finisher.usage.as_ref() != Some(&usage) {
            let borrowed = usage.map(AsRef::as_ref);
            self.finisher.line.send(self.out, Payload::Usage(borrowed));
            self.finisher.usage = Some(usage);
        }
    }

    /// Remembers why the message ended; a later reason replaces an earlier one.
    pub fn finish(&mut self, reason: FinishReason, raw: &str) {
        self.finisher.finish = Some((reason, raw.to_owned()));
    }

    /// Whether a finish reason was seen.
    pub fn finished(&self) -> bool {
        self.finisher.finish.is_some()
    }

    /// The message holds refusal text.
    pub fn refused(&mut self) {
        self.finisher.refused = true;
    }

    /// Remembers an error that the protocol lets other events follow: content is dropped from here on, usage is merged,
    /// and the error ends the stream at its real end.
    pub fn defer_error(&mut self, failure: Failure<Box<str>>) {
        self.finisher.deferred.get_or_insert(failure);
    }

    /// Ends the stream in an error, now.
    pub fn error(&mut self, failure: Failure<Box<str>>) {
        if self.ended() {
            return;
        }
        self.settle(CallEnd::Cut);
        let warnings = self.finisher.warnings.to_json();
        let mut failure = failure;
        failure.warnings = None;
        let mut payload = failure.map(&mut AsRef::as_ref);
        payload.warnings = warnings.as_deref();
        self.finisher.line.send(self.out, Payload::Error(payload));
        self.finisher.line.phase = Phase::Ended;
    }

    /// The provider's end marker: the stream is whole.
    pub fn end(&mut self) {
        if self.ended() {
            return;
        }
        if let Some(failure) = self.finisher.deferred.take() {
            return self.error(failure);
        }
        let (reason, raw) = match self.finisher.finish.take() {
            Some((reason, raw)) => (Some(reason), Some(raw)),
            None => (None, None),
        };
        self.settle(CallEnd::Finish(reason.unwrap_or(FinishReason::Other)));
        let called = self.finisher.started_calls > 0;
        let finish_reason = match reason {
            None | Some(FinishReason::Stop) if called => FinishReason::ToolCalls,
            Some(FinishReason::Stop) if self.finisher.refused => FinishReason::Refusal,
            Some(reason) => reason,
            None if self.finisher.refused => FinishReason::Refusal,
            None => FinishReason::Other,
        };
        let warnings = self.finisher.warnings.to_json();
        let line = &mut self.finisher.line;
        line.start(self.out);
        let model = Some(line.model.clone());
        let model = model.filter(|model| !model.is_empty() && *model != line.started_model);
        line.send(
            self.out,
            Payload::Done {
                finish_reason,
                raw_finish_reason: raw.as_deref(),
                model_id: model.as_deref(),
                warnings: warnings.as_deref(),
            },
        );
        line.phase = Phase::Ended;
    }

    /// The body stopped: a stream that said its finish reason is done, any other was lost.
    pub fn end_of_body(&mut self, lost: Failure<Box<str>>) {
        if self.ended() {
            return;
        }
        if self.finisher.deferred.is_some() || self.finished() {
            self.end();
        } else {
            self.error(lost);
        }
    }

    /// Leaves nothing open before the terminal.
    fn settle(&mut self, how: CallEnd) {
        for position in 0..self.finisher.parts.len() {
            self.flush_part(PartHandle(position));
        }
        self.end_calls(how);
    }
}

fn send_text<O: Output>(
    line: &mut Line,
    out: &mut O,
    part: &mut Part,
    text: &str,
    riders: Riders<&str>,
) {
    if part.index.is_none() {
        part.index = line.open_part();
    }
    if part.index.is_none() || (text.is_empty() && !riders.carry()) {
        return;
    }
    let part_index = part.index;
    let payload = match part.kind {
        PartKind::Text => Payload::Text {
            text,
            part_index,
            riders,
        },
        PartKind::Refusal => Payload::Text {
            text,
            part_index,
            riders: Riders {
                refusal: true,
                ..riders
            },
        },
        PartKind::Thinking => Payload::Thinking {
            text,
            part_index,
            riders,
        },
    };
    line.send(out, payload);
}

/// Merged counts of a dialect, before the contract's arithmetic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Tokens of the whole prompt.
    pub input: Option<u64>,
    /// Tokens generated.
    pub output: Option<u64>,
    /// US dollars.
    pub cost: Option<f64>,
    /// Prompt tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Tokens spent on reasoning.
    pub reasoning: Option<u64>,
    /// Audio tokens of the prompt.
    pub audio_input: Option<u64>,
    /// Audio tokens generated.
    pub audio_output: Option<u64>,
}

impl Counts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Total = input + output; reasoning never exceeds output (13 of 2,023 recorded streams say it does).
    fn to_usage(&self, raw: &str) -> Usage<Box<str>> {
        use std::fmt::Write as _;
        let mut details = String::from("{");
        for (name, value) in [
            ("audioInputTokens", self.audio_input),
            ("audioOutputTokens", self.audio_output),
        ] {
            if let Some(value) = value {
                // Writing to a String cannot fail.
                let _ = write!(details, "\"{name}\":{value},");
            }
        }
        let _ = write!(details, "\"raw\":{raw}}}");
        let total = self
            .input
            .zip(self.output)
            .and_then(|(input, output)| input.checked_add(output));
        Usage {
            input: self.input,
            output: self.output,
            total,
            cost: self.cost,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            reasoning: self
                .reasoning
                .map(|count| self.output.map_or(count, |output| count.min(output))),
            details: Some(details.into()),
        }
    }
}

/// The id of a call that has none: the same for the same run, response and ordinal (FNV-1a, 64 bits).
fn made_up_id(run_id: &str, response_id: &str, ordinal: usize) -> String {
    let ordinal = ordinal.to_string();
    let mut hash: u64 = 0xCBF2_9CE4_8422_2325;
    for text in [run_id, response_id, &ordinal] {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    format!("call_{hash:016x}")
}

/// `id`, or `id_2`, `id_3` … when earlier calls have it.
fn unique(ids: &mut HashMap<String, u32>, id: String) -> String {
    let mut candidate = id.clone();
    while let Some(_taken) = ids.get(&candidate) {
        let count = ids.get_mut(&id).map_or(2, |count| {
            *count = count.saturating_add(1);
            *count
        });
        candidate = format!("{id}_{count}");
    }
    ids.insert(candidate.clone(), 1);
    candidate
}
