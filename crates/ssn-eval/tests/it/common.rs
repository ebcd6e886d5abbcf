//! Small distribution files for tests.

use ssn_core::LowRankNormal;
use ssn_core::random::philox4x32;
use ssn_eval::{CaseDescription, DistributionFile, ModelId, PredictionKind, Region};
use ssn_io::Geometry;
use ssn_testing::noise;

/// The hash of the model that made the files of the tests.
pub const MODEL: &str = "5f";

/// What a file of a case says: three classes, a box inside an image in an oblique place.
pub fn description(case: &str) -> CaseDescription {
    CaseDescription {
        case: case.to_owned(),
        classes: ["background", "core", "oedema"].map(str::to_owned).to_vec(),
        kind: PredictionKind::Stochastic,
        size: [3, 4, 5],
        geometry: Geometry {
            spacing: [0.7, 0.9, 1.0 / 3.0],
            origin: [-12.34567890123, 1e-17, 98.1],
            direction: [[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, -1.0]],
        },
        region: Region { start: [1, 0, 2], size: [2, 3, 2] },
        model: ModelId { sha256: MODEL.to_owned(), name: "run 7".to_owned() },
        network_grid: None,
        image: None,
        labels_only: false,
    }
}

/// A distribution of noise; everything is a function of the seed.
pub fn distribution(classes: usize, voxels: usize, rank: usize, seed: u64) -> LowRankNormal {
    noise::distribution(seed, [classes, voxels, rank], |x| x * x)
}

/// A file with all tensors that there can be.
pub fn file(case: &str) -> DistributionFile {
    let mask = (0..12).map(|i| u8::from(i % 5 != 3)).collect();
    DistributionFile::new(description(case), distribution(3, 12, 2, 1), Some(mask)).unwrap()
}

/// The labels `[m, v]` of noise, m of them: what a network with three classes could have drawn.
pub fn labels(m: usize, seed: u32) -> Vec<u8> {
    let label = |i: usize| (philox4x32([i as u32, 0, 0, 0], [seed, 1])[0] % 3) as u8;
    (0..m * 12).map(label).collect()
}

/// The logarithm of the mean probabilities `[c, v]` of samples `[m, v]` of three classes, each of which gives its label 0.9.
pub fn log_mean(samples: &[u8]) -> Vec<f32> {
    let maps: Vec<&[u8]> = samples.chunks(12).collect();
    let probability = |class: usize, voxel: usize| {
        let each = maps.iter().map(|map| if usize::from(map[voxel]) == class { 0.9 } else { 0.05 });
        each.sum::<f64>() / maps.len() as f64
    };
    (0..36).map(|i| probability(i / 12, i % 12).ln() as f32).collect()
}

/// A file of seven samples that the network drew itself, with a mask.
pub fn sampled(case: &str) -> DistributionFile {
    let about = CaseDescription { kind: PredictionKind::Sampled, ..description(case) };
    let mask = (0..12).map(|i| u8::from(i % 5 != 3)).collect();
    DistributionFile::sampled(about, log_mean(&labels(7, 1)), labels(7, 1), Some(mask)).unwrap()
}
