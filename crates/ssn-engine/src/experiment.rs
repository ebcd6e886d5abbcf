//! `ssn run-experiment`: every row of an experiment file trained, predicted and scored, and the table of all.

use ssn::{Control, ExperimentConfig, ExperimentOutcome, run_experiment};
use ssn_cli::{Answer, Failure};

/// Runs the verb.
pub fn answer(config: &ExperimentConfig, control: Control<'_>) -> Result<Answer, Failure> {
    let ExperimentOutcome { text, json, outcome } = run_experiment(config, control)?;
    let json = text.is_some().then_some(json);
    let mut answer = Answer::of_json(text.unwrap_or_default(), json);
    answer.failure = outcome.err().map(Failure::from);
    Ok(answer)
}
