//! The low-rank normal distribution over logits as tensors with gradients, for a batch of images.

use std::fmt::Display;
use std::ops::Range;

use ssn_core::MAX_PARAMETER;
use tch::{Kind, Tensor};

use crate::error::{NnError, Result};
use crate::random::{Noise, NoiseShape, Pairing};

/// Added to every variance: the ε of the paper.
pub const EPSILON: f64 = 1e-5;

/// Logits of samples that a tensor of a loss holds at once; more are taken in chunks. 64 MiB in single precision, for each of
/// the half dozen tensors that a chunk needs.
pub const LOGITS_AT_ONCE: i64 = 1 << 24;

/// Logits η ~ N(μ, Σ_q P_q P_qᵀ + diag(D)) for each image of a batch.
///
/// The tensors' counterpart of [`ssn_core::LowRankNormal`], with the same layout and a batch in front.
///
/// ```
/// use ssn_nn::{LowRankNormalTensors, NoiseSource, Pairing, StepNoise};
/// use tch::{Device, Kind, Tensor};
///
/// // Two images of six voxels, three classes, rank 4.
/// let options = (Kind::Float, Device::Cpu);
/// let (mean, factor) = (Tensor::zeros([2, 3, 6], options), Tensor::randn([2, 4, 3, 6], options));
/// let distribution = LowRankNormalTensors::new(mean, Tensor::ones([2, 3, 6], options), factor)?;
/// let noise = StepNoise::new(0, 0, distribution.noise_shape(20), Pairing::Independent)?;
/// let logits = distribution.sample(&NoiseSource::Step(&noise).draws(0..20)?)?;
/// assert_eq!(logits.size(), [20, 2, 3, 6]);
/// # Ok::<(), ssn_nn::NnError>(())
/// ```
#[derive(Debug)]
pub struct LowRankNormalTensors {
    mean: Tensor,
    diagonal: Tensor,
    factor: Tensor,
}

impl LowRankNormalTensors {
    /// A batch of distributions from its parts. Rank 0, a factor of shape `[b, 0, c, v]`, gives independent
    /// logits.
    ///
    /// # Shapes
    /// `mean` `[b, c, v]`, `diagonal` `[b, c, v]` (variances), `factor` `[b, r, c, v]`.
    pub fn new(mean: Tensor, diagonal: Tensor, factor: Tensor) -> Result<Self> {
        let &[b, c, v] = mean.size().as_slice() else {
            return Err(shape_error("mean", &mean, "[b, c, v]"));
        };
        if diagonal.size() != [b, c, v] {
            return Err(shape_error("diagonal", &diagonal, format!("that of the mean, [{b}, {c}, {v}],")));
        }
        match factor.size().as_slice() {
            &[fb, _, fc, fv] if [fb, fc, fv] == [b, c, v] => Ok(Self { mean, diagonal, factor }),
            _ => Err(shape_error("factor", &factor, format!("[{b}, rank, {c}, {v}]"))),
        }
    }

    /// A batch of distributions as a network's heads give it: D = exp(log D) + ε.
    ///
    /// # Shapes
    /// As for [`LowRankNormalTensors::new`].
    pub fn from_log_diagonal(
        mean: Tensor,
        log_diagonal: &Tensor,
        factor: Tensor,
        epsilon: f64,
    ) -> Result<Self> {
        Self::new(mean, log_diagonal.exp() + epsilon, factor)
    }

    /// The same distributions without spread outside a region of interest: there P = 0 and D = ε. Inside, the
    /// authors' code adds ε too, and so does this.
    ///
    /// # Shapes
    /// `mask` `[b, v]`, 1 inside and 0 outside.
    pub fn masked(self, mask: &Tensor, epsilon: f64) -> Result<Self> {
        let [b, _, v] = self.dims();
        if mask.size() != [b, v] {
            return Err(shape_error("mask", mask, format!("[{b}, {v}]")));
        }
        let mask = mask.f_to_device(self.mean.device())?.f_to_kind(self.mean.kind())?.f_unsqueeze(1)?;
        let diagonal = self.diagonal.f_mul(&mask)? + epsilon;
        let factor = self.factor.f_mul(&mask.f_unsqueeze(1)?)?;
        Ok(Self { mean: self.mean, diagonal, factor })
    }

    /// Limits variances to the largest that a distribution may have, [`MAX_PARAMETER`]: labels are as random with more.
    ///
    /// A network can return infinite ones for images unlike those that it learned, such as a nearly constant slice.
    pub fn limited(self) -> Result<Self> {
        let diagonal = self.diagonal.f_clamp_max(f64::from(MAX_PARAMETER))?;
        Ok(Self { diagonal, ..self })
    }

    /// The distribution of a single image repeated for a batch of `b`, sharing memory.
    pub fn expanded(&self, b: i64) -> Self {
        let expand = |t: &Tensor| {
            let mut size = t.size();
            size[0] = b;
            t.expand(size, false)
        };
        Self { mean: expand(&self.mean), diagonal: expand(&self.diagonal), factor: expand(&self.factor) }
    }

    /// The distribution of a range of the voxels, sharing memory.
    pub fn narrow_voxels(&self, voxels: Range<i64>) -> Result<Self> {
        let narrow = |t: &Tensor| t.f_narrow(-1, voxels.start, voxels.end - voxels.start);
        Ok(Self {
            mean: narrow(&self.mean)?,
            diagonal: narrow(&self.diagonal)?,
            factor: narrow(&self.factor)?,
        })
    }

    /// Mean, diagonal and factor.
    pub fn parts(&self) -> [&Tensor; 3] {
        [&self.mean, &self.diagonal, &self.factor]
    }

    /// Whether what is made of the parts has gradients: that of a part is wanted, and they are not switched off.
    pub fn requires_grad(&self) -> bool {
        self.parts().iter().any(|part| part.narrow(0, 0, 0).neg().requires_grad())
    }

    /// The same values without a way back to where they came from.
    pub fn detached(&self) -> Self {
        let [mean, diagonal, factor] = self.parts().map(Tensor::detach);
        Self { mean, diagonal, factor }
    }

    /// The same values, with gradients of their own.
    pub fn trainable(self) -> Self {
        let trainable = |t: Tensor| t.set_requires_grad(true);
        Self {
            mean: trainable(self.mean),
            diagonal: trainable(self.diagonal),
            factor: trainable(self.factor),
        }
    }

    /// A loss `[b]` with the gradients that were gathered in `leaves`, chunk by chunk: they are handed on to the network when
    /// the loss is differentiated.
    pub(crate) fn with_gathered_gradients(&self, loss: &Tensor, leaves: &Self) -> Tensor {
        let mut result = loss.detach();
        for (part, leaf) in self.parts().into_iter().zip(leaves.parts()) {
            // Nothing uses the factor of rank 0.
            if !leaf.grad().defined() {
                continue;
            }
            let product = (part * leaf.grad()).flatten(1, -1);
            let sum = product.sum_dim_intlist([1i64].as_slice(), false, Kind::Double);
            result += &sum - sum.detach();
        }
        result
    }

    /// `[b, c, v]`.
    pub fn dims(&self) -> [i64; 3] {
        let size = self.mean.size();
        [size[0], size[1], size[2]]
    }

    /// The rank `r`.
    pub fn rank(&self) -> i64 {
        self.factor.size()[1]
    }

    /// The mean `[b, c, v]`.
    pub fn mean(&self) -> &Tensor {
        &self.mean
    }

    /// The diagonal part of the covariance, `[b, c, v]`.
    pub fn diagonal(&self) -> &Tensor {
        &self.diagonal
    }

    /// The factor `[b, r, c, v]`.
    pub fn factor(&self) -> &Tensor {
        &self.factor
    }

    /// The sizes of the noise for `samples` samples of this batch.
    pub fn noise_shape(&self, samples: i64) -> NoiseShape {
        let [batch, classes, voxels] = self.dims();
        NoiseShape { samples, batch, rank: self.rank(), classes, voxels }
    }

    /// Samples by re-parameterization, μ + P ε_r + √D ε, so that gradients reach all three parts. The noise follows
    /// the precision and the device of the distribution.
    ///
    /// # Shapes
    /// `[m, b, c, v]`; of antithetic pairs the first halves come first.
    pub fn sample(&self, noise: &Noise) -> Result<Tensor> {
        let ([b, c, v], r) = (self.dims(), self.rank());
        let draws = noise.rank.size()[0];
        if noise.rank.size() != [draws, b, r] {
            return Err(shape_error("noise.rank", &noise.rank, format!("[draws, {b}, {r}]")));
        }
        if noise.diagonal.size() != [draws, b, c, v] {
            return Err(shape_error("noise.diagonal", &noise.diagonal, format!("[{draws}, {b}, {c}, {v}]")));
        }
        let like = |t: &Tensor| t.f_to_device(self.mean.device())?.f_to_kind(self.mean.kind());
        let independent = like(&noise.diagonal)?.f_mul(&self.diagonal.f_sqrt()?)?; // [m, b, c, v]
        let spread = if r == 0 {
            independent
        } else {
            let rows = like(&noise.rank)?.f_transpose(0, 1)?; // [b, m, r]
            let low_rank = rows.f_bmm(&self.factor.f_reshape([b, r, c * v])?)?; // [b, m, c·v]
            independent.f_add(&low_rank.f_transpose(0, 1)?.f_reshape([draws, b, c, v])?)?
        };
        Ok(match noise.pairing {
            Pairing::Independent => self.mean.f_add(&spread)?,
            Pairing::Antithetic => Tensor::f_cat(&[self.mean.f_add(&spread)?, self.mean.f_sub(&spread)?], 0)?,
        })
    }

    /// The distribution of one image of the batch, on the host.
    pub fn to_host(&self, image: i64) -> Result<ssn_core::LowRankNormal> {
        let [_, c, v] = self.dims();
        let host = |t: &Tensor| -> Result<Vec<f32>> {
            let flat = t.f_get(image)?.detach().to_kind(Kind::Float).to_device(tch::Device::Cpu);
            Ok(Vec::<f32>::try_from(flat.contiguous().view([-1]))?)
        };
        Ok(ssn_core::LowRankNormal::new(
            c as usize,
            v as usize,
            self.rank() as usize,
            host(&self.mean)?,
            host(&self.diagonal)?,
            host(&self.factor)?,
        )?)
    }
}

fn shape_error(field: &str, tensor: &Tensor, expected: impl Display) -> NnError {
    NnError::shape(field, &tensor.size(), expected)
}
