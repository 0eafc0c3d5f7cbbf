//! The run of an agent, written as one stream: it ends once wherever it stops, and the checker of the grammar reads all of it.

use std::path::PathBuf;

use deltafold::contract::{
    Delta, ErrorCode, Failure, FinishReason, InputFormat, Output, Payload, TextAttributes,
};
use deltafold::encode::{Encoder, RunEvent, Settings, TARGETS, find};
use deltafold_grammar::Checker;

/// What an agent tells: the payloads of an answer's deltas, or an event as JSON.
enum Told {
    Deltas(Vec<Payload<&'static str>>),
    Event(&'static str),
}

use Told::{Deltas, Event};

fn start(request_id: &'static str) -> Payload<&'static str> {
    Payload::Start { model_id: "m", request_id }
}

fn text(text: &'static str) -> Payload<&'static str> {
    Payload::Text { text, part_index: Some(0), attributes: TextAttributes::default() }
}

fn call(
    id: &'static str,
    args: &'static str,
    incomplete: Option<bool>,
) -> Vec<Payload<&'static str>> {
    let begin = Payload::ToolCallStart {
        id,
        name: "look",
        part_index: None,
        input_format: InputFormat::Json,
        provider_state: None,
    };
    let mut payloads = vec![begin, Payload::ToolCallArgs { id, text: args, part_index: None }];
    payloads.extend(incomplete.map(|incomplete| Payload::ToolCallEnd {
        id,
        part_index: None,
        incomplete,
        provider_state: None,
    }));
    payloads
}

fn done(finish_reason: FinishReason) -> Payload<&'static str> {
    Payload::Done {
        finish_reason,
        raw_finish_reason: None,
        model_id: None,
        details: None,
        warnings: None,
    }
}

fn lost() -> Payload<&'static str> {
    Payload::Error(Failure::new(ErrorCode::ConnectionLost, "lost"))
}

fn answer(
    request_id: &'static str,
    parts: Vec<Vec<Payload<&'static str>>>,
    end: Payload<&'static str>,
) -> Told {
    let mut payloads = vec![start(request_id)];
    payloads.extend(parts.into_iter().flatten());
    payloads.push(end);
    Deltas(payloads)
}

/// A run with two broken answers, parallel calls, an approval and a message.  Its caller leaves the ends of broken parts out.
fn run() -> Vec<Told> {
    vec![
        Event(
            r#"{"kind":"tool_end","toolCallId":"old","toolName":"f","arguments":"{}","status":"success","text":"[1]","json":[1]}"#,
        ),
        Event(r#"{"kind":"turn"}"#),
        answer("r1", vec![vec![text("Half")], call("c1", "{\"pla", None)], lost()),
        Event(r#"{"kind":"retry","continues":false,"seconds":0}"#),
        answer("r2", vec![vec![text("Half")], call("c1", "{}", Some(false))], lost()),
        Event(r#"{"kind":"retry","continues":true,"seconds":0}"#),
        answer(
            "r3",
            vec![
                vec![text(" and half.")],
                call("c1", "{}", Some(false)),
                call("c2", "{\"a\"", Some(true)),
                call("c3", "{\"a\":1}", Some(false)),
            ],
            done(FinishReason::ToolCalls),
        ),
        Event(r#"{"kind":"answer","toolCallIds":["new","c2","c3"]}"#),
        Event(r#"{"kind":"tool_start","toolCallId":"new","toolName":"look","arguments":"{}"}"#),
        Event(
            r#"{"kind":"progress","toolCallId":"new","toolName":"look","arguments":"{}","progress":{"share":0.5}}"#,
        ),
        Event(
            r#"{"kind":"tool_end","toolCallId":"c2","toolName":"look","arguments":"{","status":"failed","text":"cut"}"#,
        ),
        Event(
            r#"{"kind":"tool_end","toolCallId":"new","toolName":"look","arguments":"{}","status":"success","text":"a map","files":[{"mimeType":"image/png","data":"AA=="},{"mimeType":"","url":"https://example.com/a"},{"mimeType":"text/plain"}]}"#,
        ),
        Event(
            r#"{"kind":"tool_end","toolCallId":"c3","toolName":"look","arguments":"{}","status":"rejected","text":"no"}"#,
        ),
        Event(r#"{"kind":"turn"}"#),
        Event(r#"{"kind":"input","text":"And?","files":[{"mimeType":"audio/wav","data":"AA=="}]}"#),
        Event(
            r#"{"kind":"input","text":"","files":[{"mimeType":"image/png","url":"https://example.com/b.png"}]}"#,
        ),
        Event(r#"{"kind":"compacted","tokens":9}"#),
        answer(
            "r4",
            vec![call("c4", "{}", Some(false)), call("c5", "{}", Some(false))],
            done(FinishReason::ToolCalls),
        ),
        Event(r#"{"kind":"answer","toolCallIds":["c4"]}"#),
        Event(r#"{"kind":"approval","toolCallId":"c4","toolName":"look","arguments":"{}"}"#),
        Event(
            r#"{"kind":"run_end","status":"awaiting_human","reason":"approval","usage":{"inputTokens":9,"outputTokens":2},"pending":[{"toolCallId":"c4","toolName":"look","arguments":"{}"}]}"#,
        ),
    ]
}

/// Write what is told, with a keep-alive after each, and close; the grammar reads every byte.
fn written(target: &str, settings: &Settings, told: &[Told]) -> (Encoder, String) {
    let mut encoder = Encoder::new(find(target).unwrap(), settings.clone(), false);
    let mut checker = Checker::of_run(target).unwrap();
    let mut bytes = Vec::new();
    assert!(encoder.begin_run());
    for one in told {
        match one {
            Event(json) => {
                if let Some(event) = RunEvent::read(json) {
                    encoder.run_event(&event);
                }
            }
            Deltas(payloads) => {
                for (seq, payload) in (1..).zip(payloads) {
                    encoder.delta(&Delta { seq, payload: *payload, provider_raw: None });
                }
            }
        }
        assert_eq!(encoder.violation(), None);
        encoder.keep_alive();
        bytes.extend(encoder.take());
    }
    encoder.close();
    bytes.extend(encoder.take());
    let text = String::from_utf8(bytes).unwrap();
    let verdict = checker.feed(text.as_bytes()).and_then(|()| checker.close());
    assert_eq!(verdict, Ok(()), "{target}\n{text}");
    assert!(encoder.ended());
    assert_eq!(encoder.status(), Some(200));
    (encoder, text)
}

#[test]
fn a_run_that_stops_anywhere_is_one_lawful_stream() {
    for target in ["ai-sdk", "ag-ui"] {
        let whole = run();
        for end in 0..=whole.len() {
            let (encoder, text) = written(target, &Settings::default(), &whole[..end]);
            assert_eq!(encoder.failed(), end < whole.len(), "{target} {end}\n{text}");
        }
    }
}

#[test]
fn a_limit_and_a_failure_are_no_success() {
    let limit = Event(r#"{"kind":"run_end","status":"aborted","reason":"max_turns"}"#);
    let failure = Event(
        r#"{"kind":"run_end","status":"failed","reason":"error","error":{"code":"overloaded","message":"busy"}}"#,
    );
    for (target, limited, failed) in [
        ("ai-sdk", r#""finishReason":"interrupted""#, r#"{"type":"error","errorText":"busy"}"#),
        ("ag-ui", r#""outcome":{"type":"cancelled"}"#, r#""message":"busy","code":"overloaded""#),
    ] {
        let (encoder, text) = written(target, &Settings::default(), std::slice::from_ref(&limit));
        assert!(text.contains(limited) && !encoder.failed(), "{text}");
        let (encoder, text) = written(target, &Settings::default(), std::slice::from_ref(&failure));
        assert!(text.contains(failed) && encoder.failed(), "{text}");
    }
}

#[test]
fn ids_are_unique_and_those_of_the_conversation_are_found_again() {
    let (encoder, text) = written("ag-ui", &Settings::default(), &run());
    // The call of the retried answer has the id of the broken one, and the conversation a third id.
    assert!(text.contains(r#""toolCallId":"c1-2","toolCallName":"look""#), "{text}");
    assert!(
        text.contains(r#""toolCallId":"c1-3","content":[{"type":"text","text":"a map"}"#),
        "{text}"
    );
    assert_eq!(encoder.notes().len(), 1, "{:?}", encoder.notes());
    let (_, text) = written("ai-sdk", &Settings::default(), &run());
    assert!(text.contains(r#""toolCallId":"c1-2","output":"a map""#), "{text}");
}

#[test]
fn the_owner_of_a_run_writes_its_ends() {
    let settings = Settings { without_run: true, ..Settings::default() };
    let mut encoder = Encoder::new(find("ag-ui").unwrap(), settings, false);
    encoder.begin_run();
    for json in [r#"{"kind":"turn"}"#, r#"{"kind":"run_end","status":"failed","reason":"error"}"#] {
        encoder.run_event(&RunEvent::read(json).unwrap());
    }
    assert!(encoder.take().is_empty());
    assert!(encoder.failed());
    assert_eq!(encoder.notes()[0].code, "error");
}

#[test]
fn a_target_without_runs_says_so() {
    for target in TARGETS {
        let mut encoder = Encoder::new(target, Settings::default(), false);
        assert_eq!(
            encoder.begin_run(),
            matches!(target.name, "ai-sdk" | "ag-ui"),
            "{}",
            target.name
        );
    }
}

/// The streams that `tests/agent/test_run_streams.py` compares with the runs of an agent.
#[test]
fn the_streams_of_the_agents_runs_are_lawful() {
    let folder =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/agents/streams"));
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let target = name.split('.').nth(2).unwrap();
        let mut checker = Checker::of_run(target).unwrap();
        let verdict = checker.feed(&std::fs::read(&path).unwrap()).and_then(|()| checker.close());
        assert_eq!(verdict, Ok(()), "{name}");
        count += 1;
    }
    assert!(count >= 20, "{count}");
}
