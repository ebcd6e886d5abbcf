//! `ssn evaluate`: predictions against raters.

use ssn_eval::{Evaluated, evaluate_shard};

use crate::args::{EvaluateArgs, Global};
use crate::exit::{Failure, json, print};
use crate::{progress, shard};

/// Scores the cases of a shard, and prints the table once all are scored.
pub fn run(args: &EvaluateArgs, global: &Global) -> Result<(), Failure> {
    let shard = shard::choose(args.shard, global.quiet, global.json);
    let evaluated = evaluate_shard(&args.config()?, shard, &progress::show(global.quiet))?;
    if global.json && !shard::prints_json(args.shard) {
        return Ok(());
    }
    print(&match (evaluated, global.json) {
        (Ok(evaluated), true) => json(&evaluated.evaluation)?,
        (Ok(Evaluated { evaluation, cases_csv, .. }), false) => {
            format!("{evaluation}\nscores of each case: {}\n", cases_csv.display())
        }
        (Err(waiting), true) => json(&serde_json::json!({ "shards": waiting }))?,
        (Err(waiting), false) => format!("{waiting}; the last one writes the table\n"),
    })
}
