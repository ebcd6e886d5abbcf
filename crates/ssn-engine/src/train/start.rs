//! How a run begins: from a config file, from a dataset, or from where it was stopped.

use std::path::Path;

use ssn_cli::args::{Global, TrainArgs};
use ssn_cli::datasets;
use ssn_cli::init::{config_head, first_readable, general_config};
use ssn_cli::progress::Progress;
use ssn_cli::{Exit, Failure};
use ssn_data::config::template::{data_sections, suggest_normalization};
use ssn_data::{Dataset, Severity, check};
use ssn_io::{Limits, read_bytes};
use ssn_nn::communicator::Ranks;
use ssn_train::run::{Layers, Resolved, RunFolder, RunPreset, Setting, resolve};
use tch::Device;

use crate::failure::failure;

/// A run that goes on, with its dataset where it was or where it is now.
pub fn resumed(path: &Path, data: Option<&Path>) -> Result<(RunFolder, Resolved), Failure> {
    let folder = RunFolder::open(path).map_err(failure)?;
    let resolved = folder.resolved(data).map_err(failure)?;
    Ok((folder, resolved))
}

/// A run that the first rank has begun or opened, for another one.
pub fn joined(args: &TrainArgs, ranks: &dyn Ranks) -> Result<(RunFolder, Resolved), Failure> {
    ranks.gather(&[]).map_err(failure)?;
    let folder = RunFolder::join(args.resume.as_deref().unwrap_or(&args.out)).map_err(failure)?;
    let resolved =
        folder.resolved(args.data.as_deref().filter(|_| args.resume.is_some())).map_err(failure)?;
    Ok((folder, resolved))
}

/// A new run, on a dataset that was checked.
pub fn fresh(args: &TrainArgs, global: &Global, device: Device) -> Result<(RunFolder, Resolved), Failure> {
    RunFolder::is_free(&args.out).map_err(failure)?;
    let config = layers(args)?.config().map_err(failure)?;
    if let Some(precision) = config.training.precision {
        precision.check(device).map_err(failure)?;
    }
    let resolved = resolve(config).map_err(failure)?;
    if !args.skip_check {
        check_dataset(&resolved, global)?;
    }
    if args.config.is_some() {
        // Other runs with this config share the split.
        resolved.config.data.split.keep_parts(&resolved.dataset).map_err(datasets::failure)?;
    }
    let folder = RunFolder::create(&args.out, &resolved).map_err(failure)?;
    Ok((folder, resolved))
}

/// What the config is put together from.
fn layers(args: &TrainArgs) -> Result<Layers, Failure> {
    let usage = |message: String| Failure::new(Exit::Usage, message);
    let preset = args.preset.as_deref().map(RunPreset::parse).transpose().map_err(usage)?;
    let mut settings = vec![];
    for written in &args.settings {
        settings.push(Setting::parse(written).map_err(|reason| usage(format!("--set {written}: {reason}")))?);
    }
    if let Some(seed) = args.seed {
        settings.push(Setting::parse(&format!("training.seed={seed}")).map_err(usage)?);
    }
    let file = match (&args.config, &args.data) {
        (Some(path), _) => {
            let unreadable = |error: &dyn std::fmt::Display| Failure::new(Exit::BadData, error);
            let bytes = read_bytes(path, &Limits::default()).map_err(|error| unreadable(&error))?;
            let text = String::from_utf8(bytes)
                .map_err(|_| usage(format!("{} is no text; name a config file", path.display())))?;
            Some((path.clone(), text))
        }
        (None, Some(data)) => {
            let dataset = Dataset::open(data).map_err(datasets::failure)?;
            let first = first_readable(&dataset)?;
            let text = match preset {
                // A preset of the paper says everything about learning by itself.
                Some(preset) if preset != RunPreset::General => {
                    let scale = suggest_normalization(&dataset, &first);
                    config_head(first.shape[0] == 1, preset.name())
                        + &data_sections(&dataset, data, &first, scale)
                }
                _ => general_config(&dataset, data, &first),
            };
            // The run keeps the split; a split.toml that happens to lie here belongs to something else.
            let split = format!("data.split.file={}", args.out.join("split.toml").display());
            settings.push(Setting::parse(&split).map_err(usage)?);
            Some((data.file_name().unwrap_or_default().into(), text))
        }
        (None, None) => None,
    };
    let layers = Layers { preset, file, settings };
    if args.config.is_some() && args.preset.is_some() {
        let sections = layers.learning_sections();
        if !sections.is_empty() {
            eprintln!("note: the config's own {} win over those of the preset", sections.join(", "));
        }
    }
    Ok(layers)
}

/// Learning from a dataset with errors would hide them in a model.
fn check_dataset(resolved: &Resolved, global: &Global) -> Result<(), Failure> {
    let progress = Progress::new(resolved.dataset.entries.len(), "cases checked", global.quiet);
    let report = check(&resolved.dataset, Some(&resolved.parts), &|done| progress.reached(done));
    progress.finish();
    if report.errors == 0 {
        for finding in report.findings.iter().filter(|finding| finding.severity == Severity::Warning) {
            let place = finding.case.as_deref().unwrap_or("the dataset");
            eprintln!("warning: {place}: {}", finding.reason);
        }
        return Ok(());
    }
    eprint!("{report}");
    let message = "the dataset has problems, which are listed above; repair them, or train with --skip-check";
    Err(Failure::new(Exit::ProblemsFound, message))
}
