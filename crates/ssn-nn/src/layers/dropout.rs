//! Dropout.

use ssn_core::random::fill_kept_from;
use tch::Tensor;

use super::Mode;
use crate::error::{Result, refused};
use crate::parameters::Scope;

/// Sets single values to 0 in training and enlarges the others, so that the mean stays.
///
/// On processors the choice is a function of the step's seed, the layer and the place of the value, whatever the
/// number of threads; it also takes a tenth of the time of libtorch's generator, which is a single sequence. On GPUs it
/// is a function of the same, with the place in memory, and is part of the normalization before it.
#[derive(Debug)]
pub struct Dropout {
    probability: f64,
    layer: u32,
    /// The seed of the step on a GPU.
    seed: Option<Tensor>,
}

impl Dropout {
    /// Dropout with the probability of a value to be lost; layers of one network have different numbers.
    pub fn new(scope: &Scope, probability: f64, layer: u32) -> Result<Self> {
        if !(0.0..1.0).contains(&probability) {
            return refused("dropout", probability, "at least 0 and below 1");
        }
        Ok(Self { probability, layer, seed: scope.dropout_seed() })
    }

    /// What a GPU does in one with the normalization; nothing is dropped outside training.
    pub(super) fn fused(&self, mode: Mode) -> Option<ssn_cuda::Dropout<'_>> {
        let seed = self.seed.as_ref().filter(|_| mode.is_training() && self.probability > 0.0)?;
        Some(ssn_cuda::Dropout { keep: 1.0 - self.probability, layer: self.layer, seed })
    }

    /// # Shapes
    /// `[b, …]`, unchanged.
    pub fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let Mode::Training { dropout: seed, first, .. } = mode else { return Ok(x.shallow_clone()) };
        if self.probability == 0.0 {
            return Ok(x.shallow_clone());
        }
        let keep = 1.0 - self.probability;
        let mut mask = vec![0f32; x.numel()];
        let each = x.numel() / x.size()[0].max(1) as usize;
        fill_kept_from(seed, (self.layer, 0), first * each, (keep, (1.0 / keep) as f32), &mut mask);
        let mask = Tensor::f_from_slice(&mask)?.f_view(x.size().as_slice())?.f_to_kind(x.kind())?;
        Ok(x.f_mul(&mask)?)
    }
}
