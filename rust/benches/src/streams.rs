//! Bodies of streams: text, text in frames with different skeletons, tool arguments, log probabilities.
//!
//! In: a dialect and a size.  Out: events, and the same bytes in feeds.
//!
//! Law: events have the size of real ones: 301 bytes for Chat with its padding member, 126 for Anthropic, 297 for Responses,
//! 287 for Gemini.

use deltafold::json::write_string;

/// Dialects with a benchmark for every kind of stream.
pub const DIALECTS: [&str; 2] = ["anthropic-messages", "openai-chat"];

/// Streams whose stages are measured, with their dialects.
pub const STAGED: [(&str, &str); 5] = [
    ("anthropic-messages", "anthropic-messages"),
    ("gemini", "gemini"),
    (GROWING_COUNTS, "gemini"),
    ("openai-chat", "openai-chat"),
    ("openai-responses", "openai-responses"),
];

/// Stream of Gemini with changing token counts.  Newer models update the counts with most chunks, so every other chunk here
/// gives two deltas.
const GROWING_COUNTS: &str = "gemini, counts that grow";

/// Size of a large feed in bytes.
pub const FEED_BYTES: usize = 16 << 10;

const WORDS: [&str; 10] =
    [" the", " stream", " of", " words", " flows", " on", ",", " and", " folds", " up"];

/// Members before the text, which give adjacent frames different skeletons.
const PADDING: [&str; 7] = [
    "",
    "\"p\":[],",
    "\"p\":{},",
    "\"p\":[[]],",
    "\"p\":[{}],",
    "\"p\":[1,[2]],",
    "\"p\":{\"g\":[]},",
];

/// Return the words of a text, repeated as often as needed.
pub fn words(count: usize) -> impl Iterator<Item = &'static str> {
    WORDS.iter().copied().cycle().take(count)
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

fn chat(padding: &str, choice: &str, rest: &str) -> Vec<u8> {
    format!(
        "data: {{{padding}\"id\":\"chatcmpl-C5vyvpkVGXKzJvbjMV6HzCEmnmNYE\",\"object\":\"chat.completion.chunk\",\
         \"created\":1795000000,\"model\":\"gpt-5-mini-2025-08-07\",\"service_tier\":\"default\",\
         \"system_fingerprint\":null,\"choices\":[{choice}],\"usage\":null,{rest}\"obfuscation\":\"xJ3kQ9aWcZ\"}}\n\n"
    )
    .into_bytes()
}

fn chat_delta(padding: &str, delta: &str, finish_reason: &str) -> Vec<u8> {
    let choice = format!(
        "{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish_reason}}}"
    );
    chat(padding, &choice, "")
}

fn anthropic(kind: &str, members: &str) -> Vec<u8> {
    format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{members}}}\n\n").into_bytes()
}

fn anthropic_delta(padding: &str, kind: &str, member: &str, text: &str) -> Vec<u8> {
    let text = quoted(text);
    anthropic(
        "content_block_delta",
        &format!(",{padding}\"index\":0,\"delta\":{{\"type\":\"{kind}\",\"{member}\":{text}}}"),
    )
}

fn anthropic_start(block: &str) -> Vec<Vec<u8>> {
    let message = ",\"message\":{\"id\":\"msg_01QyV2n8hHkVYzJ4sEwZ3bTx\",\"type\":\"message\",\"role\":\"assistant\",\
                   \"model\":\"claude-sonnet-4-5-20250929\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\
                   \"usage\":{\"input_tokens\":12,\"output_tokens\":1}}";
    vec![
        anthropic("message_start", message),
        anthropic("content_block_start", &format!(",\"index\":0,\"content_block\":{block}")),
    ]
}

fn anthropic_end(stop_reason: &str) -> Vec<Vec<u8>> {
    let delta = format!(
        ",\"delta\":{{\"stop_reason\":\"{stop_reason}\",\"stop_sequence\":null}},\"usage\":{{\"output_tokens\":9}}"
    );
    vec![
        anthropic("content_block_stop", ",\"index\":0"),
        anthropic("message_delta", &delta),
        anthropic("message_stop", ""),
    ]
}

fn chat_end(finish_reason: &str) -> Vec<Vec<u8>> {
    vec![chat_delta("", "{}", &quoted(finish_reason)), b"data: [DONE]\n\n".to_vec()]
}

/// Return a chunk of Gemini.
fn gemini(padding: &str, tokens: usize, part: &str, rest: &str) -> Vec<u8> {
    format!(
        "data: {{{padding}\"candidates\":[{{\"content\":{{\"parts\":[{part}],\"role\":\"model\"}}{rest},\"index\":0}}],\
         \"usageMetadata\":{{\"promptTokenCount\":12,\"candidatesTokenCount\":{tokens},\"totalTokenCount\":{},\
         \"promptTokensDetails\":[{{\"modality\":\"TEXT\",\"tokenCount\":12}}]}},\
         \"modelVersion\":\"gemini-3-flash-preview\",\"responseId\":\"dqHOab6xGLzWodAPkPuViA4\"}}\r\n\r\n",
        tokens + 12
    )
    .into_bytes()
}

fn response(padding: &str, kind: &str, members: &str) -> Vec<u8> {
    format!("event: response.{kind}\ndata: {{\"type\":\"response.{kind}\",{padding}{members}}}\n\n")
        .into_bytes()
}

fn response_delta(padding: &str, at: usize, text: &str) -> Vec<u8> {
    let members = format!(
        "\"sequence_number\":{at},\"item_id\":\"msg_68c1e4b5f0a48190a2d3e7b19c5f8d46\",\"output_index\":0,\
         \"content_index\":0,\"delta\":{},\"logprobs\":[],\"obfuscation\":\"xJ3kQ9aWcZ\"",
        quoted(text)
    );
    response(padding, "output_text.delta", &members)
}

fn text_events(
    dialect: &str,
    count: usize,
    padding: impl Fn(usize) -> &'static str,
) -> Vec<Vec<u8>> {
    let texts = words(count).enumerate();
    if dialect == "openai-chat" {
        let mut events = vec![chat_delta("", "{\"role\":\"assistant\",\"content\":\"\"}", "null")];
        events.extend(texts.map(|(at, word)| {
            chat_delta(padding(at), &format!("{{\"content\":{}}}", quoted(word)), "null")
        }));
        events.extend(chat_end("stop"));
        return events;
    }
    if dialect == "gemini" || dialect == GROWING_COUNTS {
        let tokens = |at: usize| if dialect == GROWING_COUNTS { at / 2 } else { 1 };
        let part = |word: &str| format!("{{\"text\":{}}}", quoted(word));
        let mut events: Vec<Vec<u8>> =
            texts.map(|(at, word)| gemini(padding(at), tokens(at), &part(word), "")).collect();
        events.push(gemini("", count, &part(""), ",\"finishReason\":\"STOP\""));
        return events;
    }
    if dialect == "openai-responses" {
        let about = |status: &str| {
            format!(
                "\"response\":{{\"id\":\"resp_1\",\"model\":\"gpt-5-mini\",\"status\":\"{status}\",\"output\":[]}}"
            )
        };
        let mut events = vec![response("", "created", &about("in_progress"))];
        events.extend(texts.map(|(at, word)| response_delta(padding(at), at, word)));
        events.push(response("", "completed", &about("completed")));
        return events;
    }
    let mut events = anthropic_start("{\"type\":\"text\",\"text\":\"\"}");
    events.extend(texts.map(|(at, word)| anthropic_delta(padding(at), "text_delta", "text", word)));
    events.extend(anthropic_end("end_turn"));
    events
}

/// Return a text of this number of deltas.
pub fn text(dialect: &str, deltas: usize) -> Vec<Vec<u8>> {
    text_events(dialect, deltas, |_| "")
}

/// Return a text in frames of seven alternating skeletons, so that adjacent frames differ.
pub fn restless(dialect: &str, deltas: usize) -> Vec<Vec<u8>> {
    text_events(dialect, deltas, |at| PADDING.get(at % PADDING.len()).copied().unwrap_or_default())
}

/// Return the arguments of a tool call that writes a file, as at least `bytes` bytes of JSON text.
pub fn arguments_text(bytes: usize) -> String {
    let line = "def greet(name):\n\treturn \"hello, \" + name\n\n";
    let quoted_line = quoted(line);
    let lines = bytes / (quoted_line.len() - 2) + 1;
    format!("{{\"path\":\"a.py\",\"text\":{}}}", quoted(&line.repeat(lines)))
}

/// Return a tool call whose arguments arrive in deltas of `delta_bytes` bytes.
pub fn arguments(dialect: &str, text: &str, delta_bytes: usize) -> Vec<Vec<u8>> {
    // The text is ASCII, so that every cut falls between characters.
    let deltas = text.as_bytes().chunks(delta_bytes).map(|delta| String::from_utf8_lossy(delta));
    if dialect == "openai-chat" {
        let call = "{\"tool_calls\":[{\"index\":0,\"id\":\"call_9Xb1\",\"type\":\"function\",\
                    \"function\":{\"name\":\"write\",\"arguments\":\"\"}}]}";
        let mut events = vec![chat_delta("", call, "null")];
        events.extend(deltas.map(|delta| {
            let delta = format!(
                "{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":{}}}}}]}}",
                quoted(&delta)
            );
            chat_delta("", &delta, "null")
        }));
        events.extend(chat_end("tool_calls"));
        return events;
    }
    let mut events = anthropic_start(
        "{\"type\":\"tool_use\",\"id\":\"toolu_9Xb1\",\"name\":\"write\",\"input\":{}}",
    );
    events.extend(
        deltas.map(|delta| anthropic_delta("", "input_json_delta", "partial_json", &delta)),
    );
    events.extend(anthropic_end("tool_use"));
    events
}

/// Return a token and its log probability, without the closing brace.  The number has the digits of a real float.
fn token(word: &str, at: u32, rank: u32) -> String {
    let logprob = -f64::from(rank) - f64::from(at % 9_973) / 9_973.0;
    let bytes: Vec<String> = word.bytes().map(|byte| byte.to_string()).collect();
    let (word, bytes) = (quoted(word), bytes.join(","));
    format!("{{\"token\":{word},\"logprob\":{logprob:?},\"bytes\":[{bytes}]")
}

/// Return the list items of log probabilities: one for each token, with its alternatives.
fn entries(tokens: usize, alternatives: u32) -> impl Iterator<Item = (&'static str, String)> {
    words(tokens).zip(0..).map(move |(word, at)| {
        let top: Vec<String> = (0..alternatives).map(|rank| token(word, at, rank) + "}").collect();
        (word, format!("{},\"top_logprobs\":[{}]}}", token(word, at, 0), top.join(",")))
    })
}

/// Return a Chat text with the log probabilities of every token and of its alternatives.
pub fn logprobs(tokens: usize, alternatives: u32) -> Vec<Vec<u8>> {
    let mut events = vec![chat_delta("", "{\"role\":\"assistant\",\"content\":\"\"}", "null")];
    events.extend(entries(tokens, alternatives).map(|(word, entry)| {
        let word = quoted(word);
        let choice = format!(
            "{{\"index\":0,\"delta\":{{\"content\":{word}}},\"logprobs\":{{\"content\":[{entry}],\"refusal\":null}},\
             \"finish_reason\":null}}"
        );
        chat("", &choice, "")
    }));
    events.extend(chat_end("stop"));
    events
}

/// Return the text of [`logprobs`] as a whole body.
pub fn logprobs_body(tokens: usize, alternatives: u32) -> Vec<u8> {
    let (said, entries): (String, Vec<String>) = entries(tokens, alternatives).unzip();
    format!(
        "{{\"id\":\"chatcmpl-C5vyvpkVGXKzJvbjMV6HzCEmnmNYE\",\"object\":\"chat.completion\",\"created\":1795000000,\
         \"model\":\"gpt-5-mini-2025-08-07\",\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\
         \"content\":{},\"refusal\":null}},\"logprobs\":{{\"content\":[{}],\"refusal\":null}},\
         \"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":12,\"completion_tokens\":{tokens},\
         \"total_tokens\":{}}}}}",
        quoted(&said),
        entries.join(","),
        tokens + 12
    )
    .into_bytes()
}

/// Return the same bytes in feeds of [`FEED_BYTES`].
pub fn large_feeds(events: &[Vec<u8>]) -> Vec<Vec<u8>> {
    events.concat().chunks(FEED_BYTES).map(<[u8]>::to_vec).collect()
}
