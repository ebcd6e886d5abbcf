//! Training on a GPU: a step is recorded as a graph and done again as a whole.
//!
//! The first steps are done call by call, which lets libtorch choose its convolutions and the kernels be compiled; they count
//! like all others. Then forward pass, loss, backward pass and update are one graph, whose inputs are the batch, the
//! seeds of noise and dropout, the learning rate and the counts of steps. The next batch is copied beside the work.

mod inputs;

use ssn_nn::NnError;
use std::sync::Arc;

use ssn_core::random::derive_seed;
use ssn_cuda::{Event, Graph, Pinned, Results, SharedSums, Table};
use ssn_data::Batch;
use tch::{COptimizer, Kind, Tensor};

use self::inputs::{Inputs, Shapes};
use super::batch::patch_size;
use super::objective::{batch_loss, fill_latent_noise, latent_loss};
use super::{LossConfig, Outcome};
use crate::error::{Result, TrainError, refused};
use crate::parallel::{GpuGradients, GpuSums};
use ssn_nn::communicator::{Ranks, gather_values};
use ssn_nn::layers::Mode;
use ssn_nn::loss::target::Target;
use ssn_nn::model::Model;
use ssn_nn::optim::Optimizer;
use ssn_nn::parameters::Parameter;
use ssn_nn::random::DROPOUT;
use ssn_nn::random::noise::{GpuNoise, NoiseSource, StepNoise};

/// So many steps of a kind are done call by call before one is recorded.
const STEPS_BEFORE_GRAPH: u32 = 3;

/// What training keeps on a GPU beside model and optimizer.
pub(super) struct Gpu {
    inputs: Option<Inputs>,
    /// Steps that train the mean alone, and those that sample.
    kinds: [Option<StepKind>; 2],
    /// Two seeds, the learning rate, and the count of steps of every parameter.
    numbers: Pinned<i64>,
    /// The same without the seeds, which the model has.
    on_device: Tensor,
    results: Results,
    read: Pinned<f64>,
    /// All running statistics, and what they were before the step.
    kept: Tensor,
    backup: Tensor,
    /// Takes gradients away; the bindings can only set them to zero.
    gradients: COptimizer,
    started: Event,
    ended: Event,
    busy: f64,
    team: Option<Team>,
    /// Whether inputs were made anew since the last step.
    has_new_inputs: bool,
    /// Whether any batch so far had a mask, here or at another rank: from then on all have one.
    has_masks: bool,
    _lease: ssn_cuda::Lease,
}

/// The ranks that a trainer on a GPU works with.
struct Team {
    ranks: Arc<dyn Ranks>,
    sums: Arc<GpuSums>,
    gradients: GpuGradients,
    /// Set if statistics of normalizations are those of whole batches.
    shared_norm: Option<SharedSums>,
}

/// Steps that reach the same parameters.
struct StepKind {
    table: Table,
    /// Places of the parameters that have a gradient.
    trained: Vec<usize>,
    steps: u32,
    /// The graph, and the gradients that it writes.
    graph: Option<(Graph, Vec<Tensor>)>,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("busy", &self.busy).finish_non_exhaustive()
    }
}

impl Gpu {
    pub(super) fn new(model: &Model, optimizer: &Optimizer) -> Result<Self> {
        let device = model.execution().device;
        let lease = ssn_cuda::Lease::take()?;
        ssn_cuda::enter_stream(device)?;
        tch::Cuda::cudnn_set_benchmark(true);
        if let Some((name, _)) =
            optimizer.parameters().iter().find(|(_, tensor)| tensor.kind() != Kind::Float)
        {
            let problem = "a GPU trains parameters in single precision only";
            return Err(NnError::Trainable { parameter: name.clone(), problem }.into());
        }
        let count = optimizer.parameters().len();
        let mut gradients = COptimizer::sgd(0.0, 0.0, 0.0, 0.0, false)?;
        for parameter in model.parameters().trained() {
            gradients.add_parameters(parameter.differentiated(), 0)?;
        }
        let kept = tch::no_grad(|| model.parameters().gather_kept())?;
        Ok(Self {
            inputs: None,
            kinds: [None, None],
            numbers: Pinned::new(3 + count)?,
            on_device: Tensor::f_zeros([1 + count as i64], (Kind::Int64, device))?,
            results: Results::new(device)?,
            read: Pinned::new(Results::COUNT)?,
            backup: kept.f_zeros_like()?,
            kept,
            gradients,
            started: Event::new()?,
            ended: Event::new()?,
            busy: 0.0,
            team: None,
            has_new_inputs: false,
            has_masks: false,
            _lease: lease,
        })
    }

    /// Works with other ranks from now on.
    pub(super) fn join(&mut self, ranks: Arc<dyn Ranks>, shares_norm: bool, model: &Model) -> Result<()> {
        let sums = Arc::new(GpuSums::new(ranks.clone(), model.execution().device)?);
        let tensors =
            model.parameters().trained().map(|parameter| parameter.differentiated().shallow_clone());
        let gradients = GpuGradients::new(&sums, tensors.collect())?;
        let of_norms = sums.clone();
        let sum = move |numbers: &Tensor| of_norms.sum(numbers).map_err(|error| error.to_string());
        let shared_norm = shares_norm.then(|| SharedSums::new(sum)).transpose()?;
        self.team = Some(Team { ranks, sums, gradients, shared_norm });
        Ok(())
    }

    /// How ranks sum.
    pub(super) fn sums_in_words(&self) -> Option<&'static str> {
        self.team.as_ref().map(|team| team.sums.words())
    }

    /// Seconds in which the GPU has worked on steps.
    pub(super) fn busy_seconds(&self) -> f64 {
        self.busy
    }

    /// Copies a batch to where the step after those begun finds it.
    pub(super) fn stage(&mut self, batch: &Batch, model: &Model) -> Result<()> {
        let (device, classes) = (model.execution().device, model.config().classes);
        self.has_masks |= batch.masks.is_some();
        let form = Shapes::of(batch, self.has_masks);
        if self.inputs.as_ref().is_none_or(|inputs| inputs.shapes != form) {
            // Graphs read the old ones, and a step may still be under way; copies beside the work must not come before the
            // zeros of the new ones.
            ssn_cuda::synchronize()?;
            self.forget_graphs();
            let noise = model.latent().map_or(0, |latent| latent.noise_count(patch_size(batch)));
            self.inputs = Some(Inputs::new(form, batch, device, noise)?);
            self.has_new_inputs = true;
            ssn_cuda::synchronize()?;
        }
        match &mut self.inputs {
            Some(inputs) => inputs.stage(batch, classes),
            None => Ok(()),
        }
    }

    /// Steps are recorded anew, after some that are done call by call.
    fn forget_graphs(&mut self) {
        for kind in self.kinds.iter_mut().flatten() {
            (kind.graph, kind.steps) = (None, 0);
        }
    }

    /// Agrees with the other ranks on the form of a step: all record it at the same time or none does, as NCCL demands, and all
    /// have items of one size, as statistics of norms do.
    fn agree(&mut self, batch: &Batch, model: &Model) -> Result<()> {
        let Some(team) = &self.team else { return Ok(()) };
        let ranks = team.ranks.clone();
        let mut counts = [self.has_new_inputs, self.has_masks].map(|is| f64::from(u8::from(is)));
        ranks.sum_f64(&mut counts)?;
        let [new, masked] = counts;
        if new > 0.0 {
            self.forget_graphs();
            let sizes = (&batch.image_shape[1..], &batch.target_shape[1..]);
            let all: Vec<(Vec<usize>, Vec<usize>)> =
                gather_values(&*ranks, &(sizes.0.to_vec(), sizes.1.to_vec()))?;
            if all.iter().any(|other| *other != all[0]) {
                let expected = "those of all items of a batch, on all ranks";
                return refused("the sizes of an item", format!("{sizes:?}"), expected);
            }
        }
        if masked > 0.0 && masked < ranks.size() as f64 {
            self.forget_graphs();
            self.has_masks = true;
            self.stage(batch, model)?;
        }
        self.has_new_inputs = false;
        Ok(())
    }

    /// Begins the step of a batch, which is staged already if it was announced.
    pub(super) fn begin(
        &mut self,
        batch: &Batch,
        model: &Model,
        optimizer: &mut Optimizer,
        (loss, rate, seed): (&LossConfig, f64, u64),
    ) -> Result<()> {
        // Before anything can fail.
        tch::no_grad(|| self.backup.f_copy_(&self.kept))?;
        if self.inputs.as_ref().and_then(|inputs| inputs.staged) != Some(batch.number) {
            self.stage(batch, model)?;
        }
        self.agree(batch, model)?;
        if let Some(Inputs { noise: Some((pinned, on_device)), .. }) = &mut self.inputs {
            let each = on_device.size()[1] as usize;
            fill_latent_noise(seed, batch.number, batch.first * each, pinned.values());
            let size = on_device.size();
            ssn_cuda::copy_later(on_device, &pinned.tensor(&size)?)?;
        }
        let numbers = self.numbers.values();
        numbers[0] = derive_seed(seed, DROPOUT, batch.number) as i64;
        numbers[1] = StepNoise::seed(seed, batch.number) as i64;
        numbers[2] = rate.to_bits() as i64;
        for (place, step) in numbers[3..].iter_mut().zip(optimizer.next_steps()) {
            *place = step;
        }
        let all = self.numbers.tensor(&[-1])?;
        if let Some(seeds) = model.parameters().step_seeds() {
            ssn_cuda::copy_later(&mut seeds.shallow_clone(), &all.f_narrow(0, 0, 2)?)?;
        }
        let count = self.on_device.size()[0];
        ssn_cuda::copy_later(&mut self.on_device, &all.f_narrow(0, 2, count)?)?;
        self.started.record()?;
        self.launch(model, optimizer, loss, batch.number)?;
        self.ended.record()?;
        let mut read = self.read.tensor(&[-1])?;
        ssn_cuda::copy_later(&mut read, &self.results.values)?;
        Ok(())
    }

    /// Waits for the step that was begun.
    pub(super) fn finish(
        &mut self,
        model: &Model,
        optimizer: &mut Optimizer,
        sampled: bool,
    ) -> Result<Outcome> {
        ssn_cuda::synchronize()?;
        self.busy += self.ended.seconds_since(&self.started)?;
        let &mut [loss, effective, gradient_norm, applied, _] = self.read.values() else {
            return refused("the results of a step", "incomplete", "five numbers");
        };
        let Some(kind) = &self.kinds[usize::from(sampled)] else {
            return refused("a step", "not begun", "begun before it is finished");
        };
        if applied == 0.0 {
            tch::no_grad(|| self.kept.f_copy_(&self.backup))?;
            let what = if loss.is_finite() { culprit(kind, model)? } else { "the loss".to_owned() };
            return Ok(Outcome::NotFinite(what));
        }
        optimizer.count_step(&kind.trained);
        let effective_samples = (effective >= 0.0).then_some(effective);
        Ok(Outcome::Applied { loss, effective_samples, gradient_norm })
    }

    /// Restores running statistics after a failure on the way.
    pub(super) fn undo(&mut self) {
        // After an error of the GPU this fails as well, and the first one is told.
        let _ = tch::no_grad(|| self.kept.f_copy_(&self.backup));
    }

    fn launch(&mut self, model: &Model, optimizer: &Optimizer, loss: &LossConfig, number: u64) -> Result<()> {
        let sampled = loss.samples_at(number);
        let place = usize::from(sampled);
        // What goes through hosts cannot be recorded.
        let sums_on_gpu = self.team.as_ref().is_none_or(|team| team.sums.can_be_recorded());
        let can_record = model.can_be_recorded() && sums_on_gpu;
        if sampled {
            // Training the mean alone is over; its graph has as much memory as the one to come.
            self.kinds[0] = None;
        }
        if !can_record {
            // Which parameters have a gradient may change from step to step.
            self.kinds[place] = None;
        }
        match self.kinds[place].take() {
            None => {
                let outputs = self.learn(model, loss, sampled)?;
                let parameters: Vec<&Parameter> = model.parameters().trained().collect();
                let has_gradient = |&i: &usize| {
                    parameters[i].differentiated().f_grad().is_ok_and(|gradient| gradient.defined())
                };
                let trained: Vec<usize> = (0..parameters.len()).filter(has_gradient).collect();
                let sizes: Vec<i64> = trained.iter().map(|&i| parameters[i].tensor.numel() as i64).collect();
                let table = Table::new(&sizes, model.execution().device)?;
                let mut kind = StepKind { table, trained, steps: 1, graph: None };
                kind.fill(model, optimizer, &kind.gradients(model)?)?;
                self.apply(&kind, optimizer, loss, &outputs)?;
                self.kinds[place] = Some(kind);
            }
            Some(kind) if kind.graph.is_some() => {
                if let Some((graph, _)) = &kind.graph {
                    graph.replay()?;
                }
                self.kinds[place] = Some(kind);
            }
            Some(mut kind) if can_record && kind.steps >= STEPS_BEFORE_GRAPH => {
                // A graph has memory of its own, and what earlier steps left is not given back while it is recorded.
                ssn_cuda::forget_unused_memory()?;
                let recorded = Graph::record(|| {
                    let outputs = self.learn(model, loss, sampled)?;
                    let gradients = kind.gradients(model)?;
                    self.apply(&kind, optimizer, loss, &outputs)?;
                    Ok::<_, TrainError>(gradients)
                });
                let (graph, gradients) = recorded?;
                kind.fill(model, optimizer, &gradients)?;
                graph.replay()?;
                kind.graph = Some((graph, gradients));
                self.kinds[place] = Some(kind);
            }
            Some(mut kind) => {
                let outputs = self.learn(model, loss, sampled)?;
                kind.fill(model, optimizer, &kind.gradients(model)?)?;
                self.apply(&kind, optimizer, loss, &outputs)?;
                kind.steps += 1;
                self.kinds[place] = Some(kind);
            }
        }
        Ok(())
    }

    /// Forward pass, loss and backward pass of all ranks; gives the mean loss and the mean of the effective samples.
    fn learn(&mut self, model: &Model, loss: &LossConfig, sampled: bool) -> Result<(Tensor, Option<Tensor>)> {
        ssn_cuda::begin_step(model.execution().device)?;
        self.gradients.zero_grad()?;
        let (value, effective, share) = self.forward(model, loss, sampled)?;
        let Some(team) = &self.team else {
            value.f_backward()?;
            return Ok((value.detach(), effective));
        };
        // Means over the whole batch are sums of what the ranks have, each weighted by its share.
        value.f_mul_scalar(share)?.f_backward()?;
        team.gradients.finish()?;
        let _guard = tch::no_grad_guard();
        let both = [Some(&value), effective.as_ref()].into_iter().flatten().collect::<Vec<_>>();
        let both = Tensor::f_stack(&both, 0)?.f_mul_scalar(share)?;
        team.sums.sum(&both)?;
        if team.shared_norm.is_none() && self.kept.numel() > 0 {
            let _ = self.kept.f_mul_scalar_(share)?;
            team.sums.sum(&self.kept)?;
        }
        Ok((both.f_get(0)?, effective.map(|_| both.f_get(1)).transpose()?))
    }

    /// The mean loss of the items here, with gradients, the mean of their effective samples, and their share of the batch.
    fn forward(
        &self,
        model: &Model,
        loss: &LossConfig,
        sampled: bool,
    ) -> Result<(Tensor, Option<Tensor>, f64)> {
        let Some(Inputs { parts, size, mask, target, noise: latent_noise, shapes, .. }) = &self.inputs else {
            return refused("a batch", "missing", "staged before its step");
        };
        let Shapes { first, of, image, .. } = *shapes;
        let share = image[0] as f64 / of as f64;
        let ranks = self.team.as_ref().filter(|team| team.shared_norm.is_some()).map(|team| &team.ranks);
        let mode = Mode::Training { dropout: 0, first, of, ranks };
        let target = Target::checked(target.shallow_clone(), model.config().classes);
        if let Some((_, noise)) = latent_noise {
            return Ok((latent_loss(model, parts, &target, noise, mode, loss)?, None, share));
        }
        let prediction = model.forward_seen(parts, *size, mask.as_ref(), mode)?;
        let seed = model.parameters().step_seeds().map(|seeds| seeds.narrow(0, 1, 1));
        let noise = seed.as_ref().filter(|_| sampled).map(|seed| {
            NoiseSource::OnGpu(GpuNoise { seed, samples: loss.samples, pairing: loss.pairing, first })
        });
        let (value, effective) = batch_loss(&prediction, &target, noise, loss)?;
        Ok((value, effective, share))
    }

    /// Decides whether the step counts, and updates all parameters.
    fn apply(
        &self,
        kind: &StepKind,
        optimizer: &Optimizer,
        loss: &LossConfig,
        (value, effective): &(Tensor, Option<Tensor>),
    ) -> Result<()> {
        let most = loss.max_gradient_norm.unwrap_or(f64::MAX);
        kind.table.decide(&self.results, value, effective.as_ref(), most)?;
        let (rule, settings) = optimizer.on_gpu();
        let (rate, steps) =
            (self.on_device.f_narrow(0, 0, 1)?, self.on_device.f_slice(0, 1, None::<i64>, 1)?);
        Ok(kind.table.update(&self.results, rule, &settings, &rate, &steps)?)
    }
}

impl StepKind {
    /// The gradients of the parameters that have one.
    fn gradients(&self, model: &Model) -> Result<Vec<Tensor>> {
        let parameters: Vec<&Parameter> = model.parameters().trained().collect();
        self.trained.iter().map(|&i| Ok(parameters[i].differentiated().f_grad()?)).collect()
    }

    /// Writes where everything is into the table.
    fn fill(&mut self, model: &Model, optimizer: &Optimizer, gradients: &[Tensor]) -> Result<()> {
        let parameters: Vec<&Parameter> = model.parameters().trained().collect();
        let mut entries = vec![];
        for (&i, gradient) in self.trained.iter().zip(gradients) {
            let mut entry = parameters[i].row(i);
            entry.gradient = Some(gradient.shallow_clone());
            entry.buffers = optimizer.buffers_on_gpu(i);
            entries.push(entry);
        }
        Ok(self.table.fill(&entries)?)
    }
}

/// The first parameter whose gradient is not finite.
fn culprit(kind: &StepKind, model: &Model) -> Result<String> {
    let parameters: Vec<&Parameter> = model.parameters().trained().collect();
    let gradients = match &kind.graph {
        Some((_, gradients)) => gradients.iter().map(Tensor::shallow_clone).collect(),
        None => kind.gradients(model)?,
    };
    for (&i, gradient) in kind.trained.iter().zip(&gradients) {
        if !gradient.f_norm()?.f_double_value(&[])?.is_finite() {
            return Ok(format!("the gradient of {}", parameters[i].name));
        }
    }
    Ok("the gradient of all parameters together".to_owned())
}
