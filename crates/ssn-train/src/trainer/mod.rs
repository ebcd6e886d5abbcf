//! Training: one step after another, each a function of the batch, its number and the seed.
//!
//! A step is: stage the batch, forward pass, loss, backward pass, reduce over ranks, check that all is finite, update. What
//! differs between CPU and GPU is behind the trait `Backend`. The trainer knows nothing of files, signals or progress: the
//! caller decides when to save, validate and stop.

mod cpu;
mod cuda;
mod ema;
mod objective;
mod staging;

use std::fmt::Debug;
use std::sync::Arc;

use serde::Serialize;
use ssn_data::Batch;
use ssn_io::{Error, ErrorKind};
use ssn_nn::communicator::Communicator;
use ssn_nn::error::{NnError, Result, refused, require};
use ssn_nn::model::Model;
use ssn_nn::optim::{LearningRate, Method, Optimizer};
use tch::Device;

use ema::Ema;
pub use objective::LossConfig;
pub use ssn_args::LossKind;

/// Numbers of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepReport {
    /// The number of the step, from 1.
    pub step: u64,
    /// The loss of the batch.
    pub loss: f64,
    /// The mean effective sample size of the loss; nothing where no samples were drawn.
    pub ess: Option<f64>,
    /// The norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// The learning rate.
    pub learning_rate: f64,
}

/// What became of a step.
#[derive(Debug)]
enum StepOutcome {
    Applied {
        loss: f64,
        ess: Option<f64>,
        gradient_norm: f64,
    },
    /// What is not finite; nothing has changed.
    NotFinite(String),
}

/// What a step is computed from, beside the optimizer.
struct StepInput<'a> {
    batch: &'a Batch,
    model: &'a Model,
    loss: &'a LossConfig,
    learning_rate: f64,
    seed: u64,
}

/// How the steps of a trainer are computed.
trait Backend: Debug {
    /// Works with other ranks from now on, with batch norm synchronized or not.
    fn join(&mut self, comm: Arc<dyn Communicator>, syncs_batch_norm: bool, model: &Model) -> Result<()>;

    /// Copies the batch of the next step to the device while the present one is computed.
    fn stage(&mut self, _batch: &Batch, _model: &Model) -> Result<()> {
        Ok(())
    }

    /// Begins a step. If this fails, buffers are as they were before.
    fn begin(&mut self, input: &StepInput, optimizer: &mut Optimizer) -> Result<()>;

    /// Waits for the step that was begun. If it is not applied, buffers are as they were before.
    fn finish(&mut self, model: &Model, optimizer: &mut Optimizer) -> Result<StepOutcome>;

    /// Seconds in which a GPU has worked on steps.
    fn gpu_seconds(&self) -> Option<f64> {
        None
    }

    /// How the GPUs of several ranks reduce, in words.
    fn all_reduce_backend(&self) -> Option<&'static str> {
        None
    }
}

/// A model in training.
///
/// ```no_run
/// use ssn_data::BatchSampler;
/// use ssn_nn::{Execution, LearningRate, Method, Model, ModelConfig, NnError, Precision, Schedule, Warmup};
/// use ssn_train::{LossConfig, Trainer};
///
/// # fn train(batches: &BatchSampler) -> Result<(), NnError> {
/// let model = Model::new(&ModelConfig::lidc(), Execution::cpu(Precision::F32), 0)?;
/// let rate = LearningRate::new(1e-4, Schedule::Constant, Warmup::default(), 1000)?;
/// let mut trainer = Trainer::new(model, Method::adam(), rate, LossConfig::default(), 0)?;
/// for step in 0..1000 {
///     let report = trainer.step(&batches.batch(step)?)?;
///     println!("{} {}", report.step, report.loss);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Trainer {
    model: Model,
    optimizer: Optimizer,
    rate: LearningRate,
    loss: LossConfig,
    seed: u64,
    step: u64,
    backend: Box<dyn Backend>,
    /// Whether a step was begun and not finished.
    is_pending: bool,
    ema: Option<Ema>,
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
        let optimizer = Optimizer::new(method, model.parameters().named_trainable())?;
        let backend: Box<dyn Backend> = match model.execution().device {
            Device::Cpu => Box::new(cpu::CpuBackend::new(&model)),
            _ => Box::new(cuda::CudaBackend::new(&model, &optimizer)?),
        };
        Ok(Self { model, optimizer, rate, loss, seed, step: 0, backend, is_pending: false, ema: None })
    }

    /// The same trainer with an exponential moving average of the weights over about the last `steps` steps; none for 0.
    pub fn with_ema(mut self, steps: u64) -> Result<Self> {
        self.ema = (steps > 0).then(|| Ema::new(&self.model, steps)).transpose()?;
        Ok(self)
    }

    /// The same trainer as one of several ranks, which have the same model and each a part of every batch. Their steps are
    /// those of the whole batches, up to rounding; without synchronized batch norm, those of batches whose parts are
    /// normalized by themselves.
    pub fn with_communicator(mut self, comm: Arc<dyn Communicator>, syncs_batch_norm: bool) -> Result<Self> {
        self.backend.join(comm, syncs_batch_norm, &self.model)?;
        Ok(self)
    }

    /// How the GPUs of several ranks reduce, in words; nothing on CPUs, or for a single rank.
    pub fn all_reduce_backend(&self) -> Option<&'static str> {
        self.backend.all_reduce_backend()
    }

    /// Restores the trainer at `step`; its model is that of the step already, and `restore` brings back the optimizer state.
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

    /// Whether the trainer keeps an exponential moving average.
    pub fn has_ema(&self) -> bool {
        self.ema.is_some()
    }

    /// Calls a function with the model for evaluation: with the EMA weights, if there are any.
    pub fn with_eval_model<T>(&mut self, work: impl FnOnce(&Model) -> Result<T>) -> Result<T> {
        let Some(ema) = &mut self.ema else { return work(&self.model) };
        ema.swap(&self.model)?;
        let done = work(&self.model);
        ema.swap(&self.model)?;
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
        self.backend.gpu_seconds()
    }

    /// Trains on a batch, whose number must be that of the step.
    ///
    /// # Errors
    /// [`ErrorKind::NonFinite`] when the loss or a gradient is not finite: the step is not applied, and weights and
    /// buffers are as they were. It counts as done: the next batch is another.
    pub fn step(&mut self, batch: &Batch) -> Result<StepReport> {
        self.begin(batch)?;
        self.finish()
    }

    /// Begins a step; a GPU works on it until [`Trainer::finish`]. A CPU is done when this returns.
    pub fn begin(&mut self, batch: &Batch) -> Result<()> {
        require(!self.is_pending, "a step", "begun", "finished before the next one begins")?;
        let number = self.step;
        require(batch.number == number, "the number of the batch", batch.number, "that of the step")?;
        self.step += 1;
        if self.loss.changes_scale_at(number) {
            // Adam would divide by the far larger gradients of the phase before for thousands of steps.
            self.optimizer.reset()?;
        }
        let (model, loss, learning_rate) = (&self.model, &self.loss, self.rate.at(number));
        let input = StepInput { batch, model, loss, learning_rate, seed: self.seed };
        self.backend.begin(&input, &mut self.optimizer)?;
        self.is_pending = true;
        Ok(())
    }

    /// Announces the batch of the next step, which a GPU copies while it works on the one that was begun.
    pub fn stage(&mut self, batch: &Batch) -> Result<()> {
        self.backend.stage(batch, &self.model)
    }

    /// What became of the step that was begun; see [`Trainer::step`].
    pub fn finish(&mut self) -> Result<StepReport> {
        if !std::mem::take(&mut self.is_pending) {
            return refused("a step", "not begun", "begun before it is finished");
        }
        let step = self.step - 1;
        match self.backend.finish(&self.model, &mut self.optimizer)? {
            StepOutcome::NotFinite(what) => Err(not_finite(&what, step as usize + 1)),
            StepOutcome::Applied { loss, ess, gradient_norm } => {
                if let Some(ema) = &mut self.ema {
                    ema.add(&self.model, self.step)?;
                }
                Ok(StepReport { step: step + 1, loss, ess, gradient_norm, learning_rate: self.rate.at(step) })
            }
        }
    }
}

/// Returns the error of a step, counted from 1, with a loss or a gradient that is not finite.
pub(crate) fn not_finite(what: &str, step: usize) -> NnError {
    let reason = format!("{what} in step {step} is not finite; the step was not applied");
    Error::new(ErrorKind::NonFinite, reason).into()
}
