//! Bodies that a hostile server may send, for checks that their cost is linear in their bytes.
//!
//! In: an approximate number of bytes.  Out: the feeds of a stream that also holds some text.

use crate::streams::{FEED_BYTES, text};

/// Length of the longest id in these bodies; `Limits::identifier_bytes` is a little greater.
const LONG_BYTES: usize = 60_000;

fn feeds(body: &str) -> Vec<Vec<u8>> {
    let mut events = text("openai-chat", 1);
    let end = events.pop();
    events.push(body.as_bytes().to_vec());
    events.extend(end);
    events.concat().chunks(FEED_BYTES).map(<[u8]>::to_vec).collect()
}

fn chunk(index: usize, members: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":{index},{members}}}]}}}}]}}\n\n"
    )
}

/// Return a body with blank lines between two events.
pub fn blank_lines(bytes: usize) -> Vec<Vec<u8>> {
    feeds(&"\n".repeat(bytes))
}

/// Return a body with two calls, whose ids are half of the body and whose arguments alternate.
pub fn long_ids(bytes: usize) -> Vec<Vec<u8>> {
    let id = "c".repeat((bytes / 4).min(LONG_BYTES));
    let opening = |index: usize| {
        let function = "\"function\":{\"name\":\"f\",\"arguments\":\"\\\"\"}";
        chunk(index, &format!("\"id\":\"{id}{index}\",{function}"))
    };
    let more = |index: usize| chunk(index, "\"function\":{\"arguments\":\"1\"}");
    let turn = more(0) + &more(1);
    let turns = bytes.saturating_sub(2 * id.len()) / turn.len();
    feeds(&(opening(0) + &opening(1) + &turn.repeat(turns)))
}

/// Return a body with a usage record of half a kilobyte, and many small ones that are merged into it.
pub fn usage_records(bytes: usize) -> Vec<Vec<u8>> {
    let long = "x".repeat(500);
    let record = |members: &str| format!("data: {{\"choices\":[],\"usage\":{{{members}}}}}\n\n");
    let first = record(&format!("\"prompt_tokens\":1,\"{long}\":0"));
    let count = bytes.saturating_sub(first.len()) / 60;
    let more = (0..count).map(|count| record(&format!("\"completion_tokens\":{count}")));
    feeds(&more.fold(first, |body, record| body + &record))
}

/// Return a body of the Messages API with calls, images and unknown parts before its text, one part a feed.
pub fn parts_without_text(bytes: usize) -> Vec<Vec<u8>> {
    let block = |index: usize| {
        let content = match index % 3 {
            0 => format!(
                "{{\"type\":\"tool_use\",\"id\":\"call_{index}\",\"name\":\"f\",\"input\":{{}}}}"
            ),
            1 => {
                "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://a.example/b\"}}"
                    .to_owned()
            }
            _ => "{\"type\":\"new_block\",\"x\":1}".to_owned(),
        };
        format!(
            "data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{content}}}\n\n\
             data: {{\"type\":\"content_block_stop\",\"index\":{index}}}\n\n"
        )
        .into_bytes()
    };
    let mut events = text("anthropic-messages", 1);
    let answer = events.split_off(1);
    let mut made = 0;
    for block in (1..).map(block) {
        made += block.len();
        events.push(block);
        if made >= bytes {
            break;
        }
    }
    events.extend(answer);
    events
}

/// Return a body of distinct lines that are not fields.
pub fn noise(bytes: usize) -> Vec<Vec<u8>> {
    let lines = (0..bytes / 12).map(|line| format!("{line:010}x\n"));
    feeds(&lines.fold(String::new(), |body, line| body + &line))
}
