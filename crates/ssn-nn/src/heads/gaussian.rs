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

#[cfg(test)]
mod tests {
    use tch::Device;

    use super::*;

    #[test]
    fn the_divergence_is_the_mean_of_log_ratios() {
        tch::manual_seed(3);
        let options = (Kind::Double, Device::Cpu);
        let gaussian = |raw: f64| {
            let mean = Tensor::randn([1, 3], options);
            DiagonalGaussian::new(mean, &Tensor::full([1, 3], raw, options)).unwrap()
        };
        let (q, p) = (gaussian(0.3), gaussian(1.2));
        let z = q.rsample(&Tensor::randn([400_000, 3], options)).unwrap();
        let log_density = |g: &DiagonalGaussian| {
            let standard = (&z - &g.mean) / &g.deviation;
            (standard.square() * -0.5 - g.deviation.log()).sum_dim_intlist(
                [1i64].as_slice(),
                false,
                Kind::Double,
            )
        };
        let estimate = (log_density(&q) - log_density(&p)).mean(Kind::Double).double_value(&[]);
        let exact = q.kl_divergence(&p).unwrap().double_value(&[0]);
        assert!((estimate - exact).abs() < 0.01 * exact.max(1.0), "{estimate} and {exact}");
        assert_eq!(q.kl_divergence(&q).unwrap().double_value(&[0]), 0.0);
    }
}
