//! Gemini streams in both framings.

use super::Edit::{Append, Before, Cut, Drop, Repeat, Swap};
use super::{accepts, allows, encode, refuses, verdict};

fn chunk(parts: &str, rest: &str) -> String {
    format!(
        r#"{{"candidates":[{{"index":0,"content":{{"role":"model","parts":[{parts}]}}{rest},"modelVersion":"m","responseId":"r1"}}"#
    )
}

pub(super) fn good() -> String {
    let usage = r#""usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":3,"thoughtsTokenCount":2,"candidatesTokenCount":4,"totalTokenCount":15}"#;
    [
        chunk(r#"{"text":"hm","thought":true}"#, "}]"),
        chunk(r#"{"text":"","thought":true,"thoughtSignature":"c2ln"}"#, "}]"),
        chunk(r#"{"text":"Hello"}"#, r#","logprobsResult":{"chosenCandidates":[],"topCandidates":[]}}]"#),
        chunk(r#"{"text":""}"#, "}]"),
        chunk(r#"{"functionCall":{"id":"a","name":"f","args":{"x":1}}},{"functionCall":{"id":"b","name":"g","args":{}}}"#, "}]"),
        chunk(r#"{"functionCall":{"id":"c","name":"h","willContinue":true}}"#, "}]"),
        chunk(r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"v"}],"willContinue":true}}"#, "}]"),
        chunk(r#"{"functionCall":{}}"#, "}]"),
        chunk(r#"{"inlineData":{"mimeType":"image/png","data":"AA=="}},{"executableCode":{"language":"PYTHON","code":"1"}}"#, "}]"),
        chunk(r#"{"text":""}"#, &format!(r#","finishReason":"STOP"}}],{usage}"#)),
    ]
    .join("\n")
}

const ERROR: &str = r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#;
const BLOCKED: &str =
    r#"{"promptFeedback":{"blockReason":"SAFETY"},"modelVersion":"m","responseId":"r1"}"#;

#[test]
fn a_gemini_stream_with_everything_is_lawful() {
    for target in ["gemini", "gemini-array"] {
        accepts(target, &good());
        accepts(target, ERROR);
        accepts(target, BLOCKED);
        accepts(target, &format!("{}\n{ERROR}", Cut("functionCall").apply(&good())));
        allows(
            target,
            &good(),
            &[
                Swap(r#""responseId":"r1""#, r#""responseId":"""#),
                Swap(
                    r#""finishReason":"STOP""#,
                    r#""finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"{""#,
                ),
                Swap(
                    r#""finishReason":"STOP""#,
                    r#""finishReason":"CONTINUATION","continuationToken":"t""#,
                ),
            ],
        );
    }
}

#[test]
fn a_gemini_stream_with_a_defect_is_refused() {
    for target in ["gemini", "gemini-array"] {
        refuses(
            target,
            &good(),
            &[
                (
                    Swap(r#"[{"text":"hm","thought":true}]"#, "[]"),
                    "`candidates[0].content.parts` must be a list that is not empty",
                ),
                (Swap(r#""index":0,"#, ""), "`candidates[0].index` is missing"),
                (
                    Swap(r#""role":"model""#, r#""role":"assistant""#),
                    "`candidates[0].content.role` must be \"model\"",
                ),
                (Swap(r#""modelVersion":"m","#, ""), "`modelVersion` is missing"),
                (
                    Swap(r#""functionCall":{"id":"c"#, r#""x":{"id":"c"#),
                    "`candidates[0].content.parts[0].functionCall.name` is missing",
                ),
                (
                    Swap(
                        r#""parts":[{"text":"Hello"}]},"logprobsResult":{"chosenCandidates":[],"topCandidates":[]}}],"modelVersion":"m","responseId":"r1""#,
                        r#""parts":[{"text":"Hello"}]}}],"modelVersion":"m","responseId":"r2""#,
                    ),
                    "`responseId` must repeat",
                ),
                (Swap(r#""thought":true"#, r#""thought":"yes""#), "thought` must be true or false"),
                (Swap("c2ln", "?!"), "thoughtSignature` must be base64"),
                (
                    Swap(r#""args":{"x":1}"#, r#""args":"{}""#),
                    "functionCall.args` must be an object",
                ),
                (
                    Swap(r#""args":{"x":1}"#, r#""args":null"#),
                    "functionCall.args` must be an object",
                ),
                (Swap(r#""id":"b","#, ""), "functionCall.id` is missing"),
                (Swap(r#""id":"b""#, r#""id":"a""#), r#"the id of the call "a" was used before"#),
                (Swap(r#"{"text":"Hello"}"#, "{}"), "must be a part with members"),
                (
                    Swap(r#"{"text":"Hello"}"#, r#"{"text":null}"#),
                    "parts[0].text` must be a string (got null)",
                ),
                (Swap(r#""topCandidates":[]"#, r#""top":[]"#), "topCandidates` is missing"),
                (
                    Swap(r#""finishReason":"STOP""#, r#""finishReason":"stop""#),
                    "finishReason` must be one of STOP",
                ),
                (
                    Swap(r#""finishReason":"STOP""#, r#""finishReason":"CONTINUATION""#),
                    "continuationToken` is missing",
                ),
                (
                    Swap(r#""finishReason":"STOP""#, r#""finishReason":"MALFORMED_FUNCTION_CALL""#),
                    "finishMessage` is missing",
                ),
                (
                    Swap(r#"{"text":""}]},"finishReason""#, r#"{"text":"x"}]},"finishReason""#),
                    "parts[0].text` must be \"\"",
                ),
                (
                    Swap(r#""totalTokenCount":15"#, r#""totalTokenCount":13"#),
                    "`usageMetadata.totalTokenCount` must be 15",
                ),
                (
                    Swap(r#""cachedContentTokenCount":3"#, r#""cachedContentTokenCount":10"#),
                    "at most 9",
                ),
                (
                    Swap(r#""promptTokenCount":9,"cachedContentTokenCount":3,"#, ""),
                    "totalTokenCount` without the counts of its sum",
                ),
                (Swap(r#"{"jsonPath":"$.a","#, "{"), "jsonPath` is missing"),
                (Repeat("finishReason"), "nothing may follow the last chunk"),
                (Append(ERROR), "nothing may follow the last chunk"),
                (Drop("finishReason"), "ends without a finish reason"),
                (Append(BLOCKED), "nothing may follow"),
                (Before("finishReason", BLOCKED), "`promptFeedback` after the first chunk"),
                (
                    Before("finishReason", r#"{"candidates":[],"usageMetadata":{}}"#),
                    "`modelVersion` is missing",
                ),
                (
                    Before(
                        "finishReason",
                        r#"{"candidates":[],"modelVersion":"m","responseId":"r1"}"#,
                    ),
                    "`candidates` must hold one candidate (got 0)",
                ),
            ],
        );
        refuses(
            target,
            ERROR,
            &[
                (Swap(r#""code":503"#, r#""code":"503""#), "`error.code` must be an integer"),
                (Swap(r#""code":503"#, r#""code":200"#), "a number from 400 to 599"),
                (Swap(r#"{"error""#, r#"{"candidates":[],"error""#), "`candidates` must be absent"),
                (Swap("UNAVAILABLE", "overloaded"), "`error.status` must be one of"),
                (Append(ERROR), "nothing may follow"),
            ],
        );
        refuses(
            target,
            BLOCKED,
            &[
                (
                    Swap(r#""modelVersion""#, r#""candidates":[],"modelVersion""#),
                    "`candidates` must be absent",
                ),
                (Append(BLOCKED), "nothing may follow"),
            ],
        );
    }
    refuses(
        "gemini",
        &good(),
        &[
            (Append("[DONE]"), "nothing may follow"),
            (Before("Hello", "[DONE]"), "the target has no `[DONE]`"),
            (Before("Hello", ": keep-alive"), "the target allows no comments"),
            (Before("Hello", "@chunk {}"), "the target has no event names"),
        ],
    );
    // The usage of an earlier chunk would be taken for the last one.
    let early = good().replacen(r#""modelVersion""#, r#""usageMetadata":{},"modelVersion""#, 1);
    let violation = verdict("gemini", &encode("gemini", &early)).unwrap_err();
    assert_eq!(
        violation.to_string(),
        "gemini, event 1: `usageMetadata` must be absent: the usage comes with the finish reason"
    );
}
