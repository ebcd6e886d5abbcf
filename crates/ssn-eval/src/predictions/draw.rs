//! The samples of a distribution file as label maps.

use std::ops::Range;

use ssn_args::PredictionRule;
use ssn_core::labels::largest;
use ssn_core::random::derive_seed;
use ssn_core::{CategoricalSampler, CoreError, LabelMap, SampleSummary, Sampler, Steering};
use ssn_io::Result;

use super::distribution_file::{DistributionFile, PredictionKind, too_few_samples};

/// Draws the samples of one file: of its distribution, or, where the network is deterministic, of the independent
/// categoricals of its voxels. Where the network drew samples itself, it hands those out.
#[derive(Debug)]
pub enum SampleSource<'a> {
    /// Samples of the distribution.
    Normal(Sampler<'a>),
    /// Every voxel by itself.
    Categorical(CategoricalSampler<'a>),
    /// Samples that the network drew itself, out of its file.
    Stored(&'a DistributionFile),
}

impl<'a> SampleSource<'a> {
    /// Draws by the kind of the file, with the [`case_seed`] of `seed`. A deterministic network has no noise that could be
    /// steered, and for samples that the network drew itself neither seed nor steering matters.
    ///
    /// # Errors
    /// When the weights of the steering do not fit the distribution.
    pub fn new(file: &'a DistributionFile, seed: u64, steering: &Steering) -> Result<Self> {
        let seed = case_seed(seed, &file.description().case);
        Ok(match file.description().kind {
            PredictionKind::Stochastic => Self::Normal(Sampler::new(file.distribution(), seed, steering)?),
            PredictionKind::Deterministic => {
                Self::Categorical(CategoricalSampler::new(file.distribution(), seed))
            }
            PredictionKind::Sampled => Self::Stored(file),
        })
    }

    /// The label maps `[v]` of the samples with these numbers, on the region of the file.
    ///
    /// # Errors
    /// When there are no numbers, and for numbers beyond the samples that the network
    /// drew itself.
    pub fn labels(&self, samples: Range<u64>) -> Result<Vec<LabelMap>> {
        Ok(match self {
            Self::Normal(sampler) => sampler.labels(samples)?,
            Self::Categorical(sampler) => sampler.labels(samples)?,
            Self::Stored(file) => stored_labels(file, samples)?,
        })
    }
}

/// The label maps `[v]` of the samples with these numbers that a network drew itself.
fn stored_labels(file: &DistributionFile, samples: Range<u64>) -> Result<Vec<LabelMap>> {
    if samples.is_empty() {
        return Err(CoreError::Empty { field: "samples" }.into());
    }
    let (stored, v) = (file.sample_count(), file.distribution().voxels());
    if samples.end > stored as u64 {
        return Err(too_few_samples(&file.description().case, stored, samples.end));
    }
    let labels = &file.samples().unwrap_or_default()[samples.start as usize * v..samples.end as usize * v];
    labels.chunks_exact(v).map(|map| Ok(LabelMap::new(map.to_vec(), file.labels())?)).collect()
}

/// Sums over samples of a file: mean probabilities, entropy, and the likelihood of raters on the region.
///
/// They are the samples of [`SampleSource`]. Without noise every sample has the same probabilities, so one says it all; those of
/// samples that the network drew itself are in the mean.
pub fn summarize<'a>(
    file: &DistributionFile,
    seed: u64,
    steering: &Steering,
    samples: Range<u64>,
    raters: &'a [LabelMap],
) -> Result<SampleSummary<'a>> {
    let seed = case_seed(seed, &file.description().case);
    let sampler = Sampler::new(file.distribution(), seed, steering)?;
    let mut summary = SampleSummary::new(&sampler, raters)?;
    let noisy = file.description().kind == PredictionKind::Stochastic;
    summary.extend(&sampler, if noisy { samples } else { 0..1 })?;
    Ok(summary)
}

/// Samples behind marginal probabilities.
const MARGINAL_SAMPLES: u64 = 100;

/// The one segmentation `[v]` that stands for the distribution of a file.
pub fn predict_labels(file: &DistributionFile, rule: PredictionRule) -> Result<LabelMap> {
    if rule == PredictionRule::Mean || file.description().kind != PredictionKind::Stochastic {
        return file.prediction();
    }
    let summary = summarize(file, 0, &Steering::default(), 0..MARGINAL_SAMPLES, &[])?;
    let probabilities = summary.mean_probabilities()?; // [l, v]
    Ok(LabelMap::new(largest(&probabilities, file.distribution().voxels()), file.labels())?)
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

/// The purpose of a case's seed.
const CASE_SAMPLES: u32 = 0x6361_7365;

/// The seed of a case's noise, where `seed` is what the user named: `docs/reference/sampling.md`, section 6.
///
/// With one seed for all, sample i would have the same noise in every case: their errors would not average out
/// over cases, and standard errors would be too small.
pub fn case_seed(seed: u64, case: &str) -> u64 {
    derive_seed(seed, CASE_SAMPLES, fnv1a(case))
}

/// FNV-1a of 64 bits: a number for a name, the same everywhere.
fn fnv1a(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
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

    #[test]
    fn seeds_of_cases_are_those_of_the_specification() {
        let page = include_str!("../../../../docs/reference/sampling.md");
        let block = page.split("```cases\n").nth(1).unwrap().split("```").next().unwrap();
        let rows: Vec<&str> = block.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(rows.len(), 4);
        for row in rows {
            let [seed, expected, name] = row.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{row}") };
            let found = case_seed(seed.parse().unwrap(), name.trim_matches('"'));
            assert_eq!(format!("{found:016x}"), expected, "{row}");
        }
    }
}
