//! Clipping of gradients by their common norm, as PyTorch's `clip_grad_norm_` does it.

use tch::{Device, Kind, Tensor};

use crate::error::{NnError, Result, require};

/// Added to the norm before dividing by it; PyTorch's value.
const NORM_OFFSET: f64 = 1e-6;

/// Scales the gradients of named parameters by min(1, `max_norm` / (norm + 1e-6)) and returns the norm they had.
///
/// The norm is the Euclidean one over all gradients as if they were one vector. Parameters without a gradient do
/// not count; if none has one, the norm is 0.
///
/// # Errors
/// [`NnError::GradientNorm`] when the norm is not finite: the gradients stay as they are, and the step must not be
/// applied. [`NnError::Parameter`] when `max_norm` is not positive.
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
