//! UI message streams of Vercel's `ai`.

use super::Edit::{Before, Cut, Drop, Repeat, Swap};
use super::{accepts, allows, encode, refuses, verdict};

const TARGET: &str = "ai-sdk";

pub(super) const GOOD: &str = r#"
{"type":"start","messageId":"m"}
: keep-alive
{"type":"start-step"}
{"type":"reasoning-start","id":"0"}
{"type":"reasoning-delta","id":"0","delta":"hm"}
{"type":"text-start","id":"1"}
{"type":"text-delta","id":"1","delta":"Hello"}
{"type":"reasoning-end","id":"0","providerMetadata":{"deltafold":{"signature":"s"}}}
{"type":"tool-input-start","toolCallId":"a","toolName":"f","dynamic":true}
{"type":"tool-input-delta","toolCallId":"a","inputTextDelta":"{}"}
{"type":"text-delta","id":"1","delta":"","providerMetadata":{"deltafold":{}}}
{"type":"text-end","id":"1"}
{"type":"tool-input-available","toolCallId":"a","toolName":"f","input":{},"dynamic":true}
{"type":"tool-input-start","toolCallId":"b","toolName":"g","inputEncoding":"text"}
{"type":"tool-input-error","toolCallId":"b","toolName":"g","input":"raw","errorText":"cut off"}
{"type":"source-url","sourceId":"s","url":"u","title":"t"}
{"type":"source-document","sourceId":"d","mediaType":"application/pdf","title":"t"}
{"type":"file","url":"data:image/png;base64,AA==","mediaType":"image/png"}
{"type":"data-part","data":null}
{"type":"finish-step"}
{"type":"finish","finishReason":"tool-calls","messageMetadata":{"usage":{"inputTokens":1}}}
[DONE]
"#;

const ERROR: &str = r#"{"type":"error","errorText":"m"}"#;

#[test]
fn a_ui_message_stream_with_everything_is_lawful() {
    accepts(TARGET, GOOD);
    accepts(TARGET, &format!("{}\n{ERROR}\n[DONE]", Cut("text-end").apply(GOOD)));
    accepts(
        TARGET,
        &format!("{}\n{}\n[DONE]", Cut("text-end").apply(GOOD), r#"{"type":"abort","reason":"r"}"#),
    );
    accepts(TARGET, &format!("{}\n{}", Cut("text-end").apply(GOOD), r#"{"type":"abort"}"#));
    allows(
        TARGET,
        GOOD,
        &[Swap(r#""finishReason":"tool-calls""#, r#""finishReason":"other""#), Drop("\"Hello\"")],
    );
}

#[test]
fn a_ui_message_stream_with_a_defect_is_refused() {
    refuses(
        TARGET,
        GOOD,
        &[
            (Drop(r#""type":"start","#), "`start` must come first"),
            (Repeat(r#""type":"start","#), "`start` came twice"),
            (Drop("start-step"), "`start-step` must follow `start`"),
            (Repeat("start-step"), "`start-step` is not a part"),
            (Drop("text-start"), r#"the text part "1" was not started"#),
            (Repeat("text-start"), r#"the text part "1" was used before"#),
            (
                Swap(r#""text-delta","id":"1""#, r#""text-delta","id":"2""#),
                r#"the text part "2" was not started"#,
            ),
            (Repeat("text-end"), r#"the text part "1" has ended"#),
            (Drop("text-end"), r#"the text part "1" is open at `finish-step`"#),
            (Drop("reasoning-end"), r#"the reasoning part "0" is open at `finish-step`"#),
            (Swap(r#""delta":"Hello""#, r#""delta":"""#), "an empty `delta` carries nothing"),
            (Swap(r#""delta":"Hello""#, r#""textDelta":"Hello""#), "`delta` is missing"),
            (
                Swap(r#"{"deltafold":{"signature":"s"}}"#, r#"{"deltafold":"s"}"#),
                "`providerMetadata.deltafold` must be an object",
            ),
            (
                Swap(
                    r#""providerMetadata":{"deltafold":{"signature":"s"}}"#,
                    r#""providerMetadata":null"#,
                ),
                "`providerMetadata` must not be null",
            ),
            (Drop("tool-input-start"), r#"the call "a" was not started"#),
            (Repeat("tool-input-start"), r#"the toolCallId "a" was used before"#),
            (
                Swap(r#""toolName":"f","input""#, r#""toolName":"g","input""#),
                "`toolName` must be \"f\"",
            ),
            (Swap(r#""input":{},"dynamic":true"#, r#""input":{}"#), "`dynamic` differs"),
            (Swap(r#""input":{}"#, r#""input":null"#), "`input` must not be null"),
            (Repeat("tool-input-available"), r#"the call "a" has ended"#),
            (Drop("tool-input-error"), r#"the call "b" is open at `finish-step`"#),
            (Swap(r#","errorText":"cut off""#, ""), "`errorText` is missing"),
            (
                Swap(r#""inputEncoding":"text""#, r#""inputEncoding":"raw""#),
                "`inputEncoding` must be \"text\"",
            ),
            (Swap(r#","mediaType":"image/png""#, ""), "`mediaType` is missing"),
            (Swap(r#""title":"t""#, r#""title":null"#), "`title` must not be null"),
            (Swap("data-part", "custom"), "`data` must not be null"),
            (Swap("source-url", "reset-step"), "`reset-step` is not a part"),
            (Swap(r#""sourceId":"d","#, ""), "`sourceId` is missing"),
            (Drop("finish-step"), "`finish` is not a part"),
            (Repeat("finish-step"), "only `finish` may follow `finish-step`"),
            (
                Swap(r#""finishReason":"tool-calls""#, r#""finishReason":"interrupted""#),
                "`finishReason` must be one of",
            ),
            (Swap(r#""finishReason":"tool-calls","#, ""), "`finishReason` is missing"),
            (Drop(r#""type":"finish","#), "`[DONE]` before `finish`"),
            (Repeat(r#""type":"finish","#), "only `[DONE]` may follow"),
            (Drop("[DONE]"), "ends without `[DONE]`"),
            (Repeat("[DONE]"), "nothing may follow `[DONE]`"),
            (Before("[DONE]", ": keep-alive"), "a comment after the terminal"),
            (Before("[DONE]", ERROR), "only `[DONE]` may follow"),
            (Before("text-start", "@text {}"), "the target has no event names"),
        ],
    );
    let failed = format!("{}\n{ERROR}\n[DONE]", Cut("text-end").apply(GOOD));
    refuses(
        TARGET,
        &failed,
        &[
            (Drop("[DONE]"), "ends without `[DONE]`"),
            (Swap(r#","errorText":"m""#, ""), "`errorText` is missing"),
            (Repeat("errorText"), "only `[DONE]` may follow"),
        ],
    );
    let no_call = Drop("tool-input-available")
        .apply(&Drop("tool-input-delta").apply(&Drop("tool-input-start").apply(GOOD)));
    let violation = verdict(TARGET, &encode(TARGET, &no_call)).unwrap_err();
    assert!(violation.rule.contains("but no call was written"), "{violation}");
}
