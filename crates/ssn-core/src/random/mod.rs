//! Random numbers that are a function of their address.
//!
//! Every normal number of the project is `normal(seed, stream, draw, index)`: no state, no order, the same on
//! every platform, with any number of threads, and in the browser. `docs/reference/sampling.md` specifies it
//! with test vectors; this module is that page in Rust.
//!
//! Words come from Philox4x32-10 (Salmon et al., SC 2011): four random words from a counter of four words and a key of
//! two. Normal numbers are Philox words through the Box–Muller transform in binary32.

mod elementary;

use elementary::{LN_2, cos_sin_eighth, ln_parts};
pub use elementary::{exp_nonpositive, ln_lanes};

use crate::simd::vectorized;

/// How many counters are worked on side by side. The loops over lanes have no dependencies, so that the
/// compiler turns them into vector instructions of whatever width the CPU has.
pub const LANES: usize = 16;

const ROUNDS: usize = 10;
const MULTIPLIER: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const LOW_HALF: u64 = 0xFFFF_FFFF;
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Four words for one counter.
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let words = philox_lanes::<1>(counter, key);
    words.map(|lanes| lanes[0])
}

/// Four words for each of `N` counters that differ in their first word: that of `lane` is `counter[0] + lane`.
///
/// A word lives in the lower half of 64 bits, whose upper half holds what previous products left there: a widening
/// multiplication ignores it, and no instruction is spent on packing and unpacking between rounds.
#[inline(always)]
fn philox_lanes<const N: usize>(counter: [u32; 4], key: [u32; 2]) -> [[u32; N]; 4] {
    let (mut a, mut b, mut c, mut d) = ([0u64; N], [0u64; N], [0u64; N], [0u64; N]);
    for lane in 0..N {
        a[lane] = u64::from(counter[0]) + lane as u64;
        b[lane] = u64::from(counter[1]);
        c[lane] = u64::from(counter[2]);
        d[lane] = u64::from(counter[3]);
    }
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        for lane in 0..N {
            let p0 = MULTIPLIER[0] * (a[lane] & LOW_HALF);
            let p1 = MULTIPLIER[1] * (c[lane] & LOW_HALF);
            a[lane] = (p1 >> 32) ^ b[lane] ^ u64::from(k0);
            b[lane] = p1;
            c[lane] = (p0 >> 32) ^ d[lane] ^ u64::from(k1);
            d[lane] = p0;
        }
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    let mut words = [[0u32; N]; 4];
    for lane in 0..N {
        words[0][lane] = a[lane] as u32;
        words[1][lane] = b[lane] as u32;
        words[2][lane] = c[lane] as u32;
        words[3][lane] = d[lane] as u32;
    }
    words
}

/// A seed for one purpose, so that noise, shuffles and splits that share a user's seed stay independent.
///
/// The two output words are those of Philox with the seed as key and `(purpose, index)` as counter.
pub fn derive_seed(seed: u64, purpose: u32, index: u64) -> u64 {
    let words = philox4x32([purpose, DERIVE_TAG, low(index), high(index)], [low(seed), high(seed)]);
    u64::from(words[0]) | u64::from(words[1]) << 32
}

/// The stream of the words that choose labels of independent categoricals.
pub const CATEGORICAL_STREAM: u32 = 0xFFFF_FFFD;

/// Second counter word of [`derive_seed`]; no stream of normals may use it.
const DERIVE_TAG: u32 = 0xFFFF_FFFE;

fn low(x: u64) -> u32 {
    x as u32
}

fn high(x: u64) -> u32 {
    (x >> 32) as u32
}

/// How many consecutive numbers of a stream are made together: four words from each of [`LANES`] counters.
pub const TILE: usize = 4 * LANES;

/// The stream of the rank noise. The noise of the diagonal uses the class as stream.
pub const RANK_STREAM: u32 = 0xFFFF_FFFF;

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

/// The four words of each of the counters `(16·tile + lane, stream, draw)`.
#[inline(always)]
fn tile_words(seed: u64, stream: u32, draw: u64, tile: u32) -> [[u32; LANES]; 4] {
    philox_lanes([tile * LANES as u32, stream, low(draw), high(draw)], [low(seed), high(seed)])
}

/// The numbers with indices `64·tile … 64·tile + 63` of a stream of one draw.
///
/// Number `16·j + lane` of the tile is normal `j` of the four that come from the counter
/// `(16·tile + lane, stream, draw)`: words 0 and 1 give normals 0 and 1, words 2 and 3 give 2 and 3.
#[inline(always)]
pub fn normal_tile(seed: u64, stream: u32, draw: u64, tile: u32, out: &mut [f32; TILE]) {
    let words = tile_words(seed, stream, draw, tile);
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
fn tiles_from(first: usize, out: &mut [f32]) -> impl Iterator<Item = (u32, usize, &mut [f32])> {
    let skipped = first % TILE;
    let (begin, rest) = out.split_at_mut(out.len().min((TILE - skipped) % TILE));
    let tile = (first / TILE) as u32;
    let whole = tile + u32::from(!begin.is_empty());
    let rest = rest.chunks_mut(TILE).zip(whole..).map(|(chunk, tile)| (tile, 0, chunk));
    Some((tile, skipped, begin)).into_iter().filter(|(.., part)| !part.is_empty()).chain(rest)
}

/// The words with indices `64·tile … 64·tile + 63` of a stream of one draw.
///
/// Word `16·j + lane` of the tile is word `j` of the four that come from the counter `(16·tile + lane, stream, draw)`.
#[inline(always)]
pub fn word_tile(seed: u64, stream: u32, draw: u64, tile: u32) -> [u32; TILE] {
    let words = tile_words(seed, stream, draw, tile);
    let mut out = [0; TILE];
    for j in 0..4 {
        out[j * LANES..(j + 1) * LANES].copy_from_slice(&words[j]);
    }
    out
}

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

    /// The known answers that the authors of Philox publish with their library.
    #[test]
    fn known_answers() {
        let all = u32::MAX;
        assert_eq!(philox4x32([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(philox4x32([all; 4], [all; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        assert_eq!(
            philox4x32([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }

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
        for (seed, stream, draw) in [(4, 1, 9), (3, 2, 9), (3, 1, 10), (3, 1, 9 + (1 << 32))] {
            let mut other = vec![0.0; 1000];
            fill_normals(seed, stream, draw, &mut other);
            assert!(other.iter().zip(&long).filter(|(a, b)| a == b).count() < 3);
        }
    }

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
        assert_ne!(all, kept(1, 3, 0.3, all.len()));
        assert_ne!(all, kept(2, 2, 0.3, all.len()));
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
        assert!(kept(1, 2, 1.0, 10_000).iter().all(|&x| x == 2.0));
        assert!(kept(1, 2, 0.0, 10_000).iter().all(|&x| x == 0.0));
    }

    #[test]
    fn derived_seeds_differ_by_purpose_and_index() {
        let seeds = [derive_seed(1, 0, 0), derive_seed(1, 1, 0), derive_seed(1, 0, 1), derive_seed(2, 0, 0)];
        for (i, a) in seeds.iter().enumerate() {
            assert!(seeds[i + 1..].iter().all(|b| a != b));
        }
    }
}
