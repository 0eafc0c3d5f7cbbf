//! Benchmark that runs every stage once per round, for many rounds.
//!
//! A slow phase of the machine slows all stages of a round, so their ratios stay valid even if their times do not.
//! Criterion (`cargo bench`) measures the stages one after the other, in more detail.
//!
//! Out: a line of JSON for each stream, length and stage, `{"dialect", "events", "stage", "samples"}`, in seconds.

#![allow(clippy::allow_attributes, clippy::print_stdout, reason = "a command prints")]

use std::hint::black_box;
use std::time::Instant;

use deltafold_benches::{stages, streams};

const ROUNDS: usize = 61;
const EVENTS: [usize; 2] = [2_000, 20_000];

type Stage<'a> = (&'static str, Box<dyn Fn() -> usize + 'a>);

fn main() {
    for (name, dialect) in streams::STAGED {
        let Some(options) = stages::options(dialect) else { continue };
        for events in EVENTS {
            let feeds = streams::large_feeds(&streams::text(name, events));
            let frames = stages::frames(&feeds);
            let stages: [Stage<'_>; 6] = [
                ("scan", Box::new(|| stages::scan(&feeds))),
                ("frame", Box::new(|| stages::frame(&feeds))),
                ("read", Box::new(|| stages::read(dialect, &frames))),
                ("decode", Box::new(|| stages::decode(options.clone(), &feeds))),
                ("batches", Box::new(|| stages::batches(options.clone(), &feeds))),
                ("fold", Box::new(|| stages::text_bytes(&stages::fold(options.clone(), &feeds)))),
            ];
            let mut samples = [const { Vec::new() }; 6];
            for _ in 0..ROUNDS {
                for ((_, work), samples) in stages.iter().zip(&mut samples) {
                    let begun = Instant::now();
                    black_box(work());
                    samples.push(begun.elapsed().as_secs_f64());
                }
            }
            for ((stage, _), samples) in stages.iter().zip(&samples) {
                println!(
                    "{{\"dialect\":\"{name}\",\"events\":{events},\"stage\":\"{stage}\",\"samples\":{samples:?}}}"
                );
            }
        }
    }
}
