//! The hot loops of this crate, one by one: `cargo bench -p ssn-core`. Ratios to peers are in `cargo xtask bench`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ssn_core::metrics::{ged, squared_distance_transform};
use ssn_core::modes::canonicalize;
use ssn_core::random::fill_normals;
use ssn_core::space::Grid;
use ssn_core::{BitPlanes, LowRankNormal, SampleSummary, Sampler, Steering};
use ssn_testing::noise;

/// A slice of the size of the paper's 2D data.
const SLICE: usize = 128 * 128;

fn distribution(voxels: usize) -> LowRankNormal {
    noise::distribution(1, [4, voxels, 10], |x| x * x)
}

fn random(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("random");
    let mut out = vec![0.0; 4096];
    group.throughput(Throughput::Elements(out.len() as u64));
    group.bench_function("normals", |b| b.iter(|| fill_normals(1, 2, 3, black_box(&mut out))));
}

fn sampling(criterion: &mut Criterion) {
    let d = distribution(SLICE);
    let sampler = Sampler::new(&d, 0, &Steering::default()).expect("nothing is steered");
    let mut group = criterion.benchmark_group("sampling");
    for samples in [1, 16, 100] {
        group.throughput(Throughput::Elements(samples * (4 * SLICE) as u64));
        group.bench_function(format!("labels of {samples}"), |b| b.iter(|| sampler.labels(0..samples)));
    }
    group.bench_function("summary of 100", |b| {
        b.iter(|| {
            let mut summary = SampleSummary::new(&sampler, &[])?;
            summary.extend(&sampler, 0..100)?;
            summary.marginal_entropy()
        });
    });
    group.bench_function("canonicalize", |b| b.iter(|| canonicalize(&d)));
}

fn scores(criterion: &mut Criterion) {
    let d = distribution(SLICE);
    let maps = Sampler::new(&d, 0, &Steering::default()).and_then(|s| s.labels(0..104)).expect("samples");
    let planes: Vec<BitPlanes> = maps.iter().map(BitPlanes::new).collect();
    let (raters, samples) = planes.split_at(4);
    let mut group = criterion.benchmark_group("scores");
    group.bench_function("pack one map", |b| b.iter(|| BitPlanes::new(black_box(&maps[0]))));
    group.bench_function("GED of 100 x 4", |b| b.iter(|| ged(samples, raters)));
    let grid = Grid::new([1, 128, 128], [1.0, 0.7, 0.7]).expect("a valid grid");
    let mask = maps[0].mask(&[1]);
    group.bench_function("distance transform", |b| b.iter(|| squared_distance_transform(&mask, &grid)));
}

criterion_group!(benches, random, sampling, scores);
criterion_main!(benches);
