//! Small datasets and runs, and the way through all functions.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use ssn::data::{DeviceChoice, Synthetic, SyntheticConfig};
use ssn::eval::{DistributionFile, Predictions};
use ssn::io::Limits;
use ssn::nn::communicator::{Communicator, ThreadCommunicator};
use ssn::prelude::*;
use ssn::training::run::StopReason;
use ssn::{ExportConfig, ExportFormat, Result, Training, export};
use tempfile::TempDir;

/// Settings of a run as short as a run can be: two validations, two checkpoints, a row per step.
pub const SHORT: [&str; 9] = [
    "training.steps=4",
    "training.log_every=1",
    "training.save_every=2",
    "training.validate_every=2",
    "training.validation_cases=2",
    "training.validation_samples=2",
    "batches.batch_size=2",
    "loss.samples=4",
    "loss.pretrain_steps=1",
];

/// A folder with a dataset, and room for runs.
pub struct Lab {
    folder: TempDir,
    device: DeviceChoice,
}

impl Lab {
    /// Writes synthetic images of size `[d, h, w]`; volumes have a region of interest.
    pub fn new(size: [usize; 3], classes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = SyntheticConfig {
            cases: 10,
            size,
            classes,
            raters: 3,
            mask: size[0] > 1,
            ..SyntheticConfig::default()
        };
        Synthetic::new(config).unwrap().write(&folder.path().join("data"), &|_| {}).unwrap();
        Self { folder, device: DeviceChoice::Cpu }
    }

    /// The same with runs on another device.
    pub fn on(self, device: DeviceChoice) -> Self {
        Self { device, ..self }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Describes a run on the dataset.
    pub fn run<'a>(
        &self,
        name: &str,
        preset: &str,
        settings: impl IntoIterator<Item = &'a str>,
    ) -> TrainConfig {
        TrainConfig {
            preset: Some(preset.to_owned()),
            settings: settings.into_iter().map(str::to_owned).collect(),
            device: self.device,
            workers: Some(0),
            ..TrainConfig::from_data(self.path("data"), self.path(name))
        }
    }
}

/// Trains on `ranks` ranks, each a thread; all stop after `stop_after` steps if that is given.
pub fn train_on(ranks: usize, config: &TrainConfig, stop_after: Option<usize>) -> Result<StopReason> {
    let stop = AtomicBool::new(false);
    let begun = Mutex::new(vec![]);
    let progress = |event: Progress<'_>| match event {
        Progress::Begin { phase, name: "training", .. } => begun.lock().unwrap().push(phase),
        Progress::Done { phase, done }
            if stop_after.is_some_and(|steps| done >= steps) && begun.lock().unwrap().contains(&phase) =>
        {
            stop.store(true, Ordering::Relaxed);
        }
        _ => {}
    };
    let train = |comm: Option<Arc<dyn Communicator>>| {
        tch::set_num_threads(1);
        Ok(Training::from_config(config)
            .ranks(comm)
            .start(Control { progress: &progress, stop: &stop })?
            .ended)
    };
    if ranks == 1 {
        return train(None);
    }
    let train = &train;
    thread::scope(|scope| {
        let comms = ThreadCommunicator::new(ranks);
        let ranks: Vec<_> = comms
            .into_iter()
            .map(|comm| scope.spawn(move || train(Some(comm as Arc<dyn Communicator>))))
            .collect();
        let mut ended: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        // The first rank says why a run fails.
        ended.swap_remove(0)
    })
}

/// Returns the losses and gradient norms in `metrics.csv`.
pub fn losses(run: &Path) -> Vec<f64> {
    let text = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let columns: Vec<usize> = ["loss", "gradient_norm"]
        .iter()
        .map(|name| head.iter().position(|cell| cell == name).unwrap())
        .collect();
    let values =
        |row: Vec<&str>| columns.iter().filter_map(|&column| row[column].parse().ok()).collect::<Vec<f64>>();
    rows.flat_map(values).collect()
}

/// Returns the files of a run that must not depend on whether it was stopped: its metrics and its last checkpoint.
pub fn results(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![("metrics.csv".to_owned(), fs::read(run.join("metrics.csv")).unwrap())];
    let mut checkpoints: Vec<PathBuf> =
        fs::read_dir(run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).collect();
    checkpoints.sort();
    let last = checkpoints.iter().rfind(|path| path.join("model.safetensors").is_file());
    let last = last.unwrap_or_else(|| panic!("no checkpoint in {checkpoints:?}"));
    for file in fs::read_dir(last).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().to_string_lossy().into_owned();
        if name.ends_with(".safetensors") {
            files.push((name, fs::read(file.path()).unwrap()));
        }
    }
    files.sort();
    files
}

/// Predicts, evaluates and reports a run, and predicts with its bundle.
///
/// # Errors
/// The first failure, with the function that failed.
pub fn through_all_functions(run: &Path, device: DeviceChoice, with_report: bool) -> Result<(), String> {
    tch::set_num_threads(1);
    let named = |name: &'static str| move |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let folder = run.with_extension("predictions");
    let config = |model: &Path, out: &Path| PredictConfig {
        device,
        samples: 3,
        overwrite: true,
        ..PredictConfig::new(model, out)
    };
    predict(&config(run, &folder), Control::default()).map_err(|error| named("predict")(&error))?;
    let mut scores = EvaluateConfig { samples: 3, fast: true, ..EvaluateConfig::new(&folder) };
    let evaluated = evaluate(&scores, Control::default()).map_err(|error| named("evaluate")(&error))?;
    if evaluated.cases.is_empty() {
        return Err("evaluate: no case was scored".to_owned());
    }
    if with_report {
        let report_config = ReportConfig {
            cases: 1,
            samples: 3,
            out: Some(run.with_extension("report")),
            ..ReportConfig::new(vec![folder.clone(), run.to_owned()])
        };
        report(&report_config, Control::default()).map_err(|error| named("report")(&error))?;
    }
    // A bundle predicts what the run does.
    let bundle = run.with_extension("safetensors");
    let export_config = ExportConfig {
        model: run.to_owned(),
        out: Some(bundle.clone()),
        format: ExportFormat::Safetensors,
        checkpoint: ssn::CheckpointChoice::Best,
        overwrite: true,
    };
    export(&export_config).map_err(|error| named("export")(&error))?;
    let by_bundle = run.with_extension("bundled");
    let data = vec![run.join("config.toml")];
    predict(&PredictConfig { data, ..config(&bundle, &by_bundle) }, Control::default())
        .map_err(|error| named("predict with the bundle")(&error))?;
    scores.predictions = by_bundle.clone();
    evaluate(&scores, Control::default())
        .map_err(|error| named("evaluate the bundle's predictions")(&error))?;
    let open = |folder: &Path| Predictions::open(folder).and_then(|folder| folder.cases());
    let (ours, theirs) = (open(&folder).unwrap(), open(&by_bundle).unwrap());
    if ours.len() != theirs.len() {
        return Err(format!("the bundle predicted {} cases, not {}", theirs.len(), ours.len()));
    }
    for (a, b) in ours.iter().zip(&theirs) {
        let [a, b] = [a, b].map(|case| DistributionFile::read(&case.path, &Limits::default()).unwrap());
        if device == DeviceChoice::Cpu && a.distribution() != b.distribution() {
            return Err(format!("the bundle predicts another distribution of {}", a.description().case));
        }
    }
    Ok(())
}
