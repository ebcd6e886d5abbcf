//! Trained networks as files: bundles, TorchScript, and the authors' weights.

use std::path::{Path, PathBuf};

use serde::Serialize;
use ssn_eval::check_free;
use ssn_nn::weights::{self, ImportedModel, ModelMetadata, save, save_torchscript};
use ssn_nn::{Execution, Precision};
use ssn_train::run::{CheckpointChoice, TrainedModel};
use tch::Device;

use crate::error::{Error, ErrorKind, Result};

/// The format of an exported network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// A bundle that predictions need nothing else for.
    Safetensors,
    /// For other programs.
    TorchScript,
}

/// What was exported.
#[derive(Debug, Serialize)]
pub struct Exported {
    /// The file.
    pub written: PathBuf,
    /// The number of learned parameters.
    pub parameters: i64,
    /// What the network is for.
    pub about: ModelMetadata,
    /// The name of the model.
    #[serde(skip)]
    pub name: String,
    /// The size of the input along `d`, `h` and `w`.
    #[serde(skip)]
    pub patch: [i64; 3],
}

/// Makes one file of a trained network; without `out`, it is named after the run.
pub fn export(
    model: &Path,
    checkpoint: CheckpointChoice,
    format: ExportFormat,
    out: Option<PathBuf>,
    overwrite: bool,
) -> Result<Exported> {
    let trained = TrainedModel::open(model, checkpoint, Execution::on(Device::Cpu, Precision::F32))?;
    let ending = match format {
        ExportFormat::Safetensors => "safetensors",
        ExportFormat::TorchScript => "pt",
    };
    let about = trained.metadata.clone();
    let written = out.unwrap_or_else(|| PathBuf::from(format!("{}.{ending}", about.provenance.run)));
    check_free(&written, overwrite)?;
    let (parameters, name) = (trained.model.parameters().count(), trained.id().name);
    let patch = trained.model.config().backbone.input_size(about.patch.map(|n| n as i64))?;
    match format {
        ExportFormat::Safetensors => save(&written, &trained.model, Some(&about))?,
        ExportFormat::TorchScript => {
            let [d, h, w] = patch;
            save_torchscript(&written, trained.model, [1, about.channels.len() as i64, d, h, w])?;
        }
    }
    Ok(Exported { written, parameters, about, name, patch })
}

/// Makes a model file of weights that were trained with the authors' PyTorch code.
///
/// # Errors
/// When weights are missing: a network with holes would predict noise without saying so.
pub fn import(weights: &Path, out: &Path, overwrite: bool) -> Result<ImportedModel> {
    if out.exists() && !overwrite {
        let advice = "choose another name with --out, or replace it with --overwrite";
        return Err(Error::new(ErrorKind::Usage, format!("{} exists; {advice}", out.display())));
    }
    let imported = weights::import(weights, Execution::cpu(Precision::F32))
        .map_err(|error| Error::new(ErrorKind::BadData, error))?;
    if !imported.report.missing.is_empty() {
        let missing = imported.report.missing.join(", ");
        let message = format!("{}: it has no weights for {missing}", weights.display());
        return Err(Error::new(ErrorKind::BadData, message));
    }
    save(out, &imported.model, None)?;
    Ok(imported)
}
