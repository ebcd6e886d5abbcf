//! Small distribution files for tests.

#![allow(dead_code, reason = "not every test needs all of it")]
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use ssn_core::LowRankNormal;
use ssn_core::random::fill_normals;
use ssn_predictions::{Description, DistributionFile, Kind, ModelId, Region};
use ssn_volume::Geometry;

/// The hash of the model that made the files of the tests.
pub const MODEL: &str = "5f";

/// What a file of a case says: three classes, a box inside an image in an oblique place.
pub fn description(case: &str) -> Description {
    Description {
        case: case.to_owned(),
        classes: ["background", "core", "oedema"].map(str::to_owned).to_vec(),
        kind: Kind::Stochastic,
        size: [3, 4, 5],
        geometry: Geometry {
            spacing: [0.7, 0.9, 1.0 / 3.0],
            origin: [-12.34567890123, 1e-17, 98.1],
            direction: [[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, -1.0]],
        },
        region: Region { start: [1, 0, 2], size: [2, 3, 2] },
        model: ModelId { sha256: MODEL.to_owned(), name: "run 7".to_owned() },
    }
}

/// A distribution of noise; everything is a function of the seed.
pub fn distribution(classes: usize, voxels: usize, rank: usize, seed: u64) -> LowRankNormal {
    let numbers = |stream, n| {
        let mut out = vec![0f32; n];
        fill_normals(seed, stream, 0, &mut out);
        out
    };
    let n = classes * voxels;
    let diagonal: Vec<f32> = numbers(1, n).into_iter().map(|x| x * x).collect();
    LowRankNormal::new(classes, voxels, rank, numbers(0, n), diagonal, numbers(2, rank * n)).unwrap()
}

/// A file with all tensors that there can be.
pub fn file(case: &str) -> DistributionFile {
    let mask = (0..12).map(|i| u8::from(i % 5 != 3)).collect();
    DistributionFile::new(description(case), distribution(3, 12, 2, 1), Some(mask)).unwrap()
}
