//! The negative log-likelihood by Monte-Carlo integration: the loss of the paper.

use std::ops::Range;

use tch::{Kind, Tensor};

use super::over_targets;
use super::target::{Likelihood, Target};
use crate::distribution::{LOGITS_AT_ONCE, LowRankNormalTensors};
use crate::error::{NnError, Result, require};
use crate::random::{Noise, NoiseSource};

/// The Monte-Carlo loss of a batch.
#[derive(Debug)]
pub struct MonteCarloLoss {
    /// −log (1/M) Σ_m p(target | η⁽ᵐ⁾), the mean over an image's targets: `[b]` in double precision.
    pub loss: Tensor,
    /// The effective sample size, 1 to M: (Σ pᵝ)² / Σ p²ᵝ. `[b, t]`, without gradient.
    pub ess: Tensor,
}

/// −log (1/M) Σ_m p(target | η⁽ᵐ⁾) for each image, as −logsumexp_m log p(target | η⁽ᵐ⁾) + log M: the paper's loss.
///
/// ```
/// use ssn_nn::{LowRankNormalTensors, NoiseSource, Pairing, StepNoise, Target, monte_carlo_loss};
/// use tch::{Device, Kind, Tensor};
///
/// let options = (Kind::Float, Device::Cpu);
/// let mean = Tensor::zeros([2, 3, 6], options).set_requires_grad(true);
/// let (diagonal, factor) = (Tensor::ones([2, 3, 6], options), Tensor::ones([2, 4, 3, 6], options));
/// let distribution = LowRankNormalTensors::new(mean.shallow_clone(), diagonal, factor)?;
/// // Two raters of each image: class numbers `[b, t, v]`.
/// let target = Target::classes(Tensor::zeros([2, 2, 6], (Kind::Int64, Device::Cpu)), 3)?;
/// let noise = StepNoise::new(0, 0, distribution.noise_shape(20), Pairing::Independent)?;
/// let loss = monte_carlo_loss(&distribution, &target, NoiseSource::Step(&noise))?.loss;
/// assert_eq!(loss.size(), [2]);
/// loss.sum(Kind::Double).backward();
/// assert_eq!(mean.grad().size(), [2, 3, 6]);
/// # Ok::<(), ssn_nn::NnError>(())
/// ```
pub fn monte_carlo_loss(
    distribution: &LowRankNormalTensors,
    target: &Target,
    noise: NoiseSource,
) -> Result<MonteCarloLoss> {
    tempered_loss(distribution, target, noise, 1.0)
}

/// −(1/β) log (1/M) Σ_m p(target | η⁽ᵐ⁾)^β for each image, with the likelihood exponent β (tempered likelihoods).
///
/// At β = 1 it is the paper's loss. Likelihoods of whole images differ by factors of e¹⁰⁰ between samples, so that there the
/// best sample alone counts, and hardly how many fit; less than 1 lets more of them count. As log is concave, the mean
/// over noise bounds the negative log-likelihood from above at every β up to 1.
///
/// Memory does not grow with M: samples beyond [`LOGITS_AT_ONCE`] are taken in chunks, with the same value and
/// gradient. On GPUs samples are never in memory at all.
pub fn tempered_loss(
    distribution: &LowRankNormalTensors,
    target: &Target,
    noise: NoiseSource,
    exponent: f64,
) -> Result<MonteCarloLoss> {
    if let NoiseSource::OnGpu(noise) = noise {
        let [b, c, v] = distribution.dims();
        target.check(b, c, v)?;
        target.check_on_gpu()?;
        let (parts, options) = (distribution.parts(), noise.options()?);
        let [loss, ess] = ssn_cuda::monte_carlo(parts, target.maps(), noise.seed, options, exponent)?;
        return Ok(MonteCarloLoss { loss, ess });
    }
    let [b, c, v] = distribution.dims();
    // Several binary targets are compared with every sample at once.
    let t = match target.likelihood() {
        Likelihood::Categorical => 1,
        Likelihood::Bernoulli => target.maps().size()[1],
    };
    let samples = LOGITS_AT_ONCE / (b * t * c * v).max(1);
    chunked_loss(distribution, target, noise, exponent, (samples / noise.pairing().samples(1)).max(1))
}

/// The same with a given number of draws at once.
///
/// The gradient of −logsumexp is the mean of the samples' gradients, weighted by their shares of the sum. The
/// shares are known only once all samples have been seen; so a first sweep over the chunks finds them, and a second
/// repeats the samples and gathers the gradients of mean, diagonal and factor, which are then handed to the
/// network at once.
pub fn chunked_loss(
    distribution: &LowRankNormalTensors,
    target: &Target,
    noise: NoiseSource,
    exponent: f64,
    draws_at_once: i64,
) -> Result<MonteCarloLoss> {
    require(draws_at_once > 0, "draws_at_once", draws_at_once, "at least 1")?;
    let draws = noise.pairing().draws(noise.samples())?;
    let chunks = || (0..draws).step_by(draws_at_once as usize).map(|k| k..(k + draws_at_once).min(draws));
    if draws <= draws_at_once {
        return Ok(of_samples(&log_probability(distribution, target, &noise.draws(0..draws)?)?, exponent));
    }
    let leaves = distribution.detached();
    let samples_of = |draws: i64| noise.pairing().samples(draws);
    // The samples of a chunk in a tensor of all samples.
    let part = |t: &Tensor, draws: &Range<i64>| {
        t.f_narrow(0, samples_of(draws.start), samples_of(draws.end - draws.start))
    };
    let (b, t) = (distribution.dims()[0], target.maps().size()[1]);
    // One tensor for all results: a small one left behind by every chunk would keep the allocator from using the
    // room between them again.
    let log_p = Tensor::f_zeros([samples_of(draws), b, t], (Kind::Double, distribution.mean().device()))?;
    tch::no_grad(|| {
        for range in chunks() {
            let mut place = part(&log_p, &range)?;
            place.f_copy_(&log_probability(&leaves, target, &noise.draws(range)?)?)?;
        }
        Ok::<_, NnError>(())
    })?;
    let MonteCarloLoss { loss, ess } = of_samples(&log_p, exponent);
    if !distribution.requires_grad() {
        return Ok(MonteCarloLoss { loss, ess });
    }

    let shares = log_p.f_mul_scalar(exponent)?.f_softmax(0, None::<Kind>)?; // [m, b, t]
    let leaves = leaves.trainable();
    for range in chunks() {
        let shares = part(&shares, &range)?;
        let repeated = log_probability(&leaves, target, &noise.draws(range)?)?;
        let weighted = repeated.f_mul(&shares)?.f_mean_dim([2i64].as_slice(), false, None::<Kind>)?;
        weighted.f_sum(Kind::Double)?.f_neg()?.f_backward()?;
    }
    Ok(MonteCarloLoss { loss: distribution.with_gathered_gradients(&loss, &leaves), ess })
}

/// `[m, b, t]`.
fn log_probability(distribution: &LowRankNormalTensors, target: &Target, noise: &Noise) -> Result<Tensor> {
    target.log_probability(&distribution.sample(noise)?)
}

/// The loss of samples with the log-probabilities `[m, b, t]`.
fn of_samples(log_p: &Tensor, exponent: f64) -> MonteCarloLoss {
    let (samples, log_p) = (log_p.size()[0] as f64, log_p * exponent);
    let shares = log_p.detach().softmax(0, None::<Kind>);
    let each = (samples.ln() - log_p.logsumexp([0i64].as_slice(), false)) / exponent; // [b, t]
    MonteCarloLoss {
        loss: over_targets(&each),
        ess: 1.0 / shares.square().sum_dim_intlist([0i64].as_slice(), false, None::<Kind>),
    }
}
