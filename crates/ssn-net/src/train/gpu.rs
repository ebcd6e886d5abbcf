//! Training on a GPU: a step is recorded as a graph and done again as a whole.
//!
//! The first steps are done call by call, which lets libtorch choose its convolutions and the kernels be compiled; they count
//! like all others. Then forward pass, loss, backward pass and update are one graph, whose inputs are the batch, the
//! seeds of noise and dropout, the learning rate and the counts of steps. The next batch is copied beside the work.

use ssn_core::random::derive_seed;
use ssn_cuda::{Event, Graph, Pinned, Results, Table};
use ssn_data::{Batch, Grid};
use tch::{COptimizer, Device, Kind, Tensor};

use super::{LossConfig, Outcome, batch_loss, fill_latent_noise, latent_loss, parts, patch_size};
use crate::blocks::Mode;
use crate::error::{NetError, Result, refused};
use crate::model::Model;
use crate::noise::{GpuNoise, NoiseSource, StepNoise};
use crate::optim::Optimizer;
use crate::parameters::Parameter;
use crate::purpose::DROPOUT;
use crate::space::Size;
use crate::target::Target;

/// So many steps of a kind are done call by call before one is recorded.
const STEPS_BEFORE_GRAPH: u32 = 3;

/// What training keeps on a GPU beside model and optimiser.
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
    _lease: ssn_cuda::Lease,
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
            return Err(NetError::Trainable { parameter: name.clone(), problem });
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
            _lease: lease,
        })
    }

    /// Seconds in which the GPU has worked on steps.
    pub(super) fn busy_seconds(&self) -> f64 {
        self.busy
    }

    /// Copies a batch to where the step after those begun finds it.
    pub(super) fn stage(&mut self, batch: &Batch, model: &Model) -> Result<()> {
        let (device, classes) = (model.execution().device, model.config().classes);
        if !self.inputs.as_ref().is_some_and(|inputs| inputs.fits(batch)) {
            // Graphs read the old ones, and a step may still be under way; copies beside the work must not come before the
            // zeros of the new ones.
            ssn_cuda::synchronise()?;
            for kind in self.kinds.iter_mut().flatten() {
                (kind.graph, kind.steps) = (None, 0);
            }
            let noise = model.latent().map_or(0, |latent| latent.noise_count(patch_size(batch)));
            self.inputs = Some(Inputs::new(batch, device, noise)?);
            ssn_cuda::synchronise()?;
        }
        match &mut self.inputs {
            Some(inputs) => inputs.stage(batch, classes),
            None => Ok(()),
        }
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
        if let Some(Inputs { noise: Some((pinned, on_device)), .. }) = &mut self.inputs {
            fill_latent_noise(seed, batch.number, pinned.values());
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
        ssn_cuda::synchronise()?;
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
        let can_record = model.can_be_recorded();
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
                    Ok::<_, NetError>(gradients)
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

    /// Forward pass, loss and backward pass; gives the mean loss and the mean of the effective samples.
    fn learn(&mut self, model: &Model, loss: &LossConfig, sampled: bool) -> Result<(Tensor, Option<Tensor>)> {
        let Some(Inputs { parts, size, mask, target, noise: latent_noise, .. }) = &self.inputs else {
            return refused("a batch", "missing", "staged before its step");
        };
        ssn_cuda::begin_step(model.execution().device)?;
        self.gradients.zero_grad()?;
        let target = Target::checked(target.shallow_clone(), model.config().classes);
        if let Some((_, noise)) = latent_noise {
            let value = latent_loss(model, parts, &target, noise, Mode::TRAINING, loss)?;
            value.f_backward()?;
            return Ok((value.detach(), None));
        }
        let prediction = model.forward_seen(parts, *size, mask.as_ref(), Mode::TRAINING)?;
        let seed = model.parameters().step_seeds().map(|seeds| seeds.narrow(0, 1, 1));
        let noise = seed
            .as_ref()
            .filter(|_| sampled)
            .map(|seed| NoiseSource::OnGpu(GpuNoise { seed, samples: loss.samples, pairing: loss.pairing }));
        let (value, effective) = batch_loss(&prediction, &target, noise, loss)?;
        value.f_backward()?;
        Ok((value.detach(), effective))
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

/// A batch on the device, and the next one on its way.
struct Inputs {
    /// All numbers of the images, `[b, n]`, and the grids that they are.
    images: Tensor,
    parts: Vec<Tensor>,
    size: Size,
    mask: Option<Tensor>,
    target: Tensor,
    /// The noise of latent variables, `[b, n]`, if the network has any.
    noise: Option<(Pinned<f32>, Tensor)>,
    slots: [Slot; 2],
    /// The batch that the next step finds.
    staged: Option<u64>,
    shapes: Shapes,
}

/// Shapes of images and targets, the grids, and whether there is a mask.
type Shapes = ([usize; 5], [usize; 5], Vec<Grid>, bool);

/// One of two batches on their way: host memory that the device reads, and where it goes.
struct Slot {
    images: Pinned<f32>,
    labels: Pinned<u8>,
    on_device: Tensor,
    /// Targets, then masks.
    bytes: Tensor,
}

impl Inputs {
    /// Room for batches like this one, whose images take so many numbers of noise.
    fn new(batch: &Batch, device: Device, noise: i64) -> Result<Self> {
        let [b, t, d, h, w] = batch.target_shape.map(|n| n as i64);
        let room = || {
            let each = batch.images.len() as i64 / b.max(1);
            Tensor::f_zeros([b, each], (Kind::Float, device))
        };
        let slot = || {
            let labels = batch.targets.len() + batch.masks.as_ref().map_or(0, Vec::len);
            Ok::<_, NetError>(Slot {
                images: Pinned::new(batch.images.len())?,
                labels: Pinned::new(labels)?,
                on_device: room()?,
                bytes: Tensor::f_zeros([labels as i64], (Kind::Uint8, device))?,
            })
        };
        let mask = batch.masks.as_ref().map(|_| Tensor::f_zeros([b, d, h, w], (Kind::Uint8, device)));
        let images = room()?;
        let noise = match noise {
            0 => None,
            n => Some((Pinned::new((b * n) as usize)?, Tensor::f_zeros([b, n], (Kind::Float, device))?)),
        };
        Ok(Self {
            parts: parts(&images, batch)?,
            images,
            size: patch_size(batch),
            mask: mask.transpose()?,
            target: Tensor::f_zeros([b, t, d * h * w], (Kind::Int64, device))?,
            noise,
            slots: [slot()?, slot()?],
            staged: None,
            shapes: shapes(batch),
        })
    }

    fn fits(&self, batch: &Batch) -> bool {
        self.shapes == shapes(batch)
    }

    /// Copies a batch to the device beside the work, and to its place after it.
    fn stage(&mut self, batch: &Batch, classes: i64) -> Result<()> {
        if let Some(&label) = batch.targets.iter().find(|&&label| i64::from(label) >= classes) {
            return refused("target", label, "a class number, below the number of classes");
        }
        // The slot's last batch is two steps back, and the step after that has been waited for.
        let slot = &mut self.slots[(batch.number % 2) as usize];
        copy(&batch.images, slot.images.values());
        let (targets, masks) = slot.labels.values().split_at_mut(batch.targets.len());
        targets.copy_from_slice(&batch.targets);
        if let Some(given) = &batch.masks {
            masks.copy_from_slice(given);
        }
        let images = slot.images.tensor(&self.images.size())?;
        ssn_cuda::copy_beside(&mut slot.on_device, &images)?;
        ssn_cuda::copy_beside(&mut slot.bytes, &slot.labels.tensor(&[-1])?)?;
        ssn_cuda::await_copies()?;
        ssn_cuda::copy_later(&mut self.images, &slot.on_device)?;
        let count = self.target.numel() as i64;
        let labels = slot.bytes.f_narrow(0, 0, count)?.f_view(self.target.size().as_slice())?;
        ssn_cuda::copy_later(&mut self.target, &labels)?;
        if let Some(mask) = &mut self.mask {
            let size = mask.size();
            let bytes = slot.bytes.f_slice(0, count, None::<i64>, 1)?.f_view(size.as_slice())?;
            ssn_cuda::copy_later(mask, &bytes)?;
        }
        self.staged = Some(batch.number);
        Ok(())
    }
}

fn shapes(batch: &Batch) -> Shapes {
    (batch.image_shape, batch.target_shape, batch.grids.clone(), batch.masks.is_some())
}

/// Copies with several threads: a batch of volumes has hundreds of megabytes.
fn copy(from: &[f32], to: &mut [f32]) {
    const PART: usize = 1 << 22;
    if from.len() <= PART {
        return to.copy_from_slice(from);
    }
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        let part = from.len().div_ceil(threads);
        for (from, to) in from.chunks(part).zip(to.chunks_mut(part)) {
            scope.spawn(move || to.copy_from_slice(from));
        }
    });
}
