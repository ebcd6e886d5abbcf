//! A score against a setting of the network, such as its rank, with the spread over seeds.

use ssn_core::metrics::Summary;
use ssn_data::text::counted;

use super::chart::{Axis, COLUMN, Chart, Entry, Frame, HEIGHT, Mark, Panel, Spot, Style, Ticks};
use super::scale::{Scale, tick_label};
use super::svg::{Color, distinct, short_number};
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
const BELOW: f64 = 64.0;
/// How far networks stand apart at the same value, in pixels.
const ASIDE: f64 = 7.0;

/// Draws the mean over seeds with its standard error, and every seed as a small dot. Values of the setting stand at equal
/// distances, as ranks of 1, 2, 5, 10 and 20 do not on a linear axis.
pub fn ablation_figure(axes: AblationAxes<'_>, points: &[AblationPoint]) -> String {
    let networks = unique(points.iter().map(|point| point.network.as_str()));
    let mut settings: Vec<f64> = points.iter().map(|point| point.x).filter(|x| x.is_finite()).collect();
    settings.sort_by(f64::total_cmp);
    settings.dedup();
    let frame = Frame::of_column(RIGHT, BELOW);
    let aside = ASIDE / frame.width * settings.len().max(1) as f64;
    let mut marks = vec![];
    for (number, network) in networks.iter().enumerate() {
        let offset = (number as f64 - (networks.len() as f64 - 1.0) / 2.0) * aside;
        let own: Vec<(f64, &AblationPoint)> = points
            .iter()
            .filter(|point| point.network == *network)
            .filter_map(|point| {
                let place = settings.iter().position(|x| *x == point.x)?;
                Some((place as f64 + offset, point))
            })
            .collect();
        marks.extend(network_marks(axes.x, distinct(number), own));
    }
    let ends = points.iter().filter_map(|point| mean_and_error(&finite(point)));
    let ends = ends.flat_map(|(mean, error)| [mean - error, mean + error]);
    let places = settings.iter().enumerate().map(|(place, x)| (place as f64, tick_label(*x))).collect();
    let x = Axis {
        scale: Scale::between(-0.5, settings.len().max(1) as f64 - 0.5),
        name: axes.x.to_owned(),
        ticks: Ticks::At(places),
        ..Axis::default()
    };
    let y = Axis {
        scale: Scale::of(points.iter().flat_map(finite).chain(ends), false).padded(0.06),
        name: axes.y.to_owned(),
        ticks: Ticks::Round,
        guides: true,
        right: false,
    };
    let note = note(points.iter().map(|point| finite(point).len()));
    let chart = Chart {
        title: axes.title.to_owned(),
        description: format!("{} against {}: {note}.", axes.y, axes.x),
        legend: if networks.len() > 1 { Entry::lines(networks.into_iter()) } else { vec![] },
        panels: vec![Panel { frame, x, y, marks, ..Panel::default() }],
        size: (COLUMN, HEIGHT),
        note,
    };
    chart.svg()
}

fn finite(point: &AblationPoint) -> Vec<f64> {
    point.values.iter().copied().filter(|value| value.is_finite()).collect()
}

/// Returns the seeds, means and errors of a network at places of the horizontal axis.
fn network_marks(setting: &str, color: Color, mut points: Vec<(f64, &AblationPoint)>) -> Vec<Mark> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut seeds, mut means, mut errors) = (vec![], vec![], vec![]);
    for (x, point) in points {
        let values = finite(point);
        seeds.extend(values.iter().map(|value| (x, *value)));
        let Some((mean, error)) = mean_and_error(&values) else { continue };
        if error > 0.0 {
            errors.push((x, mean - error, mean + error));
        }
        let tip = format!(
            "{}, {setting} {}: {} ± {}, {}",
            point.network,
            tick_label(point.x),
            short_number(mean),
            short_number(error),
            counted(values.len(), "seed")
        );
        means.push(Spot { at: (x, mean), tip });
    }
    vec![
        Mark::FaintDots { points: seeds, radius: 2.2, color },
        Mark::ErrorBars { bars: errors, color },
        Mark::Line { points: means.iter().map(|spot| spot.at).collect(), color, style: Style::Solid },
        Mark::Dots { points: means, radius: 4.2, color },
    ]
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
