//! AG-UI runs.

use super::Edit::{Append, Before, Cut, Drop, Flip, Repeat, Swap};
use super::{accepts, allows, refuses};

const TARGET: &str = "ag-ui";

pub(super) const GOOD: &str = r#"
{"type":"RUN_STARTED","threadId":"t","runId":"r","timestamp":7}
: keep-alive
{"type":"REASONING_START","messageId":"r1"}
{"type":"REASONING_MESSAGE_START","messageId":"r1","role":"reasoning"}
{"type":"REASONING_MESSAGE_CONTENT","messageId":"r1","delta":"hm"}
{"type":"REASONING_MESSAGE_END","messageId":"r1"}
{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"r1","encryptedValue":"xx"}
{"type":"REASONING_END","messageId":"r1"}
{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Hello"}
{"type":"TOOL_CALL_START","toolCallId":"a","toolCallName":"f","parentMessageId":"m1"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":" you"}
{"type":"TEXT_MESSAGE_END","messageId":"m1"}
{"type":"TOOL_CALL_ARGS","toolCallId":"a","delta":"{}"}
{"type":"TOOL_CALL_END","toolCallId":"a"}
{"type":"REASONING_ENCRYPTED_VALUE","subtype":"tool-call","entityId":"a","encryptedValue":"yy"}
{"type":"CUSTOM","name":"deltafold.part","value":null}
{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success","pendingToolCallIds":["a"]},"usage":[{"model":"m","inputTokens":9,"outputTokens":5,"totalTokens":14,"reasoningTokens":2,"cachedInputTokens":3}]}
"#;

const ERROR: &str = r#"{"type":"RUN_ERROR","message":"m","code":"overloaded"}"#;

#[test]
fn a_run_with_everything_is_lawful() {
    accepts(TARGET, GOOD);
    accepts(TARGET, &format!("{}\n{ERROR}", Cut("TEXT_MESSAGE_END").apply(GOOD)));
    allows(
        TARGET,
        GOOD,
        &[
            Swap(r#"{"type":"success","pendingToolCallIds":["a"]}"#, r#"{"type":"cancelled"}"#),
            Swap(r#","totalTokens":14"#, ""),
            Swap(
                r#""runId":"r","outcome""#,
                r#""runId":"r","metadata":{"finishReason":"length"},"outcome""#,
            ),
        ],
    );
}

#[test]
fn a_run_with_a_defect_is_refused() {
    refuses(
        TARGET,
        GOOD,
        &[
            (Drop("RUN_STARTED"), "`RUN_STARTED` must come first (got REASONING_START)"),
            (Repeat("RUN_STARTED"), "`RUN_STARTED` came twice"),
            (Swap(r#""threadId":"t","#, ""), "`threadId` is missing"),
            (Swap(r#""timestamp":7"#, r#""timestamp":null"#), "`timestamp` must not be null"),
            (Swap(r#""timestamp":7"#, r#""timestamp":"now""#), "`timestamp` must be an integer"),
            (Drop("REASONING_START"), "`REASONING_MESSAGE_START` without `REASONING_START`"),
            (Drop("REASONING_MESSAGE_START"), r#"the reasoning message "r1" was not started"#),
            (
                Swap(r#""role":"reasoning""#, r#""role":"assistant""#),
                "`role` must be \"reasoning\"",
            ),
            (Drop("REASONING_MESSAGE_END"), "is open at `REASONING_END`"),
            (Drop("REASONING_END"), r#"the reasoning "r1" is open at `RUN_FINISHED`"#),
            (
                Swap(r#""entityId":"r1""#, r#""entityId":"r9""#),
                "`entityId` must be the id of a message",
            ),
            (
                Swap(r#""entityId":"a""#, r#""entityId":"m1""#),
                "`entityId` must be the id of a tool-call",
            ),
            (Swap(r#""subtype":"message""#, r#""subtype":"text""#), "`subtype` must be one of"),
            (Drop("TEXT_MESSAGE_START"), r#"the text message "m1" was not started"#),
            (Swap(r#""role":"assistant""#, r#""role":"user""#), "`role` must be \"assistant\""),
            (Repeat("TEXT_MESSAGE_START"), r#"the text message "m1" was used before"#),
            (Repeat("TEXT_MESSAGE_END"), r#"the text message "m1" has ended"#),
            (Drop("TEXT_MESSAGE_END"), r#"the text message "m1" is open at `RUN_FINISHED`"#),
            (
                Swap(
                    r#"TEXT_MESSAGE_START","messageId":"m1""#,
                    r#"TEXT_MESSAGE_START","messageId":"r1""#,
                ),
                "was used before",
            ),
            (Flip(r#""delta":" you""#), r#"the text message "m1" has ended"#),
            (
                Swap(r#""delta":"Hello""#, r#""delta":"""#),
                "`delta` must be a string that is not empty",
            ),
            (
                Swap(r#","parentMessageId":"m1""#, r#","parentMessageId":null"#),
                "`parentMessageId` must not be null",
            ),
            (Swap(r#","toolCallName":"f""#, ""), "`toolCallName` is missing"),
            (Drop("TOOL_CALL_START"), r#"the call "a" was not started"#),
            (Drop("TOOL_CALL_END"), r#"the call "a" is open at `RUN_FINISHED`"#),
            (Flip("TOOL_CALL_ARGS"), r#"the call "a" has ended"#),
            (Swap(r#","value":null"#, ""), "`value` is missing"),
            (Swap("\"CUSTOM\"", "\"TEXT_MESSAGE_CHUNK\""), "`TEXT_MESSAGE_CHUNK` is not an event"),
            (
                Swap(r#""pendingToolCallIds":["a"]"#, r#""pendingToolCallIds":["b"]"#),
                "must be the id of a call of the run",
            ),
            (
                Swap(r#""pendingToolCallIds":["a"]"#, r#""pendingToolCallIds":[]"#),
                "pendingToolCallIds` must be absent",
            ),
            (
                Swap(r#""type":"success""#, r#""type":"cancelled""#),
                "absent, or ids of calls after a success",
            ),
            (Swap(r#""type":"success""#, r#""type":"done""#), "`outcome.type` must be one of"),
            (
                Swap(r#""totalTokens":14"#, r#""totalTokens":15"#),
                "`usage[0].totalTokens` must be 14",
            ),
            (
                Swap(r#""inputTokens":9"#, r#""inputTokens":null"#),
                "`usage[0].inputTokens` must not be null",
            ),
            (
                Swap(r#"RUN_FINISHED","threadId":"t""#, r#"RUN_FINISHED","threadId":"u""#),
                "`threadId` must repeat",
            ),
            (
                Swap(r#""inputTokens":9,"#, ""),
                "`usage[0].totalTokens` must be absent without the counts of its sum",
            ),
            (Swap(r#""reasoningTokens":2"#, r#""reasoningTokens":6"#), "at most 5"),
            (Drop("RUN_FINISHED"), "ends without `RUN_FINISHED`"),
            (Append("[DONE]"), "nothing may follow `RUN_FINISHED`"),
            (Before("RUN_FINISHED", "[DONE]"), "the target has no `[DONE]`"),
            (Append(ERROR), "nothing may follow `RUN_FINISHED`"),
            (Append(": keep-alive"), "nothing may follow `RUN_FINISHED`"),
            (Before("RUN_FINISHED", "@message {}"), "the target has no event names"),
        ],
    );
    let failed = format!("{}\n{ERROR}", Cut("TEXT_MESSAGE_END").apply(GOOD));
    refuses(
        TARGET,
        &failed,
        &[
            (Repeat("RUN_ERROR"), "nothing may follow"),
            (Swap(r#""message":"m","#, ""), "`message` is missing"),
            (Swap(r#""code":"overloaded""#, r#""code":null"#), "`code` must not be null"),
        ],
    );
}
