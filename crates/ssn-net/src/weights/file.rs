//! A network as one safetensors file: weights, config, and a hash of both.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssn_volume::{Limits, read_bytes, write_atomically};
use tch::{Device, Kind, Tensor};

use super::assign;
use crate::backbones::{Backbone, BackboneConfig, TorchScript, TorchScriptConfig};
use crate::error::{NetError, Result};
use crate::model::{Execution, Model, ModelConfig};

/// The key of our metadata in the file.
const METADATA: &str = "ssn";
/// The version of the format.
const VERSION: u32 = 1;
/// The name under which the file holds a foreign backbone, as a TorchScript file in bytes.
const FOREIGN: &str = "backbone.torchscript";

/// What the file says beside its tensors.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    version: u32,
    model: ModelConfig,
    /// SHA-256 over the config and over name, type, shape and bytes of every tensor, in the order of their names.
    sha256: String,
}

/// One tensor in bytes.
struct Stored {
    name: String,
    kind: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Writes a network, atomically; replaces a file of that name. The same network gives the same bytes.
pub fn save(path: &Path, model: &Model) -> Result<()> {
    let mut tensors = vec![];
    let foreign = match model.backbone() {
        Backbone::Torchscript(backbone) => {
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
            tensors.push(stored(&entry.name, &entry.tensor)?);
        }
    }
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let problem = |reason: String| NetError::File { path: path.to_owned(), reason };
    let sha256 = hash(
        model.config(),
        tensors.iter().map(|t| (t.name.as_str(), t.kind, t.shape.as_slice(), t.bytes.as_slice())),
    );
    let header = Header { version: VERSION, model: model.config().clone(), sha256 };
    let header = serde_json::to_string(&header).map_err(|error| problem(error.to_string()))?;
    let views: std::result::Result<Vec<_>, _> = tensors
        .iter()
        .map(|t| Ok((t.name.as_str(), TensorView::new(t.kind, t.shape.clone(), &t.bytes)?)))
        .collect();
    let bytes = views
        .and_then(|views| safetensors::serialize(views, Some(HashMap::from([(METADATA.to_owned(), header)]))))
        .map_err(|error: safetensors::SafeTensorError| problem(error.to_string()))?;
    write_atomically(path, |out| out.write_all(&bytes)).map_err(|error| problem(error.source.to_string()))
}

/// Reads a network. Nothing in the file is executed, unless its backbone is a foreign one.
///
/// # Errors
/// [`NetError::File`] when the file is not one of ours, is damaged, or is incomplete.
pub fn load(path: &Path, execution: Execution) -> Result<Model> {
    let problem = |reason: String| NetError::File { path: path.to_owned(), reason };
    let bytes = read_bytes(path, &Limits::default()).map_err(|error| problem(error.problem.to_string()))?;
    let no_model = |what: String| problem(format!("{what}; a model is a .safetensors file that ssn wrote"));
    let (_, metadata) = SafeTensors::read_metadata(&bytes)
        .map_err(|error| no_model(format!("it is no safetensors file ({error})")))?;
    let header = metadata.metadata().as_ref().and_then(|metadata| metadata.get(METADATA));
    let header = header.ok_or_else(|| no_model("it does not say which network it holds".to_owned()))?;
    let header: Header = serde_json::from_str(header)
        .map_err(|error| problem(format!("its description of the network cannot be read: {error}")))?;
    if header.version != VERSION {
        let found = header.version;
        return Err(problem(format!("its format has version {found}, but this program reads {VERSION}")));
    }
    let file = SafeTensors::deserialize(&bytes).map_err(|error| problem(error.to_string()))?;
    let mut views = file.tensors();
    views.sort_by(|a, b| a.0.cmp(&b.0));
    let found = hash(
        &header.model,
        views.iter().map(|(name, view)| (name.as_str(), view.dtype(), view.shape(), view.data())),
    );
    if found != header.sha256 {
        return Err(problem("it is not what was saved (SHA-256 differs): copy it again".to_owned()));
    }
    let foreign = views.iter().find(|(name, _)| name == FOREIGN).map(|(_, view)| view.data());
    let model =
        Model::build(&header.model, execution, 0, |config, scope, channels| match (config, foreign) {
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
    let mut tensors = vec![];
    for (name, view) in views.iter().filter(|(name, _)| name != FOREIGN) {
        tensors.push((name.clone(), tensor(view, execution.device)?));
    }
    let report = assign(model.parameters(), &tensors)?;
    let missing = report.missing.iter().find(|name| foreign.is_none() || !name.starts_with("backbone."));
    if let Some(name) = missing {
        return Err(problem(format!("it has no tensor {name}, which its network needs")));
    }
    if let Some(name) = report.unexpected.first() {
        return Err(problem(format!("it has a tensor {name}, which its network does not know")));
    }
    Ok(model)
}

fn stored(name: &str, tensor: &Tensor) -> Result<Stored> {
    let tensor = tensor.f_detach()?.f_to_device(Device::Cpu)?.f_contiguous()?;
    let kind = match tensor.kind() {
        Kind::Double => Dtype::F64,
        Kind::Float => Dtype::F32,
        kind => {
            let (field, expected) = ("the type of a weight", "Float or Double");
            return Err(NetError::Parameter { field, value: format!("{kind:?}"), expected });
        }
    };
    let mut bytes = vec![0; tensor.numel() * kind.bitsize() / 8];
    tensor.f_copy_data_u8(&mut bytes, tensor.numel())?;
    Ok(Stored {
        name: name.to_owned(),
        kind,
        shape: tensor.size().iter().map(|&n| n as usize).collect(),
        bytes,
    })
}

fn tensor(view: &TensorView, device: Device) -> Result<Tensor> {
    let kind = match view.dtype() {
        Dtype::F64 => Kind::Double,
        Dtype::F32 => Kind::Float,
        other => {
            let (field, expected) = ("the type of a weight", "F32 or F64");
            return Err(NetError::Parameter { field, value: format!("{other:?}"), expected });
        }
    };
    let shape: Vec<i64> = view.shape().iter().map(|&n| n as i64).collect();
    Ok(Tensor::f_from_data_size(view.data(), &shape, kind)?.f_to_device(device)?)
}

fn hash<'a>(
    config: &ModelConfig,
    tensors: impl Iterator<Item = (&'a str, Dtype, &'a [usize], &'a [u8])>,
) -> String {
    let mut digest = Sha256::new();
    digest.update(format!("{config:?}\n"));
    for (name, kind, shape, bytes) in tensors {
        digest.update(format!("{name} {kind:?} {shape:?}\n"));
        digest.update(bytes);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
