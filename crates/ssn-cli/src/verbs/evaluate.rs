//! `ssn evaluate`: predictions against raters.

use serde_json::json;
use ssn_core::Control;
use ssn_eval::{Evaluated, evaluate_shard};

use crate::answer::Answer;
use crate::args::{EvaluateArgs, Global};
use crate::exit::Failure;
use crate::shard;

/// Scores the cases of a shard; the table follows once all are scored.
pub fn answer(args: &EvaluateArgs, global: &Global, control: Control<'_>) -> Result<Answer, Failure> {
    let shard = shard::choose(args.shard, global.quiet, global.json);
    let mut answer = match evaluate_shard(&args.config()?, shard, control)? {
        Ok(Evaluated { evaluation, cases_csv, .. }) => {
            let text = format!("{evaluation}\nscores of each case: {}\n", cases_csv.display());
            Answer::new(text, &evaluation)?
        }
        Err(waiting) => {
            let text = format!("{waiting}; the last one writes the table\n");
            Answer::new(text, &json!({ "shards": waiting }))?
        }
    };
    if !shard::prints_json(args.shard) {
        answer.json = None;
    }
    Ok(answer)
}
