//! The layers that backbones are made of.

mod conv;
mod norm;
mod norm_act;

pub use conv::{Convolution, ConvolutionShape, LinearInit, PointwiseConvs};
pub use norm::{Norm, NormKind};
pub use norm_act::{Activation, ActivationKind, Dropout, NormAct};

/// Whether the network is trained or used, as PyTorch's `train()` and `eval()`.
///
/// What a training step needs beyond that (dropout's seed, the place of the items in the batch) is the
/// [`StepContext`](crate::parameters::StepContext) of the network's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Statistics of the batch, dropout, gradients.
    Training,
    /// Running statistics, no dropout.
    Evaluation,
}

impl Mode {
    /// Whether this is [`Mode::Training`].
    pub fn is_training(self) -> bool {
        self == Self::Training
    }
}
