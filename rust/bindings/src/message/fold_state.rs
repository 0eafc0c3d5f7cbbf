//! `FoldState`: the Rust state of a message under construction, shared by an assembler and the readers of its arguments.
//!
//! In: deltas of one run, from a decoder, a batch or the caller.  Out: the assembler of the core, the run id and the time of
//! the first delta.
//!
//! Laws: all deltas pass through [`FoldState::receive`].  A message accepts the deltas of one run.  A rejected first delta
//! leaves the state unchanged, including the run id.

use std::sync::Arc;

use deltafold::contract::{ContractViolation, Delta, DeltaBatch, InputFormat, Output};
use deltafold::fold::{FoldingOutput, MessageAssembler, Part};

use crate::support::clock::Timestamp;

/// State of a message under construction.
pub(crate) struct FoldState {
    /// Shared with messages.  A feed copies it only while a message of an earlier state has not made its parts.
    core: Arc<MessageAssembler>,
    run_id: Option<Arc<str>>,
    /// Timestamp of the first delta.
    began: Option<Timestamp>,
    /// Number of resets before this state.
    generation: u64,
}

/// Arguments of a tool call that a reader has not read yet.
pub(crate) struct UnreadArguments {
    pub(crate) text: String,
    pub(crate) input_format: InputFormat,
    pub(crate) ended: bool,
}

/// Place in the text of a message, up to which a reader has read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// Number of the part with the last text.
    part: usize,
    /// Byte offset in the text of this part.
    offset: usize,
    /// Number of parts that the reader has looked at.  Those behind `part` have no text for it, and never will.
    seen: usize,
}

impl FoldState {
    /// Build an empty state.  Without a run id, the run of the first delta is used.
    pub(crate) fn new(run_id: Option<Arc<str>>) -> Self {
        Self { core: Arc::default(), run_id, began: None, generation: 0 }
    }

    /// Build the empty state that follows this one after a reset.
    pub(crate) fn successor(&self, run_id: Option<Arc<str>>) -> Self {
        Self { generation: self.generation + 1, ..Self::new(run_id) }
    }

    pub(crate) fn core(&self) -> &Arc<MessageAssembler> {
        &self.core
    }

    pub(crate) fn run_id(&self) -> Option<&Arc<str>> {
        self.run_id.as_ref()
    }

    pub(crate) fn began(&self) -> Option<Timestamp> {
        self.began
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Return the arguments of a call from byte `from` on; `None` after a reset.
    pub(crate) fn unread_arguments(
        &self,
        generation: u64,
        part: usize,
        from: usize,
    ) -> Option<UnreadArguments> {
        match self.core.parts().get(part) {
            Some(Part::ToolCall(call)) if generation == self.generation => Some(UnreadArguments {
                text: call.args.get(from..)?.to_owned(),
                input_format: call.input_format,
                ended: call.ended,
            }),
            _ => None,
        }
    }

    /// Return the text from a place on, and the place of its end: the answer, or the arguments of the first call of `tool`.
    ///
    /// Refusals are not part of the answer.
    pub(crate) fn text_since(&self, place: Place, tool: Option<&str>) -> (String, Place) {
        let parts = self.core.parts();
        let mut text = String::new();
        let mut end = Place { seen: parts.len(), ..place };
        let begun = (place.part < place.seen).then_some(place.part);
        for at in begun.into_iter().chain(place.seen..parts.len()) {
            let found = match (parts.get(at), tool) {
                (Some(Part::Text(part)), None) if !part.refusal => &part.text,
                (Some(Part::ToolCall(call)), Some(name)) if *call.name == *name => &call.args,
                _ => continue,
            };
            let from = if at == place.part { place.offset } else { 0 };
            text.push_str(found.get(from..).unwrap_or(""));
            (end.part, end.offset) = (at, found.len());
            if tool.is_some() {
                break;
            }
        }
        (text, end)
    }

    /// Fold the deltas of a run that `produce` emits, and return their number and the result of `produce`.
    ///
    /// `first_seq` is the sequence number of the first delta.  The error for a delta of another run contains it.
    pub(crate) fn receive<R>(
        &mut self,
        run_id: &str,
        now: impl FnOnce() -> Timestamp,
        first_seq: u64,
        produce: impl FnOnce(&mut FoldingOutput<'_>) -> R,
    ) -> Result<(usize, R), ContractViolation> {
        // The run id of a stream's decoder and of its message is one text, which need not be compared.
        if let Some(known) = &self.run_id
            && !std::ptr::eq(known.as_ref(), run_id)
            && known.as_ref() != run_id
        {
            return Err(ContractViolation {
                seq: first_seq,
                law: format!("the delta belongs to run {run_id:?}, this message to {known:?}"),
                field: Some("runId"),
            });
        }
        let (run_was_known, had_begun) = (self.run_id.is_some(), self.began.is_some());
        let seq_before = self.core.last_seq();
        if !run_was_known {
            self.run_id = Some(run_id.into());
        }
        self.began.get_or_insert_with(now);
        let mut output = FoldingOutput::new(Arc::make_mut(&mut self.core));
        let produced = produce(&mut output);
        let outcome = output.finish().map(|count| (count, produced));
        if outcome.is_err() && self.core.last_seq() == seq_before {
            self.run_id.take_if(|_| !run_was_known);
            self.began.take_if(|_| !had_begun);
        }
        outcome
    }

    /// Fold a batch.  An empty batch has no effect.
    pub(crate) fn receive_batch(
        &mut self,
        run_id: &str,
        now: Timestamp,
        batch: &DeltaBatch,
    ) -> Result<(), ContractViolation> {
        let Some(first) = batch.get(0) else {
            return Ok(());
        };
        self.receive(run_id, || now, first.seq, |output| batch.replay(output)).map(drop)
    }

    /// Fold one delta.
    pub(crate) fn receive_delta(
        &mut self,
        run_id: &str,
        now: Timestamp,
        delta: &Delta<&str>,
    ) -> Result<(), ContractViolation> {
        self.receive(run_id, || now, delta.seq, |output| output.delta(delta)).map(drop)
    }
}
