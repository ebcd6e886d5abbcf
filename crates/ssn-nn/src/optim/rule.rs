//! The update rule of each method for one parameter, with the buffers that it keeps between steps.
//!
//! Every rule computes what PyTorch's single-tensor implementation computes, in the same order. The bindings have
//! neither `alpha` in sums, nor `value` in `addcmul` and `addcdiv`, nor the `_foreach_` operators. libtorch
//! multiplies by `value` first, so that multiplying beforehand gives the same bits; a sum with `alpha` may round
//! once more. Buffers and parameters change in place: their addresses stay what they are.

use tch::{TchError, Tensor};

use super::method::Method;

/// The rule of one parameter.
#[derive(Debug)]
pub(super) enum Rule {
    Adam(Adam),
    Sgd(Sgd),
    RmsProp(RmsProp),
}

/// What a rule is given for one step of one parameter.
pub(super) struct Update<'a> {
    pub parameter: &'a mut Tensor,
    pub gradient: Tensor,
    /// The number of this parameter's step, counted from 1.
    pub step: i64,
    pub learning_rate: f64,
}

impl Rule {
    pub(super) fn new(method: &Method, parameter: &Tensor) -> Result<Self, TchError> {
        let _guard = tch::no_grad_guard();
        let buffer = || parameter.f_zeros_like();
        let buffer_if = |wanted: bool| wanted.then(buffer).transpose();
        Ok(match *method {
            Method::Adam { beta1, beta2, eps, weight_decay }
            | Method::AdamW { beta1, beta2, eps, weight_decay } => {
                let decoupled = matches!(method, Method::AdamW { .. });
                let (exp_avg, exp_avg_sq) = (buffer()?, buffer()?);
                Rule::Adam(Adam { beta1, beta2, eps, weight_decay, decoupled, exp_avg, exp_avg_sq })
            }
            Method::Sgd { momentum, nesterov, dampening, weight_decay } => {
                let buffer = buffer_if(momentum != 0.0)?;
                Rule::Sgd(Sgd { momentum, nesterov, dampening, weight_decay, buffer })
            }
            Method::RmsProp { alpha, momentum, eps, weight_decay, centered } => {
                let (square_avg, grad_avg) = (buffer()?, buffer_if(centered)?);
                let buffer = buffer_if(momentum != 0.0)?;
                Rule::RmsProp(RmsProp { alpha, momentum, eps, weight_decay, square_avg, grad_avg, buffer })
            }
        })
    }

    /// The buffers under PyTorch's names.
    pub(super) fn buffers(&self) -> Vec<(&'static str, &Tensor)> {
        let all = match self {
            Rule::Adam(rule) => {
                vec![("exp_avg", Some(&rule.exp_avg)), ("exp_avg_sq", Some(&rule.exp_avg_sq))]
            }
            Rule::Sgd(rule) => vec![("momentum_buffer", rule.buffer.as_ref())],
            Rule::RmsProp(rule) => vec![
                ("square_avg", Some(&rule.square_avg)),
                ("grad_avg", rule.grad_avg.as_ref()),
                ("momentum_buffer", rule.buffer.as_ref()),
            ],
        };
        all.into_iter().filter_map(|(name, buffer)| Some((name, buffer?))).collect()
    }

    pub(super) fn apply(&mut self, update: Update) -> Result<(), TchError> {
        match self {
            Rule::Adam(rule) => rule.apply(update),
            Rule::Sgd(rule) => rule.apply(update),
            Rule::RmsProp(rule) => rule.apply(update),
        }
    }
}

#[derive(Debug)]
pub(super) struct Adam {
    beta1: f64,
    beta2: f64,
    eps: f64,
    weight_decay: f64,
    decoupled: bool,
    pub(super) exp_avg: Tensor,
    pub(super) exp_avg_sq: Tensor,
}

impl Adam {
    fn apply(&mut self, update: Update) -> Result<(), TchError> {
        let Update { parameter, mut gradient, step, learning_rate } = update;
        if self.decoupled {
            if self.weight_decay != 0.0 {
                let _ = parameter.f_mul_scalar_(1.0 - learning_rate * self.weight_decay)?;
            }
        } else {
            gradient = penalized(gradient, parameter, self.weight_decay)?;
        }
        let _ = self.exp_avg.f_lerp_(&gradient, 1.0 - self.beta1)?;
        decay_square(&mut self.exp_avg_sq, self.beta2, &gradient)?;

        let correction1 = 1.0 - self.beta1.powf(step as f64);
        let correction2 = 1.0 - self.beta2.powf(step as f64);
        let mut denominator = self.exp_avg_sq.f_sqrt()?;
        let _ = denominator.f_div_scalar_(correction2.sqrt())?.f_add_scalar_(self.eps)?;
        let numerator = self.exp_avg.f_mul_scalar(-(learning_rate / correction1))?;
        let _ = parameter.f_addcdiv_(&numerator, &denominator)?;
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Sgd {
    momentum: f64,
    nesterov: bool,
    dampening: f64,
    weight_decay: f64,
    pub(super) buffer: Option<Tensor>,
}

impl Sgd {
    fn apply(&mut self, update: Update) -> Result<(), TchError> {
        let Update { parameter, gradient, step, learning_rate } = update;
        let gradient = penalized(gradient, parameter, self.weight_decay)?;
        let Some(buffer) = &mut self.buffer else {
            return add_scaled(parameter, &gradient, -learning_rate);
        };
        if step == 1 {
            // The first gradient counts in full, whatever the dampening.
            buffer.f_copy_(&gradient)?;
        } else {
            let _ = buffer.f_mul_scalar_(self.momentum)?;
            add_scaled(buffer, &gradient, 1.0 - self.dampening)?;
        }
        if self.nesterov {
            let ahead = buffer.f_mul_scalar(self.momentum)?.f_add_(&gradient)?;
            add_scaled(parameter, &ahead, -learning_rate)
        } else {
            add_scaled(parameter, buffer, -learning_rate)
        }
    }
}

#[derive(Debug)]
pub(super) struct RmsProp {
    alpha: f64,
    momentum: f64,
    eps: f64,
    weight_decay: f64,
    pub(super) square_avg: Tensor,
    pub(super) grad_avg: Option<Tensor>,
    pub(super) buffer: Option<Tensor>,
}

impl RmsProp {
    fn apply(&mut self, update: Update) -> Result<(), TchError> {
        let Update { parameter, gradient, step: _, learning_rate } = update;
        let gradient = penalized(gradient, parameter, self.weight_decay)?;
        decay_square(&mut self.square_avg, self.alpha, &gradient)?;
        let mut denominator = match &mut self.grad_avg {
            Some(grad_avg) => {
                let _ = grad_avg.f_lerp_(&gradient, 1.0 - self.alpha)?;
                self.square_avg.f_addcmul(&grad_avg.f_neg()?, grad_avg)?.f_sqrt_()?
            }
            None => self.square_avg.f_sqrt()?,
        };
        let _ = denominator.f_add_scalar_(self.eps)?;
        match &mut self.buffer {
            Some(buffer) => {
                let _ = buffer.f_mul_scalar_(self.momentum)?.f_addcdiv_(&gradient, &denominator)?;
                add_scaled(parameter, buffer, -learning_rate)
            }
            None => {
                let _ = parameter.f_addcdiv_(&gradient.f_mul_scalar(-learning_rate)?, &denominator)?;
                Ok(())
            }
        }
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
