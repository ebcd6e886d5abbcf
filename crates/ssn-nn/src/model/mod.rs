//! A whole network: backbone and head, with its precision.

pub mod weights;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use crate::backbones::{Backbone, BackboneConfig, DeepMedicConfig, Pass, UNetConfig};
use crate::error::{NnError, Result, refused};
use crate::heads::{ElboTerms, Head, HeadConfig, LatentModel, Prediction, StochasticConfig};
use crate::layers::Mode;
use crate::loss::Target;
use crate::parameters::Parameters;
use crate::space::{self, FeatureLayout, Size};

/// What a network is; with its weights, everything that a prediction needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The channels of the image.
    pub channels: i64,
    /// The classes, the background included.
    pub classes: i64,
    /// The network that makes features of the image.
    pub backbone: BackboneConfig,
    /// What is predicted from the features.
    pub head: HeadConfig,
}

impl ModelConfig {
    /// The paper's network for LIDC: one channel, two classes, rank 10.
    pub fn lidc() -> Self {
        Self {
            channels: 1,
            classes: 2,
            backbone: BackboneConfig::Unet(UNetConfig::lidc()),
            head: HeadConfig::Stochastic(StochasticConfig::default()),
        }
    }

    /// The paper's network for BraTS: four channels, four classes, rank 10.
    pub fn brats() -> Self {
        Self {
            channels: 4,
            classes: 4,
            backbone: BackboneConfig::Deepmedic(DeepMedicConfig::brats()),
            head: HeadConfig::Stochastic(StochasticConfig::default()),
        }
    }

    /// The deterministic network that the paper compares with on BraTS.
    pub fn brats_deterministic() -> Self {
        Self {
            backbone: BackboneConfig::Deepmedic(DeepMedicConfig::brats_deterministic()),
            head: HeadConfig::Identity,
            ..Self::brats()
        }
    }
}

/// The precision of a network's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision throughout.
    F32,
    /// Double precision throughout.
    F64,
    /// The backbone computes in bfloat16; weights, heads, distribution and loss are in single precision.
    Bf16,
}

impl Precision {
    /// The default precision of training on a device: the fastest that trains as well.
    pub fn default_on(device: Device) -> Result<Self> {
        Ok(if device != Device::Cpu && has_bfloat16(device)? { Self::Bf16 } else { Self::F32 })
    }

    /// Refuses a precision that a device does not have.
    pub fn check(self, device: Device) -> Result<()> {
        match self {
            Self::F64 if device != Device::Cpu => {
                refused("training.precision", "f64", "f32 or bf16 on a GPU; for f64, train with --device cpu")
            }
            Self::Bf16 if device != Device::Cpu && !has_bfloat16(device)? => {
                refused("training.precision", "bf16", "f32 on a GPU of compute capability below 8.0")
            }
            _ => Ok(()),
        }
    }

    /// The type of the weights, the head's outputs and the loss's logits.
    pub fn master(self) -> Kind {
        match self {
            Self::F64 => Kind::Double,
            Self::F32 | Self::Bf16 => Kind::Float,
        }
    }

    /// The type in which the backbone computes.
    pub fn backbone(self) -> Kind {
        match self {
            Self::F64 => Kind::Double,
            Self::F32 => Kind::Float,
            Self::Bf16 => Kind::BFloat16,
        }
    }
}

/// Whether a GPU computes in bfloat16.
fn has_bfloat16(gpu: Device) -> Result<bool> {
    ssn_cuda::load()?;
    Ok(ssn_cuda::device_properties(gpu)?.capability[0] >= 8)
}

/// How a network computes; it changes speed and rounding, nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    /// The precision.
    pub precision: Precision,
    /// The device.
    pub device: Device,
}

impl Execution {
    /// On the CPU.
    pub fn cpu(precision: Precision) -> Self {
        Self::on(Device::Cpu, precision)
    }

    /// On a device.
    pub fn on(device: Device, precision: Precision) -> Self {
        Self { precision, device }
    }

    /// The precision and memory format of the backbone's feature maps.
    pub fn layout(self) -> FeatureLayout {
        FeatureLayout { kind: self.precision.backbone(), padded: self.device != Device::Cpu }
    }
}

/// A network with its weights.
#[derive(Debug)]
pub struct Model {
    config: ModelConfig,
    execution: Execution,
    parameters: Parameters,
    network: Network,
}

/// What computes.
#[derive(Debug)]
enum Network {
    /// A head on features.
    Features { backbone: Box<dyn Backbone>, head: Head },
    /// A network with latent variables.
    LatentModel(LatentModel),
}

impl Model {
    /// A network with first weights, a function of the seed.
    pub fn new(config: &ModelConfig, execution: Execution, seed: u64) -> Result<Self> {
        Self::build(config, execution, seed, None)
    }

    /// Like [`Model::new`], with the backbone from its program, which a file holds.
    pub(crate) fn build(
        config: &ModelConfig,
        execution: Execution,
        seed: u64,
        program: Option<(&[u8], &Path)>,
    ) -> Result<Self> {
        if config.channels < 1 {
            return refused("channels", config.channels, "at least 1");
        }
        let Execution { precision, device } = execution;
        let mut parameters = match device {
            Device::Cpu => Parameters::new(seed, precision.master(), device),
            device => {
                precision.check(device)?;
                ssn_cuda::load()?;
                ssn_cuda::use_device(device)?;
                Parameters::on_gpu(seed, precision.backbone(), device)?
            }
        };
        let mut root = parameters.root();
        let channels = [config.channels, config.classes];
        let network = match LatentModel::build(&mut root, channels, &config.backbone, config.head)? {
            Some(latent) => Network::LatentModel(latent),
            None => {
                let (plan, mut scope) = (config.backbone.plan(), root.sub("backbone"));
                let backbone = match program {
                    Some((program, file)) => plan.build_program(&mut scope, program, file)?,
                    None => plan.build(&mut scope, config.channels)?,
                };
                let (features, start) = (plan.features(), plan.head_init());
                let head = Head::new(&mut root.sub("head"), features, config.classes, config.head, start)?;
                Network::Features { backbone, head }
            }
        };
        parameters.refresh()?;
        Ok(Self { config: config.clone(), execution, parameters, network })
    }

    /// What the network is.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// How the network computes.
    pub fn execution(&self) -> Execution {
        self.execution
    }

    /// Its tensors.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The network, if it has latent variables; it is then to be used instead of [`Model::forward`].
    pub fn latent(&self) -> Option<&LatentModel> {
        match &self.network {
            Network::LatentModel(latent) => Some(latent),
            Network::Features { .. } => None,
        }
    }

    /// Its backbone, if it has one.
    pub fn backbone(&self) -> Option<&dyn Backbone> {
        match &self.network {
            Network::Features { backbone, .. } => Some(&**backbone),
            Network::LatentModel(_) => None,
        }
    }

    /// Backbone and head of a network without latent variables.
    fn backbone_and_head(&self) -> Result<(&dyn Backbone, &Head)> {
        match &self.network {
            Network::Features { backbone, head } => Ok((&**backbone, head)),
            Network::LatentModel(_) => {
                let name = self.config.head.name();
                refused(
                    "model.head",
                    name,
                    "one that needs no sampling: stochastic, deterministic or identity",
                )
            }
        }
    }

    /// The prediction for a batch of images; `mask` is 1 inside the region of interest and 0 outside.
    ///
    /// # Shapes
    /// `image` `[b, c, d, h, w]`, `mask` `[b, d', h', w']` on the grid of the output. The prediction has
    /// v = d'·h'·w' voxels, `w'` running fastest.
    pub fn forward(&self, image: &Tensor, mask: Option<&Tensor>, mode: Mode) -> Result<Prediction> {
        self.forward_grids(std::slice::from_ref(image), space::spatial(image)?, mask, mode)
    }

    /// The same from the voxels that the network reads of images of a size; see [`BackbonePlan::input_grids`](crate::backbones::BackbonePlan::input_grids).
    ///
    /// # Shapes
    /// Each part `[b, c, dᵢ, hᵢ, wᵢ]`, `mask` as for [`Model::forward`].
    pub fn forward_grids(
        &self,
        parts: &[Tensor],
        size: Size,
        mask: Option<&Tensor>,
        mode: Mode,
    ) -> Result<Prediction> {
        let Some(first) = parts.first() else {
            return refused("the image", "empty", "at least one grid of voxels");
        };
        let output = self.check(first, size, mask)?;
        let parts: Vec<Tensor> =
            parts.iter().map(|part| Ok(part.f_to_device(self.execution.device)?)).collect::<Result<_>>()?;
        let (backbone, head) = self.backbone_and_head()?;
        let pass = Pass { parts: &parts, size, layout: self.execution.layout(), mode };
        let features = backbone.forward(&pass)?;
        let (b, f, [d, h, w], found) =
            (first.size()[0], self.config.backbone.features(), output, features.size());
        let fits = match *found {
            [of_batch, channels, d_, h_, w_] if [of_batch, d_, h_, w_] == [b, d, h, w] => {
                channels == f || space::is_padded(&features, f)?
            }
            _ => false,
        };
        if !fits {
            let expected = format!("{:?}", [b, f, d, h, w]);
            return Err(NnError::shape("the feature map of the backbone", &found, expected));
        }
        head.forward(&features, mask)
    }

    /// The ELBO terms of a training step of a network with latent variables.
    ///
    /// # Shapes
    /// One part `[b, c, d, h, w]`, the target's maps `[b, 1, v]`, `noise` `[b, n]`.
    pub fn elbo_terms(
        &self,
        parts: &[Tensor],
        target: &Target,
        noise: &Tensor,
        mode: Mode,
    ) -> Result<ElboTerms> {
        let (Some(latent), [image]) = (self.latent(), parts) else {
            return refused(
                "model.head",
                self.config.head.name(),
                "one with latent variables, and the image whole",
            );
        };
        let size = space::spatial(image)?;
        self.check(image, size, None)?;
        target.check(image.size()[0], self.config.classes, size.iter().product())?;
        let device = self.execution.device;
        let (image, noise) = (image.f_to_device(device)?, noise.f_to_device(device)?);
        latent.elbo_terms(&image, target, &noise, self.execution.layout(), mode)
    }

    /// Returns `true` if a training step can be captured as a CUDA graph.
    pub fn can_be_captured(&self) -> bool {
        self.config.backbone.plan().can_be_captured()
    }

    /// Returns the size of the output, or an error for images and masks of shapes that do not fit.
    fn check(&self, image: &Tensor, size: Size, mask: Option<&Tensor>) -> Result<Size> {
        let channels = image.size()[1];
        if channels != self.config.channels {
            let expected = format!("[b, {}, d, h, w], as the setting channels says,", self.config.channels);
            return Err(NnError::shape("the image", &image.size(), expected));
        }
        let output = self.config.backbone.output_size(size)?;
        if let Some(mask) = mask
            && mask.size() != [image.size()[0], output[0], output[1], output[2]]
        {
            let expected = format!("[{}, {}, {}, {}]", image.size()[0], output[0], output[1], output[2]);
            return Err(NnError::shape("the mask", &mask.size(), expected));
        }
        Ok(output)
    }
}
