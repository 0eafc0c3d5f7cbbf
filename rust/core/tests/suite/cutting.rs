//! A stream that is cut off ends in exactly one terminal, keeps the received content, and invents nothing.

use crate::support::{decode, fold, options};
use deltafold::contract::DeltaKind;
use deltafold::decoder::Decoder;
use deltafold::fold::{FoldingOutput, MessageAssembler};

/// Places where each stream is cut.
const CUTS: usize = 50;

fn runnable(message: &MessageAssembler) -> Vec<(String, String, String)> {
    message
        .tool_calls()
        .filter(|(_, call)| call.ended && !call.incomplete)
        .filter(|(_, call)| {
            let args = if call.args.is_empty() { "{}" } else { &call.args };
            call.input_format.as_str() == "text"
                || serde_json::from_str::<serde_json::Value>(args)
                    .is_ok_and(|value| value.is_object())
        })
        .map(|(_, call)| (call.id.to_string(), call.name.to_string(), call.args.clone()))
        .collect()
}

fn is_prefix(part: &str, whole: &str) -> bool {
    whole.starts_with(part)
        || part.strip_suffix('\u{fffd}').is_some_and(|part| whole.starts_with(part))
}

/// The same where markup is looked for: half a tag was no tag, and comes out behind what both say.
fn is_prefix_and_half_a_tag(part: &str, whole: &str) -> bool {
    let common = part.char_indices().zip(whole.chars()).find(|((_, one), other)| one != other);
    let at = common.map_or(part.len().min(whole.len()), |((at, _), _)| at);
    let rest = part[at..].trim_start();
    rest.is_empty() || rest.starts_with(['<', '['])
}

fn check_cut(name: &str, dialect: &str, body: &[u8], at: usize, whole: &MessageAssembler) {
    let deltas = decode(dialect, &body[..at]);
    let terminals = deltas
        .iter()
        .filter(|delta| matches!(delta.payload.kind(), DeltaKind::Done | DeltaKind::Error))
        .count();
    assert_eq!(terminals, 1, "{name} cut at {at}");
    let message = fold(&deltas);
    let is_prefix = if dialect.contains('+') { is_prefix_and_half_a_tag } else { is_prefix };
    assert!(is_prefix(&message.text(), &whole.text()), "{name} cut at {at}: text");
    let thinking = crate::support::thinking(&message);
    assert!(is_prefix(&thinking, &crate::support::thinking(whole)), "{name} cut at {at}: thinking");
    let known = runnable(whole);
    for call in runnable(&message) {
        assert!(known.contains(&call), "{name} cut at {at}: {call:?} is not in the whole stream");
    }
    assert!(message.parts().len() <= whole.parts().len() + 1, "{name} cut at {at}: parts");
}

fn check(name: &str, dialect: &str, body: &[u8]) {
    let whole = fold(&decode(dialect, body));
    for number in 0..CUTS {
        check_cut(name, dialect, body, body.len() * number / CUTS, &whole);
    }
}

#[test]
fn every_recording_can_be_cut_off_anywhere() {
    for recording in crate::support::recordings() {
        check(&recording.id, &recording.dialect, &recording.body);
    }
}

/// The end of every event: of each line, and of each binary frame.
fn event_ends(body: &[u8]) -> Vec<usize> {
    if body.first() != Some(&0) {
        return memchr::memchr_iter(b'\n', body).map(|at| at + 1).collect();
    }
    let mut ends = Vec::new();
    let mut at = 0;
    while let Some(length) = body.get(at..at + 4) {
        let length = u32::from_be_bytes(length.try_into().expect("four bytes"));
        at += usize::try_from(length).expect("a small frame").max(4);
        ends.push(at.min(body.len()));
    }
    ends
}

/// Cut after any event, a stream has no runnable call that the whole stream has not.
fn check_calls_cut_at_every_event(name: &str, dialect: &str, body: &[u8]) {
    let whole = fold(&decode(dialect, body));
    let known = runnable(&whole);
    let mut decoder = Decoder::new(options(dialect)).expect("a dialect");
    let mut message = MessageAssembler::default();
    let mut fed = 0;
    for end in event_ends(body) {
        let mut sink = FoldingOutput::new(&mut message);
        decoder.feed(&body[fed..end], &mut sink);
        sink.finish().expect("lawful deltas");
        fed = end;
        if message.tool_calls().next().is_none() {
            continue;
        }
        let (mut decoder, mut message) = (decoder.clone(), message.clone());
        let mut sink = FoldingOutput::new(&mut message);
        decoder.close(&mut sink);
        sink.finish().expect("lawful deltas");
        for call in runnable(&message) {
            assert!(known.contains(&call), "{name} cut after {end}: {call:?} is not in the whole");
        }
    }
}

#[test]
fn a_recording_cut_after_any_event_has_no_new_runnable_call() {
    for recording in crate::support::recordings() {
        check_calls_cut_at_every_event(&recording.id, &recording.dialect, &recording.body);
    }
}

#[test]
fn every_fixture_can_be_cut_off_at_every_byte() {
    for fixture in crate::support::fixtures() {
        let whole = fold(&decode(&fixture.dialect, &fixture.wire));
        for at in 0..fixture.wire.len() {
            check_cut(&fixture.name, &fixture.dialect, &fixture.wire, at, &whole);
        }
    }
}
