//! The figure of the toy problem: mean, covariance matrix and samples of both models.

use super::chart::{self, Chart, Frame, Mark, Panel, color_bar};
use super::picture::Picture;
use super::svg::{Anchor, Color, FAINT, INK, diverging, probability};
use ssn_core::{CoreError, LowRankNormal, Sampler, Steering};

/// How many samples a model shows, as in the paper.
pub const SAMPLES: usize = 14;

/// One model of the figure.
#[derive(Debug)]
pub struct ToyRow<'a> {
    /// The name above its row.
    pub title: String,
    /// A line of figures under the name.
    pub caption: String,
    /// The learned distribution, of one class.
    pub distribution: &'a LowRankNormal,
    /// The seed of the samples shown.
    pub seed: u64,
}

/// The height of one pixel of the toy line.
const CELL: usize = 9;
const STRIP_WIDTH: f64 = 22.0;
const STRIP_GAP: f64 = 5.0;
/// Left of the label maps, whose heading is wider than they are.
const MARGIN: f64 = 24.0;
/// Between two models, and below the last.
const BETWEEN: f64 = 16.0;
/// Between the parts of a row.
const GAP: f64 = 30.0;
const BAR_WIDTH: f64 = 12.0;
/// Right of a scale of colors, for its numbers.
const BAR_LABELS: f64 = 46.0;
/// Above a row, for its name and the names of its parts.
const HEADER: f64 = 66.0;

/// Draws a row for each model: the label maps that were learned from, mean, covariance and samples.
pub fn toy_figure(label_maps: &[Vec<f32>], models: &[ToyRow<'_>]) -> Result<String, CoreError> {
    let side = (label_maps.first().map_or(0, Vec::len) * CELL) as f64;
    let mut panels = vec![];
    let mut width = 0.0;
    for (place, model) in models.iter().enumerate() {
        let top = place as f64 * (HEADER + side + BETWEEN) + HEADER;
        let mut row = Row { left: MARGIN, top, side, panels: vec![] };
        row.add_model(label_maps, model)?;
        width = row.left;
        panels.append(&mut row.panels);
    }
    let chart = Chart {
        title: "Toy problem".to_owned(),
        description: "For each model: the two label maps, the mean, the covariance matrix of the logits and random samples."
            .to_owned(),
        panels,
        size: (width, models.len() as f64 * (HEADER + side + BETWEEN)),
        ..Chart::default()
    };
    Ok(chart.svg())
}

/// The parts of one model, from the left.
struct Row {
    /// Where the next part begins.
    left: f64,
    top: f64,
    side: f64,
    panels: Vec<Panel>,
}

impl Row {
    fn add_model(&mut self, label_maps: &[Vec<f32>], model: &ToyRow<'_>) -> Result<(), CoreError> {
        let top = self.top;
        let line = |y: f64, color: Color, text: &str| Mark::Text {
            at: (0.0, y),
            anchor: Anchor::Start,
            color,
            text: text.to_owned(),
        };
        self.panels.push(Panel {
            frame: Frame { left: chart::MARGIN, top: top - HEADER, width: 1.0, height: HEADER },
            marks: vec![line(0.73, INK, &model.title), line(0.47, FAINT, &model.caption)],
            ..Panel::default()
        });
        let distribution = model.distribution;
        self.add_strips("label maps", label_maps);
        let mean: Vec<f32> = distribution.mean().to_f32().into_iter().map(sigmoid).collect();
        self.add_strips("mean", &[mean]);
        self.add_covariance(distribution);
        let sampler = Sampler::new(distribution, model.seed, &Steering::default())?;
        self.add_strips("samples", &sampler.probabilities(0..SAMPLES as u64)?);
        self.add_bar(&[(0.0, "0"), (0.5, "0.5"), (1.0, "1")], probability);
        Ok(())
    }

    fn frame(&self, width: f64) -> Frame {
        Frame { left: self.left, top: self.top, width, height: self.side }
    }

    /// Adds lines of probabilities drawn downwards, each widened to a bar.
    fn add_strips(&mut self, heading: &str, strips: &[Vec<f32>]) {
        let pitch = STRIP_WIDTH + STRIP_GAP;
        let width = strips.len() as f64 * pitch - STRIP_GAP;
        let strip = |(place, values): (usize, &Vec<f32>)| Mark::Picture {
            x: [place as f64 * pitch / width, (place as f64 * pitch + STRIP_WIDTH) / width],
            y: [0.0, 1.0],
            picture: Picture::colored(values, 1, |p| probability(f64::from(p)), CELL),
        };
        self.panels.push(Panel {
            frame: self.frame(width),
            heading: heading.to_owned(),
            marks: strips.iter().enumerate().map(strip).collect(),
            ..Panel::default()
        });
        self.left += width + GAP;
    }

    /// Adds the matrix with its scale of colors, symmetric about zero.
    fn add_covariance(&mut self, distribution: &LowRankNormal) {
        let n = distribution.classes() * distribution.voxels();
        let values: Vec<f64> = (0..n * n).map(|i| distribution.covariance(i / n, i % n)).collect();
        let largest = values.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
        let shares: Vec<f32> = values.iter().map(|value| (value / largest) as f32).collect();
        let picture = Picture::colored(&shares, n, |x| diverging(f64::from(x)), CELL);
        self.panels.push(Panel {
            frame: self.frame(self.side),
            heading: "covariance of the logits".to_owned(),
            marks: vec![Mark::Picture { x: [0.0, 1.0], y: [0.0, 1.0], picture }],
            ..Panel::default()
        });
        self.left += self.side + 8.0;
        let (low, high) = (short_number(-largest), short_number(largest));
        self.add_bar(&[(0.0, low.as_str()), (0.5, "0"), (1.0, high.as_str())], |t| diverging(2.0 * t - 1.0));
        self.left += GAP - 8.0;
    }

    fn add_bar(&mut self, ticks: &[(f64, &str)], color: impl Fn(f64) -> Color) {
        self.panels.push(color_bar(self.frame(BAR_WIDTH), "", ticks, color));
        self.left += BAR_WIDTH + BAR_LABELS;
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
        let model = |title: &str| ToyRow {
            title: title.to_owned(),
            caption: "−0.70".to_owned(),
            distribution: &d,
            seed: 0,
        };
        let maps = [vec![0.0; n], vec![1.0; n]];
        let svg = toy_figure(&maps, &[model("Low-rank"), model("Diagonal")]).unwrap();
        // Label maps, mean, matrix and samples, and two scales of colors, of each model.
        assert_eq!(svg.matches("<image").count(), 2 * (2 + 1 + 1 + SAMPLES + 2));
        assert!(svg.contains("Low-rank") && svg.contains("Diagonal") && svg.contains("−4.1"));
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
