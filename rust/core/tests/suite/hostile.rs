//! Hostile bodies: every bound is reached and named, memory stays bounded, work stays linear, earlier content is kept.
//!
//! Work is counted in bytes asked of the allocator and in deltas, never in seconds.

use std::cell::Cell;

use crate::cost::{LIVE, cost};
use crate::support::{Each, decode_with, fold, options};
use deltafold::contract::{Delta, DeltaKind, Payload};
use deltafold::decoder::Decoder;
use deltafold::fold::{MessageAssembler, Part};
use deltafold::limits::Limits;

pub(crate) const ANTHROPIC: &str = "anthropic-messages";
pub(crate) const CHAT: &str = "openai-chat";
const BOTH: [&str; 2] = [ANTHROPIC, CHAT];

pub(crate) fn event(json: &str) -> String {
    format!("data: {json}\n\n")
}

pub(crate) fn chat(delta: &str) -> String {
    event(&format!(
        "{{\"id\":\"c\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}"
    ))
}

pub(crate) fn block_start(index: impl std::fmt::Display, block: &str) -> String {
    event(&format!(
        "{{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{block}}}"
    ))
}

fn block_delta(index: impl std::fmt::Display, delta: &str) -> String {
    event(&format!("{{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{delta}}}"))
}

fn block_stop(index: impl std::fmt::Display) -> String {
    event(&format!("{{\"type\":\"content_block_stop\",\"index\":{index}}}"))
}

/// An event that says "before" in either dialect.
fn before(dialect: &str) -> String {
    if dialect == CHAT {
        chat("{\"content\":\"before\"}")
    } else {
        block_start(0, "{\"type\":\"text\",\"text\":\"before\"}") + &block_stop(0)
    }
}

pub(crate) fn limited(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// The body ends in the named limit, earlier content is kept, nothing is open.
pub(crate) fn reaches(dialect: &str, limits: Limits, limit: &str, body: &str) {
    let body = before(dialect) + body;
    let mut options = options(dialect);
    options.stream.limits = limits;
    let decoder = Decoder::new(options).unwrap();
    for pieces in [vec![body.as_bytes()], body.as_bytes().chunks(7).collect()] {
        let deltas = decode_with(decoder.clone(), pieces);
        let Payload::Error(failure) = &deltas.last().unwrap().payload else {
            panic!("{dialect} {limit}: {:?}", deltas.last());
        };
        let words = failure.message.as_deref().unwrap();
        assert_eq!(failure.code.as_str(), "protocol_error", "{dialect} {limit}: {words}");
        assert_eq!(failure.retryable, Some(false));
        assert!(
            words.starts_with(&format!("limit reached: {limit} (")),
            "{dialect} {limit}: {words}"
        );
        let message = fold(&deltas);
        assert!(message.text().starts_with("before"), "{dialect} {limit}");
        assert!(message.tool_calls().all(|(_, call)| call.ended), "{dialect} {limit}");
    }
}

#[test]
fn every_limit_is_reached_in_both_dialects_and_named() {
    let long = "x".repeat(600);
    let nested = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    for dialect in BOTH {
        for body in [
            event(&format!("{{\"a\":\"{long}\"}}")),
            format!(": {long}\n"),
            format!("event: {long}\n"),
            format!("data: {long}"),
            format!("data: {}\n", "x\ndata: ".repeat(400)),
            format!("[\n{}", format!("\"{}\",\n", "x".repeat(60)).repeat(20)),
        ] {
            reaches(dialect, limited(|limits| limits.event_bytes = 500), "event_bytes", &body);
        }
        let limits = limited(|limits| limits.depth = 32);
        reaches(dialect, limits, "depth", &event(&format!("{{\"a\":{nested}}}")));
        reaches(dialect, limits, "depth", &event(&nested));
        reaches(dialect, limits, "depth", &event(&format!("{{\ndata: \"a\":{nested}}}")));
        let names = (0..20).map(|n| format!("event: e{n}\ndata: {{\"type\":\"e{n}\"}}\n\n"));
        if dialect == ANTHROPIC {
            reaches(
                dialect,
                limited(|limits| limits.warnings = 10),
                "warnings",
                &names.collect::<String>(),
            );
        }
    }
    // Warnings of Chat are few and all different ones have words of ours.
    reaches(CHAT, limited(|limits| limits.warnings = 0), "warnings", "data: noise\n\n");

    let tool = "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}";
    let message_bytes = limited(|limits| limits.message_bytes = 100);
    for (dialect, body) in [
        (ANTHROPIC, block_start(1, &format!("{{\"type\":\"text\",\"text\":\"{long}\"}}"))),
        (ANTHROPIC, block_start(1, &format!("{{\"type\":\"thinking\",\"thinking\":\"{long}\"}}"))),
        (
            ANTHROPIC,
            block_start(1, tool)
                + &block_delta(
                    1,
                    &format!("{{\"type\":\"input_json_delta\",\"partial_json\":\"{long}\"}}"),
                ),
        ),
        (
            ANTHROPIC,
            block_start(1, &format!("{{\"type\":\"tool_use\",\"id\":\"{long}\",\"name\":\"f\"}}")),
        ),
        (
            ANTHROPIC,
            block_start(1, &format!("{{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"{long}\"}}")),
        ),
        (CHAT, chat(&format!("{{\"content\":\"{long}\"}}"))),
        (CHAT, chat(&format!("{{\"refusal\":\"{long}\"}}"))),
        (CHAT, chat(&format!("{{\"reasoning\":\"{long}\"}}"))),
        (
            CHAT,
            chat(&format!(
                "{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"f\",\"arguments\":\"{long}\"}}}}]}}"
            )),
        ),
        (
            CHAT,
            chat(&format!(
                "{{\"tool_calls\":[{{\"index\":0,\"id\":\"{long}\",\"function\":{{\"name\":\"f\"}}}}]}}"
            )),
        ),
        (
            CHAT,
            chat(&format!(
                "{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"{long}\"}}}}]}}"
            )),
        ),
    ] {
        reaches(dialect, message_bytes, "message_bytes", &body);
    }

    let many = |one: &dyn Fn(usize) -> String| (1..20).map(one).collect::<String>();
    let call = |n: usize| {
        chat(&format!(
            "{{\"tool_calls\":[{{\"index\":{n},\"id\":\"c{n}\",\"function\":{{\"name\":\"f\"}}}}]}}"
        ))
    };
    let parts = limited(|limits| limits.parts = 10);
    reaches(
        ANTHROPIC,
        parts,
        "parts",
        &many(&|n| block_start(n, "{\"type\":\"text\",\"text\":\"t\"}")),
    );
    reaches(
        ANTHROPIC,
        parts,
        "parts",
        &many(&|n| block_start(n, "{\"type\":\"text\",\"text\":\"\"}")),
    );
    reaches(
        ANTHROPIC,
        parts,
        "parts",
        &many(&|n| block_start(n, "{\"type\":\"x\"}") + &block_stop(n)),
    );
    reaches(
        CHAT,
        parts,
        "parts",
        &many(&|_| chat("{\"reasoning\":\"r\"}") + &chat("{\"content\":\"t\"}")),
    );
    reaches(CHAT, parts, "parts", &many(&call));
    let calls = limited(|limits| limits.tool_calls = 10);
    reaches(ANTHROPIC, calls, "tool_calls", &many(&|n| block_start(n, tool)));
    reaches(CHAT, calls, "tool_calls", &many(&call));

    let state = limited(|limits| limits.provider_state_bytes = 500);
    for (dialect, body) in [
        (
            ANTHROPIC,
            block_start(1, &format!("{{\"type\":\"redacted_thinking\",\"data\":\"{long}\"}}")),
        ),
        (ANTHROPIC, block_start(1, &format!("{{\"type\":\"new_block\",\"data\":\"{long}\"}}"))),
        (
            ANTHROPIC,
            block_start(1, "{\"type\":\"server_tool_use\",\"id\":\"s\",\"input\":{}}")
                + &block_delta(
                    1,
                    &format!("{{\"type\":\"input_json_delta\",\"partial_json\":\"{long}\"}}"),
                ),
        ),
        (
            ANTHROPIC,
            block_start(1, "{\"type\":\"compaction\"}")
                + &block_delta(
                    1,
                    &format!("{{\"type\":\"compaction_delta\",\"content\":\"{long}\"}}"),
                ),
        ),
        (
            ANTHROPIC,
            block_start(1, "{\"type\":\"thinking\"}")
                + &block_delta(
                    1,
                    &format!("{{\"type\":\"signature_delta\",\"signature\":\"{long}\"}}"),
                ),
        ),
        (
            ANTHROPIC,
            block_delta(
                1,
                &format!("{{\"type\":\"citations_delta\",\"citation\":{{\"a\":\"{long}\"}}}}"),
            ),
        ),
        (
            ANTHROPIC,
            block_start(
                1,
                &format!(
                    "{{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{{\"a\":\"{long}\"}}}}"
                ),
            ),
        ),
        (CHAT, chat(&format!("{{\"annotations\":[{{\"a\":\"{long}\"}}]}}"))),
        (CHAT, chat(&format!("{{\"reasoning_details\":[{{\"type\":\"x\",\"a\":\"{long}\"}}]}}"))),
        (
            CHAT,
            chat(&format!(
                "{{\"images\":[{{\"image_url\":{{\"url\":\"data:image/png;base64,{long}\"}}}}]}}"
            )),
        ),
        (CHAT, chat(&format!("{{\"audio\":{{\"data\":\"{long}\"}}}}"))),
        (
            CHAT,
            chat(&format!(
                "{{\"tool_calls\":[{{\"id\":\"c\",\"extra_content\":{{\"a\":\"{long}\"}},\"function\":{{\"name\":\"f\"}}}}]}}"
            )),
        ),
    ] {
        reaches(dialect, state, "provider_state_bytes", &body);
    }
}

#[test]
fn a_limit_reached_in_the_last_event_is_no_normal_end() {
    let parts: Vec<&str> = vec!["{\"type\":\"text\",\"text\":\"before\"}"; 20];
    let body = format!(
        "{{\"type\":\"message\",\"id\":\"i\",\"model\":\"m\",\"content\":[{}]}}",
        parts.join(",")
    );
    reaches(ANTHROPIC, limited(|limits| limits.parts = 10), "parts", &body);
    // Audio leaves as a part at the end marker: its data fits, the part does not.
    let body = chat(&format!("{{\"audio\":{{\"data\":\"{}\"}}}}", "A".repeat(300)));
    let limits = limited(|limits| limits.provider_state_bytes = 350);
    reaches(CHAT, limits, "provider_state_bytes", &(body.clone() + "data: [DONE]\n\n"));
    // It is counted once: the part alone decides.
    let mut options = options(CHAT);
    options.stream.limits.provider_state_bytes = 500;
    let pieces = [body.as_bytes(), b"data: [DONE]\n\n"];
    let message = fold(&decode_with(Decoder::new(options).unwrap(), pieces));
    assert!(matches!(message.parts(), [Part::Whole(_)]));
}

#[test]
fn a_line_of_64_mb_ends_at_the_bound() {
    for dialect in BOTH {
        for head in ["data: {\"a\":\"", ": ", "{\"a\":\"", "event: "] {
            let chunk = "x".repeat(1 << 16);
            let pieces = std::iter::once(head.to_owned()).chain((0..1_024).map(|_| chunk.clone()));
            let cost = cost(dialect, Limits::default(), pieces);
            let words = cost.failure.expect("an error").message.unwrap();
            assert_eq!(&*words, "limit reached: event_bytes (33554432)", "{dialect} {head}");
            assert!(cost.peak < 100 << 20, "{dialect} {head}: {} bytes", cost.peak);
        }
    }
}

#[test]
fn nesting_bombs_cost_no_stack() {
    let bomb = "[".repeat(1_000_000);
    let objects = "{\"a\":".repeat(1_000_000);
    for dialect in BOTH {
        for body in [
            event(&bomb),
            event(&objects),
            event(&format!("{{\"choices\":{bomb}")),
            event(&format!("{{\"type\":\"message\",\"message\":{objects}")),
            format!("{bomb}\n"),
            format!("{bomb}{}\n", "]".repeat(1_000_000)),
        ] {
            let deltas = decode_with(crate::support::decoder(dialect), [body.as_bytes()]);
            assert_eq!(deltas.len(), 2, "{dialect}: {:?}", deltas.last());
        }
    }
    // Arguments are text: as deep as they like.
    let deep = bomb.clone() + &"]".repeat(1_000_000);
    let body = chat(&format!(
        "{{\"tool_calls\":[{{\"id\":\"c\",\"function\":{{\"name\":\"f\",\"arguments\":\"{deep}\"}}}}]}}"
    ));
    let message =
        fold(&decode_with(crate::support::decoder(CHAT), [body.as_bytes(), b"data: [DONE]\n\n"]));
    let (_, call) = message.tool_calls().next().unwrap();
    assert!(!call.incomplete && call.args.len() == deep.len());
    // So are the arguments of a server's tool, which become JSON again only where that is not deep.
    let body = block_start(0, "{\"type\":\"server_tool_use\",\"input\":{}}")
        + &block_delta(
            0,
            &format!("{{\"type\":\"input_json_delta\",\"partial_json\":\"{deep}\"}}"),
        )
        + &block_stop(0);
    let message = fold(&decode_with(crate::support::decoder(ANTHROPIC), [body.as_bytes()]));
    assert!(
        matches!(&message.parts()[0], Part::Whole(json) if json.contains("\"partial_json\":\"[[["))
    );
}

#[test]
fn a_million_tiny_events_leave_nothing_behind() {
    type Make = fn(usize) -> String;
    let rows: &[(&str, &str, Make)] = &[
        (ANTHROPIC, "ping", |_| event("{\"type\":\"ping\"}")),
        (ANTHROPIC, "text", |_| block_delta(0, "{\"type\":\"text_delta\",\"text\":\"a\"}")),
        (ANTHROPIC, "unknown", |_| event("{\"type\":\"new_event\"}")),
        (ANTHROPIC, "stops", |n| block_stop(n)),
        (ANTHROPIC, "start again", |_| {
            event("{\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}")
        }),
        (ANTHROPIC, "usage", |n| {
            event(&format!("{{\"type\":\"message_delta\",\"usage\":{{\"output_tokens\":{n}}}}}"))
        }),
        (ANTHROPIC, "reasons", |_| {
            event("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"x\"}}")
        }),
        (CHAT, "text", |_| chat("{\"content\":\"a\"}")),
        (CHAT, "empty text", |_| chat("{\"content\":\"\",\"tool_calls\":null}")),
        (CHAT, "choice-less", |_| event("{\"choices\":[]}")),
        (CHAT, "usage", |n| {
            event(&format!("{{\"choices\":[],\"usage\":{{\"prompt_tokens\":{n}}}}}"))
        }),
        (CHAT, "other choices", |_| {
            event("{\"choices\":[{\"index\":5,\"delta\":{\"content\":\"x\"}}]}")
        }),
        (CHAT, "arguments for nobody", |n| {
            chat(&format!("{{\"tool_calls\":[{{\"index\":{n}}}]}}"))
        }),
        (CHAT, "deferred errors", |_| {
            event("{\"error\":{\"message\":\"m\"},\"choices\":[{\"delta\":{\"content\":\"x\"}}]}")
        }),
        (CHAT, "noise", |_| event("noise")),
        (CHAT, "comments", |_| ": x\n\n".to_owned()),
        (CHAT, "empty data", |_| "data:\n\n".to_owned()),
        (CHAT, "blank lines", |_| "\n".to_owned()),
        (CHAT, "lone brackets", |_| "}\n".to_owned()),
        (CHAT, "wrong bare JSON", |_| "{]\n".to_owned()),
        (CHAT, "surrogates", |_| chat("{\"content\":\"\\ud83d\"}")),
    ];
    for (dialect, name, make) in rows {
        // A hundred thousand each, a thousand a feed: two million events in all.
        let feeds =
            (0..100).map(|feed| (0..1_000).map(|n| make(feed * 1_000 + n)).collect::<String>());
        let cost = cost(dialect, Limits::default(), feeds);
        assert!(cost.peak < 1 << 17, "{dialect} {name}: {cost:?}");
        assert!(cost.deltas <= 100_004, "{dialect} {name}: {cost:?}");
    }
}

/// A limit bounds each store that grows with the events.
#[test]
fn state_that_grows_with_the_events_reaches_a_limit() {
    type Make = fn(usize) -> String;
    let pad = "p".repeat(10_000);
    let pad: &'static str = pad.leak();
    PAD.set(pad);
    let rows: &[(&str, &str, &str, Make)] = &[
        (ANTHROPIC, "empty blocks", "parts", |n| {
            block_start(n, "{\"type\":\"text\",\"text\":\"\"}") + &block_stop(n)
        }),
        (ANTHROPIC, "open text blocks", "parts", |n| {
            block_start(n, "{\"type\":\"text\",\"text\":\"\"}")
        }),
        (ANTHROPIC, "open provider blocks", "provider_state_bytes", |n| {
            block_start(n, &format!("{{\"type\":\"x\",\"p\":\"{}\"}}", PAD.get()))
        }),
        (ANTHROPIC, "open calls with input", "provider_state_bytes", |n| {
            block_start(
                n,
                &format!(
                    "{{\"type\":\"tool_use\",\"id\":\"t{n}\",\"name\":\"f\",\"input\":{{\"p\":\"{}\"}}}}",
                    PAD.get()
                ),
            )
        }),
        (ANTHROPIC, "names of events", "warnings", |n| {
            event(&format!("{{\"type\":\"{n}{}\"}}", PAD.get()))
        }),
        (ANTHROPIC, "names of deltas", "warnings", |n| {
            block_delta(0, &format!("{{\"type\":\"{n}{}\"}}", PAD.get()))
        }),
        (ANTHROPIC, "names of calls", "message_bytes", |n| {
            block_start(
                n,
                &format!("{{\"type\":\"tool_use\",\"id\":\"t{n}\",\"name\":\"{}\"}}", PAD.get()),
            ) + &block_stop(n)
        }),
        (ANTHROPIC, "usage", "provider_state_bytes", |n| {
            event(&format!(
                "{{\"type\":\"message_delta\",\"usage\":{{\"output_tokens\":{n},\"{n}\":\"{}\"}}}}",
                PAD.get()
            ))
        }),
        (CHAT, "ids of calls", "message_bytes", |n| {
            chat(&format!(
                "{{\"tool_calls\":[{{\"index\":{n},\"id\":\"{n}{}\",\"function\":{{\"name\":\"f\"}}}}]}}",
                PAD.get()
            ))
        }),
        (CHAT, "usage", "provider_state_bytes", |n| {
            event(&format!(
                "{{\"choices\":[],\"usage\":{{\"prompt_tokens\":{n},\"{n}\":\"{}\"}}}}",
                PAD.get()
            ))
        }),
        (CHAT, "reasoning details", "provider_state_bytes", |n| {
            chat(&format!(
                "{{\"reasoning_details\":[{{\"type\":\"t{n}\",\"data\":\"{}\"}}]}}",
                PAD.get()
            ))
        }),
        (CHAT, "audio", "provider_state_bytes", |_| {
            chat(&format!("{{\"audio\":{{\"data\":\"{}\"}}}}", PAD.get()))
        }),
    ];
    let limits = Limits {
        message_bytes: 4 << 20,
        provider_state_bytes: 4 << 20,
        parts: 1_000,
        tool_calls: 2_000,
        ..Limits::default()
    };
    for (dialect, name, limit, make) in rows {
        let cost = cost(dialect, limits, (0..10_000).map(make));
        let words = cost.failure.unwrap_or_else(|| panic!("{name}: no error")).message.unwrap();
        assert!(
            words.starts_with(&format!("limit reached: {limit} (")),
            "{dialect} {name}: {words}"
        );
        assert!(cost.peak < 32 << 20, "{dialect} {name}: {} bytes", cost.peak);
    }
}

thread_local! {
    static PAD: Cell<&'static str> = const { Cell::new("") };
}

/// Twice the events, at most a little more than twice the work.
#[test]
fn work_is_linear_in_the_events() {
    type Make = fn(usize) -> String;
    let rows: &[(&str, &str, Make)] = &[
        (CHAT, "reasoning details", |_| {
            chat(
                "{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"ab\",\"index\":0}]}",
            )
        }),
        (CHAT, "reasoning and its details", |_| {
            chat(
                "{\"reasoning\":\"ab\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"ab\"}]}",
            )
        }),
        (CHAT, "thinking blocks", |_| {
            chat(
                "{\"reasoning_content\":\"ab\",\"thinking_blocks\":[{\"type\":\"thinking\",\"thinking\":\"ab\"}]}",
            )
        }),
        (CHAT, "the same id", |n| {
            chat(&format!(
                "{{\"tool_calls\":[{{\"index\":{n},\"id\":\"same\",\"function\":{{\"name\":\"f{n}\",\"arguments\":\"{{}}\"}}}}]}}"
            ))
        }),
        (CHAT, "arguments", |_| {
            chat(
                "{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"[\"}}]}",
            )
        }),
        (CHAT, "audio", |_| chat("{\"audio\":{\"id\":\"a\",\"data\":\"AAAA\"}}")),
        (CHAT, "citations", |n| event(&format!("{{\"choices\":[],\"citations\":[\"{n}\"]}}"))),
        (CHAT, "parts", |_| chat("{\"reasoning\":\"a\"}") + &chat("{\"content\":\"b\"}")),
        (ANTHROPIC, "the same id", |n| {
            block_start(n, "{\"type\":\"tool_use\",\"id\":\"same\",\"name\":\"f\"}")
                + &block_stop(n)
        }),
        (ANTHROPIC, "open calls", |n| {
            block_start(n, &format!("{{\"type\":\"tool_use\",\"id\":\"t{n}\",\"name\":\"f\"}}"))
        }),
        (ANTHROPIC, "server tool input", |n| {
            let start = block_start(0, "{\"type\":\"server_tool_use\",\"id\":\"s\",\"input\":{}}");
            let more = block_delta(0, "{\"type\":\"input_json_delta\",\"partial_json\":\"[\"}");
            if n == 0 { start } else { more }
        }),
        (ANTHROPIC, "members set", |n| {
            let start = block_start(0, "{\"type\":\"compaction\"}");
            let more = block_delta(0, &format!("{{\"type\":\"compaction_delta\",\"k{n}\":1}}"));
            if n == 0 { start } else { more }
        }),
        (ANTHROPIC, "citations", |_| {
            block_delta(0, "{\"type\":\"citations_delta\",\"citation\":{\"a\":1}}")
        }),
        (ANTHROPIC, "joined values", |n| {
            if n == 0 {
                "data: {\"type\":\"ping\"}\n".to_owned()
            } else {
                "data: {\"type\":\"message_delta\"}\n".to_owned()
            }
        }),
    ];
    for (dialect, name, make) in rows {
        let [once, twice] =
            [8_000, 16_000].map(|count| cost(dialect, Limits::default(), (0..count).map(make)));
        assert!(
            once.failure.as_ref().is_none_or(|failure| failure.code.as_str() == "connection_lost"),
            "{dialect} {name}: {once:?}"
        );
        assert!(
            twice.total < once.total * 5 / 2 + 65_536,
            "{dialect} {name}: {} and {} bytes",
            once.total,
            twice.total
        );
        assert!(twice.deltas <= once.deltas * 2 + 8, "{dialect} {name}");
        assert!(twice.text <= once.text * 2 + 64, "{dialect} {name}");
    }
}

#[test]
fn a_hundred_thousand_fragments_of_reasoning_details_are_one_entry() {
    let fragment = chat(
        "{\"reasoning\":\"ab\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"ab\",\"index\":0}]}",
    );
    let body = fragment.repeat(100_000) + "data: [DONE]\n\n";
    let message = fold(&decode_with(crate::support::decoder(CHAT), [body.as_bytes()]));
    let Part::Thinking(part) = &message.parts()[0] else { panic!("thinking first") };
    let state: serde_json::Value =
        serde_json::from_str(part.provider_state.as_deref().unwrap()).unwrap();
    let details = state["data"]["reasoning_details"].as_array().unwrap();
    assert_eq!(details.len(), 1);
    assert_eq!(details[0]["text"].as_str().unwrap().len(), part.text.len());
}

#[test]
fn ids_repeated_ten_thousand_times_stay_unique() {
    let one = |n: usize| {
        let id = ["same", "same_2", "same_3", ""][n % 4];
        block_start(n, &format!("{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"f\"}}"))
            + &block_stop(n)
    };
    let body: String = (0..10_000).map(one).collect();
    let message: MessageAssembler =
        fold(&decode_with(crate::support::decoder(ANTHROPIC), [body.as_bytes()]));
    let ids: std::collections::HashSet<_> =
        message.tool_calls().map(|(_, call)| call.id.to_string()).collect();
    assert_eq!(ids.len(), 10_000);
}

#[test]
fn huge_and_odd_indexes_are_names_like_any_other() {
    for index in [
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "99999999999999999999999",
        "1.5",
        "1e3",
        "\"0\"",
        "null",
        "{}",
    ] {
        let body = block_start(index, "{\"type\":\"text\",\"text\":\"a\"}")
            + &block_delta(index, "{\"type\":\"text_delta\",\"text\":\"b\"}")
            + &block_stop(index)
            + &block_start(index, "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\"}")
            + &block_delta(index, "{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}")
            + &block_stop(index)
            + &event("{\"type\":\"message_stop\"}");
        let message = fold(&decode_with(crate::support::decoder(ANTHROPIC), [body.as_bytes()]));
        let calls: Vec<_> =
            message.tool_calls().map(|(_, call)| (&*call.args, call.incomplete)).collect();
        assert_eq!((message.text().as_str(), calls), ("ab", vec![("{}", false)]), "{index}");

        let body = chat(&format!(
            "{{\"tool_calls\":[{{\"index\":{index},\"id\":\"t\",\"function\":{{\"name\":\"f\",\"arguments\":\"{{\"}}}}]}}"
        )) + &chat(&format!(
            "{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"arguments\":\"}}\"}}}}]}}"
        )) + "data: [DONE]\n\n";
        let message = fold(&decode_with(crate::support::decoder(CHAT), [body.as_bytes()]));
        let calls: Vec<_> = message.tool_calls().map(|(_, call)| &*call.args).collect();
        assert_eq!(calls, ["{}"], "{index}");
    }
}

#[test]
fn nothing_follows_the_terminal_and_nothing_is_kept_for_it() {
    for dialect in BOTH {
        let mut decoder = crate::support::decoder(dialect);
        let mut kinds = Vec::new();
        let mut take = |delta: &Delta<&str>| kinds.push(delta.payload.kind());
        let mut out = Each(&mut take);
        decoder.feed(b"data: [DONE]\n\n", &mut out);
        let ended = decoder.clone();
        let before = LIVE.get();
        for _ in 0..1_000 {
            decoder.feed(event(&"x".repeat(1_000)).as_bytes(), &mut out);
        }
        decoder.close(&mut out);
        assert!(LIVE.get() - before < 1_024);
        assert!(decoder == ended);
        assert_eq!(kinds, [DeltaKind::Start, DeltaKind::Error], "{dialect}");
    }
}
