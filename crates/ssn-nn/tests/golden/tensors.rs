//! The tensors of a file of golden values.

use std::collections::HashMap;
use std::error::Error;

use safetensors::{Dtype, SafeTensors};
use tch::{Kind, Tensor};

/// Each by its name.
pub fn tensors(bytes: &[u8]) -> Result<HashMap<String, Tensor>, Box<dyn Error>> {
    let mut tensors = HashMap::new();
    for (name, view) in SafeTensors::deserialize(bytes)?.tensors() {
        let kind = match view.dtype() {
            Dtype::F64 => Kind::Double,
            Dtype::F32 => Kind::Float,
            Dtype::I32 => Kind::Int,
            other => return Err(format!("{name} has the type {other:?}").into()),
        };
        let shape: Vec<i64> = view.shape().iter().map(|&n| n as i64).collect();
        tensors.insert(name, Tensor::f_from_data_size(view.data(), &shape, kind)?);
    }
    Ok(tensors)
}
