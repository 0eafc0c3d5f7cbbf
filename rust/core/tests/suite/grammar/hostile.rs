//! Hostile bytes: no panic, no growth without a bound, linear time.

use std::time::{Duration, Instant};

use super::{Checker, encode, fed, good_streams, verdict};
use deltafold_grammar::{check_body, targets};
use proptest::prelude::*;

/// Feed a body in one piece, whatever the verdict is.
fn survives(target: &str, body: &[u8]) {
    let mut checker = Checker::new(target).unwrap();
    let _ = checker.feed(body);
    let _ = checker.close();
    let _ = check_body(target, 200, body);
    let _ = check_body(target, 500, body);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn any_bytes_are_survived(body in proptest::collection::vec(any::<u8>(), 0..200), size in 1_usize..9) {
        for target in targets() {
            survives(target, &body);
            let whole = fed(target, &body, body.len().max(1)).0;
            prop_assert_eq!(fed(target, &body, size).0, whole);
        }
    }

    #[test]
    fn any_value_in_a_good_stream_is_survived(
        place in any::<prop::sample::Index>(),
        token in r#"null|0|1|7|-1|1.5|18446744073709551616|""|"x"|"a"|true|\{\}|\[\]|\[\{\}\]|"#,
        size in 1_usize..9,
    ) {
        for (target, stream) in good_streams() {
            let colons: Vec<_> = stream.match_indices("\":").map(|(at, _)| at + 2).collect();
            let start = colons[place.index(colons.len())];
            let end = stream[start..].find([',', '}', ']']).map_or(start, |length| start + length);
            let body = encode(target, &format!("{}{token}{}", &stream[..start], &stream[end..]));
            let whole = fed(target, &body, body.len()).0;
            prop_assert_eq!(fed(target, &body, size).0, whole);
        }
    }

    #[test]
    fn any_byte_in_a_good_stream_is_survived(
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        size in 1_usize..9,
    ) {
        for (target, stream) in good_streams() {
            let mut body = encode(target, &stream);
            let at = place.index(body.len());
            body[at] = byte;
            let whole = fed(target, &body, body.len()).0;
            prop_assert_eq!(fed(target, &body, size).0, whole);
        }
    }
}

#[test]
fn deep_json_is_refused() {
    let deep = format!("data: {}1{}\n\n", "[".repeat(100_000), "]".repeat(100_000));
    let mut checker = Checker::new("ag-ui").unwrap();
    let violation = checker.feed(deep.as_bytes()).unwrap_err();
    assert!(violation.rule.contains("nested too deeply"), "{violation}");
}

#[test]
fn a_frame_with_impossible_lengths_is_refused_before_it_comes() {
    for (total, headers, words) in [
        (u32::MAX, 0, "the frame is longer than"),
        (1 << 20, 1 << 18, "the headers are longer than"),
        (17, 2, "the frame of 17 bytes has no room for 2 of headers"),
        (0, 0, "the frame of 0 bytes has no room"),
    ] {
        let mut prelude: Vec<u8> = [u32::to_be_bytes(total), u32::to_be_bytes(headers)].concat();
        let sum = crc32fast::hash(&prelude);
        prelude.extend_from_slice(&sum.to_be_bytes());
        let violation = verdict("bedrock-converse", &prelude).unwrap_err();
        assert!(violation.rule.contains(words), "{violation}");
    }
}

#[test]
fn time_is_linear_in_the_bytes() {
    let deltas = |count: usize| {
        let head = "data: {\"type\":\"start\"}\n\ndata: {\"type\":\"start-step\"}\n\n";
        let start = "data: {\"type\":\"text-start\",\"id\":\"0\"}\n\n";
        let delta = "data: {\"type\":\"text-delta\",\"id\":\"0\",\"delta\":\"word \"}\n\n";
        format!("{head}{start}{}", delta.repeat(count))
    };
    let members = |count: usize| {
        let members: Vec<_> = (0..count).map(|at| format!("\"k{at}\":{at}")).collect();
        format!("data: {{{}}}\n\n", members.join(","))
    };
    let blocks = |count: usize| {
        let head =
            r#"{"event":"message-start","role":"ai","metadata":{"provider":"p","model":"m"}}"#;
        let start = |index| {
            format!(
                r#"{{"event":"content-block-start","index":{index},"content":{{"type":"text","text":""}}}}"#
            )
        };
        let blocks: Vec<_> = (0..count).map(start).collect();
        format!("{head}\n{}\n", blocks.join("\n"))
    };
    let rows: [(&str, &str, String, usize); 4] = [
        ("deltas", "ai-sdk", deltas(200_000), 1 << 16),
        ("members", "ag-ui", members(400_000), 1 << 16),
        ("blocks", "langchain", blocks(200_000), 1 << 16),
        ("one long event", "gemini", format!("data: {}", "x".repeat(4 << 20)), 1),
    ];
    for (name, target, body, size) in rows {
        let start = Instant::now();
        let mut checker = Checker::new(target).unwrap();
        let _ = body.as_bytes().chunks(size).try_for_each(|piece| checker.feed(piece));
        // Linear time is a fifth of a second, quadratic time is far above the bound.
        assert!(start.elapsed() < Duration::from_secs(8), "{name}: {:?}", start.elapsed());
    }
}
