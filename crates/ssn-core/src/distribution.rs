//! The distribution of the logits of one image: a normal distribution with low-rank plus diagonal covariance.

use half::f16;
use half::slice::HalfFloatSliceExt;

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
        self.read(0, &mut out);
        out
    }

    /// The first number that is not finite, or larger than [`MAX_PARAMETER`], with its index.
    fn first_unusable(&self) -> Option<(usize, f32)> {
        let index = match self {
            Self::F32(values) => values.iter().position(|x| !matches!(x.abs(), 0.0..=MAX_PARAMETER)),
            Self::F16(values) => values.iter().position(|x| !x.is_finite()),
        }?;
        Some((index, self.get(index)))
    }

    fn first_negative(&self) -> Option<(usize, f32)> {
        let index = match self {
            Self::F32(values) => values.iter().position(|&x| x < 0.0),
            Self::F16(values) => values.iter().position(|&x| x < f16::ZERO),
        }?;
        Some((index, self.get(index)))
    }
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

    fn build(mean: Vec<f32>, diagonal: Vec<f32>, factor: Vec<f32>) -> Result<LowRankNormal> {
        LowRankNormal::new(2, 3, 1, mean, diagonal, factor)
    }

    #[test]
    fn every_defect_is_named() {
        let ok = || vec![0.5f32; 6];
        assert!(build(ok(), ok(), ok()).is_ok());
        let mut bad = ok();
        bad[4] = f32::NAN;
        let error = build(bad, ok(), ok()).unwrap_err();
        assert_eq!(error.to_string(), "mean[4] is NaN, but every value must be finite");
        let mut bad = ok();
        bad[2] = f32::INFINITY;
        assert!(matches!(
            build(ok(), ok(), bad),
            Err(CoreError::NonFinite { field: "factor", index: 2, .. })
        ));
        let mut bad = ok();
        bad[1] = -0.25;
        let error = build(ok(), bad, ok()).unwrap_err();
        assert_eq!(error.to_string(), "diagonal[1] is -0.25, but it must be at least 0");
        let mut bad = ok();
        bad[5] = -1e30;
        let error = build(bad, ok(), ok()).unwrap_err();
        assert!(error.to_string().ends_with("but it must be between -1e20 and 1e20"), "{error}");
        let error = build(ok(), ok(), vec![0.0; 5]).unwrap_err();
        assert_eq!(error.to_string(), "factor has length 5, but the shape asks for 6");
        assert!(matches!(
            LowRankNormal::new(0, 3, 0, vec![0f32; 0], vec![0f32; 0], vec![0f32; 0]),
            Err(CoreError::Empty { field: "classes" })
        ));
    }

    #[test]
    fn half_precision_is_accepted_and_checked() {
        let halves = |x: f32| vec![f16::from_f32(x); 6];
        let d = LowRankNormal::new(2, 3, 1, halves(0.1), halves(0.2), halves(0.3)).unwrap();
        assert_eq!(d.mean().get(3), f16::from_f32(0.1).to_f32());
        assert!(LowRankNormal::new(2, 3, 1, halves(0.1), halves(-0.2), halves(0.3)).is_err());
        assert!(LowRankNormal::new(2, 3, 1, halves(0.1), halves(1.0), halves(f32::INFINITY)).is_err());
    }

    #[test]
    fn a_shape_that_overflows_is_an_error() {
        let none = || vec![0f32; 0];
        assert!(LowRankNormal::new(2, usize::MAX, 9, none(), none(), none()).is_err());
    }
}
