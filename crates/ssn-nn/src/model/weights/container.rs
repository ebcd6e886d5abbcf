//! Tensors with a description in one safetensors file, and a hash of both.

use std::collections::HashMap;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssn_io::Error;
use ssn_io::hex::hex;
use tch::{Device, Kind, Tensor};

use crate::error::{NnError, Result};

/// The key of our metadata in the file; one key, because the order of several is not fixed.
const METADATA: &str = "ssn";
/// The version of the format.
const VERSION: u32 = 1;

/// What the metadata hold.
#[derive(Serialize, Deserialize)]
struct Envelope {
    version: u32,
    /// The description as JSON; its text is what is hashed.
    description: String,
    /// SHA-256 over the description and over name, type, shape and bytes of every tensor, in the order of their names.
    sha256: String,
}

/// One tensor in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTensor {
    /// Its name.
    pub name: String,
    /// The type of its numbers.
    pub kind: Dtype,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its numbers, little endian.
    pub bytes: Vec<u8>,
}

/// The bytes of a file; the same content gives the same bytes.
pub fn encode(
    description: &impl Serialize,
    mut tensors: Vec<StoredTensor>,
) -> std::result::Result<Vec<u8>, String> {
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let description = serde_json::to_string(description).map_err(|error| error.to_string())?;
    let sha256 = hash(&description, &tensors);
    let envelope = serde_json::to_string(&Envelope { version: VERSION, description, sha256 });
    let metadata = HashMap::from([(METADATA.to_owned(), envelope.map_err(|error| error.to_string())?)]);
    let views: std::result::Result<Vec<_>, _> = tensors
        .iter()
        .map(|t| Ok((t.name.as_str(), TensorView::new(t.kind, t.shape.clone(), &t.bytes)?)))
        .collect();
    views
        .and_then(|views| safetensors::serialize(views, Some(metadata)))
        .map_err(|error: safetensors::SafeTensorError| error.to_string())
}

/// The description and the tensors of a file, or what is wrong with it.
pub fn decode<Description: DeserializeOwned>(
    bytes: &[u8],
) -> std::result::Result<(Description, Vec<StoredTensor>), String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes)
        .map_err(|error| format!("it is no safetensors file ({error}); choose a file that ssn wrote"))?;
    let envelope = metadata.metadata().as_ref().and_then(|metadata| metadata.get(METADATA));
    let envelope = envelope.ok_or("it does not say what it holds; choose a file that ssn wrote")?;
    let unreadable = |error: serde_json::Error| format!("its description cannot be read: {error}");
    let Envelope { version, description, sha256 } = serde_json::from_str(envelope).map_err(unreadable)?;
    if version != VERSION {
        return Err(format!("its format has version {version}, but this program reads {VERSION}"));
    }
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut tensors: Vec<StoredTensor> = file
        .tensors()
        .into_iter()
        .map(|(name, view)| StoredTensor {
            name,
            kind: view.dtype(),
            shape: view.shape().to_vec(),
            bytes: view.data().to_vec(),
        })
        .collect();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    if hash(&description, &tensors) != sha256 {
        return Err("it is not what was saved (SHA-256 differs): copy it again".to_owned());
    }
    Ok((serde_json::from_str(&description).map_err(unreadable)?, tensors))
}

impl StoredTensor {
    /// A tensor's numbers, from whatever device.
    pub fn new(name: &str, tensor: &Tensor) -> Result<Self> {
        let tensor = tensor.f_detach()?.f_to_device(Device::Cpu)?.f_contiguous()?;
        let kind = match tensor.kind() {
            Kind::Double => Dtype::F64,
            Kind::Float => Dtype::F32,
            Kind::Int64 => Dtype::I64,
            kind => return Err(wrong_kind(format!("{kind:?}"))),
        };
        let mut bytes = vec![0; tensor.numel() * kind.bitsize() / 8];
        tensor.f_copy_data_u8(&mut bytes, tensor.numel())?;
        let shape = tensor.size().iter().map(|&n| n as usize).collect();
        Ok(Self { name: name.to_owned(), kind, shape, bytes })
    }

    /// The tensor, on a device.
    pub fn tensor(&self, device: Device) -> Result<Tensor> {
        let kind = match self.kind {
            Dtype::F64 => Kind::Double,
            Dtype::F32 => Kind::Float,
            Dtype::I64 => Kind::Int64,
            other => return Err(wrong_kind(format!("{other:?}"))),
        };
        let shape: Vec<i64> = self.shape.iter().map(|&n| n as i64).collect();
        Ok(Tensor::f_from_data_size(&self.bytes, &shape, kind)?.f_to_device(device)?)
    }
}

/// Tensors with their names, on a device.
pub fn named<'a>(
    stored: impl IntoIterator<Item = &'a StoredTensor>,
    device: Device,
) -> Result<Vec<(String, Tensor)>> {
    stored.into_iter().map(|stored| Ok((stored.name.clone(), stored.tensor(device)?))).collect()
}

fn wrong_kind(value: String) -> NnError {
    Error::setting("the type of a tensor", value, "F32, F64 or I64").into()
}

fn hash(description: &str, tensors: &[StoredTensor]) -> String {
    let mut digest = Sha256::new();
    digest.update(format!("{} {description}\n", description.len()));
    for StoredTensor { name, kind, shape, bytes } in tensors {
        digest.update(format!("{name} {kind:?} {shape:?}\n"));
        digest.update(bytes);
    }
    hex(&digest.finalize())
}
