//! Weights in and out: by name into a network, as our own files, and from the authors'.

mod about;
mod authors;
pub mod container;
mod file;
mod torchscript;

pub use about::{About, Provenance};
pub use authors::{Imported, import, our_name};
pub use file::{Loaded, load, save, to_bytes};
pub use torchscript::save_torchscript;

use tch::Tensor;

use crate::error::{NnError, Result};
use crate::parameters::Parameters;

/// What became of the tensors of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Tensors that were taken over, by their names in the network.
    pub matched: Vec<String>,
    /// Tensors of the network that the file does not have; they keep their values.
    pub missing: Vec<String>,
    /// Tensors of the file that the network does not have, by their names in the file.
    pub unexpected: Vec<String>,
}

impl Report {
    /// Whether file and network have the same tensors.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty()
    }
}

/// Copies tensors by name into a network. Nothing is changed if a shape does not fit.
///
/// # Errors
/// [`NnError::Weights`] for the first tensor whose shape is not that of the network's.
pub fn assign(parameters: &Parameters, tensors: &[(String, Tensor)]) -> Result<Report> {
    let mut report = Report::default();
    for (name, tensor) in tensors {
        match parameters.get(name) {
            None => report.unexpected.push(name.clone()),
            Some(place) if place.size() != tensor.size() => {
                return Err(NnError::Weights {
                    layer: name.clone(),
                    found: tensor.size(),
                    expected: place.size(),
                    advice: setting_of(name).to_owned(),
                });
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
