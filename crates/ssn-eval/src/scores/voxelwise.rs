//! Scores of the probabilities of single voxels, and the likelihood of raters.

use serde::{Deserialize, Serialize};
use ssn_core::metrics::{Calibrated, LabelFrequencies, brier, foreground_ece, reliability, variance_ncc};
use ssn_core::{LabelMap, SampleSummary, Sampler};

use super::config::ScoreConfig;
use super::samples::Samples;
use crate::error::Result;
use crate::predictions::description::Kind;
use crate::predictions::distribution_file::DistributionFile;

/// Scores of the probabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VoxelScores {
    /// The correlation of the samples' variance with that of the raters; none where either is constant.
    pub variance_ncc: Option<f64>,
    /// S_NCC, the mean over the raters for which it has a value.
    pub s_ncc: Option<f64>,
    /// The calibration error of the most probable label.
    pub ece: f64,
    /// The calibration error of the foreground classes, their mean.
    pub foreground_ece: f64,
    /// The Brier score.
    pub brier: f64,
    /// The log-likelihood of each rater's labels on the region, in nats; empty where the network drew samples itself, of
    /// which the labels alone are known.
    pub log_likelihoods: Vec<f64>,
    /// How many samples carry each of these; empty where they are.
    pub effective_samples: Vec<f64>,
}

/// Scores the probabilities; takes the samples, to give their memory back as soon as they are not needed.
pub(super) fn score(
    file: &DistributionFile,
    samples: Samples,
    raters: &[LabelMap],
    config: &ScoreConfig,
) -> Result<VoxelScores> {
    let Samples { planes, frequencies } = samples;
    drop(planes);
    let (variance_ncc, s_ncc) = match frequencies {
        Some(frequencies) => {
            (variance_ncc(&frequencies, &LabelFrequencies::of(raters)?)?, frequencies.s_ncc(raters)?.mean)
        }
        None => (None, None),
    };
    let kind = file.description().kind;
    // Label maps of samples do not say how likely other labels are.
    let likely = if kind == Kind::Sampled { &[] } else { raters };
    let on_region: Vec<LabelMap> = likely
        .iter()
        .map(|rater| Ok(LabelMap::new(file.crop_to_region(rater.labels())?, file.labels())?))
        .collect::<Result<_>>()?;
    let seed = config.seed_of(&file.description().case);
    let sampler = Sampler::new(file.distribution(), seed, &config.steering())?;
    let mut summary = SampleSummary::new(&sampler, &on_region)?;
    // Without noise one sample says it all.
    let count = if kind == Kind::Stochastic { config.samples } else { 1 };
    summary.extend(&sampler, 0..count as u64)?;
    let (log_likelihoods, effective_samples) = (summary.log_likelihoods()?, summary.effective_samples()?);
    let rows = summary.mean_probabilities()?;
    drop(summary);
    let probabilities = on_image(file, &rows)?;
    Ok(VoxelScores {
        variance_ncc,
        s_ncc,
        ece: reliability(&probabilities, raters, Calibrated::TopLabel, config.bins)?.ece,
        foreground_ece: foreground_ece(&probabilities, raters, config.bins)?,
        brier: brier(&probabilities, raters)?,
        log_likelihoods,
        effective_samples,
    })
}

/// Probabilities `[l, v]` of the region on the whole image, where everything outside is background.
fn on_image(file: &DistributionFile, rows: &[f32]) -> Result<Vec<f32>> {
    let mut values = Vec::with_capacity(file.labels() * file.description().voxels());
    for (label, row) in rows.chunks_exact(file.distribution().voxels()).enumerate() {
        values.extend(file.values_on_image(row, if label == 0 { 1.0 } else { 0.0 })?);
    }
    Ok(values)
}
