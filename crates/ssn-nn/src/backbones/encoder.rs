//! The way down of a U-Net: levels of convolutions with average pooling between them.

use tch::Tensor;

use super::unet::UNetConfig;
use super::unit::Stack;
use crate::error::Result;
use crate::layers::Mode;
use crate::parameters::Scope;
use crate::space;
use crate::space::Size;

/// The levels from the finest to the coarsest.
#[derive(Debug)]
pub struct Encoder {
    levels: Vec<Stack>,
    strides: Vec<Size>,
}

impl Encoder {
    /// Makes the tensors of every level below its number.
    pub fn new(scope: &mut Scope, channels: i64, config: &UNetConfig) -> Result<Self> {
        let mut levels = vec![];
        let mut inputs = channels;
        for (level, (&outputs, &kernel)) in config.widths.iter().zip(&config.kernels).enumerate() {
            let widths = vec![outputs; config.convolutions];
            levels.push(Stack::new(&mut scope.sub(level), inputs, &widths, kernel, config.style())?);
            inputs = outputs;
        }
        Ok(Self { levels, strides: config.strides.clone() })
    }

    /// The maps of all levels, the finest first.
    ///
    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, widthᵢ, dᵢ, hᵢ, wᵢ]` each; on GPUs channels are padded.
    pub fn forward(&self, mut x: Tensor, mode: Mode) -> Result<Vec<Tensor>> {
        let mut maps = vec![];
        for (level, units) in self.levels.iter().enumerate() {
            if level > 0 {
                let [pooled, finer] = space::descend(&x, self.strides[level - 1])?;
                x = pooled;
                maps.push(finer);
            }
            x = units.forward(x, mode)?;
        }
        maps.push(x);
        Ok(maps)
    }
}
