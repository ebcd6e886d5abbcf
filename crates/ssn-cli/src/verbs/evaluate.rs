//! `ssn evaluate`: predictions against raters.

use ssn_core::Control;
use ssn_eval::{Evaluated, evaluate_shard};

use crate::args::{EvaluateArgs, Global};
use crate::exit::{Failure, json, print};
use crate::{progress, shard, signals};

/// Scores the cases of a shard, and prints the table once all are scored.
pub fn run(args: &EvaluateArgs, global: &Global) -> Result<(), Failure> {
    let shard = shard::choose(args.shard, global.quiet, global.json);
    let (stop, show) = (signals::stop_flag("case")?, progress::show(global.quiet));
    let evaluated = evaluate_shard(&args.config()?, shard, Control { progress: &show, stop: &stop })?;
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
