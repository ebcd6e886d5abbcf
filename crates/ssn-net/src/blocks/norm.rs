//! Normalisation of each channel.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::Mode;
use crate::error::Result;
use crate::parameters::{Initial, Scope};

/// Over what a channel is normalised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, tag = "kind")]
pub enum NormKind {
    /// Over the batch and space; running statistics serve evaluation.
    Batch {
        /// Added to the variance.
        #[serde(default = "default_eps")]
        eps: f64,
        /// The share of the newest batch in the running statistics.
        #[serde(default = "default_momentum")]
        momentum: f64,
    },
    /// Over the space of each image alone: for small batches.
    Instance {
        /// Added to the variance.
        #[serde(default = "default_eps")]
        eps: f64,
    },
}

fn default_eps() -> f64 {
    1e-5
}

fn default_momentum() -> f64 {
    0.1
}

impl NormKind {
    /// Batch norm as PyTorch has it by default.
    pub const BATCH: Self = Self::Batch { eps: 1e-5, momentum: 0.1 };
    /// Instance norm as PyTorch has it by default.
    pub const INSTANCE: Self = Self::Instance { eps: 1e-5 };
}

/// A normalisation with a slope and an offset per channel.
#[derive(Debug)]
pub struct Norm {
    weight: Tensor,
    bias: Tensor,
    /// Mean and variance.
    running: Option<(Tensor, Tensor)>,
    kind: NormKind,
}

impl Norm {
    /// Makes the tensors `weight`, `bias` and, for batch norm, `running_mean` and `running_var`.
    pub fn new(scope: &mut Scope, channels: i64, kind: NormKind) -> Result<Self> {
        let weight = scope.trained("weight", &[channels], Initial::Constant(1.0))?;
        let bias = scope.trained("bias", &[channels], Initial::Constant(0.0))?;
        let running = match kind {
            NormKind::Batch { .. } => Some((
                scope.kept("running_mean", &[channels], Initial::Constant(0.0))?,
                scope.kept("running_var", &[channels], Initial::Constant(1.0))?,
            )),
            NormKind::Instance { .. } => None,
        };
        Ok(Self { weight, bias, running, kind })
    }

    /// Batch norm in training updates the running statistics.
    ///
    /// # Shapes
    /// `[b, c, d, h, w]`, unchanged.
    pub fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let (weight, bias) = (Some(&self.weight), Some(&self.bias));
        Ok(match (self.kind, &self.running) {
            (NormKind::Batch { eps, momentum }, Some((mean, variance))) => {
                let training = mode.is_training();
                x.f_batch_norm(weight, bias, Some(mean), Some(variance), training, momentum, eps, true)?
            }
            (NormKind::Instance { eps } | NormKind::Batch { eps, .. }, _) => {
                let none = None::<&Tensor>;
                x.f_instance_norm(weight, bias, none, none, true, 0.0, eps, true)?
            }
        })
    }
}
