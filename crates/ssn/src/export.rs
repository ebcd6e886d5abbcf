//! Trained networks as files: bundles, TorchScript, and the authors' weights.

use std::path::PathBuf;

use serde::Serialize;
use ssn_args::{ExportConfig, ExportFormat, ImportConfig};
use ssn_eval::check_free;
use ssn_nn::weights::{self, ImportedModel, save_torchscript, save_with};
use ssn_nn::{Execution, Model, Precision};
use ssn_train::run::{ModelMetadata, Provenance, TrainedModel};
use tch::Device;

use crate::error::{Error, Result};

/// The edge of the patches that the authors' networks predict at once in training.
const AUTHORS_PATCH: usize = 30;

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
pub fn export(config: &ExportConfig) -> Result<Exported> {
    let execution = Execution::on(Device::Cpu, Precision::F32);
    let trained = TrainedModel::open(&config.model, config.checkpoint, execution)?;
    let ending = match config.format {
        ExportFormat::Safetensors => "safetensors",
        ExportFormat::TorchScript => "pt",
    };
    let about = trained.metadata.clone();
    let named = || PathBuf::from(format!("{}.{ending}", about.provenance.run));
    let written = config.out.clone().unwrap_or_else(named);
    check_free(&written, config.overwrite)?;
    let (parameters, name) = (trained.model.parameters().count(), trained.id().name);
    let patch = trained.model.config().backbone.input_size(about.patch.map(|n| n as i64))?;
    match config.format {
        ExportFormat::Safetensors => save_with(&written, &trained.model, Some(&about))?,
        ExportFormat::TorchScript => {
            let [d, h, w] = patch;
            save_torchscript(&written, trained.model, [1, about.channels.len() as i64, d, h, w])?;
        }
    }
    Ok(Exported { written, parameters, about, name, patch })
}

/// Makes a model file of weights that were trained with the authors' PyTorch code; with names, [`predict`](crate::predict())
/// takes it.
///
/// # Errors
/// When weights are missing: a network with holes would predict noise without saying so.
pub fn import(config: &ImportConfig) -> Result<ImportedModel> {
    let ImportConfig { weights: file, out, .. } = config;
    if out.exists() && !config.overwrite {
        let advice = "choose another name with --out, or replace it with --overwrite";
        return Err(Error::usage(format!("{} exists; {advice}", out.display())));
    }
    let imported = weights::import(file, Execution::cpu(Precision::F32)).map_err(Error::mismatch)?;
    if !imported.report.missing.is_empty() {
        let missing = imported.report.missing.join(", ");
        let message = format!("{}: it has no weights for {missing}", file.display());
        return Err(Error::mismatch(message));
    }
    let is_named = !config.channels.is_empty() || !config.classes.is_empty();
    let metadata = is_named.then(|| metadata_of(config, &imported.model)).transpose()?;
    save_with(out, &imported.model, metadata.as_ref())?;
    Ok(imported)
}

fn metadata_of(import: &ImportConfig, model: &Model) -> Result<ModelMetadata> {
    let ImportConfig { weights, channels, classes, normalization, .. } = import.clone();
    let config = model.config();
    for (what, names, count) in
        [("channels", &channels, config.channels), ("classes", &classes, config.classes)]
    {
        if names.len() as i64 != count {
            let message = format!(
                "{}: the network has {what}: {count}, but {} are named: {}",
                weights.display(),
                names.len(),
                names.join(", ")
            );
            return Err(Error::usage(message));
        }
        let is_again = |(place, name): (usize, &String)| name.is_empty() || names[..place].contains(name);
        if names.iter().enumerate().any(is_again) {
            let message = format!("every one of the {what} needs a name of its own: {}", names.join(", "));
            return Err(Error::usage(message));
        }
    }
    let [depth, ..] = config.backbone.input_size([1; 3])?;
    let file = weights.file_stem().unwrap_or(weights.as_os_str());
    let provenance = Provenance {
        run: file.to_string_lossy().into_owned(),
        step: 0,
        seed: 0,
        validation_ged: None,
        dataset: "not known".to_owned(),
        cases: [0; 3],
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let patch = [if depth == 1 { 1 } else { AUTHORS_PATCH }, AUTHORS_PATCH, AUTHORS_PATCH];
    let (labels, training_images) = (None, vec![]);
    Ok(ModelMetadata {
        channels,
        classes,
        normalization,
        spacing: None,
        patch,
        labels,
        training_images,
        provenance,
    })
}
