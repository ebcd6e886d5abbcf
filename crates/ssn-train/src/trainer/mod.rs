//! Training: one step after another, each a function of the batch, its number and the seed.
//!
//! Knows nothing of files, signals or progress: who drives it decides when to save, validate and stop.

pub mod average;
mod batch;
mod gpu;
mod objective;

use ssn_nn::NnError;
use std::sync::Arc;

use ssn_core::random::derive_seed;
use ssn_data::Batch;
use tch::{Device, Kind, Tensor};

use crate::error::{Result, TrainError, refused, require};
use crate::parallel::Gradients;
use crate::trainer::average::WeightAverage;
use batch::{Seen, tensors};
pub use objective::LossConfig;
use objective::{batch_loss, fill_latent_noise, latent_loss};
use ssn_nn::communicator::Ranks;
use ssn_nn::heads::Prediction;
use ssn_nn::layers::Mode;
use ssn_nn::model::Model;
use ssn_nn::optim::clip::clip_gradient_norm;
use ssn_nn::optim::schedule::LearningRate;
use ssn_nn::optim::{Method, Optimizer};
use ssn_nn::parameters::Role;
use ssn_nn::random::DROPOUT;
use ssn_nn::random::noise::{NoiseSource, StepNoise};

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

/// What became of a step.
enum Outcome {
    Applied {
        loss: f64,
        effective_samples: Option<f64>,
        gradient_norm: f64,
    },
    /// What is not finite; nothing has changed.
    NotFinite(String),
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
    place: Place,
    begun: Option<Begun>,
    team: Option<Team>,
    average: Option<WeightAverage>,
}

/// The ranks that a trainer on processors works with.
#[derive(Debug)]
struct Team {
    ranks: Arc<dyn Ranks>,
    gradients: Gradients,
    /// Whether statistics of normalizations are those of whole batches.
    shares_norm: bool,
}

impl Team {
    /// Makes the running statistics the means of those of all ranks, each weighted by its share of the batch.
    fn average_kept(&self, model: &Model, share: f64) -> Result<()> {
        let _guard = tch::no_grad_guard();
        let mut numbers = vec![];
        for tensor in kept(model) {
            let values = Vec::<f64>::try_from(tensor.f_to_kind(Kind::Double)?.f_view([-1])?)?;
            numbers.extend(values.into_iter().map(|value| share * value));
        }
        self.ranks.sum_f64(&mut numbers)?;
        let mut rest = numbers.as_slice();
        for tensor in kept(model) {
            let (values, after) = rest.split_at(tensor.numel());
            rest = after;
            tensor.shallow_clone().f_copy_(&Tensor::f_from_slice(values)?.f_view_as(tensor)?)?;
        }
        Ok(())
    }
}

/// Where steps are computed, with what that needs.
#[derive(Debug)]
enum Place {
    /// On processors: what the forward pass changes, as it was before the step.
    Host {
        kept: Vec<Tensor>,
    },
    Gpu(Box<gpu::Gpu>),
}

/// A step that was begun.
#[derive(Debug)]
enum Begun {
    /// It is done already.
    Host(Result<StepReport>),
    /// The GPU works on the step of this number.
    Gpu(u64),
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
        let place = match model.execution().device {
            Device::Cpu => Place::Host { kept: kept(&model).map(Tensor::copy).collect() },
            _ => Place::Gpu(Box::new(gpu::Gpu::new(&model, &optimizer)?)),
        };
        Ok(Self {
            model,
            optimizer,
            rate,
            loss,
            seed,
            step: 0,
            place,
            begun: None,
            team: None,
            average: None,
        })
    }

    /// The same trainer, which also takes the mean of what the network has over about the last so many steps; none for 0.
    pub fn with_average(mut self, steps: u64) -> Result<Self> {
        self.average = (steps > 0).then(|| WeightAverage::new(&self.model, steps)).transpose()?;
        Ok(self)
    }

    /// The same trainer as one of several ranks, which have the same model and each a part of every batch. Their steps are
    /// those of the whole batches, up to rounding; with statistics of batch norm that are not shared, those of batches
    /// whose parts are normalized by themselves.
    pub fn with_ranks(mut self, ranks: Arc<dyn Ranks>, shares_norm: bool) -> Result<Self> {
        match &mut self.place {
            Place::Host { .. } => {
                let parameters = self.optimizer.parameters().iter();
                let parameters = parameters.map(|(_, tensor)| tensor.shallow_clone()).collect();
                let gradients = Gradients::new(&*ranks, parameters)?;
                self.team = Some(Team { ranks, gradients, shares_norm });
            }
            Place::Gpu(gpu) => gpu.join(ranks, shares_norm, &self.model)?,
        }
        Ok(self)
    }

    /// How the GPUs of several ranks sum, in words; nothing on processors, or for a rank alone.
    pub fn gpu_sums(&self) -> Option<&'static str> {
        match &self.place {
            Place::Host { .. } => None,
            Place::Gpu(gpu) => gpu.sums_in_words(),
        }
    }

    /// The same trainer after so many steps, with the model and the optimizer of then.
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

    /// Whether a mean over the last steps is taken.
    pub fn has_average(&self) -> bool {
        self.average.is_some()
    }

    /// Does something with the network for others than the next step: with the mean over the last steps, if it is taken.
    pub fn with_result<T>(&mut self, work: impl FnOnce(&Model) -> Result<T>) -> Result<T> {
        let Some(average) = &mut self.average else { return work(&self.model) };
        average.swap(&self.model)?;
        let done = work(&self.model);
        average.swap(&self.model)?;
        done
    }

    /// The optimizer.
    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// Steps done.
    pub fn steps_done(&self) -> u64 {
        self.step
    }

    /// Seconds in which a GPU has worked on steps.
    pub fn gpu_seconds(&self) -> Option<f64> {
        match &self.place {
            Place::Host { .. } => None,
            Place::Gpu(gpu) => Some(gpu.busy_seconds()),
        }
    }

    /// Learns from a batch, whose number must be that of the step.
    ///
    /// # Errors
    /// [`TrainError::NonFinite`] when the loss or a gradient is not finite: the step is not applied, and weights and
    /// statistics are as they were. It counts as done: the next batch is another.
    pub fn step(&mut self, batch: &Batch) -> Result<StepReport> {
        self.begin(batch)?;
        self.finish()
    }

    /// Begins a step; a GPU works on it until [`Trainer::finish`]. Processors are done when this returns.
    pub fn begin(&mut self, batch: &Batch) -> Result<()> {
        require(self.begun.is_none(), "a step", "begun", "finished before the next one begins")?;
        let number = self.step;
        require(batch.number == number, "the number of the batch", batch.number, "that of the step")?;
        self.step += 1;
        let begun = match &mut self.place {
            Place::Host { kept: backups } => {
                tch::no_grad(|| {
                    for (backup, tensor) in backups.iter_mut().zip(kept(&self.model)) {
                        backup.f_copy_(tensor)?;
                    }
                    Ok::<_, TrainError>(())
                })?;
                let result = self.attempt(batch, number);
                if result.is_err() {
                    self.undo();
                }
                Begun::Host(result)
            }
            Place::Gpu(gpu) => {
                let how = (&self.loss, self.rate.at(number), self.seed);
                if let Err(error) = gpu.begin(batch, &self.model, &mut self.optimizer, how) {
                    gpu.undo();
                    return Err(error);
                }
                Begun::Gpu(number)
            }
        };
        self.begun = Some(begun);
        Ok(())
    }

    /// Announces the batch of the next step, which a GPU gets while it works on the one that was begun.
    pub fn stage(&mut self, batch: &Batch) -> Result<()> {
        match &mut self.place {
            Place::Host { .. } => Ok(()),
            Place::Gpu(gpu) => gpu.stage(batch, &self.model),
        }
    }

    /// What became of the step that was begun; see [`Trainer::step`].
    pub fn finish(&mut self) -> Result<StepReport> {
        let report = match (self.begun.take(), &mut self.place) {
            (Some(Begun::Host(result)), _) => result,
            (Some(Begun::Gpu(number)), Place::Gpu(gpu)) => {
                let sampled = self.loss.samples_at(number);
                let outcome = gpu.finish(&self.model, &mut self.optimizer, sampled)?;
                self.report(number, outcome)
            }
            _ => refused("a step", "not begun", "begun before it is finished"),
        }?;
        if let Some(average) = &mut self.average {
            average.add(&self.model, self.step)?;
        }
        Ok(report)
    }

    fn attempt(&mut self, batch: &Batch, number: u64) -> Result<StepReport> {
        let Seen { parts, size, mask, target } = tensors(batch, self.model.config().classes)?;
        self.optimizer.zero_grad()?;
        let dropout = derive_seed(self.seed, DROPOUT, number);
        let (first, share) = (batch.first, batch.image_shape[0] as f64 / batch.of as f64);
        let ranks = self.team.as_ref().filter(|team| team.shares_norm).map(|team| &team.ranks);
        let mode = Mode::Training { dropout, first, of: batch.of, ranks };
        let (loss, effective) = match self.model.latent() {
            Some(latent) => {
                let each = latent.noise_count(size) as usize;
                let mut noise = vec![0f32; batch.image_shape[0] * each];
                fill_latent_noise(self.seed, number, first * each, &mut noise);
                let noise = Tensor::f_from_slice(&noise)?.f_view([parts[0].size()[0], -1])?;
                (latent_loss(&self.model, &parts, &target, &noise, mode, &self.loss)?, None)
            }
            None => {
                let prediction = self.model.forward_seen(&parts, size, mask.as_ref(), mode)?;
                let noise = match &prediction {
                    Prediction::Stochastic(d) if self.loss.samples_at(number) => {
                        let shape = d.noise_shape(self.loss.samples);
                        Some(StepNoise::new(self.seed, number, shape, self.loss.pairing)?.from_item(first))
                    }
                    _ => None,
                };
                let noise = noise.as_ref().map(NoiseSource::Step);
                batch_loss(&prediction, &target, noise, &self.loss)?
            }
        };
        let mut value = loss.f_double_value(&[])?;
        let mut effective_samples = effective.map(|samples| samples.f_double_value(&[])).transpose()?;
        // Means over the whole batch are sums of what the ranks have, each weighted by its share.
        if let Some(team) = &self.team {
            let mut both = [share * value, share * effective_samples.unwrap_or(0.0)];
            team.ranks.sum_f64(&mut both)?;
            value = both[0];
            effective_samples = effective_samples.map(|_| both[1]);
        }
        if !value.is_finite() {
            return self.report(number, Outcome::NotFinite("the loss".to_owned()));
        }
        match &self.team {
            None => loss.f_backward()?,
            Some(team) => {
                loss.f_mul_scalar(share)?.f_backward()?;
                team.gradients.finish()?;
                if !team.shares_norm {
                    team.average_kept(&self.model, share)?;
                }
            }
        }
        let limit = self.loss.max_gradient_norm.unwrap_or(f64::MAX);
        let gradient_norm = match clip_gradient_norm(self.optimizer.parameters(), limit) {
            Ok(norm) => norm,
            Err(NnError::GradientNorm { of, .. }) => {
                return self.report(number, Outcome::NotFinite(format!("the gradient of {of}")));
            }
            Err(other) => return Err(other.into()),
        };
        self.optimizer.step(self.rate.at(number))?;
        self.report(number, Outcome::Applied { loss: value, effective_samples, gradient_norm })
    }

    fn report(&self, step: u64, outcome: Outcome) -> Result<StepReport> {
        match outcome {
            Outcome::Applied { loss, effective_samples, gradient_norm } => {
                let learning_rate = self.rate.at(step);
                Ok(StepReport { step, loss, effective_samples, gradient_norm, learning_rate })
            }
            Outcome::NotFinite(what) => Err(TrainError::NonFinite { what, step: step as usize + 1 }),
        }
    }

    /// Statistics as they were before a step that is not applied; weights change last of all.
    fn undo(&mut self) {
        let Place::Host { kept: backups } = &self.place else { return };
        tch::no_grad(|| {
            for (backup, tensor) in backups.iter().zip(kept(&self.model)) {
                tensor.shallow_clone().copy_(backup);
            }
        });
    }
}

/// The tensors that a forward pass may change.
fn kept(model: &Model) -> impl Iterator<Item = &Tensor> {
    model.parameters().entries().iter().filter(|entry| entry.role == Role::Kept).map(|entry| &entry.tensor)
}
