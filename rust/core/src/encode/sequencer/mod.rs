//! `Sequencer`: the order of the output, the same for every target.
//!
//! In: lawful deltas with their places in the message.  Out: calls of a [`Writer`], and the HTTP status.
//!
//! Laws (docs/protocols/encoding.md#e2 to docs/protocols/encoding.md#e8):
//! - Nothing is written before the first delta that is neither `start` nor `usage`.  If that is a failure, the answer is an HTTP
//!   error.
//! - Parts that the grammar forbids to interleave wait, in the order of their numbers; all others are written at once.
//! - A call is written only if it has a name, and not if it was cut before its first arguments.  Half a call is never the
//!   reason for the end.
//! - Usage is written last.  One terminal is written, and nothing after it.
//! - What waits is bounded; a stream that exceeds the bound fails.

mod ending;
mod run;

use super::calls::{NOTHING, holds_calls, is_cut_call, note_cut_call};
use super::draft::Draft;
use super::escape::write_escaped;
use super::handover::hands_over;
use super::parts::{Call, Extras, TextKind, TextPart, WholePart, name_of};
use super::settings::{DeclinedCalls, Settings};
use super::waiting::{Content, Slot, Slots, WaitingText};
use super::writer::{Ending, Order, Writer};
use crate::contract::{
    Delta, Destination, ErrorCode, Failure, InputFormat, Payload, TextAttributes,
};

/// Order of one stream for one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequencer<W> {
    writer: W,
    slots: Slots,
    status: Option<u16>,
    ended: bool,
    failed: bool,
    /// Calls that were opened, and those of them that were whole.
    calls: usize,
    whole_calls: usize,
    /// A call was written, and then another model took the answer over.
    declined: bool,
    /// Bytes that wait.
    waiting: usize,
    /// Number of parts so far.
    parts: usize,
}

impl<W: Writer> Sequencer<W> {
    /// Return the HTTP status; `None` until the first delta that decides it.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Return true after the terminal.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Return true if the stream ended in the target's error.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Write a delta that the laws sent to `destination`.
    pub fn delta(&mut self, draft: &mut Draft, delta: &Delta<&str>, destination: Destination) {
        if self.ended {
            return;
        }
        match (delta.payload, destination) {
            (Payload::Start { model_id, request_id }, _) => self.start(draft, model_id, request_id),
            (Payload::Usage(usage), _) => {
                draft.head.usage = usage.without_details();
                draft.head.has_usage = true;
            }
            (Payload::Text { text, attributes, .. }, place) => {
                self.text_delta(draft, TextKind::Text, place, text, &attributes);
            }
            (Payload::Thinking { text, attributes, .. }, place) => {
                self.text_delta(draft, TextKind::Thinking, place, text, &attributes);
            }
            (Payload::PartEnd { .. }, Destination::Part(index)) => self.end_part(draft, index),
            (
                Payload::ToolCallStart { id, name, input_format, provider_state, .. },
                Destination::NewPart(index),
            ) => {
                self.begin(draft);
                let call = Call {
                    index,
                    ordinal: 0,
                    id: draft.run.as_mut().map_or_else(|| id.into(), |run| run.new_id(id)),
                    name: name_of(id, name),
                    format: input_format,
                    args: String::new(),
                    incomplete: false,
                    state: provider_state.map(Into::into),
                };
                let takes_turns = W::ORDER != Order::Keyed && !holds_calls::<W>(draft);
                self.add(draft, index, Content::Call(call), takes_turns);
                if !W::LAZY_CALLS && !W::WHOLE_CALLS && self.is_live(draft, index) {
                    self.open_call(draft, index);
                }
            }
            (Payload::ToolCallArgs { text, .. }, Destination::Part(index)) => {
                self.args(draft, index, text);
            }
            (Payload::ToolCallEnd { incomplete, provider_state, .. }, Destination::Part(index)) => {
                if let Some(Slot { content: Content::Call(call), .. }) = self.slots.get(index) {
                    call.incomplete = incomplete;
                    if let Some(state) = provider_state {
                        call.state = Some(state.into());
                    }
                }
                self.end_part(draft, index);
            }
            (Payload::Part { part, .. }, Destination::NewPart(index)) => {
                self.begin(draft);
                if hands_over(W::DIALECT, part) {
                    self.hand_over(draft);
                }
                let whole = WholePart { index, json: part.into() };
                self.add(draft, index, Content::Whole(whole), W::ORDER == Order::Serial);
                self.end_part(draft, index);
            }
            (Payload::Audio { data }, _) => {
                self.begin(draft);
                self.writer.audio(draft, data);
            }
            (Payload::Done { finish_reason, raw_finish_reason, model_id, details, .. }, _) => {
                if let (Some(model_id), None) = (model_id, &draft.settings.model_id) {
                    draft.head.model_id = model_id.to_owned();
                }
                let (raw, has_calls) = (raw_finish_reason, false);
                let ending = Ending { reason: finish_reason, has_calls, raw, details };
                self.done(draft, ending);
            }
            (Payload::Error(failure), _) => self.error(draft, &failure),
            // The laws send an end or arguments to an existing part, and a start or a whole part to a new one.
            (
                Payload::PartEnd { .. }
                | Payload::ToolCallStart { .. }
                | Payload::ToolCallArgs { .. }
                | Payload::ToolCallEnd { .. }
                | Payload::Part { .. },
                _,
            ) => {}
        }
    }

    /// Write more text of an open part, and return true.  Returns false without a change for any other part.
    #[inline]
    pub fn more_text(&mut self, draft: &mut Draft, index: usize, text: &str) -> bool {
        if self.ended || !(W::ORDER != Order::Serial || self.slots.turn() == Some(index)) {
            return false;
        }
        match self.slots.get(index) {
            Some(Slot { content: Content::Text(waiting), opened: true, .. }) => {
                self.writer.text(draft, &waiting.part, text, Extras::default());
                true
            }
            _ => false,
        }
    }

    /// Write more arguments of an open call, and return true.  Returns false without a change for any other call.
    #[inline]
    pub fn more_args(&mut self, draft: &mut Draft, index: usize, text: &str) -> bool {
        if self.ended || W::WHOLE_CALLS || !self.is_live(draft, index) {
            return false;
        }
        match self.slots.get(index) {
            Some(Slot { content: Content::Call(call), opened: true, .. })
                if W::FREE_TEXT || call.format == InputFormat::Json =>
            {
                self.writer.args(draft, call, text);
                true
            }
            _ => false,
        }
    }

    /// Write something that keeps the connection alive.  The status is 200 from then on.
    pub fn keep_alive(&mut self, draft: &mut Draft) {
        if !self.ended {
            if draft.run.is_some() {
                self.begin_run(draft, None);
            } else {
                self.begin(draft);
            }
            self.writer.keep_alive(draft);
        }
    }

    /// Write the end of a stream of several answers: the failure of this one, or what follows the last terminal.
    ///
    /// `has_head` is true if an answer was written; the failure is an HTTP error otherwise.
    pub fn end_answers(
        &mut self,
        draft: &mut Draft,
        failure: Option<&Failure<&str>>,
        has_head: bool,
    ) {
        let Some(failure) = failure else { return self.writer.end_answers(draft) };
        if has_head {
            self.begin(draft);
            self.writer.fail(draft, failure);
        } else {
            self.refuse(draft, failure);
        }
    }

    fn start(&mut self, draft: &mut Draft, model_id: &str, request_id: &str) {
        // Several answers have one head.
        let is_known = draft.answer.is_some() && draft.out.written() > 0;
        if self.status.is_none() && !is_known {
            draft.head.model_id = draft.settings.model_id.as_deref().unwrap_or(model_id).to_owned();
            if let Some(run) = &mut draft.run {
                run.models.insert(draft.head.model_id.as_str().into());
                if run.has_head {
                    return;
                }
            }
            let id = draft.settings.response_id.as_deref().unwrap_or(request_id);
            id.clone_into(&mut draft.head.request_id);
        }
    }

    /// Write the head before the first content.
    #[inline]
    fn begin(&mut self, draft: &mut Draft) {
        if self.status.is_none() {
            self.write_head(draft);
        }
    }

    #[cold]
    fn write_head(&mut self, draft: &mut Draft) {
        self.status = Some(200);
        if draft.run.is_some() {
            self.begin_run(draft, None);
            return self.writer.open_step(draft);
        }
        Self::name_response(draft);
        self.writer.head(draft);
    }

    /// Give a response without an id or a model the caller's.
    fn name_response(draft: &mut Draft) {
        if draft.head.request_id.is_empty() {
            // A keep-alive may come before the source named the response, and some targets require an id.
            let Settings { response_id, request_id, .. } = &draft.settings;
            let id = response_id.as_deref().or(request_id.as_deref()).filter(|id| !id.is_empty());
            draft.head.request_id = id.unwrap_or("response").to_owned();
        }
        if draft.head.model_id.is_empty() {
            draft.head.model_id = draft.settings.model_id.as_deref().unwrap_or("").to_owned();
        }
    }

    /// Return true if the part may be written now.
    #[inline]
    fn is_live(&mut self, draft: &Draft, index: usize) -> bool {
        match W::ORDER {
            Order::Keyed => !holds_calls::<W>(draft) || !self.is_call(index),
            Order::Serial => self.slots.turn() == Some(index),
            Order::SerialCalls => !self.is_call(index) || self.slots.turn() == Some(index),
        }
    }

    #[inline]
    fn is_call(&mut self, index: usize) -> bool {
        matches!(self.slots.get(index), Some(Slot { content: Content::Call(_), .. }))
    }

    fn add(&mut self, draft: &mut Draft, index: usize, content: Content, takes_turns: bool) {
        if let Content::Whole(part) = &content {
            self.wait(draft, part.json.len());
        }
        self.parts = index + 1;
        self.slots.push(index, Slot { content, opened: false, ended: false }, takes_turns);
    }

    fn text_delta(
        &mut self,
        draft: &mut Draft,
        kind: TextKind,
        place: Destination,
        text: &str,
        attributes: &TextAttributes<&str>,
    ) {
        self.begin(draft);
        let index = match place {
            Destination::NewPart(index) => {
                let part = TextPart { index, kind, refusal: false, redacted: false, state: None };
                let waiting = WaitingText {
                    part,
                    text: String::new(),
                    annotations: Vec::new(),
                    logprobs: None,
                };
                self.add(draft, index, Content::Text(waiting), W::ORDER == Order::Serial);
                index
            }
            Destination::Part(index) => index,
            Destination::Stream => return,
        };
        let live = self.is_live(draft, index);
        let extras = Extras { annotations: attributes.annotations, logprobs: attributes.logprobs };
        let Some(Slot { content: Content::Text(waiting), opened, .. }) = self.slots.get(index)
        else {
            return self.late(draft, kind, index, attributes, extras);
        };
        waiting.part.refusal |= attributes.refusal;
        waiting.part.redacted |= attributes.redacted;
        if let Some(state) = attributes.provider_state {
            waiting.part.state = Some(state.into());
        }
        if live && *opened {
            if !text.is_empty() || !extras.is_empty() {
                self.writer.text(draft, &waiting.part, text, extras);
            }
            return;
        }
        waiting.text.push_str(text);
        waiting.annotations.extend(extras.annotations.map(Into::into));
        if let Some(logprobs) = extras.logprobs {
            waiting.logprobs.get_or_insert_default().append(logprobs);
        }
        let held = draft.settings.hold && kind == TextKind::Thinking;
        if live && !text.is_empty() && !held {
            self.open_text(draft, index);
        } else {
            let extra = extras.annotations.map_or(0, str::len)
                + attributes.provider_state.map_or(0, str::len);
            self.wait(draft, text.len() + extra);
        }
    }

    /// Write the late content of a closed part.
    fn late(
        &mut self,
        draft: &mut Draft,
        kind: TextKind,
        index: usize,
        attributes: &TextAttributes<&str>,
        extras: Extras<'_>,
    ) {
        let part = TextPart {
            index,
            kind,
            refusal: attributes.refusal,
            redacted: attributes.redacted,
            state: attributes.provider_state.map(Into::into),
        };
        self.writer.late(draft, &part, extras);
    }

    /// Open a part of text and write what waits.
    fn open_text(&mut self, draft: &mut Draft, index: usize) {
        let Some(Slot { content: Content::Text(waiting), opened, .. }) = self.slots.get(index)
        else {
            return;
        };
        *opened = true;
        self.writer.open_text(draft, &waiting.part);
        let text = std::mem::take(&mut waiting.text);
        let annotations = std::mem::take(&mut waiting.annotations);
        let logprobs = waiting.logprobs.take();
        let (first, more) =
            annotations.split_first().map_or((None, [].as_slice()), |(a, b)| (Some(a), b));
        let extras =
            Extras { annotations: first.map(AsRef::as_ref), logprobs: logprobs.as_deref() };
        self.writer.text(draft, &waiting.part, &text, extras);
        for annotations in more {
            let extras = Extras { annotations: Some(annotations), logprobs: None };
            self.writer.text(draft, &waiting.part, "", extras);
        }
        self.waiting = self.waiting.saturating_sub(text.len());
    }

    fn args(&mut self, draft: &mut Draft, index: usize, text: &str) {
        if text.is_empty() || self.more_args(draft, index, text) {
            return;
        }
        let live = self.is_live(draft, index) && !W::WHOLE_CALLS;
        let Some(Slot { content: Content::Call(call), opened, .. }) = self.slots.get(index) else {
            return;
        };
        if !live {
            call.args.push_str(text);
            return self.wait(draft, text.len());
        }
        if !*opened && call.args.is_empty() && text == NOTHING {
            text.clone_into(&mut call.args);
            return;
        }
        if !*opened {
            if call.name.is_empty() {
                // Without a name nothing will be written.
                return;
            }
            self.open_call(draft, index);
        }
        self.write_args(draft, index, text);
    }

    /// Write arguments of an opened call, in JSON.
    fn write_args(&mut self, draft: &mut Draft, index: usize, text: &str) {
        let Some(Slot { content: Content::Call(call), .. }) = self.slots.get(index) else { return };
        if W::FREE_TEXT || call.format == InputFormat::Json {
            self.writer.args(draft, call, text);
        } else {
            let mut escaped = String::with_capacity(text.len());
            write_escaped(&mut escaped, text);
            self.writer.args(draft, call, &escaped);
        }
    }

    fn open_call(&mut self, draft: &mut Draft, index: usize) {
        let ordinal = self.calls;
        let Some(Slot { content: Content::Call(call), opened, .. }) = self.slots.get(index) else {
            return;
        };
        if *opened || call.name.is_empty() {
            return;
        }
        *opened = true;
        call.ordinal = ordinal;
        self.calls += 1;
        let args = std::mem::take(&mut call.args);
        self.waiting = self.waiting.saturating_sub(args.len());
        if let Some(run) = &mut draft.run {
            run.add(&call.id);
        }
        self.writer.open_call(draft, call);
        if !W::FREE_TEXT && call.format == InputFormat::Text {
            self.writer.args(draft, call, "{\"input\":\"");
        }
        if !args.is_empty() {
            self.write_args(draft, index, &args);
        }
    }

    /// Note that the last delta of a part came, and write all whose turn it is then.
    fn end_part(&mut self, draft: &mut Draft, index: usize) {
        let live = self.is_live(draft, index);
        if let Some(slot) = self.slots.get(index) {
            slot.ended = true;
        }
        if live && !self.ended {
            self.close(draft, index);
            self.advance(draft);
        }
    }

    /// Write the parts whose turn it is.
    fn advance(&mut self, draft: &mut Draft) {
        while let Some(index) = self.slots.turn().filter(|_| !self.ended) {
            let Some(slot) = self.slots.get(index) else { return };
            let (ended, opened) = (slot.ended, slot.opened);
            match &slot.content {
                Content::Text(waiting) => {
                    let held = draft.settings.hold && waiting.part.kind == TextKind::Thinking;
                    if !(opened || held || waiting.text.is_empty()) {
                        self.open_text(draft, index);
                    }
                }
                Content::Call(call)
                    if !opened && !W::WHOLE_CALLS && (!call.args.is_empty() || !W::LAZY_CALLS) =>
                {
                    self.open_call(draft, index);
                }
                _ => {}
            }
            if !ended {
                return;
            }
            self.close(draft, index);
        }
    }

    /// Close a part whose turn it is, and forget it.
    fn close(&mut self, draft: &mut Draft, index: usize) {
        let mut is_cut = false;
        if let Some(Slot { content: Content::Text(waiting), opened: false, .. }) =
            self.slots.get(index)
            && !waiting.text.is_empty()
        {
            self.open_text(draft, index);
        }
        if let Some(Slot { content: Content::Call(call), opened: false, .. }) =
            self.slots.get(index)
        {
            is_cut = is_cut_call::<W>(call);
            if !is_cut && !W::WHOLE_CALLS {
                self.open_call(draft, index);
            }
        }
        let Some(slot) = self.slots.remove(index) else { return };
        match slot.content {
            Content::Text(waiting) if slot.opened => self.writer.close_text(draft, &waiting.part),
            Content::Text(waiting) => {
                self.writer.bare(draft, &waiting.part);
                let annotations = waiting.joined_annotations();
                let extras = Extras {
                    annotations: annotations.as_deref(),
                    logprobs: waiting.logprobs.as_deref(),
                };
                if !extras.is_empty() {
                    self.writer.late(draft, &TextPart { state: None, ..waiting.part }, extras);
                }
            }
            Content::Whole(part) => {
                self.waiting = self.waiting.saturating_sub(part.json.len());
                self.writer.whole_part(draft, &part);
            }
            Content::Call(call) if is_cut => {
                self.waiting = self.waiting.saturating_sub(call.args.len());
                note_cut_call(draft, &call);
            }
            Content::Call(call) if W::WHOLE_CALLS => self.write_whole_call(draft, call),
            Content::Call(call) => {
                if !W::FREE_TEXT && call.format == InputFormat::Text && !call.incomplete {
                    self.writer.args(draft, &call, "\"}");
                }
                self.whole_calls += usize::from(self.writer.close_call(draft, &call));
            }
        }
    }

    /// Write a call for a target that takes whole ones only.
    fn write_whole_call(&mut self, draft: &mut Draft, mut call: Call) {
        self.waiting = self.waiting.saturating_sub(call.args.len());
        call.ordinal = self.calls;
        if self.writer.whole_call(draft, &call) {
            self.calls += 1;
            self.whole_calls += 1;
        }
    }

    /// Leave out the calls of a model that another one takes over from, or note that one was written.
    #[cold]
    fn hand_over(&mut self, draft: &mut Draft) {
        self.declined |= self.calls > 0 && draft.settings.declined_calls != DeclinedCalls::Keep;
        for index in self.slots.numbers() {
            if let Some(Slot { content: Content::Call(call), opened: false, .. }) =
                self.slots.get(index)
            {
                self.waiting = self.waiting.saturating_sub(call.args.len());
                draft.notes.add("call", "a call of a model that another one took over from");
                self.slots.drop(index);
            }
        }
        self.advance(draft);
    }

    /// Count bytes that wait, and end the stream at the bound.
    fn wait(&mut self, draft: &mut Draft, bytes: usize) {
        self.waiting = self.waiting.saturating_add(bytes);
        let bound = draft.settings.limits.event_bytes;
        if self.waiting > bound && !self.ended {
            let message =
                format!("limit reached: more than event_bytes ({bound}) wait for an earlier part");
            let failure = Failure::new(ErrorCode::ProtocolError, message.as_str());
            self.fail(draft, &failure);
        }
    }
}
