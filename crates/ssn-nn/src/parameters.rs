//! The named tensors of a network: trainable parameters and buffers, and their initialization.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ssn_core::random::{derive_seed, fill_normals, philox4x32};
use ssn_io::Error;
use tch::{Device, Kind, Tensor};

use crate::communicator::Communicator;
use crate::error::{Result, refused};
use crate::random::INITIAL_VALUES;
use crate::space;

/// Whether a tensor is changed by training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It gets gradients, and the optimizer changes it.
    Trainable,
    /// As PyTorch's buffers: saved with the model, changed at most by the forward pass (running statistics).
    Buffer,
}

/// The values of a tensor before training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// One value everywhere.
    Constant(f64),
    /// Normal numbers of variance 2 / fan-in (He et al.), for layers followed by a rectifier.
    HeNormal,
    /// Uniform numbers within ± 1/√fan-in, as PyTorch starts a convolution.
    UniformFanIn {
        /// The number of inputs of one output.
        fan_in: i64,
    },
}

/// What a training step shares with the layers; the default is a single process with dropout seed 0.
#[derive(Debug, Clone, Default)]
pub struct StepContext {
    /// The seed of this step's dropout on a CPU; on GPUs it is [`Parameters::step_seeds`].
    pub dropout_seed: u64,
    /// The index of the first item of this rank in the whole batch: random numbers are a function of it.
    pub first: usize,
    /// The number of items of the whole batch.
    pub batch_size: usize,
    /// The ranks that have the rest of the batch, if batch norm is to be synchronized.
    pub communicator: Option<Arc<dyn Communicator>>,
}

/// The [`StepContext`] of a network, which its layers read in every forward pass of training.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedStep(Arc<Mutex<StepContext>>);

impl SharedStep {
    fn lock(&self) -> MutexGuard<'_, StepContext> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The seed of dropout, and the index of the first item.
    pub(crate) fn dropout(&self) -> (u64, usize) {
        let step = self.lock();
        (step.dropout_seed, step.first)
    }

    /// The ranks over which batch norm is synchronized.
    pub(crate) fn communicator(&self) -> Option<Arc<dyn Communicator>> {
        self.lock().communicator.clone()
    }

    /// The index of the first item, and the items of the whole batch if batch norm is synchronized, else 0: for GPU kernels.
    pub(crate) fn batch_slice(&self) -> (i64, i64) {
        let step = self.lock();
        let whole = step.communicator.as_ref().map_or(0, |_| step.batch_size as i64);
        (step.first as i64, whole)
    }
}

/// A tensor of a network.
#[derive(Debug)]
pub struct Parameter {
    /// Its name, the path to its layer included.
    pub name: String,
    /// Its values, shared with the layer.
    pub tensor: Tensor,
    /// Whether it is trained.
    pub role: Role,
    /// The copy in which a GPU computes, with its gradient: in the precision of the backbone, channels fastest and
    /// padded to a multiple of eight. It follows the values by [`Parameters::refresh`] and the optimizer.
    pub working: Option<Tensor>,
}

/// All tensors of a network, in the order in which its layers were made.
///
/// The first values are a function of the seed and the tensor's place alone, the same on every machine.
#[derive(Debug)]
pub struct Parameters {
    entries: Vec<Parameter>,
    places: HashMap<String, usize>,
    seed: u64,
    kind: Kind,
    device: Device,
    /// The precision of working copies, on GPUs.
    working: Option<Kind>,
    /// The seed of a step's dropout and that of its noise, `[2]` on the GPU.
    step_seeds: Option<Tensor>,
    step: SharedStep,
}

impl Parameters {
    /// An empty set; tensors are made with the given precision on the given device.
    pub fn new(seed: u64, kind: Kind, device: Device) -> Self {
        let (entries, places, step) = (vec![], HashMap::new(), SharedStep::default());
        Self { entries, places, seed, kind, device, working: None, step_seeds: None, step }
    }

    /// An empty set on a GPU, whose convolutions compute with copies of this precision.
    pub fn on_gpu(seed: u64, working: Kind, device: Device) -> Result<Self> {
        let step_seeds = Some(Tensor::f_zeros([2], (Kind::Int64, device))?);
        Ok(Self { working: Some(working), step_seeds, ..Self::new(seed, Kind::Float, device) })
    }

    /// The seed of a step's dropout and that of its noise, `[2]` on the GPU: what recorded work reads them from.
    pub fn step_seeds(&self) -> Option<&Tensor> {
        self.step_seeds.as_ref()
    }

    /// Sets what the next training step shares with the layers.
    pub fn set_step(&self, step: StepContext) {
        *self.step.lock() = step;
    }

    /// Renews the working copies after values were set.
    pub fn refresh(&self) -> Result<()> {
        let packed: Vec<_> = self.entries.iter().filter(|entry| entry.working.is_some()).collect();
        if packed.is_empty() {
            return Ok(());
        }
        let sizes: Vec<i64> = packed.iter().map(|entry| entry.tensor.numel() as i64).collect();
        let mut table = ssn_cuda::ParameterTable::new(&sizes, self.device)?;
        let entries: Vec<_> = packed.iter().map(|entry| entry.row(0)).collect();
        table.fill(&entries)?;
        Ok(table.pack()?)
    }

    /// Moves all buffers into one contiguous tensor, so that one copy saves or restores them, and returns it.
    pub fn flatten_buffers(&self) -> Result<Tensor> {
        let buffers: Vec<_> = self.entries.iter().filter(|entry| entry.role == Role::Buffer).collect();
        let flat: Vec<Tensor> = buffers.iter().map(|entry| entry.tensor.reshape([-1])).collect();
        if flat.is_empty() {
            return Ok(Tensor::f_zeros([0], (self.kind, self.device))?);
        }
        let all = Tensor::f_cat(&flat, 0)?;
        let mut start = 0;
        for entry in buffers {
            let (count, shape) = (entry.tensor.numel() as i64, entry.tensor.size());
            let place = all.f_narrow(0, start, count)?.f_view(shape.as_slice())?;
            entry.tensor.shallow_clone().f_set_data(&place)?;
            start += count;
        }
        Ok(all)
    }

    /// The scope without a prefix.
    pub fn root(&mut self) -> Scope<'_> {
        Scope { parameters: self, path: String::new() }
    }

    /// All tensors.
    pub fn entries(&self) -> &[Parameter] {
        &self.entries
    }

    /// The trainable tensors.
    pub fn trainable(&self) -> impl Iterator<Item = &Parameter> {
        self.entries.iter().filter(|parameter| parameter.role == Role::Trainable)
    }

    /// The trainable tensors with their names, sharing memory: what an optimizer takes.
    pub fn named_trainable(&self) -> Vec<(String, Tensor)> {
        self.trainable().map(|parameter| (parameter.name.clone(), parameter.tensor.shallow_clone())).collect()
    }

    /// All tensors with their names, sharing memory.
    pub fn named(&self) -> Vec<(String, Tensor)> {
        self.entries.iter().map(|entry| (entry.name.clone(), entry.tensor.shallow_clone())).collect()
    }

    /// A tensor by name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.places.get(name).map(|&place| &self.entries[place].tensor)
    }

    /// The number of trainable values.
    pub fn count(&self) -> i64 {
        self.trainable().map(|parameter| parameter.tensor.numel() as i64).sum()
    }

    /// Registers a tensor that exists already, such as those of a TorchScript module.
    pub fn register(&mut self, name: String, tensor: Tensor, role: Role) -> Result<Tensor> {
        let tensor = tensor.f_set_requires_grad(role == Role::Trainable)?;
        if self.places.insert(name.clone(), self.entries.len()).is_some() {
            return refused(
                "the name of a tensor",
                format!("`{name}`"),
                "one that no other tensor of the network has",
            );
        }
        self.entries.push(Parameter { name, tensor: tensor.shallow_clone(), role, working: None });
        Ok(tensor)
    }

    fn initialized(&self, shape: &[i64], init: Init) -> Result<Tensor> {
        let options = (self.kind, self.device);
        let seed = derive_seed(self.seed, INITIAL_VALUES, self.entries.len() as u64);
        let numbers = match init {
            Init::Constant(value) => return Ok(Tensor::f_full(shape, value, options)?),
            Init::HeNormal => {
                let deviation = (2.0 / shape[1..].iter().product::<i64>() as f64).sqrt() as f32;
                let mut normals = vec![0f32; shape.iter().product::<i64>() as usize];
                fill_normals(seed, 0, 0, &mut normals);
                normals.iter_mut().for_each(|x| *x *= deviation);
                normals
            }
            Init::UniformFanIn { fan_in } => {
                let bound = 1.0 / (fan_in as f32).sqrt();
                let key = [seed as u32, (seed >> 32) as u32];
                let count = shape.iter().product::<i64>() as usize;
                let mut uniform = Vec::with_capacity(count + 3);
                while uniform.len() < count {
                    let words = philox4x32([(uniform.len() / 4) as u32, 0, 0, 0], key);
                    uniform.extend(words.map(|word| {
                        let unit = (word >> 8) as f32 / (1 << 24) as f32; // [0, 1)
                        bound * (2.0 * unit - 1.0)
                    }));
                }
                uniform.truncate(count);
                uniform
            }
        };
        let tensor = Tensor::f_from_slice(&numbers)?.f_reshape(shape)?;
        Ok(tensor.f_to_kind(self.kind)?.f_to_device(self.device)?)
    }
}

impl Parameter {
    /// The row of an optimizer's table, without buffers; `number` is the place of its count of steps.
    pub fn row(&self, number: usize) -> ssn_cuda::ParameterRow<'_> {
        let working = self.working.as_ref().map(|copy| {
            let size = self.tensor.size();
            ssn_cuda::Working { copy, inputs: size[1], kernel: size[2..].iter().product() }
        });
        ssn_cuda::ParameterRow { master: &self.tensor, working, gradient: None, buffers: vec![], number }
    }

    /// The tensor that gets the gradient.
    pub fn differentiated(&self) -> &Tensor {
        self.working.as_ref().unwrap_or(&self.tensor)
    }
}

/// A prefix of tensor names, under which a layer makes its tensors.
#[derive(Debug)]
pub struct Scope<'a> {
    parameters: &'a mut Parameters,
    path: String,
}

impl Scope<'_> {
    /// The scope `name` below this one.
    pub fn sub(&mut self, name: impl std::fmt::Display) -> Scope<'_> {
        let path = self.name_of(name);
        Scope { parameters: self.parameters, path }
    }

    /// A new trainable tensor.
    pub fn parameter(&mut self, name: &str, shape: &[i64], init: Init) -> Result<Tensor> {
        self.make(name, shape, init, Role::Trainable)
    }

    /// The weight of a convolution, `[o, i, d, h, w]`, on CPUs with its inputs fastest in memory, as feature maps have their
    /// channels; and on GPUs its working copy, which is then to be used instead.
    pub fn convolution(&mut self, name: &str, shape: &[i64; 5], init: Init) -> Result<Tensor> {
        let name = self.checked_name(name, shape)?;
        let weight = self.parameters.initialized(shape, init)?;
        let weight = if weight.device() == Device::Cpu { space::channels_last(&weight)? } else { weight };
        let weight = self.parameters.register(name, weight, Role::Trainable)?;
        let (Some(kind), Some(entry)) = (self.parameters.working, self.parameters.entries.last_mut()) else {
            return Ok(weight);
        };
        let &[o, i, d, h, w] = shape;
        let [o, i] = [o, i].map(ssn_cuda::padded);
        let copy = Tensor::f_zeros([o, d, h, w, i], (kind, weight.device()))?.f_permute([0, 4, 1, 2, 3])?;
        let copy = copy.f_set_requires_grad(true)?;
        entry.working = Some(copy.shallow_clone());
        Ok(copy)
    }

    /// On GPUs, the seed of a step's dropout, `[1]`.
    pub fn dropout_seed(&self) -> Option<Tensor> {
        self.parameters.step_seeds.as_ref().map(|seeds| seeds.narrow(0, 0, 1))
    }

    /// A new buffer.
    pub fn buffer(&mut self, name: &str, shape: &[i64], init: Init) -> Result<Tensor> {
        self.make(name, shape, init, Role::Buffer)
    }

    /// Registers a tensor that exists already.
    pub fn register(&mut self, name: &str, tensor: Tensor, role: Role) -> Result<Tensor> {
        let name = self.name_of(name);
        self.parameters.register(name, tensor, role)
    }

    /// The context of training steps.
    pub(crate) fn step(&self) -> SharedStep {
        self.parameters.step.clone()
    }

    /// The device of the network's tensors.
    pub fn device(&self) -> Device {
        self.parameters.device
    }

    /// The precision of the network's tensors.
    pub fn kind(&self) -> Kind {
        self.parameters.kind
    }

    fn make(&mut self, name: &str, shape: &[i64], init: Init, role: Role) -> Result<Tensor> {
        let name = self.checked_name(name, shape)?;
        let tensor = self.parameters.initialized(shape, init)?;
        self.parameters.register(name, tensor, role)
    }

    /// The whole name of a tensor whose shape has no zero.
    fn checked_name(&self, name: &str, shape: &[i64]) -> Result<String> {
        let name = self.name_of(name);
        if shape.iter().any(|&n| n < 1) {
            let reason = format!("{name} would have the shape {shape:?}");
            let advice = "every number of channels, classes and features and every kernel must be at least 1";
            return Err(Error::usage(reason).advise(advice).into());
        }
        Ok(name)
    }

    fn name_of(&self, name: impl std::fmt::Display) -> String {
        if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) }
    }
}
