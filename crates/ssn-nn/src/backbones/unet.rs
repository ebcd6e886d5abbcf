//! The U-Net: the paper's for LIDC, and the general one for users' own data.
//!
//! Levels of same-padded convolutions; between them average pooling on the way down and linear interpolation on
//! the way up, where the map of the same level is concatenated; then a few 1×1×1 convolutions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::{Backbone, BackbonePlan, ConvPadding, Pass};
use crate::error::{NnError, Result, refused};
use crate::layers::{
    ActivationKind, Convolution, ConvolutionShape, Dropout, LinearInit, Mode, NormAct, NormKind,
};
use crate::parameters::{Init, Scope};
use crate::space::{self, FeatureLayout, Size};

/// The settings of a U-Net.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UNetConfig {
    /// The channels of each level, the finest first.
    pub widths: Vec<i64>,
    /// Between each level and the next, the factor along `d, h, w`: one fewer than widths.
    pub strides: Vec<Size>,
    /// The kernel of each level, odd along every axis: as many as widths.
    pub kernels: Vec<Size>,
    /// Convolutions per level and direction.
    #[serde(default = "default_convolutions")]
    pub convolutions: usize,
    /// The channels of each level on the way up, the coarsest first: one fewer than widths.
    pub decoder_widths: Vec<i64>,
    /// The channels of the 1×1×1 convolutions at the end; the last are the features.
    #[serde(default)]
    pub pointwise: Vec<i64>,
    /// The normalization after each convolution.
    pub norm: NormKind,
    /// The activation after each normalization.
    pub activation: ActivationKind,
}

fn default_convolutions() -> usize {
    2
}

/// Batch norm of the paper's 2D code: ε 1e-3, decay 0.99.
const LIDC_NORM: NormKind = NormKind::Batch { eps: 1e-3, momentum: 0.01 };

impl UNetConfig {
    /// The network of the paper's LIDC experiments (REFERENCE: 7 levels, 10,320,568 parameters with its heads).
    pub fn lidc() -> Self {
        Self {
            widths: vec![32, 64, 128, 192, 192, 192, 192],
            strides: vec![[1, 2, 2]; 6],
            kernels: vec![[1, 3, 3]; 7],
            convolutions: 3,
            decoder_widths: vec![192, 192, 192, 192, 128, 64],
            pointwise: vec![32; 3],
            norm: LIDC_NORM,
            activation: ActivationKind::Relu,
        }
    }

    /// Returns the factor between the finest and the coarsest grid along each axis.
    pub fn total_stride(&self) -> Size {
        [0, 1, 2].map(|axis| self.strides.iter().map(|stride| stride[axis]).product())
    }
}

impl BackbonePlan for UNetConfig {
    fn features(&self) -> i64 {
        let widths = [&self.pointwise, &self.decoder_widths, &self.widths];
        widths.into_iter().find_map(|widths| widths.last().copied()).unwrap_or(0)
    }

    fn build(&self, scope: &mut Scope<'_>, channels: i64) -> Result<Box<dyn Backbone>> {
        Ok(Box::new(UNet::new(scope, channels, self)?))
    }

    fn check(&self) -> Result<()> {
        let levels = self.widths.len();
        let between = levels.saturating_sub(1);
        if levels == 0 {
            return refused("unet.widths", "empty", "a list with one number per level");
        }
        if self.strides.len() != between {
            let value = format!("a list of {} for {levels} levels", self.strides.len());
            return refused("unet.strides", value, "one shorter than unet.widths");
        }
        if self.decoder_widths.len() != between {
            let value = format!("a list of {} for {levels} levels", self.decoder_widths.len());
            return refused("unet.decoder_widths", value, "one shorter than unet.widths");
        }
        if self.kernels.len() != levels {
            let value = format!("a list of {} for {levels} levels", self.kernels.len());
            return refused("unet.kernels", value, "as long as unet.widths");
        }
        if let Some(kernel) = self.kernels.iter().find(|kernel| kernel.iter().any(|k| k % 2 != 1 || *k < 1)) {
            return refused("unet.kernels", format!("{kernel:?}"), "odd along every axis");
        }
        if let Some(stride) = self.strides.iter().find(|stride| stride.iter().any(|&s| s < 1)) {
            return refused("unet.strides", format!("{stride:?}"), "at least 1 along every axis");
        }
        if self.convolutions == 0 {
            return refused("unet.convolutions", "0", "at least 1");
        }
        self.norm.check()
    }

    /// Returns the size of the input, if the strides divide it down to the last level.
    fn output_size(&self, input: Size) -> Result<Size> {
        let total = self.total_stride();
        if (0..3).all(|axis| input[axis] > 0 && input[axis] % total[axis] == 0) {
            return Ok(input);
        }
        let below = [0, 1, 2].map(|axis| input[axis] / total[axis] * total[axis]);
        let mut nearest = vec![self.input_size(input)];
        if below.iter().all(|&n| n > 0) {
            nearest.insert(0, below);
        }
        let rule = format!("the U-Net needs multiples of {} × {} × {}", total[0], total[1], total[2]);
        Err(NnError::size(input, &rule, &nearest))
    }

    /// Returns the next multiple of the strides.
    fn input_size(&self, output: Size) -> Size {
        let total = self.total_stride();
        [0, 1, 2].map(|axis| (output[axis].max(1) + total[axis] - 1) / total[axis] * total[axis])
    }

    fn conv_padding(&self) -> ConvPadding {
        ConvPadding::Same(Some(self.total_stride()))
    }

    fn head_init(&self) -> LinearInit {
        LinearInit::HeNormal
    }

    fn check_batch(&self, patch: Size, items: i64) -> Result<()> {
        let total = self.total_stride();
        let space: i64 = [0, 1, 2].map(|axis| patch[axis] / total[axis]).iter().product();
        let values = match self.norm {
            NormKind::Instance { .. } => space,
            NormKind::Batch { .. } => space * items,
        };
        let found = format!("{patch:?} with {items} items on a rank");
        let expected = "larger, or the batch larger or the levels fewer: the norm of the coarsest level sees a single value";
        if values < 2 { refused("the patch", found, expected) } else { Ok(()) }
    }

    fn can_be_captured(&self) -> bool {
        true
    }

    fn describe(&self, _name: &str) -> String {
        format!("U-Net of {} levels", self.widths.len())
    }
}

/// A U-Net.
#[derive(Debug)]
pub struct UNet {
    down: Encoder,
    up: Vec<ConvStack>,
    pointwise: ConvStack,
    config: UNetConfig,
}

impl Backbone for UNet {
    fn forward(&self, pass: &Pass<'_>) -> Result<Tensor> {
        self.features(pass.image()?, pass.layout, pass.mode)
    }
}

impl UNet {
    /// Makes the tensors `down.LEVEL.I`, `up.LEVEL.I` and `pointwise.I`.
    pub fn new(scope: &mut Scope, channels: i64, config: &UNetConfig) -> Result<Self> {
        config.check()?;
        let down = Encoder::new(&mut scope.sub("down"), channels, config)?;
        let mut width = config.widths.last().copied().unwrap_or(channels);
        let mut up = vec![];
        let finer = config.widths.iter().zip(&config.kernels).enumerate().rev().skip(1);
        for ((level, (&skip, &kernel)), &outputs) in finer.zip(&config.decoder_widths) {
            let widths = vec![outputs; config.convolutions];
            let mut scope = scope.sub("up");
            up.push(ConvStack::new(&mut scope.sub(level), width + skip, &widths, kernel, config)?);
            width = outputs;
        }
        let pointwise =
            ConvStack::new(&mut scope.sub("pointwise"), width, &config.pointwise, [1; 3], config)?;
        Ok(Self { down, up, pointwise, config: config.clone() })
    }

    /// Returns the features of images.
    ///
    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, f, d, h, w]`, padded if the layout is.
    pub fn features(&self, image: &Tensor, layout: FeatureLayout, mode: Mode) -> Result<Tensor> {
        self.config.output_size(space::spatial(image)?)?;
        let mut skips = self.down.forward(layout.apply(image)?, mode)?;
        let Some(mut x) = skips.pop() else {
            return refused("unet.widths", "empty", "a list with one number per level");
        };
        let mut width = self.config.widths.last().copied().unwrap_or(0);
        for (units, &outputs) in self.up.iter().zip(&self.config.decoder_widths) {
            let (level, Some(skip)) = (skips.len() - 1, skips.pop()) else { break };
            let skip = (skip, self.config.widths[level]);
            x = units.forward(space::upsample((x, width), skip, self.config.strides[level])?, mode)?;
            width = outputs;
        }
        self.pointwise.forward(x, mode)
    }
}

/// The encoder: levels of convolutions, the finest first, with average pooling between them.
#[derive(Debug)]
pub struct Encoder {
    levels: Vec<ConvStack>,
    strides: Vec<Size>,
}

impl Encoder {
    /// Makes the tensors of every level below its number.
    pub fn new(scope: &mut Scope, channels: i64, config: &UNetConfig) -> Result<Self> {
        let mut levels = vec![];
        let mut inputs = channels;
        for (level, (&outputs, &kernel)) in config.widths.iter().zip(&config.kernels).enumerate() {
            let widths = vec![outputs; config.convolutions];
            levels.push(ConvStack::new(&mut scope.sub(level), inputs, &widths, kernel, config)?);
            inputs = outputs;
        }
        Ok(Self { levels, strides: config.strides.clone() })
    }

    /// The feature maps of all levels, the finest first.
    ///
    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, widthᵢ, dᵢ, hᵢ, wᵢ]` each; on GPUs channels are padded.
    pub fn forward(&self, mut x: Tensor, mode: Mode) -> Result<Vec<Tensor>> {
        let mut maps = vec![];
        for (level, units) in self.levels.iter().enumerate() {
            if level > 0 {
                let [pooled, finer] = space::downsample(&x, self.strides[level - 1])?;
                x = pooled;
                maps.push(finer);
            }
            x = units.forward(x, mode)?;
        }
        maps.push(x);
        Ok(maps)
    }
}

/// Convolutions with norm and activation in a row, all with "same" padding.
#[derive(Debug)]
pub struct ConvStack {
    units: Vec<(Convolution, NormAct)>,
}

impl ConvStack {
    /// Makes the tensors of convolution I below `I`; `widths` are the channels after each. Norm and activation are the plan's.
    pub fn new(
        scope: &mut Scope,
        mut inputs: i64,
        widths: &[i64],
        kernel: Size,
        plan: &UNetConfig,
    ) -> Result<Self> {
        let mut units = vec![];
        for (i, &outputs) in widths.iter().enumerate() {
            let (mut scope, shape) = (scope.sub(i), ConvolutionShape::same(inputs, outputs, kernel));
            let convolution = Convolution::new(&mut scope.sub("conv"), shape, Init::HeNormal)?;
            let norm = (plan.norm, Dropout::new(&scope, 0.0, 0)?);
            let norm_act = NormAct::new(&mut scope, outputs, norm, (plan.activation, "activation"))?;
            units.push((convolution, norm_act));
            inputs = outputs;
        }
        Ok(Self { units })
    }

    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, o, d, h, w]`; on GPUs channels are padded.
    pub fn forward(&self, mut x: Tensor, mode: Mode) -> Result<Tensor> {
        for (convolution, norm_act) in &self.units {
            x = norm_act.forward(&convolution.forward(&x)?, mode)?;
        }
        Ok(x)
    }
}
