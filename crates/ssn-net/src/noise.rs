//! The standard normal noise behind the samples of a batch.
//!
//! Noise is an input of every loss, never drawn inside it: a step is then a function of its inputs, can be
//! repeated, and can be checked by differences.

use tch::{Kind, Tensor};

use crate::error::{NetError, Result};
use ssn_core::random::{RANK_STREAM, derive_seed, fill_normals};

/// How the samples of a Monte-Carlo estimate belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Every sample has noise of its own.
    Independent,
    /// Every draw of noise gives two samples, mirrored about the mean.
    Antithetic,
}

/// Noise for `m` samples of a batch: one number per column of the factor and one per logit.
#[derive(Debug)]
pub struct Noise {
    /// `[m, b, r]`, or half as many draws for antithetic pairs.
    pub rank: Tensor,
    /// `[m, b, c, v]`, or half as many draws for antithetic pairs.
    pub diagonal: Tensor,
    /// Whether each draw serves two samples.
    pub pairing: Pairing,
}

/// The sizes of a batch of distributions with its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseShape {
    /// The number of samples `m`.
    pub samples: i64,
    /// The batch `b`.
    pub batch: i64,
    /// The rank `r`.
    pub rank: i64,
    /// The classes `c`.
    pub classes: i64,
    /// The voxels `v`.
    pub voxels: i64,
}

/// Purpose word of the training noise in [`derive_seed`].
const TRAINING_NOISE: u32 = 1;

impl Noise {
    /// The noise of one training step: a function of seed and step alone, made on the host.
    pub fn of_step(seed: u64, step: u64, shape: NoiseShape, pairing: Pairing, kind: Kind) -> Result<Self> {
        let NoiseShape { samples, batch, rank, classes, voxels } = shape;
        let draws = draws(samples, pairing)?;
        let seed = derive_seed(seed, TRAINING_NOISE, 0);
        let tensor = |stream, shape: &[i64]| {
            let mut numbers = vec![0f32; shape.iter().product::<i64>() as usize];
            fill_normals(seed, stream, step, &mut numbers);
            Tensor::from_slice(&numbers).reshape(shape).to_kind(kind)
        };
        Ok(Self {
            rank: tensor(RANK_STREAM, &[draws, batch, rank]),
            diagonal: tensor(0, &[draws, batch, classes, voxels]),
            pairing,
        })
    }

    /// The number of samples `m` that this noise gives.
    pub fn samples(&self) -> i64 {
        match self.pairing {
            Pairing::Independent => self.rank.size()[0],
            Pairing::Antithetic => 2 * self.rank.size()[0],
        }
    }
}

/// How many draws give `samples` samples.
fn draws(samples: i64, pairing: Pairing) -> Result<i64> {
    let wrong = |expected| NetError::Parameter { field: "samples", value: samples.to_string(), expected };
    match pairing {
        _ if samples < 1 => Err(wrong("at least 1")),
        Pairing::Independent => Ok(samples),
        Pairing::Antithetic if samples % 2 != 0 => Err(wrong("even, for antithetic pairs")),
        Pairing::Antithetic => Ok(samples / 2),
    }
}
