//! What training minimizes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_core::random::fill_normals_from;
use tch::{Kind, Tensor};

use crate::error::{Result, require};
use ssn_nn::heads::Prediction;
use ssn_nn::layers::Mode;
use ssn_nn::loss::target::Target;
use ssn_nn::loss::{dice_loss, mean_loss, power_loss};
use ssn_nn::model::Model;
use ssn_nn::random::noise::{NoiseSource, Pairing, StepNoise};

/// What is minimized.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// The Monte-Carlo samples M of every step.
    pub samples: i64,
    /// How they belong together.
    pub pairing: Pairing,
    /// The power β of the likelihoods whose mean is taken, −(1/β) log (1/M) Σ pᵝ; 1 is the paper's. With less, how many samples
    /// fit counts more beside how well the best one does: samples are less diverse and better calibrated.
    pub power: f64,
    /// The first steps, which train the mean alone by cross-entropy.
    pub pretrain_steps: u64,
    /// The weight of the Dice term on the mean; 0 for none.
    pub dice: f64,
    /// The largest norm of the gradient; a longer one is shortened to it.
    pub max_gradient_norm: Option<f64>,
}

impl Default for LossConfig {
    fn default() -> Self {
        // The paper: 20 samples. Both of its experiments train all parts from the beginning, without clipping.
        Self {
            samples: 20,
            pairing: Pairing::Independent,
            power: 1.0,
            pretrain_steps: 0,
            dice: 0.0,
            max_gradient_norm: None,
        }
    }
}

impl LossConfig {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.pairing.draws(self.samples)?;
        let power = self.power;
        require(power > 0.0 && power <= 1.0, "loss.power", power, "above 0, and 1 at most")?;
        require(self.dice.is_finite() && self.dice >= 0.0, "loss.dice", self.dice, "0 or more")?;
        match self.max_gradient_norm {
            Some(norm) => require(norm.is_finite() && norm > 0.0, "loss.max_gradient_norm", norm, "positive"),
            None => Ok(()),
        }
    }

    /// Whether the step of a number trains the whole distribution, by sampling.
    pub(super) fn samples_at(&self, step: u64) -> bool {
        step >= self.pretrain_steps
    }
}

/// The loss of a batch, a scalar with gradients, and the mean of its effective samples, if there is noise to sample with.
pub(super) fn batch_loss(
    prediction: &Prediction,
    target: &Target,
    noise: Option<NoiseSource>,
    config: &LossConfig,
) -> Result<(Tensor, Option<Tensor>)> {
    let (mut loss, effective) = match (prediction, noise) {
        (Prediction::Stochastic(distribution), Some(noise)) => {
            let result = power_loss(distribution, target, noise, config.power)?;
            (result.loss, Some(result.effective_samples.f_mean(Kind::Double)?))
        }
        (prediction, _) => (mean_loss(prediction.mean(), target)?, None),
    };
    if config.dice > 0.0 {
        loss = loss.f_add(&(dice_loss(prediction.mean(), target)? * config.dice))?;
    }
    Ok((loss.f_mean(Kind::Double)?, effective))
}

/// The loss of a batch for a network with latent variables, a scalar with gradients.
///
/// # Shapes
/// `noise` `[b, n]`.
pub(super) fn latent_loss(
    model: &Model,
    parts: &[Tensor],
    target: &Target,
    noise: &Tensor,
    mode: Mode,
    config: &LossConfig,
) -> Result<Tensor> {
    let learnt = model.learn(parts, target, noise, mode)?;
    let mut loss = learnt.loss(target)?;
    if config.dice > 0.0
        && let Some(logits) = learnt.logits.last()
    {
        loss = loss.f_add(&(dice_loss(logits, target)? * config.dice))?;
    }
    Ok(loss.f_mean(Kind::Double)?)
}

/// The noise of a step's latent variables from number `first` on: a function of seed and step alone.
pub(super) fn fill_latent_noise(seed: u64, step: u64, first: usize, out: &mut [f32]) {
    fill_normals_from(StepNoise::seed(seed, step), 0, 0, first, out);
}
