//! Which cases get pictures, and which of their samples.

use ssn_core::metrics::PairwiseDistances;

use super::survey::Survey;

/// A case that gets pictures, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Its place among all.
    pub(super) index: usize,
    /// Why it was chosen.
    pub(super) why: &'static str,
}

/// The most ambiguous case, the worst, the best, and others evenly between the best and the worst.
///
/// Worse is a larger GED², or, without raters, a larger diversity of samples; more ambiguous is a larger diversity of
/// raters, or of samples.
pub(super) fn cases(surveys: &[Survey], count: usize) -> Vec<Chosen> {
    let known = surveys.iter().all(|survey| survey.ged.is_some());
    let badness = |survey: &Survey| survey.ged.filter(|_| known).unwrap_or(survey.sample_diversity);
    let ambiguity = |survey: &Survey| survey.rater_diversity.unwrap_or(survey.sample_diversity);
    let mut order: Vec<usize> = (0..surveys.len()).collect();
    order.sort_by(|&a, &b| badness(&surveys[a]).total_cmp(&badness(&surveys[b])));
    let most = order
        .iter()
        .copied()
        .rev()
        .max_by(|&a, &b| ambiguity(&surveys[a]).total_cmp(&ambiguity(&surveys[b])));
    let names = if known {
        ["most ambiguous", "worst", "best", "between best and worst"]
    } else {
        ["most ambiguous", "most diverse samples", "least diverse samples", "between"]
    };
    let mut chosen: Vec<Chosen> = vec![];
    for (index, why) in [most, order.last().copied(), order.first().copied()].into_iter().zip(names) {
        if let Some(index) = index.filter(|index| chosen.iter().all(|one| one.index != *index)) {
            chosen.push(Chosen { index, why });
        }
    }
    chosen.truncate(count);
    order.retain(|index| chosen.iter().all(|one| one.index != *index));
    let more = (count - chosen.len()).min(order.len());
    chosen.extend(
        (0..more).map(|i| Chosen { index: order[(2 * i + 1) * order.len() / (2 * more)], why: names[3] }),
    );
    chosen
}

/// Samples that differ as much as possible: the most typical one, and then always the one farthest from all before it.
pub(super) fn diverse(distances: &PairwiseDistances, count: usize) -> Vec<usize> {
    let samples = distances.samples();
    let sum = |sample: &usize| distances.sample_to_samples(*sample).iter().sum::<f64>();
    let typical = (0..samples).min_by(|a, b| sum(a).total_cmp(&sum(b)));
    let mut chosen: Vec<usize> = typical.into_iter().collect();
    while chosen.len() < count.min(samples) {
        let nearest = |sample: &usize| {
            chosen
                .iter()
                .map(|&other| distances.sample_to_samples(*sample)[other])
                .fold(f64::INFINITY, f64::min)
        };
        let rest = (0..samples).rev().filter(|sample| !chosen.contains(sample));
        let Some(farthest) = rest.max_by(|a, b| nearest(a).total_cmp(&nearest(b))) else { break };
        chosen.push(farthest);
    }
    chosen
}

/// All samples in an order in which neighbors are alike: from each to the nearest that is left.
pub(super) fn chain(distances: &PairwiseDistances) -> Vec<usize> {
    let mut rest: Vec<usize> = (0..distances.samples()).collect();
    let to_raters = |sample: &usize| distances.sample_to_raters(*sample).iter().sum::<f64>();
    let mut next = rest.iter().copied().min_by(|a, b| to_raters(a).total_cmp(&to_raters(b)));
    let mut chain = vec![];
    while let Some(sample) = next {
        chain.push(sample);
        rest.retain(|other| *other != sample);
        let row = distances.sample_to_samples(sample);
        next = rest.iter().copied().min_by(|&a, &b| row[a].total_cmp(&row[b]));
    }
    chain
}

#[cfg(test)]
mod tests {
    use ssn_core::{BitPlanes, LabelMap};

    use super::*;

    fn survey(ged: Option<f64>, sample_diversity: f64, rater_diversity: Option<f64>) -> Survey {
        let (id, prediction, samples) = (String::new(), None, vec![]);
        Survey { id, prediction, samples, ged, sample_diversity, rater_diversity }
    }

    #[test]
    fn the_extremes_come_first_and_nothing_twice() {
        let surveys: Vec<Survey> =
            (0..10).map(|i| survey(Some(f64::from(i)), 0.0, Some(f64::from(i % 7)))).collect();
        let indices = |count| cases(&surveys, count).iter().map(|one| one.index).collect::<Vec<_>>();
        assert_eq!(indices(3), [6, 9, 0]);
        assert_eq!((indices(0).len(), indices(1)), (0, vec![6]));
        assert_eq!(indices(5), [6, 9, 0, 2, 7]);
        let mut all = indices(20);
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        let without = [survey(None, 0.2, None), survey(None, 0.5, None)];
        let chosen = cases(&without, 6);
        assert_eq!(chosen[0], Chosen { index: 1, why: "most ambiguous" });
        assert_eq!(chosen[1], Chosen { index: 0, why: "least diverse samples" });
        assert!(cases(&[], 3).is_empty());
    }

    #[test]
    fn chosen_samples_differ_and_neighbors_are_alike() {
        // Masks of 1, 2, … voxels from the left: the more their sizes differ, the farther apart they are.
        let map =
            |n: usize| BitPlanes::new(&LabelMap::new((0..16).map(|i| u8::from(i < n)).collect(), 2).unwrap());
        let samples: Vec<BitPlanes> = [8, 1, 16, 7, 2].into_iter().map(map).collect();
        let distances = PairwiseDistances::new(&samples, &[map(16)]).unwrap();
        assert_eq!(diverse(&distances, 3), [0, 1, 2]);
        assert_eq!(diverse(&distances, 9).len(), 5);
        assert_eq!(chain(&distances), [2, 0, 3, 4, 1]);
    }
}
