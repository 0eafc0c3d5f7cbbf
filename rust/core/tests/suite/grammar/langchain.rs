//! Content-block events of langchain-core.

use super::Edit::{Before, Drop, Flip, Repeat, Swap};
use super::{accepts, allows, refuses};

const TARGET: &str = "langchain";

pub(super) const GOOD: &str = r#"
{"event":"message-start","role":"ai","id":"r1","metadata":{"provider":"anthropic","model":"m"}}
{"event":"content-block-start","index":0,"content":{"type":"reasoning","reasoning":""}}
{"event":"content-block-delta","index":0,"delta":{"type":"reasoning-delta","reasoning":"hm"}}
{"event":"content-block-start","index":1,"content":{"type":"text","text":""}}
{"event":"content-block-delta","index":1,"delta":{"type":"text-delta","text":"Hel"}}
{"event":"content-block-finish","index":0,"content":{"type":"reasoning","reasoning":"hm","extras":{"signature":"s"}}}
{"event":"content-block-delta","index":1,"delta":{"type":"text-delta","text":"lo"}}
{"event":"content-block-finish","index":1,"content":{"type":"text","text":"Hello","annotations":[{"type":"citation"}]}}
{"event":"content-block-start","index":2,"content":{"type":"tool_call_chunk","id":"a","name":"f","args":""}}
{"event":"content-block-delta","index":2,"delta":{"type":"tool-call-delta","args":"{\"x\":1}"}}
{"event":"content-block-finish","index":2,"content":{"type":"tool_call","id":"a","name":"f","args":{"x":1}}}
{"event":"content-block-start","index":3,"content":{"type":"tool_call_chunk","id":"b","name":"g","args":""}}
{"event":"content-block-delta","index":3,"delta":{"type":"tool-call-delta","args":"{\"x"}}
{"event":"content-block-finish","index":3,"content":{"type":"invalid_tool_call","id":"b","name":"g","args":"{\"x","error":"cut off"}}
{"event":"content-block-start","index":4,"content":{"type":"image","base64":"AA==","mime_type":"image/png"}}
{"event":"content-block-finish","index":4,"content":{"type":"image","base64":"AA==","mime_type":"image/png"}}
{"event":"content-block-start","index":5,"content":{"type":"non_standard","value":{}}}
{"event":"content-block-finish","index":5,"content":{"type":"non_standard","value":{}}}
{"event":"message-finish","usage":{"input_tokens":9,"output_tokens":5,"total_tokens":14,"input_token_details":{"cache_read":3},"output_token_details":{"reasoning":2}},"metadata":{"finish_reason":"tool_calls"}}
"#;

#[test]
fn a_langchain_stream_with_everything_is_lawful() {
    accepts(TARGET, GOOD);
    allows(
        TARGET,
        GOOD,
        &[Swap(r#","id":"r1""#, ""), Swap(r#","input_token_details":{"cache_read":3}"#, "")],
    );
}

#[test]
fn a_langchain_stream_with_a_defect_is_refused() {
    refuses(
        TARGET,
        GOOD,
        &[
            (Drop("message-start"), "`message-start` must come first"),
            (Repeat("message-start"), "`message-start` came twice"),
            (Swap(r#""role":"ai""#, r#""role":"assistant""#), "`role` must be \"ai\""),
            (Swap(r#""id":"r1""#, r#""id":null"#), "`id` must not be null"),
            (Swap(r#","model":"m""#, ""), "`metadata.model` is missing"),
            (Swap(r#"start","index":1"#, r#"start","index":2"#), "`index` must be 1 (got 2)"),
            (Swap(r#""text":"""#, r#""text":"Hel""#), "`content.text` must be \"\""),
            (
                Swap(
                    r#"{"type":"text-delta","text":"Hel"}"#,
                    r#"{"type":"reasoning-delta","reasoning":"x"}"#,
                ),
                "`reasoning-delta` does not fit a block of type `text`",
            ),
            (
                Swap(r#"delta","index":1"#, r#"delta","index":7"#),
                "`index` must be a block that was started",
            ),
            (
                Swap(r#""text":"Hello""#, r#""text":"Hell""#),
                "`content.text` must repeat what was written",
            ),
            (
                Swap(r#""reasoning":"hm","extras""#, r#""reasoning":"","extras""#),
                "`content.reasoning` must repeat",
            ),
            (
                Drop(r#"finish","index":0"#),
                "`index` must be 0 (got 1): blocks are finished in the order",
            ),
            (Repeat(r#"finish","index":1"#), "without an open block"),
            (Flip(r#""text":"lo""#), "`content.text` must repeat"),
            (
                Swap(
                    r#"{"type":"tool_call","id":"a","name":"f","args":{"x":1}}"#,
                    r#"{"type":"tool_call","id":"a","name":"f","args":"{}"}"#,
                ),
                "`content.args` must be an object",
            ),
            (
                Swap(r#"{"type":"tool_call","id":"a""#, r#"{"type":"tool_call","id":"b""#),
                "`content.id` must be \"a\"",
            ),
            (
                Swap(r#""type":"tool_call","#, r#""type":"tool_call_chunk","#),
                "`content.type` must be one of tool_call",
            ),
            (Swap(r#","error":"cut off""#, ""), "`content.error` is missing"),
            (
                Swap(
                    r#"{"type":"tool_call_chunk","id":"b""#,
                    r#"{"type":"tool_call_chunk","id":"a""#,
                ),
                r#"the id of the call "a" was used before"#,
            ),
            (
                Swap(r#"{"type":"non_standard","value":{}}"#, r#"{"type":"text","text":""}"#),
                "`content.type` must be \"text\"",
            ),
            (Drop(r#"finish","index":5"#), "block 5 is open at `message-finish`"),
            (
                Swap(r#""extras":{"signature":"s"}"#, r#""extras":null"#),
                "`content.extras` must not be null",
            ),
            (
                Swap(r#""total_tokens":14"#, r#""total_tokens":15"#),
                "`usage.total_tokens` must be 14",
            ),
            (Swap(r#""input_tokens":9,"#, ""), "`usage.input_tokens` is missing"),
            (Swap(r#""cache_read":3"#, r#""cache_read":10"#), "at most 9"),
            (
                Swap(
                    r#""usage":{"input_tokens":9,"output_tokens":5,"total_tokens":14,"input_token_details":{"cache_read":3},"output_token_details":{"reasoning":2}}"#,
                    r#""usage":null"#,
                ),
                "`usage` must not be null",
            ),
            (Swap(r#""finish_reason":"tool_calls""#, ""), "`metadata.finish_reason` is missing"),
            (Drop("message-finish"), "ends without `message-finish`"),
            (Repeat("message-finish"), "nothing may follow the end"),
            (Before("message-finish", r#"{"event":"error","message":"m"}"#), "nothing may follow"),
            (Before("message-finish", r#"{"event":"error"}"#), "message"),
            (
                Before("message-finish", r#"{"event":"block-start"}"#),
                "`block-start` is not an event",
            ),
        ],
    );
}
