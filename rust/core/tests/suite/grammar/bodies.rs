//! Whole bodies: answers that were not streamed, and the errors of refused requests.

use deltafold_grammar::check_body;

fn refuses(target: &str, status: u16, body: &str, words: &str) {
    let violation = check_body(target, status, body.as_bytes()).unwrap_err();
    assert!(violation.rule.contains(words), "{target} {status}: {violation} lacks {words:?}");
}

/// Check a lawful body, and its changes with the words that name the defect.
fn table(target: &str, status: u16, good: &str, rows: &[(&str, &str, &str)]) {
    check_body(target, status, good.as_bytes()).unwrap();
    for (from, to, words) in rows {
        assert!(good.contains(from), "{target}: {from:?} is not in the body");
        refuses(target, status, &good.replacen(from, to, 1), words);
    }
    refuses(target, status, &good[..good.len() - 1], "not JSON");
    refuses(target, status, &good.replacen(':', ": ", 1), "white space");
}

#[test]
fn a_chat_body_is_checked() {
    let good = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"annotations":[]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#;
    table(
        "openai-chat",
        200,
        good,
        &[
            ("chat.completion", "chat.completion.chunk", "`object` must be"),
            (r#""content":null,"#, "", "message.content` is missing"),
            (r#""refusal":null,"#, "", "message.refusal` is missing"),
            (r#""arguments":"{}""#, r#""arguments":{}"#, "function.arguments` must be a string"),
            (
                r#""finish_reason":"tool_calls""#,
                r#""finish_reason":null"#,
                "finish_reason` must be",
            ),
            (
                r#"{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}"#,
                "",
                "but no call was written",
            ),
            (r#""total_tokens":3"#, r#""total_tokens":4"#, "total_tokens` must be 3"),
        ],
    );
    table(
        "openai-chat",
        429,
        r#"{"error":{"message":"m","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}"#,
        &[
            (r#""message":"m","#, "", "`error.message` is missing"),
            (r#""param":null,"#, "", "`error.param` is missing"),
            ("rate_limit_error", "throttled", "`error.type` must be one of"),
        ],
    );
    refuses("openai-chat", 400, good, "`id` must be absent");
}

#[test]
fn a_messages_body_is_checked() {
    let good = r#"{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"text","text":"t"},{"type":"tool_use","id":"a","name":"f","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}"#;
    table(
        "anthropic-messages",
        200,
        good,
        &[
            (
                r#""stop_reason":"tool_use""#,
                r#""stop_reason":null"#,
                "`stop_reason` must be a string",
            ),
            (r#""input":{}"#, r#""input":"{}""#, "input` must be an object"),
            (r#","signature":"s""#, "", "signature` is missing"),
            (r#","usage":{"input_tokens":1,"output_tokens":2}"#, "", "`usage` is missing"),
            (
                r#",{"type":"tool_use","id":"a","name":"f","input":{}}"#,
                "",
                "but no call was written",
            ),
        ],
    );
    table(
        "anthropic-messages",
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}"#,
        &[
            (r#","request_id":"r""#, "", "`request_id` is missing"),
            ("overloaded_error", "overloaded", "`error.type` must be one of"),
            (r#""type":"error","#, "", "`type` is missing"),
        ],
    );
}

#[test]
fn a_responses_body_is_checked() {
    let good = r#"{"id":"r","object":"response","created_at":1,"status":"completed","model":"m","output":[{"id":"fc","type":"function_call","call_id":"a","name":"f","arguments":"{}","status":"completed"}],"error":null,"incomplete_details":null,"instructions":null,"metadata":{},"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"temperature":null,"top_p":null,"usage":null}"#;
    table(
        "openai-responses",
        200,
        good,
        &[
            (r#""status":"completed""#, r#""status":"in_progress""#, "`status` must be one of"),
            (
                r#""status":"completed""#,
                r#""status":"incomplete""#,
                "`incomplete_details` must be an object",
            ),
            (r#""status":"completed""#, r#""status":"failed""#, "`error` must be an object"),
            (r#""call_id":"a","#, "", "`output[0].call_id` is missing"),
            (r#""arguments":"{}","#, "", "`output[0].arguments` is missing"),
            (r#""usage":null"#, r#""usage":{}"#, "`usage.input_tokens` is missing"),
        ],
    );
    table(
        "openai-responses",
        500,
        r#"{"error":{"message":"m","type":"server_error","param":null,"code":null}}"#,
        &[(r#","code":null"#, "", "`error.code` is missing")],
    );
}

#[test]
fn a_gemini_body_is_checked() {
    let good = r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"t"},{"functionCall":{"id":"a","name":"f","args":{}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"totalTokenCount":3},"modelVersion":"m","responseId":"r"}"#;
    let error = r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}"#;
    for target in ["gemini", "gemini-array"] {
        table(
            target,
            200,
            good,
            &[
                (r#","finishReason":"STOP""#, "", "finishReason` is missing"),
                (r#""args":{}"#, r#""args":[]"#, "args` must be an object"),
                (r#""totalTokenCount":3"#, r#""totalTokenCount":4"#, "totalTokenCount` must be 3"),
            ],
        );
        table(target, 429, error, &[("429", "42", "a number from 400 to 599")]);
        check_body(target, 400, br#"{"promptFeedback":{"blockReason":"SAFETY"}}"#).unwrap();
    }
}

#[test]
fn an_ollama_body_is_checked() {
    let chat = r#"{"model":"m","created_at":"2026-11-01T10:00:00Z","message":{"role":"assistant","content":"t","tool_calls":[{"id":"a","function":{"index":0,"name":"f","arguments":{}}}]},"done":true,"done_reason":"stop"}"#;
    table(
        "ollama",
        200,
        chat,
        &[
            (r#""done":true,"done_reason":"stop""#, r#""done":false"#, "`done` must be true"),
            (r#""arguments":{}"#, r#""arguments":"""#, "arguments` must be an object"),
        ],
    );
    let generate = r#"{"model":"m","created_at":"2026-11-01T10:00:00Z","response":"t","done":true,"done_reason":"stop"}"#;
    table("ollama-generate", 200, generate, &[(r#""response":"t","#, "", "`response` is missing")]);
    table(
        "ollama",
        404,
        r#"{"error":"m"}"#,
        &[(r#""m""#, r#"{"message":"m"}"#, "`error` must be a string")],
    );
}

#[test]
fn a_converse_body_is_checked() {
    let good = r#"{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}},{"text":"t"},{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3},"metrics":{"latencyMs":0}}"#;
    table(
        "bedrock-converse",
        200,
        good,
        &[
            (r#""input":{}"#, r#""input":"{}""#, "toolUse.input` must be an object"),
            (r#""stopReason":"tool_use""#, r#""stopReason":"stop""#, "`stopReason` must be one of"),
            (r#","metrics":{"latencyMs":0}"#, "", "`metrics` is missing"),
            (r#"{"text":"t"}"#, "{}", "must be an object with one member"),
            (r#","name":"f""#, "", "toolUse.name` is missing"),
        ],
    );
    table(
        "bedrock-converse",
        429,
        r#"{"message":"m"}"#,
        &[("message", "Message", "`message` is missing")],
    );
}

#[test]
fn a_target_without_whole_bodies_has_error_texts_only() {
    for target in ["ag-ui", "ai-sdk", "langchain"] {
        check_body(target, 500, b"the model failed").unwrap();
        refuses(target, 500, "", "the body must hold the message");
        refuses(target, 200, "{}", "the target has no whole body");
    }
    refuses("cohere-chat", 200, "{}", "unknown target \"cohere-chat\"");
    assert_eq!(check_body("ollama", 200, b"\xFF").unwrap_err().rule, "the event is not UTF-8");
}
