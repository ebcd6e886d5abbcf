//! Activations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::error::Result;
use crate::parameters::{Initial, Scope};

/// The slope for negative values that PReLU starts with.
const PRELU_START: f64 = 0.25;

/// A function of single values.
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

/// An activation with the tensors it may have.
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
                Self::Prelu(scope.trained("weight", &[1], Initial::Constant(PRELU_START))?)
            }
        })
    }

    /// What a GPU does in one with the normalization before, and PReLU's slope.
    pub(super) fn fused(&self) -> (ssn_cuda::Activation, Option<&Tensor>) {
        match self {
            Self::Relu => (ssn_cuda::Activation::Relu, None),
            Self::LeakyRelu => (ssn_cuda::Activation::LeakyRelu, None),
            Self::Prelu(slope) => (ssn_cuda::Activation::Prelu, Some(slope)),
        }
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
