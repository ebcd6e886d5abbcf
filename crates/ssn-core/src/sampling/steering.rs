//! How samples are changed after inference, with their noise held.

use crate::distribution::LowRankNormal;
use crate::error::{CoreError, Result};

/// η = μ + T·w_c·(Σ_q g_q ε_q P_q + √D ε): temperature T, class scales w, mode weights g, and the diagonal
/// noise on or off. The default changes nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Steering {
    /// One temperature for the whole distribution; 0 gives the mean.
    pub temperature: f32,
    /// A scale per class, empty for 1 everywhere.
    pub class_scales: Vec<f32>,
    /// A weight per column of the factor, empty for 1 everywhere.
    pub mode_weights: Vec<f32>,
    /// Whether the independent noise of the diagonal is added.
    pub diagonal_noise: bool,
}

impl Default for Steering {
    fn default() -> Self {
        Self { temperature: 1.0, class_scales: vec![], mode_weights: vec![], diagonal_noise: true }
    }
}

/// The largest size of a mode weight, and of temperature times class scale.
pub const MAX_WEIGHT: f32 = 1e6;

impl Steering {
    /// T·w_c for every class of the distribution, `[c]`.
    pub(crate) fn noise_scales(&self, distribution: &LowRankNormal) -> Result<Vec<f32>> {
        usable("temperature", &[self.temperature])?;
        let scales = weights("class_scales", &self.class_scales, distribution.classes())?;
        let scales: Vec<f32> = scales.into_iter().map(|w| self.temperature * w).collect();
        usable("temperature times class_scales", &scales)?;
        Ok(scales)
    }

    /// g_q for every column of the factor, `[r]`.
    pub(crate) fn rank_weights(&self, distribution: &LowRankNormal) -> Result<Vec<f32>> {
        weights("mode_weights", &self.mode_weights, distribution.rank())
    }
}

/// The given weights, or ones where none are given.
fn weights(field: &'static str, given: &[f32], expected: usize) -> Result<Vec<f32>> {
    if given.is_empty() {
        return Ok(vec![1.0; expected]);
    }
    if given.len() != expected {
        return Err(CoreError::Length { field, expected, found: given.len() });
    }
    usable(field, given)?;
    Ok(given.to_vec())
}

fn usable(field: &'static str, values: &[f32]) -> Result<()> {
    let Some(index) = values.iter().position(|x| !matches!(x.abs(), 0.0..=MAX_WEIGHT)) else { return Ok(()) };
    let value = f64::from(values[index]);
    Err(if value.is_finite() {
        CoreError::OutOfRange { field, index, value, expected: "between -1e6 and 1e6" }
    } else {
        CoreError::NonFinite { field, index, value }
    })
}
