//! Long names: a name that is sent once costs once, for any number of events that refer to it.
//!
//! Cost is counted in bytes asked of the allocator.

use crate::cost::TOTAL;
use crate::hostile::{ANTHROPIC, CHAT, block_start, chat, event, limited, reaches};
use crate::support::{decode_with, options};
use deltafold::contract::{DeltaBatch, Payload};
use deltafold::decoder::Decoder;
use deltafold::fold::{FoldingOutput, MessageAssembler};
use deltafold::limits::Limits;

/// Streams in which something long is named once and then spoken of in many short events.
fn repeating(what: &str, long: usize, events: usize) -> String {
    let name = "n".repeat(long);
    let ids = [0, 1].map(|index| format!("{name}{index}"));
    let call = |index: usize, members: &str| {
        chat(&format!("{{\"tool_calls\":[{{\"index\":{index},{members}}}]}}"))
    };
    let opening = |index: usize| {
        let members = "\"function\":{\"name\":\"f\",\"arguments\":\"\\\"\"}";
        call(index, &format!("\"id\":\"{}\",{members}", ids[index]))
    };
    let more = |index: usize| call(index, "\"function\":{\"arguments\":\"1\"}");
    let usage =
        |n: usize| event(&format!("{{\"choices\":[],\"usage\":{{\"completion_tokens\":{n}}}}}"));
    match what {
        "one long call id" => opening(0) + &more(0).repeat(events),
        "two long call ids by turns" => {
            opening(0) + &opening(1) + &(more(0) + &more(1)).repeat(events / 2)
        }
        "a long tool name" => {
            let function = format!("{{\"name\":\"{name}\",\"arguments\":\"\\\"\"}}");
            call(0, &format!("\"id\":\"c\",\"function\":{function}")) + &more(0).repeat(events)
        }
        "a long model name" => {
            event(&format!("{{\"model\":\"{name}\",\"choices\":[]}}"))
                + &chat("{\"content\":\"x\"}").repeat(events)
        }
        "usage after a long record" => {
            event(&format!("{{\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"{name}\":0}}}}"))
                + &(0..events).map(usage).collect::<String>()
        }
        "usage without counts after a long record" => {
            event(&format!("{{\"choices\":[],\"usage\":{{\"{name}\":0}}}}"))
                + &(0..events)
                    .map(|n| event(&format!("{{\"choices\":[],\"usage\":{{\"{n}\":0}}}}")))
                    .collect::<String>()
        }
        "a warning again and again" => "data: noise\n\n".repeat(events),
        "many warnings" => (0..events).map(|n| format!("{n}noise\n")).collect(),
        _ => panic!("{what}"),
    }
}

/// Bytes asked of the allocator to decode a body into one batch, into a batch an event, and into a message.
fn asked(body: &str) -> [i64; 3] {
    let ends = |body: &str| body.match_indices("\n\n").map(|(at, _)| at + 2).collect::<Vec<_>>();
    let limits = limited(|limits| limits.provider_state_bytes = 4 << 20);
    let decoder = || {
        let mut options = options(CHAT);
        options.stream.limits = limits;
        Decoder::new(options).unwrap()
    };
    let counted = |work: &dyn Fn()| {
        TOTAL.set(0);
        work();
        TOTAL.get()
    };
    let whole = counted(&|| {
        let (mut decoder, mut batch) = (decoder(), DeltaBatch::default());
        decoder.feed(body.as_bytes(), &mut batch);
        decoder.close(&mut batch);
    });
    let pieces = counted(&|| {
        let mut decoder = decoder();
        let mut batches = Vec::new();
        let mut start = 0;
        for end in ends(body) {
            let mut batch = DeltaBatch::default();
            decoder.feed(&body.as_bytes()[start..end], &mut batch);
            batches.push(batch);
            start = end;
        }
    });
    let folded = counted(&|| {
        let (mut decoder, mut message) = (decoder(), MessageAssembler::default());
        let mut sink = FoldingOutput::new(&mut message);
        decoder.feed(body.as_bytes(), &mut sink);
        decoder.close(&mut sink);
        sink.finish().unwrap();
    });
    [whole, pieces, folded]
}

#[test]
fn what_is_named_once_costs_once_however_long_it_is() {
    for what in [
        "one long call id",
        "two long call ids by turns",
        "a long tool name",
        "a long model name",
        "usage after a long record",
        "usage without counts after a long record",
        "a warning again and again",
        "many warnings",
    ] {
        for (long, events) in [(60 << 10, 1_000), (60 << 10, 4_000), (1 << 10, 4_000)] {
            let body = repeating(what, long, events);
            let bytes = i64::try_from(body.len()).unwrap();
            for (how, cost) in ["batch", "batches", "message"].into_iter().zip(asked(&body)) {
                // The limit of provider state, here 4 MiB, bounds a value that is merged repeatedly.
                let bound = 40 * bytes + 32 * (4 << 20);
                assert!(cost < bound, "{what}, {how}: {cost} bytes for {bytes} of {long}");
            }
        }
    }
}

#[test]
fn an_identifier_has_a_limit() {
    let long = "n".repeat(65 << 10);
    let named = |members: &str| chat(&format!("{{\"tool_calls\":[{{{members}}}]}}"));
    for (dialect, body) in [
        (CHAT, named(&format!("\"id\":\"{long}\",\"function\":{{\"name\":\"f\"}}"))),
        (CHAT, named(&format!("\"id\":\"c\",\"function\":{{\"name\":\"{long}\"}}"))),
        (
            ANTHROPIC,
            block_start(1, &format!("{{\"type\":\"tool_use\",\"id\":\"{long}\",\"name\":\"f\"}}")),
        ),
        (
            ANTHROPIC,
            block_start(1, &format!("{{\"type\":\"fallback\",\"to\":{{\"model\":\"{long}\"}}}}")),
        ),
    ] {
        reaches(dialect, Limits::default(), "identifier_bytes", &body);
    }
    for name in ["id", "model"] {
        let body = event(&format!("{{\"{name}\":\"{long}\",\"choices\":[]}}"));
        let deltas = decode_with(crate::support::decoder(CHAT), [body.as_bytes()]);
        let Payload::Error(failure) = &deltas.last().unwrap().payload else { panic!("{name}") };
        let words = failure.message.as_deref().unwrap();
        assert_eq!(words, "limit reached: identifier_bytes (65536)", "{name}");
    }
}
