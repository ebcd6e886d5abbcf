//! The objective: a batch as tensors, and the loss of its forward pass.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_args::LossKind;
use ssn_core::Lattice;
use ssn_core::random::fill_normals_from;
use ssn_data::Batch;
use ssn_nn::distribution::LowRankNormalTensors;
use ssn_nn::error::{NnError, Result, require};
use ssn_nn::heads::Prediction;
use ssn_nn::layers::Mode;
use ssn_nn::loss::{
    EnergyOptions, OwnLoss, Similarity, TWO_DRAWS, Target, dice_loss, energy_loss, mean_loss, tempered_loss,
};
use ssn_nn::model::Model;
use ssn_nn::random::{GpuNoise, NoiseSource, Pairing, StepNoise};
use ssn_nn::space::Size;
use tch::{Kind, Tensor};

/// The section `[loss]`.
///
/// Training goes through phases: first `pretrain_steps` of cross-entropy of the mean, then, before an energy loss,
/// `likelihood_steps` of the likelihood, then `kind`. Where an energy loss follows, the optimizer starts anew with it: the
/// gradients of nats per image are thousands of times larger. Heads without a distribution over logits have losses of their
/// own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// What is minimized.
    pub kind: LossKind,
    /// A loss that the program registered, by its name; it is minimized in place of `kind`.
    pub own: Option<OwnLoss>,
    /// The Monte-Carlo samples M of every step.
    pub samples: i64,
    /// Whether samples are independent or antithetic pairs.
    pub pairing: Pairing,
    /// The exponent β of the likelihoods, −(1/β) log (1/M) Σ pᵝ; 1 is the paper's loss. With less, how many samples fit
    /// counts more beside how well the best one does: samples are less diverse and better calibrated.
    pub likelihood_exponent: f64,
    /// How the energy loss compares maps.
    pub similarity: Similarity,
    /// The weight of the distances between samples in the energy loss. 1 makes it a proper score; with less, samples are
    /// less diverse and each is closer to the raters.
    pub diversity_weight: f64,
    /// The weight of the likelihood, in nats per image, beside an energy loss; 0 for none.
    pub likelihood_weight: f64,
    /// The first steps, which train the mean alone by cross-entropy.
    pub pretrain_steps: u64,
    /// Steps after those that train by likelihood, before an energy loss.
    pub likelihood_steps: u64,
    /// The weight of the Dice term on the mean; 0 for none.
    pub dice: f64,
    /// The largest norm of the gradient; longer gradients are clipped to it.
    pub max_gradient_norm: Option<f64>,
}

impl Default for LossConfig {
    fn default() -> Self {
        // The paper: 20 samples. Both of its experiments train all parts from the beginning, without clipping.
        Self {
            kind: LossKind::Likelihood,
            own: None,
            samples: 20,
            pairing: Pairing::Independent,
            likelihood_exponent: 1.0,
            similarity: Similarity::Tanimoto,
            diversity_weight: 1.0,
            likelihood_weight: 0.0,
            pretrain_steps: 0,
            likelihood_steps: 0,
            dice: 0.0,
            max_gradient_norm: None,
        }
    }
}

/// What the steps of a phase minimize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossPhase {
    /// The cross-entropy of the mean.
    Mean,
    /// The negative log-likelihood.
    Likelihood,
    /// The energy distance.
    Energy,
    /// A loss of the program's own.
    Own,
}

impl LossConfig {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        require(self.samples >= 1, "loss.samples", self.samples, "at least 1")?;
        let draws = self.pairing.draws(self.samples)?;
        let exponent = self.likelihood_exponent;
        let in_range = exponent > 0.0 && exponent <= 1.0;
        require(in_range, "loss.likelihood_exponent", exponent, "above 0, and 1 at most")?;
        for (name, value) in [
            ("loss.diversity_weight", self.diversity_weight),
            ("loss.likelihood_weight", self.likelihood_weight),
            ("loss.dice", self.dice),
        ] {
            require(value.is_finite() && value >= 0.0, name, value, "0 or more")?;
        }
        if self.own.is_some() {
            let expected = "left out beside loss.own, which takes its place";
            require(self.kind == LossKind::Likelihood, "loss.kind", "\"energy\"", expected)?;
        }
        match self.kind {
            LossKind::Energy => require(draws >= 2, "loss.samples", self.samples, TWO_DRAWS)?,
            LossKind::Likelihood => {
                let (steps, weight) = (self.likelihood_steps, self.likelihood_weight);
                let expected = "0, unless loss.kind is \"energy\"";
                require(steps == 0, "loss.likelihood_steps", steps, expected)?;
                require(weight == 0.0, "loss.likelihood_weight", weight, expected)?;
            }
        }
        match self.max_gradient_norm {
            Some(norm) => require(norm.is_finite() && norm > 0.0, "loss.max_gradient_norm", norm, "positive"),
            None => Ok(()),
        }
    }

    /// Refuses phases that leave no step to the last of them.
    pub fn check_steps(&self, steps: u64) -> Result<()> {
        let (pretrain, likelihood) = (self.pretrain_steps, self.likelihood_steps);
        require(pretrain < steps, "loss.pretrain_steps", pretrain, "less than training.steps")?;
        let expected = "less than training.steps less loss.pretrain_steps";
        require(likelihood < steps - pretrain, "loss.likelihood_steps", likelihood, expected)
    }

    /// The phase of the step of a number.
    pub(super) fn phase_at(&self, step: u64) -> LossPhase {
        match self.kind {
            _ if step < self.pretrain_steps => LossPhase::Mean,
            _ if self.own.is_some() => LossPhase::Own,
            LossKind::Energy if step - self.pretrain_steps >= self.likelihood_steps => LossPhase::Energy,
            _ => LossPhase::Likelihood,
        }
    }

    /// Returns `true` if the step is the first of a loss whose gradients are of another scale than those before.
    pub(super) fn changes_scale_at(&self, step: u64) -> bool {
        let phase = self.phase_at(step);
        step > 0 && matches!(phase, LossPhase::Energy | LossPhase::Own) && self.phase_at(step - 1) != phase
    }

    /// Returns `true` if a step of a phase can be captured as a CUDA graph.
    pub(super) fn can_be_captured(&self, phase: LossPhase) -> bool {
        phase != LossPhase::Own || self.own.is_some_and(|own| own.loss().can_be_captured())
    }

    /// The loss of the samples `[b]`, and their mean effective sample size where there is a likelihood.
    fn of_samples(
        &self,
        phase: LossPhase,
        distribution: &LowRankNormalTensors,
        target: &Target,
        noise: NoiseSource,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let likelihood = || {
            let result = tempered_loss(distribution, target, noise, self.likelihood_exponent)?;
            Ok::<_, NnError>((result.loss, Some(result.ess.f_mean(Kind::Double)?)))
        };
        if let (LossPhase::Own, Some(own)) = (phase, self.own) {
            let loss = own.loss().loss(distribution, target, noise)?;
            let (found, b) = (loss.size(), distribution.dims()[0]);
            if found != [b] {
                let expected = format!("[{b}], one number for each image,");
                return Err(NnError::shape("the loss", &found, expected));
            }
            return Ok((loss.f_to_kind(Kind::Double)?, None));
        }
        if phase != LossPhase::Energy {
            return likelihood();
        }
        let &Self { similarity, diversity_weight, likelihood_weight, .. } = self;
        let options = EnergyOptions { similarity, diversity_weight };
        let energy = energy_loss(distribution, target, noise, options)?;
        if likelihood_weight == 0.0 {
            return Ok((energy, None));
        }
        let (loss, ess) = likelihood()?;
        Ok((energy.f_add(&loss.f_mul_scalar(likelihood_weight)?)?, ess))
    }
}

/// A batch as tensors.
pub(super) struct BatchTensors {
    /// The grids of the patches that the network reads, `[b, c, dᵢ, hᵢ, wᵢ]` each.
    pub(super) parts: Vec<Tensor>,
    /// The size of the patches.
    pub(super) size: Size,
    /// `[b, d, h, w]`.
    pub(super) mask: Option<Tensor>,
    /// The label maps.
    pub(super) target: Target,
}

impl BatchTensors {
    /// A batch on the CPU.
    pub(super) fn new(batch: &Batch, classes: i64) -> Result<Self> {
        let images = Tensor::f_from_slice(&batch.images)?.f_view([batch.image_shape[0] as i64, -1])?;
        let [b, t, d, h, w] = batch.target_shape.map(|n| n as i64);
        let maps = Tensor::f_from_slice(&batch.targets)?.f_view([b, t, d * h * w])?.f_to_kind(Kind::Int64)?;
        let mask = batch.masks.as_ref().map(|mask| Tensor::f_from_slice(mask)?.f_view([b, d, h, w]));
        Ok(Self {
            parts: grids(&images, batch)?,
            size: patch_size(batch),
            mask: mask.transpose()?,
            target: Target::classes(maps, classes)?,
        })
    }
}

/// The grids of a batch out of all its numbers, `[b, n]`, sharing memory.
pub(super) fn grids(images: &Tensor, batch: &Batch) -> Result<Vec<Tensor>> {
    let [b, c] = [batch.image_shape[0], batch.image_shape[1]].map(|n| n as i64);
    let mut start = 0;
    let part = |grid: &Lattice| {
        let ([d, h, w], count) = (grid.count.map(|n| n as i64), c * grid.voxels() as i64);
        start += count;
        Ok(images.f_narrow(1, start - count, count)?.f_view([b, c, d, h, w])?)
    };
    batch.grids.iter().map(part).collect()
}

/// The size of the patches of a batch.
pub(super) fn patch_size(batch: &Batch) -> Size {
    [2, 3, 4].map(|axis| batch.image_shape[axis] as i64)
}

/// The noise of a step.
pub(super) enum StepRandom {
    /// Of latent variables, `[b, n]`.
    Latent(Tensor),
    /// Of samples, made on the CPU, for the items from `first` on.
    Cpu { seed: u64, step: u64, first: usize },
    /// Of samples, made on the GPU from the seed there.
    Gpu { seed: Tensor, first: usize },
    /// None: only the mean is trained.
    None,
}

/// Forward pass and loss of a batch in training: the mean loss, a scalar with gradients, and the mean effective sample
/// size, if samples were drawn.
pub(super) fn forward_loss(
    model: &Model,
    batch: &BatchTensors,
    random: &StepRandom,
    config: &LossConfig,
    phase: LossPhase,
) -> Result<(Tensor, Option<Tensor>)> {
    let BatchTensors { parts, size, mask, target } = batch;
    let (mean, mut loss, ess) = match random {
        StepRandom::Latent(noise) => {
            let mut terms = model.elbo_terms(parts, target, noise, Mode::Training)?;
            let loss = terms.loss(target)?;
            (terms.logits.pop(), loss, None)
        }
        _ => {
            let prediction = model.forward_grids(parts, *size, mask.as_ref(), Mode::Training)?;
            let mean = Some(prediction.mean().shallow_clone());
            let &LossConfig { samples, pairing, .. } = config;
            let (loss, ess) = match (&prediction, random) {
                (Prediction::Stochastic(distribution), &StepRandom::Cpu { seed, step, first }) => {
                    let shape = distribution.noise_shape(samples);
                    let noise = StepNoise::new(seed, step, shape, pairing)?.from_item(first);
                    config.of_samples(phase, distribution, target, NoiseSource::Step(&noise))?
                }
                (Prediction::Stochastic(distribution), StepRandom::Gpu { seed, first }) => {
                    let shape = distribution.noise_shape(samples);
                    let noise = GpuNoise { seed, shape, pairing, first: *first };
                    config.of_samples(phase, distribution, target, NoiseSource::OnGpu(noise))?
                }
                _ => (mean_loss(prediction.mean(), target)?, None),
            };
            (mean, loss, ess)
        }
    };
    if let Some(mean) = mean.filter(|_| config.dice > 0.0) {
        loss = loss.f_add(&(dice_loss(&mean, target)? * config.dice))?;
    }
    Ok((loss.f_mean(Kind::Double)?, ess))
}

/// The noise of a step's latent variables from number `first` on: a function of seed and step alone.
pub(super) fn fill_latent_noise(seed: u64, step: u64, first: usize, out: &mut [f32]) {
    fill_normals_from(StepNoise::seed(seed, step), 0, 0, first, out);
}
