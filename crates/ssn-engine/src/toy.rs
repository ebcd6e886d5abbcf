//! `ssn toy`: the paper's toy problem.

use ssn::{Control, LossKind, ToyProblem, solve_toy};
use ssn_cli::args::{Global, ToyArgs};
use ssn_cli::exit::print;
use ssn_cli::{Exit, Failure, progress};

use crate::failure::failure;

/// Runs the verb.
pub fn run(args: &ToyArgs, global: &Global) -> Result<Exit, Failure> {
    let problem = ToyProblem {
        seeds: args.seeds,
        seed: args.seed,
        steps: args.steps,
        pretrain: args.pretrain,
        samples: args.samples,
        eval_samples: args.eval_samples,
        learning_rate: args.learning_rate,
        double: args.double,
        loss: if args.loss == "energy" { LossKind::Energy } else { LossKind::Likelihood },
        out: args.out.clone(),
        overwrite: args.overwrite,
    };
    let show = progress::show(global.quiet);
    let solution = solve_toy(&problem, Control { progress: &show, ..Control::default() }).map_err(failure)?;
    print(&if global.json {
        solution.json
    } else {
        format!("{}Figure: {}\n", solution.table, solution.figure.display())
    })
}
