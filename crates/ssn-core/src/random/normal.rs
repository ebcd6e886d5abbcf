//! Standard normal numbers, by address: Philox words through the Box–Muller transform in binary32.

use super::elementary::{LN_2, cos_sin_eighth, ln_parts};
use super::philox::{LANES, philox_lanes};
use super::{high, low};
use crate::simd::vectorized;

/// How many consecutive numbers of a stream are made together: four words from each of [`LANES`] counters.
pub const TILE: usize = 4 * LANES;

/// The stream of the rank noise. The noise of the diagonal uses the class as stream.
pub const RANK_STREAM: u32 = 0xFFFF_FFFF;

/// 2⁻³¹.
const TWO_POW_MINUS_31: f32 = 1.0 / 2_147_483_648.0;

/// Two independent normal numbers from two random words.
///
/// The first word gives the radius: with `u` = (its upper 31 bits + ½)·2⁻³¹, r = √(−2 ln u). The second gives
/// the angle: its upper 2 bits the quadrant, the others the place in it.
#[inline(always)]
fn box_muller(radius_word: u32, angle_word: u32) -> (f32, f32) {
    let x = (radius_word >> 1) as i32 as f32 + 0.5;
    let (exponent, ln_mantissa) = ln_parts(x);
    let minus_ln_u = (31 - exponent) as f32 * LN_2 - ln_mantissa;
    let r = (minus_ln_u + minus_ln_u).sqrt();

    let t = (angle_word << 2) as i32 as f32 * TWO_POW_MINUS_31;
    let (cos, sin) = cos_sin_eighth(t);
    let quadrant = angle_word >> 30;
    let odd = quadrant & 1 == 1;
    let first = if odd { sin } else { cos };
    let second = if odd { cos } else { sin };
    let first_sign = ((quadrant + 1) & 2) << 30;
    let second_sign = (quadrant & 2) << 30;
    (r * f32::from_bits(first.to_bits() ^ first_sign), r * f32::from_bits(second.to_bits() ^ second_sign))
}

/// The numbers with indices `64·tile … 64·tile + 63` of a stream of one draw.
///
/// Number `16·j + lane` of the tile is normal `j` of the four that come from the counter
/// `(16·tile + lane, stream, draw)`: words 0 and 1 give normals 0 and 1, words 2 and 3 give 2 and 3.
#[inline(always)]
pub fn normal_tile(seed: u64, stream: u32, draw: u64, tile: u32, out: &mut [f32; TILE]) {
    let counter = [tile * LANES as u32, stream, low(draw), high(draw)];
    let words: [[u32; LANES]; 4] = philox_lanes(counter, [low(seed), high(seed)]);
    for pair in 0..2 {
        for lane in 0..LANES {
            let (first, second) = box_muller(words[2 * pair][lane], words[2 * pair + 1][lane]);
            out[2 * pair * LANES + lane] = first;
            out[(2 * pair + 1) * LANES + lane] = second;
        }
    }
}

/// The first `out.len()` numbers of a stream of one draw.
pub fn fill_normals(seed: u64, stream: u32, draw: u64, out: &mut [f32]) {
    fill_normals_from(seed, stream, draw, 0, out);
}

/// The numbers of a stream of one draw from number `first` on.
pub fn fill_normals_from(seed: u64, stream: u32, draw: u64, first: usize, out: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || {
            let mut numbers = [0.0; TILE];
            for (tile, skipped, chunk) in tiles_from(first, out) {
                normal_tile(seed, stream, draw, tile, &mut numbers);
                chunk.copy_from_slice(&numbers[skipped..skipped + chunk.len()]);
            }
        },
    );
}

/// The parts of `out` that lie in one tile each, if it begins at number `first` of a stream: the tile, how many of its
/// numbers come before, and the part.
pub(super) fn tiles_from(first: usize, out: &mut [f32]) -> impl Iterator<Item = (u32, usize, &mut [f32])> {
    let skipped = first % TILE;
    let (begin, rest) = out.split_at_mut(out.len().min((TILE - skipped) % TILE));
    let tile = (first / TILE) as u32;
    let whole = tile + u32::from(!begin.is_empty());
    let rest = rest.chunks_mut(TILE).zip(whole..).map(|(chunk, tile)| (tile, 0, chunk));
    Some((tile, skipped, begin)).into_iter().filter(|(.., part)| !part.is_empty()).chain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_same_from_wherever_one_begins() {
        let mut all = vec![0.0; 5 * TILE + 7];
        fill_normals(3, 1, 4, &mut all);
        for (first, count) in [(0, 10), (1, 3), (TILE - 1, 2), (TILE, TILE), (2 * TILE + 5, 2 * TILE), (7, 0)]
        {
            let mut part = vec![0.0; count];
            fill_normals_from(3, 1, 4, first, &mut part);
            assert_eq!(part, all[first..first + count], "{count} from {first}");
        }
    }

    #[test]
    fn box_muller_is_the_transform_it_claims_to_be() {
        let mut words = 12345u32;
        let mut next = || {
            words = words.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            words
        };
        for _ in 0..200_000 {
            let (a, b) = (next(), next());
            let u = (f64::from(a >> 1) + 0.5) / 2f64.powi(31);
            // The place in the quadrant is centered: −45° … 45° around the quadrant's axis.
            let place = f64::from((b << 2) as i32) / 2f64.powi(31);
            let angle = std::f64::consts::FRAC_PI_2 * (f64::from(b >> 30) + place / 2.0);
            let r = (-2.0 * u.ln()).sqrt();
            let (first, second) = box_muller(a, b);
            // Near u = 1 the radius is limited by the 24 bits to which u is rounded.
            let tolerance = 1.5e-6 * r.max(0.01) + 6e-8 / r.max(3e-4);
            assert!((f64::from(first) - r * angle.cos()).abs() < tolerance, "{a} {b}: {first}");
            assert!((f64::from(second) - r * angle.sin()).abs() < tolerance, "{a} {b}: {second}");
        }
    }

    #[test]
    fn extreme_words_give_finite_numbers() {
        for a in [0, 1, 2, u32::MAX, u32::MAX - 1, 1 << 31] {
            for b in [0, 1, u32::MAX, 1 << 30, 1 << 31, 3 << 30, (1 << 29) - 1, 1 << 29] {
                let (first, second) = box_muller(a, b);
                assert!(first.is_finite() && second.is_finite() && first.abs() < 6.7 && second.abs() < 6.7);
            }
        }
    }

    /// Moments and the largest distance to the normal distribution function (Kolmogorov–Smirnov) over
    /// 4 million numbers, with bounds of about five standard errors.
    #[test]
    fn numbers_are_standard_normal() {
        let n = 4_000_000usize;
        let mut numbers = vec![0.0f32; n];
        fill_normals(7, 0, 0, &mut numbers);
        let moment = |k: i32| numbers.iter().map(|&x| f64::from(x).powi(k)).sum::<f64>() / n as f64;
        let error = 5.0 / (n as f64).sqrt();
        assert!(moment(1).abs() < error);
        assert!((moment(2) - 1.0).abs() < error * 2f64.sqrt());
        assert!(moment(3).abs() < error * 15f64.sqrt());
        assert!((moment(4) - 3.0).abs() < error * 96f64.sqrt());
        let lag = numbers.windows(2).map(|w| f64::from(w[0]) * f64::from(w[1])).sum::<f64>() / n as f64;
        assert!(lag.abs() < error);

        // Shares below the quantiles 0.1 %, 2.5 %, 50 %, 97.5 %, 99.9 %.
        for (quantile, share) in
            [(-3.090_232, 0.001), (-1.959_964, 0.025), (0.0, 0.5), (1.959_964, 0.975), (3.090_232, 0.999)]
        {
            let below = numbers.iter().filter(|&&x| f64::from(x) < quantile).count() as f64 / n as f64;
            assert!((below - share).abs() < error * f64::sqrt(share * (1.0 - share)), "{quantile}: {below}");
        }
    }

    #[test]
    fn a_number_depends_on_its_address_alone() {
        let mut long = vec![0.0; 1000];
        fill_normals(3, 1, 9, &mut long);
        for length in [1, 63, 64, 65, 999] {
            let mut short = vec![0.0; length];
            fill_normals(3, 1, 9, &mut short);
            assert_eq!(short, long[..length]);
        }
        for (seed, stream, draw) in [(4, 1, 9), (3, 2, 9), (3, 1, 10), (3, 1, 9 + (1 << 32))] {
            let mut other = vec![0.0; 1000];
            fill_normals(seed, stream, draw, &mut other);
            assert!(other.iter().zip(&long).filter(|(a, b)| a == b).count() < 3);
        }
    }
}
