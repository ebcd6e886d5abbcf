//! Networks that turn an image into a feature map.
//!
//! A backbone maps `[b, c, d, h, w]` to `[b, f, d', h', w']`; a head makes predictions of the features. A new
//! backbone is one file with a config and a type, and one arm in [`BackboneConfig`] and [`Backbone`].

mod deepmedic;
mod plan;
mod torchscript;
mod unet;

use serde::{Deserialize, Serialize};
use tch::Tensor;

pub use deepmedic::{DeepMedic, DeepMedicConfig, DeepMedicOutput};
pub use plan::{Plan, plan_unet};
pub use torchscript::{TorchScript, TorchScriptConfig};
pub use unet::{UNet, UNetConfig};

use crate::blocks::Mode;
use crate::error::Result;
use crate::parameters::Scope;
use crate::space::Size;

/// The settings of a backbone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackboneConfig {
    /// A U-Net in 2D or 3D.
    Unet(UNetConfig),
    /// The DeepMedic of the paper's 3D experiments, in 2D or 3D.
    Deepmedic(DeepMedicConfig),
    /// A network of another making.
    #[serde(untagged)]
    Torchscript(TorchScriptConfig),
}

/// A network that turns an image into a feature map.
#[derive(Debug)]
pub enum Backbone {
    /// See [`BackboneConfig::Unet`].
    Unet(UNet),
    /// See [`BackboneConfig::Deepmedic`].
    Deepmedic(DeepMedic),
    /// See [`BackboneConfig::Torchscript`].
    Torchscript(TorchScript),
}

impl BackboneConfig {
    /// Makes the network and its tensors.
    pub fn build(&self, scope: &mut Scope, channels: i64) -> Result<Backbone> {
        Ok(match self {
            Self::Unet(config) => Backbone::Unet(UNet::new(scope, channels, config)?),
            Self::Deepmedic(config) => Backbone::Deepmedic(DeepMedic::new(scope, channels, config)?),
            Self::Torchscript(config) => Backbone::Torchscript(TorchScript::new(scope, config)?),
        })
    }

    /// The number of features `f`.
    pub fn features(&self) -> i64 {
        match self {
            Self::Unet(config) => config.features(),
            Self::Deepmedic(config) => config.features(),
            Self::Torchscript(config) => config.features,
        }
    }

    /// The size of the feature map for an image of a size, or an error that names sizes that fit.
    pub fn output_size(&self, input: Size) -> Result<Size> {
        match self {
            Self::Unet(config) => config.output_size(input),
            Self::Deepmedic(config) => config.output_size(input),
            Self::Torchscript(_) => Ok(input),
        }
    }

    /// The smallest image that gives a feature map of at least this size.
    pub fn input_size(&self, output: Size) -> Size {
        match self {
            Self::Unet(config) => config.input_size(output),
            Self::Deepmedic(config) => config.input_size(output),
            Self::Torchscript(_) => output,
        }
    }

    /// How many voxels along each axis one feature depends on at most; nothing if that is not known.
    pub fn receptive_field(&self) -> Option<Size> {
        match self {
            Self::Unet(config) => Some(config.receptive_field()),
            Self::Deepmedic(config) => Some(config.receptive_field()),
            Self::Torchscript(_) => None,
        }
    }
}

impl Backbone {
    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, f, d', h', w']`.
    pub fn forward(&self, image: &Tensor, mode: Mode) -> Result<Tensor> {
        match self {
            Self::Unet(network) => network.forward(image, mode),
            Self::Deepmedic(network) => network.forward(image, mode),
            Self::Torchscript(network) => network.forward(image, mode),
        }
    }
}
