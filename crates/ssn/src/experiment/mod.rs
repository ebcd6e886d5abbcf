//! Experiments: every row of an experiment file trained, predicted and scored, and the table of all.

mod file;
mod finished;
mod job;
mod output;
mod plan;
#[cfg(test)]
mod tests;
mod work;

use ssn_args::ExperimentConfig;

use crate::error::{Error, Result};
use crate::toy::{ToySolution, solve_toy};
use crate::work_folder::{is_begun, make_folder, write_file, write_images};
use file::{Experiment, Toy};
use finished::{Finished, ScoredRun};
use job::Context;
use plan::{ANOTHER, CONFIG, EXPERIMENT, ExperimentPlan, TrainingJob};
use ssn_core::Control;
use work::Done;

/// What an experiment came to.
#[derive(Debug)]
pub struct ExperimentOutcome {
    /// The table for a reader; nothing if no row is finished.
    pub text: Option<String>,
    /// The same as JSON.
    pub json: String,
    /// Whether all went well; the first failure otherwise.
    pub outcome: Result<()>,
}

/// Trains, predicts and scores every row of an experiment file, and writes the table of all. What is done already is kept.
pub fn run_experiment(config: &ExperimentConfig, control: Control<'_>) -> Result<ExperimentOutcome> {
    let (experiment, text) = Experiment::read(&config.file)?;
    if let Some(toy) = &experiment.toy {
        return run_toy(config, control, &experiment, toy, &text);
    }
    let plan = ExperimentPlan::new(config, experiment)?;
    let wanted = plan.wanted(&config.only)?;
    prepare(&plan, control)?;
    let context = Context { plan: &plan, config, control };
    let file = plan.out.join(CONFIG);
    if !file.exists() {
        write_file(&file, plan.config.as_bytes())?;
    }
    let jobs = (0..plan.rows.len()).flat_map(|number| plan.jobs(number));
    let jobs: Vec<(TrainingJob, bool)> = jobs
        .map(|job| {
            let is_wanted = wanted[job.row] && plan.is_asked_for(&job);
            (job, is_wanted)
        })
        .collect();
    write_results(work::do_all(&jobs, context)?, context)
}

/// Writes the synthetic images, if there are to be any, and the config; all stay as they are in an experiment that goes on.
fn prepare(plan: &ExperimentPlan, control: Control<'_>) -> Result<()> {
    if plan.goes_on()? {
        return Ok(());
    }
    make_folder(&plan.out)?;
    if let Some(images) = &plan.mark.images {
        write_images(images.clone(), &plan.out, control)?;
    }
    // The mark first: a folder with a config alone would be taken for somebody else's.
    plan.begin()
}

/// Puts the scores of each row together and writes the tables, of all that is finished.
fn write_results(mut done: Done<'_>, context: Context<'_>) -> Result<ExperimentOutcome> {
    if !done.is_stopped {
        work::measure(&mut done, context);
    }
    let (plan, notes, outcome) = (context.plan, done.notes(context), done.outcome(context));
    let mut of_rows: Vec<Vec<ScoredRun<'_>>> = plan.rows.iter().map(|_| vec![]).collect();
    for (job, evaluated) in done.scored {
        of_rows[job.row].push(ScoredRun { job, record: job.record(), evaluated });
    }
    let finish = |(row, runs)| Finished::new(row, runs, plan.mark.folds);
    let finished: Vec<Finished<'_>> =
        plan.rows.iter().zip(of_rows).map(finish).collect::<Result<Vec<Finished<'_>>, _>>()?;
    let (markdown, json) =
        (output::markdown(plan, &finished, &notes), output::json(plan, &finished, &notes)?);
    for (name, text) in
        [("table.md", &markdown), ("table.csv", &output::csv(&finished)), ("results.json", &json)]
    {
        write_file(&plan.out.join(name), text.as_bytes())?;
    }
    for (name, bytes) in output::figures(&plan.title, &finished)? {
        write_file(&plan.out.join(name), &bytes)?;
    }
    let is_shown = outcome.is_ok() || finished.iter().any(|row| !row.seeds.is_empty());
    let text = format!("\n{markdown}\nin {}\n", plan.out.join("table.md").display());
    Ok(ExperimentOutcome { text: is_shown.then_some(text), json, outcome })
}

/// The toy problem; there is nothing to go on with in it.
fn run_toy(
    config: &ExperimentConfig,
    control: Control<'_>,
    experiment: &Experiment,
    toy: &Toy,
    text: &str,
) -> Result<ExperimentOutcome> {
    if config.data.is_some()
        || !config.settings.is_empty()
        || !config.only.is_empty()
        || config.seeds.is_some()
    {
        let message = "the toy problem has neither data nor rows: leave --data, --set, --only and --seeds out, and \
                       change the file";
        return Err(Error::usage(message));
    }
    let reduced = plan::chosen(config, experiment.reduced.clone())?;
    let (out, mark) = (plan::out(config), plan::toy_mark(config, text));
    let is_there = is_begun(&out, EXPERIMENT, &mark, ANOTHER)?;
    if is_there && out.join("toy.json").exists() {
        let figure = out.join("toy.png");
        let text = format!("the toy problem is solved already; its figure is {}\n", figure.display());
        let json = serde_json::json!({ "figure": figure }).to_string();
        return Ok(ExperimentOutcome { text: Some(text), json, outcome: Ok(()) });
    }
    make_folder(&out)?;
    write_file(&out.join(EXPERIMENT), mark.as_bytes())?;
    let problem = toy.problem(reduced.as_ref().and_then(|reduced| reduced.toy.as_ref()), &out);
    let ToySolution { json, table, figure } = solve_toy(&problem, control)?;
    let text = format!("{table}Figure: {}\n", figure.display());
    Ok(ExperimentOutcome { text: Some(text), json, outcome: Ok(()) })
}
