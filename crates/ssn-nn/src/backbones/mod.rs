//! Networks that turn an image into a feature map.
//!
//! A backbone maps `[b, c, d, h, w]` to `[b, f, d', h', w']`; a head makes predictions of the features. A new
//! backbone is one file with a config and a type, and one arm in [`BackboneConfig`] and [`Backbone`].

mod deepmedic;
mod encoder;
mod plan;
mod torchscript;
mod unet;
mod unit;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_data::Grid;
use tch::Tensor;

pub use deepmedic::{DeepMedic, DeepMedicConfig, DeepMedicOutput};
pub use encoder::Encoder;
pub use plan::{Plan, plan_unet};
pub use torchscript::{TorchScript, TorchScriptConfig};
pub use unet::{UNet, UNetConfig};
pub use unit::{Stack, UnitStyle};

use crate::error::{Result, refused};
use crate::layers::{LinearStart, Mode};
use crate::parameters::Scope;
use crate::space::{Form, Size};

/// The settings of a backbone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", try_from = "Written")]
pub enum BackboneConfig {
    /// A U-Net in 2D or 3D.
    Unet(UNetConfig),
    /// The DeepMedic of the paper's 3D experiments, in 2D or 3D.
    Deepmedic(DeepMedicConfig),
    /// A network of another making.
    #[serde(untagged)]
    Torchscript(TorchScriptConfig),
}

/// A backbone as a config file has it: exactly one of the three.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Written {
    /// A U-Net in 2D or 3D.
    unet: Option<UNetConfig>,
    /// The DeepMedic of the paper's 3D experiments, in 2D or 3D.
    deepmedic: Option<DeepMedicConfig>,
    /// A network of another making: the file, as `torch.jit.script(network).save(…)` writes it.
    torchscript: Option<PathBuf>,
    /// The channels of the feature map that a TorchScript file gives.
    features: Option<i64>,
}

impl TryFrom<Written> for BackboneConfig {
    type Error = &'static str;

    fn try_from(written: Written) -> std::result::Result<Self, &'static str> {
        match written {
            Written { unet: Some(config), deepmedic: None, torchscript: None, features: None } => {
                Ok(Self::Unet(config))
            }
            Written { unet: None, deepmedic: Some(config), torchscript: None, features: None } => {
                Ok(Self::Deepmedic(config))
            }
            Written {
                unet: None,
                deepmedic: None,
                torchscript: Some(torchscript),
                features: Some(features),
            } => Ok(Self::Torchscript(TorchScriptConfig { torchscript, features })),
            Written { torchscript: Some(_), features: None, .. } => {
                Err("a torchscript backbone needs `features`, the channels of its last layer")
            }
            _ => Err("a backbone is one of `unet`, `deepmedic`, or `torchscript` with `features`"),
        }
    }
}

/// How the feature maps of parts of an image fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seams {
    /// Nothing is padded: parts that begin and end at multiples of this size, counted from the same voxel, give the
    /// very values of the whole image.
    None(Size),
    /// Padding shows near the border of every part; sizes are multiples of this one, where it is known.
    Padded(Option<Size>),
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

    /// The grids of an image of a size that the network looks at, where that is not every voxel.
    pub fn seen(&self, input: Size) -> Result<Option<Vec<Grid>>> {
        match self {
            Self::Deepmedic(config) => Ok(Some(config.seen(input)?)),
            Self::Unet(_) | Self::Torchscript(_) => Ok(None),
        }
    }

    /// The first values of a head on this backbone.
    pub fn head_start(&self) -> LinearStart {
        match self {
            Self::Unet(_) => LinearStart::HeNormal,
            Self::Deepmedic(_) | Self::Torchscript(_) => LinearStart::Uniform,
        }
    }

    /// How the feature maps of parts of an image fit together.
    pub fn seams(&self) -> Result<Seams> {
        self.check()?;
        Ok(match self {
            Self::Unet(config) => Seams::Padded(Some(config.total_stride())),
            Self::Deepmedic(config) => Seams::None(config.total_scale()),
            Self::Torchscript(_) => Seams::Padded(None),
        })
    }

    /// How many voxels along each axis one feature depends on at most; nothing if that is not known.
    pub fn receptive_field(&self) -> Result<Option<Size>> {
        self.check()?;
        Ok(match self {
            Self::Unet(config) => Some(config.receptive_field()),
            Self::Deepmedic(config) => Some(config.receptive_field()),
            Self::Torchscript(_) => None,
        })
    }
}

impl Backbone {
    /// The features of an image, computed in a form; a foreign network has its own.
    ///
    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, f, d', h', w']`.
    pub fn forward(&self, image: &Tensor, form: Form, mode: Mode) -> Result<Tensor> {
        match self {
            Self::Unet(network) => network.forward(image, form, mode),
            Self::Deepmedic(network) => network.forward(image, form, mode),
            Self::Torchscript(network) => network.forward(image, mode),
        }
    }

    /// The same from the grids alone that [`BackboneConfig::seen`] names, in their order, of an image of a size.
    ///
    /// # Shapes
    /// `[b, c, dᵢ, hᵢ, wᵢ]` → `[b, f, d', h', w']`.
    pub fn forward_seen(&self, parts: &[Tensor], input: Size, form: Form, mode: Mode) -> Result<Tensor> {
        match self {
            Self::Deepmedic(network) => network.forward_seen(parts, input, form, mode),
            Self::Unet(_) | Self::Torchscript(_) => {
                refused("the image", "several grids", "whole, for this network")
            }
        }
    }
}
