//! The layers that backbones are made of.

mod activation;
mod convolution;
mod dropout;
mod linear;
mod norm;
mod normalised;

pub use activation::{Activation, ActivationKind};
pub use convolution::{Convolution, ConvolutionShape};
pub use dropout::Dropout;
pub use linear::{LinearMaps, LinearStart};
pub use norm::{Norm, NormKind};
pub use normalised::Normalised;

/// Whether the network learns or is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Statistics of the batch, dropout, gradients.
    Training {
        /// The seed of this step's dropout; on GPUs, [`Parameters::step_seeds`](crate::parameters::Parameters::step_seeds)
        /// has it instead.
        dropout: u64,
    },
    /// Kept statistics, no dropout.
    Evaluation,
}

impl Mode {
    /// Training with the first seed of dropout.
    pub const TRAINING: Self = Self::Training { dropout: 0 };

    /// Whether this is [`Mode::Training`].
    pub fn is_training(self) -> bool {
        self != Self::Evaluation
    }
}
