//! The event-stream rules of WHATWG HTML, and what servers of language models make of them, row by row: each body whole,
//! cut at every byte, and byte by byte.

use std::ops::ControlFlow;

use crate::support::oracles::framing::{
    Owned, agree_with_the_specification, frames, frames_within,
};
use deltafold::framing::Frame;
use deltafold::framing::sse::Sse;
use proptest::prelude::*;

/// The frames of a body, the same at every cut and byte by byte.
fn frames_any_cut(body: &[u8]) -> Vec<Owned> {
    let whole = frames(body);
    for cut in 1..body.len() {
        let halves = frames_within(1 << 20, [&body[..cut], &body[cut..]]);
        assert_eq!(halves, whole, "cut {cut} of {:?}", String::from_utf8_lossy(body));
    }
    let single = frames_within(1 << 20, body.chunks(1));
    assert_eq!(single, whole, "byte by byte {:?}", String::from_utf8_lossy(body));
    whole
}

/// Expected result of a row: `event(data)`, `event[name](data)`, `event?(data)` when unfinished, `stray(line)`.
fn say(frames: &[Owned]) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).escape_debug().to_string();
    let say_one = |frame: &Owned| match frame {
        Owned::Event { name, data, closed, .. } => {
            let name = if name.is_empty() { String::new() } else { format!("[{}]", text(name)) };
            format!("event{name}{}({})", if *closed { "" } else { "?" }, text(data))
        }
        Owned::Stray { line, .. } => format!("stray({})", text(line)),
        Owned::TooLong => "too long".to_owned(),
    };
    frames.iter().map(say_one).collect()
}

fn check(rows: &[(&str, &[&str])]) {
    for (body, expected) in rows {
        assert_eq!(say(&frames_any_cut(body.as_bytes())), *expected, "{body:?}");
    }
}

#[test]
fn a_line_ends_at_cr_lf_crlf_and_at_nothing_else() {
    check(&[
        ("data: a\n\n", &["event(a)"]),
        ("data: a\r\n\r\n", &["event(a)"]),
        ("data: a\r\r", &["event(a)"]),
        ("data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", &["event(a)", "event(b)", "event(c)"]),
        ("data: a\rdata: b\ndata: c\r\n\r", &["event(a\\nb\\nc)"]),
        // CR LF CR LF is two line ends, LF CR is two line ends as well.
        ("data: a\n\rdata: b\n\r", &["event(a)", "event(b)"]),
        ("data: vt\u{b}ff\u{c}\n\n", &["event(vt\\u{b}ff\\u{c})"]),
        ("data: \u{1c}\u{1d}\u{1e}\n\n", &["event(\\u{1c}\\u{1d}\\u{1e})"]),
        ("data: a\u{85}b\u{2028}c\u{2029}d\n\n", &["event(a\\u{85}b\\u{2028}c\\u{2029}d)"]),
        ("", &[]),
        ("\n\r\n\r\n\n", &[]),
    ]);
}

#[test]
fn one_leading_bom_is_dropped_and_no_other() {
    check(&[
        ("\u{feff}data: a\n\n", &["event(a)"]),
        ("\u{feff}\u{feff}data: a\n\n", &["stray(\\u{feff}data: a)"]),
        ("data: \u{feff}a\n\n", &["event(\\u{feff}a)"]),
        ("data: a\n\n\u{feff}data: b\n\n", &["event(a)", "stray(\\u{feff}data: b)"]),
        ("\u{feff}", &[]),
    ]);
    // The beginning of a BOM that never becomes one is text.
    let expected = Owned::Stray { line: vec![0xEF, 0xBB], offset: 0 };
    assert_eq!(frames_any_cut(&[0xEF, 0xBB]), [expected]);
    let expected = Owned::Stray { line: vec![0xEF, 0xBB, b'x'], offset: 0 };
    assert_eq!(frames_any_cut(&[0xEF, 0xBB, b'x', b'\n']), [expected]);
}

#[test]
fn an_event_leaves_at_the_cr_that_ends_it() {
    let mut framer = Sse::new(1 << 20);
    let mut found = Vec::new();
    let mut sink = |frame: Frame<'_>| {
        found.push(Owned::from_frame(frame));
        ControlFlow::Continue(())
    };
    let _ = framer.feed(b"data: a\r\n\r", &mut sink);
    let _ = framer.feed(b"\n", &mut sink);
    let _ = framer.feed(b"data: b\r\r", &mut sink);
    assert_eq!(say(&found), ["event(a)", "event(b)"]);
}

#[test]
fn fields_are_taken_apart_at_the_first_colon() {
    check(&[
        ("data:a\n\n", &["event(a)"]),
        ("data:  a\n\n", &["event( a)"]),
        ("data:\ta \n\n", &["event(\\ta )"]),
        ("data: a: b\n\n", &["event(a: b)"]),
        ("data\n\n", &["event()"]),
        ("data:\n\n", &["event()"]),
        ("data: \n\n", &["event()"]),
        ("data:\ndata:\n\n", &["event(\\n)"]),
        ("data\ndata\ndata\n\n", &["event(\\n\\n)"]),
        ("data: a\ndata: b\n\n", &["event(a\\nb)"]),
        ("data: a\n: comment\n:\ndata: b\n\n", &["event(a\\nb)"]),
        ("data: a\nid: 1\nretry: 5\nretry: x\nid\nid: \u{0}\ndata: b\n\n", &["event(a\\nb)"]),
        ("data: \u{0}\n\n", &["event(\\0)"]),
        ("event: x\ndata: a\n\ndata: b\n\n", &["event[x](a)", "event(b)"]),
        ("event: x\nevent: y\ndata: a\n\n", &["event[y](a)"]),
        ("event: x\nevent:\ndata: a\n\n", &["event(a)"]),
        ("event:x\ndata: a\n\n", &["event[x](a)"]),
        ("data: a\nevent: late\n\n", &["event[late](a)"]),
        // An event without data fires nothing and its name does not leak into the next.
        ("event: ping\n\ndata: a\n\n", &["event(a)"]),
        ("id: 1\n\n: x\n\n", &[]),
        // Names are exact: case and white space count.
        ("Data: a\n\n", &["stray(Data: a)"]),
        (" data: a\n\n", &["stray( data: a)"]),
        ("data : a\n\n", &["stray(data : a)"]),
        ("datax\n\n", &["stray(datax)"]),
    ]);
}

#[test]
fn what_stands_unfinished_at_the_end_is_handed_over_as_unfinished() {
    check(&[
        ("data: a\n", &["event?(a)"]),
        ("data: a", &["event?(a)"]),
        ("data: a\r", &["event?(a)"]),
        ("event: x\ndata: a\ndata: b", &["event[x]?(a\\nb)"]),
        ("data: a\n\ndata: [DONE]", &["event(a)", "event?([DONE])"]),
        ("event: x\n", &[]),
        ("dat", &["stray(dat)"]),
        ("data", &["event?()"]),
    ]);
}

#[test]
fn deviations_of_servers_are_told_apart() {
    check(&[
        // The field of llama.cpp builds until late 2025.
        ("error: {\"message\":\"m\"}\n\n", &["event[error]({\\\"message\\\":\\\"m\\\"})"]),
        ("error: {\ndata: }\n\n", &["event[error]({\\n})"]),
        // Keep-alives: comments, empty data, an event of its own.
        (": OPENROUTER PROCESSING\n\n: ping\n\n:\n\n", &[]),
        ("data: : keepalive\n\n", &["event(: keepalive)"]),
        ("event: ping\ndata: {}\n\n", &["event[ping]({})"]),
        ("event: error\ndata: {}\n\n", &["event[error]({})"]),
        // Bare JSON is not a field.
        ("{\"error\": 1}", &["stray({\\\"error\\\": 1})"]),
        ("{\n  \"a\": 1\n}\n", &["stray({)", "stray(  \\\"a\\\": 1)", "stray(})"]),
        // Blank lines and end markers without a space.
        ("data:[DONE]\n\n\n\n", &["event([DONE])"]),
    ]);
}

#[test]
fn offsets_count_from_the_first_byte_of_the_body() {
    let body = "\u{feff}: c\r\n\r\ndata: a\r\n\r\nx\r\n\nevent: n\ndata: b\n\n".as_bytes();
    let at = |text: &str| {
        let found = body.windows(text.len()).position(|window| window == text.as_bytes());
        found.expect("it is there") as u64
    };
    let offsets: Vec<u64> = frames_any_cut(body)
        .iter()
        .map(|frame| match frame {
            Owned::Event { offset, .. } | Owned::Stray { offset, .. } => *offset,
            Owned::TooLong => panic!("nothing is long here"),
        })
        .collect();
    assert_eq!(offsets, [at("data: a"), at("x\r"), at("data: b")]);
}

#[test]
fn a_sink_that_breaks_gets_nothing_more_of_that_feed() {
    let mut framer = Sse::new(1 << 20);
    let mut count = 0;
    let flow = framer.feed(b"data: a\n\ndata: b\n\n", |_: Frame<'_>| {
        count += 1;
        ControlFlow::Break(())
    });
    assert!(flow.is_break());
    assert_eq!(count, 1);
}

/// Bodies around a bound of 16 bytes: exactly as long, and one byte longer, from each side.
#[test]
fn an_event_that_exceeds_the_limit_is_told_in_any_chunking() {
    let fits: &[&str] = &[
        "data:12345678901\n\n",
        "data: 1234567890\n\n",
        "event: 123456789\n\n",
        ": 34567890123456\n\n",
        "data: a\ndata: b\n\n",
        "data:1\n\n".repeat(9).leak(),
    ];
    let long: &[&str] = &[
        "data:123456789012345678901234567890\n\n",
        "event: 123456789012345678901234567890\ndata: a\n\n",
        ": 1234567890123456789012345678901234567890\n\n",
        "unknown: 12345678901234567890123456789\n\n",
        "data:1\ndata:2\ndata:3\ndata:4\ndata:5\ndata:6\ndata:7\ndata:8\ndata:9\ndata:10\n\n",
        "data:123456789012345678901234567890",
    ];
    for (bodies, expected) in [(fits, false), (long, true)] {
        for body in bodies {
            let whole = frames_within(16, [body.as_bytes()]);
            let last = whole.last() == Some(&Owned::TooLong);
            assert_eq!(last, expected, "{body:?} {whole:?}");
            for cut in 1..body.len() {
                let (head, tail) = body.as_bytes().split_at(cut);
                assert_eq!(frames_within(16, [head, tail]), whole, "cut {cut} of {body:?}");
            }
            let single = frames_within(16, body.as_bytes().chunks(1));
            assert_eq!(single, whole, "byte by byte {body:?}");
        }
    }
}

#[test]
fn what_was_complete_before_a_long_event_was_handed_over() {
    let found = frames_within(16, [&b"data: a\n\ndata: 123456789012345678901\n\ndata: c\n\n"[..]]);
    assert_eq!(say(&found), ["event(a)", "too long"]);
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(String::new()),
        4 => "data:[ ]{0,2}[a:é\u{2028}\u{85}\u{feff}]{0,6}",
        1 => "event: ?[ab]{0,3}",
        1 => "(id|retry|data|event)",
        1 => ":[ a]{0,4}",
        1 => "[ adt:\u{feff}]{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn any_body_in_any_chunking_frames_as_the_specification_says(
        bom in any::<bool>(),
        lines in proptest::collection::vec((line(), prop_oneof!["\n", "\r\n", "\r"]), 0..24),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut body = String::from(if bom { "\u{feff}" } else { "" });
        for (line, end) in &lines {
            body.push_str(line);
            body.push_str(end);
        }
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        agree_with_the_specification(&body, &cuts);
    }
}
