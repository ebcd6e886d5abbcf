//! Volumes of samples, with those of raters and of the prediction marked.

use ssn_core::BitPlanes;
use ssn_core::metrics::ClassGroup;

use crate::figures::svg::{Anchor, Drawing, FAINT, INK, PREDICTION, RULE, SAMPLE, marks, range, shown};
use crate::material::Measured;
use ssn_eval::predictions::Description;

/// The volumes of one class.
#[derive(Clone)]
struct Volumes {
    name: String,
    samples: Vec<f64>,
    raters: Vec<f64>,
    prediction: f64,
}

const WIDTH: f64 = 520.0;
const PANEL: f64 = 190.0;
const HEAD: f64 = 62.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 20.0;
/// Above the bars, for marks.
const ABOVE: f64 = 44.0;
const BELOW: f64 = 42.0;
const BINS: usize = 16;
/// Heights of the lines of raters.
const LEVELS: usize = 4;
/// Samples beyond so many times what is usual are counted, not drawn.
const FAR: f64 = 2.0;

/// Histograms of the volume of every foreground class.
pub(crate) fn volumes(about: &Description, measured: &Measured) -> String {
    let (unit, scale) = match (about.size[0], about.has_spacing()) {
        (1, _) => ("pixels", 1.0),
        (_, true) => ("ml", about.milliliters()),
        (_, false) => ("voxels", 1.0),
    };
    let groups = ClassGroup::each(about.classes.len());
    let classes: Vec<Volumes> = about.classes[1..]
        .iter()
        .zip(&groups)
        .map(|(name, group)| {
            let volume = |planes: &BitPlanes| group.volume(planes) as f64 * scale;
            Volumes {
                name: name.clone(),
                samples: measured.samples.iter().map(volume).collect(),
                raters: measured.raters.iter().map(volume).collect(),
                prediction: volume(&measured.prediction),
            }
        })
        .collect();
    draw(&format!("Volumes, {}", about.case), unit, &classes)
}

/// Draws a panel per class; volumes are in `unit`.
fn draw(title: &str, unit: &str, classes: &[Volumes]) -> String {
    let mut drawing = Drawing::new(WIDTH, HEAD + classes.len() as f64 * PANEL);
    drawing.text(12.0, 26.0, 16.0, Anchor::Start, INK, title);
    let y = 48.0;
    drawing.rectangle(LEFT, y - 10.0, 12.0, 12.0, SAMPLE);
    drawing.text(LEFT + 17.0, y, 12.0, Anchor::Start, INK, "samples");
    drawing.stroke((LEFT + 84.0, y - 11.0), (LEFT + 84.0, y + 3.0), 3.0, PREDICTION);
    drawing.text(LEFT + 92.0, y, 12.0, Anchor::Start, INK, "mean prediction");
    drawing.stroke((LEFT + 204.0, y - 11.0), (LEFT + 204.0, y + 3.0), 1.5, INK);
    drawing.text(LEFT + 212.0, y, 12.0, Anchor::Start, INK, "raters");
    for (i, class) in classes.iter().enumerate() {
        panel(&mut drawing, HEAD + i as f64 * PANEL, unit, class);
    }
    drawing
        .finish(title, &format!("Histograms of volumes of samples in {unit}; volumes of raters are marked."))
}

fn panel(drawing: &mut Drawing, top: f64, unit: &str, class: &Volumes) {
    let (floor, roof) = (top + PANEL - BELOW, top + ABOVE);
    let end = end(class);
    let all = class.samples.iter().chain(&class.raters).copied().chain([class.prediction]);
    let [low, high] = range(all.filter(|volume| *volume <= end));
    let low = if low < 0.35 * high { 0.0 } else { low };
    let inside: Vec<f64> = class.samples.iter().copied().filter(|volume| *volume <= end).collect();
    let across = |volume: f64| LEFT + (volume - low) / (high - low) * (WIDTH - LEFT - RIGHT);
    let mut counts = [0usize; BINS];
    for volume in &inside {
        let bin = ((volume - low) / (high - low) * BINS as f64) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let step = (WIDTH - LEFT - RIGHT) / BINS as f64;
    for (bin, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = (floor - roof) * count as f64 / most as f64;
        drawing.rectangle(LEFT + bin as f64 * step + 0.5, floor - height, step - 1.0, height, SAMPLE);
    }
    drawing.stroke((LEFT, floor), (WIDTH - RIGHT, floor), 1.0, INK);
    drawing.text(LEFT - 6.0, roof + 5.0, 12.0, Anchor::End, INK, &most.to_string());
    drawing.stroke((LEFT - 4.0, roof), (LEFT, roof), 1.0, INK);
    for x in marks(low, high) {
        drawing.stroke((across(x), floor), (across(x), floor + 4.0), 1.0, INK);
        drawing.text(across(x), floor + 18.0, 12.0, Anchor::Middle, INK, &shown(x));
    }
    drawing.text(12.0, floor + 34.0, 12.0, Anchor::Start, INK, &class.name);
    let unit = match class.samples.len() - inside.len() {
        0 => unit.to_owned(),
        1 => format!("{unit}; one sample has more"),
        more => format!("{unit}; {more} samples have more"),
    };
    drawing.text(WIDTH - RIGHT, floor + 34.0, 12.0, Anchor::End, FAINT, &unit);
    let x = across(class.prediction);
    drawing.stroke((x, roof - 8.0), (x, floor), 3.0, PREDICTION);
    // Of raters whose volumes are close, the line of the smaller one is longer, so that all numbers can be read.
    let mut order: Vec<usize> = (0..class.raters.len()).collect();
    order.sort_by(|&a, &b| class.raters[a].total_cmp(&class.raters[b]));
    let levels = order.len().min(LEVELS);
    for (place, &rater) in order.iter().enumerate() {
        let level = (levels - 1 - place % levels) as f64;
        let (x, y) = (across(class.raters[rater]), roof - 4.0 - 10.0 * level);
        drawing.stroke((x, y), (x, floor), 3.0, RULE);
        drawing.stroke((x, y), (x, floor), 1.5, INK);
        drawing.text(x + 3.0, y + 6.0, 11.0, Anchor::Start, INK, &rater.to_string());
    }
}

/// Where the axis ends: at the largest volume, unless a few samples are so large that nothing else could be seen.
fn end(class: &Volumes) -> f64 {
    let mut sorted = class.samples.clone();
    sorted.sort_by(f64::total_cmp);
    let most = sorted.get(sorted.len() * 4 / 5).copied().unwrap_or(0.0);
    let usual = class.raters.iter().copied().fold(most.max(class.prediction), f64::max);
    if usual > 0.0 { FAR * usual } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_counted_and_every_rater_marked() {
        let class = Volumes {
            name: "core".into(),
            samples: vec![1.0, 1.0, 1.0, 4.0],
            raters: vec![2.0, 5.0],
            prediction: 3.0,
        };
        let svg = draw("Volumes", "ml", std::slice::from_ref(&class));
        assert!(svg.contains(">3</text>"), "the highest bar");
        assert!(svg.contains(">0</text>") && svg.contains(">1</text>") && svg.contains(">core<"));
        // Two bars, the legend's, and the paper.
        assert_eq!(svg.matches("<rect").count(), 4);
        let one = Volumes { samples: vec![1.0, 1.0, 1.0, 1.0, 2.0, 1000.0], ..class.clone() };
        assert!(draw("Volumes", "ml", &[one]).contains("ml; one sample has more"));
        let same = Volumes { samples: vec![0.0; 3], raters: vec![], prediction: 0.0, ..class };
        let svg = draw("Volumes", "ml", &[same]);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        crate::figures::png_from_svg(&svg, 1.0).unwrap();
    }
}
