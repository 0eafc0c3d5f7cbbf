//! Events that repeat a template are taken before they are framed: what frames them decides as if they were not.

use crate::support::oracles::streams::{chunkings_agree, templates_agree};
use crate::support::{decode_with, fold, options};
use deltafold::contract::Payload;
use deltafold::decoder::Decoder;
use deltafold::limits::Limits;
use proptest::prelude::*;

const CHAT: &str = "openai-chat";
const ANTHROPIC: &str = "anthropic-messages";

/// The JSON of an event that says this.
fn says(dialect: &str, text: &str) -> String {
    if dialect == CHAT {
        format!(
            r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}]}}"#
        )
    } else {
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
        )
    }
}

/// Four events that teach a template.
fn learned(dialect: &str) -> Vec<u8> {
    let name = if dialect == CHAT { "" } else { "event: content_block_delta\n" };
    let event = |text| format!("{name}data: {}\n\n", says(dialect, text));
    ["a", "b", "c", "d"].map(event).concat().into_bytes()
}

/// Text of a body, and the code of the error that ends it.
fn said(dialect: &str, body: &[u8]) -> (String, String) {
    let deltas = decode_with(Decoder::new(options(dialect)).unwrap(), [body]);
    let code = match &deltas.last().unwrap().payload {
        Payload::Error(failure) => failure.code.as_str(),
        _ => "none",
    };
    (fold(&deltas).text(), code.to_owned())
}

#[test]
fn what_frames_an_event_decides_as_if_it_repeated_nothing() {
    let text = |text| says(CHAT, text);
    let cut = text("x").replacen(',', ",\ndata: ", 1);
    let lost = "connection_lost";
    let cases: &[(&str, String, &str, &str)] = &[
        ("the same again", format!("data: {}\n\n", text("x")), "x", lost),
        ("CR LF", format!("data: {}\r\n\r\n", text("x")), "x", lost),
        ("CR", format!("data: {}\r\r", text("x")), "x", lost),
        ("LF, then CR LF", format!("data: {}\n\r\n", text("x")), "x", lost),
        ("no space", format!("data:{}\n\n", text("x")), "x", lost),
        ("two spaces", format!("data:  {}\n\n", text("x")), "x", lost),
        ("a space behind it", format!("data: {} \n\n", text("x")), "x", lost),
        ("three blank lines", format!("data: {}\n\n\n\n", text("x")), "x", lost),
        ("a name", format!("event: message\ndata: {}\n\n", text("x")), "x", lost),
        ("an id before", format!("id: 7\ndata: {}\n\n", text("x")), "x", lost),
        ("an id behind", format!("data: {}\nid: 7\n\n", text("x")), "x", lost),
        ("a comment before", format!(": ping\ndata: {}\n\n", text("x")), "x", lost),
        ("two lines of data", format!("data: {cut}\n\n"), "x", lost),
        ("no blank line", format!("data: {}\ndata: {}\n\n", text("x"), text("y")), "xy", lost),
        ("no end", format!("data: {}", text("x")), "x", lost),
        ("one line end", format!("data: {}\n", text("x")), "x", lost),
        ("a line end in the text", format!("data: {}\n\n", text("x\ny")), "", "protocol_error"),
        ("a blank line in the text", format!("data: {}\n\n", text("x\n\ny")), "", "protocol_error"),
        ("another event's name", format!("event: error\ndata: {}\n\n", text("x")), "x", lost),
        ("garbage before", format!("x\ndata: {}\n\n", text("x")), "x", lost),
        ("an end marker", "data: [DONE]\n\n".to_owned(), "", lost),
    ];
    for (name, twist, more, code) in cases {
        for after in ["", "data: [DONE]\n\n"] {
            let body = [&learned(CHAT), twist.as_bytes(), after.as_bytes()].concat();
            if after.is_empty() {
                let found = said(CHAT, &body);
                assert_eq!(found, (format!("abcd{more}"), (*code).to_owned()), "{name}");
            }
            templates_agree(name, CHAT, &body);
            let start = learned(CHAT).len();
            chunkings_agree(CHAT, &body, &[start, start + 3]);
            chunkings_agree(CHAT, &body, &[start + twist.len() / 2]);
        }
    }
}

#[test]
fn an_event_of_another_name_repeats_nothing() {
    let event = |name: &str, text| format!("event: {name}\ndata: {}\n\n", says(ANTHROPIC, text));
    let body =
        [learned(ANTHROPIC), event("ping", "x").into(), event("content_block_delta", "y").into()];
    let body = body.concat();
    assert_eq!(said(ANTHROPIC, &body).0, "abcdxy");
    templates_agree("another name", ANTHROPIC, &body);
    chunkings_agree(ANTHROPIC, &body, &[600]);
}

#[test]
fn a_line_end_in_an_object_frames_it() {
    let chunk = |text: &str, count: &str| {
        format!(
            r#"data: {{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}}}}],"usageMetadata":{{"promptTokenCount":1,"candidatesTokenCount":{count}}}}}"#
        )
    };
    let mut body: String = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]
        .map(|(t, n)| chunk(t, n) + "\n\n")
        .concat();
    // The object goes on in a second data line, and in none.
    body += &(chunk("x", "\ndata: 5") + "\n\n");
    body += &(chunk("y", "6") + "\n\n");
    assert_eq!(said("gemini", body.as_bytes()).0, "abcdxy");
    templates_agree("two data lines", "gemini", body.as_bytes());
    chunkings_agree("gemini", body.as_bytes(), &[100]);
    body += &(chunk("z", "\n7") + "\n\n");
    assert_eq!(said("gemini", body.as_bytes()), ("abcdxy".to_owned(), "protocol_error".to_owned()));
    templates_agree("a line that is none", "gemini", body.as_bytes());
    chunkings_agree("gemini", body.as_bytes(), &[100]);
}

/// A feed is text up to its first wrong byte, and a character may be cut at its end.
#[test]
fn wrong_bytes_and_cut_characters_are_those_of_their_event() {
    let event = |text: &[u8]| {
        let json = says(CHAT, "|");
        let (before, after) = json.split_once('|').unwrap();
        [b"data: ", before.as_bytes(), text, after.as_bytes(), b"\n\n"].concat()
    };
    let cases: &[(&[u8], &str)] = &[
        ("ü".as_bytes(), "ü"),
        ("👍".as_bytes(), "👍"),
        (b"\xC3", "\u{FFFD}"),
        (b"\xF0\x9F\x91", "\u{FFFD}"),
        (b"\xFF\xFE", "\u{FFFD}\u{FFFD}"),
        (b"\xED\xA0\x80", "\u{FFFD}\u{FFFD}\u{FFFD}"),
    ];
    for (wrong, seen) in cases {
        let body = [
            &learned(CHAT)[..],
            &learned(CHAT),
            &event("é".as_bytes()),
            &event(wrong),
            &event(b"x"),
            &event(wrong),
            &event(b"y"),
        ];
        let body = body.concat();
        assert_eq!(said(CHAT, &body).0, format!("abcdabcdé{seen}x{seen}y"));
        templates_agree(seen, CHAT, &body);
        for cut in 0..body.len() {
            chunkings_agree(CHAT, &body, &[cut]);
        }
    }
}

#[test]
fn an_event_over_the_limit_repeats_nothing() {
    let event = format!("data: {}\n\n", says(CHAT, "four"));
    // The limit does not count its last line end.
    for (room, fits) in [(0, true), (-1, true), (-2, true), (-3, false)] {
        let event_bytes = event.len().checked_add_signed(room).unwrap();
        let options = || {
            let limits = Limits { event_bytes, ..Limits::default() };
            let mut options = options(CHAT);
            options.stream.limits = limits;
            options
        };
        let body = [&learned(CHAT)[..], event.as_bytes()].concat();
        let whole = decode_with(Decoder::new(options()).unwrap(), [&body[..]]);
        let bytewise = decode_with(Decoder::new(options()).unwrap(), body.chunks(1));
        assert_eq!(whole, bytewise, "{room}");
        assert_eq!(fold(&whole).text().ends_with("four"), fits, "{room}");
    }
}

/// Events of two dialects' kinds, whole or damaged in their framing.
fn framed_event() -> impl Strategy<Value = Vec<u8>> {
    let before = prop::sample::select(vec!["", "", "", ": c\n", "id: 1\n", "event: ping\n", "\n"]);
    let field = prop::sample::select(vec!["data: ", "data: ", "data: ", "data:", "data:  "]);
    let text = prop::sample::select(vec!["a", "bc", r#"\""#, "é", "", "a\nb", "\u{1}"]);
    let end = prop::sample::select(vec!["\n\n", "\n\n", "\n\n", "\r\n\r\n", "\n", " \n\n", ""]);
    (before, field, text, end).prop_map(|(before, field, text, end)| {
        format!("{before}{field}{}{end}", says(CHAT, text)).into_bytes()
    })
}

proptest! {
    #[test]
    fn framings_that_alternate_change_no_delta(
        events in prop::collection::vec(framed_event(), 1..24),
        wrong in prop::option::of((0_usize..4_000, any::<u8>())),
        cuts in prop::collection::vec(0_usize..4_000, 0..4),
    ) {
        let mut body = [learned(CHAT), events.concat()].concat();
        if let Some((at, byte)) = wrong {
            let at = at % body.len();
            body[at] = byte;
        }
        templates_agree("alternating", CHAT, &body);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % body.len()).collect();
        cuts.sort_unstable();
        chunkings_agree(CHAT, &body, &cuts);
    }
}
