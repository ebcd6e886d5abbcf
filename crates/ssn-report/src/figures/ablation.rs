//! A score against a setting of the network, such as its rank, with the spread over seeds.

use ssn_core::metrics::Summary;
use ssn_data::text::counted;

use super::plot::{
    ABOVE, COLUMN, HEIGHT, LEFT, LegendEntry, MARGIN, PlotArea, Scale, TEXT, tick_label, with_head,
};
use super::svg::{Anchor, FAINT, distinct, shown};
use ssn_eval::unique;

/// What an ablation is of.
#[derive(Debug, Clone, Copy)]
pub struct AblationAxes<'a> {
    /// Above the figure.
    pub title: &'a str,
    /// The setting.
    pub x: &'a str,
    /// The score, with its unit and which way is better.
    pub y: &'a str,
}

/// The trainings of one network with one value of the setting.
#[derive(Debug, Clone, PartialEq)]
pub struct AblationPoint {
    /// The network; points of one name are joined.
    pub network: String,
    /// The value of the setting.
    pub x: f64,
    /// The score of each seed; values that are no numbers are left out.
    pub values: Vec<f64>,
}

const RIGHT: f64 = 16.0;
const BOTTOM: f64 = 64.0;
/// Half the width of the caps of an error bar.
const CAP: f64 = 4.0;
/// How far networks stand apart at the same value.
const ASIDE: f64 = 7.0;

/// Draws the mean over seeds with its standard error, and every seed as a small dot. Values of the setting stand at equal
/// distances, as ranks of 1, 2, 5, 10 and 20 do not on a linear axis.
pub fn ablation_figure(axes: AblationAxes<'_>, points: &[AblationPoint]) -> String {
    let networks = unique(points.iter().map(|point| point.network.as_str()));
    let mut settings: Vec<f64> = points.iter().map(|point| point.x).filter(|x| x.is_finite()).collect();
    settings.sort_by(f64::total_cmp);
    settings.dedup();
    let finite = |point: &AblationPoint| -> Vec<f64> {
        point.values.iter().copied().filter(|value| value.is_finite()).collect()
    };

    let legend = match networks.len() {
        0 | 1 => vec![],
        _ => LegendEntry::distinct(networks.iter().copied()),
    };
    let (mut drawing, head) = with_head(axes.title, &legend, COLUMN, HEIGHT);
    let summaries: Vec<Option<(f64, f64)>> =
        points.iter().map(|point| mean_and_error(&finite(point))).collect();
    let ends = summaries.iter().flatten().flat_map(|(mean, error)| [mean - error, mean + error]);
    let area = PlotArea {
        left: LEFT,
        top: head + ABOVE,
        width: COLUMN - LEFT - RIGHT,
        height: HEIGHT - ABOVE - BOTTOM,
        x: Scale::between(-0.5, settings.len().max(1) as f64 - 0.5),
        y: Scale::of(points.iter().flat_map(finite).chain(ends), false).padded(0.06),
    };
    let tick = |(place, x): (usize, &f64)| Some((area.across(place as f64)?, tick_label(*x)));
    let ticks: Vec<(f64, String)> = settings.iter().enumerate().filter_map(tick).collect();
    area.axes_with(&mut drawing, axes.x, axes.y, &ticks);

    for (number, network) in networks.iter().enumerate() {
        let color = distinct(number);
        let aside = (number as f64 - (networks.len() as f64 - 1.0) / 2.0) * ASIDE;
        let mut means = vec![];
        let own = points.iter().zip(&summaries).filter(|(point, _)| point.network == *network);
        for (point, summary) in own {
            let Some(place) = settings.iter().position(|x| *x == point.x) else { continue };
            let Some(x) = area.across(place as f64).map(|x| x + aside) else { continue };
            for value in finite(point) {
                area.up(value).into_iter().for_each(|y| drawing.faint_dot((x, y), 2.2, color));
            }
            let Some((mean, error)) = *summary else { continue };
            let (Some(y), Some(low), Some(high)) =
                (area.up(mean), area.up(mean - error), area.up(mean + error))
            else {
                continue;
            };
            if error > 0.0 {
                drawing.stroke((x, low), (x, high), 1.4, color);
                for y in [low, high] {
                    drawing.stroke((x - CAP, y), (x + CAP, y), 1.4, color);
                }
            }
            let tooltip = format!(
                "{network}, {} {}: {} ± {}, {}",
                axes.x,
                tick_label(point.x),
                shown(mean),
                shown(error),
                counted(finite(point).len(), "seed")
            );
            means.push(((x, y), tooltip));
        }
        means.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
        drawing.curve(&means.iter().map(|(pixel, _)| *pixel).collect::<Vec<_>>(), color);
        means.iter().for_each(|(pixel, tooltip)| drawing.told_dot(*pixel, 4.2, color, tooltip));
    }
    let note = note(points.iter().map(|point| finite(point).len()));
    drawing.text(MARGIN, head + HEIGHT - 8.0, TEXT - 1.5, Anchor::Start, FAINT, &note);
    drawing.finish(axes.title, &format!("{} against {}: {note}.", axes.y, axes.x))
}

/// The mean, and its standard error over seeds, 0 for a single one; nothing without any.
fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
    let summary = Summary::of(&values).ok()?;
    Some((summary.mean?, summary.standard_error.unwrap_or(0.0)))
}

/// How the figure was computed.
fn note(counts: impl Iterator<Item = usize>) -> String {
    let counts: Vec<usize> = counts.filter(|count| *count > 0).collect();
    let (least, most) = (counts.iter().min(), counts.iter().max());
    match (least, most) {
        (Some(1), Some(1)) => "one seed each".to_owned(),
        (Some(least), Some(most)) if least == most => {
            format!("mean ± standard error of {most} seeds; small dots are single seeds")
        }
        (Some(least), Some(most)) => {
            format!("mean ± standard error of {least} to {most} seeds; small dots are single seeds")
        }
        _ => "no values".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::png_from_svg;

    const AXES: AblationAxes<'_> = AblationAxes { title: "Rank", x: "rank", y: "GED² (lower is better)" };

    fn point(network: &str, x: f64, values: &[f64]) -> AblationPoint {
        AblationPoint { network: network.to_owned(), x, values: values.to_vec() }
    }

    #[test]
    fn means_have_the_standard_error_over_seeds() {
        // Deviations of 1 and −1 around 2: variance 2, over 2 seeds 1.
        assert_eq!(mean_and_error(&[1.0, 3.0]), Some((2.0, 1.0)));
        assert_eq!((mean_and_error(&[5.0]), mean_and_error(&[])), (Some((5.0, 0.0)), None));
    }

    #[test]
    fn every_seed_is_a_dot_and_every_setting_a_number() {
        let points = [
            point("low-rank", 10.0, &[0.2, 0.22, f64::NAN]),
            point("low-rank", 1.0, &[0.3, 0.34]),
            point("diagonal", 1.0, &[0.5]),
            point("diagonal", f64::NAN, &[0.5]),
        ];
        let svg = ablation_figure(AXES, &points);
        assert_eq!(svg.matches("fill-opacity=\"0.45\"").count(), 2 + 2 + 1);
        assert!(svg.contains(">1<") && svg.contains(">10<") && svg.contains(">diagonal<"));
        assert!(svg.contains("<title>low-rank, rank 10: 0.21 ± 0.01, 2 seeds</title>"), "{svg}");
        assert!(svg.contains("mean ± standard error of 1 to 2 seeds"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        insta::assert_snapshot!(svg);
        png_from_svg(&svg, 1.0).unwrap();
        assert!(ablation_figure(AXES, &[]).contains("no values"));
        assert!(
            !ablation_figure(AXES, &points[..2]).contains(">low-rank</text>"),
            "one network needs no legend"
        );
    }
}
