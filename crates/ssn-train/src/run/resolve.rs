//! A config with the dataset it names: what was left open is filled in, what does not fit is told.

use std::sync::Arc;

use ssn_data::{BatchConfig, Case, Cases, Dataset, LabelCoding, PatchSampler, Split};

use super::config::RunConfig;
use crate::error::{Result, TrainError, refused};
use ssn_nn::backbones::{BackboneConfig, Plan, plan_unet};
use ssn_nn::model::ModelConfig;
use ssn_nn::space::Size;

/// A run whose every setting is known.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The config, with the network and the patches filled in.
    pub config: RunConfig,
    /// The network.
    pub model: ModelConfig,
    /// The dataset.
    pub dataset: Arc<Dataset>,
    /// The part of each of its cases.
    pub parts: Vec<Split>,
}

impl Resolved {
    /// The settings of batches, which hold what the network sees of a patch.
    pub fn batches(&self) -> Result<BatchConfig> {
        let size = self.config.patch().map(|size| size.map(|n| n as i64));
        let seen = size.map(|size| self.model.backbone.seen(size)).transpose()?.flatten();
        Ok(BatchConfig { input_grids: seen, ..self.config.batches() })
    }
}

/// Opens the dataset and fills in what the config left open: the network, and sizes of patches that it can have.
pub fn resolve(mut config: RunConfig) -> Result<Resolved> {
    let dataset = Arc::new(config.data.open()?);
    let (parts, _) = config.data.split.parts(&dataset)?;
    let training = dataset.subset(&parts, Split::Train);
    if training.is_empty() {
        return Err(TrainError::Run {
            path: config.data.path,
            reason: "no case is for training".to_owned(),
            advice: "change data.split.ratios, or the file of the split",
        });
    }
    let first = training.load(0)?;
    let (channels, classes) = (dataset.channels.len(), dataset.classes.len());
    if first.channels != channels {
        return refused(
            "data.channels",
            format!("{channels} names, while case {} has {} channels", first.id, first.channels),
            "one name per channel",
        );
    }
    config.data.channels = Some(dataset.channels.clone());
    config.data.classes = Some(dataset.classes.clone());
    match &dataset.reading.coding {
        LabelCoding::Plain => {}
        LabelCoding::Values(values) => config.data.label_values = Some(values.clone()),
        LabelCoding::Threshold(threshold) => config.data.label_threshold = Some(*threshold),
    }
    let backbone = fit(&mut config, &first)?;
    config.model.backbone = Some(backbone.clone());
    let model =
        ModelConfig { channels: channels as i64, classes: classes as i64, backbone, head: config.model.head };
    Ok(Resolved { config, model, dataset, parts })
}

/// The network, with patches of a size that it can have and targets of the size that it gives.
fn fit(config: &mut RunConfig, first: &Case) -> Result<BackboneConfig> {
    let asked: Size = config.patch().unwrap_or(first.shape).map(|n| n as i64);
    let place = &mut config.batches.patch.sampler;
    let (backbone, size) = match &config.model.backbone {
        Some(backbone) => (backbone.clone(), nearest_fit(backbone, asked)?),
        None => {
            let [x, y, z] = first.geometry.spacing;
            let plan = config.model.plan;
            let batch = config.batches.batch_size as i64;
            let (unet, size) = plan_unet(Plan {
                width: plan.width,
                levels: plan.levels,
                ..Plan::new(asked, [z, y, x], batch)
            })?;
            (BackboneConfig::Unet(unet), size)
        }
    };
    if size != asked {
        let size = size.map(|n| n as usize);
        *place = match *place {
            PatchSampler::Whole | PatchSampler::CenterCrop { .. } => PatchSampler::CenterCrop { size },
            PatchSampler::Random { foreground_probability, .. } => {
                PatchSampler::Random { size, foreground_probability }
            }
        };
    }
    let target = backbone.output_size(size)?.map(|n| n as usize);
    match config.batches.patch.target_size {
        Some(asked) if asked != target => {
            return refused(
                "batches.patch.target_size",
                format!("{asked:?}, while the network makes {target:?} of patches of {size:?}"),
                "what the network makes, or left out",
            );
        }
        _ => config.batches.patch.target_size = Some(target),
    }
    Ok(backbone)
}

/// The size itself, or the next larger one if the network gives what it gets and cannot have this size.
fn nearest_fit(backbone: &BackboneConfig, size: Size) -> Result<Size> {
    let error = match backbone.output_size(size) {
        Ok(_) => return Ok(size),
        Err(error) => error,
    };
    let larger = backbone.input_size(size)?;
    if backbone.output_size(larger)? == larger { Ok(larger) } else { Err(error.into()) }
}
