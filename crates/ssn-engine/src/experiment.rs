//! `ssn run-experiment`: every row of an experiment file trained, predicted and scored, and the table of all.

use ssn::{Control, ExperimentConfig, ExperimentOutcome, run_experiment};
use ssn_cli::args::Global;
use ssn_cli::exit::print;
use ssn_cli::{Failure, progress, signals};

/// Runs the verb.
pub fn run(config: &ExperimentConfig, global: &Global) -> Result<(), Failure> {
    let (stop, show) = (signals::stop_flag("step")?, progress::show(global.quiet));
    let ExperimentOutcome { text, json, outcome } =
        run_experiment(config, Control { progress: &show, stop: &stop })?;
    if let Some(text) = text {
        print(if global.json { &json } else { &text })?;
    }
    outcome.map_err(Failure::from)
}
