//! Convolution.

use tch::Tensor;

use crate::error::Result;
use crate::parameters::{Initial, Scope};
use crate::space;
use crate::space::Size;

/// The shape of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvolutionShape {
    /// Channels in.
    pub inputs: i64,
    /// Channels out.
    pub outputs: i64,
    /// The kernel along `d, h, w`.
    pub kernel: Size,
    /// Zeros around the image.
    pub padding: Size,
}

impl ConvolutionShape {
    /// A convolution of odd kernel whose output has the size of its input.
    pub fn same(inputs: i64, outputs: i64, kernel: Size) -> Self {
        Self { inputs, outputs, kernel, padding: kernel.map(|k| k / 2) }
    }

    /// A convolution that gives only what it has seen completely.
    pub fn valid(inputs: i64, outputs: i64, kernel: Size) -> Self {
        Self { inputs, outputs, kernel, padding: [0; 3] }
    }

    /// The inputs of one output.
    pub fn fan_in(&self) -> i64 {
        self.inputs * self.kernel.iter().product::<i64>()
    }

    fn weight(&self) -> [i64; 5] {
        let [d, h, w] = self.kernel;
        [self.outputs, self.inputs, d, h, w]
    }
}

/// A convolution without bias: a norm or a layer with one follows.
#[derive(Debug)]
pub struct Convolution {
    weight: Tensor,
    padding: Size,
}

impl Convolution {
    /// Makes the tensor `weight`.
    pub fn new(scope: &mut Scope, shape: ConvolutionShape, initial: Initial) -> Result<Self> {
        Ok(Self { weight: scope.convolution("weight", &shape.weight(), initial)?, padding: shape.padding })
    }

    /// The kernel in the form in which the network computes.
    pub(super) fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, o, d', h', w']`. On GPUs channels are padded on both sides.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        space::convolution(x, &self.weight, self.padding)
    }
}
