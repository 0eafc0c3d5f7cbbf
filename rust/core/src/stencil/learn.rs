//! Stencils: translated samples, cut at their marks.
//!
//! In: an outline, and the translation of its sample.  Out: a stencil, or the translation of the request.
//!
//! Laws: each text and each piece of arguments occurs once in the translation, and each token occurs whole.  The rounds are
//! items of one list, next to each other, each with marks of its own alone.

use std::collections::HashMap;
use std::ops::Range;

use super::marks::{Form, marks_in};
use super::object::write_compact;
use super::outline::{Outline, Part, Unit};
use super::sample::KnownForms;
use super::string::string_at;
use super::token::{Kind, Token};
use crate::json::{space_end, value_end, write_string};

/// A piece of a translation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Fixed(String),
    /// Place of a token in its unit, and its form.
    Token(usize, Form),
}

/// A stretch of a translation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// What stands between rounds, with the tokens of edges: each piece with the number of its token's part.
    Fixed(Vec<(usize, Piece)>),
    /// Rounds by their form, and the number of their part.
    Rounds(usize, HashMap<Vec<u8>, Vec<Piece>>),
}

/// A translation without its texts.
#[derive(Clone, Debug)]
pub struct Stencil {
    segments: Vec<Segment>,
}

/// A mark with its place in the sample.
#[derive(Clone, Copy, Debug)]
struct Placed {
    unit: usize,
    part: usize,
    token: usize,
    start: usize,
    end: usize,
    form: Form,
}

const LEVELS: usize = 200;

impl Stencil {
    /// Learn from the translation of a sample that `outline` made for `known`; `None` if no stencil follows from it.
    pub fn learn(
        outline: &Outline,
        known: Option<&Self>,
        translated: &str,
        mark: &str,
    ) -> Option<Self> {
        let units = outline.sampled(known.map(|known| known as &dyn KnownForms));
        let placed = placed(&units, translated, mark)?;
        let mut segments = Vec::new();
        let mut at = 0;
        for (number, part) in outline.parts.iter().enumerate() {
            if !matches!(part, Part::Rounds(_)) {
                continue;
            }
            let of_part = || units.iter().enumerate().filter(|(_, (part, _))| *part == number);
            let (span, mut rounds) = rounds(translated, of_part(), &placed)?;
            if placed.iter().any(|one| one.part != number && span.contains(&one.start)) {
                return None;
            }
            segments.push(fixed(translated, at..span.start, &placed)?);
            at = span.end;
            for (form, pieces) in known.and_then(|known| known.rounds(number)).into_iter().flatten()
            {
                rounds.entry(form.clone()).or_insert_with(|| pieces.clone());
            }
            segments.push(Segment::Rounds(number, rounds));
        }
        segments.push(fixed(translated, at..translated.len(), &placed)?);
        let made = Self { segments };
        let agrees = known.is_none_or(|known| made.fixed_segments().eq(known.fixed_segments()));
        agrees.then_some(made)
    }

    fn fixed_segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| matches!(segment, Segment::Fixed(_)))
    }

    fn rounds(&self, part: usize) -> Option<&HashMap<Vec<u8>, Vec<Piece>>> {
        self.segments.iter().find_map(|segment| match segment {
            Segment::Rounds(number, rounds) if *number == part => Some(rounds),
            _ => None,
        })
    }

    /// Return the forms of rounds of a part that `other` writes and this one does not know; `None` if both know one and write it
    /// in different ways.
    pub fn lacking<'a>(&self, other: &'a Self, part: usize) -> Option<Vec<&'a [u8]>> {
        let own = self.rounds(part)?;
        let mut lacking = Vec::new();
        for (form, pieces) in other.rounds(part)? {
            match own.get(form) {
                None => lacking.push(form.as_slice()),
                Some(known) if known == pieces => {}
                Some(_) => return None,
            }
        }
        Some(lacking)
    }

    /// Return the size in bytes, about.
    pub fn size(&self) -> usize {
        let of = |piece: &Piece| match piece {
            Piece::Fixed(text) => text.len() + PIECE_BYTES,
            Piece::Token(..) => PIECE_BYTES,
        };
        let of_segment = |segment: &Segment| match segment {
            Segment::Fixed(pieces) => pieces.iter().map(|(_, piece)| of(piece)).sum::<usize>(),
            Segment::Rounds(_, rounds) => rounds
                .iter()
                .map(|(form, pieces)| form.len() + pieces.iter().map(of).sum::<usize>())
                .sum(),
        };
        self.segments.iter().map(of_segment).sum()
    }

    /// Return the translation of a request, `None` if the stencil lacks one of its forms, and the place in it of the rounds of the
    /// first stretch, without its last round.
    pub fn fill(&self, outline: &Outline, json: &str) -> Option<(String, Range<usize>)> {
        let mut out = String::with_capacity(json.len() + json.len() / 8);
        let mut first_rounds = None;
        for segment in &self.segments {
            match segment {
                Segment::Fixed(pieces) => {
                    for (part, piece) in pieces {
                        let unit = match outline.parts.get(*part) {
                            Some(Part::Edge(unit)) => Some(unit),
                            _ => None,
                        };
                        fill_piece(&mut out, piece, unit, json)?;
                    }
                }
                Segment::Rounds(part, forms) => {
                    let Some(Part::Rounds(rounds)) = outline.parts.get(*part) else {
                        return None;
                    };
                    let start = out.len();
                    let mut last = start;
                    for (number, round) in rounds.iter().enumerate() {
                        if number > 0 {
                            out.push(',');
                            last = out.len();
                        }
                        for piece in forms.get(&round.form)? {
                            fill_piece(&mut out, piece, Some(round), json)?;
                        }
                    }
                    first_rounds.get_or_insert(start..last);
                }
            }
        }
        Some((out, first_rounds.unwrap_or(0..0)))
    }
}

impl KnownForms for Stencil {
    fn has_round(&self, part: usize, form: &[u8]) -> bool {
        self.rounds(part).is_some_and(|rounds| rounds.contains_key(form))
    }
}

const PIECE_BYTES: usize = size_of::<Piece>();

fn fill_piece(out: &mut String, piece: &Piece, unit: Option<&Unit>, json: &str) -> Option<()> {
    match piece {
        Piece::Fixed(text) => out.push_str(text),
        Piece::Token(place, form) => fill_token(out, *unit?.tokens.get(*place)?, *form, json)?,
    }
    Some(())
}

fn fill_token(out: &mut String, token: Token, form: Form, json: &str) -> Option<()> {
    match (token.kind, form) {
        (Kind::ArgumentText, Form::ArgumentObject) => {
            let (text, _) = string_at(json, token.start)?;
            write_compact(out, &text.unescaped());
        }
        (Kind::ArgumentObject, Form::ArgumentObject) => write_compact(out, token.of(json)),
        (Kind::ArgumentObject, Form::ArgumentText) => {
            let mut text = String::new();
            write_compact(&mut text, token.of(json));
            write_string(out, &text);
        }
        _ => out.push_str(token.of(json)),
    }
    Some(())
}

/// Return the marks of a translation with their places in the sample, `None` if one has been changed, lost or repeated.
fn placed(units: &[(usize, &Unit)], translated: &str, mark: &str) -> Option<Vec<Placed>> {
    let mut numbers: Vec<(usize, usize, usize, Kind)> = Vec::new();
    for (number, (part, unit)) in units.iter().enumerate() {
        let tokens = unit.tokens.iter().enumerate();
        numbers.extend(tokens.map(|(place, token)| (number, *part, place, token.kind)));
    }
    let mut times = vec![0_usize; numbers.len()];
    let mut found = Vec::new();
    for one in marks_in(translated, mark)? {
        let (unit, part, token, kind) = *numbers.get(one.number)?;
        *times.get_mut(one.number)? += 1;
        let (start, end, form) = one.token(translated, kind)?;
        found.push(Placed { unit, part, token, start, end, form });
    }
    let is_whole = numbers.iter().zip(times).all(|((.., kind), times)| match kind {
        Kind::Text | Kind::ArgumentText | Kind::ArgumentObject => times == 1,
        // The marks of results are those of their calls; a protocol may tell neither ids nor names.
        Kind::Call | Kind::Name | Kind::Result => true,
        Kind::Optional => times <= 1,
    });
    is_whole.then_some(found)
}

fn pieces<'a>(
    json: &str,
    range: Range<usize>,
    placed: impl Iterator<Item = &'a Placed>,
) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut at = range.start;
    for one in placed.filter(|one| range.contains(&one.start)) {
        pieces.push(Piece::Fixed(json.get(at..one.start)?.to_owned()));
        pieces.push(Piece::Token(one.token, one.form));
        at = one.end;
    }
    pieces.push(Piece::Fixed(json.get(at..range.end)?.to_owned()));
    Some(pieces)
}

fn fixed(json: &str, range: Range<usize>, placed: &[Placed]) -> Option<Segment> {
    let of_range = || placed.iter().filter(|one| range.contains(&one.start));
    let mut parts = of_range().map(|one| one.part);
    let mut made = Vec::new();
    for piece in pieces(json, range.clone(), of_range())? {
        let part = if matches!(piece, Piece::Token(..)) { parts.next()? } else { 0 };
        made.push((part, piece));
    }
    Some(Segment::Fixed(made))
}

/// Pieces of the rounds of one part by their form, and the place of all in the translation.
type OfPart = (Range<usize>, HashMap<Vec<u8>, Vec<Piece>>);

/// Return the rounds of a part: neighbours in one list, with nothing between them.
fn rounds<'a>(
    json: &str,
    units: impl Iterator<Item = (usize, &'a (usize, &'a Unit))>,
    placed: &[Placed],
) -> Option<OfPart> {
    let mut made = HashMap::new();
    let mut whole: Option<Range<usize>> = None;
    let mut list: Vec<Range<usize>> = Vec::new();
    for (number, (_, unit)) in units {
        let own = || placed.iter().filter(|one| one.unit == number);
        if list.is_empty() {
            list = list_around(json, own().next()?.start)?;
        }
        let items = items_of(&list, own())?;
        let span = list.get(items.start)?.start..list.get(items.end - 1)?.end;
        if placed.iter().any(|one| one.unit != number && span.contains(&one.start)) {
            return None;
        }
        whole = match whole {
            None => Some(span.clone()),
            Some(before) if json.get(before.end..span.start)? == "," => {
                Some(before.start..span.end)
            }
            Some(_) => return None,
        };
        made.insert(unit.form.clone(), pieces(json, span, own())?);
    }
    Some((whole?, made))
}

/// Return the places of the items of the list, a member of the outermost object, that is around `at`.
fn list_around(json: &str, at: usize) -> Option<Vec<Range<usize>>> {
    let bytes = json.as_bytes();
    let mut place = space_end(bytes, json.find('{')? + 1);
    loop {
        let (_, end) = string_at(json, place)?;
        place = space_end(bytes, end);
        let start = space_end(bytes, place + 1);
        let end = value_end(bytes, start, LEVELS)?;
        if start < at && at < end {
            return (bytes.get(start) == Some(&b'[')).then(|| items(json, start)).flatten();
        }
        place = space_end(bytes, end);
        if bytes.get(place) != Some(&b',') {
            return None;
        }
        place = space_end(bytes, place + 1);
    }
}

fn items(json: &str, start: usize) -> Option<Vec<Range<usize>>> {
    let bytes = json.as_bytes();
    let mut items = Vec::new();
    let mut at = space_end(bytes, start + 1);
    loop {
        let end = value_end(bytes, at, LEVELS)?;
        items.push(at..end);
        at = space_end(bytes, end);
        match bytes.get(at)? {
            b',' => at = space_end(bytes, at + 1),
            _ => return Some(items),
        }
    }
}

/// Return the items that have the marks of a unit: all from the first to the last.
fn items_of<'a>(
    items: &[Range<usize>],
    mut placed: impl Iterator<Item = &'a Placed>,
) -> Option<Range<usize>> {
    let mut own: Option<Range<usize>> = None;
    placed.try_for_each(|one| {
        let place = items.iter().position(|item| item.contains(&one.start))?;
        own = Some(match own.take() {
            None => place..place + 1,
            Some(range) => range.start.min(place)..range.end.max(place + 1),
        });
        Some(())
    })?;
    own
}
