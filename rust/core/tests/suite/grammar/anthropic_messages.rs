//! Messages streams.

use super::Edit::{Append, Before, Cut, Drop, Flip, Repeat, Swap};
use super::{accepts, allows, refuses};

const TARGET: &str = "anthropic-messages";

pub(super) const GOOD: &str = r#"
{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}
{"type":"ping"}
{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}
{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}
{"type":"content_block_stop","index":0}
{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xx"}}
{"type":"content_block_stop","index":1}
{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}
{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Hello"}}
{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"char_location"}}}
{"type":"ping"}
{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":""}}
{"type":"content_block_stop","index":2}
{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}
{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1"}}
{"type":"content_block_stop","index":3}
{"type":"content_block_start","index":4,"content_block":{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}}
{"type":"content_block_stop","index":4}
{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":9,"output_tokens":7,"cache_read_input_tokens":3,"output_tokens_details":{"thinking_tokens":2}}}
{"type":"message_stop"}
"#;

const ERROR: &str = r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#;

#[test]
fn a_messages_stream_with_everything_is_lawful() {
    accepts(TARGET, GOOD);
    allows(
        TARGET,
        GOOD,
        &[
            Drop("signature_delta"),
            Drop("thinking_delta"),
            Swap(r#""stop_reason":"tool_use""#, r#""stop_reason":"end_turn""#),
            Swap(
                r#""stop_reason":"tool_use","stop_sequence":null"#,
                r#""stop_reason":"stop_sequence","stop_sequence":"END""#,
            ),
            Swap(
                r#""stop_reason":"tool_use""#,
                r#""stop_details":{"type":"refusal"},"stop_reason":"refusal""#,
            ),
            Before("message_stop", r#"{"type":"ping"}"#),
        ],
    );
    // An error may take the place of the rest, in an open block too.
    accepts(TARGET, &format!("{}\n{ERROR}", Cut("citations_delta").apply(GOOD)));
    accepts(TARGET, &format!("{}\n{ERROR}", Cut(r#""message_stop""#).apply(GOOD)));
}

#[test]
fn a_messages_stream_with_a_defect_is_refused() {
    refuses(
        TARGET,
        GOOD,
        &[
            (Drop("message_start"), "`message_start` must come first (got ping)"),
            (Repeat("message_start"), "`message_start` came twice"),
            (
                Swap(r#""content":[]"#, r#""content":[1]"#),
                "`message.content` must be an empty list",
            ),
            (Swap(r#","stop_reason":null"#, ""), "`message.stop_reason` is missing"),
            (
                Swap(
                    r#""usage":{"input_tokens":9,"output_tokens":1}"#,
                    r#""usage":{"input_tokens":9}"#,
                ),
                "`message.usage.output_tokens` is missing",
            ),
            // Two stops for one block.
            (
                Repeat(r#""content_block_stop","index":3"#),
                "`content_block_stop` without an open block",
            ),
            (Drop(r#""content_block_stop","index":2"#), "block 2 is open: blocks are serial"),
            (
                Swap(r#""content_block_start","index":3"#, r#""content_block_start","index":4"#),
                "`index` must be 3 (got 4)",
            ),
            (
                Swap(r#""content_block_stop","index":2"#, r#""content_block_stop","index":1"#),
                "`index` must be 2 (got 1)",
            ),
            (
                Drop(r#""content_block_start","index":2"#),
                "`content_block_delta` without an open block",
            ),
            // A thinking delta in a text block.
            (
                Swap(
                    r#"{"type":"thinking","thinking":"","signature":""}"#,
                    r#"{"type":"text","text":""}"#,
                ),
                "`thinking_delta` does not fit a block of type `text`",
            ),
            (
                Swap(
                    r#""index":2,"delta":{"type":"text_delta""#,
                    r#""index":3,"delta":{"type":"text_delta""#,
                ),
                "`index` must be 2 (got 3)",
            ),
            (
                Swap(
                    r#"{"type":"input_json_delta","partial_json":"{\"a\":1"}"#,
                    r#"{"type":"text_delta","text":"x"}"#,
                ),
                "does not fit a block of type `tool_use`",
            ),
            (Repeat("signature_delta"), "one `signature_delta`"),
            (
                Swap(r#""signature":"sig""#, r#""signature":"""#),
                "`delta.signature` must be a string that is not empty",
            ),
            (Flip("thinking_delta"), "thinking after the signature"),
            (
                Swap(r#""input":{}"#, r#""input":{"a":1}"#),
                "`content_block.input` must be an empty object",
            ),
            (Swap(r#""text":"""#, r#""text":"Hello""#), "`content_block.text` must be \"\""),
            (Drop("input_json_delta"), "at least one `input_json_delta`"),
            (
                Swap(r#""stop_reason":"tool_use""#, r#""stop_reason":"tool_calls""#),
                "`delta.stop_reason` must be one of",
            ),
            (
                Swap(
                    r#","stop_sequence":null},"usage":{"input_tokens":9,"output_tokens":7"#,
                    r#"},"usage":{"output_tokens":7"#,
                ),
                "`delta.stop_sequence` is missing",
            ),
            (
                Swap(
                    r#","usage":{"input_tokens":9,"output_tokens":7,"cache_read_input_tokens":3,"output_tokens_details":{"thinking_tokens":2}}"#,
                    "",
                ),
                "`usage` is missing",
            ),
            (Swap(r#""thinking_tokens":2"#, r#""thinking_tokens":8"#), "at most 7"),
            (
                Swap(r#""cache_read_input_tokens":3"#, r#""cache_read_input_tokens":null"#),
                "must be an integer",
            ),
            (
                Swap(
                    r#""stop_reason":"tool_use""#,
                    r#""stop_details":{},"stop_reason":"tool_use""#,
                ),
                "absent without a refusal",
            ),
            (Drop("message_delta"), "`message_delta` must come before `message_stop`"),
            (Repeat("message_delta"), "only `message_stop` may follow"),
            (Drop("message_stop"), "ends without `message_stop`"),
            (Append("[DONE]"), "nothing may follow `message_stop`"),
            (Append(ERROR), "nothing may follow `message_stop`"),
            (Before("message_stop", ": keep-alive"), "the target allows no comments"),
            (Before("message_stop", r#"@ping {"type":"pong"}"#), "`event:` must be \"pong\""),
            (
                Before("message_delta", r#"{"type":"message_update"}"#),
                "`message_update` is not an event",
            ),
        ],
    );
    let failed = format!("{}\n{ERROR}", Cut(r#""index":2"#).apply(GOOD));
    refuses(
        TARGET,
        &failed,
        &[
            (Append(r#"{"type":"message_stop"}"#), "nothing may follow"),
            (Swap("overloaded_error", "server_error"), "`error.type` must be one of"),
            (Swap(r#","message":"m"}}"#, "}}"), "`error.message` is missing"),
        ],
    );
    let no_call = GOOD.replace(
        r#"{"type":"tool_use","id":"t1","name":"f","input":{}}"#,
        r#"{"type":"server_tool_use","id":"t1","name":"f","input":{}}"#,
    );
    refuses(
        TARGET,
        &no_call.replace(r#""stop_reason":"tool_use""#, r#""stop_reason":"end_turn""#),
        &[(Swap("end_turn", "tool_use"), "but no call was written")],
    );
}
