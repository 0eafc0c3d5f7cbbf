//! Outline: a request as the tokens of its plain messages, in rounds, and everything else as it is.
//!
//! In: the JSON of a request.  Out: what a stencil is found by, and a short request that stands for it.
//!
//! Laws: a round begins with an answer of the model behind a message of someone else, and ends before the next round.  Each
//! of its calls has one result in it, and each id is that of one call of the rounds.  The first messages and the last round
//! are in no stretch of rounds, because rules treat them differently, and neither is a message beside one that is not plain.

use std::collections::HashSet;
use std::ops::Range;

use super::marks::Marks;
use super::rows::{Found, Rows};
use super::string::string_at;
use super::token::{Kind, Token};
use crate::json::{space_end, value_end};

/// Levels that a request may nest, below the bound of any reader.
const LEVELS: usize = 200;

/// Most forms of rounds that one sample has.
pub(super) const MOST_FORMS: usize = 16;

/// Most messages of a sample: the places of marks and of notes are compared with each other.
const MOST_MESSAGES: usize = 4_000;

/// Forms of rounds that need no sample any more.
pub trait KnownForms {
    /// Return whether a round of a part has a known form.
    fn has_round(&self, part: usize, form: &[u8]) -> bool;
}

/// Messages that belong together: the first ones, or a round.
#[derive(Debug, Default)]
pub(super) struct Unit {
    /// Places of its messages in the history.
    pub(super) messages: Range<usize>,
    /// Tokens in order.
    pub(super) tokens: Vec<Token>,
    /// For the id of a result, the place of its call's id among the tokens.
    pub(super) calls: Vec<Option<usize>>,
    /// What determines the order and the meaning of the tokens.
    pub(super) form: Vec<u8>,
}

/// A message of the history.
#[derive(Debug)]
struct Message {
    span: Range<usize>,
    /// Whether the model wrote it; `None` if it is not plain.
    is_answer: Option<bool>,
    tokens: Range<usize>,
    form: Range<usize>,
}

/// A stretch of the history.
#[derive(Debug)]
pub(super) enum Part {
    /// The first messages, or the last round, of a request whose messages are all plain.
    Edge(Unit),
    /// Messages that the rules read as they are.
    Raw(Range<usize>),
    /// Rounds that follow each other.
    Rounds(Vec<Unit>),
}

/// A request with rounds of plain messages.
#[derive(Debug)]
pub struct Outline {
    /// The member of the history, brackets included.
    history: Range<usize>,
    /// Places of the messages.
    spans: Vec<Range<usize>>,
    pub(super) parts: Vec<Part>,
    is_whole: bool,
    key: Vec<u8>,
}

/// The parts of a request in the order of its members.
struct Members {
    history: Range<usize>,
    head: Found,
    /// Everything that is neither the history nor a token of the head.
    frame: Vec<u8>,
}

/// Most members of a request, and most calls of a round: each is compared with all others.
const MOST_MEMBERS: usize = 200;
const MOST_CALLS: usize = 200;

/// Rounds that a stretch has at least, if the request has other messages than plain ones: each form costs a sample.
const FEWEST_ROUNDS: usize = 3;

impl Outline {
    /// Read a request; `None` if no stretch of it is worth a stencil.
    pub fn read(json: &str, rows: &Rows) -> Option<Self> {
        if !rows.allow(json) {
            return None;
        }
        let members = members(json, rows)?;
        let (messages, found) = messages(json, members.history.clone(), rows)?;
        let all = messages.len();
        let mut ids = HashSet::new();
        let mut unit = |range: Range<usize>| unit_of(json, &messages, &found, range, &mut ids);
        let is_answer = |place: usize| messages.get(place).and_then(|message| message.is_answer);
        // An answer behind something else that is plain: nothing joins both to one message.
        let starts: Vec<usize> = (1..all)
            .filter(|place| is_answer(*place) == Some(true) && is_answer(place - 1) == Some(false))
            .filter(|place| is_written(messages.get(*place..).unwrap_or(&[]), &found))
            .collect();
        let is_plain = (0..all).all(|place| is_answer(place).is_some());
        let is_whole = is_plain && is_answer(0) == Some(false) && is_answer(all - 1) == Some(false);
        let first = starts.first().copied().unwrap_or(all);
        let edges = is_whole.then(|| unit(0..first)).flatten();
        let mut rounds = Vec::with_capacity(starts.len());
        for pair in starts.windows(2) {
            rounds.push(unit(*pair.first()?..*pair.last()?));
        }
        let last = starts.last().map(|start| unit(*start..all));
        let spans = messages.iter().map(|message| message.span.clone()).collect();
        let history = members.history;
        let is_whole = rounds.iter().all(Option::is_some) && !matches!(last, Some(None));
        let Some(mut head) = edges.filter(|_| is_whole) else {
            let key = key_of(members.frame, &[], false);
            let answers_a_call = |place: usize| {
                let tokens = messages
                    .get(place)
                    .and_then(|message| found.tokens.get(message.tokens.clone()));
                tokens.unwrap_or(&[]).iter().any(|token| token.kind == Kind::Result)
            };
            let parts = stretches(rounds, all, answers_a_call)?;
            return Some(Self { history, spans, parts, is_whole: false, key });
        };
        join(&mut head, members.head);
        let tail = last.flatten().unwrap_or_default();
        let key = key_of(members.frame, &[&head.form, &tail.form], rounds.is_empty());
        let mut parts = vec![Part::Edge(head)];
        if !rounds.is_empty() {
            parts.push(Part::Rounds(rounds.into_iter().flatten().collect()));
        }
        parts.push(Part::Edge(tail));
        Some(Self { history, spans, parts, is_whole, key })
    }

    /// What a stencil of the request is found by, if all messages are plain: everything but the texts, ids, names and
    /// arguments of the messages, and but the rounds between the first messages and the last round.  Otherwise it is all but
    /// the messages.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Whether all messages are plain.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Number of messages, and of the tokens that were found in them.
    pub fn sizes(&self) -> (usize, usize) {
        (self.spans.len(), self.units().map(|unit| unit.tokens.len()).sum())
    }

    /// Number of the messages that a stencil writes.
    pub fn written(&self) -> usize {
        self.units().map(|unit| unit.messages.len()).sum()
    }

    /// Return the ids of the calls, and the names of the tools, each as it is written.
    pub fn identifiers<'a>(&self, json: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
        let (mut ids, mut names) = (Vec::new(), HashSet::new());
        for token in self.units().flat_map(|unit| &unit.tokens) {
            match token.kind {
                Kind::Call => ids.push(token.inside(json)),
                Kind::Name => {
                    names.insert(token.inside(json));
                }
                _ => {}
            }
        }
        (ids, names.into_iter().collect())
    }

    fn units(&self) -> impl Iterator<Item = &Unit> {
        self.parts.iter().flat_map(|part| match part {
            Part::Edge(unit) => std::slice::from_ref(unit),
            Part::Rounds(rounds) => rounds,
            Part::Raw(_) => &[],
        })
    }

    /// Return the forms of the rounds of each stretch in order.
    pub fn forms(&self) -> Vec<Vec<&[u8]>> {
        let mut all = Vec::new();
        for part in &self.parts {
            if let Part::Rounds(rounds) = part {
                all.push(rounds.iter().map(|round| round.form.as_slice()).collect());
            }
        }
        all
    }

    /// Return whether a stencil has all forms of the request.
    pub fn is_covered(&self, stencil: &dyn KnownForms) -> bool {
        self.parts.iter().enumerate().all(|(number, part)| match part {
            Part::Rounds(rounds) => {
                lacking(rounds, Some(stencil), number).is_some_and(|lacking| lacking.is_empty())
            }
            _ => true,
        })
    }

    /// Return the units of a sample, each with the number of its part.
    pub(super) fn sampled(&self, stencil: Option<&dyn KnownForms>) -> Option<Vec<(usize, &Unit)>> {
        let mut units = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            match part {
                Part::Edge(unit) => units.push((number, unit)),
                Part::Rounds(rounds) => {
                    let of_part = sampled(rounds, stencil, number)?;
                    units.extend(of_part.into_iter().map(|unit| (number, unit)));
                }
                Part::Raw(_) => {}
            }
        }
        Some(units)
    }

    /// Return a short request of the same kind with marks for all tokens; `None` if it would have rounds of too many forms,
    /// or too many messages.
    pub fn sample(
        &self,
        json: &str,
        stencil: Option<&dyn KnownForms>,
        mark: &str,
    ) -> Option<Sample> {
        let mut writer = SampleWriter {
            json,
            marks: Marks::new(mark),
            history: String::from("["),
            beside: Vec::new(),
            messages: Vec::new(),
            units: Vec::new(),
        };
        let mut stretch = 0;
        for (number, part) in self.parts.iter().enumerate() {
            match part {
                Part::Edge(unit) => writer.unit(unit, None, stretch, &self.spans)?,
                Part::Raw(range) => {
                    for place in range.clone() {
                        let span = self.spans.get(place)?.clone();
                        writer.begin(place, None);
                        writer.history.push_str(json.get(span)?);
                    }
                }
                Part::Rounds(rounds) => {
                    for unit in sampled(rounds, stencil, number)? {
                        writer.unit(unit, Some(unit.form.clone()), stretch, &self.spans)?;
                    }
                    stretch += 1;
                }
            }
        }
        if writer.messages.len() > MOST_MESSAGES {
            return None;
        }
        writer.history.push(']');
        let SampleWriter { history, mut beside, messages, units, .. } = writer;
        let body = self.replaced(json, &history, &mut beside);
        Some(Sample { body, messages, units })
    }

    /// Return a request with another history, and other tokens beside it.
    fn replaced(
        &self,
        json: &str,
        history: &str,
        beside: &mut Vec<(Range<usize>, String)>,
    ) -> String {
        beside.push((self.history.clone(), history.to_owned()));
        beside.sort_by_key(|(span, _)| span.start);
        let mut out = String::with_capacity(json.len() - self.history.len() + history.len());
        let mut at = 0;
        for (span, text) in beside.iter() {
            out.push_str(json.get(at..span.start).unwrap_or(""));
            out.push_str(text);
            at = span.end;
        }
        out.push_str(json.get(at..).unwrap_or(""));
        out
    }
}

/// A short request that stands for another one.
#[derive(Debug)]
pub struct Sample {
    /// Its JSON.
    pub body: String,
    /// For each of its messages the place in the request, and its unit if it has marks.
    pub messages: Vec<(usize, Option<usize>)>,
    /// Its units in order.
    pub units: Vec<SampleUnit>,
}

/// Messages of a sample with marks: an edge of the request, or a round.
#[derive(Debug)]
pub struct SampleUnit {
    /// The number behind those of its marks.
    pub end: usize,
    /// Its form; `None` for an edge.
    pub form: Option<Vec<u8>>,
    /// Number of its stretch among those of the request.
    pub stretch: usize,
}

struct SampleWriter<'a> {
    json: &'a str,
    marks: Marks<'a>,
    history: String,
    beside: Vec<(Range<usize>, String)>,
    messages: Vec<(usize, Option<usize>)>,
    units: Vec<SampleUnit>,
}

impl SampleWriter<'_> {
    fn begin(&mut self, place: usize, unit: Option<usize>) {
        if !self.messages.is_empty() {
            self.history.push(',');
        }
        self.messages.push((place, unit));
    }

    fn unit(
        &mut self,
        unit: &Unit,
        form: Option<Vec<u8>>,
        stretch: usize,
        spans: &[Range<usize>],
    ) -> Option<()> {
        let json = self.json;
        let base = self.marks.next();
        let mut tokens = unit.tokens.iter().zip(&unit.calls).enumerate().peekable();
        // Tokens beside the history follow those of the messages.
        for place in unit.messages.clone() {
            let span = spans.get(place)?;
            self.begin(place, Some(self.units.len()));
            let mut at = span.start;
            while let Some((number, (token, call))) =
                tokens.next_if(|(_, (token, _))| span.contains(&token.start))
            {
                self.history.push_str(json.get(at..token.start)?);
                self.history
                    .push_str(&self.marks.written(base + call.unwrap_or(number), token.kind));
                at = token.end;
            }
            self.history.push_str(json.get(at..span.end)?);
        }
        for (number, (token, _)) in tokens {
            let mark = self.marks.written(base + number, token.kind);
            self.beside.push((token.start..token.end, mark));
        }
        self.marks.take(unit.tokens.len());
        self.units.push(SampleUnit { end: self.marks.next(), form, stretch });
        Some(())
    }
}

/// Return one round of each form that a stencil lacks; `None` for too many.
fn lacking<'a>(
    rounds: &'a [Unit],
    stencil: Option<&dyn KnownForms>,
    part: usize,
) -> Option<Vec<&'a Unit>> {
    let mut lacking: Vec<&Unit> = Vec::new();
    let mut last: Option<&Unit> = None;
    for round in rounds {
        // Neighbours often have one form.
        if last.is_some_and(|last| last.form == round.form) {
            continue;
        }
        last = Some(round);
        let is_known = stencil.is_some_and(|stencil| stencil.has_round(part, &round.form));
        if !is_known && !lacking.iter().any(|other| other.form == round.form) {
            if lacking.len() == MOST_FORMS {
                return None;
            }
            lacking.push(round);
        }
    }
    Some(lacking)
}

/// Return the rounds of a part that a sample has: a stencil is cut around them, so that there is at least one.
fn sampled<'a>(
    rounds: &'a [Unit],
    stencil: Option<&dyn KnownForms>,
    part: usize,
) -> Option<Vec<&'a Unit>> {
    let lacking = lacking(rounds, stencil, part)?;
    if lacking.is_empty() { Some(rounds.first().into_iter().collect()) } else { Some(lacking) }
}

/// Return whether the answers at the beginning of some messages have something that is always written: else what the user says
/// next could be joined to what the user has said before.
fn is_written(messages: &[Message], found: &Found) -> bool {
    let answers = messages.iter().take_while(|message| message.is_answer == Some(true));
    let tokens = |message: &Message| found.tokens.get(message.tokens.clone()).unwrap_or(&[]);
    answers.flat_map(tokens).any(|token| matches!(token.kind, Kind::Text | Kind::Call))
}

fn key_of(mut frame: Vec<u8>, forms: &[&[u8]], is_short: bool) -> Vec<u8> {
    for form in forms {
        frame.push(0);
        frame.extend_from_slice(form);
    }
    frame.push(u8::from(is_short));
    frame
}

/// Return the stretches of rounds, and the messages around them as they are; `None` without any.
///
/// A result outside of a round may answer a call elsewhere and move there, so that an answer behind it would follow another
/// one: a stretch begins behind something else.
fn stretches(
    rounds: Vec<Option<Unit>>,
    all: usize,
    answers_a_call: impl Fn(usize) -> bool,
) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut raw_from = 0;
    let mut stretch: Vec<Unit> = Vec::new();
    let mut before_is_round = false;
    let mut close = |stretch: &mut Vec<Unit>, raw_from: &mut usize| {
        let range = (
            stretch.first().map(|unit| unit.messages.start),
            stretch.last().map(|unit| unit.messages.end),
        );
        if let (Some(start), Some(end)) = range
            && stretch.len() >= FEWEST_ROUNDS
        {
            parts.push(Part::Raw(*raw_from..start));
            parts.push(Part::Rounds(std::mem::take(stretch)));
            *raw_from = end;
        }
        stretch.clear();
    };
    for round in rounds {
        let Some(unit) = round else {
            before_is_round = false;
            close(&mut stretch, &mut raw_from);
            continue;
        };
        let is_firm = before_is_round || !answers_a_call(unit.messages.start.saturating_sub(1));
        before_is_round = true;
        if is_firm {
            stretch.push(unit);
        }
    }
    close(&mut stretch, &mut raw_from);
    if parts.is_empty() {
        return None;
    }
    parts.push(Part::Raw(raw_from..all));
    Some(parts)
}

/// Add the tokens that stand beside the history, behind those of its messages.
fn join(head: &mut Unit, beside: Found) {
    head.calls.extend(beside.tokens.iter().map(|_| None));
    head.tokens.extend(beside.tokens);
    head.form.push(0);
    head.form.extend(beside.form);
}

fn members(json: &str, rows: &Rows) -> Option<Members> {
    let bytes = json.as_bytes();
    let mut members = Members { history: 0..0, head: Found::default(), frame: Vec::new() };
    let mut keys: Vec<&str> = Vec::new();
    let mut at = space_end(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    at = space_end(bytes, at + 1);
    let mut kept = 0;
    loop {
        let (key, end) = string_at(json, at)?;
        if key.escaped || keys.contains(&key.raw) || keys.len() == MOST_MEMBERS {
            return None;
        }
        keys.push(key.raw);
        at = space_end(bytes, end);
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        at = space_end(bytes, at + 1);
        if key.raw == rows.history {
            let end = value_end(bytes, at, LEVELS)?;
            members.frame.extend_from_slice(bytes.get(kept..at)?);
            members.frame.push(0);
            members.history = at..end;
            (at, kept) = (end, end);
        } else {
            let before = members.head.tokens.len();
            at = match rows.beside(key.raw, json, at, &mut members.head) {
                Some(end) => end,
                None => value_end(bytes, at, LEVELS)?,
            };
            for token in members.head.tokens.get(before..)? {
                members.frame.extend_from_slice(bytes.get(kept..token.start)?);
                members.frame.push(0);
                kept = token.end;
            }
        }
        at = space_end(bytes, at);
        match bytes.get(at)? {
            b',' => at = space_end(bytes, at + 1),
            b'}' => break,
            _ => return None,
        }
    }
    members.frame.extend_from_slice(bytes.get(kept..)?);
    let is_whole = space_end(bytes, at + 1) == bytes.len();
    (is_whole && !members.history.is_empty()).then_some(members)
}

fn messages(json: &str, history: Range<usize>, rows: &Rows) -> Option<(Vec<Message>, Found)> {
    let bytes = json.as_bytes();
    let (mut messages, mut found) = (Vec::new(), Found::default());
    if bytes.get(history.start) != Some(&b'[') {
        return None;
    }
    let mut at = space_end(bytes, history.start + 1);
    loop {
        let (tokens, form) = (found.tokens.len(), found.form.len());
        let (is_answer, end) = match rows.message(json, at, &mut found) {
            Some((is_answer, end)) => (Some(is_answer), end),
            None => (None, value_end(bytes, at, LEVELS)?),
        };
        let (tokens, form) = (tokens..found.tokens.len(), form..found.form.len());
        messages.push(Message { span: at..end, is_answer, tokens, form });
        at = space_end(bytes, end);
        match bytes.get(at)? {
            b',' => at = space_end(bytes, at + 1),
            b']' => break,
            _ => return None,
        }
    }
    Some((messages, found))
}

/// Return the unit of some messages, `None` unless its calls and results belong to each other.
fn unit_of<'a>(
    json: &'a str,
    messages: &[Message],
    found: &Found,
    range: Range<usize>,
    ids: &mut HashSet<&'a str>,
) -> Option<Unit> {
    let mut unit = Unit { messages: range.clone(), ..Unit::default() };
    let mut calls: Vec<(&str, usize, bool)> = Vec::new();
    for message in messages.get(range)? {
        message.is_answer?;
        let mut answered = Vec::new();
        for token in found.tokens.get(message.tokens.clone())? {
            let place = unit.tokens.len();
            let mut call = None;
            match token.kind {
                Kind::Call => {
                    let id = token.inside(json);
                    if !ids.insert(id) || calls.len() == MOST_CALLS {
                        return None;
                    }
                    calls.push((id, place, false));
                }
                Kind::Result => {
                    let id = token.inside(json);
                    let number = calls.iter().position(|(known, _, _)| *known == id)?;
                    let (_, place, is_answered) = calls.get_mut(number)?;
                    if std::mem::replace(is_answered, true) {
                        return None;
                    }
                    call = Some(*place);
                    answered.push(u8::try_from(number).ok()?);
                }
                _ => {}
            }
            unit.tokens.push(*token);
            unit.calls.push(call);
        }
        unit.form.extend_from_slice(found.form.get(message.form.clone())?);
        // The order of the results among the calls.
        unit.form.push(u8::MAX);
        unit.form.append(&mut answered);
        unit.form.push(u8::MAX);
    }
    calls.iter().all(|(_, _, is_answered)| *is_answered).then_some(unit)
}
