//! Random numbers of training: what seeds are for, and the standard normal noise behind the samples of a batch.
//!
//! The purposes below are words of [`derive_seed`]: different purposes never share numbers. Their values are part of the
//! promise that a seed always gives the same run: never change one.
//!
//! Noise is an input of every loss, never drawn inside it: a step is then a function of its inputs, can be repeated, and
//! can be checked by finite differences.

use std::ops::Range;

use ssn_core::random::{RANK_STREAM, derive_seed, fill_normals_from};
use tch::Tensor;

use crate::error::{NnError, Result, refused};

/// The noise of the Monte-Carlo loss, one stream per step.
pub const TRAINING_NOISE: u32 = 1;
/// The values of tensors before training.
pub const INITIAL_VALUES: u32 = 2;
/// The noise of the toy problem's evaluation.
pub const EVALUATION_NOISE: u32 = 3;
/// Dropout, one seed per step.
pub const DROPOUT: u32 = 4;

/// Whether the samples of a Monte-Carlo estimate are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
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

/// The noise of one training step, made draw by draw when it is asked for.
#[derive(Debug, Clone)]
pub struct StepNoise {
    seed: u64,
    shape: NoiseShape,
    pairing: Pairing,
    /// Where the items begin in the whole batch.
    first: usize,
}

/// Where noise comes from.
#[derive(Debug, Clone, Copy)]
pub enum NoiseSource<'a> {
    /// From memory.
    Given(&'a Noise),
    /// From its address.
    Step(&'a StepNoise),
    /// From its address, made on the GPU where it is needed.
    OnGpu(GpuNoise<'a>),
}

/// The noise of a step whose seed is on the GPU. It has the numbers of [`StepNoise`].
#[derive(Debug, Clone, Copy)]
pub struct GpuNoise<'a> {
    /// What [`StepNoise`] derives from seed and step, `[1]` of int64.
    pub seed: &'a Tensor,
    /// The sizes of the distributions.
    pub shape: NoiseShape,
    /// Whether the samples are independent.
    pub pairing: Pairing,
    /// Where the items begin in the whole batch.
    pub first: usize,
}

impl GpuNoise<'_> {
    /// Makes the noise of some draws, of a range of voxels.
    fn part(&self, draws: Range<i64>, voxels: Range<i64>) -> Result<Noise> {
        let NoiseShape { batch, rank, classes, voxels: all, .. } = self.shape;
        let (count, part, first) = (draws.end - draws.start, voxels.end - voxels.start, self.first as i64);
        let of_rank = ssn_cuda::NoiseAddress {
            stream: RANK_STREAM,
            draws: draws.clone(),
            rows: batch,
            length: rank,
            first_row: first,
            range: 0..rank,
        };
        let of_diagonal = ssn_cuda::NoiseAddress {
            stream: 0,
            draws,
            rows: batch * classes,
            length: all,
            first_row: first * classes,
            range: voxels,
        };
        Ok(Noise {
            rank: ssn_cuda::normals(self.seed, &of_rank)?,
            diagonal: ssn_cuda::normals(self.seed, &of_diagonal)?.f_view([count, batch, classes, part])?,
            pairing: self.pairing,
        })
    }

    /// The same for the kernels that draw the samples.
    pub(crate) fn options(&self) -> Result<ssn_cuda::DrawOptions> {
        Ok(ssn_cuda::DrawOptions {
            draws: self.pairing.draws(self.shape.samples)?,
            paired: (self.pairing == Pairing::Antithetic).into(),
            first: self.first as i64,
        })
    }
}

impl Noise {
    /// The number of samples `m` that this noise gives.
    pub fn samples(&self) -> i64 {
        self.pairing.samples(self.rank.size()[0])
    }
}

impl StepNoise {
    /// The noise of a step: a function of seed and step alone. Draw i does not depend on how many there are.
    pub fn new(seed: u64, step: u64, shape: NoiseShape, pairing: Pairing) -> Result<Self> {
        pairing.draws(shape.samples)?;
        Ok(Self { seed: Self::seed(seed, step), shape, pairing, first: 0 })
    }

    /// The same for the items of a batch from `first` on; the batch of the shape counts from there.
    pub fn from_item(self, first: usize) -> Self {
        Self { first, ..self }
    }

    /// The seed of the noise of a step.
    pub fn seed(seed: u64, step: u64) -> u64 {
        derive_seed(seed, TRAINING_NOISE, step)
    }

    /// The noise of some draws, of a range of voxels.
    fn part(&self, draws: Range<i64>, voxels: Range<i64>) -> Result<Noise> {
        let NoiseShape { batch, rank, classes, voxels: all, .. } = self.shape;
        // Rows of `length` numbers, and of each a range.
        let tensor = |stream, rows: i64, length: i64, range: Range<i64>, shape: &[i64]| {
            // A whole row is followed by the next one.
            let (rows, length, range) = match range == (0..length) {
                true => (1, rows * length, 0..rows * length),
                false => (rows, length, range),
            };
            let [first, each] = [self.first as i64 * rows * length / batch.max(1), range.end - range.start];
            let mut numbers = vec![0f32; ((draws.end - draws.start) * rows * each) as usize];
            let places = draws.clone().flat_map(|draw| (0..rows).map(move |row| (draw, row)));
            for ((draw, row), numbers) in places.zip(numbers.chunks_mut(each.max(1) as usize)) {
                let start = first + row * length + range.start;
                fill_normals_from(self.seed, stream, draw as u64, start as usize, numbers);
            }
            Ok::<_, NnError>(Tensor::f_from_slice(&numbers)?.f_reshape(shape)?)
        };
        let [count, part] = [&draws, &voxels].map(|range| range.end - range.start);
        Ok(Noise {
            rank: tensor(RANK_STREAM, batch, rank, 0..rank, &[count, batch, rank])?,
            diagonal: tensor(0, batch * classes, all, voxels, &[count, batch, classes, part])?,
            pairing: self.pairing,
        })
    }
}

impl NoiseSource<'_> {
    /// Whether the samples are independent.
    pub fn pairing(&self) -> Pairing {
        match self {
            Self::Given(noise) => noise.pairing,
            Self::Step(noise) => noise.pairing,
            Self::OnGpu(noise) => noise.pairing,
        }
    }

    /// The number of samples `m`.
    pub fn samples(&self) -> i64 {
        match self {
            Self::Given(noise) => noise.samples(),
            Self::Step(noise) => noise.shape.samples,
            Self::OnGpu(noise) => noise.shape.samples,
        }
    }

    /// Returns the number of draws; an antithetic pair is one.
    pub fn draw_count(&self) -> Result<i64> {
        self.pairing().draws(self.samples())
    }

    /// Some of the draws; antithetic pairs are two samples of one draw.
    pub fn draws(&self, range: Range<i64>) -> Result<Noise> {
        let voxels = match self {
            Self::Given(noise) => noise.diagonal.size()[3],
            Self::Step(noise) => noise.shape.voxels,
            Self::OnGpu(noise) => noise.shape.voxels,
        };
        self.part(range, 0..voxels)
    }

    /// Some of the draws, of a range of voxels.
    pub fn part(&self, draws: Range<i64>, voxels: Range<i64>) -> Result<Noise> {
        match self {
            Self::Given(noise) => {
                let draws = |t: &Tensor| t.f_narrow(0, draws.start, draws.end - draws.start);
                Ok(Noise {
                    rank: draws(&noise.rank)?,
                    diagonal: draws(&noise.diagonal)?.f_narrow(3, voxels.start, voxels.end - voxels.start)?,
                    pairing: noise.pairing,
                })
            }
            Self::Step(noise) => noise.part(draws, voxels),
            Self::OnGpu(noise) => noise.part(draws, voxels),
        }
    }
}

impl Pairing {
    /// How many draws give `samples` samples.
    pub fn draws(self, samples: i64) -> Result<i64> {
        match self {
            _ if samples < 1 => refused("samples", samples, "at least 1"),
            Self::Independent => Ok(samples),
            Self::Antithetic if samples % 2 != 0 => refused("samples", samples, "even, for antithetic pairs"),
            Self::Antithetic => Ok(samples / 2),
        }
    }

    /// How many samples so many draws give.
    pub fn samples(self, draws: i64) -> i64 {
        match self {
            Self::Independent => draws,
            Self::Antithetic => 2 * draws,
        }
    }
}
