//! `ssn evaluate`: predictions against raters, case by case, and what the scores say together.

mod folder;
pub(crate) mod plan;
pub(crate) mod raters;
mod work;

use std::path::{Path, PathBuf};

use ssn_data::{Shard, ShardProgress};
use ssn_eval::scores::Group;
use ssn_eval::{Evaluation, Kind, Predictions, ScoreConfig, Scored, Settings};

use crate::args::{EvaluateArgs, Global, Part};
use crate::exit::{Exit, Failure, json, print};
use crate::predictions::{failure, unknown_name};
use crate::shard;
use folder::Folder;
use plan::Plan;
use work::Work;

/// Cases of a list that are named in a message; the rest is counted.
const SHOWN: usize = 10;

/// Scores the cases of a shard, and prints the table once all are scored.
pub fn run(args: &EvaluateArgs, global: &Global) -> Result<Exit, Failure> {
    let shard = shard::choose(args.shard, global.quiet);
    let evaluated = evaluate_shard(args, shard, global.quiet)?;
    print(&match (evaluated, global.json) {
        (Ok(evaluated), true) => json(&evaluated.evaluation)?,
        (Ok(Evaluated { evaluation, cases_csv, .. }), false) => {
            format!("{evaluation}\nscores of each case: {}\n", cases_csv.display())
        }
        (Err(waiting), true) => json(&serde_json::json!({ "shards": waiting }))?,
        (Err(waiting), false) => format!("{waiting}; the last one writes the table\n"),
    })
}

/// What an evaluation found.
pub struct Evaluated {
    /// The means over the cases.
    pub evaluation: Evaluation,
    /// The scores of each case.
    pub cases: Vec<Scored>,
    /// The file with the scores of each case.
    pub cases_csv: PathBuf,
}

/// Scores all cases and writes the files of the evaluation.
pub fn evaluate(args: &EvaluateArgs, quiet: bool) -> Result<Evaluated, Failure> {
    let work = plan_work(args, quiet)?;
    let all: Vec<usize> = (0..work.plan.jobs.len()).collect();
    let cases = work.score(&all, args.overwrite, quiet)?;
    work.finish(cases)
}

/// Scores the cases of a shard, and writes the files of the evaluation once all cases are scored.
pub fn evaluate_shard(
    args: &EvaluateArgs,
    shard: Shard,
    quiet: bool,
) -> Result<Result<Evaluated, ShardProgress>, Failure> {
    if shard.is_whole() {
        return evaluate(args, quiet).map(Ok);
    }
    let work = plan_work(args, quiet)?;
    work.score(&shard.own(work.plan.jobs.len()), args.overwrite, quiet)?;
    match work.collect(shard)? {
        Ok(cases) => work.finish(cases).map(Ok),
        Err(waiting) => Ok(Err(waiting)),
    }
}

/// Finds out what is to be scored, and how.
fn plan_work(args: &EvaluateArgs, quiet: bool) -> Result<Work, Failure> {
    let predictions = Predictions::open(&args.predictions).map_err(failure)?;
    let about = predictions.about();
    let part = args.split.or(Part::from_name(&about.split)).unwrap_or(Part::Test);
    let data = args.data.clone().unwrap_or_else(|| about.dataset.clone().into());
    let plan = Plan::new(&predictions, &data, part)?;
    if !plan.missing.is_empty() && !args.allow_missing {
        let message = format!(
            "{} of {} cases of the part {} have no prediction in {}: {}; predict them, or go on without them \
             with --allow-missing",
            plan.missing.len(),
            plan.missing.len() + plan.jobs.len(),
            plan.part,
            args.predictions.display(),
            named(&plan.missing)
        );
        return Err(Failure::new(Exit::BadData, message));
    }
    if plan.others > 0 && !quiet {
        eprintln!("{} predictions are of other cases than those of the part {}", plan.others, plan.part);
    }
    for job in &plan.jobs {
        job.found.header.check_samples(args.samples as u64).map_err(failure)?;
    }
    let settings = settings(args, &predictions, &plan)?;
    let folder = Folder::open(args, &settings)?;
    Ok(Work { plan, settings, folder })
}

/// What the flags ask for, in the terms of the classes.
fn settings(args: &EvaluateArgs, predictions: &Predictions, plan: &Plan) -> Result<Settings, Failure> {
    let classes = &plan.classes;
    let mut groups = vec![];
    for (name, members) in &args.group {
        let mut numbers = vec![];
        for member in members {
            match classes.iter().position(|class| class == member) {
                Some(0) => {
                    let message =
                        format!("--group {name}: {member:?} is the background, which is not scored");
                    return Err(Failure::new(Exit::Usage, message));
                }
                Some(number) => numbers.push(number as u8),
                None => {
                    let message =
                        format!("--group {name}: {}", unknown_name(member, classes, &args.predictions));
                    return Err(Failure::new(Exit::Usage, message));
                }
            }
        }
        groups.push(Group { name: name.clone(), classes: numbers });
    }
    let base = if args.fast { ScoreConfig::fast(args.samples) } else { ScoreConfig::default() };
    let scores = ScoreConfig {
        samples: args.samples,
        seed: args.seed,
        categorical: args.categorical,
        temperature: args.temperature.unwrap_or(1.0),
        diagonal_noise: !args.no_diagonal_noise,
        tolerance: args.tolerance,
        bins: args.bins,
        groups,
        ..base
    };
    if scores.steers() && plan.kind != Kind::Stochastic {
        let message = format!(
            "the predictions in {} have no distribution whose noise could be steered; leave out --temperature and \
             --no-diagonal-noise",
            args.predictions.display()
        );
        return Err(Failure::new(Exit::Usage, message));
    }
    let root = &plan.dataset.root;
    let dataset = root.canonicalize().unwrap_or_else(|_| root.clone()).display().to_string();
    let (model, split) = (predictions.about().model.clone(), plan.part.to_owned());
    Ok(Settings { model, kind: plan.kind, dataset, split, scores })
}

/// The first of many names, and how many there are besides.
fn named(ids: &[String]) -> String {
    let shown: Vec<&str> = ids.iter().take(SHOWN).map(String::as_str).collect();
    match ids.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The folder in which an evaluation lies unless another is named.
pub fn default_folder(predictions: &Path) -> PathBuf {
    predictions.join("evaluation")
}
