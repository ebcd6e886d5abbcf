//! Random choices of what to keep, by address: dropout.

use super::normal::{TILE, tiles_from};
use super::words::word_tile;
use crate::simd::vectorized;

/// Fills `out` with `value` where number i of a stream and draw is kept, which has the given probability, and 0
/// elsewhere, for the numbers from `first` on.
///
/// Word i of the stream, in the order of [`word_tile`], keeps it if it is below probability · 2³², rounded.
pub fn fill_kept_from(
    seed: u64,
    (stream, draw): (u32, u64),
    first: usize,
    (probability, value): (f64, f32),
    out: &mut [f32],
) {
    let threshold = (probability.clamp(0.0, 1.0) * 4_294_967_296.0).round() as u64;
    // Certainty is beyond what a word can be below.
    let (threshold, always) = (threshold.min(u64::from(u32::MAX)) as u32, threshold > u64::from(u32::MAX));
    vectorized(
        #[inline(always)]
        || {
            for (tile, skipped, chunk) in tiles_from(first, out) {
                let words = word_tile(seed, stream, draw, tile);
                let mut kept = [0.0; TILE];
                for x in 0..TILE {
                    let keep = words[x] < threshold || always;
                    kept[x] = if keep { value } else { 0.0 };
                }
                chunk.copy_from_slice(&kept[skipped..skipped + chunk.len()]);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(seed: u64, draw: u64, probability: f64, count: usize) -> Vec<f32> {
        let mut out = vec![-1.0; count];
        fill_kept_from(seed, (3, draw), 0, (probability, 2.0), &mut out);
        out
    }

    #[test]
    fn choices_are_the_same_from_wherever_one_begins() {
        let all = kept(1, 2, 0.3, 3 * TILE + 9);
        for (first, count) in [(1, TILE), (TILE, 5), (2 * TILE - 3, 8)] {
            let mut part = vec![-1.0; count];
            fill_kept_from(1, (3, 2), first, (0.3, 2.0), &mut part);
            assert_eq!(part, all[first..first + count], "{count} from {first}");
        }
    }

    #[test]
    fn the_share_that_is_kept_is_the_probability() {
        for probability in [0.1, 0.5, 0.9] {
            let values = kept(1, 2, probability, 100_003);
            assert!(values.iter().all(|&x| x == 0.0 || x == 2.0));
            let share = values.iter().filter(|&&x| x != 0.0).count() as f64 / 100_003.0;
            // Standard deviation at most √(¼ / 100003) ≈ 0.0016.
            assert!((share - probability).abs() < 0.008, "{share} of {probability}");
        }
    }

    #[test]
    fn certainty_is_certain() {
        assert!(kept(1, 2, 1.0, 10_000).iter().all(|&x| x == 2.0));
        assert!(kept(1, 2, 0.0, 10_000).iter().all(|&x| x == 0.0));
    }

    #[test]
    fn choices_are_a_function_of_their_address() {
        assert_eq!(kept(1, 2, 0.5, 1000)[..100], kept(1, 2, 0.5, 100)[..]);
        assert_ne!(kept(1, 2, 0.5, 100), kept(1, 3, 0.5, 100));
        assert_ne!(kept(1, 2, 0.5, 100), kept(2, 2, 0.5, 100));
    }
}
