//! Hostile bodies in frames, lines and arrays: bounds are named, memory stays bounded, work stays linear, earlier content
//! is kept.
//!
//! Work is counted in bytes asked of the allocator and in deltas, never in seconds.

use crate::cost::cost;
use crate::support::binary::{chunk, event, header};
use crate::support::{decode, decode_with, fold, options};
use deltafold::contract::Payload;
use deltafold::decoder::Decoder;
use deltafold::limits::Limits;

const CONVERSE: &str = "bedrock-converse";
const INVOKE: &str = "bedrock-invoke";
const OLLAMA: &str = "ollama";
const CHAT: &str = "openai-chat";

fn start(index: impl std::fmt::Display, start: &str) -> Vec<u8> {
    event("contentBlockStart", &format!("{{\"contentBlockIndex\":{index},\"start\":{start}}}"))
}

fn delta(index: impl std::fmt::Display, delta: &str) -> Vec<u8> {
    event("contentBlockDelta", &format!("{{\"contentBlockIndex\":{index},\"delta\":{delta}}}"))
}

fn stop(index: impl std::fmt::Display) -> Vec<u8> {
    event("contentBlockStop", &format!("{{\"contentBlockIndex\":{index}}}"))
}

fn text(text: &str) -> Vec<u8> {
    delta(0, &format!("{{\"text\":\"{text}\"}}"))
}

fn line(members: &str) -> Vec<u8> {
    format!(
        "{{\"model\":\"m\",\"created_at\":\"2026-01-01T00:00:00Z\",{members},\"done\":false}}\n"
    )
    .into_bytes()
}

fn said(content: &str) -> Vec<u8> {
    line(&format!("\"message\":{{\"role\":\"assistant\",\"content\":\"{content}\"}}"))
}

fn generated(text: &str) -> Vec<u8> {
    chunk(&format!("{{\"generation\":\"{text}\",\"stop_reason\":null}}"))
}

#[test]
fn a_length_that_is_claimed_reserves_nothing() {
    let mut prelude = [(31_u32 << 20).to_be_bytes(), 0_u32.to_be_bytes()].concat();
    prelude.extend(crc32fast::hash(&prelude).to_be_bytes());
    let pieces = std::iter::once(text("before")).chain([prelude, vec![0; 100]]);
    let cost = cost(CONVERSE, Limits::default(), pieces);
    assert!(cost.peak < 1 << 14, "{cost:?}");
    assert_eq!(cost.failure.expect("an error").code.as_str(), "connection_lost");
}

#[test]
fn a_frame_of_16_mb_and_a_bomb_of_headers_cost_what_they_are() {
    let long = text(&"x".repeat(16 << 20));
    let size = i64::try_from(long.len()).unwrap();
    let pieces: Vec<Vec<u8>> = long.chunks(1 << 16).map(<[u8]>::to_vec).collect();
    let cost = self::cost(CONVERSE, Limits::default(), pieces.into_iter());
    assert_eq!(cost.text, 16 << 20);
    // A growing buffer doubles.
    assert!(cost.peak < 3 * size, "{cost:?}");
    assert!(cost.total < 5 * size, "{cost:?}");
    // Twenty thousand headers, all different, in the room that there is.
    let names = (0..20_000).map(|n: u32| [&[3, 0][..], &n.to_be_bytes()[2..], &[0]].concat());
    let mut block = header(":message-type", "event");
    block.extend(names.flatten());
    let body = [text("before"), crate::support::binary::frame(&block, b"{}")].concat();
    let cost = self::cost(CONVERSE, Limits::default(), std::iter::once(body));
    assert!(cost.total < 4 << 20, "{cost:?}");
    assert_eq!(cost.failure.expect("an error").code.as_str(), "connection_lost");
}

#[test]
fn lines_elements_and_frames_end_at_the_bound() {
    for (dialect, head) in [
        (OLLAMA, "{\"a\":\""),
        (OLLAMA, "keep-alive"),
        (CHAT, "[{\"a\":\""),
        (OLLAMA, "[{\"a\":1}, {\"a\":\""),
        (CONVERSE, "{\"output\":\""),
        (CHAT, "[{},12345"),
    ] {
        let filler = "7".repeat(1 << 16);
        let pieces = std::iter::once(head.to_owned()).chain((0..1_024).map(|_| filler.clone()));
        let cost = cost(dialect, Limits::default(), pieces);
        let words = cost.failure.expect("an error").message.unwrap();
        assert_eq!(&*words, "limit reached: event_bytes (33554432)", "{dialect} {head}");
        assert!(cost.peak < 100 << 20, "{dialect} {head}: {} bytes", cost.peak);
    }
}

#[test]
fn arrays_that_never_close_and_deep_ones_are_bounded() {
    let element = "{\"model\":\"m\",\"message\":{\"content\":\"x\"},\"done\":false}";
    let pieces = std::iter::once("[".to_owned())
        .chain((0..100).map(|_| format!("{element},\n").repeat(1_000)));
    let cost = cost(OLLAMA, Limits::default(), pieces);
    assert_eq!(cost.text, 100_000);
    assert!(cost.peak < 1 << 17, "{cost:?}");
    assert_eq!(cost.failure.expect("an error").code.as_str(), "connection_lost");
    let bomb = "[".repeat(1_000_000);
    for body in [format!("[{{\"a\":{bomb}"), format!("[{{}},{bomb}{}", "]".repeat(1_000_000))] {
        for dialect in [CHAT, OLLAMA, CONVERSE, INVOKE] {
            let deltas = decode(dialect, body.as_bytes());
            assert!(matches!(deltas.last().unwrap().payload, Payload::Error(_)), "{dialect}");
        }
    }
}

#[test]
fn values_in_one_line_without_end_are_linear() {
    let object = "{\"model\":\"m\",\"message\":{\"content\":\"x\"},\"done\":false}";
    let [once, twice] = [4_000, 8_000].map(|count| {
        let line = (0..count / 100).map(|_| object.repeat(100));
        cost(OLLAMA, Limits::default(), line.chain(["\n".to_owned()]))
    });
    assert_eq!((once.text, twice.text), (4_000, 8_000));
    assert!(twice.total < once.total * 5 / 2, "{once:?} {twice:?}");
}

#[test]
fn work_is_linear_in_the_events() {
    type Make = fn(usize) -> Vec<u8>;
    let rows: &[(&str, &str, Make)] = &[
        (CONVERSE, "text", |_| text("x")),
        (CONVERSE, "one character of input", |n| {
            if n == 0 {
                start(0, "{\"toolUse\":{\"toolUseId\":\"t\",\"name\":\"f\"}}")
            } else {
                delta(0, "{\"toolUse\":{\"input\":\"7\"}}")
            }
        }),
        (CONVERSE, "a block each", |n| [delta(n, "{\"text\":\"x\"}"), stop(n)].concat()),
        (CONVERSE, "blocks of one index", |_| {
            start(0, "{\"toolUse\":{\"toolUseId\":\"t\",\"name\":\"f\"}}")
        }),
        (CONVERSE, "results", |_| delta(0, "{\"toolResult\":[{\"text\":\"x\"}]}")),
        (CONVERSE, "input of nobody", |_| delta(0, "{\"toolUse\":{\"input\":\"7\"}}")),
        (CONVERSE, "an image", |_| delta(0, "{\"image\":{\"source\":{\"bytes\":\"AAAA\"}}}")),
        (CONVERSE, "padding", |n| {
            delta(0, &format!("{{\"text\":\"x\"}},\"p\":\"{}\"", "p".repeat(n % 60)))
        }),
        (INVOKE, "text", |_| generated("x")),
        (OLLAMA, "text", |_| said("x")),
        (OLLAMA, "thinking and text", |n| {
            line(&format!("\"message\":{{\"{}\":\"x\"}}", ["thinking", "content"][n % 2]))
        }),
        (OLLAMA, "calls", |_| {
            line("\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}]}")
        }),
    ];
    for (dialect, name, make) in rows {
        let [once, twice] =
            [4_000, 8_000].map(|count| cost(dialect, Limits::default(), (0..count).map(make)));
        assert!(
            twice.total <= once.total * 5 / 2 + (1 << 14),
            "{dialect} {name}: {once:?} {twice:?}"
        );
        assert!(twice.deltas <= once.deltas * 2 + 4, "{dialect} {name}");
    }
}

#[test]
fn a_hundred_thousand_frames_leave_nothing_behind() {
    type Make = fn(usize) -> Vec<u8>;
    let rows: &[(&str, &str, Make)] = &[
        (CONVERSE, "text", |_| text("x")),
        (CONVERSE, "events that are not known", |_| event("new", "{}")),
        (CONVERSE, "empty payloads", |_| event("contentBlockDelta", "")),
        (CONVERSE, "stops", stop),
        (CONVERSE, "usage", |n| {
            event(
                "metadata",
                &format!("{{\"usage\":{{\"inputTokens\":{n},\"outputTokens\":{n}}}}}"),
            )
        }),
        (CONVERSE, "reasons", |_| event("messageStop", "{\"stopReason\":\"end_turn\"}")),
        (INVOKE, "text", |_| generated("x")),
        (INVOKE, "models that are not known", |_| chunk("{\"a\":1}")),
        (INVOKE, "metrics", |n| {
            chunk(&format!(
                "{{\"outputText\":\"\",\"amazon-bedrock-invocationMetrics\":{{\"inputTokenCount\":{n}}}}}"
            ))
        }),
        (OLLAMA, "text", |_| said("x")),
        (OLLAMA, "noise", |_| b"keep-alive\n".to_vec()),
        (OLLAMA, "blank lines", |n| if n == 0 { said("x") } else { b"\r\n".to_vec() }),
        (OLLAMA, "nothing", |_| b"{}\n".to_vec()),
    ];
    for (dialect, name, make) in rows {
        let feeds = (0..100)
            .map(|feed| (0..1_000).flat_map(|n| make(feed * 1_000 + n)).collect::<Vec<u8>>());
        let cost = cost(dialect, Limits::default(), feeds);
        assert!(cost.peak < 1 << 17, "{dialect} {name}: {cost:?}");
        assert!(cost.deltas <= 100_004, "{dialect} {name}: {cost:?}");
    }
}

#[test]
fn what_grows_with_the_events_reaches_a_limit() {
    type Make = fn(usize) -> Vec<u8>;
    const LONG: usize = 10_000;
    let rows: &[(&str, &str, Make)] = &[
        (CONVERSE, "parts", |n| [delta(n, "{\"text\":\"\"}"), stop(n)].concat()),
        (CONVERSE, "parts", |n| delta(n, "{\"text\":\"\"}")),
        (CONVERSE, "tool_calls", |n| start(n, "{\"toolUse\":{}}")),
        (CONVERSE, "message_bytes", |_| text(&"x".repeat(LONG))),
        (CONVERSE, "message_bytes", |_| {
            delta(0, &format!("{{\"reasoningContent\":{{\"text\":\"{}\"}}}}", "x".repeat(LONG)))
        }),
        (CONVERSE, "provider_state_bytes", |_| {
            delta(
                0,
                &format!("{{\"reasoningContent\":{{\"signature\":\"{}\"}}}}", "x".repeat(LONG)),
            )
        }),
        (CONVERSE, "provider_state_bytes", |_| {
            delta(
                0,
                &format!(
                    "{{\"reasoningContent\":{{\"redactedContent\":\"{}\"}}}}",
                    "x".repeat(LONG)
                ),
            )
        }),
        (CONVERSE, "provider_state_bytes", |n| {
            start(n, &format!("{{\"new\":{{\"a\":\"{}\"}}}}", "x".repeat(LONG)))
        }),
        (CONVERSE, "provider_state_bytes", |_| {
            delta(0, &format!("{{\"toolUse\":{{\"input\":\"{}\"}}}}", "x".repeat(LONG)))
        }),
        (CONVERSE, "provider_state_bytes", |_| {
            delta(0, &format!("{{\"toolResult\":[{{\"text\":\"{}\"}}]}}", "x".repeat(LONG)))
        }),
        (CONVERSE, "provider_state_bytes", |_| {
            delta(0, &format!("{{\"citation\":{{\"a\":\"{}\"}}}}", "x".repeat(LONG)))
        }),
        (CONVERSE, "provider_state_bytes", |_| {
            delta(
                0,
                &format!("{{\"image\":{{\"source\":{{\"bytes\":\"{}\"}}}}}}", "A".repeat(LONG)),
            )
        }),
        (CONVERSE, "provider_state_bytes", |n| {
            event(
                "metadata",
                &format!("{{\"usage\":{{\"outputTokens\":{n},\"{n}\":\"{}\"}}}}", "x".repeat(LONG)),
            )
        }),
        (CONVERSE, "warnings", |n| event(&format!("new-{n}"), "{}")),
        (CONVERSE, "warnings", |n| delta(0, &format!("{{\"new-{n}\":1}}"))),
        (INVOKE, "message_bytes", |_| generated(&"x".repeat(LONG))),
        (INVOKE, "provider_state_bytes", |_| {
            chunk(&format!(
                "{{\"outputText\":\"\",\"amazon-bedrock-invocationMetrics\":{{\"inputTokenCount\":1,\"a\":\"{}\"}}}}",
                "x".repeat(20_000)
            ))
        }),
        (OLLAMA, "message_bytes", |_| said(&"x".repeat(LONG))),
        (OLLAMA, "tool_calls", |_| line("\"message\":{\"tool_calls\":[{}]}")),
        (OLLAMA, "parts", |n| {
            line(&format!("\"message\":{{\"{}\":\"x\"}}", ["thinking", "content"][n % 2]))
        }),
    ];
    let limits = Limits {
        message_bytes: 4 << 20,
        provider_state_bytes: 4 << 20,
        parts: 1_000,
        tool_calls: 500,
        ..Limits::default()
    };
    for (dialect, limit, make) in rows {
        let cost = cost(dialect, limits, (0..10_000).map(make));
        let words = cost.failure.as_ref().and_then(|failure| failure.message.clone());
        let words = words.unwrap_or_default();
        assert!(
            words.starts_with(&format!("limit reached: {limit} (")),
            "{dialect} {limit}: {words}"
        );
        assert!(cost.peak < 24 << 20, "{dialect} {limit}: {cost:?}");
    }
}

#[test]
fn what_came_before_a_limit_stays_and_nothing_follows_it() {
    let mut options = options(CONVERSE);
    options.stream.limits.event_bytes = 400;
    let body = [text("before"), text(&"x".repeat(400)), text("after")].concat();
    for size in [1, 13, body.len()] {
        let deltas = decode_with(Decoder::new(options.clone()).unwrap(), body.chunks(size));
        assert_eq!(fold(&deltas).text(), "before");
        let last = &deltas.last().unwrap().payload;
        assert!(
            matches!(last, Payload::Error(failure) if failure.message.as_deref() == Some("limit reached: event_bytes (400)")),
            "{last:?}"
        );
    }
}

#[test]
fn a_name_of_any_length_leaves_only_its_beginning_in_the_warning() {
    let long = "x".repeat(60_000);
    let typed = |member: &str| format!("data: {{\"{member}\":\"{long}\"}}\n\n").into_bytes();
    for (dialect, body) in [
        (CONVERSE, event(&long, "{}")),
        (CONVERSE, delta(0, &format!("{{\"{long}\":1}}"))),
        (INVOKE, event(&long, "{}")),
        ("anthropic-messages", typed("type")),
        ("openai-responses", typed("type")),
        ("cohere-chat", typed("type")),
        ("gemini-interactions", typed("event_type")),
    ] {
        let message = fold(&decode(dialect, &body));
        let warnings = message.warnings().unwrap_or_default();
        assert!(warnings.contains("unknown"), "{dialect}: {warnings}");
        assert!(warnings.len() < 500, "{dialect}: {} bytes of warnings", warnings.len());
    }
}
