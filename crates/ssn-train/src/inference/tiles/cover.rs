//! One axis of an image covered by tiles of one length.

use std::ops::Range;

/// A tile along one axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The first voxel of the tile in the image.
    pub start: usize,
    /// The first voxel that is used, counted from `start`.
    pub first: usize,
    /// How much each voxel that is used counts. Over all spans of an axis the weights of a voxel sum to 1.
    pub weights: Vec<f32>,
}

impl Span {
    /// The part of a tile that lies inside `wanted`; nothing if none of it does.
    fn within(wanted: &Range<usize>, start: usize, weights: &[f32]) -> Option<Self> {
        let from = start.max(wanted.start);
        let to = (start + weights.len()).min(wanted.end);
        (from < to).then(|| {
            let (first, last) = (from - start, to - start);
            Self { start, first, weights: weights[first..last].to_vec() }
        })
    }
}

/// Tiles side by side, the first at a multiple of `unit`; the last may reach beyond what is wanted.
pub fn side_by_side(wanted: Range<usize>, unit: usize, tile: usize) -> Vec<Span> {
    let starts = (wanted.start / unit * unit..wanted.end).step_by(tile);
    starts.filter_map(|start| Span::within(&wanted, start, &vec![1.0; tile])).collect()
}

/// Tiles of an axis of `length` that share at least the part `overlap` of themselves with the next, those of them
/// that touch what is wanted.
///
/// They are spread evenly and end with the axis; only a tile longer than the axis reaches beyond it. Weights fall
/// linearly from the middle of a tile to its ends.
pub fn overlapping(length: usize, tile: usize, overlap: f64, wanted: Range<usize>) -> Vec<Span> {
    let tent = |x: usize| (x + 1).min(tile - x) as f64;
    let starts = starts(length, tile, overlap);
    let mut total = vec![0.0; length.max(tile)];
    for start in &starts {
        for x in 0..tile {
            total[start + x] += tent(x);
        }
    }
    let span = |start: usize| {
        let weights: Vec<f32> = (0..tile).map(|x| (tent(x) / total[start + x]) as f32).collect();
        Span::within(&wanted, start, &weights)
    };
    starts.into_iter().filter_map(span).collect()
}

fn starts(length: usize, tile: usize, overlap: f64) -> Vec<usize> {
    let room = length.saturating_sub(tile);
    let step = ((tile as f64 * (1.0 - overlap)) as usize).max(1);
    let gaps = room.div_ceil(step);
    (0..=gaps).map(|i| (i * room + gaps / 2) / gaps.max(1)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The sum of the weights of every voxel of an axis, and how many tiles it is in.
    fn sums(length: usize, spans: &[Span]) -> Vec<(f64, usize)> {
        let mut sums = vec![(0.0, 0); length];
        for span in spans {
            for (x, &weight) in span.weights.iter().enumerate() {
                let (sum, count) = &mut sums[span.start + span.first + x];
                *sum += f64::from(weight);
                *count += 1;
            }
        }
        sums
    }

    proptest! {
        #[test]
        fn weights_sum_to_1_where_wanted_and_are_absent_elsewhere(
            length in 1..300usize,
            tile in 1..90usize,
            overlap in 0.0..0.9,
            from in 0.0..1.0,
            to in 0.0..1.0,
        ) {
            let from = (from * length as f64) as usize;
            let wanted = from..from + 1 + (to * (length - from - 1) as f64) as usize;
            let blended = overlapping(length, tile, overlap, wanted.clone());
            let beside = side_by_side(wanted.clone(), 1 + tile % 7, tile);
            for (spans, most) in [(&blended, usize::MAX), (&beside, 1)] {
                for (x, (sum, count)) in sums(length, spans).into_iter().enumerate() {
                    let expected = f64::from(u8::from(wanted.contains(&x)));
                    prop_assert!((sum - expected).abs() < 1e-6 && count <= most, "{x}: {sum}, {count} times");
                }
            }
        }

        #[test]
        fn tiles_stay_inside_and_overlap_by_what_is_asked(
            length in 1..300usize, tile in 1..90usize, overlap in 0.0..0.9,
        ) {
            let starts = starts(length, tile, overlap);
            prop_assert_eq!(starts[0], 0);
            prop_assert_eq!(starts[starts.len() - 1], length.saturating_sub(tile));
            for pair in starts.windows(2) {
                // Even spreading rounds to whole voxels; a step is at least one.
                let step = pair[1] - pair[0];
                prop_assert!(step >= 1 && step as f64 <= (tile as f64 * (1.0 - overlap)).max(1.0), "{starts:?}");
            }
        }
    }

    #[test]
    fn weights_fall_towards_the_ends_of_a_tile() {
        let spans = overlapping(12, 8, 0.5, 0..12);
        assert_eq!(spans.iter().map(|span| span.start).collect::<Vec<_>>(), [0, 4]);
        assert_eq!(spans[0].weights[..4], [1.0; 4]);
        assert_eq!(spans[0].weights[4..], [0.8, 0.6, 0.4, 0.2]);
    }

    #[test]
    fn what_is_not_wanted_is_cut_off() {
        assert_eq!(
            side_by_side(7..14, 3, 6),
            [
                Span { start: 6, first: 1, weights: vec![1.0; 5] },
                Span { start: 12, first: 0, weights: vec![1.0; 2] }
            ]
        );
        assert_eq!(overlapping(3, 8, 0.5, 0..3), [Span { start: 0, first: 0, weights: vec![1.0; 3] }]);
    }
}
