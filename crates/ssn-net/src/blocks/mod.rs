//! The layers that backbones are made of.

mod activation;
mod convolution;
mod norm;

pub use activation::{Activation, ActivationKind};
pub use convolution::{Convolution, ConvolutionShape};
pub use norm::{Norm, NormKind};

/// Whether the network learns or is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Statistics of the batch, dropout, gradients.
    Training,
    /// Kept statistics, no dropout.
    Evaluation,
}

impl Mode {
    /// Whether this is [`Mode::Training`].
    pub fn is_training(self) -> bool {
        self == Self::Training
    }
}
