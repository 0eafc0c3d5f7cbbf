//! The contract's grammar: each law broken once, lawful sequences accepted, and everything that the decoder puts out for
//! damaged bodies lawful, ended once, and the same in any chunking.

use std::sync::LazyLock;

use crate::support::decoder;
use crate::support::oracles::streams::{chunkings_agree, decode_lawfully};
use deltafold::contract::{
    ContractViolation, Delta, Destination, ErrorCode, Failure, FinishReason, InputFormat, Laws,
    Logprobs, Payload, TextAttributes, Usage,
};
use proptest::prelude::*;

fn start() -> Payload<&'static str> {
    Payload::Start { model_id: "m", request_id: "r" }
}

fn text(text: &'static str, part_index: Option<u32>) -> Payload<&'static str> {
    Payload::Text { text, part_index, attributes: TextAttributes::default() }
}

fn thinking(text: &'static str, part_index: Option<u32>) -> Payload<&'static str> {
    Payload::Thinking { text, part_index, attributes: TextAttributes::default() }
}

fn call(id: &'static str, part_index: Option<u32>) -> Payload<&'static str> {
    Payload::ToolCallStart {
        id,
        name: "f",
        part_index,
        input_format: InputFormat::Json,
        provider_state: None,
    }
}

fn args(id: &'static str) -> Payload<&'static str> {
    Payload::ToolCallArgs { id, text: "{", part_index: None }
}

fn end(id: &'static str) -> Payload<&'static str> {
    Payload::ToolCallEnd { id, part_index: None, incomplete: false, provider_state: None }
}

fn part(part_index: Option<u32>) -> Payload<&'static str> {
    Payload::Part { part_index, part: "{}" }
}

fn done() -> Payload<&'static str> {
    Payload::Done {
        finish_reason: FinishReason::Stop,
        raw_finish_reason: None,
        details: None,
        model_id: None,
        warnings: None,
    }
}

fn error() -> Payload<&'static str> {
    Payload::Error(Failure::new(ErrorCode::ServerError, "m"))
}

/// Checks payloads numbered from 1; returns the first violation, and the results of the payloads before it.
fn judge(payloads: &[Payload<&str>]) -> (Laws, Vec<Destination>, Option<ContractViolation>) {
    let mut laws = Laws::default();
    let mut places = Vec::new();
    for (payload, seq) in payloads.iter().zip(1..) {
        let before = laws.clone();
        match laws.check(&Delta { seq, payload: *payload, provider_raw: None }) {
            Ok(place) => places.push(place),
            Err(violation) => {
                assert_eq!(laws, before, "a violation changes nothing");
                return (laws, places, Some(violation));
            }
        }
    }
    (laws, places, None)
}

#[test]
fn each_law_broken_once() {
    type Row<'a> = (&'a [Payload<&'a str>], Option<&'a str>, &'a str);
    let rows: &[Row<'_>] = &[
        (&[text("a", None)], Some("kind"), "start must come first"),
        (&[done()], Some("kind"), "start must come first"),
        (&[error()], Some("kind"), "start must come first"),
        (&[Payload::Usage(Usage::default())], Some("kind"), "start must come first"),
        (&[start(), start()], Some("kind"), "start came twice"),
        (&[start(), done(), done()], None, "nothing may follow the terminal"),
        (&[start(), error(), text("a", None)], None, "nothing may follow the terminal"),
        (&[start(), done(), start()], None, "nothing may follow the terminal"),
        (&[start(), text("", None)], Some("textDelta"), "an empty textDelta carries nothing"),
        (
            &[start(), thinking("", Some(0))],
            Some("textDelta"),
            "an empty textDelta carries nothing",
        ),
        (&[start(), text("a", Some(1))], Some("partIndex"), "a new part must be number 0, not 1"),
        (
            &[start(), text("a", Some(0)), text("b", Some(2))],
            Some("partIndex"),
            "a new part must be number 1, not 2",
        ),
        (
            &[start(), text("a", Some(0)), thinking("b", Some(0))],
            Some("partIndex"),
            "part 0 is text, not thinking",
        ),
        (
            &[start(), call("c", Some(0)), text("b", Some(0))],
            Some("partIndex"),
            "part 0 is tool_call_start, not text",
        ),
        (&[start(), call("c", Some(1))], Some("partIndex"), "a new part must be number 0, not 1"),
        (&[start(), part(Some(7))], Some("partIndex"), "a new part must be number 0, not 7"),
        (
            &[start(), call("c", None), call("c", None)],
            Some("toolCallId"),
            "tool call id \"c\" was used before",
        ),
        (
            &[start(), call("c", None), end("c"), call("c", None)],
            Some("toolCallId"),
            "tool call id \"c\" was used before",
        ),
        (&[start(), args("c")], Some("toolCallId"), "tool call \"c\" has not started"),
        (&[start(), end("c")], Some("toolCallId"), "tool call \"c\" has not started"),
        (
            &[
                start(),
                call("c", None),
                Payload::ToolCallArgs { id: "c", text: "{", part_index: Some(1) },
            ],
            Some("partIndex"),
            "tool call \"c\" is part 0",
        ),
        (
            &[start(), Payload::Audio { data: "" }],
            Some("audioDelta"),
            "an empty audioDelta carries nothing",
        ),
        (
            &[start(), call("c", None), end("c"), args("c")],
            Some("toolCallId"),
            "tool call \"c\" has ended",
        ),
        (
            &[start(), call("c", None), end("c"), end("c")],
            Some("toolCallId"),
            "tool call \"c\" has ended",
        ),
        (&[start(), call("c", None), done()], None, "a tool call is open at the terminal"),
        (
            &[start(), call("c", None), call("d", None), end("c"), done()],
            None,
            "a tool call is open at the terminal",
        ),
    ];
    for (payloads, field, law) in rows {
        let (_, places, violation) = judge(payloads);
        let violation = violation.unwrap_or_else(|| panic!("no violation in {payloads:?}"));
        assert_eq!(places.len() + 1, payloads.len(), "the last one breaks it: {payloads:?}");
        assert_eq!((violation.field, violation.law.as_str()), (*field, *law));
        assert_eq!(violation.to_string(), format!("delta {}: {law}", payloads.len()));
    }
}

#[test]
fn only_a_decoder_ends_its_calls_before_an_error() {
    let payloads = [start(), call("c", None), error()];
    assert!(judge(&payloads).2.is_none());
    let mut laws = Laws::of_decoder();
    let mut last = Ok(Destination::Stream);
    for (payload, seq) in payloads.into_iter().zip(1..) {
        last = laws.check(&Delta { seq, payload, provider_raw: None });
    }
    assert_eq!(last.unwrap_err().law, "a tool call is open at the terminal");
}

#[test]
fn seq_rises_strictly_and_may_skip() {
    let mut laws = Laws::default();
    let mut check = |seq, payload| {
        laws.check(&Delta { seq, payload, provider_raw: None }).map_err(|violation| violation.law)
    };
    assert_eq!(check(0, start()), Err("seq must rise, the last was 0".to_owned()));
    assert!(check(5, start()).is_ok());
    assert_eq!(check(5, text("a", None)), Err("seq must rise, the last was 5".to_owned()));
    assert_eq!(check(4, text("a", None)), Err("seq must rise, the last was 5".to_owned()));
    assert!(check(9, text("a", None)).is_ok());
    assert_eq!(laws.last_seq(), 9);
}

static NO_TOKENS: LazyLock<Logprobs> = LazyLock::new(Logprobs::default);

#[test]
fn an_empty_text_leaves_with_each_rider_that_carries_it() {
    let attributes = |change: fn(&mut TextAttributes<&'static str>)| {
        let mut attributes = TextAttributes::default();
        change(&mut attributes);
        Payload::Text { text: "", part_index: None, attributes }
    };
    for payload in [
        attributes(|attributes| attributes.annotations = Some("[]")),
        attributes(|attributes| attributes.redacted = true),
        attributes(|attributes| attributes.logprobs = Some(&*NO_TOKENS)),
        attributes(|attributes| attributes.provider_state = Some("{}")),
    ] {
        assert_eq!(judge(&[start(), payload, done()]).2, None);
    }
    assert!(judge(&[start(), attributes(|attributes| attributes.refusal = true)]).2.is_some());
}

#[test]
fn deltas_are_told_their_place() {
    use Destination::{NewPart, Part, Stream};
    let (laws, places, violation) = judge(&[
        start(),
        thinking("a", Some(0)),
        text("b", Some(1)),
        thinking("c", Some(0)),
        text("d", None),
        thinking("e", None),
        call("c", None),
        call("d", Some(4)),
        args("c"),
        args("d"),
        end("c"),
        part(None),
        end("d"),
        text("f", None),
        Payload::Usage(Usage::default()),
        done(),
    ]);
    assert_eq!(violation, None);
    let expected = [
        Stream,
        NewPart(0),
        NewPart(1),
        Part(0),
        Part(1),
        NewPart(2),
        NewPart(3),
        NewPart(4),
        Part(3),
        Part(4),
        Part(3),
        NewPart(5),
        Part(4),
        NewPart(6),
        Stream,
        Stream,
    ];
    assert_eq!(places, expected);
    assert!(laws.ended());
}

/// A lawful sequence that follows these choices.
fn lawful(choices: &[(u8, u8)], fails: bool) -> Vec<Payload<&'static str>> {
    let mut kinds: Vec<u8> = Vec::new();
    let mut open: Vec<&'static str> = Vec::new();
    let mut payloads = vec![start()];
    let mut calls = 0;
    for (choice, which) in choices {
        let next = u32::try_from(kinds.len()).unwrap();
        match choice % 7 {
            kind @ (0 | 1) => {
                let known = kinds.iter().position(|known| *known == kind && which % 2 == 0);
                let index = known.map_or(next, |at| u32::try_from(at).unwrap());
                if known.is_none() {
                    kinds.push(kind);
                }
                let payload = if kind == 0 { text } else { thinking };
                payloads.push(payload("x", Some(index)));
            }
            2 => {
                let id: &'static str = format!("call_{calls}").leak();
                calls += 1;
                open.push(id);
                kinds.push(2);
                payloads.push(call(id, Some(next)));
            }
            3 if !open.is_empty() => payloads.push(args(open[usize::from(*which) % open.len()])),
            4 if !open.is_empty() => {
                payloads.push(end(open.remove(usize::from(*which) % open.len())));
            }
            5 => {
                kinds.push(5);
                payloads.push(part(Some(next)));
            }
            _ => payloads.push(Payload::Usage(Usage::default())),
        }
    }
    payloads.extend(open.into_iter().map(end));
    payloads.push(if fails { error() } else { done() });
    payloads
}

/// Bodies by hand: text, thinking, calls, odd blocks, usage, errors, of both dialects.
const BODIES: &[(&str, &str)] = &[
    (
        "anthropic-messages",
        r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm \ud83d"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\ude00"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"b3Bh"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":"Hé"}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"llo \n"}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}}

data: {"type":"content_block_stop","index":2}

data: {"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}

data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}

data: {"type":"content_block_stop","index":3}

data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_1","name":"add","input":{}}}

data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}

data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"a\": 1"}}

data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"}"}}

data: {"type":"content_block_stop","index":4}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":17}}

data: {"type":"message_stop"}

"#,
    ),
    (
        "anthropic-messages",
        r#"data: {"type":"message_start","message":{"id":"msg_2","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"x":1}},{"type":"text","text":"t"}],"usage":{"input_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"g","input":{"y":2}}}

data: {"type":"message_start","message":{"id":"msg_3","model":"n","content":[],"usage":{"input_tokens":2}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"fallback","to":{"model":"o"}}}

data: {"type":"content_block_start","index":1,"content_block":{"type":"compaction","content":null}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"compaction_delta","content":"short"}}

data: {"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"stray"}}

data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}

"#,
    ),
    (
        "openai-chat",
        r#"data: {"id":"","model":"","choices":[],"prompt_filter_results":[]}

data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm","index":0}]}}]}

data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"eA==","index":1}]}}]}

data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":"Hé\ud83d"},"logprobs":{"content":[{"token":"H","logprob":-0.5,"top_logprobs":[]}]}}]}

: keep-alive

data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":"\ude00","annotations":[{"type":"url_citation"}]}},{"index":1,"delta":{"content":"other"}}]}

data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}

data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}},{"index":1,"function":{"name":"g","arguments":{"z":1}}}]}}]}

data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","function":{"name":"f","arguments":"1}"}}]}}]}

data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"function_call":{"name":"h","arguments":"null"}}}]}

data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}

data: {"id":"c1","model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":3}}}

data: [DONE]

"#,
    ),
    (
        "openai-chat",
        r#"data: {"id":"c2","model":"m","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"b"},{"type":"reference","reference_ids":[1]}]}}]}

data: {"id":"c2","model":"m","choices":[{"index":0,"delta":{"refusal":"no","audio":{"id":"a1","data":"AAAA","transcript":"t"}}}]}

data: {"id":"c2","model":"m","choices":[{"index":0,"delta":{"images":[{"image_url":{"url":"data:image/png;base64,AA=="}}]}}],"citations":["u"]}

data: {"id":"c2","model":"m","error":{"code":502,"message":"upstream"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"usage":{"prompt_tokens":1}}

data: [DONE]

"#,
    ),
    // Frames that repeat each other, which templates decode.
    (
        "openai-chat",
        r#"data: {"id":"c3","object":"chat.completion.chunk","created":1700,"model":"m","choices":[{"index":0,"delta":{"content":"Once "},"finish_reason":null}],"obfuscation":""}

data: {"id":"c3","object":"chat.completion.chunk","created":1701,"model":"m","choices":[{"index":0,"delta":{"content":"upon "},"finish_reason":null}],"obfuscation":"x"}

data: {"id":"c3","object":"chat.completion.chunk","created":1702,"model":"m","choices":[{"index":0,"delta":{"content":"a "},"finish_reason":null}],"obfuscation":"xx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1703,"model":"m","choices":[{"index":0,"delta":{"content":"time "},"finish_reason":null}],"obfuscation":"xxx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1704,"model":"m","choices":[{"index":0,"delta":{"content":"\u00e9 "},"finish_reason":null}],"obfuscation":"xxxx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1705,"model":"m","choices":[{"index":0,"delta":{"content":"\ud83d "},"finish_reason":null}],"obfuscation":"xxxxx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1706,"model":"m","choices":[{"index":0,"delta":{"content":"\ude00 "},"finish_reason":null}],"obfuscation":"xxxxxx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1707,"model":"m","choices":[{"index":0,"delta":{"content":"é "},"finish_reason":null}],"obfuscation":"xxxxxxx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1708,"model":"m","choices":[{"index":0,"delta":{"content":"\n "},"finish_reason":null}],"obfuscation":"xxxxxxxx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1709,"model":"m","choices":[{"index":0,"delta":{"content":"there "},"finish_reason":null}],"obfuscation":"xxxxxxxxx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1710,"model":"m","choices":[{"index":0,"delta":{"content":" "},"finish_reason":null}],"obfuscation":"xxxxxxxxxx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1800,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a"}}]},"finish_reason":null}],"obfuscation":""}

data: {"id":"c3","object":"chat.completion.chunk","created":1801,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"\":"}}]},"finish_reason":null}],"obfuscation":"x"}

data: {"id":"c3","object":"chat.completion.chunk","created":1802,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"1"}}]},"finish_reason":null}],"obfuscation":"xx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1803,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":",\"b\""}}]},"finish_reason":null}],"obfuscation":"xxx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1804,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":":[]"}}]},"finish_reason":null}],"obfuscation":"xxxx"}

data: {"id":"c3","object":"chat.completion.chunk","created":1805,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"}"}}]},"finish_reason":null}],"obfuscation":"xxxxx"}

data: {"id":"c3","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

"#,
    ),
    (
        "anthropic-messages",
        r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_9","model":"m","content":[],"usage":{"input_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Once "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"upon "} }

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a "}  }

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"time "}   }

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\u00e9 "}    }

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d "}     }

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00 "}      }

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"é "}       }

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\n "}        }

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"there "}         }

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" "}          }

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}

event: message_stop
data: {"type":"message_stop"}

"#,
    ),
];

/// Change of a body, on the level of events and of bytes.
#[derive(Clone, Debug)]
enum Damage {
    Duplicate(prop::sample::Index),
    Drop(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Splice(prop::sample::Index, usize, prop::sample::Index),
    Truncate(prop::sample::Index),
    Byte(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    use prop::sample::Index;
    let words: Vec<Vec<u8>> = [
        "null",
        "{}",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "\\",
        "\\ud83d",
        ",",
        ":",
        "\n",
        "\n\n",
        "\r",
        "data: ",
        "data: [DONE]\n\n",
        "event: error\n",
        "error: x\n",
        "<html>",
        "\u{0}",
        "-1",
        "1e999",
        "99999999999999999999",
        "\"index\":-1,",
        "\"id\":null,",
        "[DONE]",
    ]
    .iter()
    .map(|word| word.as_bytes().to_vec())
    .collect();
    prop_oneof![
        any::<Index>().prop_map(Damage::Duplicate),
        any::<Index>().prop_map(Damage::Drop),
        (any::<Index>(), any::<Index>()).prop_map(|(a, b)| Damage::Swap(a, b)),
        (any::<Index>(), 0..BODIES.len(), any::<Index>())
            .prop_map(|(a, b, c)| Damage::Splice(a, b, c)),
        any::<Index>().prop_map(Damage::Truncate),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (any::<Index>(), prop::sample::select(words))
            .prop_map(|(at, word)| Damage::Insert(at, word)),
        (any::<Index>(), proptest::collection::vec(any::<u8>(), 1..8))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
    ]
}

fn events(body: &str) -> Vec<Vec<u8>> {
    body.split_inclusive("\n\n").map(|event| event.as_bytes().to_vec()).collect()
}

fn apply(pieces: &mut Vec<Vec<u8>>, damage: &Damage) {
    if pieces.is_empty() {
        return;
    }
    let count = pieces.len();
    let place = |pieces: &[Vec<u8>], at: &prop::sample::Index| {
        // An event, and a byte in it.
        let total: usize = pieces.iter().map(Vec::len).sum();
        let mut left = at.index(total.max(1));
        for (number, piece) in pieces.iter().enumerate() {
            if left < piece.len() {
                return Some((number, left));
            }
            left -= piece.len();
        }
        None
    };
    match damage {
        Damage::Duplicate(at) => pieces.insert(at.index(count), pieces[at.index(count)].clone()),
        Damage::Drop(at) => drop(pieces.remove(at.index(count))),
        Damage::Swap(a, b) => pieces.swap(a.index(count), b.index(count)),
        Damage::Splice(at, body, event) => {
            let others = events(BODIES[*body].1);
            pieces.insert(at.index(count), others[event.index(others.len())].clone());
        }
        Damage::Truncate(at) => {
            if let Some((piece, byte)) = place(pieces, at) {
                pieces.truncate(piece + 1);
                pieces[piece].truncate(byte);
            }
        }
        Damage::Byte(at, byte) => {
            if let Some((piece, position)) = place(pieces, at) {
                pieces[piece][position] = *byte;
            }
        }
        Damage::Insert(at, bytes) => {
            if let Some((piece, position)) = place(pieces, at) {
                pieces[piece].splice(position..position, bytes.iter().copied());
            }
        }
    }
}

/// Deltas and the decoder after them, every delta lawful, exactly one terminal.
fn places(body: &[u8], cuts: &[prop::sample::Index]) -> Vec<usize> {
    cuts.iter().map(|cut| cut.index(body.len() + 1)).collect()
}

#[test]
fn a_page_after_white_space_leaves_the_same_state() {
    chunkings_agree("openai-chat", b"\xef\xbb\xbf \t\r\n<html>", &[]);
}

#[test]
fn an_event_that_breaks_off_behind_its_log_probabilities_leaves_the_same_state() {
    let event = |token: &str| {
        format!(
            "data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"x\"}},\"logprobs\":{{\"content\":[{{\"token\":\"{token}\",\"logprob\":-0.5,\"top_logprobs\":[]}}]}}}}]}}\n\n"
        )
    };
    let whole = event("b");
    let (end, broken) = (whole.len() - 6, whole.replacen("}]}\n\n", "\u{b}]}\n\n", 1));
    for last in [broken.as_bytes(), &[&whole.as_bytes()[..end], b"\xff\n\n"].concat()] {
        let body = [event("a").as_bytes(), event("a").as_bytes(), last].concat();
        chunkings_agree("openai-chat", &body, &[]);
    }
}

#[test]
fn the_undamaged_bodies_say_what_they_should() {
    for (dialect, body) in BODIES {
        let (deltas, _) = decode_lawfully(decoder(dialect), [body.as_bytes()]);
        assert!(deltas.len() > 8, "{dialect} {deltas:?}");
        chunkings_agree(dialect, body.as_bytes(), &[]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_048) })]

    #[test]
    fn lawful_sequences_pass(choices in proptest::collection::vec(any::<(u8, u8)>(), 0..64), fails in any::<bool>()) {
        let payloads = lawful(&choices, fails);
        let (laws, places, violation) = judge(&payloads);
        prop_assert_eq!(violation, None);
        prop_assert_eq!(places.len(), payloads.len());
        prop_assert!(laws.ended());
    }

    #[test]
    fn damaged_bodies_decode_lawfully_in_any_chunking(
        body in 0..BODIES.len(),
        foreign in 0_u8..8,
        damages in proptest::collection::vec(damage(), 1..6),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let (dialect, text) = BODIES[body];
        let dialect = if foreign == 0 { BODIES[(body + 2) % 4].0 } else { dialect };
        let mut pieces = events(text);
        for damage in &damages {
            apply(&mut pieces, damage);
        }
        let body = pieces.concat();
        chunkings_agree(dialect, &body, &places(&body, &cuts));
    }

    #[test]
    fn any_bytes_decode_lawfully_in_any_chunking(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        for dialect in ["anthropic-messages", "openai-chat"] {
            chunkings_agree(dialect, &bytes, &places(&bytes, &cuts));
        }
    }
}
