//! `ssn run-experiment`: every row of an experiment file trained, predicted and scored, and the table of all.

mod averages;
mod file;
mod finished;
mod job;
mod mark;
mod network;
mod plan;
mod record;
mod results;
mod scorer;
mod table;
#[cfg(test)]
mod tests;
mod work;

use ssn_cli::args::{Global, RunExperimentArgs};
use ssn_cli::exit::print;
use ssn_cli::{Exit, Failure, Verb};

use crate::command::{command, wrong_verb};
use crate::workplace::{DATA, is_begun, make_folder, write_file};
use crate::{synthetic, toy};
use file::{Experiment, Toy};
use finished::{Finished, Run};
use job::{Context, Job};
use mark::ANOTHER;
use plan::{CONFIG, EXPERIMENT, Plan};
use work::Done;

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
    let config = plan.out.join(CONFIG);
    if !config.exists() {
        write_file(&config, plan.config.as_bytes())?;
    }
    let jobs = (0..plan.rows.len()).flat_map(|number| plan.jobs(number));
    let jobs: Vec<(Job, bool)> = jobs
        .map(|job| {
            let is_wanted = wanted[job.row] && plan.is_asked_for(&job);
            (job, is_wanted)
        })
        .collect();
    write_results(work::do_all(&jobs, context)?, context)
}

/// Writes the made-up images, if there are to be any, and the config; all stay as they are in an experiment that goes on.
fn prepare(plan: &Plan, global: &Global) -> Result<(), Failure> {
    if mark::goes_on(plan)? {
        return Ok(());
    }
    make_folder(&plan.out)?;
    if let Some(images) = &plan.images {
        synthetic::write(images.clone(), &plan.out.join(DATA), global)?;
    }
    // The mark first: a folder with a config alone would be taken for somebody else's.
    mark::begin(plan)
}

/// Puts the scores of each row together and writes the tables, of all that is finished.
fn write_results(mut done: Done<'_>, context: Context<'_>) -> Result<Exit, Failure> {
    if !done.is_stopped {
        work::measure(&mut done, context);
    }
    let (plan, notes, outcome) = (context.plan, done.notes(context), done.outcome(context));
    let mut of_rows: Vec<Vec<Run<'_>>> = plan.rows.iter().map(|_| vec![]).collect();
    for (job, evaluated) in done.scored {
        of_rows[job.row].push(Run { job, record: job.record(), evaluated });
    }
    let finish = |(row, runs)| Finished::new(row, runs, plan.folds);
    let finished: Vec<Finished<'_>> =
        plan.rows.iter().zip(of_rows).map(finish).collect::<Result<Vec<Finished<'_>>, _>>()?;
    let (markdown, json) =
        (table::markdown(plan, &finished, &notes), results::json(plan, &finished, &notes)?);
    for (name, text) in
        [("table.md", &markdown), ("table.csv", &table::csv(&finished)), ("results.json", &json)]
    {
        write_file(&plan.out.join(name), text.as_bytes())?;
    }
    let place = format!("\nin {}\n", plan.out.join("table.md").display());
    if outcome.is_ok() || finished.iter().any(|row| !row.seeds.is_empty()) {
        print(&if context.global.json { json } else { format!("\n{markdown}{place}") })?;
    }
    outcome.map(|()| Exit::Ok)
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
