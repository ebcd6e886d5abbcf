//! GED² against the number of samples, of several networks: out of their evaluations, and as a figure.

use ssn_data::text::counted;

use crate::figures::chart::{
    Axis, COLUMN, Chart, Entry, Frame, HEIGHT, Key, Mark, Panel, Spot, Style, Ticks,
};
use crate::figures::scale::Scale;
use crate::figures::svg::{Color, FAINT, distinct};
use crate::output::Drawn;
use ssn_eval::evaluation::{Evaluation, ScoreMean};
use ssn_eval::predictions::PredictionKind;
use ssn_eval::registry::{EXCESS_GED2, GED2, RATER_DIVERSITY, SAMPLE_DIVERSITY, ScoreKey};

/// GED² against the number of samples; nothing where it was measured at one number only.
pub(crate) fn ged_samples(scored: &[(&str, &Evaluation)]) -> Option<Drawn> {
    let series: Vec<Series<'_>> = scored.iter().map(|(name, evaluation)| series(name, evaluation)).collect();
    let counts = series.iter().flat_map(|one| &one.means).map(|mean| mean.samples);
    let (least, most) = (counts.clone().min()?, counts.max()?);
    if least == most {
        return None;
    }
    let perfect = perfect(scored).map_or(vec![], |perfect| perfect.curve(least, most));
    let svg = draw("GED² against the number of samples", &series, &perfect);
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
    settings.kind == PredictionKind::Deterministic && !settings.scores.categorical
}

fn excess(name: &str, evaluation: &Evaluation) -> Option<String> {
    let figure = evaluation.last(EXCESS_GED2)?;
    let error = figure.standard_error.map_or(String::new(), |error| format!(" ± {error:.3}"));
    Some(format!("{name} {:.3}{error}", figure.mean?))
}

/// The figures of GED², ascending by the number of samples.
fn ged_figures(evaluation: &Evaluation) -> Vec<(usize, &ScoreMean)> {
    let of_count = |figure| -> Option<(usize, &ScoreMean)> {
        let figure: &ScoreMean = figure;
        let key = ScoreKey::parse(&figure.key).filter(|key| key.score.key == GED2)?;
        Some((key.samples?, figure))
    };
    let mut figures: Vec<(usize, &ScoreMean)> = evaluation.figures.iter().filter_map(of_count).collect();
    figures.sort_by_key(|(samples, _)| *samples);
    figures
}

/// The GED² of one network.
struct Series<'a> {
    name: &'a str,
    /// By the number of samples, ascending. A single one of one sample is that of a prediction without samples.
    means: Vec<Mean>,
    /// What it comes to with more and more samples.
    limit: Option<f64>,
}

/// GED² of so many samples.
struct Mean {
    samples: usize,
    mean: f64,
    /// None for a single case.
    standard_error: Option<f64>,
}

fn series<'a>(name: &'a str, evaluation: &Evaluation) -> Series<'a> {
    let means: Vec<Mean> = ged_figures(evaluation)
        .into_iter()
        .filter_map(|(samples, figure)| {
            Some(Mean { samples, mean: figure.mean?, standard_error: figure.standard_error })
        })
        .collect();
    let diversity = evaluation.last(SAMPLE_DIVERSITY).and_then(|figure| figure.mean);
    // With self-pairs, GED² of m samples is expected to be D/m above the limit, where D = diversity · m/(m − 1) is the mean
    // distance of two different samples.
    let last = means.last().filter(|last| last.samples > 1).zip(diversity);
    let limit = last.map(|(last, diversity)| last.mean - diversity / (last.samples as f64 - 1.0));
    Series { name, means, limit }
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
        let excess = evaluation.last(EXCESS_GED2).filter(|excess| excess.values == ged.values)?;
        let raters = evaluation.last(RATER_DIVERSITY)?.mean?;
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

const BELOW: f64 = 46.0;
/// Right of the axes, for the limits.
const RIGHT: f64 = 58.0;
/// Where the limits stand, from the end of the axes.
const LIMIT: f64 = 30.0;
/// The name of the expectation of a perfect distribution in the legend.
const PERFECT: &str = "perfect, expected";

/// Draws a curve with a band of one standard error for each network, a flat line for one without samples, the limit of each at the
/// right, and `perfect`, `(samples, GED²)`, what a distribution is expected to have whose samples are as raters are.
fn draw(title: &str, series: &[Series<'_>], perfect: &[(usize, f64)]) -> String {
    let mut legend = Entry::lines(series.iter().map(|one| one.name));
    if !perfect.is_empty() {
        legend.push(Entry::new(PERFECT, FAINT, Key::Line(Style::Dotted)));
    }
    let mut counts: Vec<usize> = series.iter().flat_map(|one| &one.means).map(|mean| mean.samples).collect();
    counts.sort_unstable();
    counts.dedup();
    let ends = |mean: &Mean| {
        let error = mean.standard_error.unwrap_or(0.0);
        [mean.mean - error, mean.mean + error]
    };
    let heights = series.iter().flat_map(|one| one.means.iter().flat_map(ends).chain(one.limit));
    let heights = heights.chain(perfect.iter().map(|point| point.1)).chain([0.0]);
    let frame = Frame::of_column(RIGHT, BELOW);
    let x = Scale::of(counts.iter().map(|count| *count as f64), true).padded(0.02);
    let limit = x.value_at(1.0 + LIMIT / frame.width);
    let mut ticks: Vec<(f64, String)> =
        counts.iter().map(|count| (*count as f64, count.to_string())).collect();
    if series.iter().any(|one| one.limit.is_some()) {
        ticks.push((limit, "limit".to_owned()));
    }
    let points = perfect.iter().map(|&(count, ged)| (count as f64, ged)).collect();
    let mut marks = vec![Mark::Line { points, color: FAINT, style: Style::Dotted }];
    for (place, one) in series.iter().enumerate() {
        marks.extend(series_marks(one, distinct(place), [x.value_at(0.0), x.value_at(1.0)], limit));
    }
    let networks: Vec<&str> = series.iter().map(|one| one.name).collect();
    let name = "samples of each case (logarithmic)".to_owned();
    let x = Axis { scale: x, name, ticks: Ticks::At(ticks), ..Axis::default() };
    let y = Axis {
        scale: Scale::of(heights, false),
        name: "GED² (lower is better)".to_owned(),
        ticks: Ticks::Round,
        guides: true,
        right: false,
    };
    let chart = Chart {
        title: title.to_owned(),
        description: format!("GED² against the number of samples, of {}.", networks.join(", ")),
        legend,
        panels: vec![Panel { frame, x, y, marks, ..Panel::default() }],
        size: (COLUMN, HEIGHT),
        note: String::new(),
    };
    chart.svg()
}

fn series_marks(series: &Series<'_>, color: Color, [start, end]: [f64; 2], limit_at: f64) -> Vec<Mark> {
    let spot = |mean: &Mean| {
        let error = mean.standard_error.map_or(String::new(), |error| format!(" ± {error:.4}"));
        let tip = format!("{}, {}: {:.4}{error}", series.name, counted(mean.samples, "sample"), mean.mean);
        Spot { at: (mean.samples as f64, mean.mean), tip }
    };
    let dots = |points: Vec<Spot>, radius| Mark::Dots { points, radius, color };
    if let [only] = series.means.as_slice()
        && only.samples == 1
    {
        // A prediction without samples is the same however many others have.
        let line = Mark::Segment { from: (start, only.mean), to: (end, only.mean), color, width: 1.4 };
        return vec![line, dots(vec![spot(only)], 3.0)];
    }
    let band: Vec<(f64, f64, f64)> = series
        .means
        .iter()
        .filter_map(|mean| mean.standard_error.map(|error| (mean, error)))
        .map(|(mean, error)| (mean.samples as f64, mean.mean - error, mean.mean + error))
        .collect();
    let mut marks = vec![];
    if band.len() > 1 {
        marks.push(Mark::Band { edges: band, color });
    }
    let spots: Vec<Spot> = series.means.iter().map(spot).collect();
    let points: Vec<(f64, f64)> = spots.iter().map(|spot| spot.at).collect();
    let last = points.last().copied();
    marks.push(Mark::Line { points, color, style: Style::Solid });
    marks.push(dots(spots, 3.0));
    if let Some((limit, last)) = series.limit.zip(last) {
        let at = (limit_at, limit);
        marks.push(Mark::Line { points: vec![last, at], color, style: Style::Dotted });
        let tip = format!("{}, limit of infinitely many samples: {limit:.4}", series.name);
        marks.push(dots(vec![Spot { at, tip }], 4.0));
    }
    marks
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::figures::png_from_svg;
    use ssn_core::LabelMap;
    use ssn_eval::evaluation::{EvaluationSettings, Scored};
    use ssn_eval::predictions::ModelId;
    use ssn_eval::scores::{CaseMaps, ScoreConfig, score_maps};

    /// An evaluation of cases of one line of voxels each: samples and raters mark so many of them from the left.
    pub(crate) fn evaluation(cases: &[(&[usize], &[usize])]) -> Evaluation {
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
        let settings = EvaluationSettings {
            model: ModelId { sha256: String::new(), name: "net".to_owned() },
            kind: PredictionKind::Sampled,
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

    fn mean(samples: usize, mean: f64) -> Mean {
        Mean { samples, mean, standard_error: Some(0.02) }
    }

    #[test]
    fn every_network_has_its_curve_its_band_and_its_limit() {
        let means = vec![mean(1, 0.6), mean(10, 0.3), mean(100, 0.25)];
        let series = [
            Series { name: "low-rank", means, limit: Some(0.24) },
            Series { name: "deterministic", means: vec![mean(1, 0.5)], limit: None },
        ];
        let svg = draw("GED²", &series, &[(1, 0.4), (100, 0.1)]);
        assert_eq!((svg.matches("<polygon").count(), svg.matches("<polyline").count()), (1, 1 + 1 + 1));
        assert_eq!(svg.matches("<circle").count(), 3 + 1 + 1);
        assert!(svg.contains(">limit<") && svg.contains(">100<") && svg.contains(&format!(">{PERFECT}<")));
        assert!(svg.contains("<title>low-rank, 10 samples: 0.3000 ± 0.0200</title>"));
        insta::assert_snapshot!(svg);
        png_from_svg(&svg, 1.0).unwrap();
        let svg = draw("GED²", &[], &[]);
        assert!(!svg.contains("NaN") && !svg.contains(">limit<"));
    }
}
