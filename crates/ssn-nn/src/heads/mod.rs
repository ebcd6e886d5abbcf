//! Heads: what is predicted from a feature map.

mod config;
mod elbo;
mod latent;
mod phiseg;
mod prob_unet;

use tch::{Kind, Tensor};

pub use config::{HeadConfig, PhisegConfig, ProbUnetConfig, StochasticConfig};
pub use elbo::{ElboTerms, SampleDecoder};
pub use latent::LatentModel;
pub use phiseg::Phiseg;
pub use prob_unet::ProbUnet;

use crate::distribution::LowRankNormalTensors;
use crate::error::{NnError, Result, refused};
use crate::layers::{LinearInit, PointwiseConvs};
use crate::parameters::Scope;
use crate::space;

/// The prediction of a network for a batch of images; space is flat from here on.
#[derive(Debug)]
pub enum Prediction {
    /// A distribution over logits.
    Stochastic(LowRankNormalTensors),
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

/// A head with its tensors.
#[derive(Debug)]
pub struct Head {
    /// The logits' or the mean's, the log-diagonal's, the factor's.
    convs: PointwiseConvs,
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
        init: LinearInit,
    ) -> Result<Self> {
        let kind = scope.kind();
        config.check()?;
        if classes < 1 {
            return refused("classes", classes, "at least 1");
        }
        let mut convs = PointwiseConvs::new(kind);
        let mut map = |name: &str, outputs| convs.add(&mut scope.sub(name), features, outputs, init);
        match config {
            HeadConfig::Identity if features != classes => {
                return refused(
                    "classes",
                    format!("{classes}, while the network gives {features} channels"),
                    "the number of channels, when the head is \"identity\"",
                );
            }
            HeadConfig::Identity => {}
            HeadConfig::ProbUnet(_) | HeadConfig::Phiseg(_) => {
                return refused("head", config.name(), "a head that is put on features");
            }
            HeadConfig::Deterministic => map("mean", classes)?,
            HeadConfig::Stochastic(StochasticConfig { rank, initial_scale: scale, .. }) => {
                map("mean", classes)?;
                map("log_diagonal", classes)?;
                if rank > 0 {
                    map("factor", rank * classes)?;
                    convs.scale(2, scale)?;
                }
                convs.shift(1, 2.0 * scale.ln())?;
            }
        }
        Ok(Self { convs, config, classes, kind })
    }

    /// The prediction from a feature map; `mask` is 1 inside the region of interest and 0 outside.
    ///
    /// # Shapes
    /// `features` `[b, f, d, h, w]`, or with padded channels; `mask` `[b, d, h, w]`.
    pub fn forward(&self, features: &Tensor, mask: Option<&Tensor>) -> Result<Prediction> {
        let (b, c) = (features.size()[0], self.classes);
        let v = space::spatial(features)?.iter().product::<i64>();
        if self.convs.is_empty() {
            let logits = space::first_channels(features, c)?.f_flatten(2, -1)?.f_to_kind(self.kind)?;
            return Ok(Prediction::Deterministic(logits));
        }
        let mut outputs = self.convs.forward(features)?.into_iter();
        let mut next = |rows: i64| match outputs.next() {
            Some(output) => Ok(output),
            None => Ok::<_, NnError>(Tensor::f_zeros([b, rows, v], (self.kind, features.device()))?),
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
            // Outputs outside of the mask must not matter, even if they overflow.
            let inside = mask.f_to_kind(Kind::Bool)?.f_unsqueeze(1)?;
            log_diagonal = log_diagonal.f_where_self(&inside, &log_diagonal.f_zeros_like()?)?;
        }
        let factor = next(rank * c)?.f_view([b, rank, c, v])?;
        let mut distribution = LowRankNormalTensors::from_log_diagonal(mean, &log_diagonal, factor, epsilon)?;
        if let Some(mask) = mask {
            distribution = distribution.masked(&mask, epsilon)?;
        }
        Ok(Prediction::Stochastic(distribution))
    }
}
