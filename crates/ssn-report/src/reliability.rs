//! Reliability diagrams: how often raters agree with a probability, bin by bin.

use ssn_core::metrics::{CalibrationBin, ece_of_bins};

use crate::figures::chart::{Axis, Bar, COLUMN, Chart, Entry, Frame, Key, Mark, Panel, Style, TEXT, Ticks};
use crate::figures::scale::{Scale, superscript, tick_label};
use crate::figures::svg::{Anchor, FAINT, INK, PAPER, PREDICTION, SAMPLE};
use crate::output::Drawn;
use ssn_eval::evaluation::Evaluation;
use ssn_eval::predictions::PredictionKind;
use ssn_eval::registry::{ECE, FOREGROUND_ECE};

/// The reliability diagrams of one folder; nothing where the evaluation kept no bins.
pub(crate) fn reliability(name: &str, evaluation: &Evaluation, several: bool) -> Option<Drawn> {
    let reliability = evaluation.reliability.as_ref()?;
    let foreground = reliability.foreground();
    let panels = [("most probable label", &reliability.top_label[..]), ("foreground", &foreground[..])];
    let title = if several { format!("Reliability, {name}") } else { "Reliability".to_owned() };
    let svg = draw(&title, &panels);
    let observations: u64 = reliability.top_label.iter().map(|bin| bin.count).sum();
    let in_table = |key: &str| evaluation.last(key).and_then(|figure| figure.mean);
    let means = match in_table(ECE).zip(in_table(FOREGROUND_ECE)) {
        Some((ece, foreground)) => {
            format!(
                " The means over cases of the ECE of each, as in the table, are {ece:.4} and {foreground:.4}."
            )
        }
        None => String::new(),
    };
    let probabilities = match evaluation.settings.kind {
        PredictionKind::Stochastic => format!("the mean of {} samples", evaluation.settings.scores.samples),
        PredictionKind::Deterministic => "those of the network".to_owned(),
        PredictionKind::Sampled => "those of the files, or shares of their samples".to_owned(),
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

const LEFT: f64 = 48.0;
const GAP: f64 = 54.0;
const RIGHT: f64 = 14.0;
/// Above the diagrams, for the name of the panel and of its axis.
const ABOVE: f64 = 46.0;
/// Between the diagram and the counts below it.
const BETWEEN: f64 = 46.0;
const COUNTS: f64 = 56.0;
const BELOW: f64 = 46.0;
const BAR: f64 = 0.35;

/// Draws diagrams side by side, with the number of observations of each bin below. Each says whose probabilities it is of, and has
/// bins of equal width from 0 to 1.
fn draw(title: &str, diagrams: &[(&str, &[CalibrationBin])]) -> String {
    let columns = diagrams.len().max(1) as f64;
    let side = (COLUMN - LEFT - RIGHT - GAP) / 2.0;
    let width = LEFT + RIGHT + columns * side + (columns - 1.0) * GAP;
    let panels = |(place, (name, bins)): (usize, &(&str, &[CalibrationBin]))| {
        let left = LEFT + place as f64 * (side + GAP);
        let diagram = Frame { left, top: ABOVE, width: side, height: side };
        let below = Frame { left, top: ABOVE + side + BETWEEN, width: side, height: COUNTS };
        [diagram_panel(diagram, name, bins), count_panel(below, bins)]
    };
    let chart = Chart {
        title: title.to_owned(),
        description: "Frequency of a label among raters against its probability, in bins, and the observations of each bin."
            .to_owned(),
        legend: vec![
            Entry::new("frequency", SAMPLE.towards(PAPER, BAR), Key::Area),
            Entry::new("gap to confidence", PREDICTION, Key::Area),
            Entry::new("calibrated", INK, Key::Line(Style::Dashed)),
        ],
        panels: diagrams.iter().enumerate().flat_map(panels).collect(),
        size: (width.max(COLUMN / 2.0), ABOVE + side + BETWEEN + COUNTS + BELOW),
        note: String::new(),
    };
    chart.svg()
}

/// The numbers below both panels.
fn thirds() -> Ticks {
    Ticks::At([(0.0, "0"), (0.5, "0.5"), (1.0, "1")].map(|(at, label)| (at, label.to_owned())).to_vec())
}

fn diagram_panel(frame: Frame, name: &str, bins: &[CalibrationBin]) -> Panel {
    let step = 1.0 / bins.len().max(1) as f64;
    let (mut frequencies, mut gaps) = (vec![], vec![]);
    for (place, bin) in bins.iter().enumerate() {
        let Some((confidence, frequency)) = bin.mean_confidence().zip(bin.frequency()) else { continue };
        let x = [place as f64 * step, (place + 1) as f64 * step];
        let [frequency_at, confidence_at] = [frequency, confidence].map(|value| value.clamp(0.0, 1.0));
        frequencies.push(Bar { x, y: [0.0, frequency_at], tip: String::new() });
        let observations = tick_label(bin.count as f64);
        let tip =
            format!("confidence {confidence:.3}, frequency {frequency:.3}, {observations} observations");
        gaps.push(Bar { x, y: [frequency_at, confidence_at], tip });
    }
    let mut marks = vec![
        Mark::Bars { bars: frequencies, color: SAMPLE.towards(PAPER, BAR), opacity: 1.0 },
        Mark::Bars { bars: gaps, color: PREDICTION, opacity: 0.75 },
        Mark::Line { points: vec![(0.0, 0.0), (1.0, 1.0)], color: INK, style: Style::Dashed },
    ];
    if let Some(ece) = ece_of_bins(bins) {
        let at = (0.05, 1.0 - 1.3 * TEXT / frame.height);
        marks.push(Mark::Text { at, anchor: Anchor::Start, color: INK, text: format!("ECE {ece:.4}") });
    }
    let y = Axis {
        name: "frequency among raters".to_owned(),
        ticks: Ticks::Round,
        guides: true,
        ..Axis::default()
    };
    let x = Axis { ticks: thirds(), ..Axis::default() };
    Panel { frame, heading: name.to_owned(), x, y, marks, ..Panel::default() }
}

/// The observations of each bin, logarithmic: most voxels are background of which a network is sure.
fn count_panel(frame: Frame, bins: &[CalibrationBin]) -> Panel {
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(1).max(10) as f64;
    let step = 1.0 / bins.len().max(1) as f64;
    // A single observation is seen as well.
    let least = 0.9;
    let bar = |(place, bin): (usize, &CalibrationBin)| Bar {
        x: [place as f64 * step, (place + 1) as f64 * step],
        y: [least, bin.count as f64],
        tip: format!("{} observations", tick_label(bin.count as f64)),
    };
    let bars = bins.iter().enumerate().filter(|(_, bin)| bin.count > 0).map(bar).collect();
    let top = 10f64.powf(most.log10().floor());
    let y = Axis {
        scale: Scale::of([least, most].into_iter(), true),
        name: "observations".to_owned(),
        ticks: Ticks::At([1.0, top].map(|value| (value, power(value))).to_vec()),
        ..Axis::default()
    };
    let x = Axis { name: "confidence".to_owned(), ticks: thirds(), ..Axis::default() };
    Panel { frame, x, y, marks: vec![Mark::Bars { bars, color: FAINT, opacity: 1.0 }], ..Panel::default() }
}

/// Writes a power of ten with few letters.
fn power(value: f64) -> String {
    if value < 1e3 { tick_label(value) } else { format!("10{}", superscript(value.log10().round() as i32)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::png_from_svg;
    use crate::ged_samples::tests::evaluation;

    #[test]
    fn bins_with_observations_have_a_bar_a_gap_and_a_count() {
        let bin = |count, events, confidence| CalibrationBin { count, events, confidence };
        let bins = [bin(100, 10, 5.0), bin(0, 0, 0.0), bin(4, 1, 2.0), bin(1_000_000, 980_000, 990_000.0)];
        let name = "most probable label";
        let svg = draw("Reliability", &[(name, &bins[..]), (name, &bins[..0])]);
        assert_eq!(svg.matches("fill-opacity=\"0.75\"").count(), 3);
        assert_eq!(svg.matches(" observations</title>").count(), 2 * 3);
        // (5 + 1 + 10,000) / 1,000,104.
        assert!(svg.contains(">ECE 0.0100<") && svg.contains(">10⁶<"), "{svg}");
        assert!(svg.contains("<title>confidence 0.050, frequency 0.100, 100 observations</title>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        insta::assert_snapshot!(svg);
        png_from_svg(&svg, 1.0).unwrap();
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
