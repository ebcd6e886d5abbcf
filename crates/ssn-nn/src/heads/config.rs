//! The settings of heads, as config files and models have them.

use schemars::{JsonSchema, Schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::distribution::EPSILON;
use crate::error::{Result, refused, require};

/// The rank of the paper's experiments.
const PAPER_RANK: i64 = 10;

/// The settings of a head: a name alone has the usual settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, remote = "Self")]
#[schemars(transform = or_a_name)]
pub enum HeadConfig {
    /// A normal distribution over the logits of the whole image: the stochastic segmentation network.
    Stochastic(StochasticConfig),
    /// Logits: the ordinary network.
    Deterministic,
    /// The features themselves are the logits; nothing is added.
    Identity,
    /// The probabilistic U-Net, to compare with.
    ProbUnet(ProbUnetConfig),
    /// PHiSeg, to compare with: of the U-Net it has the levels.
    Phiseg(PhisegConfig),
}

impl HeadConfig {
    /// The names of all heads in config files.
    pub const NAMES: [&str; 5] = ["stochastic", "deterministic", "identity", "prob-unet", "phiseg"];

    /// The head of a name, with its usual settings.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "stochastic" => Self::Stochastic(StochasticConfig::default()),
            "deterministic" => Self::Deterministic,
            "identity" => Self::Identity,
            "prob-unet" => Self::ProbUnet(ProbUnetConfig::default()),
            "phiseg" => Self::Phiseg(PhisegConfig::default()),
            _ => return None,
        })
    }

    /// Its name in config files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stochastic(_) => "stochastic",
            Self::Deterministic => "deterministic",
            Self::Identity => "identity",
            Self::ProbUnet(_) => "prob-unet",
            Self::Phiseg(_) => "phiseg",
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Stochastic(StochasticConfig { rank, epsilon, log_diagonal_limit, initial_scale }) => {
                let ranks = "0 (independent logits) to 1024";
                require((0..=1024).contains(&rank), "model.head.stochastic.rank", rank, ranks)?;
                let is_small = epsilon.is_finite() && epsilon > 0.0;
                require(is_small, "model.head.stochastic.epsilon", epsilon, "a small positive number")?;
                positive("model.head.stochastic.log_diagonal_limit", log_diagonal_limit.unwrap_or(1.0))?;
                positive("model.head.stochastic.initial_scale", initial_scale)
            }
            Self::Deterministic | Self::Identity => Ok(()),
            Self::ProbUnet(ProbUnetConfig { latent, kl_weight }) => {
                require((1..=1024).contains(&latent), "model.head.prob-unet.latent", latent, "1 to 1024")?;
                not_negative("model.head.prob-unet.kl_weight", kl_weight)
            }
            Self::Phiseg(PhisegConfig { latent_levels, latent, kl_weight }) => {
                require(latent_levels > 0, "model.head.phiseg.latent_levels", latent_levels, "at least 1")?;
                require((1..=1024).contains(&latent), "model.head.phiseg.latent", latent, "1 to 1024")?;
                not_negative("model.head.phiseg.kl_weight", kl_weight)
            }
        }
    }

    /// Refuses a backbone that the head cannot be put on.
    pub fn check_levels(self, unet_levels: Option<usize>) -> Result<()> {
        match (self, unet_levels) {
            (Self::ProbUnet(_) | Self::Phiseg(_), None) => {
                refused("model.head", self.name(), "on a `unet` backbone, whose levels it shares")
            }
            (Self::Phiseg(PhisegConfig { latent_levels, .. }), Some(levels)) if latent_levels > levels => {
                let value = format!("{latent_levels}, while the U-Net has {levels} levels");
                refused("model.head.phiseg.latent_levels", value, "at most that")
            }
            _ => Ok(()),
        }
    }

    /// Whether the network has latent variables, so that every sample takes a part of a forward pass.
    pub fn is_latent(self) -> bool {
        matches!(self, Self::ProbUnet(_) | Self::Phiseg(_))
    }
}

impl Serialize for HeadConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for HeadConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        /// Takes `"NAME"` or `{ NAME = { … } }`.
        struct NameOrTable;

        impl<'de> Visitor<'de> for NameOrTable {
            type Value = HeadConfig;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                write!(f, "the name of a head, or a table with its settings")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> std::result::Result<HeadConfig, E> {
                HeadConfig::named(name).ok_or_else(|| E::unknown_variant(name, &HeadConfig::NAMES))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<HeadConfig, A::Error> {
                // The derived function, which knows tables alone.
                HeadConfig::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}

/// Adds the names of heads that have settings to a schema of tables.
fn or_a_name(schema: &mut Schema) {
    let names: Vec<&str> =
        HeadConfig::NAMES.into_iter().filter(|name| !["deterministic", "identity"].contains(name)).collect();
    let name = json!({ "enum": names, "description": "A name alone: the usual settings." });
    if let Some(forms) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        forms.push(name);
    }
}

fn positive(field: &'static str, value: f64) -> Result<()> {
    require(value.is_finite() && value > 0.0, field, value, "positive")
}

fn not_negative(field: &'static str, value: f64) -> Result<()> {
    require(value.is_finite() && value >= 0.0, field, value, "0 or more")
}

/// The settings of a stochastic head.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StochasticConfig {
    /// The rank of the covariance's factor; 0 makes all logits independent, the diagonal model.
    pub rank: i64,
    /// Added to every variance.
    pub epsilon: f64,
    /// Keeps the log-diagonal softly within ± this number; none by default, as in the paper.
    pub log_diagonal_limit: Option<f64>,
    /// Scales the standard deviations that the head begins with; 1 by default, as in the paper. A network that begins
    /// nearly certain learns in fewer steps, because all samples of a step then say something about its loss.
    pub initial_scale: f64,
}

impl Default for StochasticConfig {
    fn default() -> Self {
        Self { rank: PAPER_RANK, epsilon: EPSILON, log_diagonal_limit: None, initial_scale: 1.0 }
    }
}

/// The settings of a probabilistic U-Net.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProbUnetConfig {
    /// The number of latent variables.
    pub latent: i64,
    /// The weight of the divergence beside the cross-entropy, both summed over an image.
    pub kl_weight: f64,
}

impl Default for ProbUnetConfig {
    fn default() -> Self {
        Self { latent: 6, kl_weight: 1.0 }
    }
}

/// The settings of PHiSeg.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PhisegConfig {
    /// Levels with latent variables, the coarsest of the plan.
    pub latent_levels: usize,
    /// Latent variables at each voxel of a level.
    pub latent: i64,
    /// The weight of the divergences beside the cross-entropies, both summed over an image.
    pub kl_weight: f64,
}

impl Default for PhisegConfig {
    fn default() -> Self {
        Self { latent_levels: 5, latent: 2, kl_weight: 1.0 }
    }
}
