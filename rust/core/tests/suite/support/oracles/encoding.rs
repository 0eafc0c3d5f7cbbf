//! Any lawful deltas become a stream that obeys the grammar of every target, and says the same text there.

#![allow(
    clippy::allow_attributes,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "an oracle fails loudly, and where it stands"
)]

use std::sync::Arc;

use deltafold::contract::{
    Delta, ErrorCode, Failure, FinishReason, InputFormat, Laws, Logprobs, Output, Payload,
    TextAttributes, Usage,
};
use deltafold::encode::{DeclinedCalls, Encoder, Settings, TARGETS};
use deltafold::fold::{MessageAssembler, Terminal};

use super::super::{Checked, Owned, decode, fold};

const TEXTS: [&str; 8] =
    ["a", "\"\\\n", "\u{85}\u{2028}\u{2029}", "é😀", "{", "{}", "data: x\n\n", "[DONE]"];
const IDS: [&str; 4] = ["call_a", "call_b", "c\"\u{2028}", "toolu_é"];
const NAMES: [&str; 3] = ["f", "", "get weather"];
const ARGS: [&str; 6] = ["{}", "{\"a\":", "1}", "[1]", "not JSON", "\"{\\\"a\\\":1}\""];
const STATES: [&str; 9] = [
    "{\"dialect\":\"anthropic-messages\",\"modelId\":\"m\",\"data\":{\"signature\":\"YWJj\"}}",
    "{\"dialect\":\"anthropic-messages\",\"modelId\":\"m\",\"data\":{\"type\":\"redacted_thinking\",\"data\":\"x\"}}",
    "{\"dialect\":\"gemini\",\"modelId\":\"m\",\"data\":{\"thoughtSignature\":\"YWJj\"}}",
    "{\"dialect\":\"openai-responses\",\"modelId\":\"m\",\"data\":{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"x\"}}",
    "{\"dialect\":\"bedrock-converse\",\"modelId\":\"m\",\"data\":{\"signature\":\"s\"}}",
    "{\"dialect\":\"cohere-chat\",\"modelId\":\"m\",\"data\":{\"type\":\"tool_plan\"}}",
    "{\"dialect\":\"mistral\",\"modelId\":\"\",\"data\":{}}",
    "{\"dialect\":\"openai-responses\",\"modelId\":\"m\",\"data\":{\"id\":\"msg_1\",\"type\":\"message\",\"phase\":\"x\"}}",
    "{\"dialect\":\"openai-chat\",\"modelId\":\"m\",\"data\":{\"audio\":{\"id\":\"a\"}}}",
];
const PARTS: [&str; 11] = [
    "{\"kind\":\"image\",\"payload\":{\"mimeType\":\"image/png\",\"data\":\"YWJj\"}}",
    "{\"kind\":\"image\",\"payload\":{\"mimeType\":\"image/png\",\"url\":\"https://a.b/c\"}}",
    "{\"kind\":\"provider\",\"payload\":{\"dialect\":\"mistral\",\"block\":{\"type\":\"x\"}}}",
    "{\"kind\":\"provider\",\"payload\":{\"dialect\":\"anthropic-messages\",\"block\":{ \"type\" : \"server_tool_use\",\n\"id\":\"s\",\"name\":\"n\",\"input\":{}}}}",
    "{\"kind\":\"image\",\"payload\":{\"mimeType\":\"image/*\",\"url\":\"\"}}",
    "{\"kind\":\"provider\",\"payload\":{\"dialect\":\"openai-chat\",\"block\":{\"type\":\"audio\",\"id\":null,\n\"data\":\"AA==\"}}}",
    "{\"kind\":\"provider\",\"payload\":{\"dialect\":\"openai-chat\",\"block\":{\"type\":\"audio\"}}}",
    "{\"kind\":\"provider\",\"payload\":{\"dialect\":\"bedrock-converse\",\"block\":{ \"toolUse\" :{\"toolUseId\":\"s\",\"name\":\"n\",\"type\":\"server_tool_use\",\n\"input\":\"\\u2028{\"}}}}",
    "{\"kind\":\"provider\",\"payload\":{\"dialect\":\"bedrock-converse\",\"block\":{\"toolUse\":{\"input\":{}}}}}",
    "{\"kind\":\"provider\",\"payload\":{\"dialect\":\"bedrock-converse\",\"block\":{\"image\":{\"format\":\"png\",\"error\":{}}}}}",
    "{\"kind\":\"provider\",\"payload\":{\"dialect\":\"bedrock-converse\",\"block\":{\"toolResult\":{},\"x\":1}}}",
];
const AUDIO: [&str; 3] = ["AAAA", "", "UklG"];
const ANNOTATIONS: [&str; 5] = [
    "[{\"type\":\"url_citation\",\"url\":\"https://a.b\"}]",
    "[{\"type\":\"other\"}]",
    "[{\"type\":\"citations\",\"citations\":[\"https://a.b\"]}]",
    "[{\"type\":\"url_citation\",\"url_citation\":{\"url\":\"https://a.b\",\"content\":\"c\"}}]",
    "[{\"title\":\"t\",\"location\":{\"web\":{\"url\":\"https://a.b\"}}},{}]",
];

/// Texts of the input itself, beside those that every script may say.
#[derive(Clone, Copy, Debug)]
struct Texts<'a>(&'a str);

impl<'a> Texts<'a> {
    fn get(self, known: &[&'a str], which: u8, length: u8) -> &'a str {
        if which < 128 || self.0.is_empty() {
            return pick(known, which);
        }
        let boundary = |at: usize| {
            (at..self.0.len()).find(|at| self.0.is_char_boundary(*at)).unwrap_or(self.0.len())
        };
        let start = boundary(usize::from(which) * 3 % self.0.len());
        let end = boundary(start + usize::from(length) + 1);
        &self.0[start..end]
    }
}

fn pick<T: Copy>(list: &[T], number: u8) -> T {
    list[usize::from(number) % list.len()]
}

/// The payload that four bytes stand for.
fn payload<'a>(
    bytes: [u8; 4],
    texts: Texts<'a>,
    logprobs: &'a Logprobs,
) -> Payload<&'a str, &'a Logprobs> {
    let [kind, a, b, c] = bytes;
    let part_index = Some(u32::from(b % 6));
    let attributes = TextAttributes {
        annotations: (c % 5 == 0).then(|| pick(&ANNOTATIONS, a)),
        refusal: c % 11 == 0,
        redacted: c % 7 == 0,
        logprobs: (c % 6 == 0).then_some(logprobs),
        provider_state: (c % 4 == 0).then(|| pick(&STATES, a)),
    };
    let text = if c % 3 == 0 { "" } else { texts.get(&TEXTS, a, c) };
    match kind % 16 {
        0..=3 => Payload::Text { text, part_index, attributes },
        4 | 5 => Payload::Thinking { text, part_index, attributes },
        6 | 7 => Payload::ToolCallStart {
            id: pick(&IDS, a),
            name: pick(&NAMES, c),
            part_index,
            input_format: if c % 5 == 0 { InputFormat::Text } else { InputFormat::Json },
            provider_state: (c % 6 == 0).then(|| pick(&STATES, b)),
        },
        8..=10 => Payload::ToolCallArgs {
            id: pick(&IDS, a),
            text: texts.get(&ARGS, c, b),
            part_index: (c % 7 == 0).then_some(u32::from(b % 6)),
        },
        11 => Payload::ToolCallEnd {
            id: pick(&IDS, a),
            part_index: (c % 7 == 0).then_some(u32::from(b % 6)),
            incomplete: c % 3 == 0,
            provider_state: (c % 6 == 0).then(|| pick(&STATES, b)),
        },
        12 => Payload::Usage(Usage {
            input: (c % 3 != 0).then_some(u64::from(a)),
            output: (c % 5 != 0).then_some(u64::from(b)),
            cache_read: (c % 2 == 0).then_some(u64::from(b)),
            cache_write: (c % 7 == 0).then_some(u64::from(a)),
            reasoning: (c % 4 == 0).then_some(u64::from(a)),
            ..Usage::default()
        }),
        13 => Payload::Part { part_index, part: pick(&PARTS, a) },
        14 => Payload::Audio { data: pick(&AUDIO, a) },
        _ => Payload::PartEnd { part_index: u32::from(b % 6) },
    }
}

/// Lawful deltas: what the laws refuse of the script is left out, and all calls end before the terminal.
fn lawful(script: &[[u8; 4]], texts: Texts<'_>, last: [u8; 2]) -> Vec<Owned> {
    let mut logprobs = Logprobs::default();
    logprobs.open();
    logprobs.set_token(deltafold::json::Str::plain("a"));
    logprobs.set_logprob(-0.5);
    let mut laws = Laws::default();
    let mut deltas: Vec<Owned> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    let mut add = |payload: Payload<&str, &Logprobs>, deltas: &mut Vec<Owned>| {
        let delta = Delta { seq: deltas.len() as u64 + 1, payload, provider_raw: None };
        let accepted = laws.check(&delta).is_ok();
        if accepted {
            deltas.push(delta.to_owned());
        }
        accepted
    };
    add(Payload::Start { model_id: "m", request_id: "r1" }, &mut deltas);
    for bytes in script {
        let payload = payload(*bytes, texts, &logprobs);
        if add(payload, &mut deltas) {
            match payload {
                Payload::ToolCallStart { id, .. } => open.push(id),
                Payload::ToolCallEnd { id, .. } => open.retain(|known| *known != id),
                _ => {}
            }
        }
    }
    for id in open {
        let incomplete = last[1].is_multiple_of(2);
        let end = Payload::ToolCallEnd { id, part_index: None, incomplete, provider_state: None };
        add(end, &mut deltas);
    }
    let terminal = if last[0].is_multiple_of(4) {
        Payload::Error(Failure::new(pick(ErrorCode::ALL, last[1]), pick(&TEXTS, last[1])))
    } else {
        Payload::Done {
            finish_reason: pick(FinishReason::ALL, last[1]),
            raw_finish_reason: (last[0].is_multiple_of(3)).then(|| pick(&TEXTS, last[1])),
            model_id: None,
            details: None,
            warnings: None,
        }
    };
    assert!(add(terminal, &mut deltas));
    deltas
}

fn settings(choice: u8) -> Settings {
    Settings {
        envelope: choice & 1 != 0,
        own_models: (choice & 64 != 0).then(Arc::default),
        hold: choice & 2 != 0,
        declined_calls: if choice & 128 == 0 { DeclinedCalls::Filter } else { DeclinedCalls::Hold },
        refusals_as_text: choice & 4 != 0,
        final_errors_end_turn: choice & 4 != 0,
        raw_reasoning: choice & 8 != 0,
        include_usage: choice & 16 == 0,
        incomplete_as_completed: choice & 32 != 0,
        ..Settings::default()
    }
}

/// Writes the deltas of a script in every target: the grammar holds, and a decoder reads the same text and the same end.
///
/// The bytes of `script` choose the deltas, those of `last` the end, those of `choice` the settings.
pub fn any_deltas(script: &[[u8; 4]], text: &str, last: [u8; 2], choice: u8) {
    let deltas = lawful(script, Texts(text), last);
    check(&deltas, choice);
}

fn check(deltas: &[Owned], choice: u8) {
    let source = fold(deltas);
    for target in TARGETS {
        let mut encoder = Checked::new(Encoder::new(target, settings(choice), false));
        for delta in deltas {
            encoder.delta(&delta.as_deref());
        }
        assert_eq!(encoder.violation(), None);
        assert!(encoder.ended(), "{}", target.name);
        let bytes = encoder.take();
        let reader = match target.name {
            "ag-ui" | "ai-sdk" | "langchain" => continue,
            "gemini-array" => "gemini",
            "ollama-generate" => "ollama",
            name => name,
        };
        if encoder.status() != Some(200) {
            assert!(encoder.failed());
            continue;
        }
        let back = fold(&decode(reader, &bytes));
        // Chat and Ollama have no parts: texts that interleave are written as they come.
        let in_order = !matches!(reader, "openai-chat" | "ollama");
        let said = |message: &MessageAssembler| {
            let mut characters: Vec<char> = message.text().chars().collect();
            if !in_order {
                characters.sort_unstable();
            }
            characters
        };
        assert_eq!(said(&back), said(&source), "{}", target.name);
        let failed = matches!(back.terminal(), Some(Terminal::Error(_)));
        let blocked = matches!(source.terminal(), Some(Terminal::Error(failure))
            if failure.code == ErrorCode::ContentBlocked && reader == "gemini");
        assert!(failed == encoder.failed() || blocked, "{}", target.name);
    }
}
