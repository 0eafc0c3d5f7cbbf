//! What every dialect leaves to one place: seq, `start`, part numbers, call ids, start/end pairing, usage, finish reason,
//! and the one terminal.
//!
//! In: what `apply` says through [`DeltaSink`].  Out: lawful deltas, to an [`Output`].
//! Laws: those of [`crate::contract::Laws`]; nothing leaves after the terminal; a limit that was reached ends the stream.

use std::collections::BTreeMap;
use std::sync::Arc;

mod calls;
mod counts;
mod digest;
mod line;
mod markup;
mod notes;
mod parts;

use calls::Call;
pub use calls::{CallEnd, CallHandle};
pub use counts::Counts;
use digest::Digest;
use line::{Line, Phase};
use parts::{Part, send_text};
pub use parts::{PartHandle, PartKind};

use crate::contract::{
    ErrorCode, Failure, FinishReason, Logprobs, Output, Payload, Plain, Riders, Usage, Warnings,
};
use crate::json::{Carry, Str, write_string};
use crate::limits::Limits;
use crate::markup::{Markup, Wanted};
use crate::provider_error::{ErrorObject, Response};

/// What the caller knows of a stream before its first byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The registry's name.
    pub dialect: &'static str,
    /// The agent run.
    pub run_id: Arc<str>,
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
    /// What is looked for in plain text.
    pub markup: Option<Wanted>,
    /// The caller's name of each tool that the request had to name otherwise, by that other name.
    pub tool_names: Option<Arc<BTreeMap<Box<str>, Box<str>>>>,
    /// Bounds.
    pub limits: Limits,
}

impl Options {
    /// What the caller calls a tool that the provider calls `name`.
    pub(crate) fn caller_name<'a>(&'a self, name: &'a str) -> &'a str {
        let names = self.tool_names.as_deref();
        names.and_then(|names| names.get(name)).map_or(name, |own| own)
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
    ids: BTreeMap<String, u32>,
    usage: Option<Usage<String>>,
    /// Counts from beside the message, and their record.
    usage_beside: Option<Box<(Counts, String)>>,
    finish: Option<(FinishReason, String)>,
    deferred: Option<Box<Failure<Box<str>>>>,
    refused: bool,
    /// Facts under the provider's names: a JSON object without its closing brace, empty where there are none.
    details: String,
    detail_names: Vec<&'static str>,
    warnings: Warnings,
    markup: Option<Box<Markup>>,
    /// The part whose text markup looks at.
    marked: Option<PartHandle>,
    scratch: String,
}

impl Finisher {
    /// Before the first byte.
    pub fn new(options: Arc<Options>) -> Self {
        Self {
            markup: options.markup.as_ref().map(|wanted| Box::new(Markup::new(wanted))),
            line: Line {
                dialect: options.dialect,
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
                raw_of_end: None,
                breach: None,
            },
            marked: None,
            parts: Vec::new(),
            calls: Vec::new(),
            first_open: 0,
            started_calls: 0,
            ids: BTreeMap::new(),
            usage: None,
            usage_beside: None,
            finish: None,
            deferred: None,
            refused: false,
            details: String::new(),
            detail_names: Vec::new(),
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
    fn is_open(&self) -> bool {
        !self.ended() && self.finisher.line.breach.is_none() && self.finisher.deferred.is_none()
    }

    /// Keeps the frame's JSON for its first delta, when asked for.
    pub fn begin_frame(&mut self, json: &str) {
        if self.options().provider_raw {
            self.finisher.line.raw = Some(json.to_owned());
        }
    }

    /// After each frame: a limit that was reached ends the stream.
    #[inline]
    pub fn end_frame(&mut self) {
        let line = &self.finisher.line;
        if line.raw.is_some() || line.breach.is_some() {
            self.settle_frame();
        }
    }

    #[cold]
    fn settle_frame(&mut self) {
        self.finisher.line.raw = None;
        if let Some(message) = self.finisher.line.breach.take() {
            self.error(Failure::new(ErrorCode::ProtocolError, message.into()));
        }
    }

    /// Names model and response id; the first name of each counts.  `start` leaves once both are known.
    #[inline]
    pub fn identity(&mut self, model: Option<Str<'_>>, response_id: Option<Str<'_>>) {
        let line = &self.finisher.line;
        // Most frames name again what is known.
        if line.phase == Phase::Waiting || (line.phase == Phase::Running && line.model.is_empty()) {
            self.learn_identity(model, response_id);
        }
    }

    fn learn_identity(&mut self, model: Option<Str<'_>>, response_id: Option<Str<'_>>) {
        let line = &mut self.finisher.line;
        if let Some(model) = model
            && line.model.is_empty()
            && line.is_identifier(model)
        {
            line.model = model.text();
        }
        if line.phase == Phase::Waiting {
            if let Some(id) = response_id
                && line.response_id.is_empty()
                && line.is_identifier(id)
            {
                line.response_id = id.text();
            }
            if !line.model.is_empty() && !line.response_id.is_empty() {
                line.start(self.out);
            }
        }
    }

    /// The message began anew: why an earlier one ended says nothing any more.
    pub fn restart(&mut self) {
        self.finisher.finish = None;
    }

    /// Another model took over.
    pub fn model_changed(&mut self, model: Str<'_>) {
        let line = &mut self.finisher.line;
        if line.is_identifier(model) {
            line.model = model.text();
        }
    }

    /// The failure that the JSON of a provider's error tells.
    pub fn failure(&self, json: &str) -> Failure<Box<str>> {
        self.failure_of(ErrorObject::read(json).unwrap_or_default())
    }

    /// The failure that a provider's error tells.
    pub fn failure_of(&self, error: ErrorObject) -> Failure<Box<str>> {
        error.failure(&self.options().response, "the provider sent an error without a message")
    }

    /// Counts bytes that a dialect holds for a provider part; false when the limit is reached.
    pub fn take_state_bytes(&mut self, added: usize) -> bool {
        self.finisher.line.take_state_bytes(added)
    }

    /// Gives back what was counted for a block that leaves as a part, which is counted itself.
    pub fn give_back_state_bytes(&mut self, held: usize) {
        let line = &mut self.finisher.line;
        line.state_bytes = line.state_bytes.saturating_sub(held);
    }

    /// Opens a part; it gets its number when its first delta leaves.
    pub fn open_part(&mut self, kind: PartKind) -> PartHandle {
        self.add_part(kind, None)
    }

    /// Opens a part whose protocol says its text once more at the end, see [`Self::text_whole`].
    pub fn open_repeated_part(&mut self, kind: PartKind) -> PartHandle {
        self.add_part(kind, Some(Digest::default()))
    }

    fn add_part(&mut self, kind: PartKind, said: Option<Digest>) -> PartHandle {
        self.end_markup(CallEnd::Provider);
        let watched = self.watches(kind);
        let bound = self.options().limits.parts;
        let used = self.finisher.parts.len() + 1;
        // Parts that stay empty get no number, but they take memory.
        if self.finisher.line.within("parts", used, bound) {
            self.finisher.parts.push(Part {
                kind,
                index: None,
                carry: Carry::default(),
                said,
                watched,
            });
        }
        PartHandle(used - 1)
    }

    /// More text of a part.
    #[inline]
    pub fn text(&mut self, part: PartHandle, text: Str<'_>) {
        if text.is_empty() || !self.is_open() {
            return;
        }
        let Finisher { line, parts, scratch, .. } = &mut *self.finisher;
        let handle = part;
        let Some(part) = parts.get_mut(part.0) else {
            return;
        };
        if part.watched {
            return self.watched_text(handle, text);
        }
        let lone = part.carry.lone;
        let plain = if !text.escaped && part.carry.high.is_none() {
            text.raw
        } else {
            scratch.clear();
            text.decode_into(scratch, &mut part.carry);
            scratch.as_str()
        };
        if !plain.is_empty() && line.take_message_bytes(plain.len()) {
            if let Some(said) = &mut part.said {
                said.take(plain);
            }
            let delta = match (part.kind, part.index) {
                (PartKind::Text, Some(part)) => Some(Plain::Text { part, text: plain }),
                (PartKind::Thinking, Some(part)) => Some(Plain::Thinking { part, text: plain }),
                _ => None,
            };
            match delta {
                Some(delta) => line.send_plain(self.out, delta),
                None => send_text(line, self.out, part, plain, Riders::default()),
            }
        }
        if part.carry.lone > lone {
            let carry = part.carry;
            self.warn_lone(carry);
        }
    }

    /// The whole of a part's text, which came in pieces before, or not at all: what is missing of it is sent.  Where the
    /// pieces say something else they stand, and a warning says so.
    pub fn text_whole(&mut self, part: PartHandle, whole: Str<'_>) {
        let Some(state) = self.finisher.parts.get_mut(part.0) else { return };
        let whole = whole.text();
        match state.said.unwrap_or_default().rest_of(&whole) {
            Some("") => {}
            Some(rest) => {
                // A surrogate that waits for its other half has it in the rest.
                state.carry.high = None;
                self.text(part, Str::plain(rest));
            }
            None => self.warn_differing(),
        }
    }

    /// Another paragraph of a part begins, which will be said once more by itself.
    pub fn begin_paragraph(&mut self, part: PartHandle) {
        self.flush_part(part);
        if let Some(part) = self.finisher.parts.get_mut(part.0) {
            part.said = Some(Digest::default());
        }
    }

    fn warn_differing(&mut self) {
        let message = "the whole text at its end differs from what was streamed, which stands";
        self.warn("final_text_differs", message, None);
    }

    /// What rides on a part beside its text, on an empty delta.
    fn ride(&mut self, part: PartHandle, riders: Riders<&str>) {
        if !self.is_open() {
            return;
        }
        let part = self.ridden(part, &riders);
        if riders.logprobs.is_none() {
            // Log probabilities come between the halves of a text; everything else stands at its place in it.
            self.flush_part(part);
        }
        let Finisher { line, parts, .. } = &mut *self.finisher;
        let texts = [riders.annotations, riders.provider_state];
        let texts: usize = texts.iter().flatten().map(|text| text.len()).sum();
        let bytes = texts + riders.logprobs.map_or(0, Logprobs::bytes);
        if let Some(part) = parts.get_mut(part.0)
            && line.take_state_bytes(bytes)
        {
            send_text(line, self.out, part, "", riders);
        }
    }

    /// Adds citations: a JSON array, or one of them alone.
    pub fn annotate(&mut self, part: PartHandle, annotations: &str) {
        let list;
        let annotations = if annotations.starts_with('[') {
            annotations
        } else {
            list = format!("[{annotations}]");
            &list
        };
        self.ride(part, Riders { annotations: Some(annotations), ..Riders::default() });
    }

    /// Adds log probabilities.
    pub fn logprobs(&mut self, part: PartHandle, logprobs: &Logprobs) {
        self.ride(part, Riders { logprobs: Some(logprobs), ..Riders::default() });
    }

    /// Sets what the provider must get back with this part; `data` is a JSON value.
    pub fn part_state(&mut self, part: PartHandle, data: &str) {
        let state = self.finisher.line.provider_state(data);
        self.ride(part, Riders { provider_state: Some(&state), ..Riders::default() });
    }

    /// A thinking part of which only the provider state exists.
    pub fn redacted(&mut self, data: &str) -> PartHandle {
        let part = self.open_part(PartKind::Thinking);
        let state = self.finisher.line.provider_state(data);
        self.ride(
            part,
            Riders { redacted: true, provider_state: Some(&state), ..Riders::default() },
        );
        part
    }

    /// No more text comes for now: a surrogate that waits for its other half stays alone.
    pub fn flush_part(&mut self, part: PartHandle) {
        if self.flush_watched(part) {
            return;
        }
        let Finisher { line, parts, scratch, .. } = &mut *self.finisher;
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

    /// What the provider must get back with a whole part, as its member `providerState`; `data` is a JSON value.
    pub fn provider_state(&self, data: &str) -> String {
        self.finisher.line.provider_state(data)
    }

    /// A whole part at once; `part` is a JSON object `{kind, payload}`.
    pub fn whole_part(&mut self, part: &str) {
        self.end_markup(CallEnd::Provider);
        if !self.is_open() || !self.finisher.line.take_state_bytes(part.len()) {
            return;
        }
        if let Some(index) = self.finisher.line.open_part() {
            self.finisher.line.send(self.out, Payload::Part { part_index: Some(index), part });
        }
    }

    /// A block that only its provider understands; `block` is its JSON.  What is no object is no block, and is only warned
    /// of.
    pub fn provider_part(&mut self, block: &str) {
        if !block.starts_with('{') {
            return self.warn_no_object(block);
        }
        let mut part = String::from("{\"kind\":\"provider\",\"payload\":{\"dialect\":");
        write_string(&mut part, self.finisher.line.dialect);
        part.push_str(",\"block\":");
        part.push_str(block);
        part.push_str("}}");
        self.whole_part(&part);
    }

    /// Parts and provider state belong to this dialect from here on: its events came inside of another's.
    pub fn speak_as(&mut self, dialect: &'static str) {
        self.finisher.line.dialect = dialect;
    }

    /// Remembers why the message ended; a later reason replaces an earlier one.
    pub fn finish(&mut self, reason: FinishReason, raw: &str) {
        self.keep_frame_for_end();
        self.finisher.finish = Some((reason, raw.to_owned()));
    }

    /// Whether a finish reason was seen.
    pub fn finished(&self) -> bool {
        self.finisher.finish.is_some()
    }

    /// Whether the finish reason that was seen says that the model ended by itself.
    pub fn finished_whole(&self) -> bool {
        self.finisher.finish.as_ref().is_some_and(|(reason, _)| reason.says_done())
    }

    /// The message holds refusal text.
    pub fn refused(&mut self) {
        self.finisher.refused = true;
    }

    /// Remembers an error that the protocol lets other events follow: content is dropped from here on, usage is merged,
    /// and the error ends the stream at its real end.
    pub fn defer_error(&mut self, failure: Failure<Box<str>>) {
        self.keep_frame_for_end();
        self.finisher.deferred.get_or_insert_with(|| Box::new(failure));
    }

    /// Keeps the frame's JSON for the terminal, unless a delta of the frame took it.
    fn keep_frame_for_end(&mut self) {
        let line = &mut self.finisher.line;
        if line.raw.is_some() {
            line.raw_of_end.clone_from(&line.raw);
        }
    }

    /// Ends the stream in an error, now.
    pub fn error(&mut self, failure: Failure<Box<str>>) {
        if self.ended() {
            return;
        }
        self.settle(CallEnd::Cut);
        let warnings = self.finisher.warnings.to_json();
        let mut failure = failure;
        let request_id = &self.options().response.request_id;
        failure.http_request_id = failure.http_request_id.or_else(|| request_id.clone());
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
        if let Some(message) = self.finisher.line.breach.take() {
            // What did not fit was dropped in this very frame: that is no normal end.
            return self.error(Failure::new(ErrorCode::ProtocolError, message.into()));
        }
        if let Some(failure) = self.finisher.deferred.take() {
            return self.error(*failure);
        }
        let (reason, raw) = match self.finisher.finish.take() {
            Some((reason, raw)) => (Some(reason), Some(raw).filter(|raw| !raw.is_empty())),
            None => (None, None),
        };
        self.settle(reason.map_or(CallEnd::EndMarker, CallEnd::Finish));
        let called = self.finisher.started_calls > 0;
        let finish_reason = match reason {
            None | Some(FinishReason::Stop) if called => FinishReason::ToolCalls,
            None | Some(FinishReason::Stop) if self.finisher.refused => FinishReason::Refusal,
            Some(reason) => reason,
            None => FinishReason::Other,
        };
        let warnings = self.finisher.warnings.to_json();
        let details = Some(std::mem::take(&mut self.finisher.details));
        let details = details.filter(|details| !details.is_empty()).map(|details| details + "}");
        let line = &mut self.finisher.line;
        line.start(self.out);
        let model = Some(&line.model)
            .filter(|model| !model.is_empty() && **model != line.started_model)
            .cloned();
        line.send(
            self.out,
            Payload::Done {
                finish_reason,
                raw_finish_reason: raw.as_deref(),
                model_id: model.as_deref(),
                details: details.as_deref(),
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
        let line = &mut self.finisher.line;
        line.raw = line.raw.take().or(line.raw_of_end.take());
        self.settle_markup(how);
        for position in 0..self.finisher.parts.len() {
            self.flush_part(PartHandle(position));
        }
        self.end_calls(how);
        let Finisher { line, usage, usage_beside, .. } = &mut *self.finisher;
        if let Some(beside) = usage_beside.take() {
            let (counts, raw) = *beside;
            let filled = counts.fill(usage.as_ref(), &raw);
            if usage.as_ref() != Some(&filled) {
                line.send(self.out, Payload::Usage(filled.map(String::as_str)));
                *usage = Some(filled);
            }
        }
    }
}
