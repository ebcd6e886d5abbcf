//! Normalization of each channel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::Mode;
use super::shared_norm::{self, Running};
use crate::error::{NnError, Result, require};
use crate::parameters::{Initial, Scope};

/// Over what a channel is normalized.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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

    /// Refuses an ε or a momentum that makes no sense.
    pub fn check(self) -> Result<()> {
        let (Self::Batch { eps, .. } | Self::Instance { eps }) = self;
        require(eps.is_finite() && eps > 0.0, "norm.eps", eps, "a small positive number")?;
        match self {
            Self::Batch { momentum, .. } => {
                require((0.0..=1.0).contains(&momentum), "norm.momentum", momentum, "from 0 to 1")
            }
            Self::Instance { .. } => Ok(()),
        }
    }
}

/// A normalization with a slope and an offset per channel.
#[derive(Debug)]
pub struct Norm {
    weight: Tensor,
    bias: Tensor,
    statistics: Statistics,
}

/// Where mean and variance come from.
#[derive(Debug)]
enum Statistics {
    Batch { running_mean: Tensor, running_var: Tensor, eps: f64, momentum: f64 },
    Instance { eps: f64 },
}

impl Norm {
    /// Makes the tensors `weight`, `bias` and, for batch norm, `running_mean` and `running_var`.
    pub fn new(scope: &mut Scope, channels: i64, kind: NormKind) -> Result<Self> {
        let weight = scope.trained("weight", &[channels], Initial::Constant(1.0))?;
        let bias = scope.trained("bias", &[channels], Initial::Constant(0.0))?;
        let statistics = match kind {
            NormKind::Batch { eps, momentum } => Statistics::Batch {
                running_mean: scope.kept("running_mean", &[channels], Initial::Constant(0.0))?,
                running_var: scope.kept("running_var", &[channels], Initial::Constant(1.0))?,
                eps,
                momentum,
            },
            NormKind::Instance { eps } => Statistics::Instance { eps },
        };
        Ok(Self { weight, bias, statistics })
    }

    /// The same with dropout and activation, as a GPU does it in one; channels are padded.
    pub(super) fn fused<'a>(
        &'a self,
        x: &Tensor,
        dropout: Option<ssn_cuda::Dropout<'a>>,
        (activation, prelu): (ssn_cuda::Activation, Option<&'a Tensor>),
        mode: Mode,
    ) -> Result<(ssn_cuda::NormTensors<'a>, ssn_cuda::Normalization<'a>)> {
        self.check(x, mode)?;
        let (eps, momentum, running) = match &self.statistics {
            Statistics::Batch { running_mean, running_var, eps, momentum } => {
                (*eps, *momentum, Some([running_mean, running_var]))
            }
            Statistics::Instance { eps } => (*eps, 0.0, None),
        };
        let tensors = ssn_cuda::NormTensors { weight: &self.weight, bias: &self.bias, prelu, running };
        let how = ssn_cuda::Normalization {
            eps,
            momentum,
            channels: self.weight.size()[0],
            per_image: running.is_none(),
            training: mode.is_training(),
            dropout,
            activation,
            part: mode.part(),
        };
        Ok((tensors, how))
    }

    /// Refuses maps that have no variance.
    fn check(&self, x: &Tensor, mode: Mode) -> Result<()> {
        let size = x.size();
        let values = match self.statistics {
            // Other ranks have values as well.
            Statistics::Batch { .. } if matches!(mode, Mode::Training { ranks: Some(_), .. }) => 2,
            Statistics::Batch { .. } => size[0] * size[2..].iter().product::<i64>(),
            Statistics::Instance { .. } => size[2..].iter().product(),
        };
        if mode.is_training() && values < 2 {
            // The variance of a single value is 0/0 and would make the running statistics NaN for ever.
            let expected = "a map with at least 2 values per channel to normalize over: enlarge the patch or the batch, \
                            or take fewer levels"
                .to_owned();
            return Err(NnError::Shape { field: "a feature map in training", found: size, expected });
        }
        Ok(())
    }

    /// Batch norm in training updates the running statistics.
    ///
    /// # Shapes
    /// `[b, c, d, h, w]`, unchanged.
    pub fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.check(x, mode)?;
        let (weight, bias) = (Some(&self.weight), Some(&self.bias));
        Ok(match &self.statistics {
            Statistics::Batch { running_mean, running_var, eps, momentum } => {
                if let Mode::Training { ranks: Some(ranks), .. } = mode {
                    let running = Running { mean: running_mean, variance: running_var, momentum: *momentum };
                    return shared_norm::normalize(x, [&self.weight, &self.bias], &running, *eps, ranks);
                }
                let (mean, variance) = (Some(running_mean), Some(running_var));
                x.f_batch_norm(weight, bias, mean, variance, mode.is_training(), *momentum, *eps, true)?
            }
            Statistics::Instance { eps } => {
                let none = None::<&Tensor>;
                x.f_instance_norm(weight, bias, none, none, true, 0.0, *eps, true)?
            }
        })
    }
}
