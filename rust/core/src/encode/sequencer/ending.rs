//! The end of a stream: what is still open is closed, and one terminal is written.
//!
//! In: the ending or the failure of an answer.  Out: the last calls of a [`Writer`], or an HTTP error.

use super::Sequencer;
use crate::contract::{Failure, FinishReason};
use crate::encode::calls::is_cut_call;
use crate::encode::draft::Draft;
use crate::encode::waiting::{Content, Slot};
use crate::encode::writer::{Ending, Writer};

impl<W: Writer> Sequencer<W> {
    /// Write the calls that waited for the end, or leave them out if it forbids them.  Returns true if there was a whole one.
    pub(super) fn end_held_calls(&mut self, draft: &mut Draft, forbids_calls: bool) -> bool {
        let mut has_whole = false;
        for index in self.slots.numbers() {
            let Some(Slot { content: Content::Call(call), opened: false, ended: true }) =
                self.slots.get(index)
            else {
                continue;
            };
            let is_whole = !is_cut_call::<W>(call);
            has_whole |= is_whole;
            if is_whole && forbids_calls {
                let why = format!("the call of {}, which may not run after this end", call.name);
                draft.notes.add("call", &why);
                self.slots.drop(index);
            } else {
                self.close(draft, index);
            }
        }
        has_whole
    }

    /// Close all that is open; deltas of a caller may leave the ends of parts out.
    pub(super) fn close_all(&mut self, draft: &mut Draft) {
        for index in self.slots.numbers() {
            if self.slots.get(index).is_some() {
                self.end_part(draft, index);
            }
        }
    }

    pub(super) fn done(&mut self, draft: &mut Draft, ending: Ending<'_>) {
        let failure = ending.failure_text(W::ERROR_REASON_FAILS, self.status.is_none());
        self.close_all(draft);
        if self.ended {
            return;
        }
        if draft.run.is_some() {
            self.begin(draft);
            self.end_held_calls(draft, ending.reason.forbids_calls().is_some());
            return self.forget_answer(draft);
        }
        if let Some(text) = failure {
            return self.error(draft, &ending.failure(&text));
        }
        self.begin(draft);
        let forbids_calls = ending.reason.forbids_calls().is_some();
        let was_held = self.end_held_calls(draft, forbids_calls);
        let mut ending = Ending { has_calls: self.calls > 0 || was_held, ..ending };
        if self.declined && !forbids_calls {
            draft.notes.add("call", "a written call of a model that another one took over from");
            ending = Ending { reason: FinishReason::ContentFilter, raw: None, ..ending };
        }
        self.writer.finish(draft, &ending.without_calls(self.whole_calls == 0));
        self.ended = true;
    }

    /// Write what waits for a part that will not end any more.  Decoders end all parts before a failure; callers may not.
    pub(super) fn flush(&mut self, draft: &mut Draft) {
        for index in self.slots.earlier_turns() {
            if let Some(Slot { content: Content::Call(call), ended: false, .. }) =
                self.slots.get(index)
            {
                call.incomplete = true;
            }
            self.end_part(draft, index);
        }
    }

    /// End a stream that failed; in a run, the answer alone.
    pub(super) fn error(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        if draft.run.is_some() { self.break_off(draft) } else { self.fail(draft, failure) }
    }

    pub(super) fn fail(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        self.begin_run(draft, None);
        if self.status.is_some() {
            self.flush(draft);
        }
        self.end_held_calls(draft, true);
        self.ended = true;
        self.failed = true;
        if let Some(number) = draft.answer {
            draft.deferred.get_or_insert_with(|| {
                Box::new((number, failure.map(&mut |text: &&str| Box::from(*text))))
            });
        } else if self.status.is_none() && draft.run.is_none() {
            self.refuse(draft, failure);
        } else {
            self.writer.fail(draft, failure);
        }
    }

    /// Write a failure before all content.
    pub(super) fn refuse(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
        let (status, body) = W::refusal(draft, failure);
        self.status = Some(status);
        if status == 200 {
            draft.out.json_event("", &body);
            self.writer.end(draft);
        } else {
            draft.out.body(&body);
        }
    }
}
