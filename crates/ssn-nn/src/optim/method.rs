//! The optimizers to choose from and their settings, with PyTorch's names and defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Result, require};

/// An optimizer with its settings; the learning rate is given to every step instead.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Method {
    /// Adam; weight decay is added to the gradient.
    Adam {
        /// Decay of the mean of gradients.
        #[serde(default = "beta1")]
        beta1: f64,
        /// Decay of the mean of squared gradients.
        #[serde(default = "beta2")]
        beta2: f64,
        /// Added to the denominator.
        #[serde(default = "eps")]
        eps: f64,
        /// Weight of the squared norm of the parameters (L2 penalty).
        #[serde(default)]
        weight_decay: f64,
    },
    /// Adam with decoupled weight decay: the parameters shrink by `learning rate · weight decay` in every step.
    AdamW {
        /// Decay of the mean of gradients.
        #[serde(default = "beta1")]
        beta1: f64,
        /// Decay of the mean of squared gradients.
        #[serde(default = "beta2")]
        beta2: f64,
        /// Added to the denominator.
        #[serde(default = "eps")]
        eps: f64,
        /// Shrinkage of the parameters per unit of learning rate.
        #[serde(default = "decoupled_weight_decay")]
        weight_decay: f64,
    },
    /// Stochastic gradient descent.
    Sgd {
        /// Decay of the sum of gradients; 0 for none.
        #[serde(default)]
        momentum: f64,
        /// Whether to look one step of momentum ahead.
        #[serde(default)]
        nesterov: bool,
        /// The part of every gradient after the first that momentum leaves out.
        #[serde(default)]
        dampening: f64,
        /// Weight of the squared norm of the parameters (L2 penalty).
        #[serde(default)]
        weight_decay: f64,
    },
    /// RMSprop.
    RmsProp {
        /// Decay of the mean of squared gradients.
        #[serde(default = "alpha")]
        alpha: f64,
        /// Decay of the sum of scaled gradients; 0 for none.
        #[serde(default)]
        momentum: f64,
        /// Added to the denominator.
        #[serde(default = "eps")]
        eps: f64,
        /// Weight of the squared norm of the parameters (L2 penalty).
        #[serde(default)]
        weight_decay: f64,
        /// Whether to scale by an estimate of the variance instead of the mean square.
        #[serde(default)]
        centered: bool,
    },
}

fn beta1() -> f64 {
    0.9
}

fn beta2() -> f64 {
    0.999
}

fn alpha() -> f64 {
    0.99
}

fn eps() -> f64 {
    1e-8
}

fn decoupled_weight_decay() -> f64 {
    1e-2
}

impl Method {
    /// Adam with PyTorch's defaults.
    pub fn adam() -> Self {
        Method::Adam { beta1: beta1(), beta2: beta2(), eps: eps(), weight_decay: 0.0 }
    }

    /// AdamW with PyTorch's defaults.
    pub fn adamw() -> Self {
        let weight_decay = decoupled_weight_decay();
        Method::AdamW { beta1: beta1(), beta2: beta2(), eps: eps(), weight_decay }
    }

    /// Gradient descent with a momentum and otherwise PyTorch's defaults.
    pub fn sgd(momentum: f64) -> Self {
        Method::Sgd { momentum, nesterov: false, dampening: 0.0, weight_decay: 0.0 }
    }

    /// RMSprop with PyTorch's defaults.
    pub fn rmsprop() -> Self {
        Method::RmsProp { alpha: alpha(), momentum: 0.0, eps: eps(), weight_decay: 0.0, centered: false }
    }

    /// The name, as in a config and before the names of its state.
    pub fn name(&self) -> &'static str {
        match self {
            Method::Adam { .. } => "adam",
            Method::AdamW { .. } => "adamw",
            Method::Sgd { .. } => "sgd",
            Method::RmsProp { .. } => "rmsprop",
        }
    }

    /// Whether all settings are in their ranges.
    ///
    /// # Errors
    /// [`NnError::Parameter`](crate::error::NnError::Parameter) that names the setting.
    pub fn check(&self) -> Result<()> {
        match *self {
            Method::Adam { beta1, beta2, eps, weight_decay }
            | Method::AdamW { beta1, beta2, eps, weight_decay } => {
                decay("beta1", beta1)?;
                decay("beta2", beta2)?;
                positive("eps", eps)?;
                penalty(weight_decay)
            }
            Method::Sgd { momentum, nesterov, dampening, weight_decay } => {
                decay("momentum", momentum)?;
                require((0.0..=1.0).contains(&dampening), "dampening", dampening, "between 0 and 1")?;
                let possible = !nesterov || (momentum > 0.0 && dampening == 0.0);
                require(possible, "nesterov", nesterov, "false without momentum or with dampening")?;
                penalty(weight_decay)
            }
            Method::RmsProp { alpha, momentum, eps, weight_decay, centered: _ } => {
                decay("alpha", alpha)?;
                decay("momentum", momentum)?;
                positive("eps", eps)?;
                penalty(weight_decay)
            }
        }
    }
}

fn decay(field: &'static str, value: f64) -> Result<()> {
    require((0.0..1.0).contains(&value), field, value, "at least 0 and below 1")
}

/// A zero gradient over a zero denominator is not a number, so that PyTorch's `eps = 0` is refused here.
fn positive(field: &'static str, value: f64) -> Result<()> {
    require(value.is_finite() && value > 0.0, field, value, "a positive number")
}

fn penalty(value: f64) -> Result<()> {
    require(value.is_finite() && value >= 0.0, "weight_decay", value, "0 or a positive number")
}
