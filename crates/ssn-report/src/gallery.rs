//! Which samples of a case are shown: one of each group of samples that are alike, with the share of the group.

use ssn_core::LabelMap;
use ssn_core::metrics::PairwiseDistances;

use crate::figures::PictureTile;
use crate::material::LoadedCase;
use crate::view::View;

/// Groups with this share of the samples or less are rare.
const RARE: f64 = 0.05;
/// With so much of the mean distance to the one most typical sample left, there are groups enough.
const CLOSE_ENOUGH: f64 = 0.5;

/// What captions say about the choice.
pub(crate) const GALLERY: &str = "Samples are in groups of alike ones (k-medoids of 1 − IoU): of each group its most typical sample, with the share of \
                                  all samples that are in the group, the largest group first. There are as many groups as it takes to halve \
                                  the mean distance of samples to the nearest picture, if so many have room; groups of 5\u{a0}% or less are rare.";

/// A group of samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SampleGroup {
    /// Its most typical sample.
    pub(crate) sample: usize,
    /// Its share of all samples.
    pub(crate) share: f64,
}

impl SampleGroup {
    fn is_rare(&self) -> bool {
        self.share <= RARE
    }
}

/// The groups of the samples of a case, the largest first, `most` at most.
pub(crate) fn groups(distances: &PairwiseDistances, most: usize) -> Vec<SampleGroup> {
    let one = distances.k_medoids(1);
    let enough = CLOSE_ENOUGH * one.cost;
    let mut clusters = one;
    for count in 2..=most {
        if clusters.cost <= enough {
            break;
        }
        clusters = distances.k_medoids(count);
    }
    let samples = distances.samples().max(1) as f64;
    let group = |(&sample, size): (&usize, usize)| SampleGroup { sample, share: size as f64 / samples };
    let mut groups: Vec<SampleGroup> = clusters.medoids.iter().zip(clusters.sizes()).map(group).collect();
    // Of equal shares, the sample with the lower number comes first.
    groups.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.sample.cmp(&b.sample)));
    groups
}

/// The sample with the smallest sum of distances to all others.
pub(crate) fn typical(distances: &PairwiseDistances) -> usize {
    distances.k_medoids(1).medoids.first().copied().unwrap_or(0)
}

/// A picture of the sample of each group.
pub(crate) fn tiles(subject: &LoadedCase, view: &View, groups: &[SampleGroup]) -> Vec<PictureTile> {
    let tile = |group: &SampleGroup| {
        let map = &subject.samples[group.sample];
        let rare = if group.is_rare() { ", rare" } else { "" };
        let mut caption = format!("{:.0} %{rare}\nsample {}", 100.0 * group.share, group.sample);
        if let Some(nothing) = nothing(map, view) {
            caption += &format!(", {nothing}");
        }
        PictureTile { picture: view.labels(subject.image.as_deref(), map, view.slice), caption }
    };
    groups.iter().map(tile).collect()
}

/// What is said of a map of which a picture shows nothing.
pub(crate) fn nothing(map: &LabelMap, view: &View) -> Option<&'static str> {
    let is_empty = |labels: &[u8]| labels.iter().all(|label| *label == 0);
    match (is_empty(map.labels()), is_empty(view.slice_of(map))) {
        (true, _) => Some("empty"),
        (false, true) => Some("none here"),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use ssn_core::BitPlanes;

    use super::*;

    /// Masks of so many voxels from the left.
    fn distances(sizes: &[usize]) -> PairwiseDistances {
        let map = |&n: &usize| {
            BitPlanes::new(&LabelMap::new((0..64).map(|i| u8::from(i < n)).collect(), 2).unwrap())
        };
        let maps: Vec<BitPlanes> = sizes.iter().map(map).collect();
        PairwiseDistances::new(&maps, &maps[..1]).unwrap()
    }

    #[test]
    fn large_groups_come_first_and_rare_ones_last() {
        let found = |sizes: &[usize]| -> Vec<(usize, f64, bool)> {
            let groups = groups(&distances(sizes), 8);
            groups.iter().map(|group| (group.sample, group.share, group.is_rare())).collect()
        };
        let mut sizes = vec![64];
        sizes.extend([8; 39]);
        assert_eq!(found(&sizes), [(1, 0.975, false), (0, 0.025, true)]);
        // Two pictures halve the mean distance to the nearest: the one of 64 voxels gets none.
        let sizes = [vec![10; 6], vec![30; 13], vec![64]].concat();
        assert_eq!(found(&sizes), [(6, 0.7, false), (0, 0.3, false)]);
    }

    #[test]
    fn equal_samples_are_one_picture() {
        assert_eq!(groups(&distances(&[5; 9]), 8), [SampleGroup { sample: 0, share: 1.0 }]);
        assert_eq!(typical(&distances(&[64, 8, 10, 9, 1])), 3);
    }
}
