//! Scores of single masks: a class, or several classes as one.

use serde::{Deserialize, Serialize};
use ssn_core::metrics::{
    BothEmpty, ClassGroup, EmptyPolicy, Grid, Hd95, PooledDice, SampleDice, SurfaceDistances, quantile,
    volumes,
};
use ssn_core::{BitPlanes, LabelMap};

use super::config::ScoreConfig;
use crate::error::Result;
use crate::predictions::distribution_file::DistributionFile;

/// The scores of one mask; lists have an entry per rater.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupScores {
    /// The name of the mask.
    pub name: String,
    /// DSC of the prediction; none where both are empty.
    pub dsc: Vec<Option<f64>>,
    /// DSC where the rater marked something.
    pub dsc_nod: Vec<Option<f64>>,
    /// The Dice of the samples.
    pub samples: Vec<SampleScores>,
    /// Distances of the prediction's surface to the rater's, if they were asked for.
    pub surface: Option<Vec<SurfaceScores>>,
    /// How large the mask is.
    pub volumes: Volumes,
}

/// The Dice of the samples against one rater.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SampleScores {
    /// The mean.
    pub mean: Option<f64>,
    /// The 5 %, 50 % and 95 % quantiles.
    pub quantiles: [Option<f64>; 3],
    /// The share of samples that are better than the prediction.
    pub better_than_prediction: Option<f64>,
}

/// Surface scores against one rater, in millimeters; none where a mask is empty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SurfaceScores {
    /// HD95, the larger of both directions.
    pub hd95: Option<f64>,
    /// The average symmetric surface distance.
    pub assd: Option<f64>,
    /// The normalized surface Dice at the tolerance.
    pub nsd: Option<f64>,
}

/// Volumes in milliliters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Volumes {
    /// Of the prediction.
    pub prediction: f64,
    /// 5 %, 50 % and 95 % quantiles over the samples.
    pub samples: [Option<f64>; 3],
    /// Of each rater.
    pub raters: Vec<f64>,
}

/// The quantiles that are told.
const QUANTILES: [f64; 3] = [0.05, 0.5, 0.95];

/// Scores every group.
pub(super) fn score(
    file: &DistributionFile,
    prediction: &LabelMap,
    samples: &[BitPlanes],
    raters: &[LabelMap],
    rater_planes: &[BitPlanes],
    groups: &[(String, ClassGroup)],
    config: &ScoreConfig,
) -> Result<Vec<GroupScores>> {
    let spacing = file.description().geometry.spacing;
    // A cubic millimeter is a thousandth of a milliliter.
    let voxel = spacing.iter().product::<f64>() / 1000.0;
    // Grid axes are i, j, k, and the grid is [d, h, w].
    let [along_w, along_h, along_d] = spacing;
    let prediction_planes = BitPlanes::new(prediction);
    let one = |(name, group): &(String, ClassGroup)| -> Result<GroupScores> {
        let mut pooled = PooledDice::default();
        pooled.push(&prediction_planes, rater_planes, group)?;
        let surface = match config.surfaces {
            true => {
                let grid = Grid::new(file.description().size, [along_d, along_h, along_w])?;
                let mask = group.mask(prediction)?;
                let against = |rater: &LabelMap| surface(&mask, &group.mask(rater)?, &grid, config.tolerance);
                Some(raters.iter().map(against).collect::<Result<_>>()?)
            }
            false => None,
        };
        Ok(GroupScores {
            name: name.clone(),
            dsc: pooled.dsc_values().to_vec(),
            dsc_nod: pooled.dsc_nod_values().to_vec(),
            samples: rater_planes
                .iter()
                .map(|rater| sample_scores(&prediction_planes, samples, rater, group))
                .collect::<Result<_>>()?,
            surface,
            volumes: of_volumes(&prediction_planes, samples, rater_planes, group, voxel)?,
        })
    };
    groups.iter().map(one).collect()
}

fn sample_scores(
    prediction: &BitPlanes,
    samples: &[BitPlanes],
    rater: &BitPlanes,
    group: &ClassGroup,
) -> Result<SampleScores> {
    let dice = SampleDice::new(prediction, samples, rater, group, BothEmpty::Undefined)?;
    let [low, middle, high] = QUANTILES.map(|q| dice.quantile(q));
    Ok(SampleScores {
        mean: super::mean(&dice.samples),
        quantiles: [low?, middle?, high?],
        better_than_prediction: dice.better_than_prediction(),
    })
}

fn surface(prediction: &[bool], rater: &[bool], grid: &Grid, tolerance: f64) -> Result<SurfaceScores> {
    let (distances, policy) = (SurfaceDistances::new(prediction, rater, grid)?, EmptyPolicy::UNDEFINED);
    Ok(SurfaceScores {
        hd95: distances.hd95(Hd95::LargerDirected, policy),
        assd: distances.assd(policy),
        nsd: distances.nsd(tolerance, policy)?,
    })
}

fn of_volumes(
    prediction: &BitPlanes,
    samples: &[BitPlanes],
    raters: &[BitPlanes],
    group: &ClassGroup,
    voxel: f64,
) -> Result<Volumes> {
    let milliliters = |maps: &[BitPlanes]| -> Result<Vec<f64>> {
        let counts = volumes(maps, std::slice::from_ref(group))?;
        Ok(counts.into_iter().flatten().map(|count| count as f64 * voxel).collect())
    };
    let of_samples = milliliters(samples)?;
    let [low, middle, high] = QUANTILES.map(|q| quantile(&of_samples, q));
    Ok(Volumes {
        prediction: group.volume(prediction) as f64 * voxel,
        samples: [low?, middle?, high?],
        raters: milliliters(raters)?,
    })
}
