//! `ssn run-experiment`: every row of an experiment file trained, predicted and scored, and the table of all.

mod averages;
mod file;
mod finished;
mod job;
mod plan;
mod record;
mod results;
mod scorer;
mod table;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

use ssn_cli::args::{Global, RunExperimentArgs};
use ssn_cli::evaluate::Evaluated;
use ssn_cli::exit::{print, tell};
use ssn_cli::{Exit, Failure, Verb};

use crate::command::{command, wrong_verb};
use crate::workplace::{DATA, STOPPED, is_begun, make_folder, write_file};
use crate::{signals, synthetic, toy};
use file::{Experiment, Toy};
use finished::{Finished, Run};
use job::{Context, Job};
use plan::{CONFIG, EXPERIMENT, Plan};
use scorer::Scorer;

/// What is said of a folder that belongs to something else.
const ANOTHER: &str = "another experiment, or this one with other settings, is in it";

/// Runs the verb.
pub fn run(args: &RunExperimentArgs, global: &Global) -> Result<Exit, Failure> {
    let (experiment, text) = Experiment::read(&args.file)?;
    if let Some(toy) = &experiment.toy {
        return run_toy(args, global, &experiment, toy, &text);
    }
    let plan = Plan::new(args, experiment, &text)?;
    let wanted = plan.wanted(&args.only)?;
    prepare(&plan, global)?;
    let context = Context { plan: &plan, args, global };
    let rows: Vec<Vec<Job>> = (0..plan.rows.len()).map(|number| plan.jobs(number)).collect();
    let is_there = |jobs: &Vec<Job>| jobs.iter().all(Job::is_predicted);
    let chosen = rows.iter().zip(wanted).filter(|(jobs, wanted)| *wanted || is_there(jobs));
    let jobs: Vec<&Job> = chosen.flat_map(|(jobs, _)| jobs).collect();
    let evaluated = do_all(&jobs, context)?;
    write_results(&jobs, evaluated, context)
}

/// Writes the made-up images, if there are to be any, and the config; all stay as they are in an experiment that goes on.
fn prepare(plan: &Plan, global: &Global) -> Result<(), Failure> {
    if is_begun(&plan.out, EXPERIMENT, &plan.mark, ANOTHER)? {
        return Ok(());
    }
    make_folder(&plan.out)?;
    if let Some(images) = &plan.images {
        synthetic::write(images.clone(), &plan.out.join(DATA), global)?;
    }
    // The mark first: a folder with a config alone would be taken for somebody else's.
    write_file(&plan.out.join(EXPERIMENT), plan.mark.as_bytes())
}

/// Trains and predicts one after the other, while what was predicted before is scored.
fn do_all(jobs: &[&Job], context: Context<'_>) -> Result<Vec<Evaluated>, Failure> {
    let config = context.plan.out.join(CONFIG);
    if !config.exists() {
        write_file(&config, context.plan.config.as_bytes())?;
    }
    let stop = signals::stop_flag().map_err(|error| Failure::new(Exit::Internal, error))?;
    let stop: &AtomicBool = &stop;
    let score = |number: usize| {
        let evaluated = jobs[number].evaluate(context)?;
        say(context, &told(jobs[number], &evaluated, context));
        Ok(evaluated)
    };
    std::thread::scope(|scope| {
        let scorer = Scorer::start(scope, stop, score);
        let mut outcome = Ok(());
        for (number, job) in jobs.iter().enumerate() {
            let is_checked = jobs.iter().any(|job| job.is_begun());
            outcome = job.train(context, is_checked).and_then(|()| job.predict(context));
            if outcome.is_ok() && stop.load(Ordering::Relaxed) {
                outcome = Err(Failure::new(Exit::Stopped, STOPPED));
            }
            if outcome.is_err() {
                // What waits for its scores is scored when the experiment goes on.
                stop.store(true, Ordering::Relaxed);
                break;
            }
            if !scorer.add(number) {
                break;
            }
        }
        let scored = scorer.finish();
        outcome?;
        Ok(scored?.into_iter().map(|(_, evaluated)| evaluated).collect())
    })
}

/// A line about a training that was scored.
fn told(job: &Job, evaluated: &Evaluated, context: Context<'_>) -> String {
    let figures = evaluated.evaluation.figures.iter();
    let ged = figures.rev().find(|figure| figure.key.starts_with("ged2_")).and_then(|figure| figure.mean);
    let ged = ged.map_or(String::new(), |ged| format!(", GED² {ged:.4}"));
    let fold = job.fold.map_or(String::new(), |fold| format!(", fold {fold}"));
    let label = context.plan.rows[job.row].label();
    format!("scored {label}, seed {}{fold}: {} cases{ged}", job.seed, evaluated.evaluation.cases)
}

fn say(context: Context<'_>, line: &str) {
    if !context.global.quiet {
        tell(line);
    }
}

/// Puts the scores of each row together and writes the tables.
fn write_results(jobs: &[&Job], evaluated: Vec<Evaluated>, context: Context<'_>) -> Result<Exit, Failure> {
    // Now that nothing else is computed.
    jobs.iter().try_for_each(|job| job.measure_drawing(context))?;
    let plan = context.plan;
    let mut of_rows: Vec<Vec<Run<'_>>> = plan.rows.iter().map(|_| vec![]).collect();
    for (job, evaluated) in jobs.iter().zip(evaluated) {
        of_rows[job.row].push(Run { job, record: job.record(), evaluated });
    }
    let of_rows = plan.rows.iter().zip(of_rows).filter(|(_, runs)| !runs.is_empty());
    let finished =
        of_rows.map(|(row, runs)| Finished::new(row, runs)).collect::<Result<Vec<Finished<'_>>, _>>()?;
    let (markdown, json) = (table::markdown(plan, &finished), results::json(plan, &finished)?);
    for (name, text) in
        [("table.md", &markdown), ("table.csv", &table::csv(&finished)), ("results.json", &json)]
    {
        write_file(&plan.out.join(name), text.as_bytes())?;
    }
    let place = format!("\nin {}\n", plan.out.join("table.md").display());
    print(&if context.global.json { json } else { format!("\n{markdown}{place}") })
}

/// The toy problem, by its verb; there is nothing to go on with in it.
fn run_toy(
    args: &RunExperimentArgs,
    global: &Global,
    experiment: &Experiment,
    toy: &Toy,
    text: &str,
) -> Result<Exit, Failure> {
    if args.data.is_some() || !args.settings.is_empty() || !args.only.is_empty() || args.seeds.is_some() {
        let message = "the toy problem has neither data nor rows: leave --data, --set, --only and --seeds out, and \
                       change the file";
        return Err(Failure::new(Exit::Usage, message));
    }
    let reduced = plan::chosen(args, experiment.reduced.clone())?;
    let (out, mark) = (plan::out(args), plan::mark(args, text));
    let is_there = is_begun(&out, EXPERIMENT, &mark, ANOTHER)?;
    if is_there && out.join("toy.json").exists() {
        return print(&format!(
            "the toy problem is solved already; its figure is {}\n",
            out.join("toy.png").display()
        ));
    }
    make_folder(&out)?;
    write_file(&out.join(EXPERIMENT), mark.as_bytes())?;
    let mut words = toy.words(reduced.as_ref().and_then(|reduced| reduced.toy.as_ref()))?;
    words.extend(["--out".to_owned(), out.display().to_string(), "--overwrite".to_owned()]);
    match command(&words, global)? {
        Verb::Toy(args) => toy::run(&args, global),
        _ => Err(wrong_verb()),
    }
}
