//! A small writer of SVG: the shapes and colors of our figures, and PNG of the same drawings.
//!
//! Colors can be told apart with any color vision and survive printing. PNG is rasterized with an embedded font, so that
//! it looks the same on every machine.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use resvg::{tiny_skia, usvg};
use ssn_core::labels::CLASS_COLORS;
use thiserror::Error;

/// An sRGB color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

impl Color {
    /// As SVG writes it.
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// The color at `t` in 0 … 1 on the way to `other`.
    pub fn towards(self, other: Self, t: f64) -> Self {
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * t).round() as u8;
        Self(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }
}

/// The colors of classes 1, 2, … of label maps.
pub const CLASSES: [Color; CLASS_COLORS.len()] = {
    let mut colors = [INK; CLASS_COLORS.len()];
    let mut place = 0;
    while place < colors.len() {
        let [red, green, blue] = CLASS_COLORS[place];
        colors[place] = Color(red, green, blue);
        place += 1;
    }
    colors
};

/// Text and axes.
pub const INK: Color = Color(0x22, 0x22, 0x22);
/// Secondary text.
pub const FAINT: Color = Color(0x66, 0x66, 0x66);
/// Lines that only guide the eye.
pub const RULE: Color = Color(0xd9, 0xd9, 0xd9);
/// The background of figures.
pub const PAPER: Color = Color(0xff, 0xff, 0xff);

/// The color of samples among others.
pub const SAMPLE: Color = CLASSES[6];
/// The color of the mean prediction among samples.
pub const PREDICTION: Color = CLASSES[5];

/// The color of the thing with a number among several in one figure. Dark ones first: yellow is hard to see on paper.
pub fn distinct(place: usize) -> Color {
    const ORDER: [usize; 6] = [6, 5, 3, 2, 1, 0];
    CLASSES[ORDER[place % ORDER.len()]]
}

/// The color of a class above 0.
pub fn class(label: u8) -> Color {
    CLASSES[usize::from(label.max(1) - 1) % CLASSES.len()]
}

const OFF: Color = Color(0xf3, 0xef, 0xe6);
const ON: Color = Color(0x14, 0x3d, 0x6b);
const NEGATIVE: Color = Color(0x4b, 0x2e, 0x83);
const ZERO: Color = Color(0xf7, 0xf7, 0xf7);
const POSITIVE: Color = Color(0xc8, 0x57, 0x00);

/// Returns the color of a probability in 0 … 1, from light to dark.
pub fn probability(p: f64) -> Color {
    OFF.towards(ON, p.clamp(0.0, 1.0))
}

/// Returns the color of a value in −1 … 1: purple below zero, orange above, near white at zero.
pub fn diverging(x: f64) -> Color {
    let end = if x < 0.0 { NEGATIVE } else { POSITIVE };
    ZERO.towards(end, x.abs().min(1.0))
}

/// Text as it stands in elements and in attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What neither XML nor HTML may hold.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The family that PNG rendering embeds; other viewers fall back to their sans-serif.
pub const FONT_FAMILY: &str = "Noto Sans";

/// Where a text stands relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing under construction; lengths are pixels.
#[derive(Debug)]
pub struct Drawing {
    width: f64,
    height: f64,
    body: String,
}

impl Drawing {
    /// Begins a drawing on white paper.
    pub fn new(width: f64, height: f64) -> Self {
        let mut drawing = Self { width, height, body: String::new() };
        drawing.rectangle(0.0, 0.0, width, height, PAPER);
        drawing
    }

    /// Adds a filled rectangle without a border. Neighbors share exact edges, so no seam shows between them.
    pub fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, fill: Color) {
        let fill = fill.hex();
        self.element(format_args!(
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" shape-rendering="crispEdges"/>"#
        ));
    }

    /// Adds a rectangle that shows a text where a pointer rests on it.
    pub fn bar(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        fill: Color,
        opacity: f64,
        tip: &str,
    ) {
        let (fill, opacity, tip) = (fill.hex(), opacity_of(opacity), title(tip));
        self.element(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{fill}"{opacity}>{tip}</rect>"#
        ));
    }

    /// Adds a picture as a data address, its pixels enlarged without blurring.
    pub fn picture(&mut self, x: f64, y: f64, width: f64, height: f64, data: &str) {
        self.element(format_args!(
            r#"<image x="{x}" y="{y}" width="{width}" height="{height}" image-rendering="optimizeSpeed" preserveAspectRatio="none" href="{data}"/>"#
        ));
    }

    /// Adds the outline of a rectangle.
    pub fn frame(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let ink = INK.hex();
        self.element(format_args!(
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="{ink}" stroke-width="0.75"/>"#
        ));
    }

    /// Adds a thin straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.stroke(from, to, 0.75, INK);
    }

    /// Adds a straight line of a color and a width.
    pub fn stroke(&mut self, from: (f64, f64), to: (f64, f64), width: f64, color: Color) {
        self.dashed_stroke(from, to, width, color, "");
    }

    /// Adds a straight line with gaps, as SVG writes them.
    pub fn dashed_stroke(
        &mut self,
        from: (f64, f64),
        to: (f64, f64),
        width: f64,
        color: Color,
        dashes: &str,
    ) {
        let ((x1, y1), (x2, y2), color, dashes) = (from, to, color.hex(), dash_array(dashes));
        self.element(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{color}" stroke-width="{width}"{dashes}/>"#
        ));
    }

    /// Adds a vertical dashed line that shows a text where a pointer rests on it.
    pub fn rule(&mut self, x: f64, [top, bottom]: [f64; 2], color: Color, tip: &str) {
        let (stroke, tip) = (color.hex(), title(tip));
        self.element(format_args!(
            r#"<line x1="{x:.1}" y1="{top:.1}" x2="{x:.1}" y2="{bottom:.1}" stroke="{stroke}" stroke-width="1.4" stroke-dasharray="5 4">{tip}</line>"#
        ));
    }

    /// Adds a line through points, with gaps as SVG writes them.
    pub fn polyline(&mut self, points: &[(f64, f64)], color: Color, dashes: &str) {
        let (points, stroke, dashes) = (places(points), color.hex(), dash_array(dashes));
        self.element(format_args!(
            r#"<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="1.4" stroke-linejoin="round"{dashes}/>"#
        ));
    }

    /// Adds a faint area with these corners.
    pub fn area(&mut self, corners: &[(f64, f64)], color: Color) {
        let (points, fill) = (places(corners), color.hex());
        self.element(format_args!(
            r#"<polygon points="{points}" fill="{fill}" fill-opacity="0.18" stroke="none"/>"#
        ));
    }

    /// Adds a dot that shows a text where a pointer rests on it.
    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, fill: Color, opacity: f64, tip: &str) {
        let (fill, opacity, tip) = (fill.hex(), opacity_of(opacity), title(tip));
        self.element(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}"{opacity}>{tip}</circle>"#
        ));
    }

    /// Adds a place that cannot be seen, but shows a text where a pointer rests on it.
    pub fn unseen_dot(&mut self, (x, y): (f64, f64), radius: f64, tip: &str) {
        let tip = title(tip);
        self.element(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="none" pointer-events="all">{tip}</circle>"#
        ));
    }

    /// One line of text; `y` is its baseline.
    pub fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, color: Color, text: &str) {
        if text.is_empty() {
            return;
        }
        // A tenth of a pixel is enough.
        let [x, y] = [x, y].map(|place| (10.0 * place).round() / 10.0);
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (fill, text) = (color.hex(), escape(text));
        self.element(format_args!(
            r#"<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{text}</text>"#
        ));
    }

    /// Returns the file. `description` is read out where the picture cannot be seen.
    pub fn finish(self, title: &str, description: &str) -> String {
        let Self { width, height, body } = self;
        let (title, description) = (escape(title), escape(description));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"'{FONT_FAMILY}', sans-serif\" role=\"img\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n{body}</svg>\n"
        )
    }

    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// Writes the text of an element where a pointer rests on it; none if it is empty.
fn title(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) }
}

fn opacity_of(opacity: f64) -> String {
    if opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() }
}

fn dash_array(dashes: &str) -> String {
    if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") }
}

fn places(points: &[(f64, f64)]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    points.join(" ")
}

/// Writes a number with as few digits as it needs.
pub(crate) fn short_number(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 1e-3 => format!("{value:.3}"),
        _ => format!("{value:.0e}"),
    };
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.replace('-', "−")
}

static FONT: &[u8] = include_bytes!("../../assets/NotoSans-subset.ttf");

static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FONT_FAMILY);
    Arc::new(fonts)
});

/// A drawing that could not be rasterized.
#[derive(Debug, Error)]
#[error("cannot rasterize the figure: {0}")]
pub struct RasterError(String);

/// The drawing as a PNG file, `scale` pixels for each of its own.
pub fn png_from_svg(svg: &str, scale: f32) -> Result<Vec<u8>, RasterError> {
    let error = |message: String| RasterError(message);
    let options = usvg::Options { fontdb: FONTS.clone(), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| error(e.to_string()))?;
    let size = tree.size().to_int_size().scale_by(scale).ok_or_else(|| error("it has no size".into()))?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height())
        .ok_or_else(|| error(format!("{} × {} pixels are too many", size.width(), size.height())))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| error(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_closes_an_attribute_or_opens_an_element() {
        assert_eq!(escape("a < b & \"c\" > 'd'\n"), "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;\n");
        assert_eq!(escape("\u{0}\u{1b}[31m"), "\u{fffd}\u{fffd}[31m");
    }

    #[test]
    fn numbers_have_the_digits_they_need() {
        let values = [0.0, 20.0, 1500.0, 0.25, -1.5, 0.001, 0.0005];
        assert_eq!(values.map(short_number), ["0", "20", "1500", "0.25", "−1.5", "0.001", "5e−4"]);
    }

    /// Every sign beyond ASCII that figures use has a glyph of its own in the embedded font.
    #[test]
    fn every_sign_leaves_ink_on_the_paper() {
        let picture = |text: &str| {
            let mut drawing = Drawing::new(20.0, 20.0);
            drawing.text(2.0, 15.0, 12.0, Anchor::Start, INK, text);
            png_from_svg(&drawing.finish("t", "d"), 1.0).unwrap()
        };
        let blank = picture("");
        assert!(blank.starts_with(b"\x89PNG"));
        for sign in ["0", "-", "−", "±", "×", "·", "–", "σ", "η", "μ", "²", "⁵", "…"] {
            assert!(picture(sign) != blank, "{sign} is missing");
        }
    }

    #[test]
    fn a_broken_drawing_is_an_error() {
        assert!(png_from_svg("<svg", 1.0).is_err());
    }
}
