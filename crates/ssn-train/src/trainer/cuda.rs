//! Training steps on a GPU: a step is captured as a CUDA graph and replayed.
//!
//! The first steps run eagerly, which lets cuDNN choose its convolutions and the kernels be compiled; they count like all
//! others. Then forward pass, loss, backward pass and update are one graph, whose inputs are the batch, the seeds of noise
//! and dropout, the learning rate and the step counts. The next batch is copied on a side stream.

use std::sync::{Arc, LazyLock};

use ssn_core::random::derive_seed;
use ssn_cuda::{
    CudaEvent, Graph, ParameterTable, PinnedBuffer, StepLock, StepResults, StepSums, SyncNormReduce,
};
use ssn_data::Batch;
use ssn_nn::communicator::{Communicator, all_gather_values};
use ssn_nn::error::{NnError, Result, refused};
use ssn_nn::model::Model;
use ssn_nn::optim::Optimizer;
use ssn_nn::parameters::{Parameter, StepContext};
use ssn_nn::random::{DROPOUT, StepNoise};
use tch::{COptimizer, Kind, Tensor};

use super::objective::{LossPhase, StepRandom, fill_latent_noise, forward_loss, patch_size};
use super::staging::{BatchShape, Staging};
use super::{Backend, LossConfig, StepInput, StepOutcome};
use crate::parallel::{GpuAllReduce, GradientReducer};

/// The eager steps of a kind before one is captured.
const STEPS_BEFORE_GRAPH: u32 = 3;

/// Bytes beside what is reserved already that the first step gets at first.
const ROOM_AT_FIRST: i64 = 512 << 20;
/// The part of its memory that it gets in addition each time that it was not enough, and the same from [`LARGE`] bytes on.
const MORE: i64 = 8;
const MORE_IF_LARGE: i64 = 2;
const LARGE: i64 = 4 << 30;

/// Shared by the backends of this process, which counts them.
static LIVING: LazyLock<Arc<()>> = LazyLock::new(Arc::default);

/// Whether a step failed for lack of memory. cuDNN's search says of a convolution that none of its engines could be executed.
fn lacks_memory(message: &str) -> bool {
    ssn_cuda::says_out_of_memory(message) || message.contains("unable to find an engine")
}

/// What `step` returns; that memory lacks is an error here, even where it is a panic.
///
/// The bindings' operators with a scalar panic when they fail, also those that return errors: freeing the scalar finds the
/// error first. The message of such a panic is not printed; all others are, and go on.
fn without_panics<T>(step: impl FnOnce() -> Result<T>) -> Result<T> {
    use std::panic;
    let before = Arc::new(panic::take_hook());
    let (hook, here) = (before.clone(), std::thread::current().id());
    panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or_default();
        if std::thread::current().id() != here || !lacks_memory(text) {
            hook(info);
        }
    }));
    // The bindings leave gradients off where a panic leaves their `no_grad`; the guard puts back what was before.
    let guard = tch::no_grad_guard();
    let result = panic::catch_unwind(panic::AssertUnwindSafe(|| tch::with_grad(step)));
    drop(guard);
    drop(panic::take_hook());
    if let Ok(hook) = Arc::try_unwrap(before) {
        panic::set_hook(hook);
    }
    result.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        match text.filter(|text| lacks_memory(text)) {
            Some(text) => Err(tch::TchError::Torch(text).into()),
            None => panic::resume_unwind(payload),
        }
    })
}

/// What training keeps on a GPU beside model and optimizer.
pub(super) struct CudaBackend {
    inputs: Option<Staging>,
    /// The steps of the present phase.
    steps: Option<PhaseSteps>,
    /// Two seeds, the learning rate, and the count of steps of every parameter.
    numbers: PinnedBuffer<i64>,
    /// The same without the seeds, which the model has.
    on_device: Tensor,
    results: StepResults,
    read: PinnedBuffer<f64>,
    /// All buffers, and what they were before the step.
    buffers: Tensor,
    backup: Tensor,
    /// Drops gradients; the bindings can only set them to zero.
    gradients: COptimizer,
    started: CudaEvent,
    ended: CudaEvent,
    busy: f64,
    data_parallel: Option<DataParallel>,
    /// Whether inputs were made anew since the last step.
    has_new_inputs: bool,
    /// Whether any batch so far had a mask, here or at another rank: from then on all have one.
    has_masks: bool,
    sums: StepSums,
    _living: Arc<()>,
}

/// The ranks that a trainer works with.
struct DataParallel {
    comm: Arc<dyn Communicator>,
    all_reduce: Arc<GpuAllReduce>,
    reducer: GradientReducer,
    /// Set if batch norm is synchronized.
    sync_batch_norm: Option<SyncNormReduce>,
}

/// The steps of a phase, which reach the same parameters.
struct PhaseSteps {
    phase: LossPhase,
    table: ParameterTable,
    /// Places of the parameters that have a gradient.
    trained: Vec<usize>,
    done: u32,
    /// The graph, and the gradients that it writes.
    graph: Option<(Graph, Vec<Tensor>)>,
}

impl std::fmt::Debug for CudaBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaBackend").field("busy", &self.busy).finish_non_exhaustive()
    }
}

impl CudaBackend {
    pub(super) fn new(model: &Model, optimizer: &Optimizer) -> Result<Self> {
        let device = model.execution().device;
        ssn_cuda::enter_stream(device)?;
        tch::Cuda::cudnn_set_benchmark(true);
        if let Some((name, _)) =
            optimizer.parameters().iter().find(|(_, tensor)| tensor.kind() != Kind::Float)
        {
            let problem = "a GPU trains parameters in single precision only";
            return Err(NnError::untrainable(name, problem));
        }
        let count = optimizer.parameters().len();
        let mut gradients = COptimizer::sgd(0.0, 0.0, 0.0, 0.0, false)?;
        for parameter in model.parameters().trainable() {
            gradients.add_parameters(parameter.differentiated(), 0)?;
        }
        let buffers = tch::no_grad(|| model.parameters().flatten_buffers())?;
        Ok(Self {
            inputs: None,
            steps: None,
            numbers: PinnedBuffer::new(3 + count)?,
            on_device: Tensor::f_zeros([1 + count as i64], (Kind::Int64, device))?,
            results: StepResults::new(device)?,
            read: PinnedBuffer::new(StepResults::COUNT)?,
            backup: buffers.f_zeros_like()?,
            buffers,
            gradients,
            started: CudaEvent::new()?,
            ended: CudaEvent::new()?,
            busy: 0.0,
            data_parallel: None,
            has_new_inputs: false,
            has_masks: false,
            sums: StepSums::new()?,
            _living: Arc::clone(&LIVING),
        })
    }

    /// Drops captured graphs: steps are captured anew, after some eager ones.
    fn forget_graphs(&mut self) {
        if let Some(steps) = &mut self.steps {
            (steps.graph, steps.done) = (None, 0);
        }
    }

    /// Agrees with the other ranks on the shape of a step: all capture it at the same time or none does, as NCCL demands, and
    /// all have items of one size, as batch statistics demand.
    fn agree(&mut self, batch: &Batch, model: &Model) -> Result<()> {
        let Some(parallel) = &self.data_parallel else { return Ok(()) };
        let comm = parallel.comm.clone();
        let mut counts = [self.has_new_inputs, self.has_masks].map(|is| f64::from(u8::from(is)));
        comm.all_reduce_f64(&mut counts)?;
        let [new, masked] = counts;
        if new > 0.0 {
            self.forget_graphs();
            let sizes = (&batch.image_shape[1..], &batch.target_shape[1..]);
            let all: Vec<(Vec<usize>, Vec<usize>)> =
                all_gather_values(&*comm, &(sizes.0.to_vec(), sizes.1.to_vec()))?;
            if all.iter().any(|other| *other != all[0]) {
                let expected = "those of all items of a batch, on all ranks";
                return refused("the sizes of an item", format!("{sizes:?}"), expected);
            }
        }
        if masked > 0.0 && masked < comm.world_size() as f64 {
            self.forget_graphs();
            self.has_masks = true;
            self.stage(batch, model)?;
        }
        self.has_new_inputs = false;
        Ok(())
    }

    /// Launches the step of a batch, which is staged already if it was announced.
    fn launch(&mut self, input: &StepInput, optimizer: &Optimizer) -> Result<()> {
        let StepInput { batch, model, loss, learning_rate, seed } = *input;
        if self.inputs.as_ref().and_then(|inputs| inputs.staged) != Some(batch.number) {
            self.stage(batch, model)?;
        }
        self.agree(batch, model)?;
        if let Some(Staging { noise: Some((pinned, on_device)), .. }) = &mut self.inputs {
            let each = on_device.size()[1] as usize;
            fill_latent_noise(seed, batch.number, batch.first * each, pinned.values());
            let size = on_device.size();
            ssn_cuda::copy_async(on_device, &pinned.tensor(&size)?)?;
        }
        let numbers = self.numbers.values();
        numbers[0] = derive_seed(seed, DROPOUT, batch.number) as i64;
        numbers[1] = StepNoise::seed(seed, batch.number) as i64;
        numbers[2] = learning_rate.to_bits() as i64;
        for (place, step) in numbers[3..].iter_mut().zip(optimizer.next_steps()) {
            *place = step;
        }
        let all = self.numbers.tensor(&[-1])?;
        if let Some(seeds) = model.parameters().step_seeds() {
            ssn_cuda::copy_async(&mut seeds.shallow_clone(), &all.f_narrow(0, 0, 2)?)?;
        }
        let count = self.on_device.size()[0];
        ssn_cuda::copy_async(&mut self.on_device, &all.f_narrow(0, 2, count)?)?;
        self.started.record()?;
        self.run(model, optimizer, loss, batch.number)?;
        self.ended.record()?;
        let mut read = self.read.tensor(&[-1])?;
        ssn_cuda::copy_async(&mut read, &self.results.values)?;
        Ok(())
    }

    /// Runs a step eagerly, captures it, or replays what was captured.
    fn run(&mut self, model: &Model, optimizer: &Optimizer, loss: &LossConfig, number: u64) -> Result<()> {
        let lock = &StepLock::acquire();
        let phase = loss.phase_at(number);
        // What goes through host memory cannot be captured.
        let reduces_on_gpu =
            self.data_parallel.as_ref().is_none_or(|parallel| parallel.all_reduce.can_be_captured());
        let can_record = model.can_be_captured() && loss.can_be_captured(phase) && reduces_on_gpu;
        // The graph of a phase that is over has as much memory as the one to come.
        if self.steps.as_ref().is_some_and(|steps| steps.phase != phase) {
            self.steps = None;
        }
        let Some(mut steps) = self.steps.take() else {
            let outputs = self.first_forward_backward(model, loss, phase, lock)?;
            let mut steps = PhaseSteps::new(model, phase)?;
            steps.fill(model, optimizer, &steps.gradients(model)?)?;
            self.apply(&steps, optimizer, loss, &outputs)?;
            self.steps = Some(steps);
            return Ok(());
        };
        if let Some((graph, _)) = &steps.graph {
            graph.replay()?;
        } else if can_record && steps.done >= STEPS_BEFORE_GRAPH {
            // A graph has memory of its own, and what earlier steps left is not given back while it is recorded.
            ssn_cuda::empty_cache()?;
            let recorded = Graph::record(|| {
                let outputs = match &self.data_parallel {
                    None => {
                        ssn_cuda::with_side_streams(lock, || self.forward_backward(model, loss, phase, lock))?
                    }
                    // Gradients are reduced as soon as they are there.
                    Some(_) => self.forward_backward(model, loss, phase, lock)?,
                };
                let gradients = steps.gradients(model)?;
                self.apply(&steps, optimizer, loss, &outputs)?;
                Ok::<_, NnError>(gradients)
            });
            let (graph, gradients) = recorded?;
            steps.fill(model, optimizer, &gradients)?;
            graph.replay()?;
            steps.graph = Some((graph, gradients));
        } else {
            let outputs = match steps.done {
                0 => self.first_forward_backward(model, loss, phase, lock)?,
                _ => self.forward_backward(model, loss, phase, lock)?,
            };
            // Of a network that is not ours, any step may train other parameters.
            if !can_record && steps.trained != trained(model) {
                steps = PhaseSteps { done: steps.done, ..PhaseSteps::new(model, phase)? };
            }
            steps.fill(model, optimizer, &steps.gradients(model)?)?;
            self.apply(&steps, optimizer, loss, &outputs)?;
            steps.done += 1;
        }
        self.steps = Some(steps);
        Ok(())
    }

    /// The same for the first step of a shape, in which cuDNN tries its convolutions.
    ///
    /// It tries all whose workspace has room on the device: gigabytes, for networks that need hundreds of megabytes otherwise,
    /// and seldom faster. So the step gets little memory at first, and more each time it fails. Ranks must fail together or not
    /// at all, and a limit holds for all trainers of a process: neither they nor several trainers are limited.
    fn first_forward_backward(
        &mut self,
        model: &Model,
        loss: &LossConfig,
        phase: LossPhase,
        lock: &StepLock,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let device = model.execution().device;
        // The static, this one, and any other.
        let is_alone = Arc::strong_count(&LIVING) <= 2;
        if self.data_parallel.is_some() || !is_alone {
            return self.forward_backward(model, loss, phase, lock);
        }
        let reserved = ssn_cuda::reserved_memory(device)?;
        let most = reserved + ssn_cuda::device_properties(device)?.free;
        let mut limit = reserved + ROOM_AT_FIRST;
        loop {
            let result = ssn_cuda::within_memory(device, limit, || {
                without_panics(|| self.forward_backward(model, loss, phase, lock))
            })?;
            match result {
                Err(error) if limit < most && lacks_memory(&error.to_string()) => {
                    tch::no_grad(|| self.buffers.f_copy_(&self.backup))?;
                    limit += limit / if limit < LARGE { MORE } else { MORE_IF_LARGE };
                }
                result => return result,
            }
        }
    }

    /// Forward pass, loss and backward pass of all ranks; returns the mean loss and the mean effective sample size.
    fn forward_backward(
        &mut self,
        model: &Model,
        loss: &LossConfig,
        phase: LossPhase,
        lock: &StepLock,
    ) -> Result<(Tensor, Option<Tensor>)> {
        self.sums.begin_step(model.execution().device, lock)?;
        self.gradients.zero_grad()?;
        // Our dropout reads its seed on the GPU; that of a TorchScript network is seeded from here.
        let dropout_seed = self.numbers.values()[0] as u64;
        let Some(Staging { tensors, noise: latent_noise, shape, .. }) = &self.inputs else {
            return refused("a batch", "missing", "staged before its step");
        };
        let BatchShape { first, of: batch_size, image, .. } = *shape;
        let share = image[0] as f64 / batch_size as f64;
        let synced = self.data_parallel.as_ref().filter(|parallel| parallel.sync_batch_norm.is_some());
        let communicator = synced.map(|parallel| parallel.comm.clone());
        model.parameters().set_step(StepContext { dropout_seed, first, batch_size, communicator });
        let seed = model.parameters().step_seeds().map(|seeds| seeds.narrow(0, 1, 1));
        let random = match (latent_noise, seed) {
            (Some((_, noise)), _) => StepRandom::Latent(noise.shallow_clone()),
            (None, Some(seed)) if phase != LossPhase::Mean => StepRandom::Gpu { seed, first },
            _ => StepRandom::None,
        };
        let (value, ess) = forward_loss(model, tensors, &random, loss, phase)?;
        let Some(parallel) = &self.data_parallel else {
            value.f_backward()?;
            return Ok((value.detach(), ess));
        };
        // Means over the whole batch are sums of what the ranks have, each weighted by its share.
        value.f_mul_scalar(share)?.f_backward()?;
        parallel.reducer.finish()?;
        let _guard = tch::no_grad_guard();
        let both = [Some(&value), ess.as_ref()].into_iter().flatten().collect::<Vec<_>>();
        let both = Tensor::f_stack(&both, 0)?.f_mul_scalar(share)?;
        parallel.all_reduce.sum(&both)?;
        if parallel.sync_batch_norm.is_none() && self.buffers.numel() > 0 {
            let _ = self.buffers.f_mul_scalar_(share)?;
            parallel.all_reduce.sum(&self.buffers)?;
        }
        Ok((both.f_get(0)?, ess.map(|_| both.f_get(1)).transpose()?))
    }

    /// Decides whether the step counts, and updates all parameters.
    fn apply(
        &self,
        steps: &PhaseSteps,
        optimizer: &Optimizer,
        loss: &LossConfig,
        (value, ess): &(Tensor, Option<Tensor>),
    ) -> Result<()> {
        let most = loss.max_gradient_norm.unwrap_or(f64::MAX);
        steps.table.decide(&self.results, value, ess.as_ref(), most)?;
        let (rule, settings) = optimizer.on_gpu();
        let (rate, counts) =
            (self.on_device.f_narrow(0, 0, 1)?, self.on_device.f_slice(0, 1, None::<i64>, 1)?);
        Ok(steps.table.update(&self.results, rule, &settings, &rate, &counts)?)
    }
}

impl Backend for CudaBackend {
    fn join(&mut self, comm: Arc<dyn Communicator>, syncs_batch_norm: bool, model: &Model) -> Result<()> {
        let all_reduce = Arc::new(GpuAllReduce::new(comm.clone(), model.execution().device)?);
        let tensors =
            model.parameters().trainable().map(|parameter| parameter.differentiated().shallow_clone());
        let reducer = GradientReducer::on_gpu(&all_reduce, tensors.collect())?;
        let of_norms = all_reduce.clone();
        let sum = move |numbers: &Tensor| of_norms.sum(numbers).map_err(|error| error.to_string());
        let sync_batch_norm = syncs_batch_norm.then(|| SyncNormReduce::new(sum)).transpose()?;
        self.data_parallel = Some(DataParallel { comm, all_reduce, reducer, sync_batch_norm });
        Ok(())
    }

    fn stage(&mut self, batch: &Batch, model: &Model) -> Result<()> {
        let (device, classes) = (model.execution().device, model.config().classes);
        self.has_masks |= batch.masks.is_some();
        let shape = BatchShape::of(batch, self.has_masks);
        if self.inputs.as_ref().is_none_or(|inputs| inputs.shape != shape) {
            // Graphs read the old tensors, and a step may still be running; copies on the side stream must not come before
            // the zeros of the new ones.
            ssn_cuda::synchronize()?;
            self.forget_graphs();
            let noise = model.latent().map_or(0, |latent| latent.noise_count(patch_size(batch)));
            self.inputs = Some(Staging::new(shape, batch, device, [classes, noise])?);
            self.has_new_inputs = true;
            ssn_cuda::synchronize()?;
        }
        match &mut self.inputs {
            Some(inputs) => inputs.stage(batch, classes),
            None => Ok(()),
        }
    }

    fn begin(&mut self, input: &StepInput, optimizer: &mut Optimizer) -> Result<()> {
        // Before anything can fail.
        tch::no_grad(|| self.backup.f_copy_(&self.buffers))?;
        self.launch(input, optimizer).inspect_err(|_| {
            // After an error of the GPU this fails as well, and the first error is the one to report.
            let _ = tch::no_grad(|| self.buffers.f_copy_(&self.backup));
        })
    }

    fn finish(&mut self, model: &Model, optimizer: &mut Optimizer) -> Result<StepOutcome> {
        ssn_cuda::synchronize()?;
        self.busy += self.ended.seconds_since(&self.started)?;
        let &mut [loss, ess, gradient_norm, applied, _] = self.read.values() else {
            return refused("the results of a step", "incomplete", "five numbers");
        };
        let Some(steps) = &self.steps else {
            return refused("a step", "not begun", "begun before it is finished");
        };
        if applied == 0.0 {
            tch::no_grad(|| self.buffers.f_copy_(&self.backup))?;
            let what =
                if loss.is_finite() { non_finite_gradient(steps, model)? } else { "the loss".to_owned() };
            return Ok(StepOutcome::NotFinite(what));
        }
        optimizer.count_step(&steps.trained);
        Ok(StepOutcome::Applied { loss, ess: (ess >= 0.0).then_some(ess), gradient_norm })
    }

    fn gpu_seconds(&self) -> Option<f64> {
        Some(self.busy)
    }

    fn all_reduce_backend(&self) -> Option<&'static str> {
        self.data_parallel.as_ref().map(|parallel| parallel.all_reduce.words())
    }
}

/// Returns the places of the parameters that have a gradient.
fn trained(model: &Model) -> Vec<usize> {
    let parameters: Vec<&Parameter> = model.parameters().trainable().collect();
    let has_gradient =
        |&i: &usize| parameters[i].differentiated().f_grad().is_ok_and(|gradient| gradient.defined());
    (0..parameters.len()).filter(has_gradient).collect()
}

impl PhaseSteps {
    /// Makes the table of the parameters that have a gradient, after the first step of a phase.
    fn new(model: &Model, phase: LossPhase) -> Result<Self> {
        let parameters: Vec<&Parameter> = model.parameters().trainable().collect();
        let trained = trained(model);
        let sizes: Vec<i64> = trained.iter().map(|&i| parameters[i].tensor.numel() as i64).collect();
        let table = ParameterTable::new(&sizes, model.execution().device)?;
        Ok(Self { phase, table, trained, done: 1, graph: None })
    }

    /// The gradients of the parameters that have one.
    fn gradients(&self, model: &Model) -> Result<Vec<Tensor>> {
        let parameters: Vec<&Parameter> = model.parameters().trainable().collect();
        self.trained.iter().map(|&i| Ok(parameters[i].differentiated().f_grad()?)).collect()
    }

    /// Writes where everything is into the table.
    fn fill(&mut self, model: &Model, optimizer: &Optimizer, gradients: &[Tensor]) -> Result<()> {
        let parameters: Vec<&Parameter> = model.parameters().trainable().collect();
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
fn non_finite_gradient(steps: &PhaseSteps, model: &Model) -> Result<String> {
    let parameters: Vec<&Parameter> = model.parameters().trainable().collect();
    let gradients = match &steps.graph {
        Some((_, gradients)) => gradients.iter().map(Tensor::shallow_clone).collect(),
        None => steps.gradients(model)?,
    };
    for (&i, gradient) in steps.trained.iter().zip(&gradients) {
        if !gradient.f_norm()?.f_double_value(&[])?.is_finite() {
            return Ok(format!("the gradient of {}", parameters[i].name));
        }
    }
    Ok("the gradient of all parameters together".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lacking_memory_is_an_error_even_where_the_bindings_panic() {
        let lacking = without_panics::<()>(|| panic!("{}", "Torch(\"CUDA out of memory. Tried to allocate"));
        assert!(lacks_memory(&lacking.unwrap_err().to_string()));
        assert_eq!(without_panics(|| Ok(3)).unwrap(), 3);
        // Gradients are on again after a panic inside `no_grad`.
        let inside = without_panics::<()>(|| tch::no_grad(|| panic!("{}", "CUDA out of memory")));
        assert!(inside.is_err());
        let x = Tensor::from(2.0).set_requires_grad(true);
        assert!((&x * &x).requires_grad());
        let other = std::panic::catch_unwind(|| without_panics::<()>(|| panic!("{}", "index 7")));
        assert_eq!(other.unwrap_err().downcast_ref::<String>().unwrap(), "index 7");
    }
}
