//! Training of stochastic segmentation networks: the step, the run with its checkpoints and logs, data-parallel training,
//! and inference on whole images in tiles.

pub mod checkpoint;
pub mod inference;
pub mod parallel;
pub mod run;
pub mod toy;
pub mod trainer;
pub mod vector_math;

pub use trainer::{LossConfig, LossKind, StepReport, Trainer};
pub use vector_math::warm_up_vector_math;
