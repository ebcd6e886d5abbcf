//! Learning on libtorch: distributions of logits as tensors, the losses that train them, and training.
//!
//! Letters in shapes: `b` batch, `c` classes, `v` voxels, `r` rank, `m` Monte-Carlo samples.

pub mod distribution;
pub mod error;
pub mod likelihood;
pub mod loss;
pub mod noise;
pub mod toy;

pub use distribution::LowRankNormal;
pub use error::{NetError, Result};
pub use likelihood::Likelihood;
pub use loss::monte_carlo_loss;
pub use noise::{Noise, Pairing};
