//! Networks with latent variables, which the paper compares with: every sample takes a part of a forward pass.
//!
//! A prior says from the image which values the latent variables may have; a posterior, in training, which values explain
//! the labels of one rater. What is minimized is the cross-entropy of the labels given a draw of the posterior, and
//! its divergence from the prior. The noise of draws is an input everywhere, as for all networks here.

mod gaussian;
mod phiseg;
mod prob_unet;

use tch::{Kind, Tensor};

pub use phiseg::Phiseg;
pub use prob_unet::ProbUnet;

use crate::backbones::BackboneConfig;
use crate::error::{Result, refused, require};
use crate::heads::HeadConfig;
use crate::layers::Mode;
use crate::loss::mean_loss;
use crate::loss::target::Target;
use crate::parameters::Scope;
use crate::space;
use crate::space::{Form, Size};

/// A network with latent variables.
#[derive(Debug)]
pub enum Latent {
    /// See [`HeadConfig::ProbUnet`].
    ProbUnet(Box<ProbUnet>),
    /// See [`HeadConfig::Phiseg`].
    Phiseg(Box<Phiseg>),
}

/// What a step learns from.
#[derive(Debug)]
pub struct Learnt {
    /// Logits `[b, c, v]` that are compared with the labels; the last are those of a prediction.
    pub logits: Vec<Tensor>,
    /// The divergence of the posterior from the prior, times its weight: `[b]` in double precision.
    pub divergence: Tensor,
}

impl Learnt {
    /// The loss of each image: the cross-entropies of all logits, and the divergence.
    ///
    /// # Shapes
    /// Gives `[b]`.
    pub fn loss(&self, target: &Target) -> Result<Tensor> {
        let mut loss = self.divergence.shallow_clone();
        for logits in &self.logits {
            loss = loss.f_add(&mean_loss(logits, target)?)?;
        }
        Ok(loss)
    }
}

/// Makes samples of one image from noise `[m, n]`: logits `[m, c, v]`.
pub type Decoder<'a> = Box<dyn Fn(&Tensor) -> Result<Tensor> + 'a>;

/// What a network with latent variables is built for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    /// The channels of the image.
    pub(crate) channels: i64,
    /// The classes.
    pub(crate) classes: i64,
}

impl Latent {
    /// The network of a head with latent variables on the plan of a backbone; nothing for other heads.
    pub(crate) fn build(
        scope: &mut Scope,
        task: Task,
        backbone: &BackboneConfig,
        head: HeadConfig,
    ) -> Result<Option<Self>> {
        if !head.is_latent() {
            return Ok(None);
        }
        if task.classes < 2 {
            return refused("classes", task.classes, "at least 2, the background included");
        }
        head.check()?;
        head.check_levels(backbone.unet_levels())?;
        let BackboneConfig::Unet(plan) = backbone else { return Ok(None) };
        plan.check()?;
        Ok(match head {
            HeadConfig::ProbUnet(config) => {
                Some(Self::ProbUnet(Box::new(ProbUnet::new(scope, task, plan, config)?)))
            }
            HeadConfig::Phiseg(config) => {
                Some(Self::Phiseg(Box::new(Phiseg::new(scope, task, plan, config)?)))
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

    /// What a step learns from a batch, given the noise of one draw per image.
    ///
    /// # Shapes
    /// `image` `[b, c, d, h, w]`, the target's maps `[b, 1, v]`, `noise` `[b, n]`.
    pub fn learn(
        &self,
        image: &Tensor,
        target: &Target,
        noise: &Tensor,
        form: Form,
        mode: Mode,
    ) -> Result<Learnt> {
        let targets = target.maps().size()[1];
        let expected = "one rater per step (batches.patch.rater), for a network with latent variables";
        require(targets == 1, "target", format!("{targets} label maps at once"), expected)?;
        let labeled = with_labels(image, target)?;
        match self {
            Self::ProbUnet(network) => network.learn([image, &labeled], noise, form, mode),
            Self::Phiseg(network) => network.learn([image, &labeled], noise, form, mode),
        }
    }

    /// Computes once what all samples of an image share.
    ///
    /// # Shapes
    /// `image` `[1, c, d, h, w]`.
    pub fn decoder(&self, image: &Tensor, form: Form) -> Result<Decoder<'_>> {
        match self {
            Self::ProbUnet(network) => network.decoder(image, form),
            Self::Phiseg(network) => network.decoder(image, form),
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
