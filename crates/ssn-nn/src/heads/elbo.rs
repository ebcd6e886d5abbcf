//! The parts of networks with latent variables: distributions of these, the ELBO, and samples from noise.

use tch::{Kind, Tensor};

use crate::error::Result;
use crate::loss::{Target, mean_loss};

/// Keeps deviations away from 0, where the divergence has none.
const MIN_STD: f64 = 1e-4;

/// The terms of the (negative) ELBO that a step minimizes.
#[derive(Debug)]
pub struct ElboTerms {
    /// Logits `[b, c, v]` that are compared with the labels; the last are those of a prediction.
    pub logits: Vec<Tensor>,
    /// KL(posterior ‖ prior) times its weight: `[b]` in double precision.
    pub kl: Tensor,
}

impl ElboTerms {
    /// The loss of each image: the cross-entropies of all logits, and the KL divergence.
    ///
    /// # Shapes
    /// Gives `[b]`.
    pub fn loss(&self, target: &Target) -> Result<Tensor> {
        let mut loss = self.kl.shallow_clone();
        for logits in &self.logits {
            loss = loss.f_add(&mean_loss(logits, target)?)?;
        }
        Ok(loss)
    }
}

/// Makes samples of one image from noise `[m, n]`: logits `[m, c, v]`.
pub type SampleDecoder<'a> = Box<dyn Fn(&Tensor) -> Result<Tensor> + 'a>;

/// Independent normal distributions of latent variables: one of each number of a tensor `[b, …]`.
#[derive(Debug)]
pub(super) struct DiagonalGaussian {
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
