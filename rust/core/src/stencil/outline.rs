//! Outline: a request as the tokens of its plain messages, in rounds, and everything else as it is.
//!
//! In: the JSON of a request.  Out: its rounds, and what a stencil is found by.
//!
//! Laws: a round begins with an answer of the model that follows a message of the user or a result, and ends before the next
//! round.  Each of its calls has one result in it, and no two calls have the same id.  The first messages and the last round
//! are in no stretch of rounds, because rules treat them differently, and neither is a message beside one that is not plain.

use std::collections::HashSet;
use std::ops::Range;

use super::rows::{Found, Rows};
use super::string::string_at;
use super::token::{Kind, Token};
use crate::json::{space_end, value_end};

/// Levels that a request may nest, below the bound of any reader.
const LEVELS: usize = 200;

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
    pub(super) history: Range<usize>,
    /// Places of the messages.
    pub(super) spans: Vec<Range<usize>>,
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
        let first = starts.first().copied().unwrap_or(all);
        let head = unit(0..first);
        let mut rounds = Vec::with_capacity(starts.len());
        for pair in starts.windows(2) {
            rounds.push(unit(*pair.first()?..*pair.last()?));
        }
        let tail = starts.last().map_or_else(|| Some(Unit::default()), |start| unit(*start..all));
        let spans = messages.iter().map(|message| message.span.clone()).collect();
        let history = members.history;
        // Rules treat an answer at the beginning or at the end in their own way.
        let is_said = is_answer(0) == Some(false) && is_answer(all - 1) == Some(false);
        match (head, tail) {
            (Some(mut head), Some(tail)) if is_said && rounds.iter().all(Option::is_some) => {
                join(&mut head, members.head);
                let key = key_of(members.frame, &[&head.form, &tail.form], rounds.is_empty());
                let rounds: Vec<Unit> = rounds.into_iter().flatten().collect();
                let between = (!rounds.is_empty()).then_some(Part::Rounds(rounds));
                let parts = std::iter::once(Part::Edge(head)).chain(between);
                let parts = parts.chain(std::iter::once(Part::Edge(tail))).collect();
                Some(Self { history, spans, parts, is_whole: true, key })
            }
            _ => {
                let key = key_of(members.frame, &[], false);
                let parts = stretches(rounds, all, |place| {
                    let message = messages.get(place);
                    let tokens = message.and_then(|one| found.tokens.get(one.tokens.clone()));
                    tokens.unwrap_or(&[]).iter().any(|token| token.kind == Kind::Result)
                })?;
                Some(Self { history, spans, parts, is_whole: false, key })
            }
        }
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

    /// Return the places of the messages that begin the rounds of a request whose messages are all plain, the last round included.
    pub fn round_starts(&self) -> Vec<usize> {
        let [Part::Edge(_), Part::Rounds(rounds), Part::Edge(last)] = self.parts.as_slice() else {
            return Vec::new();
        };
        rounds.iter().chain([last]).map(|round| round.messages.start).collect()
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
