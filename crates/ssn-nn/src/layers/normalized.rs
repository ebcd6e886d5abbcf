//! Normalization, dropout and activation in a row: three passes over memory on processors, one on GPUs.

use tch::{Device, Tensor};

use super::{Activation, ActivationKind, Convolution, Dropout, Mode, Norm, NormKind};
use crate::error::Result;
use crate::parameters::Scope;
use crate::space;
use crate::space::Margin;

/// activation(dropout(norm(x))).
#[derive(Debug)]
pub struct Normalized {
    norm: Norm,
    dropout: Dropout,
    activation: Activation,
}

impl Normalized {
    /// Makes the tensors of the norm below `norm`, and those of the activation below `activation`.
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
            let (tensors, how) =
                self.norm.fused(x, self.dropout.fused(mode), self.activation.fused(), mode)?;
            return Ok(ssn_cuda::normalize(x, &tensors, &how)?);
        }
        self.activation.forward(&self.dropout.forward(&self.norm.forward(x, mode)?, mode)?)
    }

    /// A convolution without padding of the result; with `residual`, plus the middle of x.
    ///
    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, o, d', h', w']`; on GPUs channels are padded.
    pub fn then(&self, x: &Tensor, convolution: &Convolution, residual: bool, mode: Mode) -> Result<Tensor> {
        if x.device() != Device::Cpu && mode.is_training() {
            let (tensors, how) =
                self.norm.fused(x, self.dropout.fused(mode), self.activation.fused(), mode)?;
            let kernel = convolution.weight();
            return Ok(ssn_cuda::normalized_convolution(x, &tensors, &how, kernel, residual)?);
        }
        let y = convolution.forward(&self.forward(x, mode)?)?;
        if !residual {
            return Ok(y);
        }
        Ok(y.f_add(&space::center_crop(x, space::spatial(&y)?, Margin::SmallerInFront)?)?)
    }
}
