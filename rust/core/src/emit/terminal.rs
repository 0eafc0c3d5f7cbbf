//! The terminal: finish reason, deferred errors, and the one `done` or `error` of a stream.

use super::calls::CallEnd;
use super::delta_emitter::Phase;
use super::parts::PartHandle;
use super::sink::{DeltaSink, Emitter};
use crate::contract::{ErrorCode, Failure, FinishReason, Output, Payload};
use crate::json::ObjectWriter;

impl<O: Output> DeltaSink<'_, O> {
    /// Remembers why the message ended; a later reason replaces an earlier one.
    pub fn finish(&mut self, reason: FinishReason, raw: &str) {
        self.keep_frame_for_end();
        self.emitter.finish = Some((reason, raw.to_owned()));
    }

    /// Whether a finish reason was seen.
    pub fn finished(&self) -> bool {
        self.emitter.finish.is_some()
    }

    /// Whether the finish reason that was seen says that the model ended by itself.
    pub fn finished_whole(&self) -> bool {
        self.emitter.finish.as_ref().is_some_and(|(reason, _)| reason.says_done())
    }

    /// The message holds refusal text.
    pub fn refused(&mut self) {
        self.emitter.refused = true;
    }

    /// Remembers an error that the protocol lets other events follow: content is dropped from here on, usage is merged,
    /// and the error ends the stream at its real end.
    pub fn defer_error(&mut self, failure: Failure<Box<str>>) {
        self.keep_frame_for_end();
        self.emitter.deferred.get_or_insert_with(|| Box::new(failure));
    }

    /// Keeps the frame's JSON for the terminal, unless a delta of the frame took it.
    fn keep_frame_for_end(&mut self) {
        let deltas = &mut self.emitter.deltas;
        if deltas.raw.is_some() {
            deltas.raw_of_end.clone_from(&deltas.raw);
        }
    }

    /// Ends the stream in an error, now.
    pub fn error(&mut self, failure: Failure<Box<str>>) {
        if self.ended() {
            return;
        }
        self.settle(CallEnd::Cut);
        let warnings = self.emitter.warnings.to_json();
        let mut failure = failure;
        let request_id = &self.options().response.request_id;
        failure.http_request_id = failure.http_request_id.or_else(|| request_id.clone());
        failure.warnings = None;
        let mut payload = failure.map(&mut AsRef::as_ref);
        payload.warnings = warnings.as_deref();
        self.emitter.deltas.send(self.out, Payload::Error(payload));
        self.emitter.deltas.phase = Phase::Ended;
    }

    /// The provider's end marker: the stream is whole.
    pub fn end(&mut self) {
        if self.ended() {
            return;
        }
        if let Some(message) = self.emitter.deltas.limit_reached.take() {
            // What did not fit was dropped in this very frame: that is no normal end.
            return self.error(Failure::new(ErrorCode::ProtocolError, message.into()));
        }
        if let Some(failure) = self.emitter.deferred.take() {
            return self.error(*failure);
        }
        let (reason, raw) = match self.emitter.finish.take() {
            Some((reason, raw)) => (Some(reason), Some(raw).filter(|raw| !raw.is_empty())),
            None => (None, None),
        };
        self.settle(reason.map_or(CallEnd::EndMarker, CallEnd::Finish));
        let called = self.emitter.started_calls > 0;
        let finish_reason = match reason {
            None | Some(FinishReason::Stop) if called => FinishReason::ToolCalls,
            None | Some(FinishReason::Stop) if self.emitter.refused => FinishReason::Refusal,
            Some(reason) => reason,
            None => FinishReason::Other,
        };
        let warnings = self.emitter.warnings.to_json();
        let mut details = std::mem::take(&mut self.emitter.details);
        if !details.is_empty() {
            ObjectWriter::resume(&mut details).end();
        }
        let deltas = &mut self.emitter.deltas;
        deltas.start(self.out);
        let model = Some(&deltas.model)
            .filter(|model| !model.is_empty() && **model != deltas.started_model)
            .cloned();
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

    /// The body stopped: a stream that said its finish reason is done, any other was lost.
    pub fn end_of_body(&mut self, lost: Failure<Box<str>>) {
        if self.ended() {
            return;
        }
        if self.emitter.deferred.is_some() || self.finished() {
            self.end();
        } else {
            self.error(lost);
        }
    }

    /// Leaves nothing open before the terminal.
    fn settle(&mut self, how: CallEnd) {
        self.settle_markup(how);
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
