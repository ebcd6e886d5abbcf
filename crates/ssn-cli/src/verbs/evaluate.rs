//! `ssn evaluate`: predictions against raters.

use ssn_eval::{EvaluateConfig, Evaluated, evaluate_shard};

use crate::args::{EvaluateArgs, Global};
use crate::exit::{Exit, Failure, json, print};
use crate::{progress, shard};

/// Scores the cases of a shard, and prints the table once all are scored.
pub fn run(args: &EvaluateArgs, global: &Global) -> Result<Exit, Failure> {
    let shard = shard::choose(args.shard, global.quiet);
    let evaluated = evaluate_shard(&config(args), shard, &progress::show(global.quiet))?;
    print(&match (evaluated, global.json) {
        (Ok(evaluated), true) => json(&evaluated.evaluation)?,
        (Ok(Evaluated { evaluation, cases_csv, .. }), false) => {
            format!("{evaluation}\nscores of each case: {}\n", cases_csv.display())
        }
        (Err(waiting), true) => json(&serde_json::json!({ "shards": waiting }))?,
        (Err(waiting), false) => format!("{waiting}; the last one writes the table\n"),
    })
}

fn config(args: &EvaluateArgs) -> EvaluateConfig {
    EvaluateConfig {
        predictions: args.predictions.clone(),
        data: args.data.clone(),
        split: args.split,
        samples: args.samples,
        seed: args.seed,
        out: args.out.clone(),
        fast: args.fast,
        categorical: args.categorical,
        temperature: args.temperature.unwrap_or(1.0),
        diagonal_noise: !args.no_diagonal_noise,
        groups: args.group.clone(),
        tolerance: args.tolerance,
        bins: args.bins,
        allow_missing: args.allow_missing,
        overwrite: args.overwrite,
    }
}
