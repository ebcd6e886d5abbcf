//! Weights in and out: by name into a network, as our own files, as TorchScript, and from the authors' files.

mod authors;
pub mod container;

use std::path::Path;

use safetensors::Dtype;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssn_io::hex::hex;
use ssn_io::{Error, Limits, read_bytes, write_atomically};
use tch::{CModule, Kind, Tensor};

pub use authors::{ImportedModel, import, our_name};
use container::{StoredTensor, decode, encode, named};

use crate::backbones::{Backbone, BackboneConfig};
use crate::error::{NnError, Result};
use crate::heads::Prediction;
use crate::layers::Mode;
use crate::model::{Execution, Model, ModelConfig};
use crate::parameters::Parameters;

/// What became of the tensors of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Tensors that were taken over, by their names in the network.
    pub matched: Vec<String>,
    /// Tensors of the network that the file does not have; they keep their values.
    pub missing: Vec<String>,
    /// Tensors of the file that the network does not have, by their names in the file.
    pub unexpected: Vec<String>,
}

impl LoadReport {
    /// Whether file and network have the same tensors.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty()
    }
}

/// Copies tensors by name into a network. Nothing is changed if a shape does not fit.
///
/// # Errors
/// An error for the first tensor whose shape is not that of the network's.
pub fn assign(parameters: &Parameters, tensors: &[(String, Tensor)]) -> Result<LoadReport> {
    let mut report = LoadReport::default();
    for (name, tensor) in tensors {
        match parameters.get(name) {
            None => report.unexpected.push(name.clone()),
            Some(place) if place.size() != tensor.size() => {
                let (found, expected) = (tensor.size(), place.size());
                let reason =
                    format!("{name} has shape {found:?} in the file and {expected:?} in the network");
                return Err(Error::mismatch(reason).advise(setting_of(name)).into());
            }
            Some(_) => report.matched.push(name.clone()),
        }
    }
    let given = |name: &str| tensors.iter().any(|(given, _)| given == name);
    let names = parameters.entries().iter().map(|entry| &entry.name);
    report.missing = names.filter(|name| !given(name)).cloned().collect();
    tch::no_grad(|| {
        for (name, tensor) in tensors {
            if let Some(place) = parameters.get(name) {
                place.shallow_clone().f_copy_(tensor)?;
            }
        }
        parameters.refresh()?;
        Ok(report)
    })
}

/// The settings that the shape of a tensor depends on.
fn setting_of(name: &str) -> &'static str {
    if name.starts_with("head.factor") {
        "set head.rank and classes as they were when the weights were trained"
    } else if name.starts_with("head.") {
        "set classes and the backbone's features as they were when the weights were trained"
    } else {
        "set channels and the widths and kernels of the backbone as they were when the weights were trained"
    }
}

/// The name under which the file holds the program of a backbone.
const PROGRAM: &str = "backbone.torchscript";

/// The description in the file, in front of its tensors.
#[derive(Serialize, Deserialize)]
struct Description<M> {
    model: ModelConfig,
    #[serde(rename = "about", default = "Option::default", skip_serializing_if = "Option::is_none")]
    metadata: Option<M>,
}

/// A network out of its file.
#[derive(Debug)]
pub struct LoadedModel<M> {
    /// The network.
    pub model: Model,
    /// The metadata that it was saved with.
    pub metadata: Option<M>,
    /// SHA-256 of the file: the identity of the model.
    pub sha256: String,
}

/// Writes a network, atomically; replaces a file of that name. The same network gives the same bytes.
pub fn save(path: &Path, model: &Model) -> Result<()> {
    save_with(path, model, None::<&()>)
}

/// Writes a network like [`save`], with metadata of the caller.
pub fn save_with<M: Serialize>(path: &Path, model: &Model, metadata: Option<&M>) -> Result<()> {
    let bytes = to_bytes(model, metadata)?;
    write_atomically(path, |out| out.write_all(&bytes)).map_err(|error| NnError::unsaved(path, error.source))
}

/// Reads a network. Nothing in the file is executed, unless its backbone is TorchScript.
///
/// # Errors
/// A file that is not one of ours, is damaged, or is incomplete.
pub fn load<M: DeserializeOwned>(path: &Path, execution: Execution) -> Result<LoadedModel<M>> {
    let problem = |reason: String| NnError::file(path, reason);
    let bytes = read_bytes(path, &Limits::default()).map_err(|error| problem(error.problem.to_string()))?;
    let (Description { model: config, metadata }, tensors) = decode(&bytes).map_err(problem)?;
    let program = tensors.iter().find(|stored| stored.name == PROGRAM).map(|stored| stored.bytes.as_slice());
    if program.is_none() && matches!(config.backbone, BackboneConfig::Torchscript(_)) {
        return Err(problem(format!("it has no tensor {PROGRAM}, which its network needs")));
    }
    let model = Model::build(&config, execution, 0, program.map(|program| (program, path)))?;
    let weights = named(tensors.iter().filter(|stored| stored.name != PROGRAM), execution.device)?;
    let report = assign(model.parameters(), &weights)?;
    let missing = report.missing.iter().find(|name| program.is_none() || !name.starts_with("backbone."));
    if let Some(name) = missing {
        return Err(problem(format!("it has no tensor {name}, which its network needs")));
    }
    if let Some(name) = report.unexpected.first() {
        return Err(problem(format!("it has a tensor {name}, which its network does not know")));
    }
    Ok(LoadedModel { model, metadata, sha256: hex(&Sha256::digest(&bytes)) })
}

/// The bytes of a network's file.
pub fn to_bytes<M: Serialize>(model: &Model, metadata: Option<&M>) -> Result<Vec<u8>> {
    let mut tensors = vec![];
    let program = model.backbone().map(Backbone::program).transpose()?.flatten();
    let has_program = program.is_some();
    if let Some(bytes) = program {
        let shape = vec![bytes.len()];
        tensors.push(StoredTensor { name: PROGRAM.to_owned(), kind: Dtype::U8, shape, bytes });
    }
    for entry in model.parameters().entries() {
        // The program has the tensors of the backbone.
        if !(has_program && entry.name.starts_with("backbone.")) {
            tensors.push(StoredTensor::new(&entry.name, &entry.tensor)?);
        }
    }
    let problem = |reason| NnError::file(Path::new("the model"), reason);
    encode(&Description { model: model.config().clone(), metadata }, tensors).map_err(problem)
}

/// Writes what a network does in evaluation, atomically.
///
/// The module takes an image of exactly this shape. Weights are constants of it.
///
/// # Shapes
/// `image` `[b, c, d, h, w]` → `[b, (2 + r)·c, v]`: c rows of the mean, c of the diagonal, r·c of the factor, the rank
/// running slowest; or `[b, c, v]` of logits where there is no distribution.
pub fn save_torchscript(path: &Path, model: Model, image: [i64; 5]) -> Result<()> {
    let execution = model.execution();
    for entry in model.parameters().entries() {
        // A constant cannot ask for its gradient.
        let _ = entry.tensor.set_requires_grad(false);
    }
    let input = Tensor::f_zeros(image, (Kind::Float, execution.device))?;
    let mut failed = None;
    let mut forward = |inputs: &[Tensor]| match rows(&model, &inputs[0]) {
        Ok(rows) => vec![rows],
        Err(error) => {
            failed = Some(error);
            vec![inputs[0].shallow_clone()]
        }
    };
    let module = tch::no_grad(|| CModule::create_by_tracing("ssn", "forward", &[input], &mut forward))?;
    if let Some(error) = failed {
        return Err(error);
    }
    let save = |source| NnError::unsaved(path, source);
    let folder = tempfile::tempdir().map_err(save)?;
    let aside = folder.path().join("module.pt");
    module.save(&aside)?;
    let bytes = ssn_io::read_file(&aside).map_err(save)?;
    write_atomically(path, |out| out.write_all(&bytes)).map_err(|error| save(error.source))
}

/// The output of a network for an image, as rows of voxels.
fn rows(model: &Model, image: &Tensor) -> Result<Tensor> {
    Ok(match model.forward(image, None, Mode::Evaluation)? {
        Prediction::Deterministic(logits) => logits,
        Prediction::Stochastic(distribution) => {
            let [mean, diagonal, factor] = distribution.parts();
            Tensor::f_cat(&[mean, diagonal, &factor.f_flatten(1, 2)?], 1)?
        }
    })
}
