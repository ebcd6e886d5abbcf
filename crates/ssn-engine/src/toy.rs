//! `ssn toy`: the paper's toy problem.

use ssn::{Control, ToyProblem, ToySolution, solve_toy};
use ssn_cli::{Answer, Failure};

/// Runs the verb.
pub fn answer(problem: &ToyProblem, control: Control<'_>) -> Result<Answer, Failure> {
    let ToySolution { json, table, figure } = solve_toy(problem, control)?;
    Ok(Answer::of_json(format!("{table}Figure: {}\n", figure.display()), Some(json)))
}
