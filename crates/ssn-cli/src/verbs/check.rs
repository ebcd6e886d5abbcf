//! `ssn check`: every problem of a dataset at once, as a table or as JSON.

use std::path::Path;

use ssn_data::{DataConfig, Dataset, Finding, FindingKind, check_until};
use ssn_eval::ErrorKind;

use crate::answer::Answer;
use crate::args::CheckArgs;
use crate::engine::{self, ENGINE};
use crate::exit::Failure;
use ssn_core::Control;

/// Checks a dataset, or the one that a config names.
pub fn answer(args: &CheckArgs, control: Control<'_>) -> Result<Answer, Failure> {
    let (dataset, parts) = if ssn_eval::is_config(&args.dataset) {
        let config = DataConfig::read(&args.dataset)?;
        let mut dataset = config.open()?;
        let parts = config.parts_or_finding(&mut dataset);
        // What is wrong with the split would be told twice.
        if parts.is_some() {
            dataset.findings.extend(of_training(&args.dataset));
        }
        (dataset, parts)
    } else {
        (Dataset::open(&args.dataset)?, None)
    };
    let report = check_until(&dataset, parts.as_deref(), control)?;
    let mut answer = Answer::new(report.to_string(), &report)?;
    answer.is_prose = true;
    // The report names the problems.
    answer.failure = (!report.is_clean()).then(|| Failure::told(ErrorKind::ProblemsFound));
    Ok(answer)
}

/// What is wrong with the sections of a config that say how a network is trained, which are the engine's.
fn of_training(config: &Path) -> Option<Finding> {
    let kind = FindingKind::Config;
    match engine::check_config(config) {
        Some(Ok(())) => None,
        Some(Err(reason)) => Some(Finding::error(kind, reason, "correct the config").in_file(config)),
        None => {
            let reason =
                format!("model, loss and training are not checked: there is no {ENGINE} that answers");
            Some(Finding::note(kind, reason).in_file(config))
        }
    }
}
