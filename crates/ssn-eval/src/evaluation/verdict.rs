//! What the scores of an evaluation mean, in words, and what to try next.

use crate::evaluation::Scored;
use crate::predictions::PredictionKind;
use crate::registry::{EMPTY_SAMPLES, FOREGROUND_ECE};

/// Samples that differ from each other more or less than raters do by more than this factor are told of.
const FACTOR: f64 = 1.25;
/// The share of nearly empty samples from which on it is a problem.
const EMPTY: f64 = 0.1;
/// The calibration error of the foreground from which on it is a problem.
const CALIBRATION: f64 = 0.1;

/// Sentences about the diversity of samples, empty samples, GED² and calibration.
pub fn verdict(kind: PredictionKind, cases: &[Scored]) -> Vec<String> {
    let mut lines = vec![diversity(kind, cases)];
    lines.extend(distance(cases));
    lines.extend(empty(kind, cases));
    lines.extend(calibration(cases));
    lines
}

/// The mean over the cases that have a value.
fn mean(cases: &[Scored], value: impl Fn(&Scored) -> Option<f64>) -> Option<f64> {
    crate::means::mean(cases.iter().filter_map(value))
}

fn diversity(kind: PredictionKind, cases: &[Scored]) -> String {
    let samples = mean(cases, |case| case.scores.sample_distance());
    let raters = mean(cases, |case| case.scores.rater_distance());
    let (samples, raters) = match (samples, raters) {
        (None, _) if kind == PredictionKind::Deterministic => {
            return "The network is deterministic: its one segmentation says nothing about what raters disagree on."
                .to_owned();
        }
        (None, _) => return "With one sample, nothing can be said about how much samples differ.".to_owned(),
        (Some(samples), None) => {
            return format!(
                "Samples differ from each other by {samples:.2} (mean of 1 − IoU); with one rater per case, nothing \
                 says how much they should."
            );
        }
        (Some(samples), Some(raters)) => (samples, raters),
    };
    let both = format!("{samples:.2} against {raters:.2}, means of 1 − IoU");
    if samples > FACTOR * raters {
        format!(
            "Samples differ more from each other than raters do ({both}). Try more steps, or the energy loss \
             (loss.kind = \"energy\", loss.similarity = \"dice\"); `--temperature` below 1 makes samples alike."
        )
    } else if FACTOR * samples < raters {
        format!(
            "Samples differ less from each other than raters do ({both}): a part of the raters' disagreement is \
             missed. Try more steps, or the energy loss with all raters in every step."
        )
    } else {
        format!("Samples differ from each other about as much as raters do ({both}).")
    }
}

fn distance(cases: &[Scored]) -> Option<String> {
    let ged = mean(cases, |case| case.scores.ged_squared())?;
    let excess = mean(cases, |case| case.scores.excess_ged_squared())?;
    Some(format!(
        "GED² is {ged:.3}; samples of the raters' own distribution would have {:.3} with as many raters and samples.",
        ged - excess
    ))
}

fn empty(kind: PredictionKind, cases: &[Scored]) -> Option<String> {
    if kind == PredictionKind::Deterministic {
        return None;
    }
    let share = mean(cases, |case| case.scores.value(EMPTY_SAMPLES))?;
    let advice = if share > EMPTY {
        ": the network doubts that there is anything. Try more steps, or patches around the foreground \
         (foreground_probability)"
    } else {
        ""
    };
    Some(format!(
        "{:.1} % of samples are nearly empty where every rater marked something{advice}.",
        100.0 * share
    ))
}

fn calibration(cases: &[Scored]) -> Option<String> {
    let error = mean(cases, |case| case.scores.value(FOREGROUND_ECE))?;
    let judged = if error > CALIBRATION { "badly" } else { "well" };
    Some(format!(
        "Probabilities are {judged} calibrated: where the network or a rater sees foreground, they are off by {error:.3} \
         (ECE of the foreground)."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case_scores::{CaseScores, ScoreValues};
    use crate::registry::{EXCESS_GED2, GED2, RATER_DIVERSITY, SAMPLE_DIVERSITY};
    use ssn_args::GedDistance;

    /// Returns a case with some samples and raters, whose means over all pairs are such that different ones have these distances.
    fn case(samples: (usize, f64), raters: (usize, f64), others: &[(&str, f64)]) -> Scored {
        let over_all_pairs = |(count, distance): (usize, f64)| distance * (count - 1) as f64 / count as f64;
        let value =
            |key: &str, x: f64| ScoreValues { key: key.to_owned(), each: vec![Some(x)], one_empty: 0 };
        let mut values = vec![
            value(SAMPLE_DIVERSITY, over_all_pairs(samples)),
            value(RATER_DIVERSITY, over_all_pairs(raters)),
        ];
        values.extend(others.iter().map(|(key, x)| value(key, *x)));
        let scores = CaseScores {
            samples: samples.0,
            raters: raters.0,
            distance: GedDistance::Iou,
            in_voxels: false,
            masks: vec![],
            values,
            reliability: None,
        };
        Scored { id: "a".to_owned(), rater_names: vec![], scores }
    }

    fn first_line(kind: PredictionKind, cases: &[Scored]) -> String {
        verdict(kind, cases).remove(0)
    }

    #[test]
    fn the_diversity_of_samples_is_compared_with_that_of_raters() {
        let of = |distance| first_line(PredictionKind::Stochastic, &[case((4, distance), (3, 0.4), &[])]);
        assert!(
            of(0.51).starts_with("Samples differ more from each other than raters do (0.51 against 0.40")
        );
        assert!(of(0.49).starts_with("Samples differ from each other about as much as raters do (0.49"));
        assert!(of(0.33).starts_with("Samples differ from each other about as much"));
        assert!(
            of(0.31).starts_with("Samples differ less from each other than raters do (0.31 against 0.40")
        );
        // Means over cases, not over pairs of cases.
        let cases = [case((4, 0.9), (3, 0.4), &[]), case((4, 0.1), (3, 0.6), &[])];
        assert!(first_line(PredictionKind::Stochastic, &cases).contains("(0.50 against 0.50"));
    }

    #[test]
    fn one_sample_or_one_rater_says_nothing_about_diversity() {
        let one_sample = [case((1, 0.0), (3, 0.4), &[])];
        assert!(first_line(PredictionKind::Sampled, &one_sample).starts_with("With one sample, nothing"));
        assert!(
            first_line(PredictionKind::Deterministic, &one_sample)
                .starts_with("The network is deterministic")
        );
        let one_rater = [case((4, 0.2), (1, 0.0), &[])];
        assert!(
            first_line(PredictionKind::Stochastic, &one_rater)
                .contains("by 0.20 (mean of 1 − IoU); with one rater")
        );
    }

    #[test]
    fn many_empty_samples_and_bad_calibration_are_told() {
        let of = |kind, empty, ece| {
            let others = [(EMPTY_SAMPLES, empty), (FOREGROUND_ECE, ece)];
            verdict(kind, &[case((4, 0.4), (3, 0.4), &others)]).split_off(1)
        };
        let good = of(PredictionKind::Stochastic, 0.1, 0.1);
        assert_eq!(good[0], "10.0 % of samples are nearly empty where every rater marked something.");
        assert!(good[1].starts_with("Probabilities are well calibrated"), "{good:?}");
        let bad = of(PredictionKind::Stochastic, 0.11, 0.11);
        assert!(bad[0].contains("the network doubts that there is anything"), "{bad:?}");
        assert!(bad[1].starts_with("Probabilities are badly calibrated"), "{bad:?}");
        assert_eq!(
            of(PredictionKind::Deterministic, 0.11, 0.11),
            bad[1..],
            "one segmentation is no empty sample"
        );
    }

    #[test]
    fn ged_is_set_against_samples_of_the_raters() {
        let [few, all] = [1, 4].map(|samples| format!("{GED2}_{samples}"));
        let ged = [(few.as_str(), 0.9), (all.as_str(), 0.5), (EXCESS_GED2, 0.2)];
        let lines = verdict(PredictionKind::Stochastic, &[case((4, 0.4), (3, 0.4), &ged)]);
        assert!(
            lines[1].starts_with("GED² is 0.500; samples of the raters' own distribution would have 0.300")
        );
        // A single rater has no distribution.
        let alone = case((4, 0.4), (1, 0.0), &[(all.as_str(), 0.5)]);
        assert_eq!(verdict(PredictionKind::Stochastic, &[alone]).len(), 1);
    }
}
