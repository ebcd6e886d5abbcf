//! Heads: what is predicted from a feature map.

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use crate::distribution::{EPSILON, LowRankNormal};
use crate::error::{NetError, Result, refused, require};
use crate::parameters::{Initial, Scope};
use crate::space;

/// The rank of the paper's experiments.
const PAPER_RANK: i64 = 10;

/// The settings of a head.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HeadConfig {
    /// A normal distribution over the logits of the whole image: the stochastic segmentation network.
    Stochastic(StochasticConfig),
    /// Logits: the ordinary network.
    Deterministic,
    /// The features themselves are the logits; nothing is added.
    Identity,
}

/// The settings of a stochastic head.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StochasticConfig {
    /// The rank of the covariance's factor; 0 makes all logits independent, the diagonal model.
    pub rank: i64,
    /// Added to every variance.
    pub epsilon: f64,
    /// Keeps the log-diagonal softly within ± this number; none by default, as in the paper.
    pub log_diagonal_limit: Option<f64>,
    /// Scales the standard deviations that the head begins with; 1 by default, as in the paper. A network that begins
    /// nearly certain learns in fewer steps, because all samples of a step then say something about its loss.
    pub initial_scale: f64,
}

impl Default for StochasticConfig {
    fn default() -> Self {
        Self { rank: PAPER_RANK, epsilon: EPSILON, log_diagonal_limit: None, initial_scale: 1.0 }
    }
}

/// What a network says about a batch of images; space is flat from here on.
#[derive(Debug)]
pub enum Prediction {
    /// A distribution over logits.
    Stochastic(LowRankNormal),
    /// Logits `[b, c, v]`.
    Deterministic(Tensor),
}

impl Prediction {
    /// The mean logits `[b, c, v]`.
    pub fn mean(&self) -> &Tensor {
        match self {
            Self::Stochastic(distribution) => distribution.mean(),
            Self::Deterministic(logits) => logits,
        }
    }
}

/// The first values of a head, which follow those of its backbone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadStart {
    /// He-normal weights and no bias, as the paper's 2D code has it.
    HeNormal,
    /// Weights and biases within ± 1/√features, as PyTorch and with it the paper's 3D code has it.
    Uniform,
}

/// A 1×1×1 convolution with bias.
#[derive(Debug)]
struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    fn new(scope: &mut Scope, features: i64, outputs: i64, start: HeadStart) -> Result<Self> {
        let uniform = Initial::UniformFanIn { fan_in: features };
        let (weight, bias) = match start {
            HeadStart::HeNormal => (Initial::HeNormal, Initial::Constant(0.0)),
            HeadStart::Uniform => (uniform, uniform),
        };
        Ok(Self {
            weight: scope.trained("weight", &[outputs, features, 1, 1, 1], weight)?,
            bias: scope.trained("bias", &[outputs], bias)?,
        })
    }

    /// Multiplies what the layer gives.
    fn scale(&mut self, factor: f64) -> Result<()> {
        tch::no_grad(|| {
            let _ = self.weight.f_mul_scalar_(factor)?;
            let _ = self.bias.f_mul_scalar_(factor)?;
            Ok(())
        })
    }

    /// Adds to what the layer gives.
    fn shift(&mut self, summand: f64) -> Result<()> {
        tch::no_grad(|| {
            let _ = self.bias.f_add_scalar_(summand)?;
            Ok(())
        })
    }
}

/// A head with its tensors.
#[derive(Debug)]
pub struct Head {
    /// The linear maps, all applied in one product: the logits' or the mean's, the log-diagonal's, the factor's.
    maps: Vec<Linear>,
    config: HeadConfig,
    classes: i64,
    kind: Kind,
}

impl Head {
    /// Makes the tensors `mean`, and for stochastic heads `log_diagonal` and `factor` (channel = rank·c + class).
    pub fn new(
        scope: &mut Scope,
        features: i64,
        classes: i64,
        config: HeadConfig,
        start: HeadStart,
    ) -> Result<Self> {
        let kind = scope.kind();
        if classes < 1 {
            return refused("classes", classes, "at least 1");
        }
        let mut map = |name: &str, outputs| Linear::new(&mut scope.sub(name), features, outputs, start);
        let maps = match config {
            HeadConfig::Identity if features != classes => {
                return refused(
                    "classes",
                    format!("{classes}, while the network gives {features} channels"),
                    "the number of channels, when the head is \"identity\"",
                );
            }
            HeadConfig::Identity => vec![],
            HeadConfig::Deterministic => vec![map("mean", classes)?],
            HeadConfig::Stochastic(StochasticConfig { rank, epsilon, log_diagonal_limit, initial_scale }) => {
                if rank < 0 {
                    return refused("head.rank", rank, "0 (independent logits) or more");
                }
                if !(epsilon.is_finite() && epsilon > 0.0) {
                    return refused("head.epsilon", epsilon, "a small positive number");
                }
                if let Some(limit) = log_diagonal_limit {
                    require(limit.is_finite() && limit > 0.0, "head.log_diagonal_limit", limit, "positive")?;
                }
                let scale = initial_scale;
                require(scale.is_finite() && scale > 0.0, "head.initial_scale", scale, "positive")?;
                let mut maps = vec![map("mean", classes)?, map("log_diagonal", classes)?];
                maps[1].shift(2.0 * scale.ln())?;
                if rank > 0 {
                    maps.push(map("factor", rank * classes)?);
                    maps[2].scale(scale)?;
                }
                maps
            }
        };
        Ok(Self { maps, config, classes, kind })
    }

    /// The prediction from a feature map; `mask` is 1 inside the region of interest and 0 outside.
    ///
    /// # Shapes
    /// `features` `[b, f, d, h, w]`, or with padded channels; `mask` `[b, d, h, w]`.
    pub fn forward(&self, features: &Tensor, mask: Option<&Tensor>) -> Result<Prediction> {
        let (b, c) = (features.size()[0], self.classes);
        let v = space::spatial(features)?.iter().product::<i64>();
        if self.maps.is_empty() {
            let logits = space::first_channels(features, c)?.f_flatten(2, -1)?.f_to_kind(self.kind)?;
            return Ok(Prediction::Deterministic(logits));
        }
        let mut outputs = self.linear(features)?.into_iter();
        let mut next = |rows: i64| match outputs.next() {
            Some(output) => Ok(output),
            None => Ok::<_, NetError>(Tensor::f_zeros([b, rows, v], (self.kind, features.device()))?),
        };
        let mean = next(c)?;
        let HeadConfig::Stochastic(StochasticConfig { rank, epsilon, log_diagonal_limit, .. }) = self.config
        else {
            return Ok(Prediction::Deterministic(mean));
        };
        let mut log_diagonal = next(c)?;
        if let Some(limit) = log_diagonal_limit {
            log_diagonal = (log_diagonal / limit).tanh() * limit;
        }
        let mask = mask.map(|mask| mask.f_to_device(mean.device())?.f_flatten(1, -1)).transpose()?; // [b, v]
        if let Some(mask) = &mask {
            // What the network says outside must not matter, were it beyond the number range.
            let inside = mask.f_to_kind(Kind::Bool)?.f_unsqueeze(1)?;
            log_diagonal = log_diagonal.f_where_self(&inside, &log_diagonal.f_zeros_like()?)?;
        }
        let factor = next(rank * c)?.f_view([b, rank, c, v])?;
        let mut distribution = LowRankNormal::from_log_diagonal(mean, &log_diagonal, factor, epsilon)?;
        if let Some(mask) = mask {
            distribution = distribution.masked(&mask, epsilon)?;
        }
        Ok(Prediction::Stochastic(distribution))
    }

    /// What each of the linear maps gives, `[b, rows, v]`.
    fn linear(&self, features: &Tensor) -> Result<Vec<Tensor>> {
        let join = |part: fn(&Linear) -> &Tensor, shape: &[i64]| {
            let parts: Vec<Tensor> = self.maps.iter().map(|map| part(map).flatten(0, -1)).collect();
            Ok::<_, NetError>(Tensor::f_cat(&parts, 0)?.f_view(shape)?)
        };
        let f = self.maps[0].weight.size()[1];
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
            return Err(NetError::Shape { field: "features", found, expected });
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
