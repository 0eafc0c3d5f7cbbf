//! `Answers`: the stages after the dialect, once for each answer of the stream that is followed.
//!
//! In: operations on the sink of an answer.  Out: its deltas, to the caller's output, or to its own batch if all answers are
//! followed.
//!
//! Laws:
//! - If one answer is followed, it is the only one, at index 0.
//! - If all are followed, index 0 holds the content that all answers share, decoded as an answer that the
//!   stream never holds.  An answer begins as its copy, with its deltas, at the first event that holds the answer.  So its
//!   deltas are those that it would have if it were followed alone, without the warning of the other answers.
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

/// Deltas that the caller has not taken.  Boxed, because an answer that is followed alone has none.
type PendingBatch = Option<Box<DeltaBatch>>;

/// Destination of the deltas.
pub(super) trait Outputs {
    /// True if every answer is followed.
    const ALL: bool;

    /// Return the receiver of an answer with this batch of its own.
    fn of<'a>(&'a mut self, pending: &'a mut PendingBatch) -> &'a mut dyn Output;
}

/// The caller's output, for the answer that is followed alone.
pub(super) struct Alone<'o>(pub(super) &'o mut dyn Output);

impl Outputs for Alone<'_> {
    const ALL: bool = false;

    #[inline]
    fn of<'a>(&'a mut self, _: &'a mut PendingBatch) -> &'a mut dyn Output {
        self.0
    }
}

/// The batches of all answers.
pub(super) struct Pending;

impl Outputs for Pending {
    const ALL: bool = true;

    fn of<'a>(&'a mut self, pending: &'a mut PendingBatch) -> &'a mut dyn Output {
        pending.get_or_insert_default().as_mut()
    }
}

/// The stages after the dialect, for one answer.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    emitter: Emitter,
    markup: Option<Box<MarkupLayer>>,
    pending: PendingBatch,
}

/// Role of the first answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum First {
    /// An answer.
    Answer,
    /// Content that all answers share.  It keeps all its deltas, of which `deltas` are counted, in `bytes` of memory.
    Shared { deltas: usize, bytes: usize },
    /// Content that all answers share, until it exceeds the allowed memory.
    Dropped,
}

/// The answers that are followed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answers {
    first: Answer,
    /// The other answers, if all are followed.
    others: Option<Box<Others>>,
}

/// The answers beside the first one.
#[derive(Clone, Debug, PartialEq)]
struct Others {
    first_is: First,
    /// In the order in which the stream showed them.
    answers: Vec<Answer>,
    /// Positions by number; the first answer has position 0.
    known: BTreeMap<u64, usize>,
}

impl Answers {
    /// Build the stages of one answer, the one of the options.
    pub(super) fn one(options: Arc<StreamOptions>, markup: Option<&Wanted>) -> Self {
        let first = Answer {
            emitter: Emitter::new(options),
            markup: markup.map(|wanted| Box::new(MarkupLayer::new(wanted))),
            pending: None,
        };
        Self { first, others: None }
    }

    /// Build the stages of all answers.  Without `has_choices` there is one.
    pub(super) fn all(
        options: Arc<StreamOptions>,
        markup: Option<&Wanted>,
        has_choices: bool,
    ) -> Self {
        let mut answers = Self::one(options, markup);
        answers.first.emitter.follow(NO_CHOICE);
        answers.first.emitter.follow_all();
        answers.others = Some(Box::new(Others {
            first_is: First::Shared { deltas: 0, bytes: 0 },
            answers: Vec::new(),
            known: BTreeMap::new(),
        }));
        if !has_choices {
            answers.settle();
        }
        answers
    }

    /// Replace the options before the first byte, when there is one answer.  It follows the same number as before.
    pub(super) fn set_options(&mut self, options: &Arc<StreamOptions>) {
        self.first.emitter.set_options(options);
    }

    /// Take whether the stream has several answers, before the first byte.
    pub(super) fn set_has_choices(&mut self, has_choices: bool) {
        if !has_choices {
            self.settle();
        }
    }

    /// Make answer 0 from the shared content, if the stream has not shown an answer.
    fn settle(&mut self) {
        if let Some(others) = self.others.as_mut().filter(|others| others.known.is_empty()) {
            others.first_is = First::Answer;
            others.known.insert(0, 0);
            self.first.emitter.follow(0);
        }
    }

    /// Make answer 0 of a stream that ended before it held an answer.
    pub(super) fn settle_at_end(&mut self) {
        if self.first.emitter.ended() {
            self.settle();
        }
    }

    /// Take the deltas of all answers that have any, by number.
    pub(super) fn take(&mut self) -> BTreeMap<u64, DeltaBatch> {
        let Self { first, others } = self;
        let Some(others) = others else { return BTreeMap::new() };
        let mut batches: Vec<_> = std::iter::once(first)
            .chain(&mut others.answers)
            .map(|answer| Some(&mut answer.pending))
            .collect();
        let taken = others.known.iter().filter_map(|(number, at)| {
            let pending = batches.get_mut(*at)?.take()?.as_deref_mut();
            Some((*number, std::mem::take(pending.filter(|pending| !pending.is_empty())?)))
        });
        taken.collect()
    }

    /// Return the numbers of the answers, lowest first.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.others.iter().flat_map(|others| others.known.keys().copied())
    }

    /// Return true after the terminal of every answer.
    #[inline]
    pub(super) fn have_ended(&self) -> bool {
        let first = self.first.emitter.ended();
        match &self.others {
            None => first,
            Some(others) => {
                (first || others.first_is == First::Dropped)
                    && others.answers.iter().all(|answer| answer.emitter.ended())
            }
        }
    }

    /// Return true while an error of the first answer waits for the end of the stream.
    pub(super) fn hold_error(&self) -> bool {
        self.first.emitter.holds_error()
    }

    /// Return the sequence number of the last delta of the first answer.
    pub(super) fn last_seq(&self) -> u64 {
        self.first.emitter.last_seq()
    }

    /// Return the number of answers, the first one included.
    fn len(&self) -> usize {
        self.others.as_ref().map_or(0, |others| others.answers.len()) + 1
    }

    /// Return the answer at a position; `None` after its end.
    fn open_answer(&mut self, at: usize) -> Option<&mut Answer> {
        let others = self.others.as_mut()?;
        let answer = match at.checked_sub(1) {
            None if others.first_is == First::Dropped => return None,
            None => &mut self.first,
            Some(at) => others.answers.get_mut(at)?,
        };
        (!answer.emitter.ended()).then_some(answer)
    }

    /// End every answer at a limit.
    #[cold]
    fn exceed(&mut self, which: &str, bound: usize) {
        let others = self.others.iter_mut().flat_map(|others| &mut others.answers);
        for answer in std::iter::once(&mut self.first).chain(others) {
            answer.emitter.exceed(which, bound);
        }
    }

    /// Count the deltas that all answers have in common.  Drop them when they take more memory than allowed: the answers go
    /// on, and a further one is refused.
    fn bound_shared(&mut self) {
        let Some(others) = &mut self.others else { return };
        let (First::Shared { deltas, bytes }, Some(pending)) =
            (&mut others.first_is, &self.first.pending)
        else {
            return;
        };
        while let Some(delta) = pending.get(*deltas) {
            *deltas += 1;
            *bytes = bytes.saturating_add(size_of::<Payload<Box<str>>>() + text_bytes(&delta));
        }
        let bound = self.first.emitter.options().limits.message_bytes;
        if *bytes <= bound.saturating_add(SHARED_BYTES) {
            return;
        }
        if others.known.is_empty() {
            self.exceed("message_bytes", bound);
        } else {
            others.first_is = First::Dropped;
            self.first.pending = None;
        }
    }

    /// Add an answer as a copy of the first; return true if it was added.
    fn admit(&mut self, number: u64) -> bool {
        let Some(others) = &mut self.others else { return false };
        if others.known.contains_key(&number) {
            return false;
        }
        let limits = self.first.emitter.options().limits;
        if others.known.len() >= limits.choices {
            self.exceed("choices", limits.choices);
            return false;
        }
        if others.first_is == First::Dropped {
            self.exceed("message_bytes", limits.message_bytes);
            return false;
        }
        let mut answer = self.first.clone();
        answer.emitter.follow(number);
        others.answers.push(answer);
        others.known.insert(number, others.answers.len());
        true
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
        Payload::ToolCallArgs { id, text, .. } => id.len() + text.len(),
        Payload::ToolCallEnd { id, provider_state, .. } => id.len() + json(*provider_state),
        Payload::Usage(usage) => json(usage.details),
        Payload::Part { part, .. } => part.len(),
        Payload::Audio { data } => data.len(),
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

    /// Return the sink of the answer that is followed alone: one for many events, which is cheaper than one for each.
    #[inline]
    pub(super) fn alone(&mut self) -> DeltaSink<'_> {
        let Answer { emitter, markup, pending } = &mut self.answers.first;
        DeltaSink::new(emitter, markup.as_deref_mut(), self.out.of(pending))
    }

    /// Call `f` with the sink of each answer that has not ended.
    pub(super) fn each(&mut self, mut f: impl FnMut(&mut DeltaSink<'_>)) {
        for at in 0..self.answers.len() {
            self.with(at, &mut f);
        }
    }
}

impl<O: Outputs> Sinks for JoinedAnswers<'_, O> {
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
        // If all are followed, their bound may just have ended the shared content.
        self.with(0, |sink| sink.end_frame());
    }

    fn has_changed_fact(&mut self) -> bool {
        let mut has_changed = false;
        self.each(|sink| has_changed |= sink.has_changed_fact());
        has_changed
    }

    fn admit(&mut self, number: u64) -> bool {
        self.answers.admit(number)
    }

    #[inline]
    fn with(&mut self, at: usize, f: impl FnOnce(&mut DeltaSink<'_>)) {
        let Self { answers, out } = self;
        let answer = if O::ALL { answers.open_answer(at) } else { Some(&mut answers.first) };
        if let Some(Answer { emitter, markup, pending }) = answer {
            f(&mut DeltaSink::new(emitter, markup.as_deref_mut(), out.of(pending)));
        }
    }
}
