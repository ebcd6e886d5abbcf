//! The probabilistic U-Net (Kohl et al. 2018) on the trunk of the other networks: a vector of latent variables, the same at
//! every voxel, joins the features before the last 1×1×1 convolutions.

use tch::{Kind, Tensor};

use super::elbo::{DiagonalGaussian, ElboTerms, SampleDecoder};
use crate::backbones::{BackbonePlan, ConvStack, Encoder, UNet, UNetConfig};
use crate::error::Result;
use crate::heads::ProbUnetConfig;
use crate::layers::{LinearInit, Mode, PointwiseConvs};
use crate::parameters::Scope;
use crate::space::{self, FeatureLayout};

/// A distribution of the latent vector: an encoder, the mean of its coarsest map, and two linear maps.
#[derive(Debug)]
struct AxisAlignedConvGaussian {
    encoder: Encoder,
    maps: PointwiseConvs,
    width: i64,
    kind: Kind,
}

impl AxisAlignedConvGaussian {
    fn new(scope: &mut Scope, channels: i64, plan: &UNetConfig, latent: i64) -> Result<Self> {
        let width = plan.widths.last().copied().unwrap_or(channels);
        let encoder = Encoder::new(&mut scope.sub("down"), channels, plan)?;
        let mut maps = PointwiseConvs::new(scope.kind());
        for name in ["mean", "deviation"] {
            maps.add(&mut scope.sub(name), width, latent, LinearInit::HeNormal)?;
        }
        Ok(Self { encoder, maps, width, kind: scope.kind() })
    }

    /// `[b, c, d, h, w]` → a distribution of `[b, latent]`.
    fn forward(&self, image: &Tensor, layout: FeatureLayout, mode: Mode) -> Result<DiagonalGaussian> {
        let maps = self.encoder.forward(layout.apply(image)?, mode)?;
        let coarsest = space::first_channels(&maps[maps.len() - 1], self.width)?;
        let pooled = coarsest.f_mean_dim([2i64, 3, 4].as_slice(), true, self.kind)?; // [b, f, 1, 1, 1]
        let parts = self.maps.forward(&pooled)?; // [b, latent, 1] each
        DiagonalGaussian::new(parts[0].f_flatten(1, -1)?, &parts[1].f_flatten(1, -1)?)
    }
}

/// A probabilistic U-Net.
#[derive(Debug)]
pub struct ProbUnet {
    trunk: UNet,
    prior: AxisAlignedConvGaussian,
    posterior: AxisAlignedConvGaussian,
    pointwise: ConvStack,
    logits: PointwiseConvs,
    config: ProbUnetConfig,
    features: i64,
}

impl ProbUnet {
    pub(super) fn new(
        scope: &mut Scope,
        [channels, classes]: [i64; 2],
        plan: &UNetConfig,
        config: ProbUnetConfig,
    ) -> Result<Self> {
        let latent = config.latent;
        let short = UNetConfig { pointwise: vec![], ..plan.clone() };
        let features = short.features();
        let trunk = UNet::new(&mut scope.sub("backbone"), channels, &short)?;
        let mut scope = scope.sub("head");
        let prior = AxisAlignedConvGaussian::new(&mut scope.sub("prior"), channels, plan, latent)?;
        let posterior =
            AxisAlignedConvGaussian::new(&mut scope.sub("posterior"), channels + classes, plan, latent)?;
        let inputs = features + latent;
        let pointwise = ConvStack::new(&mut scope.sub("pointwise"), inputs, &plan.pointwise, [1; 3], plan)?;
        let last = plan.pointwise.last().copied().unwrap_or(inputs);
        let mut logits = PointwiseConvs::new(scope.kind());
        logits.add(&mut scope.sub("mean"), last, classes, LinearInit::HeNormal)?;
        Ok(Self { trunk, prior, posterior, pointwise, logits, config, features })
    }

    pub(super) fn noise_count(&self) -> i64 {
        self.config.latent
    }

    /// Logits `[b, c, v]` of features `[b, f, d, h, w]` and latent vectors `[b, latent]`.
    fn logits(&self, features: Tensor, z: &Tensor, mode: Mode) -> Result<Tensor> {
        let (b, [d, h, w], latent) = (z.size()[0], space::spatial(&features)?, self.config.latent);
        let everywhere = z
            .f_to_kind(features.kind())?
            .f_view([b, latent, 1, 1, 1])?
            .f_expand([b, latent, d, h, w], false)?;
        let joined = space::join_channels(&[(features, self.features), (everywhere, latent)])?;
        Ok(self.logits.forward(&self.pointwise.forward(joined, mode)?)?.remove(0))
    }

    /// The terms of an image, and of the image with its labels; see [`LatentModel::elbo_terms`](super::LatentModel::elbo_terms).
    pub(super) fn elbo_terms(
        &self,
        [image, labeled]: [&Tensor; 2],
        noise: &Tensor,
        layout: FeatureLayout,
        mode: Mode,
    ) -> Result<ElboTerms> {
        let prior = self.prior.forward(image, layout, mode)?;
        let posterior = self.posterior.forward(labeled, layout, mode)?;
        let features = self.trunk.features(image, layout, mode)?;
        let logits = vec![self.logits(features, &posterior.rsample(noise)?, mode)?];
        Ok(ElboTerms { logits, kl: posterior.kl_divergence(&prior)? * self.config.kl_weight })
    }

    pub(super) fn decoder(&self, image: &Tensor, layout: FeatureLayout) -> Result<SampleDecoder<'_>> {
        let prior = self.prior.forward(image, layout, Mode::Evaluation)?;
        let features = self.trunk.features(image, layout, Mode::Evaluation)?;
        Ok(Box::new(move |noise| {
            let z = prior.rsample(noise)?; // [m, latent]
            let mut size = features.size();
            size[0] = z.size()[0];
            self.logits(features.f_expand(size.as_slice(), false)?, &z, Mode::Evaluation)
        }))
    }
}
