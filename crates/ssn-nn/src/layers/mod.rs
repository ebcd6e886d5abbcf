//! The layers that backbones are made of.

mod activation;
mod convolution;
mod dropout;
mod linear;
mod norm;
mod normalized;
mod shared_norm;

pub use activation::{Activation, ActivationKind};
pub use convolution::{Convolution, ConvolutionShape};
pub use dropout::Dropout;
pub use linear::{LinearMaps, LinearStart};
pub use norm::{Norm, NormKind};
pub use normalized::Normalized;

use std::sync::Arc;

use crate::communicator::Ranks;

/// Whether the network learns or is used.
#[derive(Debug, Clone, Copy)]
pub enum Mode<'a> {
    /// Statistics of the batch, dropout, gradients.
    Training {
        /// The seed of this step's dropout; on GPUs, [`Parameters::step_seeds`](crate::parameters::Parameters::step_seeds)
        /// has it instead.
        dropout: u64,
        /// Where the items begin in the whole batch: dropout is a function of the place there.
        first: usize,
        /// The items of the whole batch.
        of: usize,
        /// The ranks that have the rest of the batch, if statistics are those of the whole batch.
        ranks: Option<&'a Arc<dyn Ranks>>,
    },
    /// Kept statistics, no dropout.
    Evaluation,
}

impl Mode<'_> {
    /// Training with the first seed of dropout.
    pub const TRAINING: Self = Self::training(0);

    /// Training on a whole batch with a seed of dropout.
    pub const fn training(dropout: u64) -> Self {
        Self::Training { dropout, first: 0, of: 0, ranks: None }
    }

    /// The place of the items in the whole batch, as GPUs want it.
    fn part(self) -> ssn_cuda::Part {
        match self {
            Self::Training { first, of, ranks, .. } => {
                ssn_cuda::Part { first: first as i64, whole: ranks.map(|_| of as i64) }
            }
            Self::Evaluation => ssn_cuda::Part::default(),
        }
    }

    /// Whether this is [`Mode::Training`].
    pub fn is_training(self) -> bool {
        matches!(self, Self::Training { .. })
    }
}
