//! Figures with axes, as data: a [`Chart`] holds what is drawn, and [`Chart::svg`] draws it.
//!
//! Sizes are made for a column of a paper: a figure of [`COLUMN`] pixels printed 85 mm wide has text of seven points.

use super::picture::Picture;
use super::scale::{Scale, tick_label};
use super::svg::{Anchor, Color, Drawing, FAINT, INK, RULE, distinct, probability};

/// The width of a figure that fills a column.
pub(crate) const COLUMN: f64 = 460.0;
/// The size of text in axes and legends.
pub(crate) const TEXT: f64 = 13.5;
/// The height below the head of a figure of one panel.
pub(crate) const HEIGHT: f64 = 300.0;
/// The left edge of titles.
pub(crate) const MARGIN: f64 = 10.0;
/// The size of titles.
const TITLE: f64 = 16.0;
/// The height of the title.
const HEAD: f64 = 34.0;
/// The height of a line of the legend.
const LEGEND_LINE: f64 = 19.0;
/// The width of a letter of [`TEXT`], roughly.
const LETTER: f64 = 6.8;
/// The width of a letter of [`TITLE`], roughly.
const TITLE_LETTER: f64 = 8.2;
/// The line before a name in the legend, with room on both sides.
const LEGEND_MARK: f64 = 42.0;
/// The width of the shades in a legend.
const SHADES: f64 = 48.0;
/// The baseline of a note, from the lower edge.
const NOTE: f64 = 8.0;
/// Half the width of the caps of an error bar.
const CAP: f64 = 4.0;

/// A figure: panels with axes below a title and a legend.
#[derive(Debug, Default)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// Read out where the figure cannot be seen.
    pub(crate) description: String,
    pub(crate) legend: Vec<Entry>,
    pub(crate) panels: Vec<Panel>,
    /// The width, and the height below title and legend.
    pub(crate) size: (f64, f64),
    /// A line at the lower edge; none if it is empty.
    pub(crate) note: String,
}

/// Marks in a rectangle with axes.
#[derive(Debug, Default)]
pub(crate) struct Panel {
    pub(crate) frame: Frame,
    /// Above the frame: centered if there are no axes, else above the name of the vertical one.
    pub(crate) heading: String,
    /// At the right above the frame.
    pub(crate) legend: Vec<Entry>,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// In the order in which they are drawn.
    pub(crate) marks: Vec<Mark>,
}

/// A rectangle in pixels, from the left edge and the lower end of the head.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Frame {
    /// The frame of the only panel of a figure of [`COLUMN`] × [`HEIGHT`] pixels, with room for labels at the right and below.
    pub(crate) fn of_column(right: f64, below: f64) -> Self {
        let (left, top) = (52.0, 28.0);
        Self { left, top, width: COLUMN - left - right, height: HEIGHT - top - below }
    }
}

/// An axis of a panel.
#[derive(Debug, Clone, Default)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) name: String,
    pub(crate) ticks: Ticks,
    /// Whether lines guide the eye from its numbers through the frame.
    pub(crate) guides: bool,
    /// Whether it stands at the right, not at the left.
    pub(crate) right: bool,
}

/// The numbers of an axis.
#[derive(Debug, Clone, Default)]
pub(crate) enum Ticks {
    /// None: the axis is not drawn.
    #[default]
    Hidden,
    /// Round ones.
    Round,
    /// Round ones that are whole, as steps are.
    Whole,
    /// Those given, with their labels.
    At(Vec<(f64, String)>),
}

/// What is drawn in a panel; places are values of its axes.
#[derive(Debug)]
pub(crate) enum Mark {
    /// A line through points.
    Line { points: Vec<(f64, f64)>, color: Color, style: Style },
    /// A straight line of a width in pixels.
    Segment { from: (f64, f64), to: (f64, f64), color: Color, width: f64 },
    /// The area between two lines, `(x, lower, upper)`.
    Band { edges: Vec<(f64, f64, f64)>, color: Color },
    /// Dots.
    Dots { points: Vec<Spot>, radius: f64, color: Color },
    /// Small dots through which others shine.
    FaintDots { points: Vec<(f64, f64)>, radius: f64, color: Color },
    /// Places that cannot be seen, but show their tip.
    Tips(Vec<Spot>),
    /// Vertical strokes of a height and a width in pixels.
    Strokes { points: Vec<(f64, f64)>, height: f64, width: f64, color: Color },
    /// Rectangles, a pixel apart.
    Bars { bars: Vec<Bar>, color: Color, opacity: f64 },
    /// From a lower to an upper value, `(x, lower, upper)`.
    ErrorBars { bars: Vec<(f64, f64, f64)>, color: Color },
    /// A dashed line from the lower to the upper edge.
    Rule { x: f64, color: Color, tip: String },
    /// A picture in a rectangle, with a thin frame.
    Picture { x: [f64; 2], y: [f64; 2], picture: Picture },
    /// A line of text; its place is that of the baseline.
    Text { at: (f64, f64), anchor: Anchor, color: Color, text: String },
}

/// A place that shows a text where a pointer rests on it.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    pub(crate) at: (f64, f64),
    pub(crate) tip: String,
}

/// A rectangle between two places on each axis.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    pub(crate) x: [f64; 2],
    pub(crate) y: [f64; 2],
    pub(crate) tip: String,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without gaps.
    Solid,
    /// As dots.
    Dotted,
    /// As dashes.
    Dashed,
}

impl Style {
    fn dashes(self) -> &'static str {
        match self {
            Self::Solid => "",
            Self::Dotted => "2 3",
            Self::Dashed => "5 4",
        }
    }
}

/// An entry of a legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    name: String,
    color: Color,
    key: Key,
}

/// What stands before the name of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A line.
    Line(Style),
    /// A square.
    Area,
    /// A dot.
    Dot,
    /// A vertical stroke of a width.
    Stroke(u8),
    /// The shades of a probability from 0 to 1.
    Shades,
}

impl Entry {
    /// Returns an entry.
    pub fn new(name: impl Into<String>, color: Color, key: Key) -> Self {
        Self { name: name.into(), color, key }
    }

    /// Returns lines in the colors of [`distinct`].
    pub(crate) fn lines<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Self> {
        names
            .enumerate()
            .map(|(place, name)| Self::new(name, distinct(place), Key::Line(Style::Solid)))
            .collect()
    }

    /// The width of the key, with room behind it.
    fn key_width(&self) -> f64 {
        match self.key {
            Key::Line(_) => 28.0,
            Key::Shades => SHADES + 6.0,
            Key::Area | Key::Dot | Key::Stroke(_) => 17.0,
        }
    }

    fn width(&self) -> f64 {
        LEGEND_MARK - 28.0 + self.key_width() + LETTER * self.name.chars().count() as f64
    }
}

impl Chart {
    /// Draws the chart as an SVG file.
    pub(crate) fn svg(&self) -> String {
        let (width, below) = self.size;
        let (mut drawing, head) = with_head(&self.title, &self.legend, width, below);
        for panel in &self.panels {
            panel.draw(&mut drawing, head);
        }
        if !self.note.is_empty() {
            drawing.text(MARGIN, head + below - NOTE, TEXT - 1.5, Anchor::Start, FAINT, &self.note);
        }
        drawing.finish(&self.title, &self.description)
    }
}

impl Panel {
    fn draw(&self, drawing: &mut Drawing, head: f64) {
        let area = Area { frame: Frame { top: self.frame.top + head, ..self.frame }, panel: self };
        area.heading(drawing);
        area.vertical_axis(drawing);
        area.horizontal_axis(drawing);
        for mark in &self.marks {
            area.mark(drawing, mark);
        }
    }
}

/// A panel at its place in the drawing.
struct Area<'a> {
    frame: Frame,
    panel: &'a Panel,
}

impl Area<'_> {
    fn bottom(&self) -> f64 {
        self.frame.top + self.frame.height
    }

    fn right(&self) -> f64 {
        self.frame.left + self.frame.width
    }

    fn across(&self, x: f64) -> Option<f64> {
        self.panel.x.scale.at(x).map(|t| self.frame.left + t * self.frame.width)
    }

    fn up(&self, y: f64) -> Option<f64> {
        self.panel.y.scale.at(y).map(|t| self.bottom() - t * self.frame.height)
    }

    /// Returns the pixel of a point; nothing for one without a place.
    fn pixel(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.across(x)?, self.up(y)?))
    }

    fn heading(&self, drawing: &mut Drawing) {
        let Panel { heading, legend, x, y, .. } = self.panel;
        let Frame { left, top, width, .. } = self.frame;
        let has_axes = !matches!((&x.ticks, &y.ticks), (Ticks::Hidden, Ticks::Hidden)) && !y.right;
        if has_axes {
            drawing.text(left - 42.0, top - 31.0, TITLE - 1.0, Anchor::Start, INK, heading);
        } else if !heading.is_empty() {
            drawing.text(left + width / 2.0, top - 8.0, TEXT, Anchor::Middle, INK, heading);
        }
        // A line per entry at the right edge: at the left is the name of the vertical axis.
        let widest = legend.iter().map(Entry::width).fold(0.0, f64::max);
        draw_legend(drawing, legend, (left + width - widest, top - 31.0), widest);
    }

    fn vertical_axis(&self, drawing: &mut Drawing) {
        let Axis { scale, name, ticks, guides, right } = &self.panel.y;
        let Frame { left, top, .. } = self.frame;
        drawing.text(left - 42.0, top - 10.0, TEXT, Anchor::Start, FAINT, name);
        for (value, label) in ticks.on(*scale) {
            let Some(y) = self.up(value) else { continue };
            if *guides {
                drawing.stroke((left, y), (self.right(), y), 1.0, RULE);
            }
            match right {
                false => drawing.text(left - 6.0, y + 4.5, TEXT, Anchor::End, INK, &label),
                true => {
                    drawing.stroke((self.right(), y), (self.right() + 3.0, y), 0.75, INK);
                    drawing.text(self.right() + 6.0, y + 4.5, TEXT, Anchor::Start, INK, &label);
                }
            }
        }
    }

    fn horizontal_axis(&self, drawing: &mut Drawing) {
        let Axis { scale, name, ticks, guides, .. } = &self.panel.x;
        let (left, right, bottom) = (self.frame.left, self.right(), self.bottom());
        drawing.text(right, bottom + 37.0, TEXT, Anchor::End, FAINT, name);
        if matches!(ticks, Ticks::Hidden) {
            return;
        }
        let mut free = f64::NEG_INFINITY;
        for (value, label) in ticks.on(*scale) {
            let Some(x) = self.across(value) else { continue };
            if *guides {
                drawing.stroke((x, self.frame.top), (x, bottom), 1.0, RULE);
            }
            drawing.stroke((x, bottom), (x, bottom + 4.0), 0.75, INK);
            let half = LETTER * label.chars().count() as f64 / 2.0;
            if x - half >= free {
                drawing.text(x, bottom + 18.0, TEXT, Anchor::Middle, INK, &label);
                free = x + half + 4.0;
            }
        }
        drawing.line((left, bottom), (right, bottom));
    }

    fn mark(&self, drawing: &mut Drawing, mark: &Mark) {
        let pixels = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            points.iter().filter_map(|&point| self.pixel(point)).collect()
        };
        match mark {
            Mark::Line { points, color, style } => {
                drawing.polyline(&pixels(points), *color, style.dashes());
            }
            Mark::Segment { from, to, color, width } => {
                if let Some((from, to)) = self.pixel(*from).zip(self.pixel(*to)) {
                    drawing.stroke(from, to, *width, *color);
                }
            }
            Mark::Band { edges, color } => {
                let lower = edges.iter().filter_map(|&(x, low, _)| self.pixel((x, low)));
                let upper = edges.iter().rev().filter_map(|&(x, _, high)| self.pixel((x, high)));
                drawing.area(&lower.chain(upper).collect::<Vec<_>>(), *color);
            }
            Mark::Dots { points, radius, color } => {
                for Spot { at, tip } in points {
                    self.pixel(*at).into_iter().for_each(|at| drawing.dot(at, *radius, *color, 1.0, tip));
                }
            }
            Mark::FaintDots { points, radius, color } => {
                pixels(points).into_iter().for_each(|at| drawing.dot(at, *radius, *color, 0.45, ""));
            }
            Mark::Tips(spots) => {
                for Spot { at, tip } in spots {
                    self.pixel(*at).into_iter().for_each(|at| drawing.unseen_dot(at, 5.0, tip));
                }
            }
            Mark::Strokes { points, height, width, color } => {
                for (x, y) in pixels(points) {
                    drawing.stroke((x, y - height / 2.0), (x, y + height / 2.0), *width, *color);
                }
            }
            Mark::Bars { bars, color, opacity } => {
                for Bar { x, y, tip } in bars {
                    let Some((first, second)) = self.pixel((x[0], y[0])).zip(self.pixel((x[1], y[1]))) else {
                        continue;
                    };
                    let (left, top) = (first.0.min(second.0) + 0.5, first.1.min(second.1));
                    let width = ((second.0 - first.0).abs() - 1.0).max(0.0);
                    let size = (width, (second.1 - first.1).abs());
                    drawing.bar((left, top), size, *color, *opacity, tip);
                }
            }
            Mark::ErrorBars { bars, color } => {
                for &(x, low, high) in bars {
                    let Some(((x, low), (_, high))) = self.pixel((x, low)).zip(self.pixel((x, high))) else {
                        continue;
                    };
                    drawing.stroke((x, low), (x, high), 1.4, *color);
                    for y in [low, high] {
                        drawing.stroke((x - CAP, y), (x + CAP, y), 1.4, *color);
                    }
                }
            }
            Mark::Rule { x, color, tip } => {
                if let Some(x) = self.across(*x) {
                    drawing.rule(x, [self.frame.top, self.bottom()], *color, tip);
                }
            }
            Mark::Picture { x, y, picture } => {
                if let Some((first, second)) = self.pixel((x[0], y[1])).zip(self.pixel((x[1], y[0]))) {
                    let (width, height) = (second.0 - first.0, second.1 - first.1);
                    drawing.picture(first.0, first.1, width, height, &picture.data_uri());
                    drawing.frame(first.0, first.1, width, height);
                }
            }
            Mark::Text { at, anchor, color, text } => {
                if let Some((x, y)) = self.pixel(*at) {
                    drawing.text(x, y, TEXT, *anchor, *color, text);
                }
            }
        }
    }
}

impl Ticks {
    /// Returns the values and their labels.
    fn on(&self, scale: Scale) -> Vec<(f64, String)> {
        let round = |keep: fn(f64) -> bool| {
            scale.ticks().into_iter().filter(|value| keep(*value)).map(|x| (x, tick_label(x))).collect()
        };
        match self {
            Self::Hidden => vec![],
            Self::Round => round(|_| true),
            // Few steps leave no whole numbers that are round.
            Self::Whole if scale.is_long() => round(|value| value.fract() == 0.0),
            Self::Whole => round(|_| true),
            Self::At(ticks) => ticks.clone(),
        }
    }
}

/// Draws a scale of colors from 0 at the bottom to 1, with labels at its right.
pub(crate) fn color_bar(
    frame: Frame,
    heading: &str,
    ticks: &[(f64, &str)],
    color: impl Fn(f64) -> Color,
) -> Panel {
    const STEPS: usize = 64;
    let step = |i: usize| 1.0 - (i as f32 + 0.5) / STEPS as f32;
    let steps: Vec<f32> = (0..STEPS).map(step).collect();
    let picture = Picture::colored(&steps, 1, |t| color(f64::from(t)), 1);
    let ticks = Ticks::At(ticks.iter().map(|(t, label)| (*t, (*label).to_owned())).collect());
    Panel {
        frame,
        heading: heading.to_owned(),
        y: Axis { ticks, right: true, ..Axis::default() },
        marks: vec![Mark::Picture { x: [0.0, 1.0], y: [0.0, 1.0], picture }],
        ..Panel::default()
    }
}

/// Begins a drawing with a title and a legend, with room for what is `below`; returns where that begins.
pub(super) fn with_head(title: &str, legend: &[Entry], width: f64, below: f64) -> (Drawing, f64) {
    let room = width - 2.0 * MARGIN;
    let head = HEAD + LEGEND_LINE * legend_lines(legend, room) as f64;
    let mut drawing = Drawing::new(width, head + below);
    // A title that is too long for the figure becomes smaller.
    let size = (TITLE * room / (TITLE_LETTER * title.chars().count() as f64)).clamp(0.6 * TITLE, TITLE);
    drawing.text(MARGIN, 24.0, size, Anchor::Start, INK, title);
    draw_legend(&mut drawing, legend, (MARGIN, HEAD + 12.0), room);
    (drawing, head)
}

/// Returns the lines that a legend takes in a width.
fn legend_lines(entries: &[Entry], width: f64) -> usize {
    legend_places(entries, width).last().map_or(0, |(line, _)| line + 1)
}

/// Draws a legend from the left, in as many lines as it needs.
fn draw_legend(drawing: &mut Drawing, entries: &[Entry], (left, top): (f64, f64), width: f64) {
    for (entry, (line, aside)) in entries.iter().zip(legend_places(entries, width)) {
        let (x, y) = (left + aside, top + LEGEND_LINE * line as f64);
        match entry.key {
            Key::Line(style) => {
                let ends = [(x, y - 4.5), (x + 22.0, y - 4.5)];
                let width = if style == Style::Solid { 2.5 } else { 1.4 };
                drawing.dashed_stroke(ends[0], ends[1], width, entry.color, style.dashes());
            }
            Key::Area => drawing.rectangle(x, y - 10.5, 12.0, 12.0, entry.color),
            Key::Dot => drawing.dot((x + 6.0, y - 4.5), 3.5, entry.color, 1.0, ""),
            Key::Stroke(width) => {
                drawing.stroke((x + 6.0, y - 12.0), (x + 6.0, y + 3.0), f64::from(width), entry.color);
            }
            Key::Shades => {
                const STEPS: usize = 24;
                let step = SHADES / STEPS as f64;
                for i in 0..STEPS {
                    let shade = probability((i as f64 + 0.5) / STEPS as f64);
                    drawing.rectangle(x + i as f64 * step, y - 10.5, step, 12.0, shade);
                }
            }
        }
        drawing.text(x + entry.key_width(), y, TEXT, Anchor::Start, INK, &entry.name);
    }
}

/// Returns the line and the distance from the left of each entry.
fn legend_places(entries: &[Entry], width: f64) -> Vec<(usize, f64)> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::png_from_svg;

    #[test]
    fn a_legend_breaks_where_there_is_no_room() {
        let entries = Entry::lines(["a", "a long name of a network", "b"].into_iter());
        assert_eq!((legend_lines(&entries, 1000.0), legend_lines(&entries, 230.0)), (1, 3));
        assert_eq!(legend_lines(&[], 100.0), 0);
    }

    #[test]
    fn every_mark_is_drawn_and_wrong_numbers_are_left_out() {
        let color = Color(1, 2, 3);
        let points = vec![(0.0, 0.5), (f64::NAN, 0.1), (1.0, f64::INFINITY), (1.0, 0.2)];
        let spots: Vec<Spot> = points.iter().map(|&at| Spot { at, tip: format!("{} < 2", at.0) }).collect();
        let bar = |end| Bar { x: [0.0, end], y: [0.0, 0.5], tip: "a bar".to_owned() };
        let picture = Picture::gray(&[0.0, 1.0], 2, [0.0, 1.0], 1);
        let text = Mark::Text { at: (0.5, 0.5), anchor: Anchor::Middle, color, text: "words".to_owned() };
        let marks = vec![
            Mark::Line { points: points.clone(), color, style: Style::Dashed },
            Mark::Segment { from: (0.0, 0.0), to: (1.0, 1.0), color, width: 2.0 },
            Mark::Band { edges: vec![(0.0, 0.1, 0.2), (1.0, 0.1, f64::NAN)], color },
            Mark::Dots { points: spots.clone(), radius: 3.0, color },
            Mark::FaintDots { points: points.clone(), radius: 2.0, color },
            Mark::Tips(spots),
            Mark::Strokes { points, height: 8.0, width: 1.0, color },
            Mark::Bars { bars: vec![bar(0.5), bar(0.0)], color, opacity: 0.5 },
            Mark::ErrorBars { bars: vec![(0.5, 0.1, 0.9), (0.5, f64::NAN, 1.0)], color },
            Mark::Rule { x: 0.3, color, tip: "here".to_owned() },
            Mark::Picture { x: [0.0, 1.0], y: [0.0, 1.0], picture },
            text,
        ];
        let frame = Frame { left: 50.0, top: 40.0, width: 100.0, height: 80.0 };
        let axis = Axis { ticks: Ticks::Round, name: "value".to_owned(), guides: true, ..Axis::default() };
        let panel =
            Panel { frame, heading: "Panel".to_owned(), x: axis.clone(), y: axis, marks, ..Panel::default() };
        let panels = vec![panel];
        let chart = Chart { title: "A & B".to_owned(), panels, size: (200.0, 180.0), ..Chart::default() };
        let svg = chart.svg();
        for wrong in ["NaN", "inf", "=\"-"] {
            assert!(!svg.contains(wrong), "{wrong} in {svg}");
        }
        for (part, count) in [("<circle", 6), ("<polygon", 1), ("<image", 1), ("<title>0 &lt; 2</title>", 2)]
        {
            assert_eq!(svg.matches(part).count(), count, "{part} in {svg}");
        }
        for part in ["a bar", "here", "words", "A &amp; B", ">Panel<", ">value<"] {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        png_from_svg(&svg, 1.0).unwrap();
    }
}
