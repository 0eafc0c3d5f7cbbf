//! `Stream`: one answer, checked against the laws of the contract and put in the target's order.
//!
//! In: deltas.  Out: events in a draft, which several answers of a response share.
//!
//! Laws: a delta that breaks a law of the contract changes nothing and is reported.  Nothing is written after the terminal.

use super::registry::{State, Target};
use crate::contract::{
    CallId, ContractViolation, Delta, DeltaKind, Destination, ErrorCode, Failure, Laws, Output,
    Payload, TextOnlyDelta,
};
use crate::encode::{Draft, RunEvent};

/// Order of one answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stream {
    laws: Laws,
    state: State,
    /// The call that had the last arguments.
    call: Option<CallId>,
    violation: Option<ContractViolation>,
    /// The failure that ended the stream: its code and the seconds to wait.
    failure: Option<(ErrorCode, Option<f64>)>,
    http_request_id: Option<Box<str>>,
}

impl Stream {
    pub(super) fn new(target: &Target) -> Self {
        Self {
            laws: Laws::default(),
            state: (target.state)(),
            call: None,
            violation: None,
            failure: None,
            http_request_id: None,
        }
    }

    pub(super) fn status(&self) -> Option<u16> {
        self.state.status()
    }

    pub(super) fn ended(&self) -> bool {
        self.state.ended()
    }

    pub(super) fn failed(&self) -> bool {
        self.state.failed()
    }

    /// Return the sequence number that the next delta may have.
    pub(super) fn next_seq(&self) -> u64 {
        self.laws.last_seq() + 1
    }

    pub(super) fn violation(&self) -> Option<&ContractViolation> {
        self.violation.as_ref()
    }

    /// Return the code of the failure that ended the stream, and the seconds to wait.
    pub(super) fn failure(&self) -> Option<(ErrorCode, Option<f64>)> {
        self.failure
    }

    pub(super) fn http_request_id(&self) -> Option<&str> {
        self.http_request_id.as_deref()
    }

    pub(super) fn keep_alive(&mut self, draft: &mut Draft) {
        self.state.keep_alive(draft);
    }

    /// Write the end of a response with several answers; see [`crate::encode::Sequencer::end_answers`].
    pub(super) fn end_answers(
        &mut self,
        draft: &mut Draft,
        failure: Option<&Failure<&str>>,
        has_head: bool,
    ) {
        self.state.end_answers(draft, failure, has_head);
    }

    /// Write an event of a run.
    pub(super) fn run_event(&mut self, draft: &mut Draft, event: &RunEvent) {
        if self.violation.is_none() {
            if matches!(event, RunEvent::Turn | RunEvent::Retry { .. }) {
                self.expect_answer();
            }
            self.state.run_event(draft, event);
        }
    }

    /// Write the end of a run whose events stopped.
    pub(super) fn lose_run(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        self.state.lose_run(draft, failure);
    }

    /// Begin the laws anew, for the next answer of a run.
    fn expect_answer(&mut self) {
        self.laws = Laws::default();
        self.call = None;
    }

    fn consume(&mut self, draft: &mut Draft, delta: &Delta<&str>) {
        match self.laws.check(delta) {
            Ok(place) => {
                if let Payload::Error(failure) = &delta.payload {
                    self.failure = Some((failure.code, failure.retry_after));
                    self.http_request_id = failure.http_request_id.map(Into::into);
                }
                self.state.delta(draft, delta, place);
                if draft.run.is_some() && self.laws.ended() {
                    self.expect_answer();
                }
            }
            Err(violation) => self.violation = Some(violation),
        }
    }

    /// Write a delta that the laws accepted and that cannot be written at once.
    #[cold]
    fn later(&mut self, draft: &mut Draft, seq: u64, part: usize, delta: TextOnlyDelta<'_>) {
        let delta = Delta { seq, payload: delta.into(), provider_raw: None };
        self.state.delta(draft, &delta, Destination::Part(part));
    }

    /// Consume arguments of another call than the last ones.
    #[cold]
    fn first_args(&mut self, draft: &mut Draft, seq: u64, id: &CallId, delta: TextOnlyDelta<'_>) {
        self.consume(draft, &Delta { seq, payload: delta.into(), provider_raw: None });
        self.call = Some(id.clone());
    }
}

/// A stream and the draft that it writes.
pub(super) struct OnDraft<'a> {
    pub(super) stream: &'a mut Stream,
    pub(super) draft: &'a mut Draft,
}

impl Output for OnDraft<'_> {
    fn delta(&mut self, delta: &Delta<&str>) {
        if self.stream.violation.is_none() {
            if let Payload::ToolCallEnd { .. } = delta.payload {
                self.stream.call = None;
            }
            self.stream.consume(self.draft, delta);
        }
    }

    #[inline]
    fn text_only(&mut self, seq: u64, delta: TextOnlyDelta<'_>) {
        let Self { stream, draft } = self;
        if stream.violation.is_some() {
            return;
        }
        let (kind, part, text) = match delta {
            TextOnlyDelta::Text { part, text } => (DeltaKind::Text, part as usize, text),
            TextOnlyDelta::Thinking { part, text } => (DeltaKind::Thinking, part as usize, text),
            TextOnlyDelta::Args { part, id, text } => {
                let part = part as usize;
                return match &stream.call {
                    Some(known) if known.is_clone_of(id) && stream.laws.more_args(seq, text) => {
                        if !stream.state.more_args(draft, part, text) {
                            stream.later(draft, seq, part, delta);
                        }
                    }
                    _ => stream.first_args(draft, seq, id, delta),
                };
            }
        };
        if !stream.laws.more_text(seq, kind, part, text) {
            stream.consume(draft, &Delta { seq, payload: delta.into(), provider_raw: None });
        } else if !stream.state.more_text(draft, part, text) {
            stream.later(draft, seq, part, delta);
        }
    }
}
