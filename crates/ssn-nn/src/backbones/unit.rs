//! Convolutions in a row, each with its normalization and activation: what U-Nets are made of.

use tch::Tensor;

use crate::error::Result;
use crate::layers::{ActivationKind, Convolution, ConvolutionShape, Dropout, Mode, NormKind, Normalized};
use crate::parameters::{Initial, Scope};
use crate::space::Size;

/// What follows every convolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitStyle {
    /// The normalization.
    pub norm: NormKind,
    /// The activation.
    pub activation: ActivationKind,
}

/// Convolution, normalization, activation.
#[derive(Debug)]
struct Unit {
    convolution: Convolution,
    normalized: Normalized,
}

impl Unit {
    fn new(scope: &mut Scope, shape: ConvolutionShape, style: UnitStyle) -> Result<Self> {
        Ok(Self {
            convolution: Convolution::new(&mut scope.sub("conv"), shape, Initial::HeNormal)?,
            normalized: Normalized::new(
                scope,
                shape.outputs,
                (style.norm, Dropout::new(scope, 0.0, 0)?),
                (style.activation, "activation"),
            )?,
        })
    }

    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.normalized.forward(&self.convolution.forward(x)?, mode)
    }
}

/// Units in a row that keep the size of the map.
#[derive(Debug)]
pub struct Stack {
    units: Vec<Unit>,
}

impl Stack {
    /// Makes the tensors of unit I below `I`; `widths` are the channels after each unit.
    pub fn new(
        scope: &mut Scope,
        mut inputs: i64,
        widths: &[i64],
        kernel: Size,
        style: UnitStyle,
    ) -> Result<Self> {
        let mut units = vec![];
        for (i, &outputs) in widths.iter().enumerate() {
            let shape = ConvolutionShape::same(inputs, outputs, kernel);
            units.push(Unit::new(&mut scope.sub(i), shape, style)?);
            inputs = outputs;
        }
        Ok(Self { units })
    }

    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, o, d, h, w]`; on GPUs channels are padded.
    pub fn forward(&self, mut x: Tensor, mode: Mode) -> Result<Tensor> {
        for unit in &self.units {
            x = unit.forward(&x, mode)?;
        }
        Ok(x)
    }
}
