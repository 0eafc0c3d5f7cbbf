//! Streams of an agent's run.

use deltafold_grammar::Checker;

use super::Edit::{Before, Cut, Drop, Flip, Repeat, Swap};
use super::{accepts, refuses};

const AI_SDK: &str = r#"
{"type":"start"}
: keep-alive
{"type":"tool-input-available","toolCallId":"z","toolName":"f","input":{}}
{"type":"tool-output-available","toolCallId":"z","output":{"a":1}}
{"type":"start-step"}
{"type":"text-start","id":"0"}
{"type":"text-delta","id":"0","delta":"Half"}
{"type":"text-end","id":"0"}
{"type":"tool-input-start","toolCallId":"a","toolName":"f"}
{"type":"tool-input-error","toolCallId":"a","toolName":"f","input":"{","errorText":"cut"}
{"type":"reset-step"}
{"type":"data-deltafold-retry","data":{"seconds":0},"transient":true}
{"type":"tool-input-start","toolCallId":"a","toolName":"f"}
{"type":"tool-input-available","toolCallId":"a","toolName":"f","input":{}}
{"type":"tool-output-available","toolCallId":"a","output":0.5,"preliminary":true}
{"type":"tool-output-available","toolCallId":"a","output":"done"}
{"type":"finish-step"}
{"type":"steering-message","id":"s","parts":[{"type":"text","text":"And?"},{"type":"file","url":"u","mediaType":"m"}]}
{"type":"start-step"}
{"type":"tool-input-start","toolCallId":"b","toolName":"g"}
{"type":"tool-input-available","toolCallId":"b","toolName":"g","input":{}}
{"type":"tool-input-start","toolCallId":"c","toolName":"g"}
{"type":"tool-input-available","toolCallId":"c","toolName":"g","input":{}}
{"type":"tool-approval-request","approvalId":"C","toolCallId":"c"}
{"type":"tool-approval-response","approvalId":"C","approved":false,"reason":"no"}
{"type":"tool-output-denied","toolCallId":"c"}
{"type":"tool-approval-request","approvalId":"B","toolCallId":"b"}
{"type":"finish-step"}
{"type":"finish","finishReason":"tool-calls"}
[DONE]
"#;

const AG_UI: &str = r#"
{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TOOL_CALL_RESULT","messageId":"z-result","toolCallId":"z","content":"done","role":"tool"}
{"type":"STEP_STARTED","stepName":"1"}
{"type":"TOOL_CALL_START","toolCallId":"a","toolCallName":"f"}
{"type":"TOOL_CALL_END","toolCallId":"a"}
{"type":"TOOL_CALL_RESULT","messageId":"a-result","toolCallId":"a","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"data","value":"AA==","mimeType":"image/png"}}]}
{"type":"STEP_FINISHED","stepName":"1"}
{"type":"TEXT_MESSAGE_START","messageId":"i","role":"user"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"i","delta":"And?"}
{"type":"TEXT_MESSAGE_END","messageId":"i"}
{"type":"STEP_STARTED","stepName":"2"}
{"type":"TOOL_CALL_START","toolCallId":"b","toolCallName":"g"}
{"type":"TOOL_CALL_END","toolCallId":"b"}
{"type":"STEP_FINISHED","stepName":"2"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"B","reason":"tool_call","toolCallId":"b"}]}}
"#;

#[test]
fn a_ui_message_stream_of_a_run_is_lawful() {
    accepts("ai-sdk (run)", AI_SDK);
    let error = r#"{"type":"error","errorText":"m"}"#;
    accepts(
        "ai-sdk (run)",
        &format!("{}\n{error}\n[DONE]", Cut("tool-output-denied").apply(AI_SDK)),
    );
    refuses(
        "ai-sdk (run)",
        AI_SDK,
        &[
            (Drop(r#""toolCallId":"z","toolName""#), "whose input is not available"),
            (Drop(r#""toolCallId":"z","output""#), r#"the call "z" has no result at `start-step`"#),
            (Drop(r#""output":"done""#), r#"the call "a" has no result at `start-step`"#),
            (Repeat(r#""output":"done""#), r#"of the call "a", which has a result"#),
            (Drop("reset-step"), r#"the toolCallId "a" was used before"#),
            (Drop(r#""type":"tool-approval-request","approvalId":"C""#), "was not asked for"),
            (Drop(r#""approvalId":"B""#), r#"the call "b" has no result at `finish`"#),
            (Drop("finish-step"), "`steering-message` is not a part"),
            (Swap(r#""text":"And?""#, r#""text":"""#), "text"),
            (Flip("steering-message"), "`steering-message` is not a part"),
            (Repeat("steering-message"), "was used before"),
            (Before("steering-message", r#"{"type":"text-start","id":"9"}"#), "outside of a step"),
            (Swap("tool-output-denied", "tool-output-gone"), "is not a part of the target"),
            (Swap(r#","errorText":"cut""#, ""), "`errorText` is missing"),
            (Drop(r#""type":"finish","#), "`[DONE]` before `finish`"),
        ],
    );
}

#[test]
fn an_ag_ui_run_of_an_agent_is_lawful() {
    accepts("ag-ui (run)", AG_UI);
    accepts(
        "ag-ui (run)",
        &format!(
            "{}\n{}",
            Cut("RUN_FINISHED").apply(AG_UI),
            r#"{"type":"RUN_ERROR","message":"m"}"#
        ),
    );
    refuses(
        "ag-ui (run)",
        AG_UI,
        &[
            (Drop(r#""messageId":"a-result""#), r#"the call "a" has no result at `RUN_FINISHED`"#),
            (Repeat(r#""messageId":"a-result""#), r#"the result of "a" was used before"#),
            (Flip(r#""type":"TOOL_CALL_END","toolCallId":"a""#), "which is open"),
            (
                Swap(r#""toolCallId":"b"}]"#, r#""toolCallId":"a"}]"#),
                r#"the call "b" has no result"#,
            ),
            (
                Swap(r#"[{"id":"B","reason":"tool_call","toolCallId":"b"}]"#, "[]"),
                "without `interrupts`",
            ),
            (Drop("STEP_FINISHED"), "`STEP_STARTED` is not an event"),
            (Drop(r#""STEP_FINISHED","stepName":"2""#), r#"the step "2" is open"#),
            (Swap(r#""stepName":"2""#, r#""stepName":"1""#), r#"the step "1" was used before"#),
            (Swap(r#""role":"user""#, r#""role":"tool""#), "`role` must be one of"),
            (Swap(r#","mimeType":"image/png""#, ""), "mimeType"),
            (Swap(r#""type":"interrupt""#, r#""type":"paused""#), "`outcome.type` must be one of"),
        ],
    );
}

#[test]
fn other_targets_have_no_runs() {
    for name in deltafold_grammar::targets() {
        assert_eq!(Checker::of_run(name).is_some(), matches!(name, "ai-sdk" | "ag-ui"), "{name}");
    }
}
