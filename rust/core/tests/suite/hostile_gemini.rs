//! Hostile bodies of Gemini, of both of its protocols: bounds are named, memory stays bounded, work stays linear.
//!
//! Work is counted in bytes asked of the allocator and in deltas, never in seconds.

use crate::cost::cost;
use crate::support::{decode, decode_with, fold, options};
use deltafold::contract::Payload;
use deltafold::decoder::Decoder;
use deltafold::limits::Limits;
use serde_json::{Value, json};

const GEMINI: &str = "gemini";
const INTERACTIONS: &str = "gemini-interactions";

type Make = fn(usize) -> String;

fn event(json: &Value) -> String {
    format!("data: {json}\n\n")
}

fn parts(parts: &Value) -> String {
    event(&json!({"candidates": [{"content": {"parts": parts}}]}))
}

fn call(members: &Value) -> String {
    parts(&json!([{"functionCall": members}]))
}

fn partial(entries: &Value) -> String {
    call(&json!({"partialArgs": entries, "willContinue": true}))
}

fn start(index: usize, step: &Value) -> String {
    event(&json!({"event_type": "step.start", "index": index, "step": step}))
}

fn delta(index: usize, delta: &Value) -> String {
    event(&json!({"event_type": "step.delta", "index": index, "delta": delta}))
}

fn stop(index: usize) -> String {
    event(&json!({"event_type": "step.stop", "index": index}))
}

fn pad() -> String {
    "p".repeat(10_000)
}

/// A limit bounds each store that grows with the events.
#[test]
fn state_that_grows_with_the_events_reaches_a_limit() {
    let rows: &[(&str, &str, &str, Make)] = &[
        (GEMINI, "parts", "parts", |n| parts(&json!([{"text": "a", "thought": n % 2 == 0}]))),
        (GEMINI, "calls", "parts", |n| call(&json!({"name": n.to_string()}))),
        (GEMINI, "signatures", "provider_state_bytes", |_| {
            parts(&json!([{"text": "a", "thoughtSignature": pad()}]))
        }),
        (GEMINI, "images", "provider_state_bytes", |_| {
            parts(&json!([{"inlineData": {"mimeType": "image/png", "data": pad()}}]))
        }),
        (GEMINI, "names of arguments", "message_bytes", |n| {
            let first = if n == 0 {
                call(&json!({"name": "f", "willContinue": true}))
            } else {
                String::new()
            };
            first + &partial(&json!([{"jsonPath": format!("$.k{n}{}", pad()), "boolValue": true}]))
        }),
        (GEMINI, "sources", "provider_state_bytes", |n| {
            let grounding = json!({"n": n, "p": pad()});
            event(&json!({"candidates": [{"groundingMetadata": grounding}]}))
        }),
        (GEMINI, "usage", "provider_state_bytes", |n| {
            event(&json!({"usageMetadata": {"promptTokenCount": n, n.to_string(): pad()}}))
        }),
        (INTERACTIONS, "open steps", "provider_state_bytes", |n| {
            start(n, &json!({"type": "x", "p": pad()}))
        }),
        (INTERACTIONS, "deltas of a step", "provider_state_bytes", |n| {
            let first = if n == 0 { start(0, &json!({"type": "x"})) } else { String::new() };
            first + &delta(0, &json!({"type": "x", "result": pad()}))
        }),
        (INTERACTIONS, "empty steps", "provider_state_bytes", |n| {
            start(n, &json!({"type": "model_output"}))
        }),
        (INTERACTIONS, "open calls", "parts", |n| {
            start(n, &json!({"type": "function_call", "id": n, "name": "f"}))
        }),
        (INTERACTIONS, "names of events", "warnings", |n| {
            event(&json!({"event_type": format!("{n}{}", pad())}))
        }),
        (INTERACTIONS, "usage", "provider_state_bytes", |n| {
            let usage = json!({"total_input_tokens": n, n.to_string(): pad()});
            event(&json!({"event_type": "step.stop", "metadata": {"total_usage": usage}}))
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
        let count = if *name == "empty steps" { 40_000 } else { 10_000 };
        let cost = cost(dialect, limits, (0..count).map(make));
        let words = cost.failure.unwrap_or_else(|| panic!("{name}: no error")).message.unwrap();
        assert!(
            words.starts_with(&format!("limit reached: {limit} (")),
            "{dialect} {name}: {words}"
        );
        assert!(cost.peak < 32 << 20, "{dialect} {name}: {} bytes", cost.peak);
    }
}

/// Twice the events, at most a little more than twice the work.
#[test]
fn work_is_linear_in_the_events() {
    let rows: &[(&str, &str, Make)] = &[
        (GEMINI, "one string", |n| {
            let entry = json!([{"jsonPath": "$.a", "stringValue": "ab", "willContinue": true}]);
            if n == 0 { call(&json!({"name": "f", "willContinue": true})) } else { partial(&entry) }
        }),
        (GEMINI, "members of an object", |n| {
            let entry = json!([{"jsonPath": format!("$.a.k{n:05}"), "numberValue": 1.0}]);
            if n == 0 { call(&json!({"name": "f", "willContinue": true})) } else { partial(&entry) }
        }),
        (GEMINI, "elements of a list", |n| {
            let entry =
                json!([{"jsonPath": format!("$.a[{}].b", n.saturating_sub(1)), "nullValue": null}]);
            if n == 0 { call(&json!({"name": "f", "willContinue": true})) } else { partial(&entry) }
        }),
        (GEMINI, "calls of one id", |_| call(&json!({"name": "f", "id": "same", "args": {}}))),
        (GEMINI, "kinds by turns", |n| parts(&json!([{"text": "a", "thought": n % 2 == 0}]))),
        (GEMINI, "counts", |n| {
            let usage = json!({"promptTokenCount": 3, "candidatesTokenCount": n});
            event(
                &json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}], "usageMetadata": usage}),
            )
        }),
        (GEMINI, "the same sources", |_| {
            event(
                &json!({"candidates": [{"content": {"parts": [{"text": "a"}]}, "groundingMetadata": {"a": [1]}}]}),
            )
        }),
        (INTERACTIONS, "deltas of a step", |n| {
            if n == 0 {
                start(0, &json!({"type": "x"}))
            } else {
                delta(0, &json!({"type": "x", "result": "ab", n.to_string(): 1}))
            }
        }),
        (INTERACTIONS, "kinds by turns", |n| {
            let kind = if n % 2 == 0 { "text" } else { "thought_summary" };
            delta(0, &json!({"type": kind, "text": "a"}))
        }),
        (INTERACTIONS, "one index again and again", |n| {
            start(0, &json!({"type": "function_call", "id": "same", "name": format!("f{n}")}))
        }),
        (INTERACTIONS, "steps that stop", |n| {
            start(n, &json!({"type": "model_output"}))
                + &delta(n, &json!({"type": "text", "text": "a"}))
                + &stop(n)
        }),
    ];
    for (dialect, name, make) in rows {
        let [once, twice] =
            [5_000, 10_000].map(|count| cost(dialect, Limits::default(), (0..count).map(make)));
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
fn a_path_deeper_than_the_limit_and_one_that_is_none_make_the_call_incomplete() {
    let deep = format!("${}", "[0]".repeat(100_000));
    let quoted = format!("$['{}", "\\".repeat(100_000));
    for path in [
        deep.as_str(),
        quoted.as_str(),
        "",
        "$",
        "$.",
        "$[",
        "$[-1]",
        "$[x]",
        "$..a",
        "$['a'",
        "a.b",
        "$[18446744073709551616]",
        "$[1]",
    ] {
        let body = call(&json!({"name": "f", "willContinue": true}))
            + &partial(&json!([{"jsonPath": path, "numberValue": 1}]))
            + &call(&json!({}))
            + &event(&json!({"candidates": [{"finishReason": "STOP"}]}));
        let message = fold(&decode(GEMINI, body.as_bytes()));
        let (_, call) = message.tool_calls().next().expect("a call");
        assert!(call.incomplete && call.ended, "{path:.20}: {:?}", call.args);
    }
}

#[test]
fn arguments_under_any_paths_are_json_or_a_call_that_nobody_may_run() {
    let paths = ["$.a", "$.b", "$.a.c", "$.l[0]", "$.l[1]", "$.l[0].x", "$['q\"']", "$.b.d[0][0]"];
    for first in paths {
        for second in paths {
            for third in paths {
                let entry = |path: &str, last: bool| json!({"jsonPath": path, "stringValue": "v\n\"", "willContinue": !last});
                let body = call(&json!({"name": "f", "willContinue": true}))
                    + &partial(&json!([
                        entry(first, true),
                        entry(second, false),
                        entry(second, true)
                    ]))
                    + &partial(&json!([entry(third, true)]))
                    + &call(&json!({}))
                    + &event(&json!({"candidates": [{"finishReason": "STOP"}]}));
                let message = fold(&decode(GEMINI, body.as_bytes()));
                let (_, call) = message.tool_calls().next().expect("a call");
                let parsed = serde_json::from_str::<Value>(&call.args);
                assert!(
                    call.incomplete || parsed.is_ok_and(|value| value.is_object()),
                    "{first} {second} {third}: {}",
                    call.args
                );
            }
        }
    }
}

#[test]
fn log_probabilities_come_when_they_are_asked_for() {
    let result = json!({
        "topCandidates": [
            {"candidates": [{"token": "Hi", "tokenId": 7, "logProbability": -0.5}, {"token": "Yo", "logProbability": -3}]},
            {"candidates": []},
        ],
        "chosenCandidates": [
            {"token": "Hi", "tokenId": 7, "logProbability": -0.5},
            {"token": "!", "logProbability": null},
        ],
    });
    let body = event(&json!({"candidates": [{
        "content": {"parts": [{"text": "Hi!"}]},
        "logprobsResult": result,
        "finishReason": "STOP",
    }]}));
    let mut options = options(GEMINI);
    options.stream.logprobs = true;
    let deltas = decode_with(Decoder::new(options).unwrap(), [body.as_bytes()]);
    let carried = deltas.iter().filter(
        |delta| matches!(&delta.payload, Payload::Text { attributes, .. } if attributes.logprobs.is_some()),
    );
    assert_eq!(carried.count(), 1);
    let found: Value = serde_json::from_str(&fold(&deltas).logprobs().unwrap().to_json()).unwrap();
    assert_eq!(
        found,
        json!({
            "tokens": ["Hi", "!"],
            "logprobs": [-0.5, null],
            "tokenIds": [7, null],
            "top": [[{"token": "Hi", "logprob": -0.5}, {"token": "Yo", "logprob": -3.0}], []],
        })
    );
}

#[test]
fn another_candidate_is_followed_when_it_is_asked_for() {
    let chunk = |index: usize, text: &str, finish: Option<&str>| {
        event(&json!({"candidates": [{
            "content": {"parts": [{"text": text}]},
            "finishReason": finish,
            "index": index,
        }]}))
    };
    let body = chunk(0, "zero", None)
        + &chunk(1, "one", Some("MAX_TOKENS"))
        + &chunk(0, ".", Some("STOP"));
    let mut options = options(GEMINI);
    options.stream.choice = 1;
    let message = fold(&decode_with(Decoder::new(options).unwrap(), [body.as_bytes()]));
    assert_eq!(message.text(), "one");
}
