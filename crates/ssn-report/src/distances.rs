//! Distances between raters and samples as a heat map.

use ssn_core::metrics::PairwiseDistances;

use crate::figures::Picture;
use crate::figures::svg::{Anchor, Drawing, FAINT, INK, PAPER, probability};
use crate::material::Measured;

const SIDE: f64 = 380.0;
const LEFT: f64 = 74.0;
const TOP: f64 = 84.0;
const BAR: f64 = 14.0;

/// The heat map of distances, raters first; samples in an order in which neighbors are alike.
pub(crate) fn distances(id: &str, measured: &Measured) -> String {
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
    let cell = SIDE / count.max(1) as f64;
    let mut drawing = Drawing::new(LEFT + SIDE + 90.0, TOP + SIDE + 24.0);
    drawing.text(12.0, 26.0, 16.0, Anchor::Start, INK, title);
    let values: Vec<f32> = distances.iter().flatten().map(|&distance| distance as f32).collect();
    let cells = Picture::colored(&values, count, |x| probability(f64::from(x)), cell.ceil() as usize);
    drawing.picture(LEFT, TOP, SIDE, SIDE, &cells.data_uri());
    drawing.frame(LEFT, TOP, SIDE, SIDE);
    let border = raters as f64 * cell;
    let groups = [("raters", 0.0, border), ("samples", border, SIDE)];
    for (name, start, end) in groups.into_iter().filter(|(_, start, end)| end > start) {
        let middle = (start + end) / 2.0;
        drawing.text(LEFT - 8.0, TOP + middle + 4.0, 12.0, Anchor::End, INK, name);
        if name == "samples" || end - start > 40.0 {
            drawing.text(LEFT + middle, TOP - 8.0, 12.0, Anchor::Middle, INK, name);
        } else {
            drawing.text(LEFT, TOP - 24.0, 12.0, Anchor::Start, INK, name);
        }
    }
    if raters > 0 && raters < count {
        let (x, y) = (LEFT + border, TOP + border);
        for (from, to) in [((x, TOP), (x, TOP + SIDE)), ((LEFT, y), (LEFT + SIDE, y))] {
            drawing.stroke(from, to, 3.0, PAPER);
            drawing.stroke(from, to, 1.0, INK);
        }
    }
    bar(&mut drawing);
    drawing.finish(title, "Distances between raters and samples: light is close, dark is far.")
}

fn bar(drawing: &mut Drawing) {
    let x = LEFT + SIDE + 22.0;
    drawing.color_bar((x, TOP), (BAR, SIDE), 64, probability);
    for (distance, label) in [(0.0, "0"), (0.5, "0.5"), (1.0, "1")] {
        let y = TOP + (1.0 - distance) * SIDE;
        drawing.text(x + BAR + 6.0, y + 4.0, 12.0, Anchor::Start, INK, label);
    }
    drawing.text(x + BAR, TOP - 12.0, 12.0, Anchor::Middle, FAINT, "distance");
}

#[cfg(test)]
mod tests {
    use ssn_core::{BitPlanes, LabelMap};

    use super::*;

    #[test]
    fn every_pair_has_a_cell() {
        let distances = vec![vec![0.0, 0.5, 1.0], vec![0.5, 0.0, 0.25], vec![1.0, 0.25, 0.0]];
        let svg = draw("Distances", 1, &distances);
        // The scale, two frames and the paper.
        assert_eq!((svg.matches("<rect").count(), svg.matches("<image").count()), (64 + 2 + 1, 1));
        let png = crate::figures::png_from_svg(&svg, 1.0).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let width = reader.next_frame(&mut pixels).unwrap().width as usize;
        let at = |i: usize, j: usize| {
            let cell = SIDE / 3.0;
            let middle = |start: f64, k: usize| (start + (k as f64 + 0.4) * cell) as usize;
            let first = 4 * (middle(TOP, i) * width + middle(LEFT, j));
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
