//! Streams of Ollama's `/api/chat` and `/api/generate`.

use super::Edit::{Append, Before, Cut, Drop, Repeat, Swap};
use super::{accepts, allows, encode, refuses};

pub(super) const GOOD: &str = r#"
{"model":"m","created_at":"2026-11-01T10:00:00.123Z","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}
{"model":"m","created_at":"2026-11-01T10:00:00.123Z","message":{"role":"assistant","content":"Hello"},"logprobs":[{"token":"Hello","logprob":-1,"top_logprobs":[]}],"done":false}
{"model":"m","created_at":"2026-11-01T10:00:00.123Z","message":{"role":"assistant","content":""},"done":false}
{"model":"m","created_at":"2026-11-01T10:00:00.123Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"index":0,"name":"f","arguments":{"x":1}}}]},"done":false}
{"model":"m","created_at":"2026-11-01T10:00:00.123Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"b","function":{"index":1,"name":"g","arguments":{}}}]},"done":false}
{"model":"m","created_at":"2026-11-01T10:00:01Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":5}
"#;

pub(super) const GENERATE: &str = r#"
{"model":"m","created_at":"2026-11-01T10:00:00.123Z","response":"","thinking":"hm","done":false}
{"model":"m","created_at":"2026-11-01T10:00:00.123Z","response":"Hello","done":false}
{"model":"m","created_at":"2026-11-01T10:00:01Z","response":"","done":true,"done_reason":"length"}
"#;

const ERROR: &str = r#"{"error":"out of memory"}"#;

#[test]
fn an_ollama_stream_with_everything_is_lawful() {
    accepts("ollama", GOOD);
    accepts("ollama", ERROR);
    accepts("ollama", &format!("{}\n{ERROR}", Cut("tool_calls").apply(GOOD)));
    accepts("ollama-generate", GENERATE);
    accepts("ollama-generate", ERROR);
    allows("ollama", GOOD, &[Swap(r#","prompt_eval_count":9,"eval_count":5"#, "")]);
}

#[test]
fn an_ollama_stream_with_a_defect_is_refused() {
    refuses(
        "ollama",
        GOOD,
        &[
            (Swap(r#""model":"m","#, ""), "`model` is missing"),
            (
                Swap("2026-11-01T10:00:00.123Z", "yesterday"),
                "`created_at` must be an RFC 3339 time",
            ),
            (
                Swap(r#""message":{"role":"assistant","content":"Hello"},"#, ""),
                "`message` is missing",
            ),
            (Swap(r#""role":"assistant","#, ""), "`message.role` is missing"),
            (
                Swap(r#""content":"Hello""#, r#""content":null"#),
                "`message.content` must be a string",
            ),
            (
                Swap(r#""thinking":"hm""#, r#""thinking":null"#),
                "`message.thinking` must be a string",
            ),
            (
                Swap(r#""arguments":{"x":1}"#, r#""arguments":"{\"x\":1}""#),
                "arguments` must be an object",
            ),
            (Swap(r#""arguments":{"x":1}"#, r#""arguments":null"#), "arguments` must be an object"),
            (Swap(r#""index":1"#, r#""index":0"#), "function.index` must be 1 (got 0)"),
            (Swap(r#""id":"a","#, ""), "tool_calls[0].id` is missing"),
            (Swap(r#""id":"b""#, r#""id":"a""#), r#"the id of the call "a" was used before"#),
            (Swap(r#""name":"f","#, ""), "function.name` is missing"),
            (
                Swap(r#""logprob":-1"#, r#""logprob":"-1""#),
                "`logprobs[0].logprob` must be a number",
            ),
            (Swap(r#""done":false"#, r#""done":null"#), "`done` must be true or false"),
            (
                Swap(r#""done":false"#, r#""done":false,"done_reason":"stop""#),
                "`done_reason` must be absent",
            ),
            (
                Swap(r#""done":false"#, r#""done":false,"error":null"#),
                "must be absent (allowed: error)",
            ),
            (Swap(r#""done_reason":"stop","#, ""), "`done_reason` is missing"),
            (
                Swap(r#""done_reason":"stop""#, r#""done_reason":"tool_calls""#),
                "`done_reason` must be one of stop",
            ),
            (Swap(r#","eval_count":5"#, r#","eval_count":-5"#), "`eval_count` must be an integer"),
            (
                Swap(r#","eval_count":5"#, r#","total_duration":5"#),
                "`total_duration` must be absent",
            ),
            (Repeat(r#""done":true"#), "nothing may follow"),
            (Drop(r#""done":true"#), "ends without a record with `done: true`"),
            (Append(ERROR), "nothing may follow"),
            (Before("Hello", ": keep-alive"), "not JSON"),
        ],
    );
    refuses(
        "ollama",
        ERROR,
        &[
            (Append(ERROR), "nothing may follow"),
            (Swap(r#""out of memory""#, r#"{"message":"m"}"#), "`error` must be a string"),
        ],
    );
    refuses(
        "ollama-generate",
        GENERATE,
        &[
            (Swap(r#""response":"Hello","#, ""), "`response` is missing"),
            (
                Swap(r#""response":"Hello""#, r#""response":"Hello","message":{}"#),
                "`message` must be absent",
            ),
            (Swap(r#""thinking":"hm""#, r#""thinking":7"#), "`thinking` must be a string (got 7)"),
            (Drop(r#""done":true"#), "ends without a record"),
            (Repeat(r#""done":true"#), "nothing may follow"),
        ],
    );
}

#[test]
fn a_line_that_the_go_client_cannot_read_is_refused() {
    let long = GOOD.replacen("Hello", &"x".repeat(8_000_000), 1);
    let mut checker = deltafold_grammar::Checker::new("ollama").unwrap();
    let violation = checker.feed(&encode("ollama", &long)).unwrap_err();
    assert_eq!(violation.to_string(), "ollama, event 2: the event is longer than 8000000 bytes");
}
