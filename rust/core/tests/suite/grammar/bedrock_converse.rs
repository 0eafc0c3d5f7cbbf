//! ConverseStream bodies.

use super::Edit::{Append, Cut, Drop, Flip, Repeat, Swap};
use super::{accepts, allows, encode, refuses, verdict, write_frame, write_header};

const TARGET: &str = "bedrock-converse";

pub(super) const GOOD: &str = r#"
messageStart {"role":"assistant"}
contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}
contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"sig"}}}
contentBlockStop {"contentBlockIndex":0}
keepAlive {}
contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"Hello"}}
contentBlockDelta {"contentBlockIndex":1,"delta":{"citation":{"title":"t"}}}
contentBlockStop {"contentBlockIndex":1}
contentBlockStart {"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"a","name":"f"}}}
contentBlockDelta {"contentBlockIndex":2,"delta":{"toolUse":{"input":"{}"}}}
contentBlockStop {"contentBlockIndex":2}
contentBlockStart {"contentBlockIndex":3,"start":{"toolResult":{"toolUseId":"s"}}}
contentBlockDelta {"contentBlockIndex":3,"delta":{"toolResult":[{"text":"x"}]}}
contentBlockStop {"contentBlockIndex":3}
messageStop {"stopReason":"tool_use"}
metadata {"usage":{"inputTokens":9,"outputTokens":5,"totalTokens":17,"cacheReadInputTokens":3},"metrics":{"latencyMs":0},"p":"abc"}
"#;

const EXCEPTION: &str = r#"!throttlingException {"message":"m"}"#;

#[test]
fn a_converse_stream_with_everything_is_lawful() {
    accepts(TARGET, GOOD);
    accepts(TARGET, EXCEPTION);
    accepts(TARGET, &format!("{}\n{EXCEPTION}", Cut("citation").apply(GOOD)));
    allows(
        TARGET,
        GOOD,
        &[Drop("signature"), Drop(r#"{"input":"{}"}"#), Swap("tool_use", "end_turn")],
    );
}

#[test]
fn a_converse_stream_with_a_defect_is_refused() {
    refuses(
        TARGET,
        GOOD,
        &[
            (Drop("messageStart"), "`messageStart` must come first"),
            (Repeat("messageStart"), "`messageStart` came twice"),
            (Swap(r#""role":"assistant""#, r#""role":"user""#), "`role` must be \"assistant\""),
            (
                Swap(r#""contentBlockIndex":1,"#, r#""contentBlockIndex":2,"#),
                "`contentBlockIndex` must be 1 (got 2)",
            ),
            (
                Drop(r#"contentBlockStop {"contentBlockIndex":0"#),
                "`contentBlockIndex` must be 0 (got 1)",
            ),
            (
                Repeat(r#"contentBlockStop {"contentBlockIndex":0"#),
                "`contentBlockStop` without an open block",
            ),
            (
                Swap(r#"{"reasoningContent":{"signature":"sig"}}"#, r#"{"text":"x"}"#),
                "`delta.text` does not fit a block of `reasoningContent`",
            ),
            (Flip(r#""text":"hm""#), "nothing may follow the signature"),
            (Swap(r#""signature":"sig""#, r#""signature":"""#), "a string that is not empty"),
            (
                Swap(
                    r#"{"reasoningContent":{"text":"hm"}}"#,
                    r#"{"reasoningContent":{"thinking":"hm"}}"#,
                ),
                "must be text, signature or redactedContent",
            ),
            (
                Swap(r#"{"text":"Hello"}"#, r#"{"text":"Hello","citation":{}}"#),
                "must be an object with one member",
            ),
            (Drop(r#""start":{"toolUse""#), "without the `contentBlockStart` of its call"),
            (
                Swap(r#""start":{"toolUse":{"toolUseId":"a","name":"f"}}"#, r#""start":{}"#),
                "`start` must be an object with one member",
            ),
            (Swap(r#","name":"f""#, ""), "`start.toolUse.name` is missing"),
            (
                Swap(r#"{"input":"{}"}"#, r#"{"input":{}}"#),
                "`delta.toolUse.input` must be a string",
            ),
            (
                Swap(r#""stopReason":"tool_use""#, r#""stopReason":"tool_calls""#),
                "`stopReason` must be one of",
            ),
            (
                Drop(r#"contentBlockStop {"contentBlockIndex":3"#),
                "block 3 is open at `messageStop`",
            ),
            (Drop("messageStop"), "`messageStop` must come before `metadata`"),
            (Repeat("messageStop"), "only `metadata` may follow"),
            (Swap(r#""totalTokens":17"#, r#""totalTokens":14"#), "`usage.totalTokens` must be 17"),
            (Swap(r#""inputTokens":9,"#, ""), "`usage.inputTokens` is missing"),
            (Swap(r#","metrics":{"latencyMs":0}"#, ""), "`metrics` is missing"),
            (Drop("metadata"), "ends without `metadata`"),
            (Repeat("metadata"), "nothing may follow `metadata`"),
            (Append(EXCEPTION), "nothing may follow `metadata`"),
            (Append("keepAlive {}"), "nothing may follow `metadata`"),
            (Swap("keepAlive {}", "keepAlive { }"), "the JSON holds white space"),
        ],
    );
    refuses(
        TARGET,
        EXCEPTION,
        &[
            (Swap("throttling", "Throttling"), "`:exception-type` must be one of"),
            (Swap("message", "Message"), "`message` is missing"),
            (Append(EXCEPTION), "nothing may follow"),
        ],
    );
    let no_call = Swap("tool_use", "end_turn")
        .apply(GOOD)
        .replace(r#"{"toolUse":{"toolUseId":"a","name":"f"}}"#, r#"{"image":{"format":"png"}}"#)
        .replace(r#"{"toolUse":{"input":"{}"}}"#, r#"{"image":{}}"#);
    refuses(TARGET, &no_call, &[(Swap("end_turn", "tool_use"), "but no call was written")]);
}

#[test]
fn a_frame_with_a_flipped_bit_is_refused() {
    let body = encode(TARGET, EXCEPTION);
    for at in 0..body.len() {
        let mut bad = body.clone();
        bad[at] ^= 1;
        let violation = verdict(TARGET, &bad).unwrap_err();
        let prelude = if at < 12 {
            "the CRC of the prelude is wrong"
        } else {
            "the CRC of the frame is wrong"
        };
        assert_eq!(violation.rule, prelude, "byte {at}");
    }
    for cut in 1..body.len() {
        let violation = verdict(TARGET, &body[..cut]).unwrap_err();
        assert_eq!(violation.rule, "the body ends inside an event", "cut {cut}");
    }
}

#[test]
fn the_headers_of_a_frame_are_checked() {
    let frame = |headers: &[(&str, &str)]| {
        let mut block = Vec::new();
        for (name, value) in headers {
            write_header(&mut block, name, value).unwrap();
        }
        let mut out = Vec::new();
        write_frame(&mut out, &block, b"{}").unwrap();
        verdict(TARGET, &out).unwrap_err().rule
    };
    let json = (":content-type", "application/json");
    let event = (":message-type", "event");
    let name = (":event-type", "keepAlive");
    for (headers, words) in [
        (vec![event, name], "the header `:content-type` is missing"),
        (vec![json, name], "the header `:message-type` is missing"),
        (vec![json, event], "the header `:event-type` is missing"),
        (vec![json, event, name, event], "the header `:message-type` stands in the frame twice"),
        (
            vec![(":content-type", "text/plain"), event, name],
            "`:content-type` must be \"application/json\"",
        ),
        (
            vec![json, (":message-type", "error"), name],
            "`:message-type` must be \"event\" or \"exception\"",
        ),
        (vec![json, (":message-type", "exception")], "the header `:exception-type` is missing"),
        (vec![json, event, name], "ends without `metadata`"),
    ] {
        assert!(frame(&headers).contains(words), "{headers:?}: {}", frame(&headers));
    }
    let mut out = Vec::new();
    write_frame(&mut out, b"\x01a\x00", b"{}").unwrap();
    assert_eq!(
        verdict(TARGET, &out).unwrap_err().rule,
        "the header `a` must be a string (got type 0)"
    );
    out.clear();
    let many: Vec<u8> = (0..17).flat_map(|at| [1, b'a' + at, 7, 0, 0]).collect();
    write_frame(&mut out, &many, b"{}").unwrap();
    assert_eq!(verdict(TARGET, &out).unwrap_err().rule, "the frame has more than 16 headers");
    out.clear();
    write_frame(&mut out, b"\x01a\x07\x00\x09b", b"{}").unwrap();
    assert_eq!(verdict(TARGET, &out).unwrap_err().rule, "a header is cut off");
}
