//! `ssn run-experiment`: every row of an experiment file trained, predicted and scored, and the table of all.

use ssn::{Control, ExperimentConfig, ExperimentOutcome, run_experiment};
use ssn_cli::args::{Global, RunExperimentArgs};
use ssn_cli::exit::print;
use ssn_cli::{Exit, Failure, progress};

use crate::failure::failure;
use crate::signals;

/// Runs the verb.
pub fn run(args: &RunExperimentArgs, global: &Global) -> Result<Exit, Failure> {
    let (stop, show) = (signals::stop_flag("step")?, progress::show(global.quiet));
    let config = ExperimentConfig {
        file: args.file.clone(),
        data: args.data.clone(),
        out: args.out.clone(),
        only: args.only.clone(),
        seeds: args.seeds.map(usize::from),
        settings: args.settings.clone(),
        reduced: args.reduced,
        device: args.device,
        workers: args.workers.map(usize::from),
    };
    let ExperimentOutcome { text, json, outcome } =
        run_experiment(&config, Control { progress: &show, stop: &stop }).map_err(failure)?;
    if let Some(text) = text {
        print(if global.json { &json } else { &text })?;
    }
    outcome.map(|()| Exit::Ok).map_err(failure)
}
