//! The events of a run: their order between the deltas of its answers.
//!
//! In: events of an agent.  Out: calls of a [`Writer`].
//!
//! Laws (docs/protocols/encoding.md#e17): the head is written once, with the status 200, and one end is the last thing.  A call
//! that was written has one result before the next answer begins, unless it waits for a person.

use super::Sequencer;
use crate::contract::{ErrorCode, Failure, Usage};
use crate::encode::draft::Draft;
use crate::encode::run::{
    CallStatus, NO_RESULT, RunCall, RunContent, RunEnd, RunEvent, RunResult, RunStatus, TAKEN_BACK,
    WrittenCall,
};
use crate::encode::settings::Settings;
use crate::encode::waiting::{Content, Slot};
use crate::encode::writer::Writer;

impl<W: Writer> Sequencer<W> {
    /// Write an event of a run.
    pub fn run_event(&mut self, draft: &mut Draft, event: &RunEvent) {
        if self.ended {
            return;
        }
        match event {
            RunEvent::Turn => {
                self.settle(draft, &[], CallStatus::Failed, NO_RESULT);
                self.forget_answer(draft);
                self.writer.close_step(draft);
            }
            RunEvent::Answer(ids) => {
                if let Some(run) = &mut draft.run {
                    run.rename(ids);
                }
                self.settle(draft, ids, CallStatus::Failed, TAKEN_BACK);
            }
            RunEvent::Retry { continues, facts } => self.retry(draft, *continues, facts),
            RunEvent::Defect { reason, facts } => {
                self.settle(draft, &[], CallStatus::Failed, reason);
                self.begin_run(draft, None);
                self.writer.notice(draft, "output_defect", facts);
            }
            RunEvent::Notice(name, facts) => {
                self.begin_run(draft, None);
                self.writer.notice(draft, name, facts);
            }
            RunEvent::Approval(call) => {
                self.with_call(draft, call, W::approval);
            }
            RunEvent::Progress(call, value) => {
                self.with_call(draft, call, |writer, draft, call| {
                    writer.progress(draft, call, value);
                });
            }
            RunEvent::Result(call, result) => {
                note_lost_files(draft, &result.content);
                self.with_call(draft, call, |writer, draft, call| {
                    writer.result(draft, call, result);
                });
                if let Some(run) = &mut draft.run {
                    run.answered(&call.id);
                }
            }
            RunEvent::Input(content) => {
                note_lost_files(draft, content);
                self.begin_run(draft, None);
                self.writer.input(draft, content);
                if let Some(run) = &mut draft.run {
                    run.inputs += 1;
                }
            }
            RunEvent::End(end) => self.end_run(draft, end),
        }
    }

    /// Write the end of a run whose events stopped.
    pub fn lose_run(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        let end = RunEnd {
            status: RunStatus::Failed,
            reason: "error".into(),
            failure: Some((
                failure.code.as_str().into(),
                failure.message.unwrap_or(ErrorCode::ConnectionLost.as_str()).into(),
            )),
            // The counts of the requests before this answer are not known here.
            usage: Usage::default(),
            accepted: "".into(),
            pending: Vec::new(),
        };
        self.run_event(draft, &RunEvent::End(Box::new(end)));
    }

    /// End an answer that broke off: nothing of it stays open, and its unfinished calls are cut.
    pub(super) fn break_off(&mut self, draft: &mut Draft) {
        for index in self.slots.numbers() {
            if let Some(Slot { content: Content::Call(call), ended: false, .. }) =
                self.slots.get(index)
            {
                call.incomplete = true;
            }
        }
        self.close_all(draft);
        self.end_held_calls(draft, true);
        self.forget_answer(draft);
    }

    /// Be ready for the next answer: its parts get the next numbers of the run.
    pub(super) fn forget_answer(&mut self, draft: &mut Draft) {
        let parts = std::mem::take(&mut self.parts);
        if let Some(run) = &mut draft.run {
            run.first_part += parts;
        }
        draft.head.usage = Usage::default();
        let writer = std::mem::take(&mut self.writer);
        *self = Self { writer, ended: self.ended, failed: self.failed, ..Self::default() };
    }

    /// Write the head of the stream, unless it is written.
    pub(super) fn begin_run(&mut self, draft: &mut Draft, call: Option<&RunCall>) {
        let Some(run) = &mut draft.run else { return };
        if !std::mem::replace(&mut run.has_head, true) {
            Self::name_run(draft, call);
            Self::name_response(draft);
            self.writer.head(draft);
        }
    }

    /// Give a run whose first event is no answer an id: the caller's, or one that no other run of the conversation has.
    fn name_run(draft: &mut Draft, call: Option<&RunCall>) {
        let Settings { response_id, request_id, .. } = &draft.settings;
        if let Some(id) = response_id {
            draft.head.request_id = id.as_ref().to_owned();
        } else if let Some(call) = call.filter(|_| request_id.is_none())
            && draft.head.request_id.is_empty()
        {
            draft.head.request_id = format!("run-{}", call.id);
        }
    }

    fn retry(&mut self, draft: &mut Draft, continues: bool, facts: &str) {
        self.break_off(draft);
        if continues || !W::RETRACTS {
            self.settle(draft, &[], CallStatus::Failed, TAKEN_BACK);
        } else if let Some(run) = &mut draft.run {
            run.take_back();
        }
        self.begin_run(draft, None);
        self.writer.retry(draft, continues, facts);
    }

    fn end_run(&mut self, draft: &mut Draft, end: &RunEnd) {
        self.break_off(draft);
        let pending: Vec<_> = end.pending.iter().map(|call| call.id.clone()).collect();
        if end.status == RunStatus::Completed {
            self.settle(draft, &pending, CallStatus::Success, &end.accepted);
        } else {
            self.settle(draft, &pending, CallStatus::Failed, NO_RESULT);
        }
        self.begin_run(draft, end.pending.first());
        draft.head.usage = end.usage.without_details();
        self.writer.close_step(draft);
        self.writer.end_run(draft, end);
        self.ended = true;
        self.failed = end.is_failure();
    }

    /// Write one result for each call without one, but for some.
    fn settle(&mut self, draft: &mut Draft, kept: &[Box<str>], status: CallStatus, text: &str) {
        let Some(run) = &mut draft.run else { return };
        for id in run.take_open(kept) {
            let call = RunCall { id, ..RunCall::default() };
            let result = RunResult::told(status, text);
            self.with_call(draft, &call, |writer, draft, call| {
                writer.result(draft, &WrittenCall { is_output: true, ..*call }, &result);
            });
        }
    }

    fn with_call(
        &mut self,
        draft: &mut Draft,
        call: &RunCall,
        write: impl FnOnce(&mut W, &mut Draft, &WrittenCall<'_>),
    ) {
        self.begin_run(draft, Some(call));
        let Some(run) = &mut draft.run else { return };
        let (id, is_known) = run.id_of(&call.id);
        if !is_known {
            run.learn(&call.id);
        }
        write(&mut self.writer, draft, &WrittenCall { call, id: &id, is_known, is_output: false });
    }
}

fn note_lost_files(draft: &mut Draft, content: &RunContent) {
    for _ in 0..content.lost {
        draft.notes.add("part", "a file that no client can read");
    }
}
