//! Distances between raters and samples as a heat map.

use ssn_core::metrics::PairwiseDistances;

use crate::figures::Picture;
use crate::figures::chart::{Axis, Chart, Frame, Mark, Panel, Ticks, color_bar};
use crate::figures::svg::{INK, PAPER, probability};
use crate::material::CaseDistances;

const SIDE: f64 = 336.0;
const LEFT: f64 = 74.0;
const TOP: f64 = 26.0;
const BELOW: f64 = 30.0;
const BAR: f64 = 14.0;
/// Between the heat map and its scale of colors.
const GAP: f64 = 30.0;

/// The heat map of distances, raters first; samples in an order in which neighbors are alike.
pub(crate) fn distances(id: &str, measured: &CaseDistances) -> String {
    let (distances, raters, order) = (&measured.distances, measured.raters.len(), chain(&measured.distances));
    let of_rater = |rater: usize| {
        let to_samples = order.iter().map(|&sample| distances.sample_to_raters(sample)[rater]);
        distances.rater_to_raters(rater).iter().copied().chain(to_samples).collect::<Vec<f64>>()
    };
    let of_sample = |&sample: &usize| {
        let to_raters = distances.sample_to_raters(sample)[..raters].iter().copied();
        let row = distances.sample_to_samples(sample);
        to_raters.chain(order.iter().map(|&other| row[other])).collect::<Vec<f64>>()
    };
    let rows: Vec<Vec<f64>> = (0..raters).map(of_rater).chain(order.iter().map(of_sample)).collect();
    draw(&format!("Distances, {id}"), raters, &rows)
}

/// All samples in an order in which neighbors are alike: from each to the nearest that is left.
fn chain(distances: &PairwiseDistances) -> Vec<usize> {
    let mut rest: Vec<usize> = (0..distances.samples()).collect();
    let to_raters = |sample: &usize| distances.sample_to_raters(*sample).iter().sum::<f64>();
    let mut next = rest.iter().copied().min_by(|a, b| to_raters(a).total_cmp(&to_raters(b)));
    let mut chain = vec![];
    while let Some(sample) = next {
        chain.push(sample);
        rest.retain(|other| *other != sample);
        let row = distances.sample_to_samples(sample);
        next = rest.iter().copied().min_by(|&a, &b| row[a].total_cmp(&row[b]));
    }
    chain
}

/// Draws distances in 0 … 1 between all of some raters and samples, raters first.
///
/// # Shapes
/// `distances` `[n + m, n + m]`, symmetric.
fn draw(title: &str, raters: usize, distances: &[Vec<f64>]) -> String {
    let count = distances.len();
    let zoom = (SIDE / count.max(1) as f64).ceil() as usize;
    let values: Vec<f32> = distances.iter().flatten().map(|&distance| distance as f32).collect();
    let picture = Picture::colored(&values, count, |x| probability(f64::from(x)), zoom);
    let mut marks = vec![Mark::Picture { x: [0.0, 1.0], y: [0.0, 1.0], picture }];
    let border = raters as f64 / count.max(1) as f64;
    if raters > 0 && raters < count {
        for (color, width) in [(PAPER, 3.0), (INK, 1.0)] {
            marks.push(Mark::Segment { from: (border, 0.0), to: (border, 1.0), color, width });
            marks.push(Mark::Segment { from: (0.0, 1.0 - border), to: (1.0, 1.0 - border), color, width });
        }
    }
    let groups = [("raters", 0.0, border), ("samples", border, 1.0)];
    let middles: Vec<(f64, String)> = groups
        .into_iter()
        .filter(|(_, start, end)| end > start)
        .map(|(name, start, end)| ((start + end) / 2.0, name.to_owned()))
        .collect();
    let from_top = middles.iter().map(|(middle, name)| (1.0 - middle, name.clone())).collect();
    let heat = Panel {
        frame: Frame { left: LEFT, top: TOP, width: SIDE, height: SIDE },
        x: Axis { ticks: Ticks::At(middles), ..Axis::default() },
        y: Axis { ticks: Ticks::At(from_top), ..Axis::default() },
        marks,
        ..Panel::default()
    };
    let bar = Frame { left: LEFT + SIDE + GAP, width: BAR, ..heat.frame };
    let chart = Chart {
        title: title.to_owned(),
        description: "Distances between raters and samples: light is close, dark is far.".to_owned(),
        panels: vec![heat, color_bar(bar, "distance", &[(0.0, "0"), (0.5, "0.5"), (1.0, "1")], probability)],
        size: (LEFT + SIDE + GAP + BAR + 46.0, TOP + SIDE + BELOW),
        ..Chart::default()
    };
    chart.svg()
}

#[cfg(test)]
mod tests {
    use ssn_core::{BitPlanes, LabelMap};

    use super::*;

    #[test]
    fn every_pair_has_a_cell() {
        let distances = vec![vec![0.0, 0.5, 1.0], vec![0.5, 0.0, 0.25], vec![1.0, 0.25, 0.0]];
        let svg = draw("Distances", 1, &distances);
        assert_eq!(svg.matches("<image").count(), 2, "the heat map and its scale");
        let png = crate::figures::png_from_svg(&svg, 1.0).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let width = reader.next_frame(&mut pixels).unwrap().width as usize;
        // The height of the title.
        const HEAD: f64 = 34.0;
        let at = |i: usize, j: usize| {
            let cell = SIDE / 3.0;
            let middle = |start: f64, k: usize| (start + (k as f64 + 0.4) * cell) as usize;
            let first = 4 * (middle(HEAD + TOP, i) * width + middle(LEFT, j));
            crate::figures::Color(pixels[first], pixels[first + 1], pixels[first + 2])
        };
        for (i, row) in distances.iter().enumerate() {
            for (j, &distance) in row.iter().enumerate() {
                assert_eq!(at(i, j), probability(distance), "{i} {j}");
            }
        }
        assert!(svg.contains(">raters<") && svg.contains(">samples<"));
        assert!(!draw("Distances", 0, &distances).contains(">raters<"));
    }
    #[test]
    fn neighbors_in_the_chain_are_alike() {
        // Masks of 1, 2, … voxels from the left: the more their sizes differ, the farther apart they are.
        let map =
            |n: usize| BitPlanes::new(&LabelMap::new((0..16).map(|i| u8::from(i < n)).collect(), 2).unwrap());
        let samples: Vec<BitPlanes> = [8, 1, 16, 7, 2].into_iter().map(map).collect();
        let distances = PairwiseDistances::new(&samples, &[map(16)]).unwrap();
        assert_eq!(chain(&distances), [2, 0, 3, 4, 1]);
    }
}
