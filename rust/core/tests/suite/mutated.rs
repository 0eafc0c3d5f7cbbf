//! The oracles of the fuzz targets, in a bounded run on damaged fixtures.
//!
//! Events are repeated before they are damaged, so that templates have been learned by then.

use std::sync::LazyLock;

use crate::support::Fixture;
use crate::support::oracles::{framing, partial_json, reader, streams};
use proptest::prelude::*;
use proptest::sample::Index;

static FIXTURES: LazyLock<Vec<Fixture>> = LazyLock::new(crate::support::fixtures);

/// Larger ones cost much and say the same.
const FEW_BYTES: usize = 8 << 10;

/// Bytes that damage writes: bytes with a meaning for one of the stages, and others.
const BYTES: &[u8] = b"{}[]\",:\\undtfr09-+.eE \n\r\t\x00\x1f\x80\xc3\xe2\xf0\xff<=xa";

/// A change of a body at a place.
#[derive(Clone, Debug)]
enum Change {
    Set(Index, u8),
    Insert(Index, u8),
    Remove(Index, usize),
    /// Inserts a copy of text from elsewhere in the body.
    Splice(Index, Index, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let byte = || prop::sample::select(BYTES);
    prop_oneof![
        4 => (any::<Index>(), byte()).prop_map(|(at, byte)| Change::Set(at, byte)),
        3 => (any::<Index>(), byte()).prop_map(|(at, byte)| Change::Insert(at, byte)),
        2 => (any::<Index>(), 1..12_usize).prop_map(|(at, count)| Change::Remove(at, count)),
        2 => (any::<Index>(), any::<Index>(), 1..40_usize)
            .prop_map(|(from, to, count)| Change::Splice(from, to, count)),
    ]
}

fn apply(body: &mut Vec<u8>, change: &Change) {
    let place = |at: &Index| at.index(body.len() + 1);
    match change {
        Change::Set(at, byte) => {
            let at = place(at);
            if let Some(old) = body.get_mut(at) {
                *old = *byte;
            }
        }
        Change::Insert(at, byte) => {
            let at = place(at);
            body.insert(at, *byte);
        }
        Change::Remove(at, count) => {
            let at = place(at);
            let end = (at + count).min(body.len());
            body.drain(at..end);
        }
        Change::Splice(from, to, count) => {
            let (from, to) = (place(from), place(to));
            let text = body[from..(from + count).min(body.len())].to_vec();
            body.splice(to..to, text);
        }
    }
}

fn events(body: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut rest = body;
    while let Some(at) = memchr::memmem::find(rest, b"\n\n") {
        let (event, tail) = rest.split_at(at + 2);
        found.push(event);
        rest = tail;
    }
    found.push(rest);
    found
}

/// A damaged fixture: one of its events is repeated, then bytes change.
fn damaged(fixture: &Fixture, repeated: Index, times: usize, changes: &[Change]) -> Vec<u8> {
    let events = events(&fixture.wire);
    let at = repeated.index(events.len());
    let mut body = events[..at].concat();
    body.extend(events[at].repeat(times));
    body.extend(events[at..].concat());
    for change in changes {
        apply(&mut body, change);
    }
    body
}

fn fixture() -> impl Strategy<Value = &'static Fixture> {
    any::<Index>()
        .prop_map(|at| at.get(&FIXTURES))
        .prop_filter("a large fixture", |fixture| fixture.wire.len() <= FEW_BYTES)
}

/// The JSON text of an event, where it has one.
fn json_of(event: &[u8]) -> Option<String> {
    let at = memchr::memchr(b'{', event)?;
    Some(String::from_utf8_lossy(event[at..].trim_ascii_end()).into_owned())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

    #[test]
    fn templates_agree_with_read(
        fixture in fixture(),
        repeated in any::<Index>(),
        times in 1..24_usize,
        changes in prop::collection::vec(change(), 0..8),
    ) {
        let body = damaged(fixture, repeated, times, &changes);
        streams::templates_agree(&fixture.name, &fixture.dialect, &body);
    }

    #[test]
    fn streams_are_lawful_in_any_chunking(
        fixture in fixture(),
        repeated in any::<Index>(),
        times in 1..8_usize,
        changes in prop::collection::vec(change(), 0..8),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        let body = damaged(fixture, repeated, times, &changes);
        streams::chunkings_agree(&fixture.dialect, &body, &cuts);
    }

    #[test]
    fn json_is_read_as_serde_json_reads_it(
        fixture in fixture(),
        at in any::<Index>(),
        changes in prop::collection::vec(change(), 0..4),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        let events = events(&fixture.wire);
        if let Some(text) = json_of(events[at.index(events.len())]) {
            let mut text = text.into_bytes();
            for change in &changes {
                apply(&mut text, change);
            }
            reader::agree(&String::from_utf8_lossy(&text));
            partial_json::cuts_agree(&text, &cuts);
        }
    }

    #[test]
    fn bodies_are_framed_as_the_specification_says(
        fixture in fixture(),
        repeated in any::<Index>(),
        changes in prop::collection::vec(change(), 0..8),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        let body = damaged(fixture, repeated, 1, &changes);
        framing::agree_with_the_specification(&String::from_utf8_lossy(&body), &cuts);
    }
}
