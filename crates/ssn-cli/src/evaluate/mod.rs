//! `ssn evaluate`: predictions against raters, case by case, and what the scores say together.

mod folder;
pub(crate) mod plan;
pub(crate) mod raters;

use std::path::{Path, PathBuf};

use ssn_core::LabelMap;
use ssn_data::parallel;
use ssn_predictions::evaluation::{Record, key};
use ssn_predictions::scores::{Group, memory, score};
use ssn_predictions::{DistributionFile, Evaluation, Kind, Predictions, ScoreConfig, Scored, Settings};
use ssn_volume::Limits;

use crate::args::{EvaluateArgs, Global, Part};
use crate::exit::{Exit, Failure, print};
use crate::predictions::{failure, unknown_name};
use crate::progress::Progress;
use folder::Folder;
use plan::{Job, Plan};

/// Cases of a list that are named in a message; the rest is counted.
const SHOWN: usize = 10;

/// Scores all cases and prints the table.
pub fn run(args: &EvaluateArgs, global: &Global) -> Result<Exit, Failure> {
    let Evaluated { evaluation, cases_csv, .. } = evaluate(args, global.quiet)?;
    print(&if global.json {
        folder::json(&evaluation)?
    } else {
        format!("{evaluation}\nscores of each case: {}\n", cases_csv.display())
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
    let cases = score_all(&plan, &settings, &folder, args.overwrite, quiet)?;
    let evaluation = Evaluation::new(settings, &cases, plan.missing).map_err(failure)?;
    folder.write(&evaluation, &cases)?;
    Ok(Evaluated { evaluation, cases, cases_csv: folder.cases_csv() })
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

/// Scores what is not scored yet, several cases at once where memory allows it.
fn score_all(
    plan: &Plan,
    settings: &Settings,
    folder: &Folder,
    again: bool,
    quiet: bool,
) -> Result<Vec<Scored>, Failure> {
    let progress = Progress::new(plan.jobs.len(), "cases", quiet);
    let results = parallel::map(plan.jobs.len(), &|done| progress.reached(done), |index, meter| {
        let job = &plan.jobs[index];
        let (id, config) = (job.found.id(), &settings.scores);
        let path = folder.record(id);
        // Labels are read first: scores of labels that were corrected since are no longer theirs.
        let raters = raters::load(&plan.dataset, job)?;
        let key = key(config, &job.found.header.sha256, &raters).map_err(failure)?;
        if let Some(record) = Record::read(&path, &key, id).filter(|_| !again) {
            return Ok(record.scored);
        }
        meter.saw_all(memory(&job.found.header, raters.len(), config));
        let scored = score_one(job, &raters, config)?;
        let record = Record { key, scored };
        record.write(&path).map_err(failure)?;
        Ok(record.scored)
    });
    progress.finish();
    let name = |index: usize| plan.jobs[index].found.id();
    let one = |(index, result): (usize, Result<Result<Scored, Failure>, String>)| match result {
        Ok(Ok(scored)) => Ok(scored),
        Ok(Err(failure)) => Err(failure),
        Err(panic) => {
            let message = format!("case {}: the program failed: {panic}; please report this", name(index));
            Err(Failure::new(Exit::Internal, message))
        }
    };
    results.into_iter().enumerate().map(one).collect()
}

fn score_one(job: &Job, raters: &[LabelMap], config: &ScoreConfig) -> Result<Scored, Failure> {
    let file = DistributionFile::read(&job.found.path, &Limits::default()).map_err(failure)?;
    let scores = score(&file, raters, config).map_err(failure)?;
    Ok(Scored { id: job.found.id().to_owned(), scores })
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
