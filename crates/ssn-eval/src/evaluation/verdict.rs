//! What the scores of an evaluation mean, in words, and what to try next.

use crate::evaluation::Scored;
use crate::predictions::Kind;
use crate::registry::{EMPTY_SAMPLES, FOREGROUND_ECE};

/// Samples that differ from each other more or less than raters do by more than this factor are told of.
const FACTOR: f64 = 1.25;
/// The share of nearly empty samples from which on it is a problem.
const EMPTY: f64 = 0.1;
/// The calibration error of the foreground from which on it is a problem.
const CALIBRATION: f64 = 0.1;

/// Sentences about the diversity of samples, empty samples, GED² and calibration.
pub fn verdict(kind: Kind, cases: &[Scored]) -> Vec<String> {
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

fn diversity(kind: Kind, cases: &[Scored]) -> String {
    let samples = mean(cases, |case| case.scores.sample_distance());
    let raters = mean(cases, |case| case.scores.rater_distance());
    let (samples, raters) = match (samples, raters) {
        (None, _) if kind == Kind::Deterministic => {
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

fn empty(kind: Kind, cases: &[Scored]) -> Option<String> {
    if kind == Kind::Deterministic {
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
