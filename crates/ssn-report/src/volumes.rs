//! Volumes of samples, with those of raters and of the prediction marked.

use ssn_core::BitPlanes;
use ssn_core::metrics::ClassGroup;

use crate::figures::chart::{Axis, Bar, Chart, Entry, Frame, Key, Mark, Panel, Ticks};
use crate::figures::scale::Scale;
use crate::figures::svg::{Anchor, INK, PAPER, PREDICTION, SAMPLE};
use crate::material::CaseDistances;
use ssn_eval::predictions::CaseDescription;

/// The volumes of one class.
#[derive(Clone)]
struct Volumes {
    name: String,
    samples: Vec<f64>,
    raters: Vec<f64>,
    prediction: f64,
}

const WIDTH: f64 = 500.0;
/// The height of a panel, and of what is above and below its axes.
const PANEL: f64 = 200.0;
const ABOVE: f64 = 30.0;
const BELOW: f64 = 46.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 20.0;
const BINS: usize = 16;
/// The height of the highest bar, in a frame of height 1: the rest is for the numbers of raters.
const BARS: f64 = 0.66;
/// Heights of the lines of raters.
const LEVELS: usize = 4;
/// Samples beyond so many times what is usual are counted, not drawn.
const FAR: f64 = 2.0;

/// Histograms of the volume of every foreground class.
pub(crate) fn volumes(about: &CaseDescription, measured: &CaseDistances) -> String {
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
    let frame = |place: usize| Frame {
        left: LEFT,
        top: place as f64 * PANEL + ABOVE,
        width: WIDTH - LEFT - RIGHT,
        height: PANEL - ABOVE - BELOW,
    };
    let chart = Chart {
        title: title.to_owned(),
        description: format!("Histograms of volumes of samples in {unit}; volumes of raters are marked."),
        legend: vec![
            Entry::new("samples", SAMPLE, Key::Area),
            Entry::new("mean prediction", PREDICTION, Key::Stroke(3)),
            Entry::new("raters", INK, Key::Stroke(2)),
        ],
        panels: classes.iter().enumerate().map(|(i, class)| panel(frame(i), unit, class)).collect(),
        size: (WIDTH, classes.len() as f64 * PANEL),
        note: String::new(),
    };
    chart.svg()
}

fn panel(frame: Frame, unit: &str, class: &Volumes) -> Panel {
    let end = end(class);
    let inside: Vec<f64> = class.samples.iter().copied().filter(|volume| *volume <= end).collect();
    let all = inside.iter().chain(&class.raters).copied().chain([class.prediction]);
    let [low, high] = ends(all.filter(|volume| *volume <= end));
    let step = (high - low) / BINS as f64;
    let mut counts = [0usize; BINS];
    for volume in &inside {
        counts[(((volume - low) / step) as usize).min(BINS - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let bar = |(bin, &count): (usize, &usize)| Bar {
        x: [low + bin as f64 * step, low + (bin + 1) as f64 * step],
        y: [0.0, BARS * count as f64 / most as f64],
        tip: format!("{count}"),
    };
    let bars = counts.iter().enumerate().filter(|(_, count)| **count > 0).map(bar).collect();
    let prediction = class.prediction;
    let mut marks = vec![
        Mark::Bars { bars, color: SAMPLE, opacity: 1.0 },
        Mark::Segment { from: (prediction, 0.0), to: (prediction, 0.74), color: PREDICTION, width: 3.0 },
    ];
    // Of raters whose volumes are close, the line of the smaller one is longer, so that all numbers can be read.
    let mut order: Vec<usize> = (0..class.raters.len()).collect();
    order.sort_by(|&a, &b| class.raters[a].total_cmp(&class.raters[b]));
    let levels = order.len().min(LEVELS);
    for (place, &rater) in order.iter().enumerate() {
        let level = (levels - 1 - place % levels) as f64;
        let (volume, top) = (class.raters[rater], BARS + 0.07 + 0.09 * level);
        for (color, width) in [(PAPER, 3.0), (INK, 1.5)] {
            marks.push(Mark::Segment { from: (volume, 0.0), to: (volume, top), color, width });
        }
        let at = (volume + 0.006 * (high - low), top - 0.07);
        marks.push(Mark::Text { at, anchor: Anchor::Start, color: INK, text: rater.to_string() });
    }
    let unit = match class.samples.len() - inside.len() {
        0 => unit.to_owned(),
        1 => format!("{unit}; one sample has more"),
        more => format!("{unit}; {more} samples have more"),
    };
    Panel {
        frame,
        x: Axis { scale: Scale::between(low, high), name: unit, ticks: Ticks::Round, ..Axis::default() },
        y: Axis {
            name: class.name.clone(),
            ticks: Ticks::At(vec![(BARS, most.to_string())]),
            ..Axis::default()
        },
        marks,
        ..Panel::default()
    }
}

/// Returns the ends of the axis: from 0, unless all volumes are far from it.
fn ends(volumes: impl Iterator<Item = f64>) -> [f64; 2] {
    let [low, high] =
        volumes.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
    match (low.is_finite(), low < high) {
        (false, _) => [0.0, 1.0],
        (true, false) => [low - 0.5, low + 0.5],
        (true, true) => [if low < 0.35 * high { 0.0 } else { low }, high],
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
        assert_eq!(svg.matches("<rect").count(), 4, "{svg}");
        let one = Volumes { samples: vec![1.0, 1.0, 1.0, 1.0, 2.0, 1000.0], ..class.clone() };
        assert!(draw("Volumes", "ml", &[one]).contains("ml; one sample has more"));
        let same = Volumes { samples: vec![0.0; 3], raters: vec![], prediction: 0.0, ..class };
        let svg = draw("Volumes", "ml", &[same]);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        crate::figures::png_from_svg(&svg, 1.0).unwrap();
    }
}
