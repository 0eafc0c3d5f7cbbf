//! Responses streams.

use super::Edit::{Append, Before, Cut, Drop, Flip, Repeat, Swap};
use super::{accepts, allows, refuses};

const TARGET: &str = "openai-responses";

/// A response object.
fn response(status: &str, output: &str, rest: &str) -> String {
    format!(
        r#"{{"id":"r1","object":"response","created_at":7,"status":"{status}","model":"m","output":[{output}],{rest},"instructions":null,"metadata":{{}},"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"temperature":null,"top_p":null}}"#
    )
}

fn event(kind: &str, members: &str) -> String {
    format!(r#"{{"type":"{kind}","sequence_number":#,{members}}}"#)
}

const OPEN: &str = r#""error":null,"incomplete_details":null,"usage":null"#;
const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}],"encrypted_content":"xx"}"#;
const RAW: &str = r#"{"id":"rs_2","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"raw"}]}"#;
const MESSAGE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello","annotations":[{"type":"url_citation","url":"u"}],"logprobs":[{"token":"Hel","logprob":-1,"bytes":[1],"top_logprobs":[]}]}]}"#;
const REFUSAL: &str = r#"{"id":"msg_2","type":"message","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"no"}]}"#;
const CALL: &str = r#"{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","namespace":"n","arguments":"{\"a\":1}","status":"completed"}"#;
const CUSTOM: &str =
    r#"{"id":"ctc_1","type":"custom_tool_call","call_id":"call_2","name":"p","input":"patch"}"#;
const SEARCH: &str = r#"{"id":"ws_1","type":"web_search_call","status":"completed"}"#;

/// The two events of a message without a part.
const EMPTY_MESSAGE: &str = r#"{"type":"response.output_item.added","sequence_number":#,"output_index":5,"item":{"id":"msg_9","type":"message","role":"assistant","status":"in_progress","content":[]}}
{"type":"response.output_item.done","sequence_number":#,"output_index":5,"item":{"id":"msg_9","type":"message","role":"assistant","status":"completed","content":[]}}"#;

fn output() -> String {
    [REASONING, RAW, MESSAGE, REFUSAL, CALL, CUSTOM, SEARCH].join(",")
}

fn items() -> Vec<String> {
    let at = |id: &str, index: u64, rest: &str| {
        format!(r#""item_id":"{id}","output_index":{index},{rest}"#)
    };
    let item = |index: u64, item: &str| format!(r#""output_index":{index},"item":{item}"#);
    let added = "response.output_item.added";
    let done = "response.output_item.done";
    let mut events =
        vec![event(added, &item(0, r#"{"id":"rs_1","type":"reasoning","summary":[]}"#))];
    for (index, text) in ["one", "two"].iter().enumerate() {
        let summary = |rest: &str| at("rs_1", 0, &format!(r#""summary_index":{index},{rest}"#));
        events.push(event(
            "response.reasoning_summary_part.added",
            &summary(r#""part":{"type":"summary_text","text":""}"#),
        ));
        events.push(event(
            "response.reasoning_summary_text.delta",
            &summary(&format!(r#""delta":"{text}""#)),
        ));
        events.push(event(
            "response.reasoning_summary_text.done",
            &summary(&format!(r#""text":"{text}""#)),
        ));
        events.push(event(
            "response.reasoning_summary_part.done",
            &summary(&format!(r#""part":{{"type":"summary_text","text":"{text}"}}"#)),
        ));
    }
    events.extend([
        event(done, &item(0, REASONING)),
        event(added, &item(1, r#"{"id":"rs_2","type":"reasoning","summary":[]}"#)),
        event("response.content_part.added", &at("rs_2", 1, r#""content_index":0,"part":{"type":"reasoning_text","text":""}"#)),
        event("response.reasoning_text.delta", &at("rs_2", 1, r#""content_index":0,"delta":"raw""#)),
        event("response.reasoning_text.done", &at("rs_2", 1, r#""content_index":0,"text":"raw""#)),
        event("response.content_part.done", &at("rs_2", 1, r#""content_index":0,"part":{"type":"reasoning_text","text":"raw"}"#)),
        event(done, &item(1, RAW)),
        event(added, &item(2, r#"{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}"#)),
        event("response.content_part.added", &at("msg_1", 2, r#""content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}"#)),
        event("response.output_text.delta", &at("msg_1", 2, r#""content_index":0,"delta":"Hel","logprobs":[{"token":"Hel","logprob":-1,"top_logprobs":[]}]"#)),
        r#"{"type":"keepalive","sequence_number":#}"#.to_owned(),
        event("response.output_text.delta", &at("msg_1", 2, r#""content_index":0,"delta":"lo","logprobs":[]"#)),
        event("response.output_text.annotation.added", &at("msg_1", 2, r#""content_index":0,"annotation_index":0,"annotation":{"type":"url_citation","url":"u"}"#)),
        event("response.output_text.done", &at("msg_1", 2, r#""content_index":0,"text":"Hello","logprobs":[{"token":"Hel","logprob":-1,"bytes":[1],"top_logprobs":[]}]"#)),
        event("response.content_part.done", &at("msg_1", 2, r#""content_index":0,"part":{"type":"output_text","text":"Hello","annotations":[{"type":"url_citation","url":"u"}],"logprobs":[{"token":"Hel","logprob":-1,"bytes":[1],"top_logprobs":[]}]}"#)),
        event(done, &item(2, MESSAGE)),
        event(added, &item(3, r#"{"id":"msg_2","type":"message","role":"assistant","status":"in_progress","content":[]}"#)),
        event("response.content_part.added", &at("msg_2", 3, r#""content_index":0,"part":{"type":"refusal","refusal":""}"#)),
        event("response.refusal.delta", &at("msg_2", 3, r#""content_index":0,"delta":"no""#)),
        event("response.refusal.done", &at("msg_2", 3, r#""content_index":0,"refusal":"no""#)),
        event("response.content_part.done", &at("msg_2", 3, r#""content_index":0,"part":{"type":"refusal","refusal":"no"}"#)),
        event(done, &item(3, REFUSAL)),
        event(added, &item(4, r#"{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","namespace":"n","arguments":"","status":"in_progress"}"#)),
        event("response.function_call_arguments.delta", &at("fc_1", 4, r#""delta":"{\"a\":""#)),
        event("response.function_call_arguments.delta", &at("fc_1", 4, r#""delta":"1}""#)),
        event("response.function_call_arguments.done", &at("fc_1", 4, r#""arguments":"{\"a\":1}""#)),
        event(done, &item(4, CALL)),
        event(added, &item(5, r#"{"id":"ctc_1","type":"custom_tool_call","call_id":"call_2","name":"p","input":""}"#)),
        event("response.custom_tool_call_input.delta", &at("ctc_1", 5, r#""delta":"patch""#)),
        event("response.custom_tool_call_input.done", &at("ctc_1", 5, r#""input":"patch""#)),
        event(done, &item(5, CUSTOM)),
        event(added, &item(6, r#"{"id":"ws_1","type":"web_search_call","status":"in_progress"}"#)),
        event("response.web_search_call.searching", &at("ws_1", 6, r#""x":1"#)),
        event(done, &item(6, SEARCH)),
    ]);
    events
}

pub(super) fn good() -> String {
    let usage = r#""usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":3},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":14}"#;
    let mut events = vec![
        ": keep-alive".to_owned(),
        event("response.created", &format!(r#""response":{}"#, response("in_progress", "", OPEN))),
        event(
            "response.in_progress",
            &format!(r#""response":{}"#, response("in_progress", "", OPEN)),
        ),
    ];
    events.extend(items());
    let rest = format!(r#""error":null,"incomplete_details":null,{usage}"#);
    let last = response("completed", &output(), &rest);
    events.push(event("response.completed", &format!(r#""response":{last}"#)));
    events.push("[DONE]".to_owned());
    events.join("\n")
}

/// A stream that fails inside of its first item.
fn failed() -> String {
    let error = event(
        "error",
        r#""code":"server_error","message":"m","param":null,"error":{"type":"server_error","code":"server_error","message":"m","param":null}"#,
    );
    let rest =
        r#""error":{"code":"server_error","message":"m"},"incomplete_details":null,"usage":null"#;
    let last = event("response.failed", &format!(r#""response":{}"#, response("failed", "", rest)));
    format!("{}\n{error}\n{last}", Cut("summary_text.done").apply(&good()))
}

#[test]
fn a_responses_stream_with_everything_is_lawful() {
    let good = good();
    accepts(TARGET, &good);
    accepts(TARGET, &failed());
    let incomplete = good
        .replace("response.completed", "response.incomplete")
        .replace(r#""status":"completed","model""#, r#""status":"incomplete","model""#);
    let (start, end) = incomplete.rsplit_once(r#""incomplete_details":null"#).unwrap();
    let incomplete =
        format!(r#"{start}"incomplete_details":{{"reason":"max_output_tokens"}}{end}"#);
    accepts(TARGET, &incomplete);
    refuses(
        TARGET,
        &incomplete,
        &[(Swap("max_output_tokens", "length"), "incomplete_details.reason` must be one of")],
    );
    let reordered = r#"{"type":"reasoning","id":"rs_2","summary":[],"content":[{"text":"raw","type":"reasoning_text"}]}"#;
    allows(
        TARGET,
        &good,
        &[
            Drop("[DONE]"),
            Drop(": keep-alive"),
            // The order of the members does not count.
            Swap(RAW, reordered),
        ],
    );
}

#[test]
fn a_responses_stream_with_a_defect_is_refused() {
    refuses(
        TARGET,
        &good(),
        &[
            (Drop("response.created"), "`response.created` must come first"),
            (Drop("response.in_progress"), "`response.in_progress` must follow"),
            (Repeat("response.in_progress"), "came twice"),
            (Before("response.in_progress", ": keep-alive"), "a comment may only come before"),
            (
                Swap(r#""sequence_number":#"#, r#""sequence_number":1"#),
                "`sequence_number` must be 0 (got 1)",
            ),
            (
                Swap(
                    r#"output_item.done","sequence_number":#"#,
                    r#"output_item.done","sequence_number":2"#,
                ),
                "`sequence_number` must be",
            ),
            (Swap(r#""created_at":7,"#, ""), "`response.created_at` is missing"),
            (Swap(r#","temperature":null"#, ""), "`response.temperature` is missing"),
            (Swap(r#""usage":null"#, r#""usage":{}"#), "`response.usage` must be null"),
            (
                Swap(r#"in_progress","model""#, r#"completed","model""#),
                "`response.status` must be \"in_progress\"",
            ),
            (Swap(r#""item_id":"msg_1""#, r#""item_id":"msg_9""#), "`item_id` must be \"msg_1\""),
            (
                Swap(r#""output_index":3"#, r#""output_index":4"#),
                "`output_index` must be 3 (got 4)",
            ),
            (
                Swap(r#""summary_index":1"#, r#""summary_index":0"#),
                "`summary_index` must be 1 (got 0)",
            ),
            (
                Swap(r#""annotation_index":0"#, r#""annotation_index":1"#),
                "`annotation_index` must be 0",
            ),
            (
                Swap(
                    r#"added","sequence_number":#,"output_index":5,"item":{"id":"ctc_1""#,
                    r#"added","sequence_number":#,"output_index":5,"item":{"id":"fc_1""#,
                ),
                r#"the id of the item "fc_1" was used before"#,
            ),
            (
                Swap(r#""call_id":"call_2""#, r#""call_id":"call_1""#),
                r#"the call_id "call_1" was used before"#,
            ),
            // The part was never added.
            (
                Drop(r#""part":{"type":"output_text","text":"""#),
                "`response.output_text.delta` without an open part",
            ),
            (
                Swap(
                    r#""part":{"type":"output_text","text":"""#,
                    r#""part":{"type":"output_text","text":"Hel""#,
                ),
                "`part.text` must be \"\"",
            ),
            (
                Swap(
                    r#""part":{"type":"output_text","text":"""#,
                    r#""part":{"type":"summary_text","text":"""#,
                ),
                "does not fit an item of type `message`",
            ),
            (
                Swap(
                    r#""delta":"Hel","logprobs":[{"token":"Hel","logprob":-1,"top_logprobs":[]}]"#,
                    r#""delta":"Hel""#,
                ),
                "`logprobs` is missing",
            ),
            (Swap(r#""delta":"lo""#, r#""delta":"""#), "an empty `delta` carries nothing"),
            (Swap(r#""delta":"lo""#, r#""delta":{"text":"lo"}"#), "`delta` must be a string"),
            (Flip(r#""delta":"lo""#), "text after the annotations"),
            (
                Swap(r#""text":"Hello","logprobs""#, r#""text":"","logprobs""#),
                "`text` must repeat what was written (5 bytes \"Hello\", got 0 bytes",
            ),
            (
                Swap(
                    r#"output_text.done","sequence_number":#,"item_id":"msg_1","output_index":2,"content_index":0,"text":"Hello","logprobs":[{"token":"Hel","logprob":-1,"bytes":[1],"top_logprobs":[]}]"#,
                    r#"output_text.done","sequence_number":#,"item_id":"msg_1","output_index":2,"content_index":0,"text":"Hello","logprobs":[]"#,
                ),
                "a list of the 1 tokens",
            ),
            (
                Swap(
                    r#""part":{"type":"output_text","text":"Hello""#,
                    r#""part":{"type":"output_text","text":"Hell""#,
                ),
                "`part.text` must repeat",
            ),
            (
                Swap(
                    r#""part":{"type":"output_text","text":"Hello","annotations":[{"type":"url_citation","url":"u"}]"#,
                    r#""part":{"type":"output_text","text":"Hello","annotations":[]"#,
                ),
                "must repeat the added annotations",
            ),
            (Drop("response.output_text.done"), "`response.output_text.done` must come before"),
            (Repeat("response.output_text.done"), "after `response.output_text.done`"),
            (Drop("response.content_part.done"), "part 0 is open when its item is done"),
            (
                Swap(
                    r#""item":{"id":"msg_2","type":"message","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"no"}]"#,
                    r#""item":{"id":"msg_2","type":"message","role":"assistant","status":"completed","content":[]"#,
                ),
                "`item.content` must be the 1 done parts",
            ),
            (
                Swap(
                    r#""status":"in_progress","content":[]"#,
                    r#""status":"completed","content":[]"#,
                ),
                "`item.status` must be \"in_progress\"",
            ),
            (
                Drop("function_call_arguments.done"),
                "`response.function_call_arguments.done` is missing",
            ),
            (Drop("response.refusal.delta"), "`refusal` must repeat what was written (0 bytes"),
            (
                Before(
                    r#""item":{"id":"msg_2","type":"message","role":"assistant","status":"completed""#,
                    r#"{"type":"response.content_part.added","sequence_number":#,"item_id":"msg_2","output_index":3,"content_index":1,"part":{"type":"refusal","refusal":""}}"#,
                ),
                "a message has one part (got a second one)",
            ),
            (
                Before(
                    "response.refusal.delta",
                    r#"{"type":"response.content_part.added","sequence_number":#,"item_id":"msg_2","output_index":3,"content_index":1,"part":{"type":"refusal","refusal":""}}"#,
                ),
                "part 0 is open: parts are serial",
            ),
            (
                Before(
                    r#""item":{"id":"rs_1","type":"reasoning","summary":[{"#,
                    r#"{"type":"response.content_part.added","sequence_number":#,"item_id":"rs_1","output_index":0,"content_index":2,"part":{"type":"reasoning_text","text":""}}"#,
                ),
                "an item has parts of one type",
            ),
            (
                Before(
                    r#""output_index":5,"item":{"id":"ctc_1","type":"custom_tool_call""#,
                    EMPTY_MESSAGE,
                ),
                "a message has one part (got none)",
            ),
            (
                Swap("response.output_text.annotation.added", "response.refusal.delta"),
                "does not fit a part of type `output_text`",
            ),
            (
                Swap(
                    r#""type":"custom_tool_call","call_id":"call_2","name":"p""#,
                    r#""type":"custom_tool_call","call_id":"call_2""#,
                ),
                "`item.name` is missing",
            ),
            (Repeat("function_call_arguments.done"), "after the arguments of the call were done"),
            (Swap(r#""arguments":"{\"a\":1}""#, r#""arguments":"{}""#), "`arguments` must repeat"),
            (
                Swap(
                    r#""name":"f","namespace":"n","arguments":"{"#,
                    r#""name":"g","namespace":"n","arguments":"{"#,
                ),
                "`item.name` differs from `output_item.added`",
            ),
            (
                Swap("custom_tool_call_input.delta", "function_call_arguments.delta"),
                "does not fit an item of type `custom_tool_call`",
            ),
            (
                Drop(r#"output_item.done","sequence_number":#,"output_index":2"#),
                "item 2 is open: items are serial",
            ),
            (
                Repeat(r#"output_item.done","sequence_number":#,"output_index":2"#),
                "without an open item",
            ),
            (
                Swap("response.web_search_call.searching", "response.private.event"),
                "`response.private.event` is not an event",
            ),
            (
                Swap("response.web_search_call.searching", "response.output_text.delta"),
                "does not fit an item of type `web_search_call`",
            ),
            (
                Swap(r#""summary":[{"type":"summary_text","text":"one"},"#, r#""summary":["#),
                "`item.summary` must be the 2 done parts",
            ),
            (
                Swap(
                    r#"completed","model":"m","output":[{"id":"rs_1""#,
                    r#"completed","model":"m","output":[{"id":"rs_7""#,
                ),
                "`response.output[0]` differs",
            ),
            (
                Swap(
                    r#"completed","model":"m","output":[{"#,
                    r#"completed","model":"m","output":[],"o":[{"#,
                ),
                "must hold the 7 done items (got 0)",
            ),
            (
                Swap(r#""total_tokens":14"#, r#""total_tokens":15"#),
                "`response.usage.total_tokens` must be 14",
            ),
            (Swap(r#""cached_tokens":3"#, r#""cached_tokens":null"#), "must be an integer"),
            (Cut("response.completed"), "ends without a terminal event"),
            (Repeat("[DONE]"), "nothing but one `[DONE]`"),
            (Append(r#"{"type":"keepalive","sequence_number":#}"#), "nothing but one `[DONE]`"),
            (Before("response.completed", "[DONE]"), "not JSON"),
            (
                Before("response.completed", r#"@response.completed {"type":"error"}"#),
                "`event:` must be \"error\"",
            ),
        ],
    );
    refuses(
        TARGET,
        &failed(),
        &[
            (Drop(r#""type":"error""#), "`error` must come before `response.failed`"),
            (Drop("response.failed"), "ends without a terminal event"),
            (
                Swap("response.failed", "response.completed"),
                "only `response.failed` may follow `error`",
            ),
            (
                Before("response.failed", r#"{"type":"keepalive","sequence_number":#}"#),
                "only `response.failed` may follow",
            ),
            (
                Swap(r#""error":{"code":"server_error","message":"m"}"#, r#""error":null"#),
                "`response.error` must be an object",
            ),
            (
                Swap(
                    r#""type":"server_error","code":"server_error""#,
                    r#""type":"server_error","code":"x""#,
                ),
                "`error.code` must be \"server_error\"",
            ),
        ],
    );
}
