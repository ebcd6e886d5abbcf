//! Normalization, dropout and activation in a row: three passes over memory on a CPU, one fused pass on a GPU.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_core::random::fill_kept_from;
use tch::{Device, Tensor};

use super::{Convolution, Mode, Norm, NormKind};
use crate::error::{Result, refused};
use crate::parameters::{Init, Scope, SharedStep};
use crate::space::{self, Margin};

/// PyTorch's initial slope of PReLU for negative values.
const PRELU_INIT: f64 = 0.25;

/// An element-wise activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActivationKind {
    /// max(x, 0)
    Relu,
    /// x, or 0.01 x where x is negative.
    LeakyRelu,
    /// x, or a·x where x is negative, with one trained a for all channels.
    Prelu,
}

/// An activation with its parameter, if it has one.
#[derive(Debug)]
pub enum Activation {
    /// See [`ActivationKind::Relu`].
    Relu,
    /// See [`ActivationKind::LeakyRelu`].
    LeakyRelu,
    /// See [`ActivationKind::Prelu`]; the slope `[1]`.
    Prelu(Tensor),
}

impl Activation {
    /// Makes the tensor `weight` for PReLU, nothing for the others.
    pub fn new(scope: &mut Scope, kind: ActivationKind) -> Result<Self> {
        Ok(match kind {
            ActivationKind::Relu => Self::Relu,
            ActivationKind::LeakyRelu => Self::LeakyRelu,
            ActivationKind::Prelu => {
                Self::Prelu(scope.parameter("weight", &[1], Init::Constant(PRELU_INIT))?)
            }
        })
    }

    /// # Shapes
    /// Any, unchanged.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(match self {
            Self::Relu => x.f_relu()?,
            Self::LeakyRelu => x.f_leaky_relu()?,
            Self::Prelu(slope) => x.f_prelu(&slope.f_to_kind(x.kind())?)?,
        })
    }
}

/// Dropout of single values: in training each is set to 0 with a probability, and the others are scaled by 1/(1 − p).
///
/// On a CPU the mask is a function of the step's seed, the layer and the position of the value in the whole batch,
/// independent of the number of threads; it also takes a tenth of the time of libtorch's sequential generator. On a GPU
/// it is a function of the same with the position in memory, and part of the fused normalization before it.
#[derive(Debug)]
pub struct Dropout {
    probability: f64,
    layer: u32,
    step: SharedStep,
    /// The seed of the step on a GPU.
    seed: Option<Tensor>,
}

impl Dropout {
    /// Dropout with probability p; every layer of a network needs a number of its own.
    pub fn new(scope: &Scope, probability: f64, layer: u32) -> Result<Self> {
        if !(0.0..1.0).contains(&probability) {
            return refused("dropout", probability, "at least 0 and below 1");
        }
        Ok(Self { probability, layer, step: scope.step(), seed: scope.dropout_seed() })
    }

    /// # Shapes
    /// `[b, …]`, unchanged.
    pub fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        if mode == Mode::Evaluation || self.probability == 0.0 {
            return Ok(x.shallow_clone());
        }
        let keep = 1.0 - self.probability;
        let mut mask = vec![0f32; x.numel()];
        let each = x.numel() / x.size()[0].max(1) as usize;
        let (seed, first) = self.step.dropout();
        fill_kept_from(seed, (self.layer, 0), first * each, (keep, (1.0 / keep) as f32), &mut mask);
        let mask = Tensor::f_from_slice(&mask)?.f_view(x.size().as_slice())?.f_to_kind(x.kind())?;
        Ok(x.f_mul(&mask)?)
    }
}

/// activation(dropout(norm(x))).
#[derive(Debug)]
pub struct NormAct {
    norm: Norm,
    dropout: Dropout,
    activation: Activation,
}

impl NormAct {
    /// Makes the tensors of the norm below `norm`, and those of the activation below `name`.
    pub fn new(
        scope: &mut Scope,
        channels: i64,
        (norm, dropout): (NormKind, Dropout),
        (activation, name): (ActivationKind, &str),
    ) -> Result<Self> {
        Ok(Self {
            norm: Norm::new(&mut scope.sub("norm"), channels, norm)?,
            activation: Activation::new(&mut scope.sub(name), activation)?,
            dropout,
        })
    }

    /// # Shapes
    /// `[b, c, d, h, w]`, unchanged; on GPUs channels are padded.
    pub fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        if x.device() != Device::Cpu {
            let (tensors, options) = self.fused(x, mode)?;
            return Ok(ssn_cuda::normalize(x, &tensors, &options)?);
        }
        let mut normalized = self.dropout.forward(&self.norm.forward(x, mode)?, mode)?;
        match self.activation {
            // The gradient of batch norm needs its input alone. Instance norm gives a view, for which this would cost more.
            Activation::Relu if self.norm.is_batch_norm() => Ok(normalized.f_relu_()?),
            _ => self.activation.forward(&normalized),
        }
    }

    /// A convolution without padding of the result; with `residual`, plus the center crop of x.
    ///
    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, o, d', h', w']`; on GPUs channels are padded.
    pub fn then(&self, x: &Tensor, convolution: &Convolution, residual: bool, mode: Mode) -> Result<Tensor> {
        if x.device() != Device::Cpu && mode.is_training() {
            let (tensors, options) = self.fused(x, mode)?;
            let kernel = convolution.weight();
            return Ok(ssn_cuda::normalized_convolution(x, &tensors, &options, kernel, residual)?);
        }
        let y = convolution.forward(&self.forward(x, mode)?)?;
        if !residual {
            return Ok(y);
        }
        Ok(y.f_add(&space::center_crop(x, space::spatial(&y)?, Margin::SmallerInFront)?)?)
    }

    /// The tensors and options of the fused GPU kernel.
    fn fused(&self, x: &Tensor, mode: Mode) -> Result<(ssn_cuda::NormTensors<'_>, ssn_cuda::NormOptions)> {
        let (mut tensors, mut options) = self.norm.fused(x, mode)?;
        (options.activation, tensors.prelu) = match &self.activation {
            Activation::Relu => (ssn_cuda::Activation::Relu, None),
            Activation::LeakyRelu => (ssn_cuda::Activation::LeakyRelu, None),
            Activation::Prelu(slope) => (ssn_cuda::Activation::Prelu, Some(slope)),
        };
        let Dropout { probability, layer, seed, .. } = &self.dropout;
        if mode.is_training() && *probability > 0.0 && seed.is_some() {
            (options.keep, options.layer, tensors.seed) = (1.0 - probability, (*layer).into(), seed.as_ref());
        }
        Ok((tensors, options))
    }
}
