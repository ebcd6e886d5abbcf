//! An optimizer as the kernels of a GPU see it.

use ssn_cuda::{Rule as GpuRule, Settings};
use tch::Tensor;

use super::rule::Rule;
use super::{Method, Optimizer};

impl Optimizer {
    /// The rule and its numbers.
    pub fn on_gpu(&self) -> (GpuRule, Settings) {
        let none = Settings {
            beta1: 0.0,
            beta2: 0.0,
            eps: 0.0,
            decay: 0.0,
            momentum: 0.0,
            dampening: 0.0,
            nesterov: 0,
            centerd: 0,
        };
        match self.method {
            Method::Adam { beta1, beta2, eps, weight_decay: decay } => {
                (GpuRule::Adam, Settings { beta1, beta2, eps, decay, ..none })
            }
            Method::AdamW { beta1, beta2, eps, weight_decay: decay } => {
                (GpuRule::AdamW, Settings { beta1, beta2, eps, decay, ..none })
            }
            Method::Sgd { momentum, nesterov, dampening, weight_decay: decay } => {
                (GpuRule::Sgd, Settings { momentum, dampening, decay, nesterov: nesterov.into(), ..none })
            }
            Method::RmsProp { alpha, momentum, eps, weight_decay: decay, centered } => {
                let centerd = centered.into();
                (GpuRule::RmsProp, Settings { beta2: alpha, momentum, eps, decay, centerd, ..none })
            }
        }
    }

    /// The buffers of a parameter, in the order of the kernels.
    pub fn buffers_on_gpu(&self, parameter: usize) -> Vec<Option<&Tensor>> {
        match &self.states[parameter].rule {
            Rule::Adam(rule) => vec![Some(&rule.exp_avg), Some(&rule.exp_avg_sq)],
            Rule::Sgd(rule) => vec![rule.buffer.as_ref()],
            Rule::RmsProp(rule) => vec![Some(&rule.square_avg), rule.grad_avg.as_ref(), rule.buffer.as_ref()],
        }
    }

    /// The number of each parameter's next step, from 1.
    pub fn next_steps(&self) -> impl Iterator<Item = i64> {
        self.states.iter().map(|state| state.steps + 1)
    }

    /// Counts a step that a GPU has made for some parameters.
    pub fn count_step(&mut self, parameters: &[usize]) {
        for &parameter in parameters {
            self.states[parameter].steps += 1;
        }
    }
}
