//! From coefficients to samples: the inverse cosine transform of a block.
//!
//! The method is that of Loeffler, Ligtenberg and Moschytz (ICASSP 1989) with 12 multiplications, in integers
//! of 13 fractional bits with two more bits kept between the passes: what libraries do by default, so that
//! the samples are the same to the last bit.

/// Index, in rows, of the coefficients in the order in which files hold them (T.81, figure A.6).
pub const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,
    46, 53, 60, 61, 54, 47, 55, 62, 63,
];

const FRACTION: u32 = 13;
const BETWEEN: u32 = 2;

/// The samples of a block.
///
/// # Shapes
/// `coefficients` and `quantisation` `[8, 8]` in rows; the samples go to the first eight columns of eight
/// rows of `out`, which are `stride` apart.
pub fn inverse(coefficients: &[i16; 64], quantisation: &[u16; 64], out: &mut [u8], stride: usize) {
    if coefficients[1..].iter().all(|&c| c == 0) {
        // What both passes come to for an even block.
        let value = (i64::from(coefficients[0]) * i64::from(quantisation[0]) + 4) >> 3;
        (0..8).for_each(|row| out[row * stride..][..8].fill((value + 128).clamp(0, 255) as u8));
        return;
    }
    // Even absurd coefficients stay far from the end of 64 bits.
    let mut block = [0i64; 64];
    for i in 0..64 {
        block[i] = i64::from(coefficients[i]) * i64::from(quantisation[i]);
    }
    for column in 0..8 {
        let values = std::array::from_fn(|i| block[8 * i + column]);
        for (i, value) in pass(values, FRACTION - BETWEEN).into_iter().enumerate() {
            block[8 * i + column] = value;
        }
    }
    for row in 0..8 {
        let values = std::array::from_fn(|i| block[8 * row + i]);
        for (i, value) in pass(values, FRACTION + BETWEEN + 3).into_iter().enumerate() {
            out[row * stride + i] = (value + 128).clamp(0, 255) as u8;
        }
    }
}

/// One dimension; the results are rounded to `shift` bits less.
fn pass(x: [i64; 8], shift: u32) -> [i64; 8] {
    // The even part.
    let z = (x[2] + x[6]) * 4433;
    let t2 = z - x[6] * 15137;
    let t3 = z + x[2] * 6270;
    let t0 = (x[0] + x[4]) << FRACTION;
    let t1 = (x[0] - x[4]) << FRACTION;
    let even = [t0 + t3, t1 + t2, t1 - t2, t0 - t3];
    // The odd part.
    let z5 = (x[7] + x[3] + x[5] + x[1]) * 9633;
    let z1 = -(x[7] + x[1]) * 7373;
    let z2 = -(x[5] + x[3]) * 20995;
    let z3 = -(x[7] + x[3]) * 16069 + z5;
    let z4 = -(x[5] + x[1]) * 3196 + z5;
    let odd = [x[1] * 12299 + z1 + z4, x[3] * 25172 + z2 + z3, x[5] * 16819 + z2 + z4, x[7] * 2446 + z1 + z3];
    let round = 1 << (shift - 1);
    std::array::from_fn(|i| {
        let sum = if i < 4 { even[i] + odd[i] } else { even[7 - i] - odd[7 - i] };
        (sum + round) >> shift
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition (T.81, A.3.3).
    fn by_definition(coefficients: &[i16; 64], x: usize, y: usize) -> f64 {
        let mut sum = 0.0;
        for v in 0..8 {
            for u in 0..8 {
                let scale = |k: usize| if k == 0 { f64::sqrt(0.5) } else { 1.0 };
                let wave = |at: usize, k: usize| {
                    ((2 * at + 1) as f64 * k as f64 * std::f64::consts::PI / 16.0).cos()
                };
                sum += scale(u) * scale(v) * f64::from(coefficients[8 * v + u]) * wave(x, u) * wave(y, v);
            }
        }
        (sum / 4.0 + 128.0).clamp(0.0, 255.0)
    }

    #[test]
    fn the_transform_is_the_definition() {
        let mut state = 1u32;
        for _ in 0..50 {
            let coefficients: [i16; 64] = std::array::from_fn(|i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 16) as i16 / (160 * (1 + i as i16))
            });
            let mut out = [0; 64];
            inverse(&coefficients, &[1; 64], &mut out, 8);
            for i in 0..64 {
                let expected = by_definition(&coefficients, i % 8, i / 8);
                assert!((f64::from(out[i]) - expected).abs() < 0.75, "{} {expected}", out[i]);
            }
        }
    }

    #[test]
    fn the_short_way_for_even_blocks_is_exact() {
        for dc in -1500..1500i16 {
            let mut even = [0; 64];
            even[0] = dc;
            let mut out = [0; 64];
            inverse(&even, &[1; 64], &mut out, 8);
            let column = pass([i64::from(dc), 0, 0, 0, 0, 0, 0, 0], FRACTION - BETWEEN)[3];
            let value = pass([column, 0, 0, 0, 0, 0, 0, 0], FRACTION + BETWEEN + 3)[5];
            assert_eq!(out, [(value + 128).clamp(0, 255) as u8; 64]);
        }
    }

    #[test]
    fn absurd_coefficients_do_no_harm() {
        for value in [i16::MIN, i16::MAX] {
            inverse(&[value; 64], &[u16::MAX; 64], &mut [0; 64], 8);
        }
    }

    #[test]
    fn every_place_is_visited_once() {
        let mut places = ZIGZAG;
        places.sort_unstable();
        assert!(places.into_iter().eq(0..64));
    }
}
