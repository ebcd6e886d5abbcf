//! Logarithm, exponential, sine and cosine in binary32 by polynomials.
//!
//! They use nothing but integer operations and single additions, subtractions and multiplications, each
//! rounded to nearest: their results are the same bits on every platform, which those of a system's
//! mathematical library are not. Polynomials are evaluated by Horner's rule, highest coefficient first.
//! The coefficients are minimax fits; the tests state the errors.

/// The natural logarithm of 2, rounded to binary32.
pub(super) const LN_2: f32 = f32::from_bits(0x3f31_7218);

/// Bits of √½ in binary32: the lower end of the interval to which a logarithm's argument is reduced.
const SQRT_HALF_BITS: u32 = 0x3f35_04f3;

/// ln(1 + s) ≈ s + s²·q(s) on √½ − 1 … √2 − 1.
const LN: [u32; 8] =
    [0xbeff_fffa, 0x3eaa_ab73, 0xbe80_0362, 0x3e4c_6d34, 0xbe29_7db6, 0x3e18_6771, 0xbe13_b9ce, 0x3db7_ea59];
/// sin(t·π/4) ≈ t·q(t²) on −1 … 1.
const SIN: [u32; 4] = [0x3f49_0fdb, 0xbda5_5ddd, 0x3b23_2f63, 0xb816_cddc];
/// cos(t·π/4) ≈ 1 + t²·q(t²) on −1 … 1.
const COS: [u32; 3] = [0xbe9d_e9d1, 0x3c81_d8b4, 0xb9a7_5576];
/// exp(x) ≈ 1 + x + x²·q(x) on −½ ln 2 … ½ ln 2.
const EXP: [u32; 5] = [0x3f00_0000, 0x3e2a_aa48, 0x3d2a_aa2f, 0x3c09_1d9c, 0x3ab6_d9fb];

/// Below this, `exp_nonpositive` gives 0: the result would be subnormal.
const EXP_UNDERFLOW: f32 = -87.0;
/// 1 / ln 2 rounded to binary32.
const LOG2_E: f32 = f32::from_bits(0x3fb8_aa3b);
/// ln 2 in two parts; multiples of the first by small integers are exact.
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = f32::from_bits(0xb95e_8083);
/// 1.5·2²³: adding and subtracting it rounds a small number to the nearest integer, ties to even.
const ROUNDING: f32 = 12_582_912.0;

#[inline(always)]
fn horner<const K: usize>(coefficients: [u32; K], x: f32) -> f32 {
    let mut value = f32::from_bits(coefficients[K - 1]);
    for k in (0..K - 1).rev() {
        value = value * x + f32::from_bits(coefficients[k]);
    }
    value
}

/// `x = 2^e · (1 + s)` with 1 + s in √½ … √2, for positive normal `x`: gives `(e, ln(1 + s))`.
#[inline(always)]
pub(super) fn ln_parts(x: f32) -> (i32, f32) {
    let shifted = x.to_bits().wrapping_sub(SQRT_HALF_BITS);
    let exponent = (shifted as i32) >> 23;
    let s = f32::from_bits((shifted & 0x007f_ffff) + SQRT_HALF_BITS) - 1.0;
    (exponent, s + (s * s) * horner(LN, s))
}

/// ln(x) for every lane; `x` positive and normal.
#[inline(always)]
pub fn ln_lanes<const N: usize>(x: &[f32; N]) -> [f32; N] {
    let mut out = [0.0; N];
    for lane in 0..N {
        let (exponent, ln_mantissa) = ln_parts(x[lane]);
        out[lane] = exponent as f32 * LN_2 + ln_mantissa;
    }
    out
}

/// cos and sin of `t·π/4`, for `t` in −1 … 1.
#[inline(always)]
pub(super) fn cos_sin_eighth(t: f32) -> (f32, f32) {
    let square = t * t;
    (1.0 + square * horner(COS, square), t * horner(SIN, square))
}

/// exp(x) for x ≤ 0, as the softmax needs it; the relative error is below 2e-7.
#[inline(always)]
pub fn exp_nonpositive(x: f32) -> f32 {
    let clamped = if x < EXP_UNDERFLOW { EXP_UNDERFLOW } else { x };
    let n = (clamped * LOG2_E + ROUNDING) - ROUNDING;
    let r = (clamped - n * LN_2_HIGH) - n * LN_2_LOW;
    let mantissa = (1.0 + r) + (r * r) * horner(EXP, r);
    let scale = f32::from_bits(((n as i32 + 127) as u32) << 23);
    if x < EXP_UNDERFLOW { 0.0 } else { mantissa * scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close() {
        for i in 0..=870_000 {
            let x = -(i as f32) * 1e-4;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp_nonpositive(x)) - exact).abs() <= 2e-7 * exact, "exp({x})");
        }
        assert_eq!(exp_nonpositive(0.0), 1.0);
        assert_eq!(exp_nonpositive(-88.0), 0.0);
        assert_eq!(exp_nonpositive(f32::NEG_INFINITY), 0.0);
    }

    #[test]
    fn ln_is_close() {
        for i in 1..=1_000_000u32 {
            let x = i as f32 * 1e-3;
            let exact = f64::from(x).ln();
            let found = f64::from(ln_lanes(&[x])[0]);
            assert!((found - exact).abs() <= 2e-7 * exact.abs().max(0.5), "ln({x}) = {found}, not {exact}");
        }
        assert_eq!(ln_lanes(&[1.0]), [0.0]);
    }

    #[test]
    fn cos_and_sin_are_close() {
        for i in -100_000..=100_000 {
            let t = i as f32 * 1e-5;
            let angle = f64::from(t) * std::f64::consts::FRAC_PI_4;
            let (cos, sin) = cos_sin_eighth(t);
            assert!((f64::from(cos) - angle.cos()).abs() < 1.5e-7, "cos at {t}");
            assert!((f64::from(sin) - angle.sin()).abs() < 1.5e-7, "sin at {t}");
        }
    }
}
