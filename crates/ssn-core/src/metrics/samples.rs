//! How the samples of one image compare with its prediction and with one rater.

use super::aggregate::quantile;
use super::check::{self, Space};
use super::group::ClassGroup;
use super::overlap::{BothEmpty, Overlap};
use crate::Result;
use crate::labels::BitPlanes;

/// The Dice of the prediction and of each sample against one rater, for one group of classes.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleDice {
    /// Dice of the prediction, the argmax of the mean logits.
    pub prediction: Option<f64>,
    /// Dice of each sample `[m]`.
    pub samples: Vec<Option<f64>>,
}

impl SampleDice {
    /// Scores the prediction and all samples; `both_empty` is the value where map and rater are both empty.
    ///
    /// # Errors
    /// When there is no sample, when the maps differ in voxels or classes, or when they lack a class of the
    /// group.
    pub fn new(
        prediction: &BitPlanes,
        samples: &[BitPlanes],
        rater: &BitPlanes,
        group: &ClassGroup,
        both_empty: BothEmpty,
    ) -> Result<Self> {
        let space = Space::from(rater);
        check::all_in(space, &check::PREDICTION, std::slice::from_ref(prediction))?;
        check::all_in(space, &check::SAMPLES, samples)?;
        group.check(space.classes)?;
        let dice = |map| Overlap::of_checked(map, rater, group).dice(both_empty);
        Ok(Self { prediction: dice(prediction), samples: samples.iter().map(dice).collect() })
    }

    /// The share of the samples whose Dice is strictly larger than the prediction's.
    ///
    /// Samples without a Dice are left out of the share; `None` when the prediction has none or no sample has
    /// one.
    pub fn better_than_prediction(&self) -> Option<f64> {
        let prediction = self.prediction?;
        let defined: Vec<f64> = self.samples.iter().copied().flatten().collect();
        let better = defined.iter().filter(|&&dice| dice > prediction).count();
        (!defined.is_empty()).then(|| better as f64 / defined.len() as f64)
    }

    /// The quantile `q` of the samples that have a Dice, by linear interpolation; `None` when no sample has
    /// one.
    ///
    /// # Errors
    /// Unless 0 ≤ `q` ≤ 1.
    pub fn quantile(&self, q: f64) -> Result<Option<f64>> {
        quantile(&self.samples.iter().copied().flatten().collect::<Vec<_>>(), q)
    }
}

/// The voxels of each group `[groups]` in each map: the distribution of volumes that samples or raters claim.
///
/// Multiply by the volume of a voxel for milliliters.
///
/// # Errors
/// When there is no map (named `samples`), when the maps differ in voxels or classes, or when they lack a
/// class.
pub fn volumes(maps: &[BitPlanes], groups: &[ClassGroup]) -> Result<Vec<Vec<usize>>> {
    let space = check::common_space(&check::SAMPLES, maps)?;
    groups.iter().try_for_each(|group| group.check(space.classes))?;
    Ok(maps.iter().map(|map| groups.iter().map(|group| group.volume(map)).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CoreError;
    use crate::labels::LabelMap;

    fn planes(labels: &[u8]) -> BitPlanes {
        BitPlanes::new(&LabelMap::new(labels.to_vec(), 4).unwrap())
    }

    #[test]
    fn samples_are_ranked_against_the_prediction() {
        let rater = planes(&[1, 1, 0, 0]);
        let samples =
            [planes(&[1, 1, 0, 0]), planes(&[1, 0, 0, 0]), planes(&[0, 0, 1, 1]), planes(&[1, 1, 1, 0])];
        let group = ClassGroup::new(&[1]).unwrap();
        let found = SampleDice::new(&samples[1], &samples, &rater, &group, BothEmpty::Undefined).unwrap();
        assert_eq!(found.samples, [Some(1.0), Some(2.0 / 3.0), Some(0.0), Some(0.8)]);
        assert_eq!(found.better_than_prediction(), Some(0.5));
        assert_eq!(found.quantile(0.0).unwrap(), Some(0.0));
        assert!((found.quantile(0.95).unwrap().unwrap() - 0.97).abs() < 1e-12);
        assert!(found.quantile(-0.1).is_err());
    }

    #[test]
    fn undefined_values_stay_out() {
        let (empty, full) = (planes(&[0, 0]), planes(&[1, 1]));
        let group = ClassGroup::new(&[1]).unwrap();
        let samples = [empty.clone(), full.clone()];
        let choice = BothEmpty::Undefined;
        let found = SampleDice::new(&empty, &samples, &empty, &group, choice).unwrap();
        assert_eq!((found.better_than_prediction(), found.quantile(0.5).unwrap()), (None, Some(0.0)));
        let found = SampleDice::new(&full, &samples, &empty, &group, choice).unwrap();
        assert_eq!(found.better_than_prediction(), Some(0.0));
        let found = SampleDice::new(&full, &samples, &empty, &group, BothEmpty::One).unwrap();
        assert_eq!(found.better_than_prediction(), Some(0.5));
        let error = SampleDice::new(&full, &[], &empty, &group, choice).unwrap_err();
        assert_eq!(error, CoreError::Empty { field: "samples" });
        let error = SampleDice::new(&planes(&[0]), &samples, &empty, &group, choice).unwrap_err();
        assert!(matches!(error, CoreError::OutOfRange { field: "prediction.voxels", .. }), "{error}");
    }

    #[test]
    fn volumes_per_group() {
        let maps = [planes(&[1, 2, 3, 3]), planes(&[0, 0, 0, 1])];
        let groups = [ClassGroup::new(&[3]).unwrap(), ClassGroup::new(&[1, 3]).unwrap()];
        assert_eq!(volumes(&maps, &groups).unwrap(), [[2, 3], [0, 1]]);
        assert!(volumes(&[], &groups).is_err());
    }
}
