//! Whether samples are uncertain where raters disagree: correlations of voxel-wise uncertainty maps.
//!
//! The normalized cross-correlation of two maps is NCC(a, b) = Σ(a − ā)(b − b̄) / √(Σ(a − ā)² Σ(b − b̄)²). It
//! has no value when a map is constant.
//!
//! - [`variance_ncc`] correlates V_s and V_y, where V = Σ_k p̄_k (1 − p̄_k) = 1 − Σ_k p̄_k² sums the
//!   variances of the class indicators and p̄_k is the share of the maps that have class k at the voxel.
//! - S_NCC, introduced with PHiSeg, correlates the expected cross-entropy of the samples with their mean,
//!   E_ss, with the expected cross-entropy of the samples with rater j, E_sj, and averages over the raters:
//!   E_ss = −(1/m) Σ_i Σ_k p̄_k log(p_ik + ε), E_sj = −(1/m) Σ_i log(p_i,y_j + ε), ε = 1e-8.
//!   [`ProbabilityMaps`] does this for samples of probabilities. For label maps both terms are increasing
//!   affine functions, of 1 − Σ_k p̄_k² and of 1 − p̄_y, so that [`LabelFrequencies`] gives the same value
//!   without logarithms.
//!
//! Both types take one map at a time and keep no map.

use super::aggregate::Summary;
use super::check::{self, Space};
use crate::labels::LabelMap;
use crate::{CoreError, Result};

/// What S_NCC adds to a probability before the logarithm (the constant of PHiSeg's evaluation).
const LOG_OFFSET: f64 = 1e-8;

/// NCC of two maps of the same length; `None` when one of them is constant.
///
/// # Errors
/// [`CoreError::Length`] when the lengths differ, [`CoreError::NonFinite`] for a value that is not finite.
pub fn normalized_cross_correlation(first: &[f64], second: &[f64]) -> Result<Option<f64>> {
    if first.len() != second.len() {
        return Err(CoreError::Length { field: "second", expected: first.len(), found: second.len() });
    }
    for (field, map) in [("first", first), ("second", second)] {
        if let Some(index) = map.iter().position(|value| !value.is_finite()) {
            return Err(CoreError::NonFinite { field, index, value: map[index] });
        }
        // Rounding of the mean would give a constant map a small variance, hence the comparison of values.
        if map.iter().all(|value| *value == map[0]) {
            return Ok(None);
        }
    }
    let count = first.len() as f64;
    let (mean_a, mean_b) = (first.iter().sum::<f64>() / count, second.iter().sum::<f64>() / count);
    let (mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0);
    for (a, b) in first.iter().zip(second) {
        let (a, b) = (a - mean_a, b - mean_b);
        aa += a * a;
        bb += b * b;
        ab += a * b;
    }
    let scale = aa.sqrt() * bb.sqrt();
    Ok((scale > 0.0 && scale.is_finite()).then(|| (ab / scale).clamp(-1.0, 1.0)))
}

/// NCC of the variance map of the samples with that of the raters; `None` when one of them is constant, as it
/// is for a single map.
///
/// # Errors
/// When the two differ in voxels or classes; the second is named `raters`.
pub fn variance_ncc(samples: &LabelFrequencies, raters: &LabelFrequencies) -> Result<Option<f64>> {
    check::all_in(Space::from(samples), &check::RATERS, std::slice::from_ref(raters))?;
    normalized_cross_correlation(&samples.variance(), &raters.variance())
}

/// How often each class occurs at each voxel among several maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelFrequencies {
    counts: Vec<u32>, // [c, v]
    voxels: usize,
    maps: u32,
}

impl From<&LabelFrequencies> for Space {
    fn from(frequencies: &LabelFrequencies) -> Self {
        Self { voxels: frequencies.voxels, classes: frequencies.counts.len() / frequencies.voxels }
    }
}

impl LabelFrequencies {
    /// Starts with one map, which fixes the number of voxels and classes.
    pub fn new(first: &LabelMap) -> Self {
        let counts = vec![0; first.classes() * first.voxels()];
        let mut frequencies = Self { counts, voxels: first.voxels(), maps: 0 };
        frequencies.add(first);
        frequencies
    }

    /// Counts all of `maps`.
    ///
    /// # Errors
    /// When there is no map (named `samples`), or when they differ in voxels or classes.
    pub fn of(maps: &[LabelMap]) -> Result<Self> {
        let [first, rest @ ..] = maps else { return Err(CoreError::Empty { field: "samples" }) };
        check::common_space(&check::SAMPLES, maps)?;
        let mut frequencies = Self::new(first);
        rest.iter().for_each(|map| frequencies.add(map));
        Ok(frequencies)
    }

    /// Counts one more map.
    ///
    /// # Errors
    /// When it differs from the first in voxels or classes (named `samples`).
    pub fn push(&mut self, map: &LabelMap) -> Result<()> {
        check::all_in(Space::from(&*self), &check::SAMPLES, std::slice::from_ref(map))?;
        self.add(map);
        Ok(())
    }

    fn add(&mut self, map: &LabelMap) {
        for (voxel, &label) in map.labels().iter().enumerate() {
            self.counts[usize::from(label) * self.voxels + voxel] += 1;
        }
        self.maps += 1;
    }

    /// The number of maps counted.
    pub fn maps(&self) -> usize {
        self.maps as usize
    }

    /// The variance map V = 1 − Σ_k p̄_k² `[v]`: 0 where all maps agree, 1 − 1/c where all classes are
    /// equally frequent.
    pub fn variance(&self) -> Vec<f64> {
        let mut squares = vec![0u64; self.voxels]; // integers, so that equal frequencies give equal values
        for plane in self.counts.chunks_exact(self.voxels) {
            squares.iter_mut().zip(plane).for_each(|(sum, &n)| *sum += u64::from(n) * u64::from(n));
        }
        let all = f64::from(self.maps) * f64::from(self.maps);
        squares.iter().map(|&sum| 1.0 - sum as f64 / all).collect()
    }

    /// S_NCC of the counted samples, over the raters for which it has a value.
    ///
    /// # Errors
    /// When there is no rater, or when they differ in voxels or classes.
    pub fn s_ncc(&self, raters: &[LabelMap]) -> Result<Summary> {
        check::all_in(Space::from(self), &check::RATERS, raters)?;
        let missed = |voxel: usize, label: u8| {
            1.0 - f64::from(self.counts[usize::from(label) * self.voxels + voxel]) / f64::from(self.maps)
        };
        summary_over_raters(&self.variance(), raters, missed)
    }
}

/// Means of sampled probabilities and of their logarithms: what S_NCC needs of samples that are not label
/// maps.
///
/// Holds two `f64` per voxel and class.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbabilityMaps {
    probability: Vec<f64>, // [c, v], summed over the maps
    logarithm: Vec<f64>,   // [c, v], summed over the maps
    space: (usize, usize),
    maps: usize,
}

impl ProbabilityMaps {
    /// Starts without a map, for `classes` classes and `voxels` voxels.
    ///
    /// # Errors
    /// [`CoreError::OutOfRange`] when either is 0 or their product is beyond the address space.
    pub fn new(classes: usize, voxels: usize) -> Result<Self> {
        let expected = "at least 1, and small enough that classes times voxels fit in memory";
        for (field, value) in [("classes", classes), ("voxels", voxels)] {
            if value == 0 || classes.checked_mul(voxels).is_none_or(|all| all > isize::MAX as usize / 8) {
                return Err(CoreError::OutOfRange { field, index: 0, value: value as f64, expected });
            }
        }
        let zeros = vec![0.0; classes * voxels];
        Ok(Self { probability: zeros.clone(), logarithm: zeros, space: (classes, voxels), maps: 0 })
    }

    /// Adds one sample of probabilities `[c, v]`.
    ///
    /// # Errors
    /// When the length is wrong, or when the values at a voxel are not probabilities.
    pub fn push(&mut self, probabilities: &[f32]) -> Result<()> {
        let (classes, voxels) = self.space;
        check::probabilities(probabilities, classes, voxels)?;
        let sums = self.probability.iter_mut().zip(&mut self.logarithm);
        for (&p, (probability, logarithm)) in probabilities.iter().zip(sums) {
            let p = f64::from(p).clamp(0.0, 1.0);
            *probability += p;
            *logarithm += (p + LOG_OFFSET).ln();
        }
        self.maps += 1;
        Ok(())
    }

    /// S_NCC of the samples added, over the raters for which it has a value.
    ///
    /// # Errors
    /// When there is no sample or no rater, or when the raters differ in voxels or classes.
    pub fn s_ncc(&self, raters: &[LabelMap]) -> Result<Summary> {
        if self.maps == 0 {
            return Err(CoreError::Empty { field: "samples" });
        }
        let (classes, voxels) = self.space;
        check::all_in(Space { voxels, classes }, &check::RATERS, raters)?;
        let count = self.maps as f64;
        let mut own = vec![0.0; voxels]; // E_ss
        let planes = self.probability.chunks_exact(voxels).zip(self.logarithm.chunks_exact(voxels));
        for (probability, logarithm) in planes {
            for ((sum, p), log) in own.iter_mut().zip(probability).zip(logarithm) {
                *sum -= p / count * (log / count);
            }
        }
        let to_rater = |voxel: usize, label: u8| -self.logarithm[usize::from(label) * voxels + voxel] / count;
        summary_over_raters(&own, raters, to_rater)
    }
}

/// NCC of `own` with the map that `cross(voxel, label)` makes of each rater.
fn summary_over_raters(
    own: &[f64],
    raters: &[LabelMap],
    cross: impl Fn(usize, u8) -> f64,
) -> Result<Summary> {
    let mut values = Vec::with_capacity(raters.len());
    for rater in raters {
        let map: Vec<f64> =
            rater.labels().iter().enumerate().map(|(voxel, &label)| cross(voxel, label)).collect();
        values.push(normalized_cross_correlation(own, &map)?);
    }
    Ok(Summary::of_scores(&values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(labels: &[u8]) -> LabelMap {
        LabelMap::new(labels.to_vec(), 3).unwrap()
    }

    #[test]
    fn correlation_by_hand() {
        let ncc = |a: &[f64], b: &[f64]| normalized_cross_correlation(a, b).unwrap();
        assert!((ncc(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.5]).unwrap() - 0.997_948).abs() < 1e-6);
        assert!((ncc(&[0.0, 1.0], &[5.0, -5.0]).unwrap() + 1.0).abs() < 1e-15);
        assert_eq!(ncc(&[0.1; 3], &[1.0, 2.0, 3.0]), None);
        assert_eq!(ncc(&[], &[]), None);
        assert!(normalized_cross_correlation(&[1.0], &[]).is_err());
        assert!(normalized_cross_correlation(&[f64::NAN], &[1.0]).is_err());
    }

    #[test]
    fn variance_of_labels() {
        let maps = [map(&[0, 0, 2]), map(&[0, 1, 1]), map(&[0, 1, 0])];
        let frequencies = LabelFrequencies::of(&maps).unwrap();
        let variance = frequencies.variance();
        assert_eq!(variance[0], 0.0);
        assert!((variance[1] - 4.0 / 9.0).abs() < 1e-15 && (variance[2] - 2.0 / 3.0).abs() < 1e-15);
        assert!((variance_ncc(&frequencies, &frequencies).unwrap().unwrap() - 1.0).abs() < 1e-15);
        let single = LabelFrequencies::new(&maps[0]);
        assert_eq!(variance_ncc(&frequencies, &single).unwrap(), None);
        assert_eq!((frequencies.maps(), single.maps()), (3, 1));
    }

    #[test]
    fn label_maps_and_their_indicators_have_the_same_s_ncc() {
        let samples = [map(&[0, 0, 2, 1]), map(&[0, 1, 1, 1]), map(&[0, 1, 0, 1]), map(&[0, 1, 0, 2])];
        let raters = [map(&[0, 1, 1, 0]), map(&[0, 0, 2, 1])];
        let mut soft = ProbabilityMaps::new(3, 4).unwrap();
        for sample in &samples {
            let one_hot: Vec<f32> = (0..3)
                .flat_map(|k| sample.labels().iter().map(move |&l| f32::from(u8::from(l == k))))
                .collect();
            soft.push(&one_hot).unwrap();
        }
        let hard = LabelFrequencies::of(&samples).unwrap().s_ncc(&raters).unwrap();
        let soft = soft.s_ncc(&raters).unwrap();
        assert!((hard.mean.unwrap() - soft.mean.unwrap()).abs() < 1e-12);
        assert_eq!((hard.count, hard.skipped), (2, 0));
    }

    #[test]
    fn misfits_are_errors() {
        let (three, two) = (map(&[0, 1, 2]), map(&[0, 1]));
        let mut frequencies = LabelFrequencies::new(&three);
        assert!(matches!(frequencies.push(&two), Err(CoreError::OutOfRange { field: "samples.voxels", .. })));
        assert!(matches!(
            frequencies.s_ncc(&[two]),
            Err(CoreError::OutOfRange { field: "raters.voxels", .. })
        ));
        assert!(LabelFrequencies::of(&[]).is_err() && frequencies.s_ncc(&[]).is_err());
        let maps = ProbabilityMaps::new(3, 3).unwrap();
        assert_eq!(maps.s_ncc(&[three]).unwrap_err(), CoreError::Empty { field: "samples" });
        assert!(ProbabilityMaps::new(usize::MAX, 2).is_err() && ProbabilityMaps::new(0, 1).is_err());
    }
}
