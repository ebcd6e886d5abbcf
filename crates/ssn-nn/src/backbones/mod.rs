//! Networks that turn an image into a feature map.
//!
//! A backbone maps `[b, c, d, h, w]` to `[b, f, d', h', w']`; a head makes predictions of the features. A backbone is one file
//! with its settings ([`BackbonePlan`]) and its network ([`Backbone`]). Those of other crates are [`register`]ed by name.
//!
//! ```
//! use ssn_nn::backbones::{Backbone, BackboneConfig, BackbonePlan, Pass, register};
//! use ssn_nn::layers::{Convolution, ConvolutionShape};
//! use ssn_nn::parameters::{Init, Scope};
//! use ssn_nn::{Execution, HeadConfig, Model, ModelConfig, Precision, Result};
//! use tch::Tensor;
//!
//! /// Two convolutions; in a config, `backbone = { plain = { width = 16 } }`.
//! #[derive(Debug, serde::Serialize, serde::Deserialize)]
//! struct Plain {
//!     width: i64,
//! }
//!
//! #[derive(Debug)]
//! struct Network([Convolution; 2]);
//!
//! impl BackbonePlan for Plain {
//!     fn features(&self) -> i64 {
//!         self.width
//!     }
//!
//!     fn build(&self, scope: &mut Scope<'_>, channels: i64) -> Result<Box<dyn Backbone>> {
//!         let mut layer = |name, inputs| {
//!             let shape = ConvolutionShape::same(inputs, self.width, [1, 5, 5]); // 2D images have depth 1
//!             Convolution::new(&mut scope.sub(name), shape, Init::HeNormal)
//!         };
//!         Ok(Box::new(Network([layer("first", channels)?, layer("second", self.width)?])))
//!     }
//! }
//!
//! impl Backbone for Network {
//!     fn forward(&self, pass: &Pass<'_>) -> Result<Tensor> {
//!         let x = self.0[0].forward(&pass.layout.apply(pass.image()?)?)?.relu();
//!         Ok(self.0[1].forward(&x)?.relu())
//!     }
//! }
//!
//! register::<Plain>("plain")?;
//! let config: BackboneConfig = serde_json::from_str(r#"{ "plain": { "width": 16 } }"#)?;
//! assert_eq!(config, BackboneConfig::own(Plain { width: 16 })?);
//! let config = ModelConfig { channels: 1, classes: 2, backbone: config, head: HeadConfig::Deterministic };
//! let model = Model::new(&config, Execution::cpu(Precision::F32), 0)?;
//! assert_eq!(model.parameters().count(), 16 * 25 + 16 * 16 * 25 + 2 * 16 + 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod deepmedic;
mod own;
mod plan;
mod torchscript;
mod unet;

use std::fmt::{self, Debug};
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use ssn_core::Lattice;
use tch::Tensor;

pub use deepmedic::{DeepMedic, DeepMedicConfig, DeepMedicOutput};
pub use own::{OwnBackbone, register, registered};
pub use plan::{UNetPlan, plan_unet};
pub use torchscript::{TorchScript, TorchScriptConfig};
pub use unet::{ConvStack, Encoder, UNet, UNetConfig};

use crate::error::{Result, refused};
use crate::layers::{LinearInit, Mode};
use crate::parameters::Scope;
use crate::space::{self, FeatureLayout, Size};

/// A network that turns an image into a feature map.
///
/// Its tensors are those that it made in the [`Scope`] of its plan: they are trained, averaged, saved and loaded by name.
/// State outside of them is not saved, and survives a step that is rolled back.
pub trait Backbone: Debug + Send {
    /// Computes the features of a batch of images.
    ///
    /// On GPUs, the layers of this crate work on maps in the layout of the pass (`pass.layout.apply`), whose channels are
    /// padded; the result may be padded too.
    ///
    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, f, d', h', w']`, the sizes as [`BackbonePlan::output_size`] returns them.
    fn forward(&self, pass: &Pass<'_>) -> Result<Tensor>;

    /// Returns the bytes of a program that holds the network with its tensors, if there is one: TorchScript. It is stored in
    /// the model in place of the tensors.
    fn program(&self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// The input of a forward pass.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// The grids of [`BackbonePlan::input_grids`] in their order, or the whole image. `[b, c, dᵢ, hᵢ, wᵢ]` each.
    pub parts: &'a [Tensor],
    /// The size of the image.
    pub size: Size,
    /// The precision and memory layout of feature maps.
    pub layout: FeatureLayout,
    /// Training or evaluation.
    pub mode: Mode,
}

impl Pass<'_> {
    /// Returns the whole image, `[b, c, d, h, w]`.
    ///
    /// # Errors
    /// Several grids, which only a network with [`BackbonePlan::input_grids`] gets.
    pub fn image(&self) -> Result<&Tensor> {
        match self.parts {
            [image] if space::spatial(image)? == self.size => Ok(image),
            _ => refused("the image", "several grids", "whole, for this network"),
        }
    }
}

/// The settings of a backbone, which build it and say what it does to sizes.
pub trait BackbonePlan: Debug + Send + Sync {
    /// Returns the number of features `f`.
    fn features(&self) -> i64;

    /// Builds the network; its tensors are made in `scope`, which names them.
    fn build(&self, scope: &mut Scope<'_>, channels: i64) -> Result<Box<dyn Backbone>>;

    /// Builds the network from its [`Backbone::program`], which the file `from` holds.
    fn build_program(
        &self,
        _scope: &mut Scope<'_>,
        _program: &[u8],
        from: &Path,
    ) -> Result<Box<dyn Backbone>> {
        refused("the model", from.display(), "one without a program, for this backbone")
    }

    /// Returns an error for settings that do not fit together.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the size of the feature map for an image of size `input`, or an error that names sizes that fit.
    fn output_size(&self, input: Size) -> Result<Size> {
        Ok(input)
    }

    /// Returns the size of the smallest image that gives a feature map of at least size `output`.
    fn input_size(&self, output: Size) -> Size {
        output
    }

    /// Returns the grids of voxels that the network reads of an image, unless it reads every voxel.
    fn input_grids(&self, _input: Size) -> Result<Option<Vec<Lattice>>> {
        Ok(None)
    }

    /// Returns the padding of the convolutions.
    fn conv_padding(&self) -> ConvPadding {
        ConvPadding::Same(None)
    }

    /// Returns the initialization of a head on these features.
    fn head_init(&self) -> LinearInit {
        LinearInit::Uniform
    }

    /// Returns an error if training cannot take patches of this size, of which `items` share the statistics of a batch norm.
    fn check_batch(&self, _patch: Size, _items: i64) -> Result<()> {
        Ok(())
    }

    /// Returns `true` if batch norm can be synchronized over ranks: it is [`NormAct`](crate::layers::NormAct)'s.
    fn can_sync_batch_norm(&self) -> bool {
        true
    }

    /// Returns `true` if a training step can be captured as a CUDA graph: the pass waits for no GPU, copies nothing to the
    /// host, and has shapes and control flow that depend on no value.
    fn can_be_captured(&self) -> bool {
        false
    }

    /// Returns a few words for messages; `name` is the backbone's name in configs.
    fn describe(&self, name: &str) -> String {
        format!("backbone `{name}`")
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

/// The settings of a backbone, as configs have them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackboneConfig {
    /// A U-Net in 2D or 3D.
    Unet(UNetConfig),
    /// The DeepMedic of the paper's 3D experiments, in 2D or 3D.
    Deepmedic(DeepMedicConfig),
    /// A TorchScript network.
    #[serde(untagged)]
    Torchscript(TorchScriptConfig),
    /// A backbone that the program registered.
    #[serde(untagged)]
    Own(OwnBackbone),
}

impl BackboneConfig {
    /// Returns the config of a backbone that is [`register`]ed.
    pub fn own<P: BackbonePlan + Serialize + 'static>(plan: P) -> Result<Self> {
        Ok(Self::Own(OwnBackbone::of(plan)?))
    }

    /// Returns the plan.
    pub fn plan(&self) -> &dyn BackbonePlan {
        match self {
            Self::Unet(config) => config,
            Self::Deepmedic(config) => config,
            Self::Torchscript(config) => config,
            Self::Own(own) => own.plan(),
        }
    }

    /// Returns the name in configs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unet(_) => "unet",
            Self::Deepmedic(_) => "deepmedic",
            Self::Torchscript(_) => "torchscript",
            Self::Own(own) => own.name(),
        }
    }

    /// Returns a few words for messages.
    pub fn describe(&self) -> String {
        self.plan().describe(self.name())
    }

    /// Returns the number of features `f`.
    pub fn features(&self) -> i64 {
        self.plan().features()
    }

    /// Returns the size of the feature map for an image of size `input`, or an error that names sizes that fit.
    pub fn output_size(&self, input: Size) -> Result<Size> {
        self.plan().check()?;
        self.plan().output_size(input)
    }

    /// Returns the size of the smallest image that gives a feature map of at least size `output`.
    pub fn input_size(&self, output: Size) -> Result<Size> {
        self.plan().check()?;
        Ok(self.plan().input_size(output))
    }

    /// Returns the U-Net, whose levels heads with latent variables share.
    pub fn unet(&self) -> Option<&UNetConfig> {
        match self {
            Self::Unet(config) => Some(config),
            _ => None,
        }
    }

    /// Returns `true` if the settings do not describe the network, so that only a forward pass shows which images it takes.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Torchscript(_) | Self::Own(_))
    }
}

/// A backbone as a config file has it: exactly one of the three, or one that is registered.
#[derive(JsonSchema)]
#[schemars(rename = "BackboneConfig", deny_unknown_fields)]
#[allow(dead_code, reason = "the fields are the schema")]
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

impl JsonSchema for BackboneConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        BackboneTable::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BackboneTable::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for BackboneConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Table;

        impl<'de> Visitor<'de> for Table {
            type Value = BackboneConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the settings of a backbone, such as { unet = … }")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<BackboneConfig, A::Error> {
                let (mut backbones, mut torchscript, mut features) = (vec![], None, None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "unet" => backbones.push(BackboneConfig::Unet(map.next_value()?)),
                        "deepmedic" => backbones.push(BackboneConfig::Deepmedic(map.next_value()?)),
                        "torchscript" => torchscript = Some(map.next_value::<PathBuf>()?),
                        "features" => features = Some(map.next_value::<i64>()?),
                        name => {
                            let known = registered();
                            if !known.contains(&name) {
                                let names =
                                    own::BUILT_IN.into_iter().chain(known).map(|name| format!("`{name}`"));
                                let names = names.collect::<Vec<_>>().join(", ");
                                return Err(A::Error::custom(format!(
                                    "unknown field `{name}`, expected one of {names}"
                                )));
                            }
                            let settings: serde_json::Value = map.next_value()?;
                            if let Some(own) = OwnBackbone::read(name, &settings) {
                                backbones.push(BackboneConfig::Own(own.map_err(A::Error::custom)?));
                            }
                        }
                    }
                }
                match (torchscript, features) {
                    (Some(_), None) => Err(A::Error::custom(
                        "a torchscript backbone needs `features`, the channels of its last layer",
                    )),
                    (Some(torchscript), Some(features)) if backbones.is_empty() => {
                        Ok(BackboneConfig::Torchscript(TorchScriptConfig { torchscript, features }))
                    }
                    (None, None) if backbones.len() == 1 => Ok(backbones.remove(0)),
                    _ => Err(A::Error::custom(
                        "a backbone is one of `unet`, `deepmedic`, or `torchscript` with `features`",
                    )),
                }
            }
        }

        deserializer.deserialize_map(Table)
    }
}
