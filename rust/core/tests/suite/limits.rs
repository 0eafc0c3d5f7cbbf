//! Every limit, in every dialect and markup: a stream that reaches one ends in one lawful error that names it, and keeps
//! earlier content.

use deltafold::contract::Payload;
use deltafold::decoder::Decoder;
use deltafold::fold::MessageAssembler;
use deltafold::limits::Limits;

use crate::support::oracles::streams::decode_lawfully;
use crate::support::{Owned, fixtures, fold, options, thinking};

type Set = fn(&mut Limits, usize);

const LIMITS: &[(&str, Set)] = &[
    ("event_bytes", |limits, bound| limits.event_bytes = bound * 40),
    ("depth", |limits, bound| limits.depth = bound),
    ("message_bytes", |limits, bound| limits.message_bytes = bound),
    ("parts", |limits, bound| limits.parts = bound),
    ("tool_calls", |limits, bound| limits.tool_calls = bound),
    ("warnings", |limits, bound| limits.warnings = bound),
    ("identifier_bytes", |limits, bound| limits.identifier_bytes = bound),
    ("provider_state_bytes", |limits, bound| limits.provider_state_bytes = bound * 10),
];

fn decoded(dialect: &str, body: &[u8], limits: Limits, chunk: usize) -> Vec<Owned> {
    let mut options = options(dialect);
    options.stream.limits = limits;
    let decoder = Decoder::new(options).expect("a dialect");
    // Debug builds check the laws inside too; this checks them from outside.
    decode_lawfully(decoder, body.chunks(chunk)).0
}

fn starts_with(whole: &MessageAssembler, part: &MessageAssembler) -> bool {
    let (text, thought) = (part.text(), thinking(part));
    // Half a surrogate pair, and half a tag of markup, come out where the stream ends.
    let common = |part: &str, whole: &str| {
        let same = part.chars().zip(whole.chars()).take_while(|(one, other)| one == other).count();
        let rest: String = part.chars().skip(same).collect();
        let rest = rest.trim_start();
        rest.is_empty() || rest.starts_with(['\u{fffd}', '<', '['])
    };
    common(&text, &whole.text()) && common(&thought, &thinking(whole))
}

#[test]
fn a_stream_that_reaches_any_limit_ends_in_one_lawful_error_that_names_it() {
    let mut reached: std::collections::BTreeMap<&str, std::collections::BTreeSet<String>> =
        std::collections::BTreeMap::new();
    for fixture in fixtures().iter().filter(|fixture| fixture.wire.len() < 16 << 10) {
        let unlimited = decoded(&fixture.dialect, &fixture.wire, Limits::default(), 1 << 20);
        let whole = fold(&unlimited);
        for (name, set) in LIMITS {
            for bound in [1, 2, 3, 5, 9, 17] {
                let mut limits = Limits::default();
                set(&mut limits, bound);
                let deltas = decoded(&fixture.dialect, &fixture.wire, limits, 1 << 20);
                let pieces = decoded(&fixture.dialect, &fixture.wire, limits, 7);
                assert_eq!(deltas, pieces, "{} {name} {bound}: chunking", fixture.name);
                let message = fold(&deltas);
                let ended = message.tool_calls().all(|(_, call)| call.ended);
                assert!(ended, "{} {name} {bound}: a call is open", fixture.name);
                let Payload::Error(failure) = &deltas.last().expect("a terminal").payload else {
                    continue;
                };
                let words = failure.message.as_deref().unwrap_or("");
                if words.starts_with(&format!("limit reached: {name} (")) {
                    reached.entry(name).or_default().insert(fixture.dialect.clone());
                    assert!(
                        starts_with(&whole, &message),
                        "{} {name} {bound}: what came before is not kept",
                        fixture.name
                    );
                }
            }
        }
    }
    for (name, _) in LIMITS {
        let dialects = reached.get(name).map_or(0, std::collections::BTreeSet::len);
        // Ollama has no list to warn of, and so on: each limit is met in most dialects.
        assert!(dialects >= 3, "{name} was reached in {dialects} dialects");
    }
}

#[test]
fn a_call_that_has_no_room_for_its_part_sends_no_arguments() {
    let call = |index: usize| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\
             \"function\":{{\"name\":\"f\",\"arguments\":\"{{}} \"}}}}]}}}}]}}\n\n"
        )
    };
    let body: String = (0..4).map(call).collect();
    let limits = Limits { parts: 2, ..Limits::default() };
    let deltas = decoded("openai-chat", body.as_bytes(), limits, 1 << 20);
    let message = fold(&deltas);
    assert_eq!(message.tool_calls().count(), 2);
    let Payload::Error(failure) = &deltas.last().expect("a terminal").payload else {
        panic!("{:?}", deltas.last());
    };
    assert_eq!(failure.message.as_deref(), Some("limit reached: parts (2)"));
}
