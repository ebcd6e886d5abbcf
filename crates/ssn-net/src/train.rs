//! Training: one step after another, each a function of the batch, its number and the seed.
//!
//! Knows nothing of files, signals or progress: who drives it decides when to save, validate and stop.

use serde::{Deserialize, Serialize};
use ssn_core::random::derive_seed;
use ssn_data::Batch;
use tch::{Kind, Tensor};

use crate::blocks::Mode;
use crate::clip::clip_gradient_norm;
use crate::error::{NetError, Result, require};
use crate::head::Prediction;
use crate::loss::{dice_loss, mean_loss, monte_carlo_loss};
use crate::model::Model;
use crate::noise::{NoiseSource, Pairing, StepNoise};
use crate::optim::{Method, Optimizer};
use crate::parameters::Role;
use crate::purpose::DROPOUT;
use crate::schedule::LearningRate;
use crate::target::Target;

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// The Monte-Carlo samples M of every step.
    pub samples: i64,
    /// How they belong together.
    pub pairing: Pairing,
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
        require(self.dice.is_finite() && self.dice >= 0.0, "loss.dice", self.dice, "0 or more")?;
        match self.max_gradient_norm {
            Some(norm) => require(norm.is_finite() && norm > 0.0, "loss.max_gradient_norm", norm, "positive"),
            None => Ok(()),
        }
    }
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepReport {
    /// The number of the step, from 0.
    pub step: u64,
    /// The loss of the batch.
    pub loss: f64,
    /// How many of the samples the loss rests on, on average; nothing where none were drawn.
    pub effective_samples: Option<f64>,
    /// The norm of the gradient before it was shortened.
    pub gradient_norm: f64,
    /// The learning rate.
    pub learning_rate: f64,
}

/// A model that learns.
#[derive(Debug)]
pub struct Trainer {
    model: Model,
    optimizer: Optimizer,
    rate: LearningRate,
    loss: LossConfig,
    seed: u64,
    step: u64,
    /// What the forward pass changes, as it was before the step.
    kept: Vec<Tensor>,
}

impl Trainer {
    /// A trainer before its first step.
    pub fn new(
        model: Model,
        method: Method,
        rate: LearningRate,
        loss: LossConfig,
        seed: u64,
    ) -> Result<Self> {
        loss.check()?;
        let optimizer = Optimizer::new(method, model.parameters().named_trained())?;
        let kept = kept(&model).map(Tensor::copy).collect();
        Ok(Self { model, optimizer, rate, loss, seed, step: 0, kept })
    }

    /// The same trainer after so many steps, with the model and the optimiser of then.
    pub fn resumed_at(
        mut self,
        step: u64,
        restore: impl FnOnce(&mut Optimizer) -> Result<()>,
    ) -> Result<Self> {
        restore(&mut self.optimizer)?;
        self.step = step;
        Ok(self)
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The optimiser.
    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// Steps done.
    pub fn steps_done(&self) -> u64 {
        self.step
    }

    /// Learns from a batch, whose number must be that of the step.
    ///
    /// # Errors
    /// [`NetError::NonFinite`] when the loss or a gradient is not finite: the step is not applied, and weights and
    /// statistics are as they were. It counts as done: the next batch is another.
    pub fn step(&mut self, batch: &Batch) -> Result<StepReport> {
        let number = self.step;
        require(batch.number == number, "the number of the batch", batch.number, "that of the step")?;
        tch::no_grad(|| {
            for (backup, tensor) in self.kept.iter_mut().zip(kept(&self.model)) {
                backup.f_copy_(tensor)?;
            }
            Ok::<_, NetError>(())
        })?;
        self.step += 1;
        self.attempt(batch, number).inspect_err(|_| self.undo())
    }

    fn attempt(&mut self, batch: &Batch, number: u64) -> Result<StepReport> {
        let (image, mask, target) = tensors(batch, self.model.config().classes)?;
        self.optimizer.zero_grad()?;
        let dropout = derive_seed(self.seed, DROPOUT, number);
        let prediction = self.model.forward(&image, mask.as_ref(), Mode::Training { dropout })?;
        let target = target.on(self.model.execution().device)?;
        let (mut loss, effective) = match &prediction {
            Prediction::Stochastic(d) if number >= self.loss.pretrain_steps => {
                let shape = d.noise_shape(self.loss.samples);
                let noise = StepNoise::new(self.seed, number, shape, self.loss.pairing)?;
                let result = monte_carlo_loss(d, &target, NoiseSource::Step(&noise))?;
                (result.loss, Some(result.effective_samples))
            }
            prediction => (mean_loss(prediction.mean(), &target)?, None),
        };
        if self.loss.dice > 0.0 {
            loss = loss.f_add(&(dice_loss(prediction.mean(), &target)? * self.loss.dice))?;
        }
        let loss = loss.f_mean(Kind::Double)?;
        let value = loss.f_double_value(&[])?;
        let not_finite = |what| NetError::NonFinite { what, step: number as usize + 1 };
        if !value.is_finite() {
            return Err(not_finite("the loss".to_owned()));
        }
        loss.f_backward()?;
        let limit = self.loss.max_gradient_norm.unwrap_or(f64::MAX);
        let clipped = clip_gradient_norm(self.optimizer.parameters(), limit);
        let gradient_norm = clipped.map_err(|error| match error {
            NetError::GradientNorm { of, .. } => not_finite(format!("the gradient of {of}")),
            other => other,
        })?;
        let learning_rate = self.rate.at(number);
        self.optimizer.step(learning_rate)?;
        let effective =
            effective.map(|samples| samples.f_mean(Kind::Double)?.f_double_value(&[])).transpose()?;
        Ok(StepReport {
            step: number,
            loss: value,
            effective_samples: effective,
            gradient_norm,
            learning_rate,
        })
    }

    /// Statistics as they were before a step that is not applied; weights change last of all.
    fn undo(&mut self) {
        tch::no_grad(|| {
            for (backup, tensor) in self.kept.iter().zip(kept(&self.model)) {
                tensor.shallow_clone().copy_(backup);
            }
        });
    }
}

/// The tensors that a forward pass may change.
fn kept(model: &Model) -> impl Iterator<Item = &Tensor> {
    model.parameters().entries().iter().filter(|entry| entry.role == Role::Kept).map(|entry| &entry.tensor)
}

/// A batch as tensors: image `[b, c, d, h, w]`, mask `[b, d, h, w]`, target.
pub fn tensors(batch: &Batch, classes: i64) -> Result<(Tensor, Option<Tensor>, Target)> {
    let image = Tensor::f_from_slice(&batch.images)?.f_view(batch.image_shape.map(|n| n as i64))?;
    let [b, t, d, h, w] = batch.target_shape.map(|n| n as i64);
    let maps = Tensor::f_from_slice(&batch.targets)?.f_view([b, t, d * h * w])?.f_to_kind(Kind::Int64)?;
    let mask =
        batch.masks.as_ref().map(|mask| Tensor::f_from_slice(mask)?.f_view([b, d, h, w])).transpose()?;
    Ok((image, mask, Target::classes(maps, classes)?))
}
