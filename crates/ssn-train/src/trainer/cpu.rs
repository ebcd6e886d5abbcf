//! Training steps on a CPU.

use std::sync::Arc;

use ssn_core::random::derive_seed;
use ssn_nn::communicator::Communicator;
use ssn_nn::error::{NnError, Result, refused};
use ssn_nn::model::Model;
use ssn_nn::optim::{Optimizer, clip_gradient_norm};
use ssn_nn::parameters::{Role, StepContext};
use ssn_nn::random::DROPOUT;
use tch::{Kind, Tensor};

use super::objective::{BatchTensors, LossPhase, StepRandom, fill_latent_noise, forward_loss};
use super::{Backend, StepInput, StepOutcome};
use crate::parallel::GradientReducer;

/// Steps are computed call by call, and are done when they are begun.
#[derive(Debug)]
pub(super) struct CpuBackend {
    /// The buffers as they were before the step.
    backup: Vec<Tensor>,
    data_parallel: Option<DataParallel>,
    done: Option<StepOutcome>,
}

/// The ranks that a trainer works with.
#[derive(Debug)]
struct DataParallel {
    comm: Arc<dyn Communicator>,
    reducer: GradientReducer,
    syncs_batch_norm: bool,
}

impl DataParallel {
    /// Makes the running statistics the means of those of all ranks, each weighted by its share of the batch.
    fn average_buffers(&self, model: &Model, share: f64) -> Result<()> {
        let _guard = tch::no_grad_guard();
        let mut numbers = vec![];
        for tensor in buffers(model) {
            let values = Vec::<f64>::try_from(tensor.f_to_kind(Kind::Double)?.f_view([-1])?)?;
            numbers.extend(values.into_iter().map(|value| share * value));
        }
        self.comm.all_reduce_f64(&mut numbers)?;
        let mut rest = numbers.as_slice();
        for tensor in buffers(model) {
            let (values, after) = rest.split_at(tensor.numel());
            rest = after;
            tensor.shallow_clone().f_copy_(&Tensor::f_from_slice(values)?.f_view_as(tensor)?)?;
        }
        Ok(())
    }
}

impl CpuBackend {
    pub(super) fn new(model: &Model) -> Self {
        Self { backup: buffers(model).map(Tensor::copy).collect(), data_parallel: None, done: None }
    }

    fn attempt(&self, input: &StepInput, optimizer: &mut Optimizer) -> Result<StepOutcome> {
        let StepInput { batch, model, loss: config, learning_rate, seed } = *input;
        let tensors = BatchTensors::new(batch, model.config().classes)?;
        optimizer.zero_grad()?;
        let (number, first) = (batch.number, batch.first);
        let phase = config.phase_at(number);
        let share = batch.image_shape[0] as f64 / batch.of as f64;
        let synced = self.data_parallel.as_ref().filter(|parallel| parallel.syncs_batch_norm);
        model.parameters().set_step(StepContext {
            dropout_seed: derive_seed(seed, DROPOUT, number),
            first,
            batch_size: batch.of,
            communicator: synced.map(|parallel| parallel.comm.clone()),
        });
        let random = match model.latent() {
            Some(latent) => {
                let each = latent.noise_count(tensors.size) as usize;
                let mut noise = vec![0f32; batch.image_shape[0] * each];
                fill_latent_noise(seed, number, first * each, &mut noise);
                let b = batch.image_shape[0] as i64;
                StepRandom::Latent(Tensor::f_from_slice(&noise)?.f_view([b, -1])?)
            }
            None if phase != LossPhase::Mean => StepRandom::Cpu { seed, step: number, first },
            None => StepRandom::None,
        };
        let (loss, ess) = forward_loss(model, &tensors, &random, config, phase)?;
        let mut value = loss.f_double_value(&[])?;
        let mut ess = ess.map(|ess| ess.f_double_value(&[])).transpose()?;
        // Means over the whole batch are sums of what the ranks have, each weighted by its share.
        if let Some(parallel) = &self.data_parallel {
            let mut both = [share * value, share * ess.unwrap_or(0.0)];
            parallel.comm.all_reduce_f64(&mut both)?;
            value = both[0];
            ess = ess.map(|_| both[1]);
        }
        if !value.is_finite() {
            return Ok(StepOutcome::NotFinite("the loss".to_owned()));
        }
        match &self.data_parallel {
            None => loss.f_backward()?,
            Some(parallel) => {
                loss.f_mul_scalar(share)?.f_backward()?;
                parallel.reducer.finish()?;
                if !parallel.syncs_batch_norm {
                    parallel.average_buffers(model, share)?;
                }
            }
        }
        let limit = config.max_gradient_norm.unwrap_or(f64::MAX);
        let gradient_norm = match clip_gradient_norm(optimizer.parameters(), limit) {
            Ok(norm) => norm,
            Err(NnError::GradientNorm { of, .. }) => {
                return Ok(StepOutcome::NotFinite(format!("the gradient of {of}")));
            }
            Err(other) => return Err(other),
        };
        optimizer.step(learning_rate)?;
        Ok(StepOutcome::Applied { loss: value, ess, gradient_norm })
    }

    /// Restores the buffers after a step that is not applied; weights change last of all.
    fn undo(&self, model: &Model) {
        let _guard = tch::no_grad_guard();
        for (backup, tensor) in self.backup.iter().zip(buffers(model)) {
            tensor.shallow_clone().copy_(backup);
        }
    }
}

impl Backend for CpuBackend {
    fn join(&mut self, comm: Arc<dyn Communicator>, syncs_batch_norm: bool, model: &Model) -> Result<()> {
        let parameters = model.parameters().trainable().map(|parameter| parameter.tensor.shallow_clone());
        let reducer = GradientReducer::new(&*comm, parameters.collect())?;
        self.data_parallel = Some(DataParallel { comm, reducer, syncs_batch_norm });
        Ok(())
    }

    fn begin(&mut self, input: &StepInput, optimizer: &mut Optimizer) -> Result<()> {
        tch::no_grad(|| {
            for (backup, tensor) in self.backup.iter_mut().zip(buffers(input.model)) {
                backup.f_copy_(tensor)?;
            }
            Ok::<_, NnError>(())
        })?;
        let outcome = self.attempt(input, optimizer);
        if !matches!(outcome, Ok(StepOutcome::Applied { .. })) {
            self.undo(input.model);
        }
        self.done = Some(outcome?);
        Ok(())
    }

    fn finish(&mut self, _: &Model, _: &mut Optimizer) -> Result<StepOutcome> {
        self.done.take().map_or_else(|| refused("a step", "not begun", "begun before it is finished"), Ok)
    }
}

/// The tensors that a forward pass may change.
fn buffers(model: &Model) -> impl Iterator<Item = &Tensor> {
    model.parameters().entries().iter().filter(|entry| entry.role == Role::Buffer).map(|entry| &entry.tensor)
}
