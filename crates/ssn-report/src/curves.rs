//! Curves over the steps of runs: one figure per quantity, or several quantities of one run in one picture.

use crate::figures::plot::{
    ABOVE, COLUMN, HEIGHT, LEFT, LegendEntry, LineStyle, MARGIN, PlotArea, Scale, TEXT, TITLE, draw_legend,
    stretches, with_head,
};
use crate::figures::svg::{Anchor, Color, Drawing, FAINT, INK, distinct, shown};
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
const BOTTOM: f64 = 46.0;
/// Curves of so few points show each of them.
const DOTTED: usize = 12;
/// Stretches of a long curve.
const STRETCHES: usize = 150;

/// Draws curves into one pair of axes that ends at `last_step`, unless there are points beyond: figures of one run have the same steps.
/// Of a curve of many points, the means of stretches are joined, with a band from their lowest to their highest value. A pointer that
/// rests on a point is told its value.
pub(crate) fn curves_figure(
    quantity: &Quantity,
    last_step: f64,
    curves: &[Curve],
    marks: &[StepMark],
) -> String {
    let names = names(curves);
    let mut legend = match names.len() {
        0 | 1 => vec![],
        _ => LegendEntry::distinct(names.iter().copied()),
    };
    legend.extend(marks.iter().map(|mark| mark_entry(mark, &names)));
    let (mut drawing, head) = with_head(quantity.title, &legend, COLUMN, HEIGHT);
    let size = (COLUMN - LEFT - RIGHT, HEIGHT - ABOVE - BOTTOM);
    draw_curves(&mut drawing, (LEFT, head + ABOVE), size, quantity, last_step, curves, marks);
    drawing.finish(quantity.title, &format!("{} over step, of {}.", quantity.y, names.join(", ")))
}

const PANEL_WIDTH: f64 = 380.0;
const PANEL_HEIGHT: f64 = 250.0;
const PANEL_COLUMNS: usize = 3;
/// From the top of a panel to its axes.
const PANEL_HEAD: f64 = 48.0;

/// Draws panels in rows of three below a title and what the marks are, which all panels have. Those without a point say so.
pub(crate) fn curve_panels(
    title: &str,
    last_step: f64,
    panels: &[(&Quantity, Vec<Curve>)],
    marks: &[StepMark],
) -> String {
    let rows = panels.len().div_ceil(PANEL_COLUMNS);
    let width = panels.len().clamp(1, PANEL_COLUMNS) as f64 * PANEL_WIDTH;
    let legend: Vec<LegendEntry> = marks.iter().map(|mark| mark_entry(mark, &[])).collect();
    let (mut drawing, head) = with_head(title, &legend, width, 6.0 + rows as f64 * PANEL_HEIGHT);
    for (place, (quantity, curves)) in panels.iter().enumerate() {
        let left = (place % PANEL_COLUMNS) as f64 * PANEL_WIDTH;
        let top = head + 6.0 + (place / PANEL_COLUMNS) as f64 * PANEL_HEIGHT;
        drawing.text(left + MARGIN, top + 16.0, TITLE - 1.0, Anchor::Start, INK, quantity.title);
        if curves.iter().all(|curve| curve.points.is_empty()) {
            drawing.text(left + MARGIN, top + PANEL_HEAD, TEXT, Anchor::Start, FAINT, "no values yet");
            continue;
        }
        let names = names(curves);
        if names.len() > 1 {
            let (legend, half) = (LegendEntry::distinct(names.into_iter()), PANEL_WIDTH / 2.0);
            draw_legend(&mut drawing, &legend, (left + half, top + 16.0), half);
        }
        let size = (PANEL_WIDTH - LEFT - RIGHT, PANEL_HEIGHT - PANEL_HEAD - BOTTOM);
        draw_curves(&mut drawing, (left + LEFT, top + PANEL_HEAD), size, quantity, last_step, curves, marks);
    }
    let titles: Vec<&str> = panels.iter().map(|(quantity, _)| quantity.title).collect();
    drawing.finish(title, &format!("Curves over steps: {}.", titles.join(", ")))
}

/// Names of curves, each once, in their order.
fn names(curves: &[Curve]) -> Vec<&str> {
    unique(curves.iter().map(|curve| curve.name.as_str()))
}

fn mark_entry(mark: &StepMark, names: &[&str]) -> LegendEntry {
    let name = format!("{}, {}", mark.label, mark.step);
    LegendEntry { name, color: mark_color(mark, names), style: LineStyle::Dashed }
}

fn mark_color(mark: &StepMark, names: &[&str]) -> Color {
    let place = names.iter().position(|name| mark.curve.as_deref() == Some(*name));
    place.map_or(if mark.dark { INK } else { FAINT }, distinct)
}

fn draw_curves(
    drawing: &mut Drawing,
    (left, top): (f64, f64),
    (width, height): (f64, f64),
    quantity: &Quantity,
    last_step: f64,
    curves: &[Curve],
    marks: &[StepMark],
) {
    let names = names(curves);
    let points = || curves.iter().flat_map(|curve| &curve.points);
    // All figures of a run begin with its first step.
    let x = Scale::of(points().map(|point| point.0).chain([0.0, last_step]), false);
    let logarithmic = quantity.logarithmic && points().all(|point| point.1 > 0.0);
    let y = Scale::of(points().map(|point| point.1), logarithmic).padded(0.04);
    let area = PlotArea { left, top, width, height, x, y };
    area.axes(drawing, "step", quantity.y);
    for mark in marks.iter().filter(|mark| x.at(mark.step).is_some_and(|t| (0.0..=1.0).contains(&t))) {
        let tooltip = format!("{}, step {}", mark.label, mark.step);
        area.vertical(drawing, mark.step, mark_color(mark, &names), &tooltip);
    }
    for curve in curves {
        let color = distinct(names.iter().position(|name| *name == curve.name).unwrap_or(0));
        let stretches = stretches(&curve.points, STRETCHES);
        let is_thinned = stretches.iter().any(|one| one.low < one.high);
        if is_thinned {
            let band: Vec<(f64, f64, f64)> = stretches.iter().map(|one| (one.x, one.low, one.high)).collect();
            area.band(drawing, &band, color);
        }
        let means: Vec<(f64, f64)> = stretches.iter().map(|one| (one.x, one.mean)).collect();
        area.curve(drawing, &means, color);
        for one in &stretches {
            let Some(pixel) = area.pixel((one.x, one.mean)) else { continue };
            if curve.points.len() <= DOTTED {
                drawing.dot(pixel, 3.0, color);
            }
            let mut tooltip = format!("{}, step {:.0}: {}", curve.name, one.x, shown(one.mean));
            if is_thinned {
                tooltip += &format!(", between {} and {}", shown(one.low), shown(one.high));
            }
            drawing.told_place(pixel, 5.0, &tooltip);
        }
    }
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
