//! The inputs of the rows of [`crate::registry::SCORES`]: a case, one of its masks, or the probabilities of its voxels.
//!
//! Values that several rows need are computed when the first row asks for them, and kept.

use std::cell::OnceCell;

use ssn_core::metrics::{
    ClassGroup, Ged, LabelFrequencies, MAX_MATCHED, Overlap, PairwiseDice, PairwiseDistances, RaterVotes,
    SurfaceDistances, matched_pairs, staple,
};
use ssn_core::space::Grid;
use ssn_core::{BitPlanes, LabelMap};
use ssn_io::Result;

use crate::means::mean;
use crate::reliability::Reliability;
use crate::score_config::{CaseMaps, ScoreConfig};

/// A value that is computed at most once.
struct Once<T>(OnceCell<T>);

impl<T> Once<T> {
    const fn new() -> Self {
        Self(OnceCell::new())
    }

    fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(made) = self.0.get() {
            return Ok(made);
        }
        let made = make()?;
        Ok(self.0.get_or_init(|| made))
    }
}

/// A case: its samples and its prediction, and what raters marked.
pub(crate) struct CaseInput<'a> {
    pub(crate) maps: &'a CaseMaps<'a>,
    pub(crate) config: &'a ScoreConfig,
    pub(crate) prediction: &'a LabelMap,
    pub(crate) samples: &'a [BitPlanes],
    pub(crate) raters: &'a [LabelMap],
    /// `[l, v]`, where they are asked for and known.
    pub(crate) probabilities: Option<&'a [f32]>,
    prediction_planes: BitPlanes,
    rater_planes: Vec<BitPlanes>,
    distances: Once<PairwiseDistances>,
    dice: Once<PairwiseDice>,
}

impl<'a> CaseInput<'a> {
    pub(crate) fn new(
        maps: &'a CaseMaps<'a>,
        config: &'a ScoreConfig,
        prediction: &'a LabelMap,
        samples: &'a [BitPlanes],
        raters: &'a [LabelMap],
        probabilities: Option<&'a [f32]>,
    ) -> Self {
        Self {
            maps,
            config,
            prediction,
            samples,
            raters,
            probabilities,
            prediction_planes: BitPlanes::new(prediction),
            rater_planes: raters.iter().map(BitPlanes::new).collect(),
            distances: Once::new(),
            dice: Once::new(),
        }
    }

    fn distances(&self) -> Result<&PairwiseDistances> {
        let rule = self.config.distance.rule();
        self.distances.get(|| Ok(PairwiseDistances::with(self.samples, &self.rater_planes, rule)?))
    }

    /// Returns GED² of the first `count` samples, with the means it is made of.
    pub(crate) fn ged(&self, count: usize) -> Result<Ged> {
        Ok(self.distances()?.ged_at(count)?)
    }

    /// Returns HM-IoU, or `None` if the lists to match are too long.
    pub(crate) fn hm_iou(&self) -> Result<Option<f64>> {
        let can = matched_pairs(self.samples.len(), self.raters.len()) <= MAX_MATCHED;
        can.then(|| Ok(self.distances()?.hm_iou()?)).transpose()
    }

    /// Returns the mean Dice over classes of each sample with each rater.
    pub(crate) fn dice(&self) -> Result<&PairwiseDice> {
        self.dice.get(|| {
            let classes = ClassGroup::each(self.maps.classes.len());
            Ok(PairwiseDice::new(self.samples, &self.rater_planes, &classes)?)
        })
    }

    /// Returns the share of samples with less than a twentieth of the smallest rater's foreground, or `None` if a rater
    /// marked nothing.
    pub(crate) fn empty_samples(&self) -> Option<f64> {
        const NEARLY_EMPTY: usize = 20;
        let foreground = |map: &BitPlanes| map.voxels() - map.volume(0);
        let least = self.rater_planes.iter().map(foreground).min().filter(|least| *least > 0)?;
        let empty = self.samples.iter().filter(|sample| NEARLY_EMPTY * foreground(sample) < least).count();
        Some(empty as f64 / self.samples.len().max(1) as f64)
    }
}

/// One mask of a case: some classes as one.
pub(crate) struct MaskInput<'a> {
    pub(crate) case: &'a CaseInput<'a>,
    group: &'a ClassGroup,
    overlaps: Once<Vec<Overlap>>,
    sample_dice: Once<Vec<Vec<Option<f64>>>>,
    surfaces: Once<Vec<SurfaceScores>>,
    sample_surfaces: Once<Vec<SurfaceScores>>,
    volumes: OnceCell<Volumes>,
    votes: Once<RaterVotes>,
    predicted: Once<Vec<bool>>,
    probabilities: Once<Vec<f32>>,
}

/// Surface scores against one rater, in millimeters or voxels: all `None` if both masks are empty, distances `None` if
/// one is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SurfaceScores {
    /// The larger of both directions.
    pub(crate) hd95: Option<f64>,
    /// The average symmetric surface distance.
    pub(crate) assd: Option<f64>,
    /// The normalized surface Dice at the tolerance.
    pub(crate) nsd: Option<f64>,
    /// Pairs of which one mask is empty and the other is not, whose distances are undefined or penalized.
    pub(crate) one_empty: usize,
}

/// The volumes of a mask, in milliliters or voxels.
pub(crate) struct Volumes {
    pub(crate) prediction: f64,
    pub(crate) samples: Vec<f64>,
    pub(crate) raters: Vec<f64>,
}

impl<'a> MaskInput<'a> {
    pub(crate) fn new(case: &'a CaseInput<'a>, group: &'a ClassGroup) -> Self {
        Self {
            case,
            group,
            overlaps: Once::new(),
            sample_dice: Once::new(),
            surfaces: Once::new(),
            sample_surfaces: Once::new(),
            volumes: OnceCell::new(),
            votes: Once::new(),
            predicted: Once::new(),
            probabilities: Once::new(),
        }
    }

    /// Returns the overlap of the prediction with each rater.
    pub(crate) fn overlaps(&self) -> Result<&[Overlap]> {
        let overlap = |rater| Overlap::new(&self.case.prediction_planes, rater, self.group);
        let all = || Ok(self.case.rater_planes.iter().map(overlap).collect::<ssn_core::Result<_>>()?);
        self.overlaps.get(all).map(Vec::as_slice)
    }

    /// Returns the Dice of each sample with each rater, `[m][n]`, `None` if both masks are empty.
    pub(crate) fn sample_dice(&self) -> Result<&[Vec<Option<f64>>]> {
        let dice = |map, rater| Overlap::new(map, rater, self.group).map(|overlap| overlap.dice());
        let of_rater = |rater| self.case.samples.iter().map(|map| dice(map, rater)).collect();
        let all = || Ok(self.case.rater_planes.iter().map(of_rater).collect::<ssn_core::Result<_>>()?);
        self.sample_dice.get(all).map(Vec::as_slice)
    }

    /// Returns the surface scores of the prediction against each rater, if the config asks for them.
    pub(crate) fn surfaces(&self) -> Result<Option<&[SurfaceScores]>> {
        let all = || self.surfaces_of(&self.group.mask(self.case.prediction)?);
        self.case.config.surfaces.then(|| self.surfaces.get(all).map(Vec::as_slice)).transpose()
    }

    /// Returns the mean surface scores of the first samples against each rater, if the config asks for them.
    pub(crate) fn sample_surfaces(&self) -> Result<Option<&[SurfaceScores]>> {
        let ScoreConfig { surfaces, surface_samples, .. } = *self.case.config;
        let all = || self.mean_surfaces(surface_samples);
        (surfaces && surface_samples > 0)
            .then(|| self.sample_surfaces.get(all).map(Vec::as_slice))
            .transpose()
    }

    /// Computes the surface scores of a mask `[v]` against each rater.
    fn surfaces_of(&self, mask: &[bool]) -> Result<Vec<SurfaceScores>> {
        let CaseInput { maps, config, .. } = self.case;
        let grid = Grid::new(maps.size, maps.spacing.unwrap_or([1.0; 3]))?;
        let diagonal =
            (0..3).map(|axis| (grid.shape()[axis] as f64 * grid.spacing()[axis]).powi(2)).sum::<f64>().sqrt();
        let against = |rater: &LabelMap| {
            let distances = SurfaceDistances::new(mask, &self.group.mask(rater)?, &grid)?;
            let penalty = (config.empty_penalty && distances.one_is_empty()).then_some(diagonal);
            Ok(SurfaceScores {
                hd95: distances.hd95().or(penalty),
                assd: distances.assd().or(penalty),
                nsd: distances.nsd(config.tolerance)?,
                one_empty: usize::from(distances.one_is_empty()),
            })
        };
        self.case.raters.iter().map(against).collect()
    }

    fn mean_surfaces(&self, samples: usize) -> Result<Vec<SurfaceScores>> {
        let first = self.case.samples.iter().take(samples);
        let each = first.map(|sample| self.surfaces_of(&sample.mask(self.group.classes())));
        let each = each.collect::<Result<Vec<_>>>()?;
        let over = |rater: usize, value: fn(&SurfaceScores) -> Option<f64>| {
            mean(each.iter().filter_map(|scores| value(&scores[rater])))
        };
        let of_rater = |rater| SurfaceScores {
            hd95: over(rater, |s| s.hd95),
            assd: over(rater, |s| s.assd),
            nsd: over(rater, |s| s.nsd),
            one_empty: each.iter().map(|scores| scores[rater].one_empty).sum(),
        };
        Ok((0..self.case.raters.len()).map(of_rater).collect())
    }

    /// Returns the volumes of the mask in the prediction, samples and raters.
    pub(crate) fn volumes(&self) -> &Volumes {
        let voxel = self.case.maps.voxel_volume();
        let volume = |map: &BitPlanes| self.group.volume(map) as f64 * voxel;
        self.volumes.get_or_init(|| Volumes {
            prediction: volume(&self.case.prediction_planes),
            samples: self.case.samples.iter().map(volume).collect(),
            raters: self.case.rater_planes.iter().map(volume).collect(),
        })
    }

    /// Returns the number of raters who marked each voxel.
    pub(crate) fn votes(&self) -> Result<&RaterVotes> {
        self.votes.get(|| Ok(RaterVotes::new(self.case.raters, self.group)?))
    }

    /// Returns the mask of the prediction, `[v]`.
    pub(crate) fn predicted(&self) -> Result<&[bool]> {
        self.predicted.get(|| Ok(self.group.mask(self.case.prediction)?)).map(Vec::as_slice)
    }

    /// Computes the consensus of raters by STAPLE, `[v]`.
    pub(crate) fn staple(&self) -> Result<Vec<bool>> {
        Ok(staple(self.case.raters, self.group)?.iter().map(|p| *p >= 0.5).collect())
    }

    /// Returns the probability of the mask in each voxel, `[v]`, if the distribution gives it.
    pub(crate) fn probabilities(&self) -> Result<Option<&[f32]>> {
        let Some(rows) = self.case.probabilities else { return Ok(None) };
        let sum = || {
            let voxels = self.case.prediction.voxels();
            let mut sum = vec![0f32; voxels];
            for &class in self.group.classes() {
                let of_class = &rows[usize::from(class) * voxels..][..voxels];
                sum.iter_mut().zip(of_class).for_each(|(sum, p)| *sum += p);
            }
            Ok(sum)
        };
        self.probabilities.get(sum).map(|p| Some(p.as_slice()))
    }
}

/// Probabilities of single voxels, and the likelihood of raters.
pub(crate) struct VoxelInput<'a> {
    pub(crate) config: &'a ScoreConfig,
    pub(crate) raters: &'a [LabelMap],
    pub(crate) likelihood: Likelihood,
    reliability: Once<Reliability>,
}

/// Probabilities of voxels and of raters' label maps under a distribution.
pub(crate) struct Likelihood {
    /// `[l, v]` on the whole image.
    pub(crate) probabilities: Vec<f32>,
    /// The frequency of each class among the samples.
    pub(crate) frequencies: Option<LabelFrequencies>,
    /// The log-likelihood of each rater's labels on the region, in nats; empty where the network drew samples itself.
    pub(crate) log_likelihoods: Vec<f64>,
    /// The effective number of samples behind each likelihood.
    pub(crate) effective_samples: Vec<f64>,
}

impl<'a> VoxelInput<'a> {
    pub(crate) fn new(config: &'a ScoreConfig, raters: &'a [LabelMap], likelihood: Likelihood) -> Self {
        Self { config, raters, likelihood, reliability: Once::new() }
    }

    /// Returns the bins of the calibration errors.
    pub(crate) fn reliability(&self) -> Result<&Reliability> {
        let Likelihood { probabilities, .. } = &self.likelihood;
        self.reliability.get(|| Reliability::new(probabilities, self.raters, self.config.bins))
    }
}
