//! A small writer of SVG: the few shapes that our figures use.

use std::fmt::Write;

use crate::figures::color::{Color, INK, PAPER};
use crate::figures::escape::escape;
use crate::figures::picture::Picture;

/// The family that PNG rendering embeds; other viewers fall back to their sans-serif.
pub const FONT_FAMILY: &str = "Noto Sans";

/// Where a text stands relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Text starts at the point.
    Start,
    /// Text is centered on the point.
    Middle,
    /// Text ends at the point.
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
    /// An empty drawing on white paper.
    pub fn new(width: f64, height: f64) -> Self {
        let mut drawing = Self { width, height, body: String::new() };
        drawing.rectangle(0.0, 0.0, width, height, PAPER);
        drawing
    }

    /// A filled rectangle without border. Neighbors share exact edges, so no seam shows between them.
    pub fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, fill: Color) {
        let fill = fill.hex();
        self.element(format_args!(
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" shape-rendering="crispEdges"/>"#
        ));
    }

    /// A picture, its pixels enlarged without blurring.
    pub fn picture(&mut self, x: f64, y: f64, width: f64, height: f64, picture: &Picture) {
        let data = picture.data_uri();
        self.element(format_args!(
            r#"<image x="{x}" y="{y}" width="{width}" height="{height}" image-rendering="optimizeSpeed" preserveAspectRatio="none" href="{data}"/>"#
        ));
    }

    /// A thin border.
    pub fn frame(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let ink = INK.hex();
        self.element(format_args!(
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="{ink}" stroke-width="0.75"/>"#
        ));
    }

    /// A thin straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2), ink) = (from, to, INK.hex());
        self.element(format_args!(
            r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{ink}" stroke-width="0.75"/>"#
        ));
    }

    /// A line through points.
    pub fn curve(&mut self, points: &[(f64, f64)], color: Color) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (points, stroke) = (points.join(" "), color.hex());
        self.element(format_args!(
            r#"<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="1.4" stroke-linejoin="round"/>"#
        ));
    }

    /// A filled circle.
    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, fill: Color) {
        let fill = fill.hex();
        self.element(format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}"/>"#));
    }

    /// A filled circle through which others shine.
    pub fn faint_dot(&mut self, (x, y): (f64, f64), radius: f64, fill: Color) {
        let fill = fill.hex();
        self.element(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}" fill-opacity="0.45"/>"#
        ));
    }

    /// A straight line of a color and a width.
    pub fn stroke(&mut self, from: (f64, f64), to: (f64, f64), width: f64, color: Color) {
        let ((x1, y1), (x2, y2), color) = (from, to, color.hex());
        self.element(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{color}" stroke-width="{width}"/>"#
        ));
    }

    /// One line of text; `y` is its baseline.
    pub fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, color: Color, text: &str) {
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

    /// The finished file. `description` is read out where the picture cannot be seen.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut drawing = Drawing::new(10.0, 10.0);
        drawing.text(0.0, 0.0, 8.0, Anchor::Start, INK, "a < b & \"c\"");
        let svg = drawing.finish("<t>", "d");
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;") && svg.contains("&lt;t&gt;"));
    }
}
