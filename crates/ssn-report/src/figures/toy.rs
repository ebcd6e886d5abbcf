//! The figure of the toy problem: mean, covariance matrix and samples of both models.

use super::svg::{Anchor, Color, Drawing, FAINT, INK, probability, signed};
use ssn_core::{CoreError, LowRankNormal, Sampler, Steering};

/// How many samples a model shows, as in the paper.
pub const SAMPLES: usize = 14;

/// One model to show.
#[derive(Debug)]
pub struct Panel<'a> {
    /// The name above the panel.
    pub title: String,
    /// A line of figures under the name.
    pub caption: String,
    /// The learned distribution, of one class.
    pub distribution: &'a LowRankNormal,
    /// The seed of the samples shown.
    pub seed: u64,
}

/// Height of one pixel of the toy line.
const CELL: f64 = 9.0;
const STRIP_WIDTH: f64 = 22.0;
const STRIP_GAP: f64 = 5.0;
const MARGIN: f64 = 24.0;
const BAR_WIDTH: f64 = 12.0;
const HEADER: f64 = 62.0;
const PANEL_GAP: f64 = 30.0;

/// Draws the label maps that were learned from, and a panel for each model, one below the other.
pub fn toy_figure(label_maps: &[Vec<f32>], panels: &[Panel<'_>]) -> Result<String, CoreError> {
    let pixels = label_maps.first().map_or(0, Vec::len);
    let side = pixels as f64 * CELL;
    let layout = Layout::new(side, label_maps.len());
    let height = panels.len() as f64 * (side + HEADER + PANEL_GAP) + MARGIN;
    let mut drawing = Drawing::new(layout.width, height);
    for (i, panel) in panels.iter().enumerate() {
        let top = MARGIN + i as f64 * (side + HEADER + PANEL_GAP) + HEADER;
        draw_panel(&mut drawing, &layout, top, label_maps, panel)?;
    }
    Ok(drawing.finish(
        "Toy problem",
        "For each model: the two label maps, the mean, the covariance matrix of the logits and random samples.",
    ))
}

/// Horizontal places of the parts of a panel.
struct Layout {
    side: f64,
    maps: f64,
    mean: f64,
    covariance: f64,
    samples: f64,
    probability_bar: f64,
    width: f64,
}

impl Layout {
    fn new(side: f64, label_maps: usize) -> Self {
        let pitch = STRIP_WIDTH + STRIP_GAP;
        let maps = MARGIN;
        let mean = maps + label_maps as f64 * pitch + 22.0;
        let covariance = mean + pitch + 22.0;
        let samples = covariance + side + BAR_WIDTH + 72.0;
        let probability_bar = samples + SAMPLES as f64 * pitch + 8.0;
        Self {
            side,
            maps,
            mean,
            covariance,
            samples,
            probability_bar,
            width: probability_bar + BAR_WIDTH + 40.0,
        }
    }
}

fn draw_panel(
    drawing: &mut Drawing,
    layout: &Layout,
    top: f64,
    label_maps: &[Vec<f32>],
    panel: &Panel<'_>,
) -> Result<(), CoreError> {
    let pitch = STRIP_WIDTH + STRIP_GAP;
    drawing.text(MARGIN, top - 44.0, 15.0, Anchor::Start, INK, &panel.title);
    drawing.text(MARGIN, top - 27.0, 11.5, Anchor::Start, FAINT, &panel.caption);
    let heading = |drawing: &mut Drawing, x: f64, text: &str| {
        drawing.text(x, top - 7.0, 11.0, Anchor::Middle, INK, text);
    };

    heading(drawing, layout.maps + (label_maps.len() as f64 * pitch - STRIP_GAP) / 2.0, "label maps");
    for (i, map) in label_maps.iter().enumerate() {
        strip(drawing, layout.maps + i as f64 * pitch, top, map);
    }

    let distribution = panel.distribution;
    let mean = distribution.mean().to_f32();
    heading(drawing, layout.mean + STRIP_WIDTH / 2.0, "mean");
    strip(drawing, layout.mean, top, &mean.iter().map(|&x| sigmoid(x)).collect::<Vec<_>>());

    heading(drawing, layout.covariance + layout.side / 2.0, "covariance of the logits");
    draw_covariance(drawing, layout, top, distribution);

    heading(drawing, layout.samples + (SAMPLES as f64 * pitch - STRIP_GAP) / 2.0, "samples");
    let sampler = Sampler::new(distribution, panel.seed, &Steering::default())?;
    for (i, sample) in sampler.probabilities(0..SAMPLES as u64)?.iter().enumerate() {
        strip(drawing, layout.samples + i as f64 * pitch, top, sample);
    }
    let ticks = [(0.0, "0"), (0.5, "0.5"), (1.0, "1")];
    color_bar(drawing, (layout.probability_bar, top), layout.side, &ticks, probability);
    Ok(())
}

/// The matrix with its color bar, symmetric about zero.
fn draw_covariance(drawing: &mut Drawing, layout: &Layout, top: f64, distribution: &LowRankNormal) {
    let n = distribution.classes() * distribution.voxels();
    let values: Vec<f64> = (0..n * n).map(|i| distribution.covariance(i / n, i % n)).collect();
    let largest = values.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    for (i, value) in values.iter().enumerate() {
        let (row, column) = ((i / n) as f64, (i % n) as f64);
        let (x, y) = (layout.covariance + column * CELL, top + row * CELL);
        drawing.rectangle(x, y, CELL, CELL, signed(value / largest));
    }
    drawing.frame(layout.covariance, top, layout.side, layout.side);
    let (low, high) = (short_number(-largest), short_number(largest));
    let ticks = [(0.0, low.as_str()), (0.5, "0"), (1.0, high.as_str())];
    let at = (layout.covariance + layout.side + 8.0, top);
    color_bar(drawing, at, layout.side, &ticks, |t| signed(2.0 * t - 1.0));
}

/// A line of probabilities drawn downwards, each widened to a bar.
fn strip(drawing: &mut Drawing, x: f64, top: f64, probabilities: &[f32]) {
    for (i, &p) in probabilities.iter().enumerate() {
        drawing.rectangle(x, top + i as f64 * CELL, STRIP_WIDTH, CELL, probability(f64::from(p)));
    }
    drawing.frame(x, top, STRIP_WIDTH, probabilities.len() as f64 * CELL);
}

/// A vertical scale of colors with labels at places in 0 … 1, 0 at the bottom.
fn color_bar(
    drawing: &mut Drawing,
    (x, top): (f64, f64),
    height: f64,
    ticks: &[(f64, &str)],
    color: impl Fn(f64) -> Color,
) {
    drawing.color_bar((x, top), (BAR_WIDTH, height), 63, color);
    for &(t, label) in ticks {
        let y = top + (1.0 - t) * height;
        drawing.line((x + BAR_WIDTH, y), (x + BAR_WIDTH + 3.0, y));
        drawing.text(x + BAR_WIDTH + 6.0, y + 4.0, 10.0, Anchor::Start, INK, label);
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// Three significant digits, with a real minus sign, and a power of ten where there would be many zeros.
fn short_number(x: f64) -> String {
    if x.abs() >= 1e5 {
        return format!("{x:.2e}").replace('-', "−");
    }
    let digits = (2 - x.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{x:.digits$}").replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_holds_every_part() {
        let n = 6;
        let d = LowRankNormal::new(1, n, 1, vec![0.5f32; n], vec![0.1f32; n], vec![2.0f32; n]).unwrap();
        let panel = Panel { title: "Low-rank".into(), caption: "−0.70".into(), distribution: &d, seed: 0 };
        let maps = [vec![0.0; n], vec![1.0; n]];
        let svg = toy_figure(&maps, &[panel]).unwrap();
        // Paper, two label maps, mean, samples, matrix, two color bars; a frame around each part.
        let parts = 1 + (2 + 1 + SAMPLES) * (n + 1) + n * n + 1 + 2 * (63 + 1);
        assert_eq!(svg.matches("<rect").count(), parts);
        assert!(svg.contains("Low-rank") && svg.contains("−4.1"));
        crate::figures::svg::png_from_svg(&svg, 1.0).unwrap();
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(short_number(-1234.6), "−1235");
        assert_eq!(short_number(4.1), "4.10");
        assert_eq!(short_number(0.01234), "0.0123");
        assert_eq!(short_number(-279_461.0), "−2.79e5");
    }
}
