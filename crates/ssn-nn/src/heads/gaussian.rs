//! Independent normal distributions of latent variables.

use tch::{Kind, Tensor};

use crate::error::Result;

/// Keeps deviations away from 0, where the divergence has none.
const MIN_STD: f64 = 1e-4;

/// A normal distribution of each number of a tensor `[b, …]`.
#[derive(Debug)]
pub struct DiagonalGaussian {
    mean: Tensor,
    deviation: Tensor,
}

impl DiagonalGaussian {
    /// From what a network gives: the mean, and what becomes the deviation by softplus.
    ///
    /// # Shapes
    /// `[b, …]` both.
    pub fn new(mean: Tensor, raw_deviation: &Tensor) -> Result<Self> {
        Ok(Self { mean, deviation: raw_deviation.f_softplus()?.f_add_scalar(MIN_STD)? })
    }

    /// A draw that follows the gradients of mean and deviation.
    ///
    /// # Shapes
    /// `noise` `[b, …]`, or `[m, …]` where b is 1. Gives the same.
    pub fn rsample(&self, noise: &Tensor) -> Result<Tensor> {
        Ok(self.mean.f_add(&noise.f_to_kind(self.mean.kind())?.f_mul(&self.deviation)?)?)
    }

    /// KL(self ‖ other), summed over the numbers of each image in double precision.
    ///
    /// # Shapes
    /// Gives `[b]`.
    pub fn kl_divergence(&self, other: &Self) -> Result<Tensor> {
        let ratio = self.deviation.f_div(&other.deviation)?;
        let shift = self.mean.f_sub(&other.mean)?.f_div(&other.deviation)?;
        let each = (ratio.f_square()?.f_add(&shift.f_square()?)? * 0.5).f_sub(&ratio.f_log()?)? - 0.5;
        Ok(each.f_flatten(1, -1)?.f_sum_dim_intlist([1i64].as_slice(), false, Kind::Double)?)
    }
}
