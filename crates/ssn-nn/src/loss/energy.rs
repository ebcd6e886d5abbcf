//! The energy loss: the energy distance between soft samples and the raters' label maps, which GED² measures.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::target::{Likelihood, Target};
use crate::distribution::{LOGITS_AT_ONCE, LowRankNormalTensors};
use crate::error::{NnError, Result, refused, require};
use crate::random::NoiseSource;

/// What the number of samples must be.
pub const TWO_DRAWS: &str =
    "at least 2, or 4 of antithetic pairs: the energy loss compares independent samples";

/// The similarity of two soft maps, 1 for equal ones; the distance of two maps is 1 − similarity.
///
/// Both add one voxel that is on in every map, so that two empty maps are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Similarity {
    /// (a·b + 1) / (|a|² + |b|² − a·b + 1), the intersection over union of binary maps.
    #[default]
    Tanimoto,
    /// (2 a·b + 1) / (|a|² + |b|² + 1), the Dice coefficient of binary maps.
    Dice,
}

/// The settings of the energy loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnergyOptions {
    /// How maps are compared.
    pub similarity: Similarity,
    /// The weight of the distances between samples; 1 makes the loss a proper score.
    pub diversity_weight: f64,
}

impl Default for EnergyOptions {
    fn default() -> Self {
        Self { similarity: Similarity::Tanimoto, diversity_weight: 1.0 }
    }
}

/// The energy distance between an image's samples and its targets, per image: `[b]` in double precision.
///
/// With soft maps a_m = softmax(η_m) of the foreground classes, target maps y_n and distances d, averaged over classes:
///
/// 2/(MN) Σ_mn d(a_m, y_n) − λ/#pairs Σ_mm' d(a_m, a_m') − 1/N² Σ_nn' d(y_n, y_n')
///
/// over pairs of independent samples: neither m = m' nor antithetic partners. At λ = 1 its mean over noise is smallest where
/// samples are distributed as the targets are, and it is the GED² that evaluation measures, but for soft maps. The last term
/// does not depend on the network.
///
/// Every distance is a function of inner products of maps, which are sums over voxels: voxels beyond [`LOGITS_AT_ONCE`]
/// logits are taken in chunks, with the same value and gradient. On GPUs all soft maps of a batch are in memory.
pub fn energy_loss(
    distribution: &LowRankNormalTensors,
    target: &Target,
    noise: NoiseSource,
    options: EnergyOptions,
) -> Result<Tensor> {
    let ([b, c, v], t) = (distribution.dims(), target.maps().size()[1]);
    let voxels = match noise {
        NoiseSource::OnGpu(_) => v,
        _ => LOGITS_AT_ONCE / (b * c * (noise.samples() + t)).max(1),
    };
    chunked_energy_loss(distribution, target, noise, options, voxels.max(1))
}

/// The same with a given number of voxels at once.
///
/// A first sweep over the chunks adds up the inner products of all maps; the loss is a function of them. With its gradient
/// with respect to them, a second sweep repeats the samples and gathers the gradients of mean, diagonal and factor.
pub fn chunked_energy_loss(
    distribution: &LowRankNormalTensors,
    target: &Target,
    noise: NoiseSource,
    options: EnergyOptions,
    voxels_at_once: i64,
) -> Result<Tensor> {
    require(voxels_at_once > 0, "voxels_at_once", voxels_at_once, "at least 1")?;
    let [b, c, v] = distribution.dims();
    target.check(b, c, v)?;
    let device = distribution.mean().device();
    let weights = pair_weights(noise, target.maps().size()[1], options.diversity_weight, device)?;
    let of_products = |products: &Tensor| weighted_distances(products, &weights, options.similarity);
    if v <= voxels_at_once {
        return of_products(&inner_products(&soft_maps(distribution, target, noise, 0..v)?)?);
    }
    let leaves = distribution.detached();
    let chunks = || (0..v).step_by(voxels_at_once as usize).map(|x| x..(x + voxels_at_once).min(v));
    let mut products: Option<Tensor> = None;
    tch::no_grad(|| {
        for chunk in chunks() {
            let part = inner_products(&soft_maps(&leaves, target, noise, chunk)?)?;
            products = Some(match products.take() {
                Some(sum) => sum.f_add(&part)?,
                None => part,
            });
        }
        Ok::<_, NnError>(())
    })?;
    let Some(products) = products else { return refused("the number of voxels", v, "at least 1") };
    let wants_gradient = distribution.requires_grad();
    let products = products.set_requires_grad(wants_gradient);
    let loss = of_products(&products)?;
    if !wants_gradient {
        return Ok(loss);
    }
    loss.f_sum(Kind::Double)?.f_backward()?;
    let (leaves, gradient) = (leaves.trainable(), products.grad());
    for chunk in chunks() {
        let products = inner_products(&soft_maps(&leaves, target, noise, chunk)?)?;
        products.f_mul(&gradient)?.f_sum(Kind::Double)?.f_backward()?;
    }
    Ok(distribution.with_gathered_gradients(&loss, &leaves))
}

/// The weight of the distance of every two maps, samples first and then targets: `[m + t, m + t]`. Made on the device: a
/// recorded step can copy nothing from the host.
fn pair_weights(noise: NoiseSource, targets: i64, diversity_weight: f64, device: Device) -> Result<Tensor> {
    let (samples, pairing) = (noise.samples(), noise.pairing());
    let draws = pairing.draws(samples)?;
    if draws < 2 {
        return refused("loss.samples", samples, TWO_DRAWS);
    }
    let place = Tensor::f_arange(samples + targets, (Kind::Int64, device))?;
    let is_sample = place.f_lt(samples)?.f_to_kind(Kind::Double)?;
    let is_target: Tensor = 1.0 - &is_sample;
    let cross = is_sample.f_outer(&is_target)?;
    // Antithetic partners are of the same draw.
    let draw = place.f_remainder(draws)?;
    let is_independent = draw.f_unsqueeze(0)?.f_ne_tensor(&draw.f_unsqueeze(1)?)?;
    let independent = is_sample.f_outer(&is_sample)?.f_mul(&is_independent.f_to_kind(Kind::Double)?)?;
    let pairs = (samples * (samples - pairing.samples(1))) as f64;
    Ok((&cross + cross.f_transpose(0, 1)?) / (samples * targets) as f64
        - independent * (diversity_weight / pairs)
        - is_target.f_outer(&is_target)? / (targets * targets) as f64)
}

/// The probabilities of the foreground classes in every sample, and the target maps: `[b, k, s, m + t, x]`, where the voxels
/// of the range are cut into `s` tiles of `x`; those beyond the end are 0.
fn soft_maps(
    distribution: &LowRankNormalTensors,
    target: &Target,
    noise: NoiseSource,
    voxels: Range<i64>,
) -> Result<Tensor> {
    if let NoiseSource::OnGpu(noise) = noise {
        target.check_on_gpu()?;
        return Ok(ssn_cuda::soft_maps(distribution.parts(), target.maps(), noise.seed, noise.options()?)?);
    }
    let draws = noise.pairing().draws(noise.samples())?;
    let (start, count) = (voxels.start, voxels.end - voxels.start);
    let logits = distribution.narrow_voxels(voxels.clone())?.sample(&noise.part(0..draws, voxels)?)?; // [m, b, c, x]
    let maps = target.maps().f_narrow(-1, start, count)?;
    let (probabilities, truth) = match target.likelihood() {
        Likelihood::Categorical => {
            let c = logits.size()[2];
            let foreground =
                Tensor::f_arange_start(1, c, (Kind::Int64, maps.device()))?.f_view([1, -1, 1, 1])?;
            let truth = maps.f_unsqueeze(1)?.f_eq_tensor(&foreground)?; // [b, k, t, x]
            (logits.f_softmax(2, None::<Kind>)?.f_narrow(2, 1, c - 1)?, truth)
        }
        Likelihood::Bernoulli => (logits.f_sigmoid()?, maps.f_transpose(1, 2)?),
    };
    let probabilities = probabilities.f_permute([1, 2, 0, 3])?; // [b, k, m, x]
    let truth = truth.f_to_device(probabilities.device())?.f_to_kind(probabilities.kind())?;
    Ok(Tensor::f_cat(&[probabilities, truth], 2)?.f_unsqueeze(2)?)
}

/// The inner products of all maps over voxels, `[b, k, s, n, x]` → `[b, k, n, n]` in double precision.
fn inner_products(maps: &Tensor) -> Result<Tensor> {
    let products = maps.f_matmul(&maps.f_transpose(-2, -1)?)?; // [b, k, s, n, n]
    Ok(products.f_sum_dim_intlist([2i64].as_slice(), false, Kind::Double)?)
}

/// The weighted sum of the distances of all maps, averaged over classes: `[b, k, n, n]` → `[b]`.
fn weighted_distances(products: &Tensor, weights: &Tensor, similarity: Similarity) -> Result<Tensor> {
    let squares = products.f_diagonal(0, -2, -1)?; // [b, k, n]
    let sums = squares.f_unsqueeze(-1)?.f_add(&squares.f_unsqueeze(-2)?)?;
    let similarity = match similarity {
        Similarity::Tanimoto => (products + 1.0).f_div(&(sums.f_sub(products)? + 1.0))?,
        Similarity::Dice => (products * 2.0 + 1.0).f_div(&(sums + 1.0))?,
    };
    let distances: Tensor = 1.0 - similarity;
    let each = distances.f_mul(weights)?.f_sum_dim_intlist([2i64, 3].as_slice(), false, Kind::Double)?;
    Ok(each.f_mean_dim([1i64].as_slice(), false, None::<Kind>)?)
}
