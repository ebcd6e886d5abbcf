//! Groups of samples that are alike.

use super::ged::PairwiseDistances;

/// Samples divided into groups, each around one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleClusters {
    /// The medoid of each group: the sample with the smallest sum of distances to the others of the group.
    pub medoids: Vec<usize>,
    /// The place in `medoids` of each sample's group.
    pub group_of: Vec<usize>,
    /// The mean distance of a sample to its medoid.
    pub cost: f64,
}

impl SampleClusters {
    /// How many samples each group has.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.medoids.len()];
        self.group_of.iter().for_each(|&group| sizes[group] += 1);
        sizes
    }
}

impl PairwiseDistances {
    /// k-medoids of the samples by partitioning around medoids (Kaufman and Rousseeuw, 1990): medoids are added one by one, each
    /// where it lowers the sum of distances most, and then exchanged with other samples as long as that lowers it further.
    ///
    /// The same distances give the same groups; of equal choices, the sample with the lowest number is taken. There are as many groups
    /// as samples at most, and samples that are equal to a medoid make no group of their own.
    pub fn k_medoids(&self, groups: usize) -> SampleClusters {
        let samples = self.samples();
        let mut medoids: Vec<usize> = vec![];
        while medoids.len() < groups.min(samples) {
            let Some((best, cost)) = self.best(medoids.clone(), &medoids, medoids.len()) else { break };
            if !medoids.is_empty() && cost >= self.cost(&medoids) {
                break;
            }
            medoids.push(best);
        }
        let mut cost = self.cost(&medoids);
        loop {
            let exchanges = (0..medoids.len()).filter_map(|place| {
                let (sample, cost) = self.best(medoids.clone(), &medoids, place)?;
                Some((place, sample, cost))
            });
            let best = exchanges.min_by(|a, b| a.2.total_cmp(&b.2));
            // Every exchange lowers the cost, and there are finitely many sets of medoids: the loop ends.
            match best.filter(|(.., lower)| *lower < cost) {
                Some((place, sample, lower)) => {
                    medoids[place] = sample;
                    cost = lower;
                }
                None => break,
            }
        }
        let nearest = |sample: usize| {
            let row = self.sample_to_samples(sample);
            (0..medoids.len()).min_by(|&a, &b| row[medoids[a]].total_cmp(&row[medoids[b]])).unwrap_or(0)
        };
        let group_of = (0..samples).map(nearest).collect();
        SampleClusters { medoids, group_of, cost: cost / samples.max(1) as f64 }
    }

    /// The sample that lowers the cost most as the medoid at a place of `trial`, and that cost; none if all are medoids.
    fn best(&self, mut trial: Vec<usize>, medoids: &[usize], place: usize) -> Option<(usize, f64)> {
        if place == trial.len() {
            trial.push(0);
        }
        let free = (0..self.samples()).filter(|sample| !medoids.contains(sample));
        let cost = |sample: usize| {
            trial[place] = sample;
            (sample, self.cost(&trial))
        };
        free.map(cost).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The sum of the distances of samples to the nearest medoid.
    fn cost(&self, medoids: &[usize]) -> f64 {
        let nearest = |sample: usize| {
            let row = self.sample_to_samples(sample);
            medoids.iter().map(|&medoid| row[medoid]).fold(f64::INFINITY, f64::min)
        };
        (0..self.samples()).map(nearest).sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::labels::{BitPlanes, LabelMap};
    use crate::random::philox4x32;

    use super::*;

    /// Masks of so many voxels from the left: the more their sizes differ, the farther apart they are.
    fn distances(sizes: &[usize]) -> PairwiseDistances {
        let map = |&n: &usize| {
            BitPlanes::new(&LabelMap::new((0..64).map(|i| u8::from(i < n)).collect(), 2).unwrap())
        };
        let maps: Vec<BitPlanes> = sizes.iter().map(map).collect();
        PairwiseDistances::new(&maps, &maps[..1]).unwrap()
    }

    #[test]
    fn groups_are_found_with_their_sizes() {
        let clusters = distances(&[20, 60, 21, 3, 19, 59, 22, 58]).k_medoids(3);
        let mut found: Vec<(usize, usize)> = clusters.medoids.iter().copied().zip(clusters.sizes()).collect();
        found.sort_unstable();
        assert_eq!(found, [(2, 4), (3, 1), (5, 3)], "around 21, 3 and 59 voxels");
        let group = |sample: usize| clusters.group_of[sample];
        assert!(group(0) == group(2) && group(0) == group(6) && group(1) == group(5) && group(3) != group(0));
    }

    #[test]
    fn one_group_is_around_the_most_typical_sample() {
        let d = distances(&[64, 8, 10, 9, 1]);
        let clusters = d.k_medoids(1);
        assert_eq!((clusters.medoids, clusters.group_of), (vec![3], vec![0; 5]));
        let sum = |sample: usize| d.sample_to_samples(sample).iter().sum::<f64>();
        assert!((0..5).all(|other| sum(3) <= sum(other)));
    }

    #[test]
    fn equal_samples_make_no_groups_of_their_own() {
        let clusters = distances(&[5, 5, 5, 9]).k_medoids(4);
        assert_eq!((clusters.sizes(), clusters.cost), (vec![3, 1], 0.0));
        assert_eq!(distances(&[0, 0]).k_medoids(8).sizes(), [2]);
    }

    /// Exchanges may end before the best of all sets; of these samples they do not.
    #[test]
    fn no_pair_of_medoids_is_better() {
        for number in 0..20u32 {
            let sizes: Vec<usize> =
                (0..9).map(|i| philox4x32([i, 0, 0, 0], [number, 0])[0] as usize % 65).collect();
            let d = distances(&sizes);
            let found = d.k_medoids(2).cost * 9.0;
            let pairs = (0..9).flat_map(|a| (0..9).map(move |b| [a, b]));
            let best = pairs.map(|pair| d.cost(&pair)).fold(f64::INFINITY, f64::min);
            assert!((found - best).abs() < 1e-12, "{sizes:?}: {found} instead of {best}");
        }
    }
}
