//! The probabilistic U-Net (Kohl et al. 2018) on the trunk of the other networks: a vector of latent variables, the same at
//! every voxel, joins the features before the last 1×1×1 convolutions.

use tch::{Kind, Tensor};

use super::gaussian::Gaussian;
use super::{Decoder, Learnt, Task};
use crate::backbones::{Encoder, Stack, UNet, UNetConfig};
use crate::error::Result;
use crate::heads::ProbUnetConfig;
use crate::layers::{LinearMaps, LinearStart, Mode};
use crate::parameters::Scope;
use crate::space;
use crate::space::Form;

/// A distribution of the latent vector: an encoder, the mean of its coarsest map, and two linear maps.
#[derive(Debug)]
struct VectorNet {
    encoder: Encoder,
    maps: LinearMaps,
    width: i64,
    kind: Kind,
}

impl VectorNet {
    fn new(scope: &mut Scope, channels: i64, plan: &UNetConfig, latent: i64) -> Result<Self> {
        let width = plan.widths.last().copied().unwrap_or(channels);
        let encoder = Encoder::new(&mut scope.sub("down"), channels, plan)?;
        let mut maps = LinearMaps::new(scope.kind());
        for name in ["mean", "deviation"] {
            maps.add(&mut scope.sub(name), width, latent, LinearStart::HeNormal)?;
        }
        Ok(Self { encoder, maps, width, kind: scope.kind() })
    }

    /// `[b, c, d, h, w]` → a distribution of `[b, latent]`.
    fn forward(&self, image: &Tensor, form: Form, mode: Mode) -> Result<Gaussian> {
        let maps = self.encoder.forward(form.of(image)?, mode)?;
        let coarsest = space::first_channels(&maps[maps.len() - 1], self.width)?;
        let pooled = coarsest.f_mean_dim([2i64, 3, 4].as_slice(), true, self.kind)?; // [b, f, 1, 1, 1]
        let parts = self.maps.forward(&pooled)?; // [b, latent, 1] each
        Gaussian::new(parts[0].f_flatten(1, -1)?, &parts[1].f_flatten(1, -1)?)
    }
}

/// A probabilistic U-Net.
#[derive(Debug)]
pub struct ProbUnet {
    trunk: UNet,
    prior: VectorNet,
    posterior: VectorNet,
    pointwise: Stack,
    logits: LinearMaps,
    config: ProbUnetConfig,
    features: i64,
}

impl ProbUnet {
    pub(super) fn new(
        scope: &mut Scope,
        task: Task,
        plan: &UNetConfig,
        config: ProbUnetConfig,
    ) -> Result<Self> {
        let latent = config.latent;
        let Task { channels, classes } = task;
        let short = UNetConfig { pointwise: vec![], ..plan.clone() };
        let features = short.features();
        let trunk = UNet::new(&mut scope.sub("backbone"), channels, &short)?;
        let mut scope = scope.sub("head");
        let prior = VectorNet::new(&mut scope.sub("prior"), channels, plan, latent)?;
        let posterior = VectorNet::new(&mut scope.sub("posterior"), channels + classes, plan, latent)?;
        let (inputs, style) = (features + latent, plan.style());
        let pointwise = Stack::new(&mut scope.sub("pointwise"), inputs, &plan.pointwise, [1; 3], style)?;
        let last = plan.pointwise.last().copied().unwrap_or(inputs);
        let mut logits = LinearMaps::new(scope.kind());
        logits.add(&mut scope.sub("mean"), last, classes, LinearStart::HeNormal)?;
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

    /// Learns from an image, and from the image with its labels; see [`Latent::learn`](super::Latent::learn).
    pub(super) fn learn(
        &self,
        [image, labeled]: [&Tensor; 2],
        noise: &Tensor,
        form: Form,
        mode: Mode,
    ) -> Result<Learnt> {
        let prior = self.prior.forward(image, form, mode)?;
        let posterior = self.posterior.forward(labeled, form, mode)?;
        let features = self.trunk.forward(image, form, mode)?;
        let logits = vec![self.logits(features, &posterior.draw(noise)?, mode)?];
        Ok(Learnt { logits, divergence: posterior.divergence(&prior)? * self.config.kl_weight })
    }

    pub(super) fn decoder(&self, image: &Tensor, form: Form) -> Result<Decoder<'_>> {
        let prior = self.prior.forward(image, form, Mode::Evaluation)?;
        let features = self.trunk.forward(image, form, Mode::Evaluation)?;
        Ok(Box::new(move |noise| {
            let z = prior.draw(noise)?; // [m, latent]
            let mut size = features.size();
            size[0] = z.size()[0];
            self.logits(features.f_expand(size.as_slice(), false)?, &z, Mode::Evaluation)
        }))
    }
}
