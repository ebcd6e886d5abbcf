//! The distribution of the logits of one image: a normal distribution with low-rank plus diagonal covariance.

use half::f16;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfBitsVecExt;
use rayon::prelude::*;

use crate::error::{CoreError, Result};
use crate::labels::MAX_CLASSES;

/// Numbers in single or half precision. Half precision halves the memory of a large factor; every value is
/// widened exactly before it is used.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Vec<f32>),
    /// Half precision.
    F16(Vec<f16>),
}

impl Values {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One number.
    pub fn get(&self, index: usize) -> f32 {
        match self {
            Self::F32(values) => values[index],
            Self::F16(values) => values[index].to_f32(),
        }
    }

    /// Copies the numbers from `start` on into `out`, widened.
    pub fn read(&self, start: usize, out: &mut [f32]) {
        match self {
            Self::F32(values) => out.copy_from_slice(&values[start..start + out.len()]),
            Self::F16(values) => values[start..start + out.len()].convert_to_f32_slice(out),
        }
    }

    /// All numbers, widened.
    pub fn to_f32(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.len()];
        let chunks = out.par_chunks_mut(CHUNK).enumerate();
        chunks.for_each(|(number, chunk)| self.read(number * CHUNK, chunk));
        out
    }

    /// The same numbers in single precision, which takes nothing if they are.
    pub fn into_single(self) -> Self {
        match self {
            Self::F32(values) => Self::F32(values),
            Self::F16(_) => Self::F32(self.to_f32()),
        }
    }

    /// The same numbers in half precision, each rounded to the nearest.
    pub fn into_half(self) -> Self {
        match self {
            Self::F16(values) => Self::F16(values),
            Self::F32(values) => {
                // Zeros of a plain type are not written until they are used, by all threads.
                let mut out = vec![0u16; values.len()].reinterpret_into::<f16>();
                let chunks = out.par_chunks_mut(CHUNK).zip(values.par_chunks(CHUNK));
                chunks.for_each(|(out, values)| out.convert_from_f32_slice(values));
                Self::F16(out)
            }
        }
    }

    /// The first number that is not finite, or larger than [`MAX_PARAMETER`], with its index.
    fn first_unusable(&self) -> Option<(usize, f32)> {
        let index = match self {
            Self::F32(values) => first(values, |x| !matches!(x.abs(), 0.0..=MAX_PARAMETER)),
            Self::F16(values) => first(values, |x| !x.is_finite()),
        }?;
        Some((index, self.get(index)))
    }

    fn first_negative(&self) -> Option<(usize, f32)> {
        let index = match self {
            Self::F32(values) => first(values, |x| x < 0.0),
            Self::F16(values) => first(values, |x| x < f16::ZERO),
        }?;
        Some((index, self.get(index)))
    }
}

/// Numbers that a thread looks at or converts at a time.
const CHUNK: usize = 1 << 16;

/// The index of the first number of a kind.
fn first<T: Copy + Sync>(values: &[T], is_wanted: impl Fn(T) -> bool + Sync) -> Option<usize> {
    // Without a way out of the loop it is vectorized.
    let has_one = |chunk: &[T]| chunk.iter().fold(false, |any, &x| any | is_wanted(x));
    let chunk = values.par_chunks(CHUNK).position_first(has_one)?;
    let within = values[chunk * CHUNK..].iter().position(|&x| is_wanted(x))?;
    Some(chunk * CHUNK + within)
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        Self::F32(values)
    }
}

impl From<Vec<f16>> for Values {
    fn from(values: Vec<f16>) -> Self {
        Self::F16(values)
    }
}

/// Logits η ~ N(μ, Σ_q P_q P_qᵀ + diag(D)) over `c` classes and `v` voxels, with `r` rank-one terms.
///
/// Values are checked once, on construction: all finite, the diagonal not negative, the shapes in agreement.
/// Rank 0 is the distribution with independent logits.
#[derive(Debug, Clone, PartialEq)]
pub struct LowRankNormal {
    classes: usize,
    voxels: usize,
    rank: usize,
    mean: Values,
    diagonal: Values,
    factor: Values,
}

impl LowRankNormal {
    /// A distribution from its parts.
    ///
    /// # Shapes
    /// `mean` `[c, v]`, `diagonal` `[c, v]` (variances), `factor` `[r, c, v]`, all in row-major order.
    pub fn new(
        classes: usize,
        voxels: usize,
        rank: usize,
        mean: impl Into<Values>,
        diagonal: impl Into<Values>,
        factor: impl Into<Values>,
    ) -> Result<Self> {
        let (mean, diagonal, factor) = (mean.into(), diagonal.into(), factor.into());
        if classes == 0 {
            return Err(CoreError::Empty { field: "classes" });
        }
        if voxels == 0 {
            return Err(CoreError::Empty { field: "voxels" });
        }
        for (field, value, largest, expected) in
            [("classes", classes, MAX_CLASSES, "at most 256"), ("voxels", voxels, MAX_VOXELS, "at most 2^32")]
        {
            if value > largest {
                return Err(CoreError::OutOfRange { field, index: 0, value: value as f64, expected });
            }
        }
        for (field, values, expected) in [
            ("mean", &mean, classes.checked_mul(voxels)),
            ("diagonal", &diagonal, classes.checked_mul(voxels)),
            ("factor", &factor, classes.checked_mul(voxels).and_then(|n| n.checked_mul(rank))),
        ] {
            let expected = expected.unwrap_or(usize::MAX);
            if values.len() != expected {
                return Err(CoreError::Length { field, expected, found: values.len() });
            }
            if let Some((index, value)) = values.first_unusable() {
                let value = f64::from(value);
                return Err(if value.is_finite() {
                    CoreError::OutOfRange { field, index, value, expected: "between -1e20 and 1e20" }
                } else {
                    CoreError::NonFinite { field, index, value }
                });
            }
        }
        if let Some((index, value)) = diagonal.first_negative() {
            let (field, value) = ("diagonal", f64::from(value));
            return Err(CoreError::OutOfRange { field, index, value, expected: "at least 0" });
        }
        Ok(Self { classes, voxels, rank, mean, diagonal, factor })
    }

    /// The number of classes `c`.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The number of voxels `v`.
    pub fn voxels(&self) -> usize {
        self.voxels
    }

    /// The rank `r` of the factor.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The mean `[c, v]`.
    pub fn mean(&self) -> &Values {
        &self.mean
    }

    /// The diagonal part of the covariance, `[c, v]`.
    pub fn diagonal(&self) -> &Values {
        &self.diagonal
    }

    /// The factor `[r, c, v]`.
    pub fn factor(&self) -> &Values {
        &self.factor
    }

    /// The same distribution with another factor of the same shape.
    pub(crate) fn with_factor(self, factor: impl Into<Values>) -> Result<Self> {
        let Self { classes, voxels, rank, mean, diagonal, .. } = self;
        Self::new(classes, voxels, rank, mean, diagonal, factor)
    }

    /// The same distribution, with mean and diagonal stored as `rest` says and the factor as `factor` does.
    ///
    /// # Errors
    /// A number that is not finite any more.
    pub fn stored(self, rest: fn(Values) -> Values, factor: fn(Values) -> Values) -> Result<Self> {
        let Self { classes, voxels, rank, mean, diagonal, factor: values } = self;
        Self::new(classes, voxels, rank, rest(mean), rest(diagonal), factor(values))
    }

    /// The covariance of two logits, each given as `class·v + voxel`: Σ_q P_q(a) P_q(b), plus D on the diagonal.
    pub fn covariance(&self, a: usize, b: usize) -> f64 {
        let row = self.classes * self.voxels;
        let low_rank: f64 = (0..self.rank)
            .map(|q| f64::from(self.factor.get(q * row + a)) * f64::from(self.factor.get(q * row + b)))
            .sum();
        if a == b { low_rank + f64::from(self.diagonal.get(a)) } else { low_rank }
    }
}

/// The largest size of a parameter. Together with the largest weight of a steering it keeps every logit finite, so
/// that no comparison of logits ever meets a NaN.
pub const MAX_PARAMETER: f32 = 1e20;

/// Voxels are numbered within a word of the random generator's counter.
const MAX_VOXELS: usize = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_defect_is_named() {
        let with = |place: usize, index: usize, value: f32| {
            let mut parts = [0.5f32; 3].map(|x| vec![x; 6]);
            parts[place][index] = value;
            let [mean, diagonal, factor] = parts;
            LowRankNormal::new(2, 3, 1, mean, diagonal, factor).map_err(|error| error.to_string())
        };
        assert!(with(0, 0, 0.5).is_ok());
        for (place, index, value, message) in [
            (0, 4, f32::NAN, "mean[4] is NaN, but every value must be finite"),
            (2, 2, f32::INFINITY, "factor[2] is inf, but every value must be finite"),
            (1, 1, -0.25, "diagonal[1] is -0.25, but it must be at least 0"),
            (2, 5, 1e21, "factor[5] is 1000000020040877300000, but it must be between -1e20 and 1e20"),
        ] {
            assert_eq!(with(place, index, value).unwrap_err(), message);
        }
        let short = LowRankNormal::new(2, 3, 1, vec![0f32; 6], vec![0f32; 6], vec![0f32; 5]).unwrap_err();
        assert_eq!(short.to_string(), "factor has length 5, but the shape asks for 6");
        let none = || vec![0f32; 0];
        let empty = LowRankNormal::new(0, 3, 0, none(), none(), none()).unwrap_err();
        assert_eq!(empty, CoreError::Empty { field: "classes" });
        assert!(LowRankNormal::new(2, usize::MAX, 9, none(), none(), none()).is_err(), "it overflows");
    }

    #[test]
    fn the_first_of_a_kind_is_found_in_any_chunk() {
        for place in [0, 5, CHUNK - 1, CHUNK, 3 * CHUNK + 7] {
            let mut values = vec![1f32; 4 * CHUNK + 9];
            (values[place], values[4 * CHUNK]) = (f32::NAN, f32::INFINITY);
            assert_eq!(Values::F32(values).first_unusable().map(|(index, _)| index), Some(place));
        }
        assert_eq!(first(&[1, 2, 3], |x| x > 3), None);
    }

    #[test]
    fn precisions_are_changed_number_by_number() {
        let numbers: Vec<f32> = (0..CHUNK + 3).map(|i| (i as f32).sin() * 70_000.0).collect();
        let halves: Vec<f16> = numbers.iter().map(|&x| f16::from_f32(x)).collect();
        assert_eq!(Values::F32(numbers.clone()).into_half(), Values::F16(halves.clone()));
        let widened: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
        assert_eq!(Values::F16(halves).into_single(), Values::F32(widened));
        assert_eq!(Values::F32(numbers.clone()).into_single(), Values::F32(numbers));
    }

    #[test]
    fn half_precision_is_accepted_and_checked() {
        let halves = |x: f32| vec![f16::from_f32(x); 6];
        let d = LowRankNormal::new(2, 3, 1, halves(0.1), halves(0.2), halves(0.3)).unwrap();
        assert_eq!(d.mean().get(3), f16::from_f32(0.1).to_f32());
        assert!(LowRankNormal::new(2, 3, 1, halves(0.1), halves(-0.2), halves(0.3)).is_err());
        assert!(LowRankNormal::new(2, 3, 1, halves(0.1), halves(1.0), halves(f32::INFINITY)).is_err());
    }
}
