//! The optimizers to choose from: their settings, with PyTorch's names and defaults, and the update of one parameter with the
//! buffers that it keeps between steps.
//!
//! Every method computes what PyTorch's single-tensor implementation computes, in the same order. The bindings have
//! neither `alpha` in sums, nor `value` in `addcmul` and `addcdiv`, nor the `_foreach_` operators. libtorch
//! multiplies by `value` first, so that multiplying beforehand gives the same bits; a sum with `alpha` may round
//! once more. Buffers and parameters change in place: their addresses stay what they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};

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
    /// An error that names the setting.
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

/// One step of one parameter.
pub(super) struct Update<'a> {
    pub parameter: &'a mut Tensor,
    pub gradient: Tensor,
    /// The number of this parameter's step, counted from 1.
    pub step: i64,
    pub learning_rate: f64,
}

impl Method {
    /// PyTorch's names of the buffers, and whether these settings use them; in the order of the GPU's kernels.
    pub(super) fn buffers(&self) -> Vec<(&'static str, bool)> {
        match *self {
            Method::Adam { .. } | Method::AdamW { .. } => vec![("exp_avg", true), ("exp_avg_sq", true)],
            Method::Sgd { momentum, .. } => vec![("momentum_buffer", momentum != 0.0)],
            Method::RmsProp { momentum, centered, .. } => {
                vec![("square_avg", true), ("grad_avg", centered), ("momentum_buffer", momentum != 0.0)]
            }
        }
    }

    /// Updates a parameter and its buffers, which are those of [`Method::buffers`].
    pub(super) fn update(&self, buffers: &mut [Option<Tensor>], update: Update) -> Result<(), TchError> {
        let Update { parameter, mut gradient, step, learning_rate } = update;
        match (*self, buffers) {
            (
                Method::Adam { beta1, beta2, eps, weight_decay }
                | Method::AdamW { beta1, beta2, eps, weight_decay },
                [Some(exp_avg), Some(exp_avg_sq)],
            ) => {
                if !matches!(self, Method::AdamW { .. }) {
                    gradient = penalized(gradient, parameter, weight_decay)?;
                } else if weight_decay != 0.0 {
                    let _ = parameter.f_mul_scalar_(1.0 - learning_rate * weight_decay)?;
                }
                let _ = exp_avg.f_lerp_(&gradient, 1.0 - beta1)?;
                decay_square(exp_avg_sq, beta2, &gradient)?;
                let correction1 = 1.0 - beta1.powf(step as f64);
                let correction2 = 1.0 - beta2.powf(step as f64);
                let mut denominator = exp_avg_sq.f_sqrt()?;
                let _ = denominator.f_div_scalar_(correction2.sqrt())?.f_add_scalar_(eps)?;
                let numerator = exp_avg.f_mul_scalar(-(learning_rate / correction1))?;
                let _ = parameter.f_addcdiv_(&numerator, &denominator)?;
            }
            (Method::Sgd { momentum, nesterov, dampening, weight_decay }, [buffer]) => {
                let gradient = penalized(gradient, parameter, weight_decay)?;
                let Some(buffer) = buffer else {
                    return add_scaled(parameter, &gradient, -learning_rate);
                };
                if step == 1 {
                    // The first gradient counts in full, whatever the dampening.
                    buffer.f_copy_(&gradient)?;
                } else {
                    let _ = buffer.f_mul_scalar_(momentum)?;
                    add_scaled(buffer, &gradient, 1.0 - dampening)?;
                }
                if nesterov {
                    let ahead = buffer.f_mul_scalar(momentum)?.f_add_(&gradient)?;
                    add_scaled(parameter, &ahead, -learning_rate)?;
                } else {
                    add_scaled(parameter, buffer, -learning_rate)?;
                }
            }
            (
                Method::RmsProp { alpha, momentum, eps, weight_decay, .. },
                [Some(square_avg), grad_avg, buffer],
            ) => {
                let gradient = penalized(gradient, parameter, weight_decay)?;
                decay_square(square_avg, alpha, &gradient)?;
                let mut denominator = match grad_avg {
                    Some(grad_avg) => {
                        let _ = grad_avg.f_lerp_(&gradient, 1.0 - alpha)?;
                        square_avg.f_addcmul(&grad_avg.f_neg()?, grad_avg)?.f_sqrt_()?
                    }
                    None => square_avg.f_sqrt()?,
                };
                let _ = denominator.f_add_scalar_(eps)?;
                match buffer {
                    Some(buffer) => {
                        let _ = buffer.f_mul_scalar_(momentum)?.f_addcdiv_(&gradient, &denominator)?;
                        add_scaled(parameter, buffer, -learning_rate)?;
                    }
                    None => {
                        let _ =
                            parameter.f_addcdiv_(&gradient.f_mul_scalar(-learning_rate)?, &denominator)?;
                    }
                }
            }
            _ => unreachable!("the buffers are those of the method"),
        }
        Ok(())
    }
}

/// The gradient plus that of the L2 penalty.
fn penalized(gradient: Tensor, parameter: &Tensor, weight_decay: f64) -> Result<Tensor, TchError> {
    if weight_decay == 0.0 {
        return Ok(gradient);
    }
    parameter.f_mul_scalar(weight_decay)?.f_add_(&gradient)
}

/// `target += scale · term`.
fn add_scaled(target: &mut Tensor, term: &Tensor, scale: f64) -> Result<(), TchError> {
    let _ = if scale == 1.0 { target.f_add_(term) } else { target.f_add_(&term.f_mul_scalar(scale)?) }?;
    Ok(())
}

/// `average = decay · average + (1 − decay) · gradient²`.
fn decay_square(average: &mut Tensor, decay: f64, gradient: &Tensor) -> Result<(), TchError> {
    let weighted = gradient.f_mul_scalar(1.0 - decay)?;
    let _ = average.f_mul_scalar_(decay)?.f_addcmul_(&weighted, gradient)?;
    Ok(())
}
