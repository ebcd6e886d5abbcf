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
//!   For label maps both terms are increasing affine functions, of 1 − Σ_k p̄_k² and of 1 − p̄_y, so that
//!   [`LabelFrequencies::s_ncc`] gives the same value without logarithms.

use rayon::prelude::*;

use super::aggregate::Summary;
use super::check::{self, Space};
use crate::labels::{LabelMap, largest};
use crate::{CoreError, Result};

/// NCC of two finite maps of the same length; `None` when one of them is constant.
fn normalized_cross_correlation(first: &[f64], second: &[f64]) -> Option<f64> {
    // Rounding of the mean would give a constant map a small variance, hence the comparison of values.
    if [first, second].iter().any(|map| map.iter().all(|value| *value == map[0])) {
        return None;
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
    (scale > 0.0 && scale.is_finite()).then(|| (ab / scale).clamp(-1.0, 1.0))
}

/// NCC of the variance map of the samples with that of the raters; `None` when one of them is constant, as it
/// is for a single map.
pub fn variance_ncc(samples: &LabelFrequencies, raters: &LabelFrequencies) -> Result<Option<f64>> {
    check::all_in(Space::from(samples), &check::RATERS, std::slice::from_ref(raters))?;
    Ok(normalized_cross_correlation(&samples.variance(), &raters.variance()))
}

/// Voxels whose counts are in the cache while all maps are counted.
const CHUNK: usize = 1 << 12;

/// The label that most of `maps` have at each voxel, the lowest of equals.
pub fn most_frequent(maps: &[LabelMap]) -> Result<LabelMap> {
    let Space { voxels, classes } = check::common_space(&check::SAMPLES, maps)?;
    let mut labels = vec![0u8; voxels];
    labels.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, out)| {
        let mut counts = vec![0u32; classes * out.len()]; // [c, x]
        for map in maps {
            let here = &map.labels()[chunk * CHUNK..][..out.len()];
            here.iter().enumerate().for_each(|(x, &label)| counts[usize::from(label) * here.len() + x] += 1);
        }
        let voxels = out.len();
        out.copy_from_slice(&largest(&counts, voxels));
    });
    LabelMap::new(labels, classes)
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

    /// The share of the maps with each class at each voxel, `[c, v]`.
    pub fn probabilities(&self) -> Vec<f32> {
        self.counts.iter().map(|&count| count as f32 / self.maps as f32).collect()
    }

    /// S_NCC of the counted samples, over the raters for which it has a value.
    pub fn s_ncc(&self, raters: &[LabelMap]) -> Result<Summary> {
        check::all_in(Space::from(self), &check::RATERS, raters)?;
        let own = self.variance();
        let missed = |(voxel, &label): (usize, &u8)| {
            1.0 - f64::from(self.counts[usize::from(label) * self.voxels + voxel]) / f64::from(self.maps)
        };
        let ncc = |rater: &LabelMap| {
            let map: Vec<f64> = rater.labels().iter().enumerate().map(missed).collect();
            normalized_cross_correlation(&own, &map)
        };
        Summary::of(&raters.iter().map(ncc).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(labels: &[u8]) -> LabelMap {
        LabelMap::new(labels.to_vec(), 3).unwrap()
    }

    #[test]
    fn the_majority_is_the_most_frequent_label() {
        let random = |seed: u32| {
            let label = |x: u32| (x * 7919 + seed * 104_729 + (x * seed) % 13) % 3;
            map(&(0..10_000).map(|x| label(x) as u8).collect::<Vec<_>>())
        };
        let maps: Vec<LabelMap> = (0..7).map(random).collect();
        let found = most_frequent(&maps).unwrap();
        let probabilities = LabelFrequencies::of(&maps).unwrap().probabilities();
        for (voxel, &label) in found.labels().iter().enumerate() {
            let share = |label: u8| probabilities[usize::from(label) * 10_000 + voxel];
            // Of equals, `max_by` takes the last.
            let expected = (0..3u8).rev().max_by(|a, b| share(*a).total_cmp(&share(*b))).unwrap();
            assert_eq!(label, expected, "voxel {voxel}");
        }
        assert_eq!(most_frequent(&maps[..1]).unwrap(), maps[0]);
        assert!(most_frequent(&[]).is_err());
    }

    #[test]
    fn correlation_by_hand() {
        let ncc = normalized_cross_correlation;
        assert!((ncc(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.5]).unwrap() - 0.997_948).abs() < 1e-6);
        assert!((ncc(&[0.0, 1.0], &[5.0, -5.0]).unwrap() + 1.0).abs() < 1e-15);
        assert_eq!(ncc(&[0.1; 3], &[1.0, 2.0, 3.0]), None);
        assert_eq!(ncc(&[], &[]), None);
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
    }
}
