//! A network as one file: weights and config.

use std::path::Path;

use safetensors::Dtype;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssn_data::text::hex;
use ssn_io::{Limits, read_bytes, write_atomically};

use super::about::About;
use super::assign;
use super::container::{Stored, decode, encode, named};
use crate::backbones::{Backbone, BackboneConfig, TorchScript, TorchScriptConfig};
use crate::error::{NnError, Result};
use crate::model::{Execution, Model, ModelConfig};

/// The name under which the file holds a foreign backbone, as a TorchScript file in bytes.
const FOREIGN: &str = "backbone.torchscript";

/// What the file says beside its tensors.
#[derive(Serialize, Deserialize)]
struct Description {
    model: ModelConfig,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<About>,
}

/// A network out of its file.
#[derive(Debug)]
pub struct Loaded {
    /// The network.
    pub model: Model,
    /// What else is known about it; checkpoints and imported weights do not say.
    pub about: Option<About>,
    /// SHA-256 of the file: the identity of the model.
    pub sha256: String,
}

/// Writes a network, atomically; replaces a file of that name. The same network gives the same bytes.
pub fn save(path: &Path, model: &Model, about: Option<&About>) -> Result<()> {
    let bytes = to_bytes(model, about)?;
    write_atomically(path, |out| out.write_all(&bytes))
        .map_err(|error| NnError::Save { path: path.to_owned(), source: error.source })
}

/// Reads a network. Nothing in the file is executed, unless its backbone is a foreign one.
///
/// # Errors
/// [`NnError::File`] when the file is not one of ours, is damaged, or is incomplete.
pub fn load(path: &Path, execution: Execution) -> Result<Loaded> {
    let problem = |reason: String| NnError::File { path: path.to_owned(), reason };
    let bytes = read_bytes(path, &Limits::default()).map_err(|error| problem(error.problem.to_string()))?;
    let (Description { model: config, about }, tensors) = decode(&bytes).map_err(problem)?;
    let foreign = tensors.iter().find(|stored| stored.name == FOREIGN).map(|stored| &stored.bytes);
    let model = Model::build(&config, execution, 0, |config, scope, channels| match (config, foreign) {
        (BackboneConfig::Torchscript(config), Some(bytes)) => {
            // Its errors name this file, which holds it now.
            let config = TorchScriptConfig { torchscript: path.to_owned(), ..config.clone() };
            Ok(Backbone::Torchscript(TorchScript::from_bytes(scope, &config, bytes)?))
        }
        (BackboneConfig::Torchscript(_), None) => {
            Err(problem(format!("it has no tensor {FOREIGN}, which its network needs")))
        }
        (config, _) => config.build(scope, channels),
    })?;
    let weights = named(tensors.iter().filter(|stored| stored.name != FOREIGN), execution.device)?;
    let report = assign(model.parameters(), &weights)?;
    let missing = report.missing.iter().find(|name| foreign.is_none() || !name.starts_with("backbone."));
    if let Some(name) = missing {
        return Err(problem(format!("it has no tensor {name}, which its network needs")));
    }
    if let Some(name) = report.unexpected.first() {
        return Err(problem(format!("it has a tensor {name}, which its network does not know")));
    }
    Ok(Loaded { model, about, sha256: hex(&Sha256::digest(&bytes)) })
}

/// The bytes of a network's file.
pub fn to_bytes(model: &Model, about: Option<&About>) -> Result<Vec<u8>> {
    let mut tensors = vec![];
    let foreign = match model.backbone() {
        Some(Backbone::Torchscript(backbone)) => {
            let bytes = backbone.to_bytes()?;
            let shape = vec![bytes.len()];
            tensors.push(Stored { name: FOREIGN.to_owned(), kind: Dtype::U8, shape, bytes });
            true
        }
        _ => false,
    };
    for entry in model.parameters().entries() {
        // A foreign backbone's tensors are inside its own file.
        if !(foreign && entry.name.starts_with("backbone.")) {
            tensors.push(Stored::new(&entry.name, &entry.tensor)?);
        }
    }
    let problem = |reason| NnError::File { path: "the model".into(), reason };
    encode(&Description { model: model.config().clone(), about: about.cloned() }, tensors).map_err(problem)
}
