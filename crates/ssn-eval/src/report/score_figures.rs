//! Figures of what `ssn evaluate` found over all cases: GED² against the number of samples, and reliability.

use super::output::{Drawn, Report};
use crate::evaluation::{Evaluation, Figure};
use crate::figures::{GedMean, GedSeries, ged_samples_figure, reliability_figure};
use crate::predictions::Kind;

/// Shows the figures of evaluations, each with the name of its predictions; nothing for those that were not scored.
pub(super) fn show(report: &mut Report, evaluations: &[(&str, Option<&Evaluation>)]) {
    let scored: Vec<(&str, &Evaluation)> =
        evaluations.iter().filter_map(|(name, evaluation)| Some((*name, (*evaluation)?))).collect();
    let calibrated: Vec<Drawn> = scored
        .iter()
        .filter_map(|(name, evaluation)| reliability(name, evaluation, scored.len() > 1))
        .collect();
    let drawn: Vec<Drawn> = ged_samples(&scored).into_iter().chain(calibrated).collect();
    if !drawn.is_empty() {
        report.page.folded("Number of samples, and calibration");
        report.show(drawn);
    }
}

const GED: &str = "ged2_";

/// GED² against the number of samples; nothing where it was measured at one number only.
fn ged_samples(scored: &[(&str, &Evaluation)]) -> Option<Drawn> {
    let series: Vec<GedSeries> = scored.iter().map(|(name, evaluation)| series(name, evaluation)).collect();
    let counts = series.iter().flat_map(|one| &one.means).map(|mean| mean.samples);
    let (least, most) = (counts.clone().min()?, counts.max()?);
    if least == most {
        return None;
    }
    let perfect = perfect(scored).map_or(vec![], |perfect| perfect.curve(least, most));
    let svg = ged_samples_figure("GED² against the number of samples", &series, &perfect);
    let cases = scored.iter().map(|(_, evaluation)| evaluation.cases).max().unwrap_or(0);
    let mut caption = format!(
        "Mean over {cases} cases of GED² by the first samples of each, with bands of one standard error over cases. The dot at the right \
         is the limit of infinitely many samples: GED² without its part that the number of samples is to blame for, the mean distance \
         of two samples over their number."
    );
    if scored.iter().any(|(_, evaluation)| is_prediction(evaluation)) {
        caption += " A flat line is a prediction without samples.";
    }
    if !perfect.is_empty() {
        let excess: Vec<String> =
            scored.iter().filter_map(|(name, evaluation)| excess(name, evaluation)).collect();
        caption += &format!(
            " Dotted: what samples that are drawn as raters mark are expected to have with as many raters; GED² above it is the excess \
             GED²: {}.",
            excess.join(", ")
        );
    }
    Some(Drawn { name: "ged-samples".to_owned(), svg, caption })
}

/// Whether the only sample is the prediction.
fn is_prediction(evaluation: &Evaluation) -> bool {
    let settings = &evaluation.settings;
    settings.kind == Kind::Deterministic && !settings.scores.categorical
}

fn excess(name: &str, evaluation: &Evaluation) -> Option<String> {
    let figure = evaluation.figure("excess_ged2")?;
    let error = figure.standard_error.map_or(String::new(), |error| format!(" ± {error:.3}"));
    Some(format!("{name} {:.3}{error}", figure.mean?))
}

/// The figures of GED², ascending by the number of samples.
fn ged_figures(evaluation: &Evaluation) -> Vec<(usize, &Figure)> {
    let of_count = |figure| -> Option<(usize, &Figure)> {
        let figure: &Figure = figure;
        Some((figure.key.strip_prefix(GED)?.parse().ok()?, figure))
    };
    let mut figures: Vec<(usize, &Figure)> = evaluation.figures.iter().filter_map(of_count).collect();
    figures.sort_by_key(|(samples, _)| *samples);
    figures
}

fn series(name: &str, evaluation: &Evaluation) -> GedSeries {
    let means: Vec<GedMean> = ged_figures(evaluation)
        .into_iter()
        .filter_map(|(samples, figure)| {
            Some(GedMean { samples, mean: figure.mean?, standard_error: figure.standard_error })
        })
        .collect();
    let diversity = evaluation.figure("sample_diversity").and_then(|figure| figure.mean);
    // With self-pairs, GED² of m samples is expected to be D/m above the limit, where D = diversity · m/(m − 1) is the mean
    // distance of two different samples.
    let last = means.last().filter(|last| last.samples > 1).zip(diversity);
    let limit = last.map(|(last, diversity)| last.mean - diversity / (last.samples as f64 - 1.0));
    GedSeries { name: name.to_owned(), means, limit }
}

/// The GED² that is expected of a distribution whose samples are as raters are, D/m + E with m samples: D is the mean distance
/// of two different raters, and E its part that the number of raters is to blame for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Perfect {
    distance: f64,
    of_raters: f64,
}

impl Perfect {
    /// Out of the means over cases. The excess at M samples is GED² − D/M − E, and the diversity of raters with self-pairs
    /// is D − E, so that D follows however many raters each case has. A prediction without samples is one of M = ∞.
    fn of(evaluation: &Evaluation) -> Option<Self> {
        let (samples, ged) = ged_figures(evaluation).pop()?;
        let excess = evaluation.figure("excess_ged2").filter(|excess| excess.values == ged.values)?;
        let raters = evaluation.figure("rater_diversity")?.mean?;
        let inverse = if samples > 1 { 1.0 / samples as f64 } else { 0.0 };
        let distance = (ged.mean? - excess.mean? + raters) / (1.0 + inverse);
        Some(Self { distance, of_raters: distance - raters })
    }

    /// Points from one number of samples to another, close enough for a curve on a logarithmic axis.
    fn curve(&self, least: usize, most: usize) -> Vec<(usize, f64)> {
        let mut counts = vec![];
        let mut count = least.max(1);
        while count < most {
            counts.push(count);
            count += (count / 8).max(1);
        }
        counts.push(most);
        counts.into_iter().map(|count| (count, self.distance / count as f64 + self.of_raters)).collect()
    }
}

/// That of all evaluations, if they are of the same raters.
fn perfect(scored: &[(&str, &Evaluation)]) -> Option<Perfect> {
    let all: Vec<Perfect> =
        scored.iter().map(|(_, evaluation)| Perfect::of(evaluation)).collect::<Option<_>>()?;
    let first = *all.first()?;
    all.iter().all(|one| (one.distance - first.distance).abs() < 1e-9).then_some(first)
}

/// The reliability diagrams of one folder; nothing where the evaluation kept no bins.
fn reliability(name: &str, evaluation: &Evaluation, several: bool) -> Option<Drawn> {
    let reliability = evaluation.reliability.as_ref()?;
    let foreground = reliability.foreground();
    let panels = [("most probable label", &reliability.top_label[..]), ("foreground", &foreground[..])];
    let title = if several { format!("Reliability, {name}") } else { "Reliability".to_owned() };
    let svg = reliability_figure(&title, &panels);
    let observations: u64 = reliability.top_label.iter().map(|bin| bin.count).sum();
    let in_table = |key: &str| evaluation.figure(key).and_then(|figure| figure.mean);
    let means = match in_table("ece").zip(in_table("foreground_ece")) {
        Some((ece, foreground)) => {
            format!(
                " The means over cases of the ECE of each, as in the table, are {ece:.4} and {foreground:.4}."
            )
        }
        None => String::new(),
    };
    let probabilities = match evaluation.settings.kind {
        Kind::Stochastic => format!("the mean of {} samples", evaluation.settings.scores.samples),
        Kind::Deterministic => "those of the network".to_owned(),
        Kind::Sampled => "those of the files, or shares of their samples".to_owned(),
    };
    let caption = format!(
        "Marginal probabilities ({probabilities}) in {} bins: how often raters chose the label, and the gap to the mean probability of \
         the bin. Left, the most probable label of each voxel; right, the probability of each foreground class. An observation is a \
         voxel and a rater; left, there are {observations} of {} cases. ECE is the mean gap over the observations of all cases together.{means}",
        reliability.top_label.len(),
        evaluation.cases,
    );
    let name = if several { format!("{name}-reliability") } else { "reliability".to_owned() };
    Some(Drawn { name, svg, caption })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::{Scored, Settings};
    use crate::predictions::ModelId;
    use crate::scores::{CaseMaps, ScoreConfig, score_maps};
    use ssn_core::LabelMap;

    /// An evaluation of cases of one line of voxels each: samples and raters mark so many of them from the left.
    fn evaluation(cases: &[(&[usize], &[usize])]) -> Evaluation {
        let map =
            |marked: &usize| LabelMap::new((0..16).map(|i| u8::from(i < *marked)).collect(), 2).unwrap();
        let config = ScoreConfig { ged_counts: vec![1, 2], surfaces: false, ..ScoreConfig::default() };
        let classes = ["background", "lesion"].map(str::to_owned);
        let scored: Vec<Scored> = cases
            .iter()
            .enumerate()
            .map(|(number, (samples, raters))| {
                let samples: Vec<LabelMap> = samples.iter().map(map).collect();
                let raters: Vec<LabelMap> = raters.iter().map(map).collect();
                let maps = CaseMaps {
                    case: "a",
                    classes: &classes,
                    size: [1, 1, 16],
                    spacing: None,
                    prediction: None,
                    samples: &samples,
                    probabilities: None,
                };
                let scores = score_maps(&maps, &raters, &config).unwrap();
                Scored { id: number.to_string(), rater_names: vec![], scores }
            })
            .collect();
        let settings = Settings {
            model: ModelId { sha256: String::new(), name: "net".to_owned() },
            kind: Kind::Sampled,
            dataset: String::new(),
            split: "test".to_owned(),
            scores: config,
            bootstrap: false,
            labels_only: false,
        };
        Evaluation::new(settings, &scored, vec![]).unwrap()
    }

    #[test]
    fn the_limit_and_the_perfect_curve_follow_from_means() {
        // Distances of 8 and 4 marked voxels: 1 − 4/8. Cases differ in their raters.
        let one = evaluation(&[(&[8, 4, 8, 4], &[8, 4]), (&[8, 8, 4, 4], &[4, 8, 8])]);
        let series = series("net", &one);
        let counts: Vec<usize> = series.means.iter().map(|mean| mean.samples).collect();
        assert_eq!(counts, [1, 2, 4]);
        // Two of four samples differ from each: D = 0.5 · 2/3, and GED² without self-pairs of samples is D/4 less.
        let ged = series.means[2].mean;
        let limit = ged - 0.5 * 2.0 / 3.0 / 4.0;
        assert!((series.limit.unwrap() - limit).abs() < 1e-12);
        // By hand: D of two raters 0.5, of three 0.5 · 2/3; expected with m samples, D (1/m + 1/n).
        let perfect = Perfect::of(&one).unwrap();
        let expected = |m: f64| (0.5 * (1.0 / m + 0.5) + 1.0 / 3.0 * (1.0 / m + 1.0 / 3.0)) / 2.0;
        for (count, ged) in perfect.curve(1, 100) {
            assert!((ged - expected(count as f64)).abs() < 1e-12, "{count}");
        }
        let drawn = ged_samples(&[("net", &one)]).unwrap();
        assert!(drawn.caption.contains("Mean over 2 cases") && drawn.caption.contains("excess GED²: net "));
        assert!(drawn.svg.contains("perfect, expected"));
    }

    #[test]
    fn one_number_of_samples_and_single_raters_have_no_curve() {
        assert!(ged_samples(&[]).is_none());
        assert!(ged_samples(&[("net", &evaluation(&[(&[8], &[8, 4])]))]).is_none());
        let single = evaluation(&[(&[8, 4], &[8])]);
        assert_eq!(Perfect::of(&single), None);
        assert!(!ged_samples(&[("net", &single)]).unwrap().svg.contains("perfect"));
    }

    #[test]
    fn bins_of_all_cases_are_added_and_older_summaries_are_read() {
        let one = evaluation(&[(&[8, 4], &[8, 4]), (&[16], &[16])]);
        let bins = one.reliability.clone().unwrap();
        // 16 voxels of two raters, and 16 of one; half of the samples mark four voxels of the first case, as half of the raters.
        assert_eq!(bins.top_label.iter().map(|bin| bin.count).sum::<u64>(), 48);
        assert_eq!((bins.ece(), bins.foreground_ece()), (Some(0.0), Some(0.0)));
        let last = bins.foreground()[14];
        assert_eq!((last.count, last.events, last.confidence), (4 * 2 + 16, 4 * 2 + 16, 24.0));
        let drawn = reliability("net", &one, false).unwrap();
        assert!(drawn.caption.contains("there are 48 of 2 cases") && drawn.svg.contains(">ECE 0.0000<"));

        let mut older = serde_json::to_value(&one).unwrap();
        assert!(older.as_object_mut().unwrap().remove("reliability").is_some());
        let older: Evaluation = serde_json::from_value(older).unwrap();
        assert!(reliability("net", &older, false).is_none());
    }
}
