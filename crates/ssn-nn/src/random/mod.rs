//! What random numbers are for: the purpose words of [`derive_seed`](ssn_core::random::derive_seed) in this crate.
//!
//! Different purposes never share numbers. The values are part of the promise that a seed always gives the same run:
//! never change one.

pub mod noise;

/// The noise of the Monte-Carlo loss, one stream per step.
pub const TRAINING_NOISE: u32 = 1;
/// The values of tensors before training.
pub const INITIAL_VALUES: u32 = 2;
/// The noise of the toy problem's evaluation.
pub const EVALUATION_NOISE: u32 = 3;
/// Dropout, one seed per step.
pub const DROPOUT: u32 = 4;
