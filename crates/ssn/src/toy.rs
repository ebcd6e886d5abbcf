//! The paper's toy problem: trains both models for every seed, and draws what they learned.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use serde::Serialize;
use ssn_args::{LossKind, ToyProblem};
use ssn_core::Phase;
use ssn_eval::{check_free_or, claim};
use ssn_io::write_atomically;
use ssn_report::figures::{ToyRow, png_from_svg, toy_figure};
use ssn_train::toy::{
    DIAGONAL_OPTIMUM, LOW_RANK_OPTIMUM, PAPER_STEPS, ToyModel, ToyResult, label_maps, train,
};

use crate::error::{Error, ErrorKind, Result};
use ssn_core::Control;

/// Pixels of the PNG per pixel of the SVG.
const PNG_SCALE: f32 = 2.0;
/// Steps between two updates of the progress bar.
const REPORT_EVERY: usize = 100;
/// In the order in which tables and figures show them, as in the paper.
const MODELS: [ToyModel; 2] = [ToyModel::Diagonal, ToyModel::LowRank];

/// The solved toy problem.
#[derive(Debug)]
pub struct ToySolution {
    /// The numbers as JSON.
    pub json: String,
    /// The numbers as a table.
    pub table: String,
    /// The figure as PNG.
    pub figure: PathBuf,
}

/// Trains both models with every seed, and writes `toy.svg`, `toy.png` and `toy.json`.
pub fn solve_toy(config: &ToyProblem, control: Control<'_>) -> Result<ToySolution> {
    if config.pretrain >= config.steps {
        let (pretrain, steps) = (config.pretrain, config.steps);
        let message =
            format!("--pretrain {pretrain} leaves nothing of --steps {steps}; lower it or raise the steps");
        return Err(Error::usage(message));
    }
    if config.seed.checked_add(u64::from(config.seeds.saturating_sub(1))).is_none() {
        let message = format!("--seed {} leaves no room for --seeds {}; lower it", config.seed, config.seeds);
        return Err(Error::usage(message));
    }
    let names = ["toy.svg", "toy.png", "toy.json"].map(str::to_owned);
    let files = names.each_ref().map(|name| config.out.join(name));
    claim(&config.out, &names)?;
    // It is written last: figures without it were left by a command that did not come to its end.
    check_free_or(&files[2], config.overwrite, "choose another folder with --out")?;
    let start = Instant::now();
    let outcomes = train_all(config, control)?;
    let summary = summarize(config, &outcomes, start.elapsed().as_secs_f64());
    let json = serde_json::to_string_pretty(&summary).map_err(Error::internal)? + "\n";
    let svg = figure(config, &summary, &outcomes)?;
    let png = png_from_svg(&svg, PNG_SCALE).map_err(Error::internal)?;
    for (path, bytes) in files.iter().zip([svg.as_bytes(), &png, json.as_bytes()]) {
        write_atomically(path, |out| out.write_all(bytes))?;
    }
    let [_, figure, _] = files;
    Ok(ToySolution { json, table: table(config, &summary), figure })
}

/// Trains every model with every seed, as many at once as there are cores. Sorted by model, then seed.
fn train_all(config: &ToyProblem, control: Control<'_>) -> Result<Vec<ToyResult>> {
    let seeds = (0..u64::from(config.seeds)).map(|number| config.seed + number);
    let jobs: Vec<_> =
        MODELS.iter().flat_map(|&model| seeds.clone().map(move |seed| (model, seed))).collect();
    let phase = control.phase("training", jobs.len() * config.steps as usize, "steps");
    // The tensors are tiny: one thread each, and several trainings side by side.
    let workers = ThreadPoolBuilder::new().start_handler(|_| tch::set_num_threads(1)).build();
    let workers = workers.map_err(Error::internal)?;
    let train = |(model, seed)| train_one(model, seed, config, &phase);
    workers.install(|| jobs.into_par_iter().with_max_len(1).map(train).collect())
}

fn train_one(model: ToyModel, seed: u64, config: &ToyProblem, phase: &Phase<'_>) -> Result<ToyResult> {
    let config = ToyProblem { seed, ..config.clone() };
    let report = |step: usize, loss: f64| {
        let since = step % REPORT_EVERY;
        if since == 0 || step == config.steps as usize {
            let steps = if since == 0 { REPORT_EVERY } else { since };
            phase.advance(steps, &format!("{}, seed {seed}, loss {loss:.3}", known(model).name));
        }
    };
    train(model, &config, report).map_err(|error| match error.kind() {
        ErrorKind::NonFinite => Error::new(
            ErrorKind::NonFinite,
            format!("{} model, seed {seed}: {error}; lower --learning-rate", known(model).name),
        ),
        _ => Error::internal(error),
    })
}

/// The result as JSON.
#[derive(Serialize)]
pub struct ToySummary<'a> {
    loss: LossKind,
    steps: u32,
    pretrain_steps: u32,
    samples: u32,
    evaluation_samples: u32,
    learning_rate: f64,
    precision: &'static str,
    seconds: f64,
    models: Vec<ModelSummary<'a>>,
}

#[derive(Serialize)]
struct ModelSummary<'a> {
    model: &'static str,
    optimum: f64,
    paper: f64,
    mean_log_likelihood: f64,
    mean_log_likelihood_at_10000_steps: Option<f64>,
    runs: Vec<&'a ToyResult>,
}

/// Gathers the numbers.
fn summarize<'a>(config: &ToyProblem, outcomes: &'a [ToyResult], seconds: f64) -> ToySummary<'a> {
    let models = MODELS.iter().map(|&model| {
        let runs: Vec<_> = outcomes.iter().filter(|outcome| outcome.model == model).collect();
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let at_paper_steps: Option<Vec<f64>> =
            runs.iter().map(|run| run.log_likelihood_at_paper_steps).collect();
        let Known { name, optimum, paper, .. } = known(model);
        ModelSummary {
            model: name,
            optimum,
            paper,
            mean_log_likelihood: mean(runs.iter().map(|run| run.log_likelihood).collect()),
            mean_log_likelihood_at_10000_steps: at_paper_steps.map(mean),
            runs,
        }
    });
    ToySummary {
        loss: config.loss,
        steps: config.steps,
        pretrain_steps: config.pretrain,
        samples: config.samples,
        evaluation_samples: config.eval_samples,
        learning_rate: config.learning_rate,
        precision: if config.double { "f64" } else { "f32" },
        seconds,
        models: models.collect(),
    }
}

/// The table for the terminal.
fn table(config: &ToyProblem, summary: &ToySummary<'_>) -> String {
    let mut text = String::new();
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{arguments}");
    };
    let show_paper_steps = config.steps as usize > PAPER_STEPS;
    let optional = |value: Option<f64>| value.map_or(String::new(), |x| format!("{x:.4}"));
    line(format_args!(
        "Toy problem: {} loss, {} steps, the first {} on the mean alone, {} samples per label map, {}",
        match config.loss {
            LossKind::Likelihood => "likelihood",
            LossKind::Energy => "energy",
        },
        summary.steps,
        summary.pretrain_steps,
        summary.samples,
        summary.precision
    ));
    line(format_args!(
        "Mean log-likelihood of the two label maps, {} samples each, and how often samples are each map ({:.1} s)",
        summary.evaluation_samples, summary.seconds
    ));
    line(format_args!(""));
    let at_paper = if show_paper_steps { format!("{PAPER_STEPS} steps") } else { String::new() };
    line(format_args!(
        "{:<10} {:>5} {:>12} {:>12} {:>10} {:>8} {:>13}",
        "model",
        "seed",
        at_paper,
        format!("{} steps", summary.steps),
        "optimum",
        "paper",
        "frequencies"
    ));
    for model in &summary.models {
        let mut row = |seed: &str, at_paper: Option<f64>, score: f64, frequencies: [f64; 2]| {
            let at_paper = optional(at_paper.filter(|_| show_paper_steps));
            let (name, optimum, paper) = (model.model, model.optimum, model.paper);
            line(format_args!(
                "{name:<10} {seed:>5} {at_paper:>12} {score:>12.4} {optimum:>10.4} {paper:>8.2} {:>13}",
                frequencies.map(|share| format!("{share:.3}")).join(" ")
            ));
        };
        for run in &model.runs {
            let score = run.log_likelihood;
            row(&run.seed.to_string(), run.log_likelihood_at_paper_steps, score, run.frequencies);
        }
        if model.runs.len() > 1 {
            let mean = |map: usize| {
                model.runs.iter().map(|run| run.frequencies[map]).sum::<f64>() / model.runs.len() as f64
            };
            let score = model.mean_log_likelihood;
            row("mean", model.mean_log_likelihood_at_10000_steps, score, [mean(0), mean(1)]);
        }
    }
    line(format_args!(""));
    text
}

/// What is known of a model before it is trained.
struct Known {
    /// In tables and files.
    name: &'static str,
    /// In the figure.
    title: &'static str,
    /// The best log-likelihood that it can reach.
    optimum: f64,
    /// The log-likelihood that the paper reports (section 4.1).
    paper: f64,
}

fn known(model: ToyModel) -> Known {
    match model {
        ToyModel::Diagonal => {
            Known { name: "diagonal", title: "Diagonal covariance", optimum: DIAGONAL_OPTIMUM, paper: -4.87 }
        }
        ToyModel::LowRank => Known {
            name: "low-rank",
            title: "Low-rank covariance, rank 2",
            optimum: LOW_RANK_OPTIMUM,
            paper: -0.93,
        },
    }
}

/// The figure shows the first seed of each model.
fn figure(config: &ToyProblem, summary: &ToySummary<'_>, outcomes: &[ToyResult]) -> Result<String> {
    let maps = Vec::<f32>::try_from(label_maps(tch::Kind::Float).view([-1])).map_err(Error::internal)?;
    let maps: Vec<Vec<f32>> = maps.chunks(maps.len() / 2).map(<[f32]>::to_vec).collect();
    let panels: Vec<ToyRow<'_>> = MODELS
        .iter()
        .filter_map(|&model| outcomes.iter().find(|outcome| outcome.model == model))
        .map(|outcome| ToyRow {
            title: known(outcome.model).title.to_owned(),
            caption: match config.loss {
                LossKind::Likelihood => format!(
                    "log-likelihood −{:.3} after {} steps, best possible −{:.3}",
                    outcome.log_likelihood.abs(),
                    summary.steps,
                    known(outcome.model).optimum.abs()
                ),
                LossKind::Energy => {
                    let [first, second] = outcome.frequencies.map(|share| 100.0 * share);
                    format!("{first:.1} % and {second:.1} % of the samples are the two label maps")
                }
            },
            distribution: &outcome.distribution,
            seed: config.seed,
        })
        .collect();
    toy_figure(&maps, &panels).map_err(Error::internal)
}
