//! Label maps out of a distribution file: its samples, and its prediction.

use std::ops::Range;

use ssn_core::{CategoricalSampler, CoreError, LabelMap, Sampler, Steering};

use crate::error::{EvalError, Result};
use crate::predictions::description::Kind;
use crate::predictions::distribution_file::DistributionFile;

/// Draws the samples of one file: of its distribution, or, where the network is deterministic, of the independent
/// categoricals of its voxels. Where the network drew samples itself, it hands those out.
#[derive(Debug)]
pub enum Draw<'a> {
    /// Samples of the distribution.
    Normal(Sampler<'a>),
    /// Every voxel by itself.
    Categorical(CategoricalSampler<'a>),
    /// Samples that the network drew itself, out of its file.
    Stored(Stored<'a>),
}

/// The samples that a network drew itself.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a> {
    file: &'a DistributionFile,
    /// `[m, v]`.
    labels: &'a [u8],
}

impl<'a> Draw<'a> {
    /// Draws by the kind of the file. A deterministic network has no noise that could be steered, and for samples that the
    /// network drew itself neither seed nor steering matters.
    ///
    /// # Errors
    /// When the weights of the steering do not fit the distribution.
    pub fn new(file: &'a DistributionFile, seed: u64, steering: &Steering) -> Result<Self> {
        Ok(match file.description().kind {
            Kind::Stochastic => Self::Normal(Sampler::new(file.distribution(), seed, steering)?),
            Kind::Deterministic => Self::Categorical(CategoricalSampler::new(file.distribution(), seed)),
            Kind::Sampled => Self::Stored(Stored { file, labels: file.samples().unwrap_or_default() }),
        })
    }

    /// The label maps `[v]` of the samples with these numbers, on the region of the file.
    ///
    /// # Errors
    /// When there are no numbers, and [`EvalError::TooFewSamples`] for numbers beyond the samples that the network
    /// drew itself.
    pub fn labels(&self, samples: Range<u64>) -> Result<Vec<LabelMap>> {
        Ok(match self {
            Self::Normal(sampler) => sampler.labels(samples)?,
            Self::Categorical(sampler) => sampler.labels(samples)?,
            Self::Stored(stored) => stored.labels(samples)?,
        })
    }
}

impl Stored<'_> {
    /// The label maps `[v]` of the samples with these numbers.
    fn labels(&self, samples: Range<u64>) -> Result<Vec<LabelMap>> {
        if samples.is_empty() {
            return Err(CoreError::Empty { field: "samples" }.into());
        }
        let (stored, v) = (self.file.sample_count(), self.file.distribution().voxels());
        if samples.end > stored as u64 {
            let case = self.file.description().case.clone();
            return Err(EvalError::TooFewSamples { case, stored, needed: samples.end });
        }
        let labels = &self.labels[samples.start as usize * v..samples.end as usize * v];
        labels.chunks_exact(v).map(|map| Ok(LabelMap::new(map.to_vec(), self.file.labels())?)).collect()
    }
}

impl DistributionFile {
    /// The prediction `[v]` on the region: the labels of the mean. Where the network drew samples itself, those are the
    /// most probable ones over its samples.
    pub fn prediction(&self) -> Result<LabelMap> {
        let mean = Steering { temperature: 0.0, ..Steering::default() };
        let mut maps = Sampler::new(self.distribution(), 0, &mean)?.labels(0..1)?;
        Ok(maps.remove(0))
    }
}

/// Bytes of label maps that are drawn at once.
const BLOCK_BYTES: usize = 64 << 20;
/// Samples that are drawn at once at most: more of them do not make sampling faster.
const MOST: usize = 64;

/// Ranges of samples that cover `samples` and whose label maps of `voxels` voxels take little memory at once.
pub fn blocks(samples: Range<u64>, voxels: usize) -> impl Iterator<Item = Range<u64>> {
    let step = (BLOCK_BYTES / voxels.max(1)).clamp(1, MOST);
    let end = samples.end;
    samples.step_by(step).map(move |start| start..end.min(start.saturating_add(step as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_all_samples_in_order() {
        for (samples, voxels) in [(0..1, 10), (3..200, 10), (5..12, 40 << 20), (0..3, usize::MAX)] {
            let covered: Vec<u64> = blocks(samples.clone(), voxels).flatten().collect();
            assert_eq!(covered, samples.collect::<Vec<_>>());
        }
        assert_eq!(blocks(0..9, 32 << 20).next(), Some(0..2));
    }
}
