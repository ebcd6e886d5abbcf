//! The Monte-Carlo loss of the paper: the negative log-likelihood of a label map under random logits.

use tch::{Kind, Tensor};

use crate::distribution::LowRankNormal;
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::noise::Noise;

/// −log (1/M) Σ_m p(target | η⁽ᵐ⁾) for each image of the batch, as −logsumexp_m log p(target | η⁽ᵐ⁾) + log M.
///
/// # Shapes
/// `target` as for [`Likelihood::log_probability`]. Gives `[b]`; a training step takes the mean.
pub fn monte_carlo_loss(
    distribution: &LowRankNormal,
    target: &Tensor,
    noise: &Noise,
    likelihood: Likelihood,
) -> Result<Tensor> {
    let logits = distribution.sample(noise)?; // [m, b, c, v]
    let log_p = likelihood.log_probability(&logits, target)?; // [m, b]
    Ok((noise.samples() as f64).ln() - log_p.logsumexp([0i64].as_slice(), false))
}

/// The loss of the mean logits alone, as a deterministic network has it; pre-training uses it.
///
/// # Shapes
/// `mean` `[b, c, v]`, `target` as for [`Likelihood::log_probability`]. Gives `[b]`.
pub fn mean_loss(mean: &Tensor, target: &Tensor, likelihood: Likelihood) -> Result<Tensor> {
    let log_p = likelihood.log_probability(&mean.unsqueeze(0), target)?; // [1, b]
    Ok(-log_p.sum_dim_intlist([0i64].as_slice(), false, None::<Kind>))
}
