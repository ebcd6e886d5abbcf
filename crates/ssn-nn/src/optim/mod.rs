//! Optimizers over plain tensors, with PyTorch's arithmetic and a state that is saved and restored to the bit.

mod method;
mod schedule;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use ssn_cuda::{UpdateRule, UpdateSettings};
use ssn_io::Error;
use tch::{COptimizer, Device, Kind, Tensor};

pub use method::Method;
use method::Update;
pub use schedule::{LearningRate, Schedule, Warmup};

use crate::error::{NnError, Result, require};

/// The buffer name of a parameter's count of steps.
const STEP: &str = "step";

/// An optimizer of named parameters.
///
/// As in PyTorch, a step leaves out the parameters that have no gradient, and every parameter counts its own steps.
#[derive(Debug)]
pub struct Optimizer {
    method: Method,
    parameters: Vec<(String, Tensor)>,
    states: Vec<State>,
    /// Only ever drops gradients: the bindings can set one to zero, but not take it away from its parameter.
    gradients: COptimizer,
}

/// The optimizer state of one parameter.
#[derive(Debug)]
struct State {
    /// As [`Method::buffers`] lists them.
    buffers: Vec<Option<Tensor>>,
    steps: i64,
}

impl Optimizer {
    /// An optimizer that has made no step, for parameters that it shares with their model.
    ///
    /// # Errors
    /// A setting outside its range, and a parameter that is not a leaf with a gradient, is neither `f32` nor `f64`, or has the
    /// name of another.
    pub fn new(method: Method, parameters: Vec<(String, Tensor)>) -> Result<Self> {
        method.check()?;
        let mut names = BTreeSet::new();
        let mut states = vec![];
        let mut gradients = COptimizer::sgd(0.0, 0.0, 0.0, 0.0, false)?;
        for (name, parameter) in &parameters {
            let problem = if !names.insert(name) {
                Some("another one has the same name")
            } else if !parameter.requires_grad() {
                Some("it does not require a gradient")
            } else if !parameter.f_is_leaf()? {
                Some("it is computed from other tensors")
            } else if !matches!(parameter.f_kind()?, Kind::Float | Kind::Double) {
                Some("it is neither f32 nor f64")
            } else {
                None
            };
            if let Some(problem) = problem {
                return Err(NnError::untrainable(name, problem));
            }
            let zeros = |(_, is_used): (_, bool)| is_used.then(|| parameter.f_zeros_like());
            let buffers = method.buffers().into_iter().map(|buffer| zeros(buffer).transpose());
            states.push(State { buffers: buffers.collect::<Result<_, _>>()?, steps: 0 });
            gradients.add_parameters(parameter, 0)?;
        }
        Ok(Optimizer { method, parameters, states, gradients })
    }

    /// The parameters with their names, in the order given.
    pub fn parameters(&self) -> &[(String, Tensor)] {
        &self.parameters
    }

    /// Changes every parameter that has a gradient. Whether gradients are finite is for the caller to check before.
    ///
    /// # Errors
    /// A learning rate that is negative or not finite; nothing is changed then.
    pub fn step(&mut self, learning_rate: f64) -> Result<()> {
        let usable = learning_rate.is_finite() && learning_rate >= 0.0;
        require(usable, "learning_rate", learning_rate, "0 or a positive number")?;
        let _guard = tch::no_grad_guard();
        for ((_, parameter), state) in self.parameters.iter_mut().zip(&mut self.states) {
            let gradient = parameter.f_grad()?;
            if gradient.defined() {
                state.steps += 1;
                let update = Update { parameter, gradient, step: state.steps, learning_rate };
                self.method.update(&mut state.buffers, update)?;
            }
        }
        Ok(())
    }

    /// Takes the gradients away, so that a parameter that the next backward pass does not reach has none.
    pub fn zero_grad(&mut self) -> Result<()> {
        Ok(self.gradients.zero_grad()?)
    }

    /// Forgets all steps: buffers are zero and counts start again. Buffers stay where they are in memory.
    pub fn reset(&mut self) -> Result<()> {
        let _guard = tch::no_grad_guard();
        for state in &mut self.states {
            state.steps = 0;
            for buffer in state.buffers.iter_mut().flatten() {
                let _ = buffer.f_zero_()?;
            }
        }
        Ok(())
    }

    /// A copy of everything but the parameters and the settings that the next step depends on.
    ///
    /// For each parameter `NAME`: its count of steps, `METHOD.step/NAME`, a scalar of `i64`, and the method's buffers
    /// under PyTorch's names, such as `adam.exp_avg/NAME`, with the shape and kind of the parameter.
    pub fn state(&self) -> Result<Vec<(String, Tensor)>> {
        let _guard = tch::no_grad_guard();
        let mut entries = vec![];
        for ((name, _), state) in self.parameters.iter().zip(&self.states) {
            let steps = Tensor::f_full([0i64; 0], state.steps, (Kind::Int64, Device::Cpu))?;
            entries.push((self.entry(STEP, name), steps));
            for (buffer, tensor) in self.named_buffers(state) {
                entries.push((self.entry(buffer, name), tensor.f_detach_copy()?));
            }
        }
        Ok(entries)
    }

    /// Continues from a [`Self::state`] of an optimizer of the same method and parameters, on any device.
    ///
    /// # Errors
    /// An entry that is missing, unknown, given twice, or of another shape or kind;
    /// nothing is changed then.
    pub fn load_state(&mut self, entries: &[(String, Tensor)]) -> Result<()> {
        let _guard = tch::no_grad_guard();
        let mut given = BTreeMap::new();
        for (entry, tensor) in entries {
            if given.insert(entry.as_str(), tensor).is_some() {
                return Err(state_error(entry, "occurs twice"));
            }
        }
        let (mut steps, mut copies) = (vec![], vec![]);
        for ((name, _), state) in self.parameters.iter().zip(&self.states) {
            let entry = self.entry(STEP, name);
            let count = take(&mut given, &entry, &[], Kind::Int64)?.f_int64_value(&[])?;
            if count < 0 {
                return Err(state_error(&entry, format!("is {count}, but a count of steps is at least 0")));
            }
            steps.push(count);
            for (buffer, tensor) in self.named_buffers(state) {
                let entry = self.entry(buffer, name);
                let saved = take(&mut given, &entry, &tensor.size(), tensor.f_kind()?)?;
                copies.push((tensor.shallow_clone(), saved));
            }
        }
        if let Some((entry, _)) = given.first_key_value() {
            return Err(state_error(entry, "belongs to no parameter of this model and method"));
        }
        for (mut buffer, saved) in copies {
            buffer.f_copy_(saved)?;
        }
        for (state, steps) in self.states.iter_mut().zip(steps) {
            state.steps = steps;
        }
        Ok(())
    }

    /// The buffers of a parameter under PyTorch's names.
    fn named_buffers<'a>(&self, state: &'a State) -> impl Iterator<Item = (&'static str, &'a Tensor)> {
        let names = self.method.buffers().into_iter();
        names.zip(&state.buffers).filter_map(|((name, _), buffer)| Some((name, buffer.as_ref()?)))
    }

    fn entry(&self, buffer: &str, parameter: &str) -> String {
        format!("{}.{buffer}/{parameter}", self.method.name())
    }
}

/// Takes an entry out of a saved state, if it has the right form.
fn take<'a>(
    given: &mut BTreeMap<&str, &'a Tensor>,
    entry: &str,
    shape: &[i64],
    kind: Kind,
) -> Result<&'a Tensor> {
    let tensor = given.remove(entry).ok_or_else(|| state_error(entry, "is missing"))?;
    let found = tensor.size();
    if found != shape {
        return Err(state_error(entry, format!("has shape {found:?}, but its parameter needs {shape:?}")));
    }
    let found = tensor.f_kind()?;
    if found != kind {
        return Err(state_error(entry, format!("holds {found:?}, but its parameter needs {kind:?}")));
    }
    Ok(tensor)
}

/// Returns the error of a saved state that is not of this optimizer.
fn state_error(entry: &str, problem: impl Display) -> NnError {
    Error::internal(format!("the state of the optimizer cannot be restored: {entry} {problem}")).into()
}

impl Optimizer {
    /// The rule and its numbers.
    pub fn on_gpu(&self) -> (UpdateRule, UpdateSettings) {
        let none = UpdateSettings::default();
        match self.method {
            Method::Adam { beta1, beta2, eps, weight_decay: decay } => {
                (UpdateRule::Adam, UpdateSettings { beta1, beta2, eps, decay, ..none })
            }
            Method::AdamW { beta1, beta2, eps, weight_decay: decay } => {
                (UpdateRule::AdamW, UpdateSettings { beta1, beta2, eps, decay, ..none })
            }
            Method::Sgd { momentum, nesterov, dampening, weight_decay: decay } => (
                UpdateRule::Sgd,
                UpdateSettings { momentum, dampening, decay, nesterov: nesterov.into(), ..none },
            ),
            Method::RmsProp { alpha, momentum, eps, weight_decay: decay, centered } => {
                let centered = centered.into();
                (UpdateRule::RmsProp, UpdateSettings { beta2: alpha, momentum, eps, decay, centered, ..none })
            }
        }
    }

    /// The buffers of a parameter, in the order of the kernels.
    pub fn buffers_on_gpu(&self, parameter: usize) -> Vec<Option<&Tensor>> {
        self.states[parameter].buffers.iter().map(Option::as_ref).collect()
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

/// Added to the norm before dividing by it; PyTorch's value.
const NORM_OFFSET: f64 = 1e-6;

/// Scales the gradients of named parameters by min(1, `max_norm` / (norm + 1e-6)) and returns the norm they had.
///
/// The norm is the Euclidean one over all gradients as if they were one vector. Parameters without a gradient do
/// not count; if none has one, the norm is 0.
///
/// # Errors
/// [`NnError::GradientNorm`] when the norm is not finite: the gradients stay as they are, and the step must not be
/// applied. A `max_norm` that is not positive.
pub fn clip_gradient_norm(parameters: &[(String, Tensor)], max_norm: f64) -> Result<f64> {
    require(max_norm.is_finite() && max_norm > 0.0, "max_norm", max_norm, "a positive number")?;
    let _guard = tch::no_grad_guard();
    let (mut names, mut gradients, mut norms) = (vec![], vec![], vec![]);
    for (name, parameter) in parameters {
        let gradient = parameter.f_grad()?;
        if gradient.defined() {
            norms.push(gradient.f_norm()?); // []
            gradients.push(gradient);
            names.push(name);
        }
    }
    if norms.is_empty() {
        return Ok(0.0);
    }

    let norms = Tensor::f_stack(&norms, 0)?;
    let norm = norms.f_norm()?;
    let factor = norm.f_add_scalar(NORM_OFFSET)?.f_reciprocal()?.f_mul_scalar(max_norm)?.f_clamp_max(1.0)?;
    // Both numbers in one transfer: every one of them waits for the device.
    let both = Tensor::f_stack(&[&norm, &factor], 0)?.f_to_device(Device::Cpu)?; // [2]
    let (value, scale) = (both.f_double_value(&[0])?, both.f_double_value(&[1])?);
    if !value.is_finite() {
        return Err(not_finite(&names, &norms, value)?);
    }
    if scale < 1.0 {
        for gradient in &mut gradients {
            let _ = gradient.f_mul_(&factor)?;
        }
    }
    Ok(value)
}

/// The error that names the first parameter whose gradient has no finite norm.
fn not_finite(names: &[&String], norms: &Tensor, total: f64) -> Result<NnError> {
    let norms = Vec::<f64>::try_from(norms.f_to_kind(Kind::Double)?)?;
    let culprit = names.iter().zip(norms).find(|(_, norm)| !norm.is_finite());
    let (of, norm) = match culprit {
        Some((name, norm)) => (name.to_string(), norm),
        None => ("all parameters together".to_owned(), total),
    };
    Ok(NnError::GradientNorm { of, norm })
}
