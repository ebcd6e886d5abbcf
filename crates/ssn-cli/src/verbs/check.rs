//! `ssn check`: every problem of a dataset at once, as a table or as JSON.

use std::path::Path;

use ssn_data::{DataConfig, Dataset, Finding, FindingKind, check_until};
use ssn_eval::ErrorKind;

use crate::args::{CheckArgs, Global};
use crate::engine::{self, ENGINE};
use crate::exit::{Failure, json, print, print_sentences};
use crate::{progress, signals};
use ssn_core::Control;

/// Checks a dataset, or the one that a config names.
pub fn run(args: &CheckArgs, global: &Global) -> Result<(), Failure> {
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
    let (stop, show) = (signals::stop_flag("case")?, progress::show(global.quiet));
    let report = check_until(&dataset, parts.as_deref(), Control { progress: &show, stop: &stop })?;
    match global.json {
        true => print(&json(&report)?)?,
        false => print_sentences(&report.to_string())?,
    }
    // The report tells of them.
    if report.is_clean() { Ok(()) } else { Err(Failure::told(ErrorKind::ProblemsFound)) }
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
