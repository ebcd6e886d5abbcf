//! Networks that turn an image into a feature map.
//!
//! A backbone maps `[b, c, d, h, w]` to `[b, f, d', h', w']`; a head makes predictions of the features. A new
//! backbone is one file with a config and a type, and one arm in [`BackboneConfig`] and [`Backbone`].

mod deepmedic;
mod plan;
mod torchscript;
mod unet;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_core::Lattice;
use tch::Tensor;

pub use deepmedic::{DeepMedic, DeepMedicConfig, DeepMedicOutput};
pub use plan::{UNetPlan, plan_unet};
pub use torchscript::{TorchScript, TorchScriptConfig};
pub use unet::{ConvStack, Encoder, UNet, UNetConfig};

use crate::error::{Result, refused};
use crate::layers::{LinearInit, Mode};
use crate::parameters::Scope;
use crate::space::{self, FeatureLayout, Size};

/// The settings of a backbone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", try_from = "BackboneTable")]
pub enum BackboneConfig {
    /// A U-Net in 2D or 3D.
    Unet(UNetConfig),
    /// The DeepMedic of the paper's 3D experiments, in 2D or 3D.
    Deepmedic(DeepMedicConfig),
    /// A TorchScript network.
    #[serde(untagged)]
    Torchscript(TorchScriptConfig),
}

/// A backbone as a config file has it: exactly one of the three.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BackboneTable {
    /// A U-Net in 2D or 3D.
    unet: Option<UNetConfig>,
    /// The DeepMedic of the paper's 3D experiments, in 2D or 3D.
    deepmedic: Option<DeepMedicConfig>,
    /// A TorchScript network: the file, as `torch.jit.script(network).save(…)` writes it.
    torchscript: Option<PathBuf>,
    /// The channels of the feature map that a TorchScript file gives.
    features: Option<i64>,
}

impl TryFrom<BackboneTable> for BackboneConfig {
    type Error = &'static str;

    fn try_from(table: BackboneTable) -> std::result::Result<Self, &'static str> {
        match table {
            BackboneTable { unet: Some(config), deepmedic: None, torchscript: None, features: None } => {
                Ok(Self::Unet(config))
            }
            BackboneTable { unet: None, deepmedic: Some(config), torchscript: None, features: None } => {
                Ok(Self::Deepmedic(config))
            }
            BackboneTable {
                unet: None,
                deepmedic: None,
                torchscript: Some(torchscript),
                features: Some(features),
            } => Ok(Self::Torchscript(TorchScriptConfig { torchscript, features })),
            BackboneTable { torchscript: Some(_), features: None, .. } => {
                Err("a torchscript backbone needs `features`, the channels of its last layer")
            }
            _ => Err("a backbone is one of `unet`, `deepmedic`, or `torchscript` with `features`"),
        }
    }
}

/// The padding of a backbone's convolutions, which decides how tiles of an image fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvPadding {
    /// None: tiles that begin and end at multiples of this size, counted from the same voxel, give exactly the values of
    /// the whole image.
    Valid(Size),
    /// Values near the border of a tile depend on padding; sizes are multiples of this one, where it is known.
    Same(Option<Size>),
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
        self.check()?;
        match self {
            Self::Unet(config) => config.output_size(input),
            Self::Deepmedic(config) => config.output_size(input),
            Self::Torchscript(_) => Ok(input),
        }
    }

    /// The smallest image that gives a feature map of at least this size.
    pub fn input_size(&self, output: Size) -> Result<Size> {
        self.check()?;
        Ok(match self {
            Self::Unet(config) => config.input_size(output),
            Self::Deepmedic(config) => config.input_size(output),
            Self::Torchscript(_) => output,
        })
    }

    /// Refuses settings that do not fit together.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Unet(config) => config.check(),
            Self::Deepmedic(config) => config.check(),
            Self::Torchscript(_) => Ok(()),
        }
    }

    /// The levels of a U-Net.
    pub fn unet_levels(&self) -> Option<usize> {
        match self {
            Self::Unet(config) => Some(config.widths.len()),
            Self::Deepmedic(_) | Self::Torchscript(_) => None,
        }
    }

    /// The grids of voxels that the network reads of an image of a size, where that is not every voxel.
    pub fn input_grids(&self, input: Size) -> Result<Option<Vec<Lattice>>> {
        match self {
            Self::Deepmedic(config) => Ok(Some(config.input_grids(input)?)),
            Self::Unet(_) | Self::Torchscript(_) => Ok(None),
        }
    }

    /// The initialization of a head on this backbone.
    pub fn head_init(&self) -> LinearInit {
        match self {
            Self::Unet(_) => LinearInit::HeNormal,
            Self::Deepmedic(_) | Self::Torchscript(_) => LinearInit::Uniform,
        }
    }

    /// The padding of the convolutions.
    pub fn conv_padding(&self) -> Result<ConvPadding> {
        self.check()?;
        Ok(match self {
            Self::Unet(config) => ConvPadding::Same(Some(config.total_stride())),
            Self::Deepmedic(config) => ConvPadding::Valid(config.total_scale()),
            Self::Torchscript(_) => ConvPadding::Same(None),
        })
    }
}

impl Backbone {
    /// The features of an image of a size, from the grids of [`BackboneConfig::input_grids`] in their order, or from the one
    /// grid of all voxels. They are computed in a memory layout; a TorchScript network has its own.
    ///
    /// # Shapes
    /// `[b, c, dᵢ, hᵢ, wᵢ]` each → `[b, f, d', h', w']`.
    pub fn forward(&self, parts: &[Tensor], size: Size, layout: FeatureLayout, mode: Mode) -> Result<Tensor> {
        match (self, parts) {
            (Self::Deepmedic(network), _) => network.forward(parts, size, layout, mode),
            (Self::Unet(network), [image]) if space::spatial(image)? == size => {
                network.forward(image, layout, mode)
            }
            (Self::Torchscript(network), [image]) if space::spatial(image)? == size => {
                network.forward(image, mode)
            }
            _ => refused("the image", "several grids", "whole, for this network"),
        }
    }
}
