//! Curves over the steps of runs.

use super::svg::{Anchor, Drawing, FAINT, INK, RULE, distinct, marks, range, shown};

/// One curve.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Its name. Curves of one name share a color and an entry of the legend.
    pub name: String,
    /// Points `(step, value)`, in the order of steps.
    pub points: Vec<(f64, f64)>,
}

/// What the axes show.
#[derive(Debug, Clone, Copy)]
pub struct Axes<'a> {
    /// Above the figure.
    pub title: &'a str,
    /// What runs to the right.
    pub x: &'a str,
    /// What runs upwards.
    pub y: &'a str,
    /// Whether heights are logarithms; values that have none are left out.
    pub logarithmic: bool,
}

const WIDTH: f64 = 680.0;
const HEIGHT: f64 = 380.0;
/// The left edge of titles.
const MARGIN: f64 = 12.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = 48.0;
/// Curves of so few points show each of them.
const DOTTED: usize = 12;

/// Draws curves into one pair of axes.
pub fn curves_figure(axes: Axes<'_>, curves: &[Curve]) -> String {
    let height = |value: f64| if axes.logarithmic { value.log10() } else { value };
    let visible = |curve: &Curve| -> Vec<(f64, f64)> {
        let points = curve.points.iter().map(|&(x, y)| (x, height(y)));
        points.filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
    };
    let visible: Vec<Vec<(f64, f64)>> = curves.iter().map(visible).collect();
    let [left, right] = range(visible.iter().flatten().map(|point| point.0));
    let [low, high] = range(visible.iter().flatten().map(|point| point.1));
    let across = |x: f64| LEFT + (x - left) / (right - left) * (WIDTH - LEFT - RIGHT);
    let up = |y: f64| HEIGHT - BOTTOM - (y - low) / (high - low) * (HEIGHT - TOP - BOTTOM);

    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    drawing.text(MARGIN, 24.0, 16.0, Anchor::Start, INK, axes.title);
    drawing.text(MARGIN, TOP - 18.0, 13.0, Anchor::Start, FAINT, axes.y);
    drawing.text(WIDTH - RIGHT, HEIGHT - 8.0, 13.0, Anchor::End, FAINT, axes.x);
    // Steps are whole, also where there are so few that round numbers between them would not be.
    for x in marks(left, right).into_iter().filter(|x| x.fract() == 0.0) {
        drawing.line((across(x), HEIGHT - BOTTOM), (across(x), HEIGHT - BOTTOM + 4.0));
        drawing.text(across(x), HEIGHT - BOTTOM + 18.0, 13.0, Anchor::Middle, INK, &shown(x));
    }
    for y in if axes.logarithmic { decades(low, high) } else { marks(low, high) } {
        drawing.curve(&[(LEFT, up(y)), (WIDTH - RIGHT, up(y))], RULE);
        let value = if axes.logarithmic { 10f64.powf(y) } else { y };
        drawing.text(LEFT - 6.0, up(y) + 4.5, 13.0, Anchor::End, INK, &shown(value));
    }
    drawing.line((LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM));
    let mut names: Vec<&str> = vec![];
    for (curve, points) in curves.iter().zip(&visible) {
        let place = names.iter().position(|name| *name == curve.name).unwrap_or_else(|| {
            names.push(&curve.name);
            names.len() - 1
        });
        let points: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (across(x), up(y))).collect();
        drawing.curve(&points, distinct(place));
        if points.len() <= DOTTED {
            points.iter().for_each(|&point| drawing.dot(point, 3.5, distinct(place)));
        }
    }
    let mut x = LEFT + 60.0;
    for (place, name) in names.iter().enumerate() {
        drawing.curve(&[(x, 44.0), (x + 22.0, 44.0)], distinct(place));
        drawing.text(x + 28.0, 48.5, 13.0, Anchor::Start, INK, name);
        x += 50.0 + 7.4 * name.chars().count() as f64;
    }
    drawing.finish(axes.title, &format!("{} over {}, of {}.", axes.y, axes.x, names.join(", ")))
}

/// Logarithms of 1, 2 and 5 times powers of ten between two.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let powers = low.floor() as i32..=high.ceil() as i32;
    let all = powers.flat_map(|power| [1.0f64, 2.0, 5.0].map(|k| k.log10() + f64::from(power)));
    all.filter(|y| (low..=high).contains(y)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_are_inside() {
        assert_eq!(decades(1.9, 3.1).len(), 4);
    }

    #[test]
    fn names_are_told_once_and_wrong_numbers_left_out() {
        let curve =
            |name: &str, points: &[(f64, f64)]| Curve { name: name.to_owned(), points: points.to_vec() };
        let curves = [
            curve("a<b", &[(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)]),
            curve("a<b", &[(0.0, 2.0), (2.0, -1.0)]),
            curve("c", &[]),
        ];
        let axes = Axes { title: "Loss", x: "step", y: "loss", logarithmic: true };
        let svg = curves_figure(axes, &curves);
        assert_eq!(svg.matches(">a&lt;b</text>").count(), 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(curves_figure(axes, &[]).contains("Loss"));
    }
}
