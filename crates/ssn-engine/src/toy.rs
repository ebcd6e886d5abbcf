//! `ssn toy`: trains both models for every seed, prints their scores and draws what they learnt.

use std::collections::VecDeque;
use std::fmt::Write;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use serde::Serialize;
use ssn_cli::args::{Global, Precision, ToyArgs};
use ssn_cli::{Exit, Failure};
use ssn_net::NetError;
use ssn_net::toy::{
    DIAGONAL_OPTIMUM, LOW_RANK_OPTIMUM, Outcome, PAPER_STEPS, ToyConfig, ToyModel, label_maps, train,
};
use ssn_report::figures::toy::{Panel, toy_figure};
use ssn_report::png_from_svg;
use ssn_volume::write_atomically;

use crate::progress::Progress;

/// Pixels of the PNG per pixel of the SVG.
const PNG_SCALE: f32 = 2.0;
/// Steps between two updates of the progress bar.
const REPORT_EVERY: usize = 100;
/// In the order in which tables and figures show them, as in the paper.
const MODELS: [ToyModel; 2] = [ToyModel::Diagonal, ToyModel::LowRank];

/// The result as JSON.
#[derive(Serialize)]
struct Summary {
    steps: u32,
    pretrain_steps: u32,
    samples: u32,
    evaluation_samples: u32,
    learning_rate: f64,
    precision: &'static str,
    seconds: f64,
    models: Vec<ModelSummary>,
}

#[derive(Serialize)]
struct ModelSummary {
    model: &'static str,
    optimum: f64,
    paper: f64,
    mean_log_likelihood: f64,
    mean_log_likelihood_at_10000_steps: Option<f64>,
    runs: Vec<Run>,
}

#[derive(Serialize)]
struct Run {
    seed: u64,
    log_likelihood: f64,
    log_likelihood_at_10000_steps: Option<f64>,
    largest_deviation: f64,
}

/// Runs the verb.
pub fn run(args: &ToyArgs, global: &Global) -> Result<Exit, Failure> {
    if args.pretrain >= args.steps {
        let (pretrain, steps) = (args.pretrain, args.steps);
        let message =
            format!("--pretrain {pretrain} leaves nothing of --steps {steps}; lower it or raise the steps");
        return Err(Failure::new(Exit::Usage, message));
    }
    let files = ["toy.svg", "toy.png", "toy.json"].map(|name| args.out.join(name));
    prepare_folder(&args.out, &files, args.overwrite)?;

    let start = Instant::now();
    let outcomes = train_all(args, global.quiet)?;
    let summary = summarise(args, &outcomes, start.elapsed().as_secs_f64());
    let json = serde_json::to_string_pretty(&summary).map_err(|e| Failure::new(Exit::Internal, e))? + "\n";
    let svg = figure(args, &summary, &outcomes)?;
    let png = png_from_svg(&svg, PNG_SCALE).map_err(|e| Failure::new(Exit::Internal, e))?;
    for (path, bytes) in files.iter().zip([svg.as_bytes(), &png, json.as_bytes()]) {
        write_atomically(path, |out| out.write_all(bytes)).map_err(|e| Failure::new(Exit::Io, e))?;
    }

    let text =
        if global.json { json } else { table(args, &summary) + &format!("Figure: {}\n", files[1].display()) };
    io::stdout().write_all(text.as_bytes()).map_err(|e| Failure::new(Exit::Io, e))?;
    Ok(Exit::Ok)
}

/// Creates the folder and makes sure that nothing is lost in it.
fn prepare_folder(folder: &Path, files: &[PathBuf], overwrite: bool) -> Result<(), Failure> {
    if let Some(existing) = files.iter().find(|path| path.exists()).filter(|_| !overwrite) {
        let message = format!(
            "{} exists already; choose another folder with --out or replace it with --overwrite",
            existing.display()
        );
        return Err(Failure::new(Exit::Usage, message));
    }
    fs::create_dir_all(folder)
        .map_err(|e| Failure::new(Exit::Io, format!("cannot create the folder {}: {e}", folder.display())))
}

/// Trains every model with every seed, as many at once as there are cores. Sorted by model, then seed.
fn train_all(args: &ToyArgs, quiet: bool) -> Result<Vec<Outcome>, Failure> {
    // The tensors are tiny: one thread each, and several trainings side by side.
    tch::set_num_threads(1);
    let seeds = args.seed..args.seed + u64::from(args.seeds);
    let jobs: VecDeque<_> =
        MODELS.iter().flat_map(|&model| seeds.clone().map(move |seed| (model, seed))).collect();
    let total = jobs.len() as u64 * u64::from(args.steps);
    let (jobs, outcomes) = (Mutex::new(jobs), Mutex::new(vec![]));
    let progress = Progress::new(total, quiet);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((model, seed)) = jobs.lock().ok().and_then(|mut jobs| jobs.pop_front()) {
                    let outcome = train_one(model, seed, args, &progress);
                    let failed = outcome.is_err();
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                    if failed && let Ok(mut jobs) = jobs.lock() {
                        jobs.clear();
                    }
                }
            });
        }
    });
    progress.finish();
    let outcomes =
        outcomes.into_inner().map_err(|_| Failure::new(Exit::Internal, "a training thread panicked"))?;
    let mut outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    outcomes.sort_by_key(|outcome| (MODELS.iter().position(|&m| m == outcome.model), outcome.seed));
    Ok(outcomes)
}

fn train_one(model: ToyModel, seed: u64, args: &ToyArgs, progress: &Progress) -> Result<Outcome, Failure> {
    let config = ToyConfig {
        seed,
        steps: args.steps as usize,
        pretrain_steps: args.pretrain as usize,
        learning_rate: args.learning_rate,
        samples: i64::from(args.samples),
        evaluation_samples: i64::from(args.eval_samples),
        double: args.precision == Precision::F64,
    };
    let report = |p: ssn_net::toy::Progress| {
        let since = p.step % REPORT_EVERY;
        if since == 0 || p.step == config.steps {
            let steps = if since == 0 { REPORT_EVERY } else { since };
            progress.advance(steps as u64, || format!("{}, seed {seed}, loss {:.3}", name(model), p.loss));
        }
    };
    train(model, &config, report).map_err(|error| match error {
        NetError::NonFinite { .. } => Failure::new(
            Exit::NonFinite,
            format!("{} model, seed {seed}: {error}; lower --learning-rate", name(model)),
        ),
        _ => Failure::new(Exit::Internal, error),
    })
}

fn summarise(args: &ToyArgs, outcomes: &[Outcome], seconds: f64) -> Summary {
    let models = MODELS.iter().map(|&model| {
        let runs: Vec<Run> = outcomes
            .iter()
            .filter(|outcome| outcome.model == model)
            .map(|outcome| Run {
                seed: outcome.seed,
                log_likelihood: outcome.log_likelihood,
                log_likelihood_at_10000_steps: outcome.log_likelihood_at_paper_steps,
                largest_deviation: outcome.largest_deviation,
            })
            .collect();
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let at_paper_steps: Option<Vec<f64>> =
            runs.iter().map(|run| run.log_likelihood_at_10000_steps).collect();
        ModelSummary {
            model: name(model),
            optimum: optimum(model),
            paper: paper(model),
            mean_log_likelihood: mean(runs.iter().map(|run| run.log_likelihood).collect()),
            mean_log_likelihood_at_10000_steps: at_paper_steps.map(mean),
            runs,
        }
    });
    Summary {
        steps: args.steps,
        pretrain_steps: args.pretrain,
        samples: args.samples,
        evaluation_samples: args.eval_samples,
        learning_rate: args.learning_rate,
        precision: match args.precision {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
        },
        seconds,
        models: models.collect(),
    }
}

/// The table for the terminal.
fn table(args: &ToyArgs, summary: &Summary) -> String {
    let mut text = String::new();
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{arguments}");
    };
    let show_paper_steps = args.steps as usize > PAPER_STEPS;
    let optional = |value: Option<f64>| value.map_or(String::new(), |x| format!("{x:.4}"));
    line(format_args!(
        "Toy problem: {} steps, the first {} on the mean alone, {} samples per label map, {}",
        summary.steps, summary.pretrain_steps, summary.samples, summary.precision
    ));
    line(format_args!(
        "Mean log-likelihood of the two label maps, {} samples each ({:.1} s)",
        summary.evaluation_samples, summary.seconds
    ));
    line(format_args!(""));
    let at_paper = if show_paper_steps { format!("{PAPER_STEPS} steps") } else { String::new() };
    line(format_args!(
        "{:<10} {:>5} {:>12} {:>12} {:>10} {:>8}",
        "model",
        "seed",
        at_paper,
        format!("{} steps", summary.steps),
        "optimum",
        "paper"
    ));
    for model in &summary.models {
        let mut row = |seed: &str, at_paper: Option<f64>, score: f64| {
            let at_paper = optional(at_paper.filter(|_| show_paper_steps));
            let (name, optimum, paper) = (model.model, model.optimum, model.paper);
            line(format_args!(
                "{name:<10} {seed:>5} {at_paper:>12} {score:>12.4} {optimum:>10.4} {paper:>8.2}"
            ));
        };
        for run in &model.runs {
            row(&run.seed.to_string(), run.log_likelihood_at_10000_steps, run.log_likelihood);
        }
        if model.runs.len() > 1 {
            row("mean", model.mean_log_likelihood_at_10000_steps, model.mean_log_likelihood);
        }
    }
    line(format_args!(""));
    text
}

/// The figure shows the first seed of each model.
fn figure(args: &ToyArgs, summary: &Summary, outcomes: &[Outcome]) -> Result<String, Failure> {
    let maps = Vec::<f32>::try_from(label_maps(tch::Kind::Float).view([-1]))
        .map_err(|e| Failure::new(Exit::Internal, e))?;
    let maps: Vec<Vec<f32>> = maps.chunks(maps.len() / 2).map(<[f32]>::to_vec).collect();
    let panels: Vec<Panel<'_>> = MODELS
        .iter()
        .filter_map(|&model| outcomes.iter().find(|outcome| outcome.model == model))
        .map(|outcome| Panel {
            title: match outcome.model {
                ToyModel::Diagonal => "Diagonal covariance".to_owned(),
                ToyModel::LowRank => "Low-rank covariance, rank 2".to_owned(),
            },
            caption: format!(
                "log-likelihood −{:.3} after {} steps, best possible −{:.3}",
                outcome.log_likelihood.abs(),
                summary.steps,
                optimum(outcome.model).abs()
            ),
            distribution: &outcome.distribution,
            seed: args.seed,
        })
        .collect();
    toy_figure(&maps, &panels).map_err(|e| Failure::new(Exit::Internal, e))
}

fn name(model: ToyModel) -> &'static str {
    match model {
        ToyModel::LowRank => "low-rank",
        ToyModel::Diagonal => "diagonal",
    }
}

fn optimum(model: ToyModel) -> f64 {
    match model {
        ToyModel::LowRank => LOW_RANK_OPTIMUM,
        ToyModel::Diagonal => DIAGONAL_OPTIMUM,
    }
}

/// The log-likelihood that the paper reports (section 4.1).
fn paper(model: ToyModel) -> f64 {
    match model {
        ToyModel::LowRank => -0.93,
        ToyModel::Diagonal => -4.87,
    }
}
