//! Classes that a prediction and its raters seem to name differently.

use ssn_io::{Limits, Result};

use crate::evaluation::{Scored, ScoringPlan, load_raters};
use crate::means::mean;
use crate::predictions::DistributionFile;
use crate::registry::DSC;
use crate::unique;

/// A class with a mean DSC below this is looked at.
const LOW: f64 = 0.1;
/// Another class with a Dice from this on is probably the one that was meant.
const HIGH: f64 = 0.6;
/// Cases that are compared, at most.
const MAX_CASES: usize = 20;

/// Returns a sentence for each class that the raters' maps seem to have under the number of another class: its DSC is near
/// 0, and would be near 1 against the other one.
///
/// Reads the maps again only where the mean DSC of a group of classes is that low.
pub(super) fn swapped_classes(plan: &ScoringPlan, cases: &[Scored]) -> Result<Vec<String>> {
    if !mask_means(cases).iter().any(|&dice| dice < LOW) {
        return Ok(vec![]);
    }
    let classes = plan.classes.len();
    // Voxels of each class of the prediction (rows) and of the raters (columns).
    let mut counts = vec![vec![0u64; classes]; classes];
    let step = plan.jobs.len().div_ceil(MAX_CASES);
    for job in plan.jobs.iter().step_by(step.max(1)) {
        let file = DistributionFile::read(&job.found.path, &Limits::default())?;
        let prediction = file.labels_on_image(&file.prediction()?)?;
        for rater in load_raters(&plan.dataset, job)?.0 {
            for (&ours, &theirs) in prediction.iter().zip(rater.labels()) {
                counts[usize::from(ours)][usize::from(theirs)] += 1;
            }
        }
    }
    Ok(sentences(&counts, &plan.classes))
}

/// Returns the mean DSC of each mask over all cases and raters that have one.
fn mask_means(cases: &[Scored]) -> Vec<f64> {
    let masks = unique(cases.iter().flat_map(|case| &case.scores.masks));
    let values =
        |mask| cases.iter().flat_map(move |case| case.scores.of_mask(DSC, mask).iter().copied().flatten());
    masks.into_iter().filter_map(|mask| mean(values(mask))).collect()
}

/// Returns a sentence for each class of the prediction with another class in its place.
fn sentences(counts: &[Vec<u64>], classes: &[String]) -> Vec<String> {
    let row = |class: usize| counts[class].iter().sum::<u64>();
    let column = |class: usize| counts.iter().map(|row| row[class]).sum::<u64>();
    let dice = |ours: usize, theirs: usize| {
        2.0 * counts[ours][theirs] as f64 / (row(ours) + column(theirs)).max(1) as f64
    };
    let suspect = |class: &usize| dice(*class, *class) < LOW && row(*class) > 0;
    let other = |class: usize| {
        let best = (0..classes.len()).max_by(|a, b| dice(class, *a).total_cmp(&dice(class, *b)))?;
        (dice(class, best) >= HIGH).then_some((class, best))
    };
    let sentence = |(class, best): (usize, usize)| {
        format!(
            "The class {} has a DSC of {:.1} %, but would have {:.1} % against the raters' {}: are labels stored \
             differently than in training (data.label_values, data.invert_labels)?",
            classes[class],
            100.0 * dice(class, class),
            100.0 * dice(class, best),
            classes[best]
        )
    };
    (1..classes.len()).filter(suspect).filter_map(other).map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(count: usize) -> Vec<String> {
        ["background", "a", "b"][..count].iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn exchanged_classes_are_named() {
        let counts = vec![vec![900, 0, 0], vec![2, 1, 50], vec![0, 40, 0]];
        let found = sentences(&counts, &classes(3));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0]
                .starts_with("The class a has a DSC of 2.1 %, but would have 97.1 % against the raters' b")
        );
        assert!(found[1].starts_with("The class b has"), "{found:?}");
        assert_eq!(sentences(&[vec![0, 900], vec![50, 0]], &classes(2)).len(), 1, "inverted masks");
    }

    #[test]
    fn a_bad_network_is_not_suspected() {
        assert_eq!(sentences(&[vec![900, 50], vec![30, 1]], &classes(2)), Vec::<String>::new());
        assert_eq!(sentences(&[vec![900, 50], vec![0, 0]], &classes(2)), Vec::<String>::new());
    }
}
