//! Networks with latent variables, which the paper compares with: every sample takes a part of a forward pass.
//!
//! A prior says from the image which values the latent variables may have; a posterior, in training, which values explain
//! the labels of one rater. What is minimized is the cross-entropy of the labels given a draw of the posterior, and
//! the KL divergence from the prior: the negative ELBO. The noise of draws is an input everywhere, as for all networks here.

use tch::{Kind, Tensor};

use super::HeadConfig;
use super::elbo::{ElboTerms, SampleDecoder};
use super::phiseg::Phiseg;
use super::prob_unet::ProbUnet;
use crate::backbones::{BackboneConfig, BackbonePlan};
use crate::error::{Result, refused, require};
use crate::layers::Mode;
use crate::loss::Target;
use crate::parameters::Scope;
use crate::space::{self, FeatureLayout, Size};

/// A network with latent variables.
#[derive(Debug)]
pub enum LatentModel {
    /// See [`HeadConfig::ProbUnet`].
    ProbUnet(Box<ProbUnet>),
    /// See [`HeadConfig::Phiseg`].
    Phiseg(Box<Phiseg>),
}

impl LatentModel {
    /// The network of a head with latent variables on the plan of a backbone; nothing for other heads.
    pub(crate) fn build(
        scope: &mut Scope,
        [channels, classes]: [i64; 2],
        backbone: &BackboneConfig,
        head: HeadConfig,
    ) -> Result<Option<Self>> {
        if !head.is_latent() {
            return Ok(None);
        }
        if classes < 2 {
            return refused("classes", classes, "at least 2, the background included");
        }
        head.check()?;
        head.check_levels(backbone.unet().map(|unet| unet.widths.len()))?;
        let Some(plan) = backbone.unet() else { return Ok(None) };
        plan.check()?;
        Ok(match head {
            HeadConfig::ProbUnet(config) => {
                Some(Self::ProbUnet(Box::new(ProbUnet::new(scope, [channels, classes], plan, config)?)))
            }
            HeadConfig::Phiseg(config) => {
                Some(Self::Phiseg(Box::new(Phiseg::new(scope, [channels, classes], plan, config)?)))
            }
            HeadConfig::Stochastic(_) | HeadConfig::Deterministic | HeadConfig::Identity => None,
        })
    }

    /// How many standard normal numbers one sample of an image of a size takes.
    pub fn noise_count(&self, size: Size) -> i64 {
        match self {
            Self::ProbUnet(network) => network.noise_count(),
            Self::Phiseg(network) => network.noise_count(size),
        }
    }

    /// The ELBO terms of a batch, given the noise of one draw per image.
    ///
    /// # Shapes
    /// `image` `[b, c, d, h, w]`, the target's maps `[b, 1, v]`, `noise` `[b, n]`.
    pub fn elbo_terms(
        &self,
        image: &Tensor,
        target: &Target,
        noise: &Tensor,
        layout: FeatureLayout,
        mode: Mode,
    ) -> Result<ElboTerms> {
        let targets = target.maps().size()[1];
        let expected = "one rater per step (batches.patch.rater), for a network with latent variables";
        require(targets == 1, "target", format!("{targets} label maps at once"), expected)?;
        let labeled = with_labels(image, target)?;
        match self {
            Self::ProbUnet(network) => network.elbo_terms([image, &labeled], noise, layout, mode),
            Self::Phiseg(network) => network.elbo_terms([image, &labeled], noise, layout, mode),
        }
    }

    /// Computes once what all samples of an image share.
    ///
    /// # Shapes
    /// `image` `[1, c, d, h, w]`.
    pub fn decoder(&self, image: &Tensor, layout: FeatureLayout) -> Result<SampleDecoder<'_>> {
        match self {
            Self::ProbUnet(network) => network.decoder(image, layout),
            Self::Phiseg(network) => network.decoder(image, layout),
        }
    }
}

/// The image with a map per class beside it, ½ where the label is and −½ elsewhere: what a posterior sees.
///
/// # Shapes
/// `image` `[b, c, d, h, w]`, the target's maps `[b, 1, v]` → `[b, c + classes, d, h, w]`.
fn with_labels(image: &Tensor, target: &Target) -> Result<Tensor> {
    let ([d, h, w], classes) = (space::spatial(image)?, target.class_count());
    let numbers = Tensor::f_arange(classes, (Kind::Int64, image.device()))?.f_view([1, classes, 1])?;
    let labels = target.maps().f_eq_tensor(&numbers)?.f_to_kind(image.kind())? - 0.5; // [b, classes, v]
    Ok(Tensor::f_cat(&[image.shallow_clone(), labels.f_view([-1, classes, d, h, w])?], 1)?)
}
