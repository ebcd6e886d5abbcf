//! Linear maps of the features at every voxel: 1×1×1 convolutions with bias, in the precision of the parameters.

use tch::{Kind, Tensor};

use crate::error::{NnError, Result};
use crate::parameters::{Initial, Scope};
use crate::space;

/// The first values of linear maps, which follow those of their backbone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinearStart {
    /// He-normal weights and no bias, as the paper's 2D code has it.
    HeNormal,
    /// Weights and biases within ± 1/√features, as PyTorch and with it the paper's 3D code has it.
    Uniform,
}

/// Several maps of the same features, all applied in one product.
#[derive(Debug)]
pub struct LinearMaps {
    maps: Vec<Linear>,
    kind: Kind,
}

/// One map: weight `[o, f, 1, 1, 1]` and bias `[o]`.
#[derive(Debug)]
struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl LinearMaps {
    /// None yet; results will have this precision.
    pub fn new(kind: Kind) -> Self {
        Self { maps: vec![], kind }
    }

    /// Adds a map with the tensors `weight` and `bias`.
    pub fn add(&mut self, scope: &mut Scope, features: i64, outputs: i64, start: LinearStart) -> Result<()> {
        let uniform = Initial::UniformFanIn { fan_in: features };
        let (weight, bias) = match start {
            LinearStart::HeNormal => (Initial::HeNormal, Initial::Constant(0.0)),
            LinearStart::Uniform => (uniform, uniform),
        };
        self.maps.push(Linear {
            weight: scope.trained("weight", &[outputs, features, 1, 1, 1], weight)?,
            bias: scope.trained("bias", &[outputs], bias)?,
        });
        Ok(())
    }

    /// Whether there is no map.
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }

    /// Multiplies what a map gives.
    pub fn scale(&mut self, map: usize, factor: f64) -> Result<()> {
        let Linear { weight, bias } = &mut self.maps[map];
        tch::no_grad(|| {
            let _ = weight.f_mul_scalar_(factor)?;
            let _ = bias.f_mul_scalar_(factor)?;
            Ok(())
        })
    }

    /// Adds to what a map gives.
    pub fn shift(&mut self, map: usize, summand: f64) -> Result<()> {
        let bias = &mut self.maps[map].bias;
        tch::no_grad(|| {
            let _ = bias.f_add_scalar_(summand)?;
            Ok(())
        })
    }

    /// What each of the maps gives.
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
            let (found, expected) = (features.size(), "[b, f, d, h, w]".to_owned());
            return Err(NnError::Shape { field: "features", found, expected });
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
