//! Curves over the steps of runs: one figure per quantity, or several quantities of one run in one picture.

use crate::figures::chart::{
    Axis, COLUMN, Chart, Entry, Frame, HEIGHT, Key, Mark, Panel, Spot, Style, Ticks,
};
use crate::figures::scale::Scale;
use crate::figures::svg::{Anchor, Color, FAINT, INK, distinct, short_number};
use ssn_eval::unique;

/// A quantity that runs upwards above steps: a column of `metrics.csv`.
pub(crate) struct Quantity {
    pub(crate) column: &'static str,
    pub(crate) title: &'static str,
    /// Its vertical axis, and which way is better.
    pub(crate) y: &'static str,
    /// Whether its axis is logarithmic where all values are positive.
    pub(crate) logarithmic: bool,
    /// The sentence below the figure.
    pub(crate) caption: &'static str,
}

/// One curve.
pub(crate) struct Curve {
    /// Curves of one name share a color and an entry of the legend.
    pub(crate) name: String,
    /// Points `(step, value)`, in the order of steps.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A step at which something happened: a dashed line upwards.
pub(crate) struct StepMark {
    pub(crate) step: f64,
    /// What happened.
    pub(crate) label: String,
    /// The curve that it happened to, whose color it has; nothing for all of them.
    pub(crate) curve: Option<String>,
    /// Whether it is dark where it has no color of a curve.
    pub(crate) dark: bool,
}

const RIGHT: f64 = 18.0;
const BELOW: f64 = 46.0;
/// Curves with at most this many points show each of them.
const DOTTED: usize = 12;
/// Stretches of a long curve.
const STRETCHES: usize = 150;

/// Draws curves into one pair of axes that ends at `last_step`, unless there are points beyond: figures of one run have the same steps.
pub(crate) fn curves_figure(
    quantity: &Quantity,
    last_step: f64,
    curves: &[Curve],
    marks: &[StepMark],
) -> String {
    let names = names(curves);
    let mut legend = if names.len() > 1 { Entry::lines(names.iter().copied()) } else { vec![] };
    legend.extend(marks.iter().map(|mark| mark_entry(mark, &names)));
    let chart = Chart {
        title: quantity.title.to_owned(),
        description: format!("{} over step, of {}.", quantity.y, names.join(", ")),
        legend,
        panels: vec![panel(Frame::of_column(RIGHT, BELOW), quantity, last_step, curves, marks)],
        size: (COLUMN, HEIGHT),
        note: String::new(),
    };
    chart.svg()
}

const PANEL: (f64, f64) = (380.0, 250.0);
const PANEL_COLUMNS: usize = 3;
/// From the top of a panel to its axes, and from its left edge.
const PANEL_TOP: f64 = 54.0;
const PANEL_LEFT: f64 = 52.0;

/// Draws panels in rows of three below a title and what the marks are, which all panels have. Those without a point say so.
pub(crate) fn curve_panels(
    title: &str,
    last_step: f64,
    panels: &[(&Quantity, Vec<Curve>)],
    marks: &[StepMark],
) -> String {
    let (width, height) = PANEL;
    let rows = panels.len().div_ceil(PANEL_COLUMNS);
    let columns = panels.len().clamp(1, PANEL_COLUMNS);
    let placed = |(place, (quantity, curves)): (usize, &(&Quantity, Vec<Curve>))| {
        let frame = Frame {
            left: (place % PANEL_COLUMNS) as f64 * width + PANEL_LEFT,
            top: (place / PANEL_COLUMNS) as f64 * height + PANEL_TOP,
            width: width - PANEL_LEFT - RIGHT,
            height: height - PANEL_TOP - BELOW + 6.0,
        };
        let names = names(curves);
        let legend = if names.len() > 1 { Entry::lines(names.into_iter()) } else { vec![] };
        let panel = panel(frame, quantity, last_step, curves, marks);
        Panel { heading: quantity.title.to_owned(), legend, ..panel }
    };
    let titles: Vec<&str> = panels.iter().map(|(quantity, _)| quantity.title).collect();
    let chart = Chart {
        title: title.to_owned(),
        description: format!("Curves over steps: {}.", titles.join(", ")),
        legend: marks.iter().map(|mark| mark_entry(mark, &[])).collect(),
        panels: panels.iter().enumerate().map(placed).collect(),
        size: (columns as f64 * width, 6.0 + rows as f64 * height),
        note: String::new(),
    };
    chart.svg()
}

/// Returns the names of curves, each once, in their order.
fn names(curves: &[Curve]) -> Vec<&str> {
    unique(curves.iter().map(|curve| curve.name.as_str()))
}

fn mark_entry(mark: &StepMark, names: &[&str]) -> Entry {
    let name = format!("{}, {}", mark.label, mark.step);
    Entry::new(name, mark_color(mark, names), Key::Line(Style::Dashed))
}

fn mark_color(mark: &StepMark, names: &[&str]) -> Color {
    let place = names.iter().position(|name| mark.curve.as_deref() == Some(*name));
    place.map_or(if mark.dark { INK } else { FAINT }, distinct)
}

/// Returns the axes with their curves and marks. Of a curve of many points, the means of stretches are joined, with a band from their
/// lowest to their highest value.
fn panel(frame: Frame, quantity: &Quantity, last_step: f64, curves: &[Curve], marks: &[StepMark]) -> Panel {
    let names = names(curves);
    let points = || curves.iter().flat_map(|curve| &curve.points);
    if points().next().is_none() {
        let text = "no values yet".to_owned();
        let marks = vec![Mark::Text { at: (0.0, 1.0), anchor: Anchor::Start, color: FAINT, text }];
        let y = Axis { ticks: Ticks::At(vec![]), ..Axis::default() };
        return Panel { frame, y, marks, ..Panel::default() };
    }
    // All figures of a run begin with its first step.
    let x = Scale::of(points().map(|point| point.0).chain([0.0, last_step]), false);
    let logarithmic = quantity.logarithmic && points().all(|point| point.1 > 0.0);
    let y = Scale::of(points().map(|point| point.1), logarithmic).padded(0.04);
    let inside = |mark: &&StepMark| x.at(mark.step).is_some_and(|t| (0.0..=1.0).contains(&t));
    let rule = |mark: &StepMark| Mark::Rule {
        x: mark.step,
        color: mark_color(mark, &names),
        tip: format!("{}, step {}", mark.label, mark.step),
    };
    let mut drawn: Vec<Mark> = marks.iter().filter(inside).map(rule).collect();
    for curve in curves {
        let color = distinct(names.iter().position(|name| *name == curve.name).unwrap_or(0));
        drawn.extend(curve_marks(curve, color));
    }
    Panel {
        frame,
        x: Axis { scale: x, name: "step".to_owned(), ticks: Ticks::Whole, ..Axis::default() },
        y: Axis { scale: y, name: quantity.y.to_owned(), ticks: Ticks::Round, guides: true, right: false },
        marks: drawn,
        ..Panel::default()
    }
}

fn curve_marks(curve: &Curve, color: Color) -> Vec<Mark> {
    let stretches = stretches(&curve.points, STRETCHES);
    let is_thinned = stretches.iter().any(|one| one.low < one.high);
    let tip = |one: &Stretch| {
        let value = format!("{}, step {:.0}: {}", curve.name, one.x, short_number(one.mean));
        match is_thinned {
            true => format!("{value}, between {} and {}", short_number(one.low), short_number(one.high)),
            false => value,
        }
    };
    let spots = stretches.iter().map(|one| Spot { at: (one.x, one.mean), tip: tip(one) }).collect();
    let mut marks = vec![];
    if is_thinned {
        let edges = stretches.iter().map(|one| (one.x, one.low, one.high)).collect();
        marks.push(Mark::Band { edges, color });
    }
    let points = stretches.iter().map(|one| (one.x, one.mean)).collect();
    marks.push(Mark::Line { points, color, style: Style::Solid });
    marks.push(match curve.points.len() <= DOTTED {
        true => Mark::Dots { points: spots, radius: 3.0, color },
        false => Mark::Tips(spots),
    });
    marks
}

/// Points of a curve that are too close to be told apart.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    /// The means of their places and of their values.
    x: f64,
    mean: f64,
    /// The lowest and the highest value.
    low: f64,
    high: f64,
}

/// Splits a curve into at most `most` stretches of equally many points; values that are no numbers are left out.
fn stretches(points: &[(f64, f64)], most: usize) -> Vec<Stretch> {
    let points: Vec<(f64, f64)> =
        points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let length = points.len().div_ceil(most.max(1)).max(1);
    let stretch = |points: &[(f64, f64)]| {
        let mean =
            |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / points.len() as f64;
        let heights = || points.iter().map(|point| point.1);
        Stretch {
            x: mean(|point| point.0),
            mean: mean(|point| point.1),
            low: heights().fold(f64::INFINITY, f64::min),
            high: heights().fold(f64::NEG_INFINITY, f64::max),
        }
    };
    points.chunks(length).map(stretch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::png_from_svg;

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        Curve { name: name.to_owned(), points: points.to_vec() }
    }

    const LOSS: Quantity =
        Quantity { column: "loss", title: "Loss", y: "loss", logarithmic: true, caption: "" };

    #[test]
    fn names_are_told_once_and_wrong_numbers_left_out() {
        let curves = [
            curve("a<b", &[(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)]),
            curve("a<b", &[(0.0, 2.0), (2.0, -1.0)]),
            curve("c", &[]),
        ];
        let svg = curves_figure(&LOSS, 0.0, &curves, &[]);
        assert_eq!(svg.matches(">a&lt;b</text>").count(), 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(svg.contains("<title>a&lt;b, step 2: 3</title>"));
        assert!(curves_figure(&LOSS, 0.0, &[], &[]).contains("Loss"));
        let one = curves_figure(&LOSS, 10.0, &curves[..1], &[]);
        assert!(!one.contains(">a&lt;b</text>") && one.contains(">10</text>"), "{one}");
    }

    #[test]
    fn marks_have_the_color_of_their_curve_and_lie_inside() {
        let curves = [curve("a", &[(10.0, 1.0), (20.0, 2.0)]), curve("b", &[(10.0, 2.0), (20.0, 1.0)])];
        let mark = |step, label: &str, curve: Option<&str>| StepMark {
            step,
            label: label.to_owned(),
            curve: curve.map(str::to_owned),
            dark: curve.is_some(),
        };
        let marks =
            [mark(15.0, "best", Some("b")), mark(12.0, "pre-training ends", None), mark(99.0, "no", None)];
        let svg = curves_figure(&LOSS, 0.0, &curves, &marks);
        let of = |label: &str| svg.lines().find(|line| line.contains(&format!("<title>{label}</title>")));
        assert!(of("best, step 15").unwrap().contains(&distinct(1).hex()));
        assert!(of("pre-training ends, step 12").unwrap().contains(&FAINT.hex()));
        assert!(of("no, step 99").is_none() && svg.contains(">best, 15</text>"));
        png_from_svg(&svg, 1.0).unwrap();
    }

    #[test]
    fn long_curves_are_means_with_a_band() {
        let points: Vec<(f64, f64)> = (0..600).map(|i| (f64::from(i), 1.0 + f64::from(i % 4))).collect();
        let svg = curves_figure(&LOSS, 0.0, &[curve("a", &points)], &[]);
        assert_eq!((svg.matches("<polygon").count(), svg.matches("pointer-events").count()), (1, STRETCHES));
        assert!(svg.contains("<title>a, step 2: 2.5, between 1 and 4</title>"), "{svg:.3000}");
    }

    #[test]
    fn stretches_keep_means_and_peaks() {
        let value = |i: u32| if i == 3210 { 9.0 } else { f64::from(i % 2) };
        let points: Vec<(f64, f64)> = (0..5000).map(|i| (f64::from(i), value(i))).collect();
        let few = stretches(&points, 100);
        assert_eq!((few.len(), few[0]), (100, Stretch { x: 24.5, mean: 0.5, low: 0.0, high: 1.0 }));
        assert_eq!(few.iter().map(|stretch| stretch.high).fold(0.0, f64::max), 9.0);
        let one = stretches(&[(1.0, 2.0), (2.0, f64::NAN)], 100);
        assert_eq!(one, [Stretch { x: 1.0, mean: 2.0, low: 2.0, high: 2.0 }]);
        assert!(stretches(&[], 0).is_empty());
    }

    #[test]
    fn panels_stand_in_rows_and_empty_ones_say_so() {
        let full = (&LOSS, vec![curve("a", &[(1.0, 1.0)]), curve("b", &[(1.0, 2.0)])]);
        let ess = Quantity { title: "ESS", ..LOSS };
        let empty = (&ess, vec![]);
        let svg = curve_panels("Run", 0.0, &[full, empty], &[]);
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"290\""));
        assert!(svg.contains(">no values yet<") && svg.contains(">ESS<") && svg.contains(">b<"));
        insta::assert_snapshot!(svg);
    }
}
