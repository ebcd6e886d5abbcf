//! Losses: the Monte-Carlo loss of the paper, and those of the mean logits alone.

pub mod target;

use std::ops::Range;

use tch::{Kind, Tensor};

use crate::distribution::LowRankNormal;
use crate::error::{NnError, Result, require};
use crate::loss::target::{Likelihood, Target};
use crate::random::noise::{GpuNoise, Noise, NoiseSource, Pairing};

/// Logits that a tensor of the loss holds at once: more samples than fit are taken in turns. 64 MiB in single
/// precision, for each of the half dozen tensors that a turn needs.
pub const LOGITS_AT_ONCE: i64 = 1 << 24;

/// The Monte-Carlo loss of a batch.
#[derive(Debug)]
pub struct MonteCarloLoss {
    /// −log (1/M) Σ_m p(target | η⁽ᵐ⁾), the mean over an image's targets: `[b]` in double precision.
    pub loss: Tensor,
    /// How many of the M samples the loss really rests on, 1 to M: (Σ pᵝ)² / Σ p²ᵝ. `[b, t]`, without gradient.
    pub effective_samples: Tensor,
}

/// −log (1/M) Σ_m p(target | η⁽ᵐ⁾) for each image, as −logsumexp_m log p(target | η⁽ᵐ⁾) + log M: the paper's loss.
pub fn monte_carlo_loss(
    distribution: &LowRankNormal,
    target: &Target,
    noise: NoiseSource,
) -> Result<MonteCarloLoss> {
    power_loss(distribution, target, noise, 1.0)
}

/// −(1/β) log (1/M) Σ_m p(target | η⁽ᵐ⁾)^β for each image, with the power β.
///
/// At β = 1 it is the paper's loss. Likelihoods of whole images differ by factors of e¹⁰⁰ between samples, so that there the
/// best sample alone counts, and hardly how many fit; less than 1 lets more of them count. As log is concave, the mean
/// over noise bounds the negative log-likelihood from above at every β up to 1.
///
/// Memory does not grow with M: samples beyond [`LOGITS_AT_ONCE`] are taken in turns, with the same value and
/// gradient. On GPUs samples are never in memory at all.
pub fn power_loss(
    distribution: &LowRankNormal,
    target: &Target,
    noise: NoiseSource,
    power: f64,
) -> Result<MonteCarloLoss> {
    if let NoiseSource::OnGpu(GpuNoise { seed, samples, pairing, first }) = noise {
        let [b, c, v] = distribution.dims();
        target.check(b, c, v)?;
        require(target.likelihood() == Likelihood::Categorical, "target", "switches", "classes, on a GPU")?;
        let options = ssn_cuda::LossOptions {
            draws: pairing.draws(samples)?,
            paired: (pairing == Pairing::Antithetic).into(),
            first: first as i64,
            power,
        };
        let result = ssn_cuda::monte_carlo(distribution.parts(), target.maps(), seed, options)?;
        return Ok(MonteCarloLoss { loss: result.loss, effective_samples: result.effective_samples });
    }
    let [b, c, v] = distribution.dims();
    // Several targets of switches are compared with every sample at once.
    let t = match target.likelihood() {
        Likelihood::Categorical => 1,
        Likelihood::Bernoulli => target.maps().size()[1],
    };
    let samples = LOGITS_AT_ONCE / (b * t * c * v).max(1);
    chunked_loss(distribution, target, noise, power, (samples / noise.pairing().samples(1)).max(1))
}

/// The same with a given number of draws at once.
///
/// The gradient of −logsumexp is the mean of the samples' gradients, weighted by their shares of the sum. The
/// shares are known only once all samples have been seen; so a first sweep over the chunks finds them, and a second
/// repeats the samples and gathers the gradients of mean, diagonal and factor, which are then handed to the
/// network at once.
pub fn chunked_loss(
    distribution: &LowRankNormal,
    target: &Target,
    noise: NoiseSource,
    power: f64,
    draws_at_once: i64,
) -> Result<MonteCarloLoss> {
    require(draws_at_once > 0, "draws_at_once", draws_at_once, "at least 1")?;
    let draws = noise.pairing().draws(noise.samples())?;
    let chunks = || (0..draws).step_by(draws_at_once as usize).map(|k| k..(k + draws_at_once).min(draws));
    if draws <= draws_at_once {
        return Ok(of_samples(&log_probability(distribution, target, &noise.draws(0..draws)?)?, power));
    }
    let leaves = distribution.detached();
    let samples_of = |draws: i64| noise.pairing().samples(draws);
    // The samples of a turn in a tensor of all samples.
    let part = |t: &Tensor, turn: &Range<i64>| {
        t.f_narrow(0, samples_of(turn.start), samples_of(turn.end - turn.start))
    };
    let (b, t) = (distribution.dims()[0], target.maps().size()[1]);
    // One tensor for all results: a small one left behind by every turn would keep the allocator from using the
    // room between them again.
    let log_p = Tensor::f_zeros([samples_of(draws), b, t], (Kind::Double, distribution.mean().device()))?;
    tch::no_grad(|| {
        for range in chunks() {
            let mut place = part(&log_p, &range)?;
            place.f_copy_(&log_probability(&leaves, target, &noise.draws(range)?)?)?;
        }
        Ok::<_, NnError>(())
    })?;
    let MonteCarloLoss { loss, effective_samples } = of_samples(&log_p, power);
    if !distribution.requires_grad() {
        return Ok(MonteCarloLoss { loss, effective_samples });
    }

    let shares = log_p.f_mul_scalar(power)?.f_softmax(0, None::<Kind>)?; // [m, b, t]
    let leaves = leaves.trainable();
    for range in chunks() {
        let shares = part(&shares, &range)?;
        let repeated = log_probability(&leaves, target, &noise.draws(range)?)?;
        let weighted = repeated.f_mul(&shares)?.f_mean_dim([2i64].as_slice(), false, None::<Kind>)?;
        weighted.f_sum(Kind::Double)?.f_neg()?.f_backward()?;
    }
    // Zero, with the gradient that was gathered.
    let mut carrier = loss.zeros_like(); // [b]
    for (part, leaf) in distribution.parts().into_iter().zip(leaves.parts()) {
        // Nothing uses the factor of rank 0.
        if !leaf.grad().defined() {
            continue;
        }
        let product = (part * leaf.grad()).flatten(1, -1);
        let sum = product.sum_dim_intlist([1i64].as_slice(), false, Kind::Double);
        carrier += &sum - sum.detach();
    }
    Ok(MonteCarloLoss { loss: loss + carrier, effective_samples })
}

/// `[m, b, t]`.
fn log_probability(distribution: &LowRankNormal, target: &Target, noise: &Noise) -> Result<Tensor> {
    target.log_probability(&distribution.sample(noise)?)
}

/// The loss of samples with the log-probabilities `[m, b, t]`.
fn of_samples(log_p: &Tensor, power: f64) -> MonteCarloLoss {
    let (samples, log_p) = (log_p.size()[0] as f64, log_p * power);
    let shares = log_p.detach().softmax(0, None::<Kind>);
    let each = (samples.ln() - log_p.logsumexp([0i64].as_slice(), false)) / power; // [b, t]
    MonteCarloLoss {
        loss: over_targets(&each),
        effective_samples: 1.0 / shares.square().sum_dim_intlist([0i64].as_slice(), false, None::<Kind>),
    }
}

/// The mean over the targets of each image, `[b, t]` → `[b]`.
fn over_targets(each: &Tensor) -> Tensor {
    each.mean_dim([1i64].as_slice(), false, None::<Kind>)
}

/// The negative log-likelihood of the mean logits alone: the cross-entropy of a deterministic network, summed over
/// the voxels. Pre-training uses it too.
///
/// # Shapes
/// `mean` `[b, c, v]`. Gives `[b]`.
pub fn mean_loss(mean: &Tensor, target: &Target) -> Result<Tensor> {
    Ok(-over_targets(&target.log_probability(&mean.unsqueeze(0))?.squeeze_dim(0)))
}

/// 1 − the soft Dice overlap of the mean logits' probabilities with the target, averaged over the foreground
/// classes; an optional term beside the others, which weighs small structures as much as large ones.
///
/// # Shapes
/// `mean` `[b, c, v]`. Gives `[b]`.
pub fn dice_loss(mean: &Tensor, target: &Target) -> Result<Tensor> {
    let &[b, c, v] = mean.size().as_slice() else {
        return Err(NnError::Shape { field: "mean", found: mean.size(), expected: "[b, c, v]".into() });
    };
    target.check(b, c, v)?;
    // [b, 1, c, v] and [b, t, c, v], without the background of exclusive classes.
    let (probabilities, truth) = match target.likelihood() {
        Likelihood::Categorical => {
            let truth = target.maps().one_hot(c).transpose(2, 3).narrow(2, 1, c - 1);
            (mean.softmax(1, None::<Kind>).narrow(1, 1, c - 1).unsqueeze(1), truth)
        }
        Likelihood::Bernoulli => (mean.sigmoid().unsqueeze(1), target.maps().shallow_clone()),
    };
    let truth = truth.to_kind(mean.kind());
    let over_voxels = |x: Tensor| x.sum_dim_intlist([3i64].as_slice(), false, Kind::Double);
    let overlap = over_voxels(&probabilities * &truth);
    let total = over_voxels(probabilities) + over_voxels(truth);
    // One voxel is added to both, so that a class that is absent and not predicted counts as found.
    let dice = (overlap * 2.0 + 1.0) / (total + 1.0);
    Ok(over_targets(&(1.0 - dice.mean_dim([2i64].as_slice(), false, None::<Kind>))))
}
