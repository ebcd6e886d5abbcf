//! What figures of numbers share: scales, axes with round numbers, curves, bands, bars of error and a legend.
//!
//! Sizes are made for a column of a paper: a figure of [`COLUMN`] pixels printed 85 mm wide has text of seven points.

use super::svg::{Anchor, Color, Drawing, FAINT, INK, RULE, distinct, escape, marks, shown};

/// The width of a figure that fills a column.
pub(crate) const COLUMN: f64 = 460.0;
/// The size of text in axes and legends.
pub(crate) const TEXT: f64 = 13.5;
/// The size of titles.
pub(crate) const TITLE: f64 = 16.0;
/// The left edge of titles.
pub(crate) const MARGIN: f64 = 10.0;
/// What lies below the head of a plot: its height, from its top to the axes for the name of the vertical one, and left of them.
pub(crate) const HEIGHT: f64 = 300.0;
pub(crate) const ABOVE: f64 = 28.0;
pub(crate) const LEFT: f64 = 52.0;

/// The height of the title.
const HEAD: f64 = 34.0;
/// The height of a line of the legend.
const LEGEND_LINE: f64 = 19.0;
/// The width of a letter of [`TEXT`], roughly.
const LETTER: f64 = 6.8;
/// The line before a name in the legend, with room on both sides.
const LEGEND_MARK: f64 = 42.0;
/// Values beyond this have no place in a figure; their differences might not be finite.
const LARGEST: f64 = 1e100;
/// More decades than this have no numbers between the powers of ten.
const FEW_DECADES: f64 = 2.0;
/// Powers of ten on an axis at most, roughly.
const POWERS: i32 = 6;

/// How numbers become places on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// A scale on which values have room; those that have no place, as 0 on a logarithmic one, do not count.
    pub(crate) fn of(values: impl Iterator<Item = f64>, logarithmic: bool) -> Self {
        let places = values.filter_map(|value| place(value, logarithmic));
        let [low, high] =
            places.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
        if low > high {
            return Self { low: 0.0, high: 1.0, logarithmic };
        }
        // Of a single value, a scale that is wide enough for two different numbers on its axis.
        let least = 1e-6 * low.abs().max(high.abs());
        let room = if high - low > least { 0.0 } else { least.max(0.5) };
        Self { low: low - room, high: high + room, logarithmic }
    }

    /// The same with a share of its length more above and below, so that nothing lies on the edge.
    pub(crate) fn padded(self, share: f64) -> Self {
        let room = share * (self.high - self.low);
        Self { low: self.low - room, high: self.high + room, ..self }
    }

    /// A linear scale from one number to a larger one.
    pub(crate) fn between(low: f64, high: f64) -> Self {
        Self { low, high, logarithmic: false }
    }

    /// Where a value lies, 0 … 1 from the lower to the upper end; nothing for one that has no place.
    pub(crate) fn at(self, value: f64) -> Option<f64> {
        place(value, self.logarithmic).map(|x| (x - self.low) / (self.high - self.low))
    }

    /// Round numbers on the scale, with their places 0 … 1.
    fn ticks(self) -> Vec<(f64, f64)> {
        let Self { low, high, logarithmic } = self;
        let values = match logarithmic {
            false => marks(low, high),
            true => decades(low, high),
        };
        values.into_iter().filter_map(|value| Some((self.at(value)?, value))).collect()
    }
}

fn place(value: f64, logarithmic: bool) -> Option<f64> {
    let x = if logarithmic { value.log10() } else { value };
    Some(x).filter(|x| x.is_finite() && x.abs() <= LARGEST)
}

/// 1, 2 and 5 times powers of ten between two of their logarithms, or some of the powers alone where there are many.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let powers = low.floor() as i32..=high.ceil() as i32;
    let inside = |value: &f64| (low - 1e-9..=high + 1e-9).contains(&value.log10());
    if high - low <= FEW_DECADES {
        let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|k| k * 10f64.powi(power)));
        return all.filter(inside).collect();
    }
    let step = ((high - low) as i32 / POWERS).max(1);
    powers.filter(|power| power % step == 0).map(|power| 10f64.powi(power)).filter(inside).collect()
}

/// A number beside an axis: thousands as 20k, and powers of ten where digits would be many.
pub(crate) fn tick_label(value: f64) -> String {
    let size = value.abs();
    let power = size.log10().round();
    match size {
        0.0 => "0".to_owned(),
        _ if (1e7..).contains(&size) || size < 1e-3 => {
            let factor = size / 10f64.powf(power);
            let sign = if value < 0.0 { "−" } else { "" };
            match (factor - 1.0).abs() < 1e-6 {
                true => format!("{sign}10{}", superscript(power as i32)),
                false => shown(value),
            }
        }
        _ if size >= 1e4 => format!("{}k", shown(value / 1e3)),
        _ => shown(value),
    }
}

pub(crate) fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    number.to_string().chars().map(digit).collect()
}

/// The rectangle between the axes of a figure, in pixels, with the scales of both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlotArea {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

impl PlotArea {
    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    /// The pixel of a point; nothing for one without a place.
    pub(crate) fn pixel(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.across(x)?, self.up(y)?))
    }

    pub(crate) fn across(&self, x: f64) -> Option<f64> {
        self.x.at(x).map(|t| self.left + t * self.width)
    }

    pub(crate) fn up(&self, y: f64) -> Option<f64> {
        self.y.at(y).map(|t| self.bottom() - t * self.height)
    }

    /// Both axes with round numbers and lines that guide the eye: `x` stands to the right below the figure, `y` above the vertical
    /// axis.
    pub(crate) fn axes(&self, drawing: &mut Drawing, x: &str, y: &str) {
        let ticks: Vec<(f64, f64)> = self.x.ticks();
        // Steps are whole, also where there are so few that round numbers between them would not be.
        let whole = self.x.high - self.x.low >= 2.0;
        let ticks: Vec<(f64, String)> = ticks
            .into_iter()
            .filter(|(_, value)| !whole || value.fract() == 0.0)
            .map(|(t, value)| (self.left + t * self.width, tick_label(value)))
            .collect();
        self.axes_with(drawing, x, y, &ticks);
    }

    /// The same with numbers at pixels of the caller's choice below the figure.
    pub(crate) fn axes_with(&self, drawing: &mut Drawing, x: &str, y: &str, ticks: &[(f64, String)]) {
        drawing.text(self.left - 40.0, self.top - 10.0, TEXT, Anchor::Start, FAINT, y);
        drawing.text(self.right(), self.bottom() + 37.0, TEXT, Anchor::End, FAINT, x);
        for (t, value) in self.y.ticks() {
            let y = self.bottom() - t * self.height;
            drawing.stroke((self.left, y), (self.right(), y), 1.0, RULE);
            drawing.text(self.left - 6.0, y + 4.5, TEXT, Anchor::End, INK, &tick_label(value));
        }
        let mut free = f64::NEG_INFINITY;
        for (x, label) in ticks {
            drawing.stroke((*x, self.bottom()), (*x, self.bottom() + 4.0), 0.75, INK);
            let half = LETTER * label.chars().count() as f64 / 2.0;
            if x - half >= free {
                drawing.text(*x, self.bottom() + 18.0, TEXT, Anchor::Middle, INK, label);
                free = x + half + 4.0;
            }
        }
        drawing.line((self.left, self.bottom()), (self.right(), self.bottom()));
    }

    /// A curve through those points that have a place.
    pub(crate) fn curve(&self, drawing: &mut Drawing, points: &[(f64, f64)], color: Color) {
        let pixels: Vec<(f64, f64)> = points.iter().filter_map(|&point| self.pixel(point)).collect();
        drawing.curve(&pixels, color);
    }

    /// What lies between two curves, `(x, lower, upper)`.
    pub(crate) fn band(&self, drawing: &mut Drawing, edges: &[(f64, f64, f64)], color: Color) {
        let lower = edges.iter().filter_map(|&(x, low, _)| self.pixel((x, low)));
        let upper = edges.iter().rev().filter_map(|&(x, _, high)| self.pixel((x, high)));
        let points: Vec<String> = lower.chain(upper).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (points, fill) = (points.join(" "), color.hex());
        drawing.element(format_args!(
            r#"<polygon points="{points}" fill="{fill}" fill-opacity="0.18" stroke="none"/>"#
        ));
    }

    /// A dashed line upwards at `x`, which says something where a pointer rests on it.
    pub(crate) fn vertical(&self, drawing: &mut Drawing, x: f64, color: Color, tooltip: &str) {
        let Some(x) = self.across(x) else { return };
        let (top, bottom, stroke, tooltip) = (self.top, self.bottom(), color.hex(), escape(tooltip));
        drawing.element(format_args!(
            r#"<line x1="{x:.1}" y1="{top:.1}" x2="{x:.1}" y2="{bottom:.1}" stroke="{stroke}" stroke-width="1.4" stroke-dasharray="5 4"><title>{tooltip}</title></line>"#
        ));
    }
}

impl Drawing {
    /// A dot that says something where a pointer rests on it.
    pub(crate) fn told_dot(&mut self, (x, y): (f64, f64), radius: f64, fill: Color, tooltip: &str) {
        let (fill, tooltip) = (fill.hex(), escape(tooltip));
        self.element(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}"><title>{tooltip}</title></circle>"#
        ));
    }

    /// A place that cannot be seen, and says something where a pointer rests on it.
    pub(crate) fn told_place(&mut self, (x, y): (f64, f64), radius: f64, tooltip: &str) {
        let tooltip = escape(tooltip);
        self.element(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="none" pointer-events="all"><title>{tooltip}</title></circle>"#
        ));
    }

    /// A dotted curve, for what was not measured but follows.
    pub(crate) fn dotted(&mut self, points: &[(f64, f64)], color: Color) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (points, stroke) = (points.join(" "), color.hex());
        self.element(format_args!(
            r#"<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="1.4" stroke-dasharray="2 3"/>"#
        ));
    }
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineStyle {
    Solid,
    Dotted,
    Dashed,
}

/// An entry of a legend.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LegendEntry {
    pub(crate) name: String,
    pub(crate) color: Color,
    pub(crate) style: LineStyle,
}

impl LegendEntry {
    /// Names in the colors of [`distinct`].
    pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Self> {
        let entry = |(place, name): (usize, &str)| Self {
            name: name.to_owned(),
            color: distinct(place),
            style: LineStyle::Solid,
        };
        names.enumerate().map(entry).collect()
    }

    fn width(&self) -> f64 {
        LEGEND_MARK + LETTER * self.name.chars().count() as f64
    }
}

/// A drawing that begins with a title and a legend, has room for what is `below`, and where that begins.
pub(crate) fn with_head(title: &str, legend: &[LegendEntry], width: f64, below: f64) -> (Drawing, f64) {
    let room = width - 2.0 * MARGIN;
    let head = HEAD + LEGEND_LINE * legend_lines(legend, room) as f64;
    let mut drawing = Drawing::new(width, head + below);
    drawing.text(MARGIN, 24.0, TITLE, Anchor::Start, INK, title);
    draw_legend(&mut drawing, legend, (MARGIN, HEAD + 12.0), room);
    (drawing, head)
}

/// The lines that a legend takes in a width.
fn legend_lines(entries: &[LegendEntry], width: f64) -> usize {
    legend_places(entries, width).last().map_or(0, |(line, _)| line + 1)
}

/// Draws a legend from the left, in as many lines as it needs.
pub(crate) fn draw_legend(
    drawing: &mut Drawing,
    entries: &[LegendEntry],
    (left, top): (f64, f64),
    width: f64,
) {
    for (entry, (line, aside)) in entries.iter().zip(legend_places(entries, width)) {
        let (x, y) = (left + aside, top + LEGEND_LINE * line as f64);
        let ends = [(x, y - 4.5), (x + 22.0, y - 4.5)];
        match entry.style {
            LineStyle::Solid => drawing.stroke(ends[0], ends[1], 2.5, entry.color),
            LineStyle::Dotted => drawing.dotted(&ends, entry.color),
            LineStyle::Dashed => drawing.dashes(ends[0], ends[1], 1.4, entry.color),
        }
        drawing.text(x + 28.0, y, TEXT, Anchor::Start, INK, &entry.name);
    }
}

/// The line and the distance from the left of each entry.
fn legend_places(entries: &[LegendEntry], width: f64) -> Vec<(usize, f64)> {
    let (mut line, mut x, mut places) = (0, 0.0, vec![]);
    for entry in entries {
        if x > 0.0 && x + entry.width() > width {
            (line, x) = (line + 1, 0.0);
        }
        places.push((line, x));
        x += entry.width();
    }
    places
}

/// Points of a curve that are too close to be told apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stretch {
    /// The means of their places and of their values.
    pub(crate) x: f64,
    pub(crate) mean: f64,
    /// The lowest and the highest value.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// A curve as at most `most` stretches of equally many points; values that are no numbers are left out.
pub(crate) fn stretches(points: &[(f64, f64)], most: usize) -> Vec<Stretch> {
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

    #[test]
    fn decades_are_inside_and_few() {
        assert_eq!(decades(1.9, 3.1), [100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(decades(-1.2, 3.4), [0.1, 1.0, 10.0, 100.0, 1000.0]);
        assert!(decades(-300.0, 300.0).len() <= 2 * POWERS as usize);
    }

    #[test]
    fn labels_are_short() {
        let values = [0.0, 0.05, 1.0, 2000.0, 20_000.0, 2.5e5, 1e8, 1e-5, -1e9, 2e-4];
        let labels = ["0", "0.05", "1", "2000", "20k", "250k", "10⁸", "10⁻⁵", "−10⁹", "2e−4"];
        assert_eq!(values.map(tick_label), labels);
    }

    #[test]
    fn every_value_has_a_place_or_none() {
        let extremes = [0.0, -1.0, 1e-300, 1e99, 1e300, f64::MAX, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE];
        for logarithmic in [false, true] {
            for a in extremes {
                for b in extremes {
                    let scale = Scale::of([a, b].into_iter(), logarithmic).padded(0.05);
                    let at = [a, b].into_iter().filter_map(|value| scale.at(value));
                    assert!(at.clone().all(|t| (0.0..=1.0).contains(&t)), "{a} {b} {scale:?}");
                    assert!(scale.ticks().len() < 20, "{a} {b} {scale:?}");
                    assert!(scale.ticks().iter().all(|(t, _)| t.is_finite()), "{a} {b} {scale:?}");
                }
            }
        }
        assert_eq!(Scale::of([2.0, 4.0].into_iter(), false).at(3.0), Some(0.5));
        assert_eq!(Scale::of([1.0, 100.0].into_iter(), true).at(10.0), Some(0.5));
        assert_eq!(Scale::of([1.0, 100.0].into_iter(), true).at(0.0), None);
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
    fn a_legend_breaks_where_there_is_no_room() {
        let entries = LegendEntry::distinct(["a", "a long name of a network", "b"].into_iter());
        assert_eq!((legend_lines(&entries, 1000.0), legend_lines(&entries, 230.0)), (1, 3));
        assert_eq!(legend_lines(&[], 100.0), 0);
    }
}
