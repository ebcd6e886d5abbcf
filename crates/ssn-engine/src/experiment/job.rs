//! One training of a row, with its prediction and its scores: each by the command that a user could give.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ssn_cli::args::{Checkpoint, Global, RunExperimentArgs};
use ssn_cli::evaluate::{Evaluated, evaluate};
use ssn_cli::{Exit, Failure, Verb, predictions};
use ssn_core::Steering;
use ssn_data::{Shard, Split};
use ssn_eval::predictions::draw::blocks;
use ssn_eval::{DistributionFile, Draw, Kind, Predictions};
use ssn_io::Limits;

use super::network;
use super::plan::{CONFIG, Plan, fold_settings};
use super::record::{Drawing, Record};
use crate::command::{command, wrong_verb};
use crate::predict::predict;
use crate::train::{outcome, train};
use crate::workplace::stopped;

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
    pub args: &'a RunExperimentArgs,
    pub global: &'a Global,
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
    fn forget(&self) -> Result<(), Failure> {
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
                Failure::new(Exit::Io, message)
            }),
        }
    }

    /// Trains to the end, unless that was done.
    ///
    /// The dataset is checked by the first training of an experiment alone.
    pub fn train(&self, context: Context<'_>, is_checked: bool) -> Result<(), Failure> {
        if self.is_trained() {
            return Ok(());
        }
        let Context { plan, args, global } = context;
        let row = &plan.rows[self.row];
        let mut words = vec!["train".to_owned()];
        if self.is_begun() {
            words.extend(["--resume".to_owned(), text(&self.run)]);
        } else {
            self.forget()?;
            words.extend([text(&plan.out.join(CONFIG)), "--out".to_owned(), text(&self.run)]);
            words.extend(["--seed".to_owned(), self.seed.to_string()]);
            words.extend(row.preset.iter().flat_map(|preset| ["--preset".to_owned(), preset.clone()]));
            for setting in row.set.iter().cloned().chain(fold_settings(plan.folds, self.fold.unwrap_or(0))) {
                words.extend(["--set".to_owned(), setting]);
            }
            words.extend(is_checked.then(|| "--skip-check".to_owned()));
        }
        words.extend(["--device".to_owned(), args.device.to_string()]);
        words.extend(args.workers.iter().flat_map(|n| ["--workers".to_owned(), n.to_string()]));
        let Verb::Train(train_args) = command(&words, global)? else { return Err(wrong_verb()) };
        let trained = train(&train_args, global, None)?;
        let mut record = self.record();
        if let Some(pace) = trained.pace {
            record.measured_steps += pace.steps;
            record.measured_seconds += pace.seconds;
        }
        record.best_validation = trained.best;
        let ended = outcome(trained.ended, &trained.path);
        record.steps = ended.is_ok().then_some(trained.steps);
        record.write(&self.record)?;
        ended.map(|_| ()).map_err(stopped)
    }

    /// Predicts the cases that it is scored on, unless that was done.
    pub fn predict(&self, context: Context<'_>) -> Result<(), Failure> {
        if self.is_predicted() {
            return Ok(());
        }
        let mut words =
            vec!["predict".to_owned(), text(&self.run), "--out".to_owned(), text(&self.predictions)];
        let checkpoint = match context.plan.checkpoint {
            Checkpoint::Best if self.record().best_validation.is_none() => {
                let message = "no validation scored it, so that no checkpoint is the best: the dataset has no \
                               validation cases; give it some (data.split), or leave checkpoint out";
                return Err(Failure::new(Exit::BadData, message));
            }
            Checkpoint::Best => "best",
            Checkpoint::Last => "last",
        };
        words.extend(
            ["--checkpoint", checkpoint, "--device", &context.args.device.to_string()].map(str::to_owned),
        );
        words.extend(["--samples".to_owned(), context.plan.samples.to_string()]);
        if self.fold.is_some() {
            words.extend(["--split", "validation"].map(str::to_owned));
        }
        let Verb::Predict(args) = command(&words, context.global)? else { return Err(wrong_verb()) };
        let predicted = predict(&args, Shard::WHOLE, context.global.quiet).map_err(stopped)?;
        let mut record = self.record();
        (record.is_predicted, record.is_scored) = (true, false);
        record.parameters = Some(predicted.parameters);
        record.write(&self.record)
    }

    /// Scores the predictions; what is scored already is kept. Shows no progress, since something else may be shown.
    pub fn evaluate(&self, context: Context<'_>) -> Result<Evaluated, Failure> {
        let Context { plan, global, .. } = context;
        let mut words = vec!["evaluate".to_owned(), text(&self.predictions)];
        words.extend(["--samples".to_owned(), plan.samples.to_string()]);
        words.extend(plan.rows[self.row].categorical.then(|| "--categorical".to_owned()));
        words.extend(plan.masks.iter().flat_map(|mask| ["--group".to_owned(), mask.clone()]));
        let Verb::Evaluate(args) = command(&words, global)? else { return Err(wrong_verb()) };
        let evaluated = evaluate(&args, true)?;
        let record = self.record();
        if !record.is_scored {
            Record { is_scored: true, ..record }.write(&self.record)?;
        }
        Ok(evaluated)
    }

    /// Measures how long the network and samples take, unless that was done. The only sample of a deterministic network is its
    /// prediction, unless categoricals are asked for.
    pub fn measure(&self, context: Context<'_>) -> Result<(), Failure> {
        let mut record = self.record();
        if record.drawing.is_some() {
            return Ok(());
        }
        let categorical = context.plan.rows[self.row].categorical;
        let folder = Predictions::open(&self.predictions).map_err(predictions::failure)?;
        let found = folder.cases().map_err(predictions::failure)?;
        let mut drawing = Drawing { cases: 0, samples: context.plan.samples as u64, seconds: 0.0 };
        for case in found.iter().take(MEASURED_CASES) {
            let file =
                DistributionFile::read(&case.path, &Limits::default()).map_err(predictions::failure)?;
            let start = Instant::now();
            if file.description().kind == Kind::Deterministic && !categorical {
                drawing.samples = 1;
                file.prediction().map_err(predictions::failure)?;
            } else {
                let draw = Draw::new(&file, 0, &Steering::default()).map_err(predictions::failure)?;
                for block in blocks(0..drawing.samples, file.description().voxels()) {
                    draw.labels(block).map_err(predictions::failure)?;
                }
            }
            drawing.seconds += start.elapsed().as_secs_f64();
            drawing.cases += 1;
        }
        record.drawing = (drawing.cases > 0).then_some(drawing);
        let part = if self.fold.is_some() { Split::Validation } else { Split::Test };
        let (device, samples) = (context.args.device, context.plan.samples);
        record.network_seconds = network::seconds(&self.run, device, part, samples, MEASURED_CASES)?;
        record.write(&self.record)
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
