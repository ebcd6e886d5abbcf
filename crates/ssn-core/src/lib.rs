//! The mathematics of stochastic segmentation on the host.
//!
//! Everything that happens after a network has run: the low-rank normal distribution over the logits of a
//! whole image, its samples, their manipulation, and the scores that compare them with raters. Nothing here
//! knows files, networks or torch, and space is flat: a volume is `v` voxels, whatever its rank.
//!
//! Letters in shapes: `c` classes, `v` voxels, `r` rank, `m` samples, `n` raters.

pub mod distribution;
pub mod error;
pub mod labels;
pub mod metrics;
pub mod modes;
mod popcount;
pub mod random;
pub mod sampling;
mod simd;
pub mod steering;
pub mod summary;

pub use distribution::{LowRankNormal, Values};
pub use error::{CoreError, Result};
pub use labels::{BitPlanes, LabelMap};
pub use sampling::Sampler;
pub use steering::Steering;
pub use summary::SampleSummary;
