//! Time by stage, beside the floor: `cargo bench -p deltafold-benches`.

#![allow(
    missing_docs,
    clippy::allow_attributes,
    reason = "criterion's macros write undocumented items"
)]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use deltafold_benches::{stages, streams};

const EVENTS: [usize; 2] = [2_000, 20_000];

fn stages(criterion: &mut Criterion) {
    for (name, dialect) in streams::STAGED {
        let Some(options) = stages::options(dialect) else { continue };
        for events in EVENTS {
            let feeds = streams::large_feeds(&streams::text(name, events));
            let frames = stages::frames(&feeds);
            let mut group = criterion.benchmark_group(name);
            let bytes: usize = feeds.iter().map(Vec::len).sum();
            group
                .throughput(Throughput::Bytes(bytes as u64))
                .warm_up_time(Duration::from_millis(200))
                .measurement_time(Duration::from_millis(800))
                .sample_size(30);
            group.bench_function(BenchmarkId::new("scan", events), |b| {
                b.iter(|| stages::scan(&feeds));
            });
            group.bench_function(BenchmarkId::new("frame", events), |b| {
                b.iter(|| stages::frame(&feeds));
            });
            group.bench_function(BenchmarkId::new("read", events), |b| {
                b.iter(|| stages::read(dialect, &frames));
            });
            group.bench_function(BenchmarkId::new("decode", events), |b| {
                b.iter(|| stages::decode(options.clone(), &feeds));
            });
            group.bench_function(BenchmarkId::new("batches", events), |b| {
                b.iter(|| stages::batches(options.clone(), &feeds));
            });
            group.bench_function(BenchmarkId::new("fold", events), |b| {
                b.iter(|| stages::fold(options.clone(), &feeds));
            });
            group.finish();
        }
    }
}

criterion_group!(benches, stages);
criterion_main!(benches);
