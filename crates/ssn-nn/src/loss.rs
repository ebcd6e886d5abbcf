//! Losses: the Monte-Carlo loss of the paper, and those of the mean logits alone.

use std::ops::Range;

use tch::{Kind, Tensor};

use crate::distribution::LowRankNormal;
use crate::error::{NnError, Result, refused, require};
use crate::random::{GpuNoise, Noise, NoiseSource, Pairing};

/// The label maps of a batch, checked once. Each image has `t` of them: one rater's, or all raters' at once.
#[derive(Debug)]
pub struct Target {
    maps: Tensor,
    classes: i64,
    likelihood: Likelihood,
}

/// How logits become probabilities of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likelihood {
    /// One of `c` classes per voxel, by softmax.
    Categorical,
    /// Multi-label: each of `c` maps is 0 or 1 per voxel, by sigmoid; several may be 1 at once.
    Bernoulli,
}

impl Target {
    /// One of `classes` classes per voxel.
    ///
    /// # Shapes
    /// `maps` `[b, t, v]`, class numbers of type int64.
    pub fn classes(maps: Tensor, classes: i64) -> Result<Self> {
        if maps.dim() != 3 {
            return Err(NnError::Shape { field: "target", found: maps.size(), expected: "[b, t, v]".into() });
        }
        if classes < 2 {
            let expected = "at least 2, the background included; a single map is a binary target";
            return refused("classes", classes, expected);
        }
        if maps.kind() != Kind::Int64 {
            return refused("target", format!("of type {:?}", maps.kind()), "of type Int64");
        }
        if maps.numel() > 0 {
            let (least, largest) = (maps.min().int64_value(&[]), maps.max().int64_value(&[]));
            if least < 0 {
                return refused("target", least, "a class number, 0 or more");
            }
            if largest >= classes {
                return refused("target", largest, "a class number, below the number of classes");
            }
        }
        Ok(Self { maps, classes, likelihood: Likelihood::Categorical })
    }

    /// Multi-label: each of `c` maps is 0 or 1 per voxel.
    ///
    /// # Shapes
    /// `maps` `[b, t, c, v]`, zeros and ones of a floating type.
    pub fn binary(maps: Tensor) -> Result<Self> {
        if maps.dim() != 4 {
            let expected = "[b, t, c, v]".into();
            return Err(NnError::Shape { field: "target", found: maps.size(), expected });
        }
        let is_binary = maps.f_eq(0)?.f_logical_or(&maps.f_eq(1)?)?;
        if is_binary.all().int64_value(&[]) != 1 {
            return refused("target", "neither 0 nor 1 somewhere", "0 (off) or 1 (on) everywhere");
        }
        let classes = maps.size()[2];
        Ok(Self { maps, classes, likelihood: Likelihood::Bernoulli })
    }

    /// Label maps whose class numbers were checked before, `[b, t, v]`.
    pub fn from_checked(maps: Tensor, classes: i64) -> Self {
        Self { maps, classes, likelihood: Likelihood::Categorical }
    }

    /// The label maps, `[b, t, v]` or `[b, t, c, v]`.
    pub fn maps(&self) -> &Tensor {
        &self.maps
    }

    /// The number of classes.
    pub fn class_count(&self) -> i64 {
        self.classes
    }

    /// How logits become probabilities of these labels.
    pub fn likelihood(&self) -> Likelihood {
        self.likelihood
    }

    /// log p(target | logits), summed over the voxels in double precision.
    ///
    /// Computed from log-softmax and log-sigmoid, never as the logarithm of a probability, so that it stays
    /// finite however far the logits go. Sums of many voxels are compared with each other by the exponential, so
    /// that their absolute error counts: single precision would lose it in large images.
    ///
    /// # Shapes
    /// `logits` `[m, b, c, v]`. Gives `[m, b, t]`.
    pub fn log_probability(&self, logits: &Tensor) -> Result<Tensor> {
        let &[m, b, c, v] = logits.size().as_slice() else {
            let (found, expected) = (logits.size(), "[m, b, c, v]".to_owned());
            return Err(NnError::Shape { field: "logits", found, expected });
        };
        self.check(b, c, v)?;
        let t = self.maps.size()[1];
        let per_voxel = match self.likelihood {
            Likelihood::Categorical => {
                let index = self.maps.f_view([1, b, t, v])?.f_expand([m, b, t, v], false)?;
                logits.f_log_softmax(2, None::<Kind>)?.f_gather(2, &index, false)? // [m, b, t, v]
            }
            Likelihood::Bernoulli => {
                // log σ(η) where the target is 1 and log σ(−η) = log(1 − σ(η)) where it is 0.
                let signs = self.maps.f_to_kind(logits.kind())? * 2.0 - 1.0; // [b, t, c, v]
                logits.f_unsqueeze(2)?.f_mul(&signs)?.f_log_sigmoid()?.f_flatten(3, 4)? // [m, b, t, c·v]
            }
        };
        Ok(per_voxel.f_sum_dim_intlist([3i64].as_slice(), false, Kind::Double)?)
    }

    /// Refuses a target that does not fit logits of these sizes.
    pub(crate) fn check(&self, b: i64, c: i64, v: i64) -> Result<()> {
        if self.classes != c {
            let value = format!("made for {} classes, while the network has {c}", self.classes);
            return refused("target", value, "of the network's classes");
        }
        let t = self.maps.size()[1];
        let expected = match self.likelihood {
            Likelihood::Categorical => vec![b, t, v],
            Likelihood::Bernoulli => vec![b, t, c, v],
        };
        if self.maps.size() != expected {
            let (found, expected) = (self.maps.size(), format!("{expected:?}"));
            return Err(NnError::Shape { field: "target", found, expected });
        }
        Ok(())
    }
}

/// Logits that a tensor of the loss holds at once: more samples than fit are taken in turns. 64 MiB in single
/// precision, for each of the half dozen tensors that a turn needs.
pub const LOGITS_AT_ONCE: i64 = 1 << 24;

/// The Monte-Carlo loss of a batch.
#[derive(Debug)]
pub struct MonteCarloLoss {
    /// −log (1/M) Σ_m p(target | η⁽ᵐ⁾), the mean over an image's targets: `[b]` in double precision.
    pub loss: Tensor,
    /// The effective sample size, 1 to M: (Σ pᵝ)² / Σ p²ᵝ. `[b, t]`, without gradient.
    pub ess: Tensor,
}

/// −log (1/M) Σ_m p(target | η⁽ᵐ⁾) for each image, as −logsumexp_m log p(target | η⁽ᵐ⁾) + log M: the paper's loss.
pub fn monte_carlo_loss(
    distribution: &LowRankNormal,
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
/// Memory does not grow with M: samples beyond [`LOGITS_AT_ONCE`] are taken in turns, with the same value and
/// gradient. On GPUs samples are never in memory at all.
pub fn tempered_loss(
    distribution: &LowRankNormal,
    target: &Target,
    noise: NoiseSource,
    exponent: f64,
) -> Result<MonteCarloLoss> {
    if let NoiseSource::OnGpu(GpuNoise { seed, samples, pairing, first }) = noise {
        let [b, c, v] = distribution.dims();
        target.check(b, c, v)?;
        require(target.likelihood() == Likelihood::Categorical, "target", "binary", "classes, on a GPU")?;
        let options = ssn_cuda::LossOptions {
            draws: pairing.draws(samples)?,
            paired: (pairing == Pairing::Antithetic).into(),
            first: first as i64,
            exponent,
        };
        let result = ssn_cuda::monte_carlo(distribution.parts(), target.maps(), seed, options)?;
        return Ok(MonteCarloLoss { loss: result.loss, ess: result.ess });
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
    distribution: &LowRankNormal,
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
    Ok(MonteCarloLoss { loss: loss + carrier, ess })
}

/// `[m, b, t]`.
fn log_probability(distribution: &LowRankNormal, target: &Target, noise: &Noise) -> Result<Tensor> {
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
