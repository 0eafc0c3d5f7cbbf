//! Sample: a short request of the same kind as another one, with marks in the places of its tokens.
//!
//! In: an outline, and the forms of rounds that are known.  Out: the JSON of a request for the rules.
//!
//! Law: it has the first messages and the last round of a request whose messages are all plain, each message that is not plain
//! with its neighbours as they are, and one round of each form that is not known, where the first of them stood.

use std::ops::Range;

use super::marks::Marks;
use super::outline::{Outline, Part, Unit};

/// Most forms of rounds that one sample has; those of a request with more need another sample.
const MOST_FORMS: usize = 16;

/// Most messages of a sample: the places of marks and of notes are compared with each other.
const MOST_MESSAGES: usize = 4_000;

/// Forms of rounds that need no sample any more.
pub trait KnownForms {
    /// Return whether a round of a part has a known form.
    fn has_round(&self, part: usize, form: &[u8]) -> bool;
}

impl Outline {
    /// Return whether a stencil has all forms of the request.
    pub fn is_covered(&self, stencil: &dyn KnownForms) -> bool {
        self.parts.iter().enumerate().all(|(number, part)| match part {
            Part::Rounds(rounds) => lacking(rounds, Some(stencil), number).is_empty(),
            _ => true,
        })
    }

    /// Return the units of a sample, each with the number of its part.
    pub(super) fn sampled(&self, stencil: Option<&dyn KnownForms>) -> Vec<(usize, &Unit)> {
        let mut units = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            match part {
                Part::Edge(unit) => units.push((number, unit)),
                Part::Rounds(rounds) => {
                    let of_part = sampled(rounds, stencil, number);
                    units.extend(of_part.into_iter().map(|unit| (number, unit)));
                }
                Part::Raw(_) => {}
            }
        }
        units
    }

    /// Return a short request of the same kind with marks for all tokens; `None` if it would have too many messages.
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
                    for unit in sampled(rounds, stencil, number) {
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

/// Return one round of each of the first forms that a stencil lacks.
fn lacking<'a>(rounds: &'a [Unit], stencil: Option<&dyn KnownForms>, part: usize) -> Vec<&'a Unit> {
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
            lacking.push(round);
            if lacking.len() == MOST_FORMS {
                break;
            }
        }
    }
    lacking
}

/// Return the rounds of a part that a sample has: a stencil is cut around them, so that there is at least one.
fn sampled<'a>(rounds: &'a [Unit], stencil: Option<&dyn KnownForms>, part: usize) -> Vec<&'a Unit> {
    let lacking = lacking(rounds, stencil, part);
    if lacking.is_empty() { rounds.first().into_iter().collect() } else { lacking }
}
