//! The authors' published weights: state dicts of their DeepMedic, deterministic and stochastic.
//!
//! The network is read off the names and shapes; the pickle inside the file is read as data and never executed.

use std::path::Path;

use ssn_io::{Array, Limits, Voxels, read_bytes, torch_file};
use tch::{Kind, Tensor};

use super::{LoadReport, assign};
use crate::backbones::{BackboneConfig, DeepMedicConfig, DeepMedicOutput};
use crate::error::{NnError, Result};
use crate::heads::{HeadConfig, StochasticConfig};
use crate::model::{Execution, Model, ModelConfig};
use crate::space::Size;

/// Dropout before the 1×1×1 blocks in the authors' code; state dicts do not say it.
const DROPOUT: f64 = 0.5;

/// The authors' names of the heads, and ours.
const HEADS: [(&str, &str); 3] =
    [("mean_l.", "head.mean."), ("log_cov_diag_l.", "head.log_diagonal."), ("cov_factor_l.", "head.factor.")];

/// Counters that PyTorch keeps and nothing here needs.
const IGNORED: &str = ".num_batches_tracked";

/// A network made of imported weights.
#[derive(Debug)]
pub struct ImportedModel {
    /// The network.
    pub model: Model,
    /// What became of the tensors of the file.
    pub report: LoadReport,
}

/// Reads the authors' `.pt` file of a DeepMedic.
pub fn import(path: &Path, execution: Execution) -> Result<ImportedModel> {
    let problem = |reason: String| NnError::file(path, reason);
    let limits = Limits::default();
    let bytes = read_bytes(path, &limits).map_err(|error| problem(error.problem.to_string()))?;
    let tensors = torch_file::parse(&bytes, &limits).map_err(|error| problem(error.to_string()))?;
    let config = config_of(&tensors).map_err(problem)?;
    let planar = config.dimensions == 2;
    let model = Model::new(&config.model, execution, 0)?;
    let mut renamed = vec![];
    let mut unexpected = vec![];
    for (name, array) in tensors.iter().filter(|(name, _)| !name.ends_with(IGNORED)) {
        match our_name(name) {
            Some(name) => renamed.push((name, tensor(array, planar)?)),
            None => unexpected.push(name.clone()),
        }
    }
    let mut report = assign(model.parameters(), &renamed)?;
    report.unexpected.extend(unexpected);
    Ok(ImportedModel { model, report })
}

struct Found {
    model: ModelConfig,
    dimensions: usize,
}

/// The network whose state dict this is, or why it is none of the authors'.
fn config_of(tensors: &[(String, Array)]) -> std::result::Result<Found, String> {
    let unknown = "the names of its tensors are not those of the authors' DeepMedic; for other networks, export \
                   TorchScript and use it as backbone";
    let shape = |name: &str| tensors.iter().find(|(found, _)| found == name).map(|(_, array)| &array.shape);
    let mut scales: Vec<(usize, Size)> = vec![];
    for (name, _) in tensors {
        if let Some((scale, path, 1, "conv.weight")) = path_of(name) {
            scales.push((path, scale));
        }
    }
    scales.sort_unstable();
    let prefix = |path: usize| tensors.iter().find_map(|(name, _)| path_prefix(name, path));
    let first = prefix(0).ok_or(unknown)?;
    // Every layer takes what the one before it gives: nothing is allocated for widths that only a name claims.
    let chained = |prefix: &str, from: usize, mut inputs: Option<usize>| {
        let mut shapes: Vec<&Vec<usize>> = vec![];
        for (name, shape) in (from..).map_while(|k| {
            let name = format!("{prefix}{k}.conv.weight");
            shape(&name).map(|shape| (name, shape))
        }) {
            if !(4..=5).contains(&shape.len()) || inputs.is_some_and(|inputs| shape[1] != inputs) {
                let found =
                    inputs.map_or(String::new(), |inputs| format!(" after a layer with {inputs} channels"));
                return Err(format!(
                    "{name} has shape {shape:?}{found}, so it is not the authors' DeepMedic"
                ));
            }
            inputs = Some(shape[0]);
            shapes.push(shape);
        }
        Ok(shapes)
    };
    let blocks = chained(&first, 1, None)?;
    let dimensions = blocks.first().ok_or(unknown)?.len() - 2;
    for path in 1..scales.len() {
        let shapes = chained(&prefix(path).ok_or(unknown)?, 1, None)?;
        if shapes != blocks {
            return Err(format!(
                "path {path} has other layers than path 0, so it is not the authors' DeepMedic"
            ));
        }
    }
    let joined = blocks.last().map_or(0, |shape| shape[0]) * scales.len();
    let fully_connected = chained("fully_connected.", 0, Some(joined))?;
    let mut fully_connected: Vec<i64> = fully_connected.iter().map(|shape| shape[0] as i64).collect();
    let last = fully_connected.pop().ok_or(unknown)?;
    let mut dropout = vec![DROPOUT; fully_connected.len() + 1];
    dropout[0] = 0.0;
    let length = |name: &str| shape(name).map(|shape| shape.first().map_or(0, |&n| n as i64));
    let (classes, rank) = (length("mean_l.bias"), length("cov_factor_l.bias").unwrap_or(0));
    let (output, head) = match classes {
        Some(classes) if classes < 1 || rank % classes != 0 => {
            return Err(format!(
                "its factor has {rank} channels for {classes} classes, which is no whole rank"
            ));
        }
        Some(classes) => (
            DeepMedicOutput::Features(last),
            HeadConfig::Stochastic(StochasticConfig { rank: rank / classes, ..StochasticConfig::default() }),
        ),
        None => (DeepMedicOutput::Logits(last), HeadConfig::Identity),
    };
    let kernel = blocks[0][2..].iter().map(|&k| k as i64);
    let backbone = DeepMedicConfig {
        scales: scales.into_iter().map(|(_, scale)| scale).collect(),
        feature_maps: blocks.iter().map(|shape| shape[0] as i64).collect(),
        kernel: three(kernel, 1),
        fully_connected,
        dropout,
        output,
    };
    Ok(Found {
        model: ModelConfig {
            channels: blocks[0][1] as i64,
            classes: classes.unwrap_or(last),
            backbone: BackboneConfig::Deepmedic(backbone),
            head,
        },
        dimensions,
    })
}

/// `path(5, 5, 5)0.path.1.conv.weight` as scale, path, block from 1, and the rest.
fn path_of(name: &str) -> Option<(Size, usize, usize, &str)> {
    let (scale, rest) = name.strip_prefix("path(")?.split_once(')')?;
    let scale = scale.split(',').map(|s| s.trim().parse().ok()).collect::<Option<Vec<i64>>>()?;
    if !(2..=3).contains(&scale.len()) {
        return None;
    }
    let (path, rest) = rest.split_once(".path.")?;
    let (block, rest) = rest.split_once('.')?;
    Some((three(scale.into_iter(), 1), path.parse().ok()?, block.parse().ok()?, rest))
}

/// `path(5, 5, 5)0.path.`, if the name belongs to that path.
fn path_prefix(name: &str, path: usize) -> Option<String> {
    let (_, found, _, _) = path_of(name)?;
    let end = name.find(".path.")? + ".path.".len();
    (found == path).then(|| name[..end].to_owned())
}

/// Two or three numbers along the axes of space, with one for the depth of 2D images.
fn three(numbers: impl Iterator<Item = i64>, depth: i64) -> Size {
    let mut numbers: Vec<i64> = numbers.collect();
    while numbers.len() < 3 {
        numbers.insert(0, depth);
    }
    [numbers[0], numbers[1], numbers[2]]
}

/// Our name of a tensor of the authors' network.
pub fn our_name(name: &str) -> Option<String> {
    if let Some((_, path, block, rest)) = path_of(name) {
        return Some(format!("backbone.path.{path}.{}.{rest}", block.checked_sub(1)?));
    }
    if name.starts_with("fully_connected.") {
        return Some(format!("backbone.{name}"));
    }
    HEADS.iter().find_map(|(theirs, ours)| Some(format!("{ours}{}", name.strip_prefix(theirs)?)))
}

/// The tensor in our shape: kernels of 2D networks get an axis of depth 1.
fn tensor(array: &Array, planar: bool) -> Result<Tensor> {
    let tensor = match &array.voxels {
        Voxels::F32(values) => Tensor::f_from_slice(values)?,
        values => Tensor::f_from_slice(&values.scaled_f64(1.0, 0.0))?.f_to_kind(Kind::Double)?,
    };
    let shape: Vec<i64> = array.shape.iter().map(|&n| n as i64).collect();
    let tensor = tensor.f_reshape(&shape)?;
    Ok(if planar && shape.len() == 4 { tensor.f_unsqueeze(2)? } else { tensor })
}
