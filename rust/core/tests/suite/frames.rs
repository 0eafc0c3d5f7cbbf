//! Binary frames, lines of JSON and JSON arrays, row by row: each body whole, cut at every byte, and byte by byte.

use std::ops::ControlFlow;

use crate::support::binary::{event, frame, header, headers};
use deltafold::framing::aws_event_stream::{FrameTooLong, HeaderBlock, write_frame, write_header};
use deltafold::framing::{Frame, Framer, Framing};
use proptest::prelude::*;

/// A frame that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Event { name: String, data: String, offset: u64 },
    Line { line: String, offset: u64 },
    Failure { code: String, message: String, data: String },
    Corrupt(&'static str, u64),
    TooLong,
}

impl Owned {
    fn from_frame(frame: Frame<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match frame {
            Frame::Event { name, data, offset, closed, .. } => {
                assert!(closed);
                Self::Event { name: text(name), data: text(data), offset }
            }
            Frame::Stray { line, offset, record } => {
                assert!(record);
                Self::Line { line: text(line), offset }
            }
            Frame::Failure { code, message, data } => {
                Self::Failure { code: text(code), message: text(message), data: text(data) }
            }
            Frame::Corrupt { what, offset } => Self::Corrupt(what, offset),
            Frame::TooLong => Self::TooLong,
        }
    }
}

/// Frames of a body fed in these pieces, and the framer after them; nothing is fed after a frame that ends the stream.
fn frames_within<'a>(
    framing: Framing,
    max: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Owned>, Framer) {
    let mut framer = Framer::new(framing, max);
    let mut found = Vec::new();
    let mut sink = |frame: Frame<'_>| {
        found.push(Owned::from_frame(frame));
        match found.last() {
            Some(Owned::Corrupt(..) | Owned::TooLong) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    let mut flow = ControlFlow::Continue(());
    for piece in pieces {
        flow = framer.feed(piece, &mut sink);
        if flow.is_break() {
            break;
        }
    }
    let before = framer.clone();
    if flow.is_continue() {
        let _ = framer.close(&mut sink);
    }
    (found, before)
}

/// The frames of a body, the same at every cut and byte by byte, and so is the framer after them.
fn frames(framing: Framing, body: &[u8]) -> Vec<Owned> {
    let (whole, state) = frames_within(framing, 1 << 20, [body]);
    let broken = matches!(whole.last(), Some(Owned::Corrupt(..) | Owned::TooLong));
    for cut in 1..body.len() {
        let (halves, after) = frames_within(framing, 1 << 20, [&body[..cut], &body[cut..]]);
        assert_eq!(halves, whole, "cut {cut} of {:?}", String::from_utf8_lossy(body));
        assert!(broken || after == state, "cut {cut}: the framer differs");
    }
    let (single, _) = frames_within(framing, 1 << 20, body.chunks(1));
    assert_eq!(single, whole, "byte by byte {:?}", String::from_utf8_lossy(body));
    whole
}

fn aws(body: &[u8]) -> Vec<Owned> {
    frames(Framing::AwsEventStream, body)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn said(name: &str, data: &str, offset: u64) -> Owned {
    Owned::Event { name: name.to_owned(), data: data.to_owned(), offset }
}

#[test]
fn the_examples_of_the_specification_are_read() {
    let stop = hex("0000007a 00000051 ca2c4665
        0b 3a6576656e742d74797065 07 000b 6d65737361676553746f70
        0d 3a636f6e74656e742d74797065 07 0010 6170706c69636174696f6e2f6a736f6e
        0d 3a6d6573736167652d74797065 07 0005 6576656e74
        7b2273746f70526561736f6e223a22656e645f7475726e227d 5fbf09fc");
    assert_eq!(aws(&stop), [said("messageStop", "{\"stopReason\":\"end_turn\"}", 0)]);
    let throttled = hex("0000008e 00000061 51418054
        0f 3a657863657074696f6e2d74797065 07 0013 7468726f74746c696e67457863657074696f6e
        0d 3a636f6e74656e742d74797065 07 0010 6170706c69636174696f6e2f6a736f6e
        0d 3a6d6573736167652d74797065 07 0009 657863657074696f6e
        7b226d657373616765223a22546f6f206d616e7920746f6b656e73227d c81b1ec1");
    let failure = Owned::Failure {
        code: "throttlingException".to_owned(),
        message: String::new(),
        data: "{\"message\":\"Too many tokens\"}".to_owned(),
    };
    assert_eq!(aws(&throttled), std::slice::from_ref(&failure));
    let both = [stop, throttled].concat();
    assert_eq!(aws(&both), [said("messageStop", "{\"stopReason\":\"end_turn\"}", 0), failure]);
    // The checksums of a frame without headers are right, but it has no message type.
    for vector in
        ["00000010 00000000 05c248eb 7d98c8ff", "00000012 00000000 7f021b8b 7b7d 2f9261fa"]
    {
        assert_eq!(aws(&hex(vector)), [Owned::Corrupt("it has no :message-type", 0)]);
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let first = event("contentBlockDelta", "{\"delta\":{\"text\":\"Hi\"}}");
    let body = [first.as_slice(), &event("messageStop", "{}")].concat();
    for bit in 0..first.len() * 8 {
        let mut flipped = body.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let (found, _) = frames_within(Framing::AwsEventStream, usize::MAX, [flipped.as_slice()]);
        assert!(matches!(found.as_slice(), [Owned::Corrupt(_, 0)]), "bit {bit}: {found:?}");
    }
}

#[test]
fn a_frame_that_is_cut_off_says_nothing() {
    let first = event("a", "{}");
    let body = [first.as_slice(), &event("b", "{}")].concat();
    for end in 0..body.len() {
        let (found, _) = frames_within(Framing::AwsEventStream, 1 << 20, [&body[..end]]);
        assert_eq!(found.len(), usize::from(end >= first.len()), "cut at {end}");
    }
}

#[test]
fn a_frame_that_its_length_fields_cannot_hold_is_not_written() {
    let mut out = Vec::new();
    assert_eq!(write_header(&mut out, &"n".repeat(256), ""), Err(FrameTooLong));
    assert_eq!(write_header(&mut out, "n", &"v".repeat(1 << 16)), Err(FrameTooLong));
    assert_eq!(write_frame(&mut out, &vec![0; (128 << 10) + 1], b""), Err(FrameTooLong));
    assert_eq!(out, b"");
    write_header(&mut out, &"n".repeat(255), &"v".repeat((1 << 16) - 1)).unwrap();
    assert_eq!(out.len(), 1 + 255 + 1 + 2 + (1 << 16) - 1);
}

#[test]
fn prepared_headers_give_the_same_frame_for_every_length() {
    let mut bytes = Vec::new();
    write_header(&mut bytes, ":event-type", "contentBlockDelta").unwrap();
    for headers in [Vec::new(), bytes, vec![7; 300]] {
        let block = HeaderBlock::new(headers.clone());
        let text = "abcdefgh".repeat(9_000).into_bytes();
        let lengths = (0..700).chain([4_095, 4_096, 65_200, 65_519, 65_520, 65_535, 72_000]);
        for payload in lengths.map(|length| &text[..length]) {
            let (mut prepared, mut plain) = (b"before".to_vec(), b"before".to_vec());
            block.write_frame(&mut prepared, payload).unwrap();
            write_frame(&mut plain, &headers, payload).unwrap();
            assert_eq!(prepared, plain, "{} and {} bytes", headers.len(), payload.len());
        }
    }
    let mut out = Vec::new();
    let long = HeaderBlock::new(vec![0; (128 << 10) + 1]);
    assert_eq!(long.write_frame(&mut out, b""), Err(FrameTooLong));
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let prelude = |total: u32, headers: u32| {
        let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    };
    for (total, headers) in [(0, 0), (15, 0), (16, 1), (20, 5), (u32::MAX, u32::MAX)] {
        let found = aws(&prelude(total, headers));
        assert_eq!(
            found,
            [Owned::Corrupt("its lengths contradict each other", 0)],
            "{total} {headers}"
        );
    }
    let found = aws(&prelude(1 << 20, (128 << 10) + 1));
    assert_eq!(found, [Owned::Corrupt("its headers are longer than 128 KiB", 0)]);
    // The prelude shows that a frame is too long, before the frame has arrived.
    assert_eq!(aws(&prelude((1 << 20) + 1, 0)), [Owned::TooLong]);
    assert_eq!(aws(&prelude(1 << 20, 0)), []);
    assert_eq!(aws(&prelude(u32::MAX, 0)), [Owned::TooLong]);
}

#[test]
fn headers_of_all_types_are_stepped_over_and_broken_ones_refused() {
    let kind = header(":message-type", "event");
    let typed = |kind: u8, value: &[u8]| [&[1, b'x', kind], value].concat();
    for (number, size) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
        for block in [[typed(number, &vec![0xFF; size]), kind.clone()].concat(), {
            [kind.clone(), typed(number, &vec![0; size])].concat()
        }] {
            assert_eq!(aws(&frame(&block, b"{}")), [said("", "{}", 0)], "type {number}");
        }
    }
    assert_eq!(aws(&frame(&[kind.clone(), typed(6, b"\0\x02\xff\0")].concat(), b"")).len(), 1);
    for (block, what) in [
        (typed(10, b""), "a header has a type that does not exist"),
        (typed(4, b"\0\0\0"), "a header is cut off"),
        (typed(7, b"\0\x05abc"), "a header is cut off"),
        (typed(7, b"\0"), "a header is cut off"),
        (vec![5, b'x'], "a header is cut off"),
        (vec![1, b'x'], "a header is cut off"),
        (vec![0, 7, 0, 0], "a header has no name"),
        (kind.clone(), "a header stands in it twice"),
        ([typed(0, b""), typed(1, b"")].concat(), "a header stands in it twice"),
        ([&[11][..], b":event-type", &[0]].concat(), "a reserved header is no string"),
    ] {
        let found = aws(&frame(&[kind.clone(), block].concat(), b"{}"));
        assert_eq!(found, [Owned::Corrupt(what, 0)]);
    }
    // Few headers are compared one by one, many are sorted.
    for many in [7, 8, 9, 400] {
        let names: Vec<String> = (0..many).map(|n| format!("h{n}")).collect();
        let block: Vec<u8> = names.iter().flat_map(|name| header(name, "v")).collect();
        let fine = [kind.clone(), block.clone()].concat();
        assert_eq!(aws(&frame(&fine, b"{}")), [said("", "{}", 0)], "{many} headers");
        for twice in ["h0", "h6"] {
            let block = [fine.clone(), header(twice, "w")].concat();
            let found = aws(&frame(&block, b"{}"));
            assert_eq!(found, [Owned::Corrupt("a header stands in it twice", 0)], "{many}");
        }
    }
}

#[test]
fn message_types_tell_events_from_failures() {
    let error =
        headers(&[(":message-type", "error"), (":error-code", "C"), (":error-message", "M")]);
    let failure = |code: &str, message: &str, data: &str| Owned::Failure {
        code: code.to_owned(),
        message: message.to_owned(),
        data: data.to_owned(),
    };
    assert_eq!(aws(&frame(&error, b"")), [failure("C", "M", "")]);
    let bare = headers(&[(":message-type", "exception")]);
    assert_eq!(aws(&frame(&bare, b"{}")), [failure("", "", "{}")]);
    let new = headers(&[(":message-type", "ping"), (":event-type", "e")]);
    assert_eq!(aws(&frame(&new, b"{}")), [said("e", "{}", 0)]);
}

#[test]
fn a_frame_of_16_mb_is_one_event() {
    let body = event("e", &format!("\"{}\"", "x".repeat(16 << 20)));
    let (found, _) = frames_within(Framing::AwsEventStream, 32 << 20, body.chunks(1 << 16));
    assert!(
        matches!(found.as_slice(), [Owned::Event { data, .. }] if data.len() == (16 << 20) + 2)
    );
    let (found, _) = frames_within(Framing::AwsEventStream, 16 << 20, body.chunks(1 << 16));
    assert_eq!(found, [Owned::TooLong]);
}

#[test]
fn lines_end_at_lf_and_at_nothing_else() {
    let line = |line: &str, offset| Owned::Line { line: line.to_owned(), offset };
    for (body, wanted) in [
        ("", vec![]),
        ("\n\r\n\n", vec![]),
        ("{}\n", vec![line("{}", 0)]),
        ("{}", vec![line("{}", 0)]),
        ("{}\r\n[]\r\n", vec![line("{}", 0), line("[]", 4)]),
        ("{}\r\r\n", vec![line("{}\r", 0)]),
        ("{\"a\":\r1}\n", vec![line("{\"a\":\r1}", 0)]),
        (
            "\"\u{2028}\u{2029}\u{85}\u{b}\u{c}\"\n",
            vec![line("\"\u{2028}\u{2029}\u{85}\u{b}\u{c}\"", 0)],
        ),
        ("\u{feff}{}\n\u{feff}{}\n", vec![line("{}", 0), line("\u{feff}{}", 6)]),
        ("a\n\nbé\nc", vec![line("a", 0), line("bé", 3), line("c", 7)]),
    ] {
        assert_eq!(frames(Framing::Ndjson, body.as_bytes()), wanted, "{body:?}");
    }
    for body in ["0123456789\n", "0123456789", "ok\n0123456789"] {
        let pieces = |size| body.as_bytes().chunks(size);
        for size in 1..=body.len() {
            let (found, _) = frames_within(Framing::Ndjson, 9, pieces(size));
            assert_eq!(found.last(), Some(&Owned::TooLong), "{body:?} in pieces of {size}");
            let (found, _) = frames_within(Framing::Ndjson, 10, pieces(size));
            assert_ne!(found.last(), Some(&Owned::TooLong), "{body:?} in pieces of {size}");
        }
    }
}

#[test]
fn elements_of_an_array_end_where_their_brackets_do() {
    let element = |data: &str, offset| said("", data, offset);
    for (body, wanted) in [
        ("", vec![]),
        ("[]", vec![]),
        ("[{}]", vec![element("{}", 1)]),
        (
            " \n[\r\n{}\n,\n{\"a\":[1,{}]}\n]\n",
            vec![element("{}", 5), element("{\"a\":[1,{}]}", 10)],
        ),
        (
            "[{\"a\":\"}]\\\"\\\\\"},{}",
            vec![element("{\"a\":\"}]\\\"\\\\\"}", 1), element("{}", 16)],
        ),
        (
            "[{\"a\":\"{[\"},[{}],\"x,]\",7,null]",
            vec![
                element("{\"a\":\"{[\"}", 1),
                element("[{}]", 12),
                element("\"x,]\"", 17),
                element("7", 23),
                element("null", 25),
            ],
        ),
        ("\u{feff}[{}]", vec![element("{}", 4)]),
        // An array that never closes gives its whole elements; elements after its end are read too.
        ("[{},{\"a\":", vec![element("{}", 1)]),
        ("[{},", vec![element("{}", 1)]),
        ("[{}]\n[{}]{}", vec![element("{}", 1), element("{}", 6), element("{}", 9)]),
        // Brackets that contradict each other are the reader's question.
        ("[{],{}]", vec![element("{]", 1), element("{}", 4)]),
    ] {
        assert_eq!(frames(Framing::JsonArray, body.as_bytes()), wanted, "{body:?}");
    }
    for body in ["[{\"a\":\"0123\"}]", "[\"012345678\",", "[{}, {\"a\":\"0123"] {
        for size in 1..=body.len() {
            let (found, _) = frames_within(Framing::JsonArray, 9, body.as_bytes().chunks(size));
            assert_eq!(found.last(), Some(&Owned::TooLong), "{body:?} in pieces of {size}");
        }
    }
}

const TEMPTING: &[&str] = &[
    "[",
    "]",
    "{\"a\":1}",
    "{",
    "}",
    "\"",
    "\\",
    ",",
    " ",
    "\n",
    "\r",
    "x",
    "\u{feff}",
    "7",
    "\0",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn frames_do_not_depend_on_cuts(
        body in prop::collection::vec(prop::sample::select(TEMPTING), 0..40),
        size in 1..9_usize,
    ) {
        let body = body.concat();
        for framing in [Framing::Ndjson, Framing::JsonArray, Framing::AwsEventStream] {
            for max in [8, 1 << 10] {
                let whole = frames_within(framing, max, [body.as_bytes()]);
                let pieces = frames_within(framing, max, body.as_bytes().chunks(size));
                prop_assert_eq!(&whole.0, &pieces.0);
            }
        }
    }

    #[test]
    fn binary_frames_come_out_as_they_went_in(
        events in prop::collection::vec(("[a-zA-Z]{0,20}", "[ -~]{0,60}"), 0..8),
        size in 1..200_usize,
    ) {
        let body: Vec<u8> = events.iter().flat_map(|(name, data)| event(name, data)).collect();
        let (found, _) = frames_within(Framing::AwsEventStream, 1 << 20, body.chunks(size));
        let found: Vec<(String, String)> = found.into_iter().map(|frame| match frame {
            Owned::Event { name, data, .. } => (name, data),
            other => panic!("{other:?}"),
        }).collect();
        prop_assert_eq!(found, events);
    }
}
