//! `Answers`: the stages after the dialect, once for each answer of the stream that is followed.
//!
//! In: operations on the sink of an answer.  Out: its deltas, to the caller's output, or to its own batch if all answers are
//! followed.
//!
//! Laws:
//! - If one answer is followed, it is the first one, and there is no other.
//! - If all are followed, the first one is no answer: it is what every answer has in common, decoded as an answer that the
//!   stream never holds.  An answer begins as its copy, with its deltas, at the first event that holds the answer.  So its
//!   deltas are those that it would have if it were followed alone.
//! - A stream that ends before it held an answer has one answer with number 0, and so has a stream of a dialect without
//!   several answers.

use std::collections::BTreeMap;
use std::mem::size_of;
use std::sync::Arc;

use crate::contract::{Delta, DeltaBatch, Output, Payload};
use crate::dialect::choices::NO_CHOICE;
use crate::emit::{Emitter, StreamOptions};
use crate::markup::{MarkupLayer, Wanted};
use crate::sink::{DeltaSink, Sinks};

/// Bytes of deltas that all answers have in common, beside the bound of a message.  A late answer needs them, also where
/// the bound is small.
const SHARED_BYTES: usize = 1 << 20;

/// Destination of the deltas.
pub(super) trait Outputs {
    /// True if every answer is followed.
    const ALL: bool;

    /// Receiver of the deltas of one answer.
    type One: Output;

    /// Return the receiver of an answer with this batch of its own.
    fn of<'a>(&'a mut self, pending: &'a mut DeltaBatch) -> &'a mut Self::One;
}

/// The caller's output, for the answer that is followed alone.
pub(super) struct Alone<'o, O>(pub(super) &'o mut O);

impl<O: Output> Outputs for Alone<'_, O> {
    const ALL: bool = false;
    type One = O;

    #[inline]
    fn of<'a>(&'a mut self, _: &'a mut DeltaBatch) -> &'a mut O {
        self.0
    }
}

/// The batches of all answers.
pub(super) struct Pending;

impl Outputs for Pending {
    const ALL: bool = true;
    type One = DeltaBatch;

    fn of<'a>(&'a mut self, pending: &'a mut DeltaBatch) -> &'a mut DeltaBatch {
        pending
    }
}

/// The stages after the dialect, for one answer.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    emitter: Emitter,
    markup: Option<Box<MarkupLayer>>,
    /// Deltas that the caller has not taken, if all answers are followed.
    pending: DeltaBatch,
}

/// What the first answer is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum First {
    /// An answer.
    Answer,
    /// What all answers have in common.  It keeps all its deltas, of which `deltas` are counted, in `bytes` of memory.
    Shared { deltas: usize, bytes: usize },
    /// What all answers had in common, until that took more memory than allowed.
    Dropped,
}

/// The answers that are followed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answers {
    is: First,
    first: Answer,
    /// The other answers, in the order in which the stream showed them.
    others: Vec<Answer>,
    /// The positions of the answers by number, if all are followed.
    known: BTreeMap<u64, usize>,
}

impl Answers {
    /// Build the stages of one answer, the one of the options.
    pub(super) fn one(options: Arc<StreamOptions>, markup: Option<&Wanted>) -> Self {
        let first = Answer {
            emitter: Emitter::new(options),
            markup: markup.map(|wanted| Box::new(MarkupLayer::new(wanted))),
            pending: DeltaBatch::default(),
        };
        Self { is: First::Answer, first, others: Vec::new(), known: BTreeMap::new() }
    }

    /// Build the stages of all answers.  Without `has_choices` there is one.
    pub(super) fn all(
        options: Arc<StreamOptions>,
        markup: Option<&Wanted>,
        has_choices: bool,
    ) -> Self {
        let mut answers = Self::one(options, markup);
        answers.first.emitter.follow(NO_CHOICE);
        answers.is = First::Shared { deltas: 0, bytes: 0 };
        if !has_choices {
            answers.settle();
        }
        answers
    }

    /// Make answer 0 of what all answers have in common.
    fn settle(&mut self) {
        self.is = First::Answer;
        self.first.emitter.follow(0);
        self.known.insert(0, 0);
    }

    /// Make answer 0 of a stream that ended before it held an answer.
    pub(super) fn settle_at_end(&mut self) {
        if self.known.is_empty() && self.first.emitter.ended() {
            self.settle();
        }
    }

    /// Take the deltas of all answers that have any, by number.
    pub(super) fn take(&mut self) -> BTreeMap<u64, DeltaBatch> {
        let Self { first, others, known, .. } = self;
        let mut taken = BTreeMap::new();
        let mut batches: Vec<_> = std::iter::once(first)
            .chain(others)
            .map(|answer| Some(&mut answer.pending).filter(|pending| !pending.is_empty()))
            .collect();
        for (number, at) in known {
            if let Some(pending) = batches.get_mut(*at).and_then(Option::take) {
                taken.insert(*number, std::mem::take(pending));
            }
        }
        taken
    }

    /// Return the numbers of the answers, lowest first.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.known.keys().copied()
    }

    /// Return true after the terminal of every answer.
    #[inline]
    pub(super) fn have_ended(&self) -> bool {
        (self.is == First::Dropped || self.first.emitter.ended())
            && self.others.iter().all(|answer| answer.emitter.ended())
    }

    /// Return the sequence number of the last delta of the first answer.
    pub(super) fn last_seq(&self) -> u64 {
        self.first.emitter.last_seq()
    }

    /// Return the number of answers, the first one included.
    fn len(&self) -> usize {
        self.others.len() + 1
    }

    fn get_mut(&mut self, at: usize) -> Option<&mut Answer> {
        match at.checked_sub(1) {
            None => Some(&mut self.first),
            Some(at) => self.others.get_mut(at),
        }
    }

    /// End every answer at a limit.
    #[cold]
    fn exceed(&mut self, which: &str, bound: usize) {
        for answer in std::iter::once(&mut self.first).chain(&mut self.others) {
            answer.emitter.exceed(which, bound);
        }
    }

    /// Count the deltas that all answers have in common.  Drop them when they take more memory than allowed: the answers go
    /// on, and a further one is refused.
    fn bound_shared(&mut self) {
        let First::Shared { deltas, bytes } = &mut self.is else { return };
        let pending = &self.first.pending;
        while let Some(delta) = pending.get(*deltas) {
            *deltas += 1;
            *bytes = bytes.saturating_add(size_of::<Payload<Box<str>>>() + text_bytes(&delta));
        }
        let bound = self.first.emitter.options().limits.message_bytes;
        if *bytes <= bound.saturating_add(SHARED_BYTES) {
            return;
        }
        if self.known.is_empty() {
            self.exceed("message_bytes", bound);
        } else {
            self.is = First::Dropped;
            self.first.pending = DeltaBatch::default();
        }
    }
}

/// Return the number of bytes of the long texts of a delta.
fn text_bytes(delta: &Delta<&str>) -> usize {
    let json = |json: Option<&str>| json.map_or(0, str::len);
    let payload = match &delta.payload {
        Payload::Start { model_id, request_id } => model_id.len() + request_id.len(),
        Payload::Text { text, attributes, .. } | Payload::Thinking { text, attributes, .. } => {
            text.len() + json(attributes.annotations) + json(attributes.provider_state)
        }
        Payload::ToolCallStart { id, name, provider_state, .. } => {
            id.len() + name.len() + json(*provider_state)
        }
        Payload::ToolCallArgs { id, text } => id.len() + text.len(),
        Payload::ToolCallEnd { id, provider_state, .. } => id.len() + json(*provider_state),
        Payload::Usage(usage) => json(usage.details),
        Payload::Part { part, .. } => part.len(),
        Payload::PartEnd { .. } | Payload::Done { .. } | Payload::Error(_) => 0,
    };
    payload + json(delta.provider_raw)
}

/// The answers with the destination of their deltas.
pub(super) struct JoinedAnswers<'a, O> {
    answers: &'a mut Answers,
    out: &'a mut O,
}

impl<'a, O: Outputs> JoinedAnswers<'a, O> {
    #[inline]
    pub(super) fn new(answers: &'a mut Answers, out: &'a mut O) -> Self {
        Self { answers, out }
    }

    /// Call `f` with the sink of each answer that has not ended.
    pub(super) fn each(&mut self, mut f: impl FnMut(&mut DeltaSink<'_, O::One>)) {
        for at in 0..self.answers.len() {
            self.with(at, &mut f);
        }
    }
}

impl<O: Outputs> Sinks for JoinedAnswers<'_, O> {
    type Out = O::One;
    const ALL: bool = O::ALL;

    #[inline]
    fn options(&self) -> &StreamOptions {
        self.answers.first.emitter.options()
    }

    #[inline]
    fn ended(&self) -> bool {
        self.answers.have_ended()
    }

    #[inline]
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone has one lifetime"
    )]
    fn end_frame(&mut self) {
        if O::ALL {
            self.each(|sink| sink.end_frame());
            self.answers.bound_shared();
        }
        // If all are followed, their bound may just have ended what they have in common.
        self.with(0, |sink| sink.end_frame());
    }

    fn admit(&mut self, number: u64) -> bool {
        let Answers { is, first, others, known } = &mut *self.answers;
        if known.contains_key(&number) {
            return false;
        }
        let limits = first.emitter.options().limits;
        if known.len() >= limits.choices {
            self.answers.exceed("choices", limits.choices);
            return false;
        }
        if *is == First::Dropped {
            self.answers.exceed("message_bytes", limits.message_bytes);
            return false;
        }
        let mut answer = first.clone();
        answer.emitter.follow(number);
        others.push(answer);
        known.insert(number, others.len());
        true
    }

    #[inline]
    fn with(&mut self, at: usize, f: impl FnOnce(&mut DeltaSink<'_, O::One>)) {
        if !O::ALL {
            let Answer { emitter, markup, pending } = &mut self.answers.first;
            return f(&mut DeltaSink::new(emitter, markup.as_deref_mut(), self.out.of(pending)));
        }
        let is_dropped = at == 0 && self.answers.is == First::Dropped;
        if let Some(Answer { emitter, markup, pending }) = self.answers.get_mut(at)
            && !emitter.ended()
            && !is_dropped
        {
            f(&mut DeltaSink::new(emitter, markup.as_deref_mut(), self.out.of(pending)));
        }
    }
}
