//! The toy problem of the paper (section 4.1): one line of 21 pixels with two equally probable label maps.
//!
//! The first third is on, the last third off, and the middle third all off or all on. A distribution with
//! independent logits cannot tell that the middle pixels move together; one with rank 2 can.

mod model;
mod train;

use tch::{Kind, Tensor};

pub use model::ToyModel;
pub use train::{Outcome, Progress, train};

/// Pixels on the line.
pub const PIXELS: i64 = 21;
/// Steps of the paper: 5,000 on the mean alone and 5,000 on everything.
pub const PAPER_STEPS: usize = 10_000;
/// The best log-likelihood any model can reach, −ln 2: both maps have probability ½.
pub const LOW_RANK_OPTIMUM: f64 = -std::f64::consts::LN_2;
/// The best log-likelihood of independent pixels, −7 ln 2: seven fair coins.
pub const DIAGONAL_OPTIMUM: f64 = -7.0 * std::f64::consts::LN_2;

/// How the toy models are trained and judged.
#[derive(Debug, Clone, PartialEq)]
pub struct ToyConfig {
    /// The seed of the initial factor and of all noise.
    pub seed: u64,
    /// All steps, pre-training included.
    pub steps: usize,
    /// The first steps, which train the mean alone.
    pub pretrain_steps: usize,
    /// The learning rate of Adam.
    pub learning_rate: f64,
    /// Monte-Carlo samples per label map and step.
    pub samples: i64,
    /// Samples per label map for the final log-likelihood.
    pub evaluation_samples: i64,
    /// Whether to compute in double precision.
    pub double: bool,
}

impl ToyConfig {
    fn kind(&self) -> Kind {
        if self.double { Kind::Double } else { Kind::Float }
    }
}

/// The two label maps, `[2, 1, 1, 21]` zeros and ones.
pub fn label_maps(kind: Kind) -> Tensor {
    let third = (PIXELS / 3) as usize;
    let map = |middle: f32| [vec![1f32; third], vec![middle; third], vec![0f32; third]].concat();
    Tensor::from_slice(&[map(0.0), map(1.0)].concat()).view([2, 1, 1, PIXELS]).to_kind(kind)
}
