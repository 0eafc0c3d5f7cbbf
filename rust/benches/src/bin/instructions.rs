//! Command that runs the work whose instructions are counted, one case per process, so that callgrind counts nothing else.
//!
//! ```text
//! instructions                    print the names of the cases, one on each line, with their units of work
//! instructions --machine          print the facts about the machine on which a count depends
//! instructions CASE               do the work of the case once, and print its result
//! ```
//!
//! Only the work inside `counted_work` belongs to a case (`--toggle-collect=*counted_work*`).

#![allow(
    clippy::allow_attributes,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints"
)]

use std::process::ExitCode;

use deltafold::fold::partial_json::{Log, PartialJson};
use deltafold_benches::{hostile, stages, streams};

type Work = Box<dyn Fn() -> usize>;
/// Function that returns the feeds of a body of about this number of bytes.
type Feeds = fn(usize) -> Vec<Vec<u8>>;

struct Case {
    name: String,
    /// Number of events, deltas or bytes.  The count should be linear in it.
    units: usize,
    /// Prepares the work; the preparation is not counted.
    prepare: Box<dyn Fn() -> Work>,
}

fn case<W: Fn() -> usize + 'static>(
    name: String,
    units: usize,
    prepare: impl Fn() -> W + 'static,
) -> Case {
    Case { name, units, prepare: Box::new(move || Box::new(prepare())) }
}

fn fold_case(
    name: String,
    units: usize,
    dialect: &'static str,
    logprobs: bool,
    feeds: impl Fn() -> Vec<Vec<u8>> + 'static,
) -> Case {
    case(name, units, move || {
        let feeds = feeds();
        let mut options = stages::options(dialect);
        if let Some(options) = &mut options {
            options.stream.logprobs = logprobs;
        }
        move || {
            let Some(options) = options.clone() else { return 0 };
            stages::text_bytes(&stages::fold(options, &feeds))
        }
    })
}

const TEXT_DELTAS: usize = 2_000;
const SHORT_STREAMS: usize = 200;
const SHORT_DELTAS: usize = 15;
const LOGPROBS: usize = 500;
/// Targets that are dialects.
const TRANSCODED: [&str; 6] = [
    "anthropic-messages",
    "bedrock-converse",
    "gemini",
    "ollama",
    "openai-chat",
    "openai-responses",
];

fn text_cases(dialect: &'static str, cases: &mut Vec<Case>) {
    let name = |what: &str| format!("{dialect}: {what}");
    cases.push(fold_case(name("text, large feeds"), TEXT_DELTAS, dialect, false, move || {
        streams::large_feeds(&streams::text(dialect, TEXT_DELTAS))
    }));
    cases.push(fold_case(name("text, one event a feed"), TEXT_DELTAS, dialect, false, move || {
        streams::text(dialect, TEXT_DELTAS)
    }));
    cases.push(case(name("text, batches"), TEXT_DELTAS, move || {
        let feeds = streams::large_feeds(&streams::text(dialect, TEXT_DELTAS));
        let options = stages::options(dialect);
        move || options.clone().map_or(0, |options| stages::batches(options, &feeds))
    }));
    cases.push(fold_case(
        name("text that repeats no skeleton"),
        TEXT_DELTAS,
        dialect,
        false,
        move || streams::large_feeds(&streams::restless(dialect, TEXT_DELTAS)),
    ));
    cases.push(case(name("short streams"), SHORT_STREAMS, move || {
        let feeds = streams::large_feeds(&streams::text(dialect, SHORT_DELTAS));
        let options = stages::options(dialect);
        move || {
            let folds =
                (0..SHORT_STREAMS).filter_map(|_| Some(stages::fold(options.clone()?, &feeds)));
            folds.map(|message| stages::text_bytes(&message)).sum()
        }
    }));
}

/// Add the streams of the other dialects whose stages are measured.
fn more_text_cases(cases: &mut Vec<Case>) {
    for (name, dialect) in streams::STAGED {
        if !streams::DIALECTS.contains(&dialect) {
            cases.push(fold_case(
                format!("{name}: text, large feeds"),
                TEXT_DELTAS,
                dialect,
                false,
                move || streams::large_feeds(&streams::text(name, TEXT_DELTAS)),
            ));
        }
    }
}

/// Add streams that are written in another protocol: the pair that bounds the others, and counts that grow in every target.
fn transcoding_cases(cases: &mut Vec<Case>) {
    let mut push = |name: &'static str, dialect: &'static str, target: &'static str| {
        cases.push(case(format!("{name} -> {target}"), TEXT_DELTAS, move || {
            let feeds = streams::large_feeds(&streams::text(name, TEXT_DELTAS));
            let options = stages::options(dialect);
            move || options.clone().map_or(0, |options| stages::transcode(options, target, &feeds))
        }));
    };
    push("openai-chat", "openai-chat", "anthropic-messages");
    for target in TRANSCODED {
        push("gemini, counts that grow", "gemini", target);
    }
}

fn arguments_cases(dialect: &'static str, cases: &mut Vec<Case>) {
    let sizes = [1_000, 10_000, 100_000, 1_000_000];
    let rows = [
        ("12-byte deltas", 12, sizes.as_slice()),
        ("one-character deltas", 1, sizes.get(..3).unwrap_or_default()),
    ];
    for (what, delta_bytes, sizes) in rows {
        for &bytes in sizes {
            let name = format!("{dialect}: arguments in {what}, {bytes} bytes");
            cases.push(fold_case(name, bytes, dialect, false, move || {
                let text = streams::arguments_text(bytes);
                streams::large_feeds(&streams::arguments(dialect, &text, delta_bytes))
            }));
        }
    }
}

fn logprobs_cases(cases: &mut Vec<Case>) {
    for alternatives in [0, 5] {
        let name =
            |how: &str| format!("openai-chat: log probabilities, {alternatives} more, {how}");
        let mut push = |how, feeds: fn(u32) -> Vec<Vec<u8>>| {
            let feeds = move || feeds(alternatives);
            cases.push(fold_case(name(how), LOGPROBS, "openai-chat", true, feeds));
        };
        push("streamed", |more| streams::large_feeds(&streams::logprobs(LOGPROBS, more)));
        push("whole", |more| vec![streams::logprobs_body(LOGPROBS, more)]);
    }
}

/// Add streams with one event that is larger than any feed.  Searched bytes must not be searched again.
fn long_event_cases(dialect: &'static str, cases: &mut Vec<Case>) {
    for bytes in [10_000, 100_000, 1_000_000] {
        let name = format!("{dialect}: one event in 64-byte feeds, {bytes} bytes");
        cases.push(fold_case(name, bytes, dialect, false, move || {
            let text = streams::arguments_text(bytes);
            let body = streams::arguments(dialect, &text, usize::MAX).concat();
            body.chunks(64).map(<[u8]>::to_vec).collect()
        }));
    }
}

fn partial_json_cases(cases: &mut Vec<Case>) {
    for bytes in [1_000, 10_000, 100_000, 1_000_000] {
        cases.push(case(
            format!("partial JSON in 12-byte deltas, {bytes} bytes"),
            bytes,
            move || {
                let text = streams::arguments_text(bytes);
                move || {
                    let mut reader = PartialJson::new(128);
                    let mut log = Log::default();
                    let mut events = 0;
                    for delta in text.as_bytes().chunks(12) {
                        reader.feed(delta);
                        log = reader.take_log(log);
                        events += log.events().count();
                        log.clear();
                    }
                    events
                }
            },
        ));
    }
}

fn hostile_cases(cases: &mut Vec<Case>) {
    let rows: [(&str, Feeds); 4] = [
        ("blank lines", hostile::blank_lines),
        ("calls with long ids by turns", hostile::long_ids),
        ("usage records after a long one", hostile::usage_records),
        ("lines of noise", hostile::noise),
    ];
    for (what, feeds) in rows {
        for bytes in [10_000, 100_000, 1_000_000] {
            let name = format!("{what}, {bytes} bytes");
            cases.push(fold_case(name, bytes, "openai-chat", false, move || feeds(bytes)));
        }
    }
    for bytes in [10_000, 100_000, 1_000_000] {
        cases.push(case(format!("parts before the first text, {bytes} bytes"), bytes, move || {
            let feeds = hostile::parts_without_text(bytes);
            let options = stages::options("anthropic-messages");
            move || {
                let options = options.clone();
                options.map_or(0, |options| stages::feeds_before_text(options, &feeds))
            }
        }));
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for dialect in streams::DIALECTS {
        text_cases(dialect, &mut cases);
        arguments_cases(dialect, &mut cases);
        long_event_cases(dialect, &mut cases);
    }
    more_text_cases(&mut cases);
    transcoding_cases(&mut cases);
    logprobs_cases(&mut cases);
    partial_json_cases(&mut cases);
    hostile_cases(&mut cases);
    cases
}

#[inline(never)]
fn counted_work(work: &Work) -> usize {
    std::hint::black_box(work())
}

/// Return the instruction set that the searches choose at run time.
fn vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return if std::arch::is_x86_feature_detected!("avx2") { "avx2" } else { "sse2" };
    #[cfg(not(target_arch = "x86_64"))]
    "any"
}

fn main() -> ExitCode {
    let cases = cases();
    match std::env::args().nth(1).as_deref() {
        None => {
            for case in cases {
                println!("{}\t{}", case.name, case.units);
            }
        }
        Some("--machine") => println!("{} {}", std::env::consts::ARCH, vectors()),
        Some(name) => {
            let Some(case) = cases.into_iter().find(|case| case.name == name) else {
                eprintln!("no case is named {name}");
                return ExitCode::FAILURE;
            };
            let done = counted_work(&(case.prepare)());
            println!("{done}");
            if done == 0 {
                eprintln!("{name}: the work came to nothing");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
