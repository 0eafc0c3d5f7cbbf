//! End of a stream: finish reason, deferred errors, and the one `done` or `error`.
//!
//! In: finish reasons, failures, the end marker and the end of the body.  Out: the terminal.
//!
//! Law: all parts and calls end before the terminal.

use super::call::CallEnd;
use super::counts::Counts;
use super::delta_emitter::Phase;
use super::emitter::{Emitter, EmitterSink};
use super::options::WholeEnds;
use super::parts::PartHandle;
use super::warnings::MAX_NAME;
use super::whole_sign::{Said, WholeSign};
use crate::contract::{ErrorCode, Failure, FinishReason, Payload};
use crate::facts::{Ending, FinishReasons, UsageTable};

/// Callback that emits the content of other layers before the parts and calls of a message are ended.
pub(crate) type BeforeEnd<'a, S> = &'a mut dyn FnMut(&mut S, CallEnd);

impl EmitterSink<'_> {
    /// Record the finish reason.  A later reason replaces an earlier one, but a plain stop replaces none.
    pub fn finish(&mut self, reason: FinishReason, raw: &str) {
        let known = self.emitter.finish.as_ref().map(|(known, _)| *known);
        if reason == FinishReason::Stop && known.is_some_and(|known| known != reason) {
            return;
        }
        self.keep_frame_for_end();
        self.emitter.finish = Some((reason, raw.to_owned()));
    }

    /// Return the meaning of a finish word, by the protocol's own table first.  An unknown word is `Other`.
    pub fn ending(&self, own: &FinishReasons, word: &str) -> Ending {
        let known = self.options().response.vocabulary.ending(own, word);
        known.unwrap_or(Ending::Finish(FinishReason::Other))
    }

    /// Take a finish word: record the finish reason, or the error that it names.  Warns of an unknown word.
    pub fn finish_word(&mut self, own: &FinishReasons, word: &str) -> Ending {
        let known = self.options().response.vocabulary.ending(own, word);
        if known.is_none() && !word.is_empty() {
            let word: String = word.chars().take(MAX_NAME).collect();
            self.warn("unknown_finish_reason", &format!("unknown finish reason {word:?}"), None);
        }
        let ending = known.unwrap_or(Ending::Finish(FinishReason::Other));
        match ending {
            Ending::Finish(reason) => self.finish(reason, word),
            Ending::Failure(code) => {
                let message = format!("the provider ended the answer with {word}");
                let mut failure = Failure::new(code, message.into());
                failure.provider_code = Some(word.into());
                self.defer_error(failure);
            }
        }
        ending
    }

    /// Record the finish reason of an answer that ends without one.
    pub fn imply_finish(&mut self, reason: FinishReason, raw: &'static str) {
        self.emitter.implied_finish = Some((reason, raw));
    }

    /// Record a sign that the answer is whole, which may end without a finish reason then.
    pub fn says_whole(&mut self) {
        self.emitter.whole = WholeSign::Given;
    }

    /// Take a usage record of an event that brought no content.  If it has counts, the answer is whole unless content follows.
    pub(crate) fn counted(&mut self, record: &str, table: &UsageTable) {
        let has_counts = Counts::read(table, record).is_ok_and(|counts| !counts.is_empty());
        if self.emitter.whole != WholeSign::Given && has_counts {
            self.emitter.whole = WholeSign::Counted(self.said());
        }
    }

    /// Return how much content there is.  It grows with each event that brings some.
    pub(crate) fn said(&self) -> Said {
        let Emitter { deltas, calls, .. } = &*self.emitter;
        Said { bytes: deltas.message_bytes, state: deltas.state_bytes, calls: calls.len() }
    }

    /// Return true if the answer is whole without a finish reason.
    fn is_whole(&self) -> bool {
        match self.emitter.whole {
            WholeSign::Missing => false,
            WholeSign::Given => true,
            WholeSign::Counted(said) => said == self.said(),
        }
    }

    /// Return true if no content, no sign of an end and no error came so far.  Counts alone are of no protocol.
    pub(crate) fn says_nothing(&self) -> bool {
        let Emitter { deltas, deferred, whole, .. } = &*self.emitter;
        let is_ending = self.finished() || *whole == WholeSign::Given;
        deltas.next_part == 0 && deferred.is_none() && !is_ending
    }

    /// Return true after a finish reason.
    pub fn finished(&self) -> bool {
        self.emitter.finish.is_some()
    }

    /// Return true after a finish reason that means that the model ended by itself.
    pub fn finished_whole(&self) -> bool {
        self.emitter.finish.as_ref().is_some_and(|(reason, _)| reason.says_done())
    }

    /// Record that another model serves the answer from here on.  The calls so far never run.
    #[cold]
    pub fn hand_over(&mut self) {
        self.emitter.served_calls = 0;
        self.emitter.has_incomplete_call = false;
        self.emitter.finish = None;
    }

    /// Record that the message holds refusal text.
    pub fn refused(&mut self) {
        self.emitter.refused = true;
    }

    /// Record an error that other events of the protocol may follow.
    ///
    /// Later content is dropped and usage is still merged.  The error ends the stream at its real end.
    pub fn defer_error(&mut self, failure: Failure<Box<str>>) {
        self.keep_frame_for_end();
        self.emitter.deferred.get_or_insert_with(|| Box::new(failure));
    }

    /// Keep the JSON of the frame for the terminal, unless a delta of the frame took it.
    fn keep_frame_for_end(&mut self) {
        let deltas = &mut self.emitter.deltas;
        if deltas.raw.is_some() {
            deltas.raw_of_end.clone_from(&deltas.raw);
        }
    }

    /// End the stream in an error, now.
    pub(crate) fn error(&mut self, failure: Failure<Box<str>>, before: BeforeEnd<'_, Self>) {
        if self.ended() {
            return;
        }
        self.settle(CallEnd::Cut, before);
        let warnings = self.emitter.warnings.to_json();
        let mut failure = failure;
        let request_id = &self.options().response.request_id;
        failure.http_request_id = failure.http_request_id.or_else(|| request_id.clone());
        failure.warnings = None;
        let details = self.take_details();
        let mut payload = failure.map(&mut AsRef::as_ref);
        payload.warnings = warnings.as_deref();
        payload.details = Some(details.as_str()).filter(|details| !details.is_empty());
        self.emitter.deltas.send(self.out, Payload::Error(payload));
        self.emitter.deltas.phase = Phase::Ended;
    }

    /// End the stream at the provider's end marker.
    pub(crate) fn end(&mut self, before: BeforeEnd<'_, Self>) {
        if self.ended() {
            return;
        }
        if let Some(message) = self.emitter.deltas.limit_reached.take() {
            // Content of this frame was dropped because of the limit, so the end is not normal.
            let failure = Failure::new(ErrorCode::ProtocolError, message.into());
            return self.error(failure, before);
        }
        if let Some(failure) = self.emitter.deferred.take() {
            return self.error(*failure, before);
        }
        let given = self.emitter.finish.take();
        let implied = self.emitter.implied_finish.map(|(reason, raw)| (reason, raw.to_owned()));
        let finish = match given {
            Some((_, raw)) if raw.is_empty() && implied.is_some() => implied,
            given => given.or(implied),
        };
        if finish.is_none() && !self.is_whole() {
            if self.options().whole_ends == WholeEnds::Signed {
                let failure = self.cut_before_mark();
                return self.error(failure, before);
            }
            let message = "the answer ended without a finish reason (ends_without_reason)";
            self.warn("no_finish_reason", message, None);
        }
        let (reason, raw) = match finish {
            Some((reason, raw)) => (Some(reason), Some(raw).filter(|raw| !raw.is_empty())),
            None => (None, None),
        };
        self.settle(reason.map_or(CallEnd::EndMarker, CallEnd::Finish), before);
        let called = self.emitter.served_calls > 0;
        let finish_reason = match reason {
            None | Some(FinishReason::Stop) if self.emitter.refused => FinishReason::Refusal,
            None | Some(FinishReason::Stop) if called => FinishReason::ToolCalls,
            Some(reason) => reason,
            None => FinishReason::Other,
        };
        // Claude gives one empty text where it has nothing to say.
        let says_why = !matches!(finish_reason, FinishReason::Stop | FinishReason::Length);
        if self.emitter.deltas.next_part == 0 && !says_why {
            self.warn("empty_answer", "the answer has no content", None);
        }
        if self.emitter.has_incomplete_call {
            let message = "a tool call without all of its arguments does not run";
            self.warn("incomplete_call", message, None);
        }
        if called {
            self.warn_of_calls(finish_reason, raw.as_deref());
        }
        let warnings = self.emitter.warnings.to_json();
        let details = self.take_details();
        let deltas = &mut self.emitter.deltas;
        deltas.start(self.out);
        let model = deltas.changed_model().map(str::to_owned);
        deltas.send(
            self.out,
            Payload::Done {
                finish_reason,
                raw_finish_reason: raw.as_deref(),
                model_id: model.as_deref(),
                details: Some(details.as_str()).filter(|details| !details.is_empty()),
                warnings: warnings.as_deref(),
            },
        );
        deltas.phase = Phase::Ended;
    }

    /// Return the failure of an answer with an end mark, but without a sign that it is whole.
    #[cold]
    fn cut_before_mark(&self) -> Failure<Box<str>> {
        if self.emitter.deltas.next_part == 0 {
            let message = "the stream has an end mark, but no answer before it";
            let mut failure = Failure::new(ErrorCode::ProtocolError, message.into());
            failure.retryable = Some(true);
            return failure;
        }
        let message = "the stream has an end mark, but no finish reason and no last usage record before it, as if it was cut; \
                       where a service never sends one, set ends_without_reason=True for its vendor, Model, Decoder or entry of the gateway";
        Failure::new(ErrorCode::ConnectionLost, message.into())
    }

    /// Warn if the finish reason forbids that calls run, or if no table states whether they may.
    fn warn_of_calls(&mut self, reason: FinishReason, raw: Option<&str>) {
        let word = raw.unwrap_or(reason.as_str());
        if let Some(why) = reason.forbids_calls() {
            let message = format!("no tool call may run: {why} ({word:?})");
            self.warn("calls_not_runnable", &message, None);
        } else if matches!(reason, FinishReason::Pause | FinishReason::Other) {
            let message = format!("whole tool calls may run after the finish reason {word:?}");
            self.warn("calls_after_unsure_end", &message, None);
        }
    }

    /// End the stream at the end of the body.
    ///
    /// With a finish reason or a deferred error the stream ends as at its end marker, and where the body was `closed`, with
    /// another sign too.  Otherwise it ends in the failure `lost`.
    pub(crate) fn end_of_body(
        &mut self,
        lost: Failure<Box<str>>,
        closed: bool,
        before: BeforeEnd<'_, Self>,
    ) {
        if self.ended() {
            return;
        }
        let has_content = self.emitter.deltas.next_part > 0;
        let is_signed = self.options().whole_ends == WholeEnds::Any || self.is_whole();
        let is_implied = self.emitter.implied_finish.is_some();
        let is_whole = closed && (is_implied || (is_signed && has_content));
        if self.emitter.deferred.is_some() || self.finished() || is_whole {
            self.end(before);
        } else {
            self.error(lost, before);
        }
    }

    /// End all open parts and calls before the terminal, and emit the final usage.
    fn settle(&mut self, how: CallEnd, before: BeforeEnd<'_, Self>) {
        before(self, how);
        for position in 0..self.emitter.parts.len() {
            self.end_part(PartHandle(position));
        }
        let deltas = &mut self.emitter.deltas;
        deltas.raw = deltas.raw.take().or(deltas.raw_of_end.take());
        self.end_calls(how);
        let Emitter { deltas, usage, usage_beside, .. } = &mut *self.emitter;
        if let Some(beside) = usage_beside.take() {
            let (counts, raw) = *beside;
            let filled = counts.fill(usage.as_ref(), &raw);
            if usage.as_ref() != Some(&filled) {
                deltas.send(self.out, Payload::Usage(filled.map(String::as_str)));
                *usage = Some(filled);
            }
        }
    }
}
