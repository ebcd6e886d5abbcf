//! Convolutions, and several 1×1×1 convolutions of the same features.

use tch::{Kind, Tensor};

use crate::error::{NnError, Result};
use crate::parameters::{Init, Scope};
use crate::space::{self, Size};

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
    /// "Same" padding: an odd kernel whose output has the size of its input.
    pub fn same(inputs: i64, outputs: i64, kernel: Size) -> Self {
        Self { inputs, outputs, kernel, padding: kernel.map(|k| k / 2) }
    }

    /// "Valid" padding: none.
    pub fn valid(inputs: i64, outputs: i64, kernel: Size) -> Self {
        Self { inputs, outputs, kernel, padding: [0; 3] }
    }

    /// The number of inputs of one output value.
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
    pub fn new(scope: &mut Scope, shape: ConvolutionShape, initial: Init) -> Result<Self> {
        Ok(Self { weight: scope.convolution("weight", &shape.weight(), initial)?, padding: shape.padding })
    }

    /// The kernel, on GPUs the working copy.
    pub(super) fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, o, d', h', w']`. On GPUs channels are padded on both sides.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        space::convolution(x, &self.weight, self.padding)
    }
}

/// The initialization of a head, which follows that of its backbone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinearInit {
    /// He-normal weights and no bias, as the paper's 2D code has it.
    HeNormal,
    /// Weights and biases within ± 1/√features, as PyTorch and with it the paper's 3D code has it.
    Uniform,
}

/// Several 1×1×1 convolutions with bias of the same features, computed as one matrix product in the precision of the
/// parameters.
#[derive(Debug)]
pub struct PointwiseConvs {
    maps: Vec<Linear>,
    kind: Kind,
}

/// One convolution: weight `[o, f, 1, 1, 1]` and bias `[o]`.
#[derive(Debug)]
struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl PointwiseConvs {
    /// An empty set whose results will have this precision.
    pub fn new(kind: Kind) -> Self {
        Self { maps: vec![], kind }
    }

    /// Adds a convolution with the tensors `weight` and `bias`.
    pub fn add(&mut self, scope: &mut Scope, features: i64, outputs: i64, init: LinearInit) -> Result<()> {
        let uniform = Init::UniformFanIn { fan_in: features };
        let (weight, bias) = match init {
            LinearInit::HeNormal => (Init::HeNormal, Init::Constant(0.0)),
            LinearInit::Uniform => (uniform, uniform),
        };
        self.maps.push(Linear {
            weight: scope.parameter("weight", &[outputs, features, 1, 1, 1], weight)?,
            bias: scope.parameter("bias", &[outputs], bias)?,
        });
        Ok(())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }

    /// Scales weight and bias of one convolution.
    pub fn scale(&mut self, map: usize, factor: f64) -> Result<()> {
        let Linear { weight, bias } = &mut self.maps[map];
        tch::no_grad(|| {
            let _ = weight.f_mul_scalar_(factor)?;
            let _ = bias.f_mul_scalar_(factor)?;
            Ok(())
        })
    }

    /// Adds to the bias of one convolution.
    pub fn shift(&mut self, map: usize, summand: f64) -> Result<()> {
        let bias = &mut self.maps[map].bias;
        tch::no_grad(|| {
            let _ = bias.f_add_scalar_(summand)?;
            Ok(())
        })
    }

    /// The output of each convolution.
    ///
    /// # Shapes
    /// `[b, f, d, h, w]`, or with padded channels → `[b, o, v]` each.
    pub fn forward(&self, features: &Tensor) -> Result<Vec<Tensor>> {
        let Some(first) = self.maps.first() else { return Ok(vec![]) };
        let join = |part: fn(&Linear) -> &Tensor, shape: &[i64]| {
            let parts: Vec<Tensor> = self.maps.iter().map(|map| part(map).flatten(0, -1)).collect();
            Ok::<_, NnError>(Tensor::f_cat(&parts, 0)?.f_view(shape)?)
        };
        let f = first.weight.size()[1];
        let weight = join(|map| &map.weight, &[-1, f])?; // [k, f]
        let bias = join(|map| &map.bias, &[-1])?; // [k]
        let rows: Vec<i64> = self.maps.iter().map(|map| map.bias.size()[0]).collect();
        let k = bias.size()[0];
        if space::is_padded(features, f)? && ssn_cuda::is_linear_possible(k, features.size()[1]) {
            return Ok(ssn_cuda::linear(features, &weight, &bias, &rows)?);
        }
        let features = space::first_channels(features, f)?.f_flatten(2, -1)?.f_to_kind(self.kind)?; // [b, f, v]
        let &[b, found, v] = features.size().as_slice() else {
            return Err(NnError::shape("features", &features.size(), "[b, f, d, h, w]"));
        };
        debug_assert_eq!(found, f);
        let (weight, bias) =
            (weight.f_expand([b, k, f], false)?, bias.f_unsqueeze(1)?.f_expand([b, k, v], false)?);
        let outputs = bias.f_baddbmm(&weight, &features, 1, 1)?; // [b, k, v]
        let mut start = 0;
        rows.iter()
            .map(|&count| {
                start += count;
                Ok(outputs.f_narrow(1, start - count, count)?)
            })
            .collect()
    }
}
