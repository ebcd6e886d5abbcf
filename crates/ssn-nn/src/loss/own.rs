//! Losses from outside this crate, known by a name in configs.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::{PoisonError, RwLock};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tch::Tensor;

use super::Target;
use crate::distribution::LowRankNormalTensors;
use crate::error::{Result, refused};
use crate::random::NoiseSource;

/// A loss of the distribution that a stochastic head predicts.
///
/// ```
/// use ssn_nn::loss::{Loss, OwnLoss, register_loss};
/// use ssn_nn::{LowRankNormalTensors, NoiseSource, Result, Target};
/// use tch::{Kind, Tensor};
///
/// /// The negative log-likelihood of the paper.
/// #[derive(Debug)]
/// struct Likelihood;
///
/// impl Loss for Likelihood {
///     fn loss(&self, distribution: &LowRankNormalTensors, target: &Target, noise: NoiseSource<'_>) -> Result<Tensor> {
///         let samples = distribution.sample(&noise.draws(0..noise.draw_count()?)?)?; // [m, b, c, v]
///         let log_p = target.log_probability(&samples)?; // [m, b, t]
///         let m = log_p.size()[0] as f64;
///         let each = m.ln() - log_p.logsumexp([0i64].as_slice(), false); // [b, t]
///         Ok(each.mean_dim([1i64].as_slice(), false, None::<Kind>))
///     }
///
///     fn can_be_captured(&self) -> bool {
///         true
///     }
/// }
///
/// register_loss("my-likelihood", Likelihood)?;
/// let own: OwnLoss = serde_json::from_str("\"my-likelihood\"")?; // in a config: loss.own = "my-likelihood"
/// assert_eq!(own.name(), "my-likelihood");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Loss: Debug + Send + Sync {
    /// Computes the loss of each image of a batch.
    ///
    /// Randomness comes from `noise` alone, so that steps repeat and resume; it has the same numbers on CPUs and GPUs.
    ///
    /// # Shapes
    /// The distribution's mean `[b, c, v]`, the target's maps `[b, t, v]` → `[b]` in double precision, with gradients.
    fn loss(
        &self,
        distribution: &LowRankNormalTensors,
        target: &Target,
        noise: NoiseSource<'_>,
    ) -> Result<Tensor>;

    /// Returns `true` if a step can be captured as a CUDA graph: the loss waits for no GPU, copies nothing to the host, and
    /// has shapes and control flow that depend on no value.
    fn can_be_captured(&self) -> bool {
        false
    }
}

static REGISTRY: RwLock<Vec<OwnLoss>> = RwLock::new(vec![]);

/// Adds a loss to those that configs can name: `loss.own = "NAME"`. It stays until the program ends.
///
/// # Errors
/// A name that is taken.
pub fn register_loss(name: &'static str, loss: impl Loss + 'static) -> Result<()> {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    if registry.iter().any(|known| known.name == name) {
        return refused("the name of a loss", format!("`{name}`"), "one that no other loss has");
    }
    registry.push(OwnLoss { name, loss: Box::leak(Box::new(loss)) });
    Ok(())
}

/// A registered loss. In configs it is its name.
#[derive(Debug, Clone, Copy)]
pub struct OwnLoss {
    name: &'static str,
    loss: &'static dyn Loss,
}

impl OwnLoss {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns the loss.
    pub fn loss(self) -> &'static dyn Loss {
        self.loss
    }
}

impl PartialEq for OwnLoss {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Serialize for OwnLoss {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for OwnLoss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
        registry.iter().find(|known| known.name == name).copied().ok_or_else(|| {
            let names: Vec<String> = registry.iter().map(|known| format!("`{}`", known.name)).collect();
            let known = match names.is_empty() {
                true => "this program has registered none".to_owned(),
                false => format!("expected one of {}", names.join(", ")),
            };
            serde::de::Error::custom(format!("unknown loss `{name}`, {known}"))
        })
    }
}

impl JsonSchema for OwnLoss {
    fn schema_name() -> Cow<'static, str> {
        "OwnLoss".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}
