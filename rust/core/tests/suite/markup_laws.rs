//! Laws of all markup: unchanged prose, every split, every cut, bounded waiting, memory and work.

use crate::cost::cost;
use crate::support::{Each, Owned, fold, options};
use crate::tables::{body, cases, decode, decoder, parts};
use deltafold::contract::{Delta, DeltaKind, Payload};
use deltafold::fold::Part;
use deltafold::limits::Limits;
use deltafold::markup::{FAMILIES, Family, Types, Wanted, coerce, find, specification};
use proptest::prelude::*;

fn wanted(family: &'static Family) -> Wanted {
    Wanted { family, tools: None, starts_in_thinking: false }
}

/// A text in pieces that end before these characters, modulo their number.
fn pieces<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let borders: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut places: Vec<usize> = cuts.iter().map(|cut| borders[cut % borders.len()]).collect();
    places.sort_unstable();
    let mut found = Vec::new();
    let mut start = 0;
    for place in places.into_iter().chain([text.len()]) {
        found.push(&text[start..place]);
        start = place;
    }
    found
}

/// Pieces of prose and markup.
fn tokens() -> Vec<&'static str> {
    let mut tokens: Vec<&str> = FAMILIES.iter().flat_map(Family::literals).collect();
    tokens.extend([
        " ",
        "\n",
        "a",
        "é",
        "😀",
        "<",
        ">",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        "\"",
        "'",
        "\\",
        "|",
        "｜",
        ":",
        ",",
        "=",
        "/",
        "f",
        "name",
        "think",
        "tool_call",
        "```",
        "```json\n",
        "{\"name\": \"f\"",
        ", \"arguments\": {\"a\": 1}}",
        "{}",
        "null",
        "f(a='b')",
        "[f(a=1)]",
        "functions.f:0",
        "</tool_call>",
        "</think>",
        "<parameter=a>",
        "</parameter>",
        "</function>",
        "</invoke>",
        "<parameter name=\"a\">",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
        "[ARGS]",
        "<|message|>",
        "<|end|>",
        "<|call|>",
        " to=functions.f",
        "analysis",
        "final",
        "assistant",
        "call:f{",
        "<|\"|>",
        "<tool_call|>",
        "<｜tool▁sep｜>",
        "<|tool_call_argument_begin|>",
    ]);
    tokens
}

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(tokens()), 0..24).prop_map(|list| list.concat())
}

fn families() -> impl Strategy<Value = &'static Family> {
    prop::sample::select(FAMILIES.iter().collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn text_without_a_family_s_literals_comes_out_unchanged(family in families(), text in soup()) {
        let holds = |literal: &str| text.contains(literal);
        prop_assume!(!family.literals().any(holds));
        // Llama's calls need no literal.
        prop_assume!(family.name != "llama" || !text.trim_start().starts_with(['{', '[']));
        let message = fold(&decode(&wanted(family), [text.as_str()], "stop"));
        prop_assert_eq!(message.text(), text.as_str());
        prop_assert!(message.parts().len() <= 1);
    }

    #[test]
    fn any_text_says_the_same_in_any_pieces(
        family in families(),
        text in soup(),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
        thinking in any::<bool>(),
    ) {
        let wanted = Wanted { starts_in_thinking: thinking, ..wanted(family) };
        let whole = parts(&decode(&wanted, [text.as_str()], "stop"));
        let cut = parts(&decode(&wanted, pieces(&text, &cuts), "stop"));
        prop_assert_eq!(&cut, &whole);
        let characters: Vec<String> = text.chars().map(String::from).collect();
        let single = parts(&decode(&wanted, characters.iter().map(String::as_str), "stop"));
        prop_assert_eq!(&single, &whole);
    }

    #[test]
    fn arbitrary_text_says_the_same_in_any_pieces(
        family in families(),
        text in any::<String>(),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        let wanted = wanted(family);
        let whole = parts(&decode(&wanted, [text.as_str()], "none"));
        prop_assert_eq!(parts(&decode(&wanted, pieces(&text, &cuts), "none")), whole);
    }

    #[test]
    fn every_case_says_the_same_in_random_pieces(
        family in families(),
        which in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let cases = cases(family.name);
        let case = which.get(&cases);
        let deltas = decode(&case.wanted, pieces(&case.text, &cuts), &case.finish);
        prop_assert_eq!(parts(&deltas), case.parts.as_str());
    }
}

#[test]
fn deltas_and_state_are_equal_at_every_cut_of_the_bytes() {
    for family in FAMILIES {
        for case in cases(family.name) {
            let bytes = body(pieces(&case.text, &[7, 19, 41]), &case.finish);
            let mut whole = decoder(&case.wanted);
            for event in crate::support::events("openai-chat", &bytes) {
                let before = whole.clone();
                let mut expected: Vec<Owned> = Vec::new();
                whole.feed(
                    event,
                    &mut Each(&mut |delta: &Delta<&str>| expected.push(delta.to_owned())),
                );
                for cut in 1..event.len() {
                    let mut halved = before.clone();
                    let mut found: Vec<Owned> = Vec::new();
                    let mut take = |delta: &Delta<&str>| found.push(delta.to_owned());
                    let mut out = Each(&mut take);
                    halved.feed(&event[..cut], &mut out);
                    halved.feed(&event[cut..], &mut out);
                    assert!(found == expected, "{}: deltas, cut {cut}", case.name);
                    assert!(halved == whole, "{}: state, cut {cut}", case.name);
                }
            }
        }
    }
}

/// Names and arguments of the calls that are whole.
fn whole_calls(deltas: &[Owned]) -> Vec<(String, String)> {
    let message = fold(deltas);
    let calls = message.parts().iter().filter_map(|part| match part {
        Part::ToolCall(call) if !call.incomplete => Some(call),
        _ => None,
    });
    calls.map(|call| (call.name.to_string(), call.args.clone())).collect()
}

fn is_runnable(args: &str) -> bool {
    args.is_empty() || serde_json::from_str::<serde_json::Value>(args).is_ok()
}

#[test]
fn a_text_that_is_cut_off_anywhere_makes_nobody_run_half_a_call() {
    for family in FAMILIES {
        for case in cases(family.name) {
            let whole = whole_calls(&decode(&case.wanted, [case.text.as_str()], "stop"));
            for (at, _) in case.text.char_indices() {
                for finish in ["stop", "length", "none"] {
                    let deltas = decode(&case.wanted, [&case.text[..at]], finish);
                    for (name, args) in whole_calls(&deltas) {
                        // Text that is not JSON as a whole may begin like JSON.
                        let known = |(other, all): &(String, String)| {
                            *other == name
                                && (all.trim_end() == args.trim_end()
                                    || !is_runnable(all) && all.starts_with(&args))
                        };
                        let fine = !is_runnable(&args) || whole.iter().any(known);
                        assert!(fine, "{} cut at {at}: {name} {args:?}", case.name);
                    }
                }
            }
        }
    }
}

/// Characters that were fed and not said, after each character.
fn longest_wait(family: &'static Family, text: &str) -> usize {
    let mut decoder = decoder(&wanted(family));
    let (mut fed, mut said, mut longest) = (0, 0, 0);
    for character in text.chars() {
        let mut buffer = [0; 4];
        let piece: &str = character.encode_utf8(&mut buffer);
        fed += 1;
        let mut take = |delta: &Delta<&str>| {
            if let Payload::Text { text, .. } = delta.payload {
                said += text.chars().count();
            }
        };
        decoder.feed(&body([piece], "none"), &mut Each(&mut take));
        longest = longest.max(fed - said);
    }
    longest
}

#[test]
fn a_literal_tag_in_prose_or_code_stalls_nothing() {
    for family in FAMILIES {
        for literal in family.literals() {
            let text = format!("Write `{literal}` or {literal} in ```\n{literal}…\n``` and go on.");
            let longest = longest_wait(family, &text);
            let most = literal.chars().count() + 8;
            assert!(longest <= most, "{} {literal}: {longest} characters wait", family.name);
        }
    }
}

/// A call with a long text argument in each family that streams, and the markup around the text.
const STREAMED: &[(&str, &str, &str)] = &[
    ("qwen-json", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"", "\"}}</tool_call>"),
    (
        "hermes",
        "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": \\\"",
        "\\\"}\"}</tool_call>",
    ),
    (
        "qwen-xml",
        "<tool_call>\n<function=f>\n<parameter=a>\n",
        "\n</parameter>\n</function>\n</tool_call>",
    ),
    ("llama", "<function=f>{\"a\": \"", "\"}</function>"),
    ("mistral", "[TOOL_CALLS]f[ARGS]{\"a\": \"", "\"}"),
    (
        "kimi",
        "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": \"",
        "\"}<|tool_call_end|>",
    ),
    ("gemma", "<|tool_call>call:f{a:<|\"|>", "<|\"|>}<tool_call|>"),
    (
        "cohere",
        "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {\"a\": \"",
        "\"}}]<|END_ACTION|>",
    ),
    ("glm", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>", "</arg_value>\n</tool_call>"),
    (
        "minimax",
        "<minimax:tool_call><invoke name=\"f\"><parameter name=\"a\">",
        "</parameter></invoke></minimax:tool_call>",
    ),
    (
        "claude",
        "<function_calls><invoke name=\"f\"><parameter name=\"a\">",
        "</parameter></invoke></function_calls>",
    ),
    ("deepseek", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": \"", "\"}<｜tool▁call▁end｜>"),
    ("harmony", "<|channel|>commentary to=functions.f<|message|>{\"a\": \"", "\"}<|call|>"),
];

/// Those that wait for the end of a call by their family's rule.
const HELD: &[(&str, &str, &str)] = &[
    ("llama", "{\"name\": \"f\", \"parameters\": {\"a\": \"", "\"}}"),
    ("llama", "[f(a='", "')]"),
    ("lfm2", "<|tool_call_start|>[f(a='", "')]<|tool_call_end|>"),
    ("olmo", "<function_calls>f(a='", "')</function_calls>"),
    ("mistral", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": \"", "\"}}]"),
];

#[test]
fn arguments_stream_as_they_come() {
    for (name, open, close) in STREAMED {
        let text = format!("{open}{}{close}", "x y ".repeat(50));
        let characters: Vec<String> = text.chars().map(String::from).collect();
        let family = find(name).unwrap();
        let deltas = decode(&wanted(family), characters.iter().map(String::as_str), "stop");
        let args = deltas.iter().filter(|d| d.payload.kind() == DeltaKind::ToolCallArgs).count();
        assert!(args > 190, "{name}: {args} deltas");
    }
}

#[test]
fn an_argument_of_a_megabyte_comes_out_whole() {
    let long = "word é 日本 ".repeat((1 << 20) / 15);
    for (name, open, close) in STREAMED.iter().chain(HELD) {
        let text = format!("{open}{long}{close}");
        let deltas =
            decode(&wanted(find(name).unwrap()), pieces(&text, &[12_345, 500_001]), "stop");
        let message = fold(&deltas);
        let (_, call) = message.tool_calls().next().expect(name);
        let args: serde_json::Value = serde_json::from_str(&call.args).expect(name);
        // White space directly before a closing tag is the value's own.
        assert_eq!(args["a"], long.as_str(), "{name}");
        assert!(!call.incomplete, "{name}");
    }
}

/// Hostile texts, by the repeated piece.
const HOSTILE: &[&str] = &[
    "<",
    "[",
    "<tool_call>",
    "<tool_call>{",
    "<tool_call>{\"a\":",
    "<function=",
    "<function=f>",
    " ",
    "\n",
    "<think>",
    "</think>",
    "<|channel|>",
    "<|channel|>final",
    "<|start|>",
    "<|start|>assistant",
    "[TOOL_CALLS]",
    "[TOOL_CALLS]f",
    "<|tool_call>call:f{a:[",
    "<invoke name=\"f\">",
    "<｜DSML｜tool_calls><",
    "<｜tool▁calls▁begin｜>",
    "<arg_key>",
    "<tool_call>f<arg_key>",
    "(",
    "f(",
    "[f(a=[",
    "{\"name\":",
    "<|START_ACTION|>[",
    "'",
    "\\",
    "<tool_call>{\"name\":\"f\",\"arguments\":[[",
    "<|tool_call_begin|>f",
    "<parameter=a>",
    "<tool_call><function=f><parameter=a>",
    "<|python_tag|>{\"name\":\"f\"",
];

#[test]
fn hostile_text_costs_linear_memory_and_work() {
    let limits = Limits::default();
    for family in FAMILIES {
        let specification = format!("openai-chat+{}", family.name);
        for token in HOSTILE {
            let run = |bytes: usize, size: usize| {
                let text = token.repeat(bytes / token.len());
                let borders: Vec<usize> = (0..text.len() / size).collect();
                let places: Vec<usize> =
                    borders.iter().map(|n| n * size * text.chars().count() / text.len()).collect();
                let bodies: Vec<Vec<u8>> =
                    pieces(&text, &places).into_iter().map(|piece| body([piece], "none")).collect();
                cost(&specification, limits, bodies.into_iter())
            };
            let (small, large) = (run(8 << 10, 64), run(32 << 10, 64));
            let ratio = large.total / small.total.max(4_096);
            assert!(ratio <= 9, "{} {token}: {small:?} {large:?}", family.name);
            // Nothing is said twice: escapes make six characters of one at most.
            assert!(large.text <= 6 * (32 << 10) + 64, "{} {token}: {large:?}", family.name);
            assert!(large.deltas <= 2 * (32 << 10), "{} {token}: {large:?}", family.name);
            assert!(large.peak < 2 << 20, "{} {token}: {large:?}", family.name);
        }
    }
}

#[test]
fn what_is_held_counts_against_the_limit() {
    let limits = Limits { message_bytes: 10_000, ..Limits::default() };
    for (name, open, _) in HELD {
        let text = format!("{open}{}", "x".repeat(100));
        let more = std::iter::repeat_n("x".repeat(100), 1_000);
        let bodies = std::iter::once(text).chain(more).map(|piece| body([piece.as_str()], "none"));
        let cost = cost(&format!("openai-chat+{name}"), limits, bodies);
        let message = cost.failure.expect(name).message.expect("words");
        assert_eq!(&*message, "limit reached: message_bytes (10000)", "{name}");
        assert!(cost.peak < 200_000, "{name}: {}", cost.peak);
    }
}

#[test]
fn a_specification_is_a_dialect_or_a_dialect_with_markup() {
    assert_eq!(specification("openai-chat"), ("openai-chat", None));
    assert_eq!(specification("openai-chat+qwen-xml"), ("openai-chat", Some("qwen-xml")));
    assert_eq!(options("ollama+think").markup.unwrap().family.name, "think");
    assert!(find("qwen").is_none());
}

#[test]
fn a_raw_text_becomes_json_by_its_types() {
    let any = Types::ANY;
    let table = [
        (Types::STRING, "007", "\"007\""),
        (Types::STRING, " true ", "\" true \""),
        (Types::INTEGER, " 7 ", "7"),
        (Types::INTEGER, "-0", "-0"),
        (Types::INTEGER, "7.0", "\"7.0\""),
        (Types::INTEGER, "99999999999999999999999", "99999999999999999999999"),
        (Types::NUMBER, "1e5", "1e5"),
        (Types::NUMBER, "NaN", "\"NaN\""),
        (Types::BOOLEAN, "FALSE", "false"),
        (Types::BOOLEAN, "0", "\"0\""),
        (Types::NULL, "None", "\"None\""),
        (Types::ARRAY, "(1, 2)", "[1,2]"),
        (Types::ARRAY, "[1, __import__('os')]", "\"[1, __import__('os')]\""),
        (Types::OBJECT, "{\"a\": [1]}", "{\"a\": [1]}"),
        (any, "", "\"\""),
        (any, "null", "null"),
        (any, "[1,", "\"[1,\""),
    ];
    for (types, text, json) in table {
        assert_eq!(coerce(types, text, 64), json, "{text}");
    }
    let deep = "[".repeat(100) + &"]".repeat(100);
    assert!(coerce(any, &deep, 64).starts_with('"'), "too deep for JSON");
}
