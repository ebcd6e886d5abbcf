//! One training of a row, with its prediction and its scores.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ssn_core::Steering;
use ssn_core::progress::silent;
use ssn_data::Split;
use ssn_eval::{
    BadCases, CheckpointChoice, DistributionFile, Draw, EvaluateConfig, Evaluated, ExperimentConfig, Kind,
    Part, PredictConfig, Predictions, TrainConfig, blocks, evaluate,
};
use ssn_io::Limits;

use super::network;
use super::plan::{CONFIG, Plan, fold_settings};
use super::record::{Drawing, Record};
use crate::control::Control;
use crate::error::{Error, ErrorKind, Result};
use crate::predict::predict;
use crate::text::command_line;
use crate::train::{self, train};
use crate::work_folder::stopped;

/// Cases that are predicted again, and whose samples are drawn, to see how long it takes.
const MEASURED_CASES: usize = 5;

/// One training.
pub struct Job {
    /// The row that it belongs to.
    pub row: usize,
    /// Its seed.
    pub seed: u64,
    /// The fold that it does not learn from.
    pub fold: Option<usize>,
    /// The folder of the run.
    pub run: PathBuf,
    /// The folder of its predictions.
    pub predictions: PathBuf,
    record: PathBuf,
}

/// What all jobs share.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub plan: &'a Plan,
    pub config: &'a ExperimentConfig,
    pub control: Control<'a>,
}

impl Job {
    /// The job of a row; `slug` is the name of the row's folders.
    pub fn new(out: &Path, row: usize, slug: &str, seed: u64, fold: Option<usize>) -> Self {
        let name = format!("seed{seed}{}", fold.map_or(String::new(), |fold| format!("-fold{fold}")));
        let place = |folder: &str| out.join(folder).join(slug).join(&name);
        let record = out.join("records").join(slug).join(name.clone() + ".json");
        Self { row, seed, fold, run: place("runs"), predictions: place("predictions"), record }
    }

    /// What it is called.
    pub fn label(&self, plan: &Plan) -> String {
        let fold = self.fold.map_or(String::new(), |fold| format!(", fold {fold}"));
        format!("{}, seed {}{fold}", plan.rows[self.row].label(), self.seed)
    }

    /// What is known of it.
    pub fn record(&self) -> Record {
        Record::read(&self.record)
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
        if self.record() != Record::default() {
            Record::default().write(&self.record)?;
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
                settings: [row.set.clone(), fold_settings(plan.folds, self.fold.unwrap_or(0))].concat(),
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
        let checkpoint = context.plan.checkpoint;
        if checkpoint == CheckpointChoice::Best && self.record().best_validation.is_none() {
            let message = "no validation scored it, so that no checkpoint is the best: the dataset has no \
                           validation cases; give it some (data.split), or leave checkpoint out";
            return Err(Error::new(ErrorKind::BadData, message));
        }
        let device = context.config.device;
        let config = PredictConfig {
            checkpoint,
            device,
            samples: context.plan.samples,
            split: self.fold.map(|_| Part::Validation),
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
        let mut words = ["evaluate", &text(&self.predictions), "--samples", &plan.samples.to_string()]
            .map(str::to_owned)
            .to_vec();
        words.extend(categorical.then(|| "--categorical".to_owned()));
        for (name, classes) in &plan.masks {
            words.extend(["--group".to_owned(), format!("{name}={}", classes.join("+"))]);
        }
        context.control.message(&command_line(&words));
        let config = EvaluateConfig {
            samples: plan.samples,
            categorical,
            groups: plan.masks.clone(),
            ..EvaluateConfig::new(&self.predictions)
        };
        let evaluated = evaluate(&config, &silent)?;
        let record = self.record();
        if !record.is_scored {
            Record { is_scored: true, ..record }.write(&self.record)?;
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
        let mut drawing = Drawing { cases: 0, samples: context.plan.samples as u64, seconds: 0.0 };
        for case in found.iter().take(MEASURED_CASES) {
            let file = DistributionFile::read(&case.path, &Limits::default())?;
            let start = Instant::now();
            if file.description().kind == Kind::Deterministic && !categorical {
                drawing.samples = 1;
                file.prediction()?;
            } else {
                let draw = Draw::new(&file, 0, &Steering::default())?;
                for block in blocks(0..drawing.samples, file.description().voxels()) {
                    draw.labels(block)?;
                }
            }
            drawing.seconds += start.elapsed().as_secs_f64();
            drawing.cases += 1;
        }
        record.drawing = (drawing.cases > 0).then_some(drawing);
        let part = if self.fold.is_some() { Split::Validation } else { Split::Test };
        let (device, samples) = (context.config.device, context.plan.samples);
        record.network_seconds = network::seconds(&self.run, device, part, samples, MEASURED_CASES)?;
        record.write(&self.record)
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
