//! All parameters of a network in one table on the device, so that an optimizer's step is a handful of kernels.

use tch::{Device, Kind, Tensor};

use crate::error::Result;
use crate::launch::{Arguments, Kernel};

/// Numbers that a block of threads takes; as in the kernels.
const PER_BLOCK: i64 = 2048;
const THREADS: u32 = 256;
/// Fields of a row; as in the kernels.
const FIELDS: i64 = 14;

/// A convolution's weight in the form in which the network computes: in its precision, inputs fastest and padded.
#[derive(Debug)]
pub struct Working<'a> {
    /// `[o', i', kd, kh, kw]`, channels fastest.
    pub copy: &'a Tensor,
    /// Real inputs.
    pub inputs: i64,
    /// Voxels of the kernel.
    pub kernel: i64,
}

/// A parameter.
#[derive(Debug)]
pub struct ParameterRow<'a> {
    /// Its values in single precision, dense.
    pub master: &'a Tensor,
    /// The copy in which the network computes.
    pub working: Option<Working<'a>>,
    /// The gradient, in the form of the copy if there is one, else of the parameter.
    pub gradient: Option<Tensor>,
    /// The optimizer's buffers.
    pub buffers: Vec<Option<&'a Tensor>>,
    /// The place of its count of steps.
    pub number: usize,
}

/// The rule of an optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateRule {
    /// Buffers: mean and mean square.
    Adam = 0,
    /// As Adam.
    AdamW = 1,
    /// Buffer: momentum.
    Sgd = 2,
    /// Buffers: mean square, mean, momentum.
    RmsProp = 3,
}

/// The numbers of a rule, as the kernels have them; those that a rule does not know are not read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C)]
pub struct UpdateSettings {
    /// Decay of the mean.
    pub beta1: f64,
    /// Decay of the mean square.
    pub beta2: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// Weight decay.
    pub decay: f64,
    /// Decay of the momentum.
    pub momentum: f64,
    /// The part of a gradient that momentum leaves out.
    pub dampening: f64,
    /// Whether to look a step of momentum ahead.
    pub nesterov: i32,
    /// Whether the mean square is taken about the mean.
    pub centered: i32,
}

/// The results of a step on the device.
#[derive(Debug)]
pub struct StepResults {
    /// Loss, effective sample size (negative if there is none), norm of the gradient, whether the step was applied, clipping.
    pub values: Tensor,
    sum: Tensor,
}

impl StepResults {
    /// Numbers of [`StepResults::values`].
    pub const COUNT: usize = 5;

    /// Room for the results of one step after another.
    pub fn new(device: Device) -> Result<Self> {
        let zeros = |count: i64| Tensor::f_zeros([count], (Kind::Double, device));
        Ok(Self { values: zeros(Self::COUNT as i64)?, sum: zeros(1)? })
    }
}

/// A table, whose rows may be filled after work with it was recorded.
#[derive(Debug)]
pub struct ParameterTable {
    rows: Tensor,
    count: i32,
    blocks: u32,
}

impl ParameterTable {
    /// A table for parameters of these sizes. Every entry of [`ParameterTable::fill`] must be one of them, in this order.
    pub fn new(sizes: &[i64], device: Device) -> Result<Self> {
        let blocks = sizes.iter().map(|&size| blocks(size)).sum::<i64>();
        let rows = Tensor::f_zeros([sizes.len().max(1) as i64, FIELDS], (Kind::Int64, device))?;
        Ok(Self { rows, count: sizes.len() as i32, blocks: blocks as u32 })
    }

    /// Says where everything is.
    pub fn fill(&mut self, entries: &[ParameterRow]) -> Result<()> {
        let address = |tensor: Option<&Tensor>| tensor.map_or(0, |tensor| tensor.data_ptr() as i64);
        let (mut rows, mut first_block) = (vec![], 0);
        for entry in entries {
            let count = entry.master.numel() as i64;
            let buffer = |i: usize| address(entry.buffers.get(i).copied().flatten());
            let (copy, inputs, kernel, padded) = match &entry.working {
                Some(Working { copy, inputs, kernel }) => (Some(*copy), *inputs, *kernel, copy.size()[1]),
                None => (None, 1, 1, 1),
            };
            rows.extend([
                address(Some(entry.master)),
                address(copy),
                address(entry.gradient.as_ref()),
                buffer(0),
                buffer(1),
                buffer(2),
                count,
                inputs,
                kernel,
                padded,
                first_block,
                entry.number as i64,
                copy.map_or(count, |copy| copy.numel() as i64),
                copy.is_some_and(|copy| copy.kind() == Kind::Float).into(),
            ]);
            first_block += blocks(count);
        }
        let rows = Tensor::f_from_slice(&rows)?.f_view([-1, FIELDS])?;
        Ok(self.rows.f_copy_(&rows)?)
    }

    /// The norm of all gradients, and with it whether the step is applied: loss and norm must be finite. Gradients longer
    /// than `most` count as if they were as long.
    ///
    /// # Shapes
    /// `loss` and `effective` are scalars of double precision on the device.
    pub fn decide(
        &self,
        results: &StepResults,
        loss: &Tensor,
        effective: Option<&Tensor>,
        most: f64,
    ) -> Result<()> {
        let mut arguments = Arguments::default();
        arguments.tensor(Some(&self.rows)).number(self.count).tensor(Some(&results.sum));
        self.launch("", "squared_norm", self.blocks, THREADS, &mut arguments)?;
        let mut arguments = Arguments::default();
        arguments.tensor(Some(&results.sum)).tensor(Some(loss)).tensor(effective);
        arguments.tensor(Some(&results.values)).number(most);
        self.launch("", "decide", 1, 1, &mut arguments)
    }

    /// Changes all parameters, unless the step is not applied. `rate` and `steps` are on the device: the learning rate, and
    /// the count of steps of every parameter, from 1.
    pub fn update(
        &self,
        results: &StepResults,
        rule: UpdateRule,
        settings: &UpdateSettings,
        rate: &Tensor,
        steps: &Tensor,
    ) -> Result<()> {
        let mut arguments = Arguments::default();
        arguments.tensor(Some(&self.rows)).number(self.count).tensor(Some(&results.values));
        arguments.tensor(Some(rate)).tensor(Some(steps)).number(*settings);
        self.launch(&format!("METHOD={}", rule as i32), "update", self.blocks, THREADS, &mut arguments)
    }

    /// Renews the working copies from the parameters.
    pub fn pack(&self) -> Result<()> {
        let mut arguments = Arguments::default();
        arguments.tensor(Some(&self.rows)).number(self.count);
        self.launch("", "pack", self.blocks, THREADS, &mut arguments)
    }

    fn launch(
        &self,
        options: &str,
        name: &str,
        blocks: u32,
        threads: u32,
        arguments: &mut Arguments,
    ) -> Result<()> {
        // Kernels that do not depend on the method are compiled with any.
        let options = if options.is_empty() { "METHOD=0" } else { options };
        let kernel = Kernel { file: "update.cu", options, name };
        // SAFETY: the callers pass what the kernel of this name declares; the table outlives its steps.
        unsafe { kernel.launch(blocks, threads, arguments) }
    }
}

fn blocks(count: i64) -> i64 {
    (count + PER_BLOCK - 1) / PER_BLOCK
}
