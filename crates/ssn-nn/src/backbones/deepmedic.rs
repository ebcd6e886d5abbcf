//! DeepMedic as in the paper's 3D experiments: paths of valid convolutions at several scales around one center.
//!
//! Names of layers and tensors follow the authors' published weights where they can.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_core::Lattice;
use tch::Tensor;

use super::{Backbone, BackbonePlan, ConvPadding, Pass};
use crate::error::{NnError, Result, refused};
use crate::layers::{ActivationKind, Convolution, ConvolutionShape, Dropout, Mode, NormAct, NormKind};
use crate::parameters::{Init, Scope};
use crate::space::{self, Size};

/// What the last layer gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeepMedicOutput {
    /// So many rectified features, for a head.
    Features(i64),
    /// The logits of so many classes themselves: the deterministic network.
    Logits(i64),
}

/// The settings of a DeepMedic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeepMedicConfig {
    /// The scale of each path along `d, h, w`; 1 along the depth of 2D images.
    pub scales: Vec<Size>,
    /// The channels of the blocks of every path.
    pub feature_maps: Vec<i64>,
    /// The kernel of the blocks along `d, h, w`, odd; 1 along the depth of 2D images.
    pub kernel: Size,
    /// The channels of the 1×1×1 blocks on the joined paths.
    pub fully_connected: Vec<i64>,
    /// The dropout before each 1×1×1 block and before the last layer: one more than `fully_connected`.
    pub dropout: Vec<f64>,
    /// What the last layer gives.
    pub output: DeepMedicOutput,
}

impl DeepMedicConfig {
    /// The stochastic network of the paper's BraTS experiments (1,051,039 parameters with its heads).
    pub fn brats() -> Self {
        Self {
            scales: vec![[5; 3], [3; 3], [1; 3]],
            feature_maps: vec![30, 30, 40, 40, 40, 40, 50, 50],
            kernel: [3; 3],
            fully_connected: vec![250, 250],
            dropout: vec![0.0, 0.5, 0.5],
            output: DeepMedicOutput::Features(50),
        }
    }

    /// The deterministic network of the same experiments (1,037,091 parameters).
    pub fn brats_deterministic() -> Self {
        Self { output: DeepMedicOutput::Logits(4), ..Self::brats() }
    }

    /// What the blocks of one path take off along each axis, in voxels of the path's grid.
    fn shrinkage(&self) -> Size {
        self.kernel.map(|k| (k - 1) * self.feature_maps.len() as i64)
    }

    /// What a path of a scale needs for an output: (⌈o/s⌉ + 16)·s for eight 3³ blocks.
    fn path_input(&self, output: Size, scale: Size) -> Size {
        let shrinkage = self.shrinkage();
        [0, 1, 2].map(|axis| {
            let blocks = (output[axis] + scale[axis] - 1) / scale[axis];
            (blocks + shrinkage[axis]) * scale[axis]
        })
    }

    /// The least common multiple of the scales along each axis. A path of scale s sees every s-th voxel and repeats
    /// its features s times: only outputs that begin a multiple of all scales apart are made of the same voxels.
    pub fn total_scale(&self) -> Size {
        [0, 1, 2].map(|axis| self.scales.iter().fold(1, |total, scale| least_common(total, scale[axis])))
    }
}

impl BackbonePlan for DeepMedicConfig {
    fn features(&self) -> i64 {
        match self.output {
            DeepMedicOutput::Features(n) | DeepMedicOutput::Logits(n) => n,
        }
    }

    fn build(&self, scope: &mut Scope<'_>, channels: i64) -> Result<Box<dyn Backbone>> {
        Ok(Box::new(DeepMedic::new(scope, channels, self)?))
    }

    fn check(&self) -> Result<()> {
        if self.scales.is_empty() {
            return refused("deepmedic.scales", "empty", "a list with one scale per path");
        }
        if let Some(scale) = self.scales.iter().find(|scale| scale.iter().any(|&s| s < 1)) {
            return refused("deepmedic.scales", format!("{scale:?}"), "at least 1 along every axis");
        }
        if self.kernel.iter().any(|&k| k < 1 || k % 2 == 0) {
            return refused("deepmedic.kernel", format!("{:?}", self.kernel), "odd along every axis");
        }
        if self.feature_maps.is_empty() {
            return refused("deepmedic.feature_maps", "empty", "a list with one number per block");
        }
        if self.dropout.len() != self.fully_connected.len() + 1 {
            let value = format!("a list of {}", self.dropout.len());
            return refused("deepmedic.dropout", value, "one longer than deepmedic.fully_connected");
        }
        Ok(())
    }

    /// Returns the image that an output of this size needs: that of the path which needs most.
    fn input_size(&self, output: Size) -> Size {
        let needs = self.scales.iter().map(|&scale| self.path_input(output.map(|n| n.max(1)), scale));
        needs.fold([0; 3], |most, need| [0, 1, 2].map(|axis| most[axis].max(need[axis])))
    }

    /// Returns the largest output whose `input_size` is exactly this image.
    fn output_size(&self, input: Size) -> Result<Size> {
        // Along each axis, the largest output that needs no more than the image; 0 if there is none.
        let fitting = [0, 1, 2].map(|axis| {
            let fits = |&output: &i64| self.input_size([output; 3])[axis] <= input[axis];
            (1..=input[axis].max(1)).take_while(fits).last().unwrap_or(0)
        });
        let needed = self.input_size(fitting);
        if fitting.iter().all(|&n| n > 0) && needed == input {
            return Ok(fitting);
        }
        let larger =
            [0, 1, 2].map(|axis| if needed[axis] == input[axis] { fitting[axis] } else { fitting[axis] + 1 });
        let mut nearest = vec![self.input_size(larger)];
        if fitting.iter().all(|&n| n > 0) {
            nearest.insert(0, needed);
        }
        let [d, h, w] = self.shrinkage();
        let rule = format!("each path of DeepMedic needs (⌈output/scale⌉ + {d}, {h}, {w})·scale voxels");
        Err(NnError::size(input, &rule, &nearest))
    }

    /// Returns the voxels that each path reads of an image: its center, every `scale` voxels.
    ///
    /// Of an odd margin the image loses the smaller half in front and the map the larger, so that both crops together
    /// leave every map centered on the image.
    fn input_grids(&self, input: Size) -> Result<Option<Vec<Lattice>>> {
        let output = self.output_size(input)?;
        let grid = |&scale: &Size| {
            let size = self.path_input(output, scale);
            let start = [0, 1, 2].map(|axis| ((input[axis] - size[axis]) / 2 + scale[axis] / 2) as usize);
            let step = scale.map(|s| s as usize);
            let count = [0, 1, 2].map(|axis| (size[axis] / scale[axis]) as usize);
            Lattice { start, step, count }
        };
        Ok(Some(self.scales.iter().map(grid).collect()))
    }

    fn conv_padding(&self) -> ConvPadding {
        ConvPadding::Valid(self.total_scale())
    }

    fn can_be_captured(&self) -> bool {
        true
    }

    fn describe(&self, _name: &str) -> String {
        "DeepMedic".to_owned()
    }
}

/// The least common multiple of two positive numbers.
fn least_common(a: i64, b: i64) -> i64 {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

/// Normalization, dropout, activation, convolution; the first block of a path is the convolution alone.
#[derive(Debug)]
struct Block {
    norm_act: NormAct,
    convolution: Convolution,
    bare: bool,
    residual: bool,
}

impl Block {
    fn new(scope: &mut Scope, shape: ConvolutionShape, dropout: Dropout, bare: bool) -> Result<Self> {
        let initial = Init::UniformFanIn { fan_in: shape.fan_in() };
        let (before, after) = ((NormKind::BATCH, dropout), (ActivationKind::Prelu, "prelu"));
        Ok(Self {
            // The authors' first blocks have a norm and a slope too, though nothing uses them.
            norm_act: NormAct::new(scope, shape.inputs, before, after)?,
            convolution: Convolution::new(&mut scope.sub("conv"), shape, initial)?,
            bare,
            residual: shape.inputs == shape.outputs,
        })
    }

    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        if self.bare {
            return self.convolution.forward(x);
        }
        self.norm_act.then(x, &self.convolution, self.residual, mode)
    }
}

/// A DeepMedic.
#[derive(Debug)]
pub struct DeepMedic {
    paths: Vec<Vec<Block>>,
    fully_connected: Vec<Block>,
    config: DeepMedicConfig,
}

impl DeepMedic {
    /// Makes the tensors `path.I.J` and `fully_connected.I`.
    pub fn new(scope: &mut Scope, channels: i64, config: &DeepMedicConfig) -> Result<Self> {
        config.check()?;
        let mut paths = vec![];
        for i in 0..config.scales.len() {
            let (mut blocks, mut width) = (vec![], channels);
            for (j, &outputs) in config.feature_maps.iter().enumerate() {
                let shape = ConvolutionShape::valid(width, outputs, config.kernel);
                let dropout = Dropout::new(scope, 0.0, 0)?;
                blocks.push(Block::new(&mut scope.sub("path").sub(i).sub(j), shape, dropout, j == 0)?);
                width = outputs;
            }
            paths.push(blocks);
        }
        let mut fully_connected = vec![];
        let mut width = config.scales.len() as i64 * config.feature_maps.last().copied().unwrap_or(0);
        let widths = config.fully_connected.iter().copied().chain([config.features()]);
        for (i, (outputs, &dropout)) in widths.zip(&config.dropout).enumerate() {
            let shape = ConvolutionShape::valid(width, outputs, [1; 3]);
            let scope = &mut scope.sub("fully_connected");
            let dropout = Dropout::new(scope, dropout, i as u32)?;
            fully_connected.push(Block::new(&mut scope.sub(i), shape, dropout, false)?);
            width = outputs;
        }
        Ok(Self { paths, fully_connected, config: config.clone() })
    }
}

impl Backbone for DeepMedic {
    /// Computes the features from the whole image, or from the grids of each path.
    fn forward(&self, pass: &Pass<'_>) -> Result<Tensor> {
        let Pass { parts, size, layout, mode } = *pass;
        let output = self.config.output_size(size)?;
        let mut cut = vec![];
        if let [image] = parts
            && space::spatial(image)? == size
        {
            for grid in self.config.input_grids(size)?.into_iter().flatten() {
                cut.push(space::grid(image, &grid)?);
            }
        }
        let parts = if cut.is_empty() { parts } else { &cut };
        let device = parts.first().map_or(tch::Device::Cpu, Tensor::device);
        let maps = ssn_cuda::branches(device, self.paths.iter().zip(parts), |(blocks, part)| {
            // Only the voxels that a path sees are brought into form: a tenth of those of the image.
            let x = layout.apply(&part.f_contiguous()?)?;
            blocks.iter().try_fold(x, |x, block| block.forward(&x, mode))
        })?;
        let width = self.config.feature_maps.last().copied().unwrap_or(0);
        let mut x = space::join_scales(&maps, width, &self.config.scales, output)?;
        for block in &self.fully_connected {
            x = block.forward(&x, mode)?;
        }
        match self.config.output {
            DeepMedicOutput::Features(_) => Ok(x.f_relu()?),
            DeepMedicOutput::Logits(_) => Ok(x),
        }
    }
}
