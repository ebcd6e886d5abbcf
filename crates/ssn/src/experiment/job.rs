//! One training of a row, with its prediction and its scores, and the record of it: that it is over, and what it cost. Times are
//! measured once, when the work is done, and kept.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use ssn_args::{
    BadCases, CheckpointChoice, EvaluateConfig, ExperimentConfig, PredictConfig, SplitChoice, TrainConfig,
};
use ssn_core::Steering;
use ssn_data::{DeviceChoice, LabelPolicy, Split};
use ssn_eval::{DistributionFile, Evaluated, PredictionKind, Predictions, SampleSource, blocks, evaluate};
use ssn_io::{Limits, read_bytes};
use ssn_nn::{Execution, Precision};
use ssn_train::checkpoint::BestValidation;
use ssn_train::inference::tiles::TileConfig;
use ssn_train::inference::{LatentSamples, WholeImageConfig, never_stop};
use ssn_train::run::TrainedModel;

use super::plan::{CONFIG, ExperimentPlan, TrainingJob, fold_settings};
use crate::device::device;
use crate::error::{Error, ErrorKind, Result};
use crate::predict::predict;
use crate::predictor::voxels_at_once;
use crate::text::command_line;
use crate::train::{self, train};
use crate::work_folder::{make_folder, stopped, write_file};
use ssn_core::Control;

/// Cases that are predicted again, and whose samples are drawn, to see how long it takes.
const MEASURED_CASES: usize = 5;

/// The record of one training.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// Steps of the training, once it is over.
    pub steps: Option<u64>,
    /// The best validation of the training.
    pub best_validation: Option<BestValidation>,
    /// Steps that were measured.
    pub measured_steps: u64,
    /// Seconds that they took.
    pub measured_seconds: f64,
    /// Whether all cases are predicted.
    pub is_predicted: bool,
    /// Whether they are scored, so that their scores need only be read.
    pub is_scored: bool,
    /// Numbers of the network that were learned.
    pub parameters: Option<i64>,
    /// Seconds of the network for one case.
    pub network_seconds: Option<f64>,
    /// How long samples take.
    pub drawing: Option<Drawing>,
}

/// How long it took to draw samples of some cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    /// The cases.
    pub cases: usize,
    /// Samples of each.
    pub samples: u64,
    /// Seconds for all of them.
    pub seconds: f64,
}

impl RunRecord {
    /// The record in a file; an empty one if there is none that can be read.
    fn read(path: &Path) -> Self {
        let bytes = read_bytes(path, &Limits::default()).ok();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Writes the record.
    fn write(&self, path: &Path) -> Result<()> {
        make_folder(path.parent().unwrap_or(Path::new("")))?;
        let text = serde_json::to_string_pretty(self).map_err(Error::internal)?;
        write_file(path, (text + "\n").as_bytes())
    }
}

/// What all jobs share.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub plan: &'a ExperimentPlan,
    pub config: &'a ExperimentConfig,
    pub control: Control<'a>,
}

impl TrainingJob {
    /// What is known of it.
    pub fn record(&self) -> RunRecord {
        RunRecord::read(&self.record)
    }

    /// Whether it has been begun.
    pub fn is_begun(&self) -> bool {
        self.run.join(ssn_train::run::CONFIG).exists()
    }

    fn is_trained(&self) -> bool {
        self.is_begun() && self.record().steps.is_some()
    }

    /// Whether nothing but scores is left to do.
    pub fn is_predicted(&self) -> bool {
        self.is_trained() && self.record().is_predicted && Predictions::open(&self.predictions).is_ok()
    }

    /// Forgets what belongs to an earlier run in the same place, which somebody removed: its record and what it
    /// predicted, which would be scored as if this run had predicted it. The record first: what it counts as predicted
    /// must be there.
    fn forget(&self) -> Result<()> {
        if self.record() != RunRecord::default() {
            RunRecord::default().write(&self.record)?;
        }
        match self.predictions.exists() {
            false => Ok(()),
            true => fs::remove_dir_all(&self.predictions).map_err(|error| {
                let path = self.predictions.display();
                let message = format!(
                    "cannot remove {path}, the predictions of an earlier run: {error}; remove them by hand"
                );
                Error::new(ErrorKind::Io, message)
            }),
        }
    }

    /// Trains to the end, unless that was done.
    ///
    /// The dataset is checked by the first training of an experiment alone.
    pub fn train(&self, context: Context<'_>, is_checked: bool) -> Result<()> {
        if self.is_trained() {
            return Ok(());
        }
        let Context { plan, config, control } = context;
        let row = &plan.rows[self.row];
        let mut train_config = if self.is_begun() {
            TrainConfig::resume(&self.run)
        } else {
            self.forget()?;
            TrainConfig {
                seed: Some(self.seed),
                preset: row.preset.clone(),
                settings: [row.set.clone(), fold_settings(plan.mark.folds, self.fold.unwrap_or(0))].concat(),
                bad_cases: if is_checked { BadCases::Unchecked } else { BadCases::Refuse },
                ..TrainConfig::from_file(plan.out.join(CONFIG), &self.run)
            }
        };
        (train_config.device, train_config.workers) = (config.device, config.workers);
        control.message(&train::command(&train_config));
        let trained = train(&train_config, control)?;
        let mut record = self.record();
        if let Some(pace) = trained.pace {
            record.measured_steps += pace.steps;
            record.measured_seconds += pace.seconds;
        }
        record.best_validation = trained.best;
        let ended = trained.outcome();
        record.steps = ended.is_ok().then_some(trained.steps);
        record.write(&self.record)?;
        ended.map_err(stopped)
    }

    /// Predicts the cases that it is scored on, unless that was done.
    pub fn predict(&self, context: Context<'_>) -> Result<()> {
        if self.is_predicted() {
            return Ok(());
        }
        let checkpoint = context.plan.mark.checkpoint;
        if checkpoint == CheckpointChoice::Best && self.record().best_validation.is_none() {
            let message = "no validation scored it, so that no checkpoint is the best: the dataset has no \
                           validation cases; give it some (data.split), or leave checkpoint out";
            return Err(Error::mismatch(message));
        }
        let device = context.config.device;
        let config = PredictConfig {
            checkpoint,
            device,
            samples: context.plan.mark.samples,
            split: self.fold.map(|_| SplitChoice::Validation),
            ..PredictConfig::new(&self.run, &self.predictions)
        };
        let name = if checkpoint == CheckpointChoice::Best { "best" } else { "last" };
        let mut words =
            ["predict", &text(&self.run), "--out", &text(&self.predictions), "--checkpoint", name]
                .map(str::to_owned)
                .to_vec();
        words.extend(["--device".to_owned(), device.to_string()]);
        words.extend(["--samples".to_owned(), config.samples.to_string()]);
        words.extend(self.fold.iter().flat_map(|_| ["--split".to_owned(), "validation".to_owned()]));
        context.control.message(&command_line(&words));
        let predicted = predict(&config, context.control).map_err(stopped)?;
        let mut record = self.record();
        (record.is_predicted, record.is_scored) = (true, false);
        record.parameters = Some(predicted.parameters);
        record.write(&self.record)
    }

    /// Scores the predictions; what is scored already is kept. Shows no progress, since something else may be shown.
    pub fn evaluate(&self, context: Context<'_>) -> Result<Evaluated> {
        let plan = context.plan;
        let categorical = plan.rows[self.row].categorical;
        let mut words = ["evaluate", &text(&self.predictions), "--samples", &plan.mark.samples.to_string()]
            .map(str::to_owned)
            .to_vec();
        words.extend(categorical.then(|| "--categorical".to_owned()));
        for (name, classes) in &plan.masks {
            words.extend(["--group".to_owned(), format!("{name}={}", classes.join("+"))]);
        }
        context.control.message(&command_line(&words));
        let config = EvaluateConfig {
            samples: plan.mark.samples,
            categorical,
            groups: plan.masks.clone(),
            ..EvaluateConfig::new(&self.predictions)
        };
        let evaluated = evaluate(&config, Control::default())?;
        let record = self.record();
        if !record.is_scored {
            RunRecord { is_scored: true, ..record }.write(&self.record)?;
        }
        Ok(evaluated)
    }

    /// Measures how long the network and samples take, unless that was done. The only sample of a deterministic network is its
    /// prediction, unless categoricals are asked for.
    pub fn measure(&self, context: Context<'_>) -> Result<()> {
        let mut record = self.record();
        if record.drawing.is_some() {
            return Ok(());
        }
        let categorical = context.plan.rows[self.row].categorical;
        let folder = Predictions::open(&self.predictions)?;
        let found = folder.cases()?;
        let mut drawing = Drawing { cases: 0, samples: context.plan.mark.samples as u64, seconds: 0.0 };
        for case in found.iter().take(MEASURED_CASES) {
            let file = DistributionFile::read(&case.path, &Limits::default())?;
            let start = Instant::now();
            if file.description().kind == PredictionKind::Deterministic && !categorical {
                drawing.samples = 1;
                file.prediction()?;
            } else {
                let draw = SampleSource::new(&file, 0, &Steering::default())?;
                for block in blocks(0..drawing.samples, file.description().voxels()) {
                    draw.labels(block)?;
                }
            }
            drawing.seconds += start.elapsed().as_secs_f64();
            drawing.cases += 1;
        }
        record.drawing = (drawing.cases > 0).then_some(drawing);
        let part = if self.fold.is_some() { Split::Validation } else { Split::Test };
        let (device, samples) = (context.config.device, context.plan.mark.samples);
        record.network_seconds = network_seconds(&self.run, device, part, samples)?;
        record.write(&self.record)
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Seconds of a run's network for one case of a part, from the image in memory to the result in memory, the median of the first
/// ones: the first of all takes longer. Nothing without cases.
///
/// # Errors
/// When the run, its dataset or the device cannot be used.
fn network_seconds(run: &Path, choice: DeviceChoice, part: Split, samples: usize) -> Result<Option<f64>> {
    let (device, gpu) = device(choice, Control::default())?;
    let trained = TrainedModel::open(run, CheckpointChoice::Last, Execution::on(device, Precision::F32))?;
    let Some(data) = &trained.data else { return Ok(None) };
    let dataset = data.open()?;
    let parts = data.split.parts(&dataset)?;
    let dataset = dataset.with_labels(LabelPolicy::Optional);
    let tiles = TileConfig { voxels_at_once: voxels_at_once(gpu.as_ref()), ..TileConfig::default() };
    let config = WholeImageConfig {
        tiles,
        latent_samples: LatentSamples { count: samples, seed: 0 },
        ..WholeImageConfig::default()
    };
    let mut seconds = vec![];
    for index in (0..parts.len()).filter(|&index| parts[index] == part).take(MEASURED_CASES) {
        let case = dataset.load_raw(index)?;
        let (_, timing) = trained.predict(case, &config, never_stop)?;
        seconds.push(timing.total);
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds.get(seconds.len() / 2).copied())
}
