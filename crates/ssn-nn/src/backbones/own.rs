//! Backbones from outside this crate, known by a name in configs.

use std::any::TypeId;
use std::sync::{Arc, PoisonError, RwLock};

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::BackbonePlan;
use crate::error::{Result, refused};

/// The names that configs use for the backbones of this crate.
pub(super) const BUILT_IN: [&str; 4] = ["unet", "deepmedic", "torchscript", "features"];

type Parse = fn(&Value) -> std::result::Result<(Arc<dyn BackbonePlan>, Value), String>;

struct Registered {
    name: &'static str,
    plan: TypeId,
    parse: Parse,
}

static REGISTRY: RwLock<Vec<Registered>> = RwLock::new(vec![]);

/// Adds a backbone to those that configs can name: `backbone = { NAME = { … } }`.
///
/// Call it at the start of a program, before it reads a config, a run or a bundle. Keys of the settings that `P` does not have
/// are refused.
///
/// # Errors
/// A name that is taken.
pub fn register<P>(name: &'static str) -> Result<()>
where
    P: BackbonePlan + Serialize + DeserializeOwned + 'static,
{
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    if BUILT_IN.contains(&name) || registry.iter().any(|known| known.name == name) {
        return refused("the name of a backbone", format!("`{name}`"), "one that no other backbone has");
    }
    registry.push(Registered { name, plan: TypeId::of::<P>(), parse: parse::<P> });
    Ok(())
}

/// Returns the names of registered backbones.
pub fn registered() -> Vec<&'static str> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).iter().map(|known| known.name).collect()
}

fn parse<P>(settings: &Value) -> std::result::Result<(Arc<dyn BackbonePlan>, Value), String>
where
    P: BackbonePlan + Serialize + DeserializeOwned + 'static,
{
    let plan: P = serde_json::from_value(settings.clone()).map_err(|error| error.to_string())?;
    let complete = serde_json::to_value(&plan).map_err(|error| error.to_string())?;
    if let (Value::Object(given), Value::Object(known)) = (settings, &complete)
        && let Some(key) = given.keys().find(|key| !known.contains_key(*key))
    {
        let names: Vec<String> = known.keys().map(|name| format!("`{name}`")).collect();
        return Err(format!("unknown field `{key}`, expected one of {}", names.join(", ")));
    }
    Ok((Arc::new(plan), without_nulls(complete)))
}

/// Removes keys without a value, which TOML cannot have.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        other => other,
    }
}

/// A backbone that a program registered, with its settings.
#[derive(Debug, Clone)]
pub struct OwnBackbone {
    name: &'static str,
    /// The settings as configs and models keep them.
    settings: Value,
    plan: Arc<dyn BackbonePlan>,
}

impl OwnBackbone {
    /// Reads the settings of the backbone called `name`; returns `None` if none is registered by that name.
    pub(super) fn read(name: &str, settings: &Value) -> Option<std::result::Result<Self, String>> {
        let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
        let known = registry.iter().find(|known| known.name == name)?;
        Some((known.parse)(settings).map(|(plan, settings)| Self { name: known.name, settings, plan }))
    }

    /// Wraps the settings of a registered backbone.
    pub(super) fn of<P: BackbonePlan + Serialize + 'static>(plan: P) -> Result<Self> {
        let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
        let type_name = std::any::type_name::<P>();
        let Some(known) = registry.iter().find(|known| known.plan == TypeId::of::<P>()) else {
            let expected = "registered before it is used, so that its runs can be read again (`register`)";
            return refused("the backbone", type_name, expected);
        };
        match serde_json::to_value(&plan) {
            Ok(settings) => {
                Ok(Self { name: known.name, settings: without_nulls(settings), plan: Arc::new(plan) })
            }
            Err(error) => refused("the backbone", format!("{type_name} ({error})"), "serializable"),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn plan(&self) -> &dyn BackbonePlan {
        &*self.plan
    }
}

impl PartialEq for OwnBackbone {
    fn eq(&self, other: &Self) -> bool {
        (self.name, &self.settings) == (other.name, &other.settings)
    }
}

impl Serialize for OwnBackbone {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map([(self.name, &self.settings)])
    }
}
