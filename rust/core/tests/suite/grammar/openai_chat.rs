//! Chat Completions streams.

use super::Edit::{Append, Before, Cut, Drop, Repeat, Swap};
use super::{accepts, allows, encode, refuses, verdict};

const TARGET: &str = "openai-chat";

/// A chunk with one choice.
fn chunk(delta: &str, rest: &str) -> String {
    let choice = format!(r#"{{"index":0,"delta":{delta},{rest}}}"#);
    format!(
        r#"{{"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{choice}],"usage":null}}"#
    )
}

fn delta(delta: &str) -> String {
    chunk(delta, r#""finish_reason":null,"logprobs":null"#)
}

pub(super) fn good() -> String {
    let token = r#"{"token":"Hi","logprob":-0.1,"bytes":[72,105],"top_logprobs":[{"token":"Hi","logprob":-0.1,"bytes":null}]}"#;
    let usage = r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}"#;
    [
        delta(r#"{"role":"assistant","content":""}"#),
        ": keep-alive".to_owned(),
        delta(r#"{"reasoning_content":"think"}"#),
        chunk(
            r#"{"content":"Hi"}"#,
            &format!(r#""finish_reason":null,"logprobs":{{"content":[{token}]}}"#),
        ),
        delta(r#"{"refusal":"no"}"#),
        delta(r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}"#),
        delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}"#),
        delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}"#),
        delta(r#"{"tool_calls":[{"index":1,"id":"b","type":"custom","custom":{"name":"g","input":""}}]}"#),
        delta(r#"{"tool_calls":[{"index":1,"custom":{"input":"text"}}]}"#),
        delta(r#"{"reasoning_details":[{"type":"reasoning.text","signature":"s","index":0}]}"#),
        delta(r#"{"thinking_blocks":[{"type":"thinking","signature":"s"}]}"#),
        delta(r#"{"annotations":[{"type":"url_citation","url_citation":{"url":"u"}}]}"#),
        chunk("{}", r#""finish_reason":"tool_calls","logprobs":null"#),
        format!(
            r#"{{"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[],"usage":{usage}}}"#
        ),
        "[DONE]".to_owned(),
    ]
    .join("\n")
}

const ERROR: &str = r#"{"error":{"message":"m","type":"server_error","param":null,"code":null}}"#;

#[test]
fn a_chat_stream_with_everything_is_lawful() {
    let good = good();
    accepts(TARGET, &good);
    allows(
        TARGET,
        &good,
        &[
            Before(r#""role""#, ": keep-alive"),
            Before("[DONE]", ": keep-alive"),
            Drop(r#""choices":[]"#),
            Swap(r#""finish_reason":"tool_calls""#, r#""finish_reason":"stop""#),
            Swap(r#""reasoning_content""#, r#""reasoning""#),
        ],
    );
    // Without `include_usage` no chunk has the member.
    let edited = Drop(r#""choices":[]"#).apply(&good);
    let unasked = edited.replace(r#","usage":null"#, "");
    let counted = Swap(
        r#"{"refusal":"no"},"finish_reason":null,"logprobs":null}]"#,
        r#"{"refusal":"no"},"finish_reason":null,"logprobs":null}],"usage":null"#,
    );
    refuses(TARGET, &unasked, &[(counted, "`usage` must be absent: the head has none")]);
    // An error may take the place of everything after the head.
    accepts(TARGET, &format!("{}\n{ERROR}", Cut(r#""index":1"#).apply(&good)));
}

#[test]
fn a_chat_stream_with_a_defect_is_refused() {
    let good = good();
    let failed = format!("{}\n{ERROR}", Cut(r#""content":"Hi""#).apply(&good));
    refuses(
        TARGET,
        &good,
        &[
            (Drop(r#""role""#), "`choices[0].delta.role` is missing"),
            (Repeat(r#""role""#), "the role stands in the head only"),
            (Swap(r#""content":"""#, r#""content":null"#), "`choices[0].delta.content` must be"),
            (Swap("chat.completion.chunk", "chat.completion"), "`object` must be"),
            (Swap(r#""id":"c1""#, r#""id":"""#), "`id` must be a string that is not empty"),
            (Swap(r#""created":7"#, r#""created":7.5"#), "`created` must be an integer"),
            (Swap(r#","logprobs":null"#, ""), "`choices[0].logprobs` is missing"),
            (Swap(r#""finish_reason":null,"#, ""), "`choices[0].finish_reason` is missing"),
            (
                Swap(r#"{"content":"Hi"}"#, r#"{"content":5}"#),
                "`choices[0].delta.content` must be a string (got 5)",
            ),
            (
                Swap(r#"{"refusal":"no"}"#, r#"{"refusal":""}"#),
                "an empty `refusal` carries nothing",
            ),
            (Swap(r#"{"refusal":"no"}"#, "{}"), "an empty `delta` carries nothing"),
            (
                Swap(r#"{"refusal":"no"}"#, r#"{"reasoning":"no"}"#),
                "thinking must stay in one member",
            ),
            (Swap(r#""bytes":[72,105],"#, ""), "`choices[0].logprobs.content[0].bytes` is missing"),
            (
                Swap(r#""index":1,"id""#, r#""index":2,"id""#),
                "`choices[0].delta.tool_calls[0].index` must be 1 (got 2)",
            ),
            (Swap(r#""id":"b""#, r#""id":"a""#), r#"the id of the call "a" was used before"#),
            (Swap(r#""type":"function","#, ""), "tool_calls[0].type` is missing"),
            (
                Swap(
                    r#"{"index":0,"function":{"arguments":"1}"}}"#,
                    r#"{"index":0,"id":"a","function":{"arguments":"1}"}}"#,
                ),
                "must be 1 (got 0)",
            ),
            (
                Swap(
                    r#""function":{"arguments":"1}"}"#,
                    r#""function":{"name":"f","arguments":"1}"}"#,
                ),
                "function.name` must be absent",
            ),
            (Swap(r#""index":1,"custom""#, r#""index":0,"custom""#), "must be 1 (got 0)"),
            (
                Swap(r#""custom":{"input":"text"}"#, r#""function":{"arguments":"x"}"#),
                "tool_calls[0].function` must be absent",
            ),
            (Drop(r#""name":"f""#), "the first entry opens a call"),
            (
                Swap(r#""signature":"s","index":0"#, r#""signature":"s""#),
                "reasoning_details[0].index` is missing",
            ),
            (Repeat("thinking_blocks"), "thinking_blocks[0].index` is missing"),
            (Repeat("annotations"), "`annotations` must be written once"),
            (
                Swap(r#""finish_reason":"tool_calls""#, r#""finish_reason":"end_turn""#),
                "`choices[0].finish_reason` must be one of stop",
            ),
            (
                Repeat(r#""finish_reason":"tool_calls""#),
                "only the usage chunk and `[DONE]` may follow the finish",
            ),
            (Drop(r#""finish_reason":"tool_calls""#), "once after the finish"),
            (
                Swap(r#""total_tokens":15"#, r#""total_tokens":16"#),
                "`usage.total_tokens` must be 15 (got 16)",
            ),
            (
                Swap(r#""cached_tokens":4"#, r#""cached_tokens":11"#),
                "cached_tokens` must be at most 10",
            ),
            (
                Swap(r#""prompt_tokens":10"#, r#""prompt_tokens":-1"#),
                "`usage.prompt_tokens` must be an integer",
            ),
            (Repeat(r#""choices":[]"#), "once after the finish"),
            (Drop("[DONE]"), "the stream ends without `[DONE]`"),
            (Repeat("[DONE]"), "nothing may follow `[DONE]`"),
            (Before(r#""finish_reason":"tool_calls""#, "[DONE]"), "`[DONE]` before the finish"),
            (Append(": keep-alive"), "nothing may follow `[DONE]`"),
            (Before(r#""role""#, ERROR), "the head must come before an error"),
            (Before("[DONE]", "@done {}"), "the target has no event names"),
        ],
    );
    refuses(
        TARGET,
        &failed,
        &[
            (Append("[DONE]"), "nothing may follow"),
            (Swap(r#""param":null"#, r#""param":"p""#), "`error.param` must be null"),
            (Swap("server_error", "overloaded_error"), "`error.type` must be one of"),
            (Swap(r#","code":null"#, ""), "`error.code` is missing"),
        ],
    );
    let mut uncalled = Drop("tool_calls\":[{").apply(&good);
    while uncalled.contains("tool_calls\":[{") {
        uncalled = Drop("tool_calls\":[{").apply(&uncalled);
    }
    let violation = verdict(TARGET, &encode(TARGET, &uncalled)).unwrap_err();
    assert!(violation.rule.contains("but no call was written"), "{violation}");
}
