//! Reliability diagrams: how often raters agree with a probability, bin by bin.

use ssn_core::metrics::{CalibrationBin, ece_of_bins};

use crate::figures::plot::{COLUMN, MARGIN, PlotArea, Scale, TEXT, TITLE, superscript, tick_label};
use crate::figures::svg::{Anchor, Drawing, FAINT, INK, PAPER, PREDICTION, SAMPLE};
use crate::output::Drawn;
use ssn_eval::evaluation::Evaluation;
use ssn_eval::predictions::Kind;
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

const LEFT: f64 = 46.0;
const GAP: f64 = 54.0;
const RIGHT: f64 = 14.0;
const HEAD: f64 = 62.0;
/// Between the name of a panel and its axes.
const ABOVE: f64 = 46.0;
/// Between the diagram and the counts below it.
const BETWEEN: f64 = 40.0;
const COUNTS: f64 = 56.0;
const BELOW: f64 = 46.0;
const BAR: f64 = 0.35;

/// Draws diagrams beside each other, with the number of observations of each bin below. Each says whose probabilities it is of, and
/// has bins of equal width from 0 to 1.
fn draw(title: &str, panels: &[(&str, &[CalibrationBin])]) -> String {
    let columns = panels.len().max(1) as f64;
    let side = (COLUMN - LEFT - RIGHT - GAP) / 2.0;
    let width = LEFT + RIGHT + columns * side + (columns - 1.0) * GAP;
    let mut drawing = Drawing::new(width.max(COLUMN / 2.0), HEAD + ABOVE + side + BETWEEN + COUNTS + BELOW);
    drawing.text(MARGIN, 24.0, TITLE, Anchor::Start, INK, title);
    legend(&mut drawing);
    for (place, (name, bins)) in panels.iter().enumerate() {
        let left = LEFT + place as f64 * (side + GAP);
        draw_panel(&mut drawing, left, side, name, bins);
    }
    let description = "Frequency of a label among raters against its probability, in bins, and the observations of each bin.";
    drawing.finish(title, description)
}

fn legend(drawing: &mut Drawing) {
    let y = 46.0;
    drawing.rectangle(MARGIN, y - 10.0, 12.0, 12.0, SAMPLE.towards(PAPER, BAR));
    drawing.text(MARGIN + 17.0, y, TEXT, Anchor::Start, INK, "frequency");
    drawing.rectangle(MARGIN + 96.0, y - 10.0, 12.0, 12.0, PREDICTION);
    drawing.text(MARGIN + 113.0, y, TEXT, Anchor::Start, INK, "gap to confidence");
    drawing.dashes((MARGIN + 240.0, y - 4.0), (MARGIN + 264.0, y - 4.0), 1.2, INK);
    drawing.text(MARGIN + 270.0, y, TEXT, Anchor::Start, INK, "calibrated");
}

fn draw_panel(drawing: &mut Drawing, left: f64, side: f64, name: &str, bins: &[CalibrationBin]) {
    let unit = Scale::between(0.0, 1.0);
    let area = PlotArea { left, top: HEAD + ABOVE, width: side, height: side, x: unit, y: unit };
    let ends = ["0", "0.5", "1"].map(str::to_owned);
    let ticks: Vec<(f64, String)> =
        ends.into_iter().enumerate().map(|(i, end)| (left + i as f64 * side / 2.0, end)).collect();
    drawing.text(left - 36.0, HEAD + 16.0, TEXT, Anchor::Start, INK, name);
    area.axes_with(drawing, "", "frequency among raters", &ticks);
    let count = bins.len().max(1) as f64;
    for (place, bin) in bins.iter().enumerate() {
        let Some((confidence, frequency)) = bin.mean_confidence().zip(bin.frequency()) else { continue };
        let (x, step) = (left + place as f64 / count * side, side / count);
        let up = |value: f64| area.bottom() - value.clamp(0.0, 1.0) * side;
        let (bar, gap) =
            (up(frequency), (up(frequency).min(up(confidence)), (up(frequency) - up(confidence)).abs()));
        drawing.rectangle(x + 0.5, bar, step - 1.0, area.bottom() - bar, SAMPLE.towards(PAPER, BAR));
        let fill = PREDICTION.hex();
        let (gap_top, gap_height, width, x) = (gap.0, gap.1, step - 1.0, x + 0.5);
        let told = format!(
            "confidence {confidence:.3}, frequency {frequency:.3}, {} observations",
            tick_label(bin.count as f64)
        );
        drawing.element(format_args!(
            r#"<rect x="{x:.1}" y="{gap_top:.1}" width="{width:.1}" height="{gap_height:.1}" fill="{fill}" fill-opacity="0.75"><title>{told}</title></rect>"#
        ));
    }
    drawing.dashes((left, area.bottom()), (area.right(), area.top), 1.2, INK);
    if let Some(ece) = ece_of_bins(bins) {
        drawing.text(left + 8.0, area.top + 18.0, TEXT, Anchor::Start, INK, &format!("ECE {ece:.4}"));
    }
    draw_counts(drawing, left, side, bins);
}

/// The observations of each bin, logarithmic: most voxels are background of which a network is sure.
fn draw_counts(drawing: &mut Drawing, left: f64, side: f64, bins: &[CalibrationBin]) {
    let bottom = HEAD + ABOVE + side + BETWEEN + COUNTS;
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(1).max(10) as f64;
    let height = |count: f64| (count.log10() / most.log10()).clamp(0.0, 1.0) * COUNTS;
    let step = side / bins.len().max(1) as f64;
    for (place, bin) in bins.iter().enumerate().filter(|(_, bin)| bin.count > 0) {
        // A single observation is seen as well.
        let height = height(bin.count as f64).max(1.0);
        drawing.rectangle(left + place as f64 * step + 0.5, bottom - height, step - 1.0, height, FAINT);
    }
    let top = 10f64.powf(most.log10().floor());
    for value in [1.0, top] {
        let y = bottom - height(value);
        drawing.text(left - 6.0, y + 4.5, TEXT, Anchor::End, INK, &power(value));
        drawing.stroke((left - 4.0, y), (left, y), 0.75, INK);
    }
    drawing.line((left, bottom), (left + side, bottom));
    drawing.text(left - 36.0, bottom - COUNTS - 10.0, TEXT, Anchor::Start, FAINT, "observations");
    for (t, label) in [(0.0, "0"), (0.5, "0.5"), (1.0, "1")] {
        drawing.text(left + t * side, bottom + 17.0, TEXT, Anchor::Middle, INK, label);
    }
    drawing.text(left + side, bottom + 36.0, TEXT, Anchor::End, FAINT, "confidence");
}

/// A power of ten with few letters.
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
        assert_eq!(svg.matches(&format!("fill=\"{}\" shape", FAINT.hex())).count(), 3);
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
