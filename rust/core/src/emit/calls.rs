//! Tool calls: their start, their arguments and their end.
//!
//! In: operations of a dialect on a call.  Out: `tool_call_start`, `tool_call_args` and `tool_call_end`.
//!
//! Laws: a call starts once it has a name and an id, at its first arguments after its name, or at its end.  Arguments before
//! the name wait for it.  A first fragment that is exactly `{}` waits for the next one, because some servers send it before
//! the real arguments.  Possible ciphertext waits for the plain text.  The end states whether the arguments are whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::call::{ArgumentForm, Call, CallEnd, CallHandle, CallStage};
use super::digest::Digest;
use super::emitter::{Emitter, EmitterSink};
use super::options::StreamOptions;
use crate::contract::{CallId, FinishReason, InputFormat, Payload};
use crate::json::scan::{JsonScan, Verdict};
use crate::json::{Carry, Str};

/// The end of a call that a token limit or a stop string cut.
const CUT_AT_LIMIT: CallEnd = CallEnd::Finish(FinishReason::Length);

impl EmitterSink<'_> {
    /// Open a tool call.  It starts once it has a name and an id, at its first arguments, or at its end.
    pub fn open_call(&mut self, format: InputFormat) -> CallHandle {
        self.add_call(format, ArgumentForm::Chunks)
    }

    /// Open a tool call whose protocol repeats the whole arguments at their end.  See [`Self::args_whole`].
    pub(crate) fn open_repeated_call(&mut self, format: InputFormat) -> CallHandle {
        self.add_call(format, ArgumentForm::Repeated)
    }

    /// Open a tool call of text or of a whole body, where no chunk of the arguments repeats or replaces others.
    pub(crate) fn open_verbatim_call(&mut self, format: InputFormat) -> CallHandle {
        self.add_call(format, ArgumentForm::Verbatim)
    }

    fn add_call(&mut self, format: InputFormat, form: ArgumentForm) -> CallHandle {
        let bound = self.options().limits.tool_calls;
        let used = self.emitter.calls.len() + 1;
        // A call behind an error that is held has no name and no arguments, and is no call.
        let is_dropped = self.emitter.deferred.is_some();
        let stage = if is_dropped { CallStage::Ended } else { CallStage::Waiting };
        if self.emitter.deltas.within("tool_calls", used, bound) {
            self.emitter.calls.push(Call {
                id: CallId::default(),
                given_id: false,
                part: 0,
                name: None,
                stage,
                format,
                scan: JsonScan::default(),
                said: Digest::default(),
                carry: Carry::default(),
                pending: String::new(),
                sent: false,
                is_confirmed: false,
                form,
                provider_state: None,
            });
        }
        CallHandle(used - 1)
    }

    /// Set the id and the name of a call.
    ///
    /// The first name wins.  After the start, another id or name only causes a warning.
    pub fn name_call(&mut self, call: CallHandle, id: Option<Str<'_>>, name: Option<Str<'_>>) {
        if !self.is_open() {
            return;
        }
        let Emitter { deltas, calls, .. } = &mut *self.emitter;
        let Some(state) = calls.get_mut(call.0) else {
            return;
        };
        let mut late = None;
        // Some servers write `"null"` instead of a missing id.
        if let Some(id) = id.filter(|id| !id.is_empty() && id.raw != "null") {
            if !state.given_id && state.stage == CallStage::Waiting {
                if !deltas.take_identifier(id) {
                    return;
                }
                state.id = CallId::from(id.text().as_str());
                state.given_id = true;
            } else if state.stage != CallStage::Waiting && !state.given_id {
                late = Some("an id that came after its tool call had started was ignored");
            }
        }
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            match &state.name {
                None if deltas.take_identifier(name) => state.name = Some(name.text()),
                None => return,
                Some(known) if name.is(known) => {}
                Some(_) => late = Some("a second, different name of a tool call was ignored"),
            }
        }
        let ready = state.stage == CallStage::Waiting
            && state.name.is_some()
            && (state.given_id || !state.pending.is_empty());
        if let Some(message) = late {
            self.warn("tool_call_identity", message, None);
        }
        if ready {
            self.start_call(call);
        }
    }

    /// Set the provider state of a call; `data` is a JSON value.
    pub fn call_state(&mut self, call: CallHandle, data: &str) {
        let state = self.emitter.deltas.provider_state(data);
        if self.emitter.deltas.take_state_bytes(state.len())
            && let Some(call) = self.emitter.calls.get_mut(call.0)
        {
            call.provider_state = Some(state);
        }
    }

    /// Emit more text of the arguments of a call.
    #[inline]
    pub fn call_args(&mut self, call: CallHandle, text: Str<'_>) {
        if text.is_empty() || !self.is_open() {
            return;
        }
        let Emitter { deltas, calls, scratch, .. } = &mut *self.emitter;
        let Some(state) = calls.get_mut(call.0).filter(|state| state.stage != CallStage::Ended)
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
        if plain.is_empty() || !deltas.take_message_bytes(plain.len()) {
            return;
        }
        if state.sent && state.repeats(plain) {
            let message = "a tool call's whole arguments came again and were ignored";
            self.warn("repeated_arguments", message, None);
            return;
        }
        state.take(plain);
        let lone_now = state.carry;
        if state.name.is_none() {
            if state.format == InputFormat::Json && state.pending == "{}" {
                state.pending.clear();
                state.take_instead(plain);
            }
            state.pending.push_str(plain);
        } else if state.must_wait(plain) {
            state.pending.push_str(plain);
            if state.stage == CallStage::Waiting {
                self.start_call(call);
            }
        } else if state.stage == CallStage::Waiting {
            let held = plain.to_owned();
            self.start_call(call);
            self.send_args(call, &held);
        } else {
            if state.pending == "{}" {
                state.pending.clear();
                state.take_instead(plain);
            }
            state.sent = true;
            deltas.send_text_only(self.out, state.more_args(plain));
        }
        if lone_now.lone > lone {
            self.warn_lone(lone_now);
        }
    }

    /// Take the whole arguments after their chunks, and emit the suffix that was not streamed.
    ///
    /// On a mismatch the streamed arguments stay, with a warning.  Arguments that were not emitted yet are replaced, but
    /// possible ciphertext only by JSON.
    pub fn args_whole(&mut self, call: CallHandle, whole: Str<'_>) {
        let text = whole.text();
        if !self.is_open() {
            return;
        }
        let calls = &mut self.emitter.calls;
        let Some(state) = calls.get_mut(call.0).filter(|state| state.stage != CallStage::Ended)
        else {
            return;
        };
        let rest = state.said.rest_of(&text).map(str::to_owned);
        if state.may_be_ciphertext(&state.pending) {
            if rest.is_none() && !is_json(&text) {
                return;
            }
            state.form = ArgumentForm::Chunks;
            state.carry.high = None;
            state.pending.clear();
            state.take_instead("");
            return self.call_args(call, Str::plain(&text));
        }
        match rest {
            Some(rest) => {
                // The suffix contains both halves of a pending surrogate pair.
                state.carry.high = None;
                self.call_args(call, Str::plain(&rest));
            }
            None if !state.sent => {
                state.pending.clear();
                state.take_instead("");
                self.call_args(call, Str::plain(&text));
            }
            None => self.warn_differing(),
        }
    }

    /// Return true if the arguments are one whole JSON value, so that arguments under `name` belong to another call.
    ///
    /// A held `{}` is whole only before another name, because later arguments of the same call may replace it.
    pub fn is_whole_before(&self, call: CallHandle, name: Option<Str<'_>>) -> bool {
        self.emitter.calls.get(call.0).is_some_and(|call| {
            let renamed =
                name.is_some_and(|name| !call.name.as_deref().is_some_and(|n| name.is(n)));
            (call.sent || renamed) && call.scan.verdict() == Verdict::Complete
        })
    }

    /// Return true if the arguments so far are one whole JSON value, a held `{}` included.
    pub(crate) fn has_whole_args(&self, call: CallHandle) -> bool {
        let call = self.emitter.calls.get(call.0);
        call.is_some_and(|call| call.scan.verdict() == Verdict::Complete)
    }

    /// Return true if the call has a name, and another one than this.
    pub(crate) fn has_other_name(&self, call: CallHandle, name: Str<'_>) -> bool {
        let call = self.emitter.calls.get(call.0);
        call.and_then(|call| call.name.as_deref()).is_some_and(|known| !name.is(known))
    }

    fn send_args(&mut self, call: CallHandle, text: &str) {
        let Emitter { deltas, calls, .. } = &mut *self.emitter;
        // A call does not start if the limit of parts is reached.
        if let Some(state) = calls.get_mut(call.0)
            && state.stage == CallStage::Started
            && !text.is_empty()
        {
            state.sent = true;
            deltas.send_text_only(self.out, state.more_args(text));
        }
    }

    /// Start a call that has a name.
    pub(crate) fn start_call(&mut self, call: CallHandle) {
        let is_waiting = |state: &Call| state.stage == CallStage::Waiting;
        if !self.emitter.calls.get(call.0).is_some_and(is_waiting) {
            return;
        }
        self.end_open_part();
        self.confirm_call();
        let Emitter { deltas, calls, ids, served_calls, .. } = &mut *self.emitter;
        let Some(state) = calls.get_mut(call.0) else { return };
        let Some(index) = deltas.open_part() else {
            return;
        };
        state.part = index;
        // Generated ids derive from the response id, which is final after `start`.
        deltas.start(self.out);
        if !state.given_id {
            let id = made_up_id(&deltas.options, &deltas.response_id, call.0);
            state.id = CallId::from(id.as_str());
        }
        if let Some(other) = unique(ids, &state.id) {
            state.id = CallId::from(other.as_str());
        }
        state.stage = CallStage::Started;
        if state.is_for_caller() {
            *served_calls += 1;
        }
        let provider_state = state.provider_state.take();
        let options = Arc::clone(&deltas.options);
        deltas.send(
            self.out,
            Payload::ToolCallStart {
                id: state.id.as_ref(),
                name: options.caller_name(state.name.as_deref().unwrap_or("")),
                part_index: Some(index),
                input_format: state.format,
                provider_state: provider_state.as_deref(),
            },
        );
        if !state.holds() {
            let pending = std::mem::take(&mut state.pending);
            self.send_args(call, &pending);
        }
    }

    /// End a call.
    ///
    /// A call without arguments that its provider closed waits for what follows: behind it, a token limit or a stop string may
    /// have cut the arguments, whatever the provider says of the call (vLLM marks it completed).  Behind an error that is held,
    /// arguments were dropped, and the call is cut.
    pub fn end_call(&mut self, call: CallHandle, how: CallEnd) {
        if self.ended() {
            return;
        }
        let how = if self.emitter.deferred.is_some() { CallEnd::Cut } else { how };
        let is_blank = self.emitter.calls.get(call.0).is_some_and(Call::is_blank);
        if how == CallEnd::Provider && is_blank {
            self.start_call(call);
            self.confirm_call();
            self.emitter.unconfirmed = Some(call);
            return;
        }
        self.end_call_now(call, how);
    }

    /// End the call without arguments that waits, because content followed it.
    ///
    /// A call whose arguments the final object of the answer may repeat stays open for them.
    pub(super) fn confirm_call(&mut self) {
        let Some(call) = self.emitter.unconfirmed.take() else { return };
        let state = self.emitter.calls.get_mut(call.0);
        match state.filter(|state| state.form == ArgumentForm::Repeated && state.has_no_args()) {
            Some(state) => state.is_confirmed = true,
            None => self.end_call_now(call, CallEnd::Provider),
        }
    }

    fn end_call_now(&mut self, call: CallHandle, how: CallEnd) {
        let Some(state) = self.emitter.calls.get_mut(call.0) else {
            return;
        };
        if state.stage == CallStage::Waiting {
            if !state.given_id && state.name.is_none() && state.pending.is_empty() {
                state.stage = CallStage::Ended;
                return;
            }
            self.start_call(call);
        }
        let Emitter { deltas, calls, scratch, .. } = &mut *self.emitter;
        let Some(state) = calls.get_mut(call.0).filter(|state| state.stage == CallStage::Started)
        else {
            return;
        };
        state.stage = CallStage::Ended;
        let mut held = std::mem::take(&mut state.pending);
        let unreadable = state.may_be_ciphertext(&held)
            && !(how.says_done() && state.scan.verdict() == Verdict::Complete);
        if unreadable {
            held.clear();
            state.carry.high = None;
            state.take_instead("");
        }
        scratch.clear();
        scratch.push_str(&held);
        let lone = state.carry.lone;
        state.carry.flush(scratch);
        let carry = state.carry;
        if !scratch.is_empty() {
            if held.is_empty() {
                state.scan.feed(scratch.as_bytes());
            }
            deltas.send_text_only(self.out, state.more_args(scratch));
        }
        // A call without arguments may not be whole.
        let unsure = !held.is_empty()
            || (state.is_empty_object() && how == CUT_AT_LIMIT)
            || state.format == InputFormat::Text
            || state.scan.verdict() == Verdict::Empty;
        let open = state.format == InputFormat::Json && state.scan.verdict() == Verdict::Open;
        let never = state.never_runs();
        let incomplete = how == CallEnd::Abandoned
            || open
            || unreadable
            || never.is_some()
            || (unsure && !how.says_done());
        let provider_state = state.provider_state.take();
        deltas.send(
            self.out,
            Payload::ToolCallEnd {
                id: state.id.as_ref(),
                part_index: Some(state.part),
                incomplete,
                provider_state: provider_state.as_deref(),
            },
        );
        state.scan = JsonScan::default();
        if let Some(why) = never {
            self.warn("calls_not_runnable", why, None);
        } else if incomplete {
            self.emitter.has_incomplete_call = true;
        }
        if carry.lone > lone {
            self.warn_lone(carry);
        }
        if unreadable {
            let message = "a tool call's arguments came only as ciphertext and were dropped";
            self.warn("unreadable_arguments", message, None);
        }
    }

    /// End all open calls at the end of the answer, in the order in which they were opened.
    pub(super) fn end_calls(&mut self, how: CallEnd) {
        let is_cut = how == CUT_AT_LIMIT || self.emitter.stopped_by_string;
        if let Some(call) = self.emitter.unconfirmed.take() {
            self.end_call_now(call, if is_cut { CUT_AT_LIMIT } else { CallEnd::Provider });
        }
        let last = self.emitter.calls.len().saturating_sub(1);
        for position in self.emitter.first_open..self.emitter.calls.len() {
            let Some(call) = self.emitter.calls.get(position) else { break };
            // In a whole body, what follows a call shows that it is whole.
            let is_followed = call.form == ArgumentForm::Verbatim && position < last;
            let how = match call.is_blank() {
                true if call.is_confirmed || is_followed => CallEnd::Provider,
                true if self.emitter.stopped_by_string => CUT_AT_LIMIT,
                _ => how,
            };
            self.end_call_now(CallHandle(position), how);
        }
        self.emitter.first_open = self.emitter.calls.len();
    }

    /// Return true if no text of the arguments came so far.
    pub(crate) fn has_no_args(&self, call: CallHandle) -> bool {
        self.emitter.calls.get(call.0).is_some_and(Call::has_no_args)
    }

    /// Record that a stop string ended the answer, which may have cut its last call.
    pub(crate) fn stopped_by_string(&mut self) {
        self.emitter.stopped_by_string = true;
    }
}

fn is_json(text: &str) -> bool {
    let mut scan = JsonScan::default();
    scan.feed(text.as_bytes());
    scan.verdict() == Verdict::Complete
}

/// Generate the id of a call without one.  The same run, response, answer and ordinal give the same id.
fn made_up_id(options: &StreamOptions, response_id: &str, ordinal: usize) -> String {
    let StreamOptions { run_id, choice, .. } = options;
    // Ids of the only answer do not name it, so that they are those of earlier versions.
    let answer = if *choice == 0 { String::new() } else { format!("{choice}\0") };
    let said = Digest::from_text(&format!("{run_id}\0{response_id}\0{ordinal}\0{answer}"));
    format!("call_{:016x}", said.hash())
}

/// Return `id_2`, `id_3` … if earlier calls have `id`; `None` for a new id.
fn unique(ids: &mut BTreeMap<String, u32>, id: &str) -> Option<String> {
    if !ids.contains_key(id) {
        ids.insert(id.to_owned(), 1);
        return None;
    }
    let mut candidate = id.to_owned();
    while ids.contains_key(&candidate) {
        let count = ids.get_mut(id).map_or(2, |count| {
            *count = count.saturating_add(1);
            *count
        });
        candidate = format!("{id}_{count}");
    }
    ids.insert(candidate.clone(), 1);
    Some(candidate)
}
