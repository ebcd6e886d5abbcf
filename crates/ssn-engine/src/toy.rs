//! `ssn toy`: the paper's toy problem.

use ssn::{Control, ToyProblem, solve_toy};
use ssn_cli::args::Global;
use ssn_cli::exit::print;
use ssn_cli::{Failure, progress};

/// Runs the verb.
pub fn run(problem: &ToyProblem, global: &Global) -> Result<(), Failure> {
    let show = progress::show(global.quiet);
    let solution = solve_toy(problem, Control { progress: &show, ..Control::default() })?;
    print(&if global.json {
        solution.json
    } else {
        format!("{}Figure: {}\n", solution.table, solution.figure.display())
    })
}
