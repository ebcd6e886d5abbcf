//! The numbers of a run of `ssn toy`: as JSON, and as a table for the terminal.

use std::fmt::Write;

use serde::Serialize;
use ssn_cli::args::{Precision, ToyArgs};
use ssn_train::toy::{DIAGONAL_OPTIMUM, LOW_RANK_OPTIMUM, PAPER_STEPS, ToyModel, ToyResult};

use super::MODELS;

/// The result as JSON.
#[derive(Serialize)]
pub struct Summary {
    pub steps: u32,
    pretrain_steps: u32,
    samples: u32,
    evaluation_samples: u32,
    learning_rate: f64,
    precision: &'static str,
    seconds: f64,
    models: Vec<ModelSummary>,
}

#[derive(Serialize)]
pub struct ModelSummary {
    model: &'static str,
    optimum: f64,
    paper: f64,
    mean_log_likelihood: f64,
    mean_log_likelihood_at_10000_steps: Option<f64>,
    runs: Vec<Run>,
}

#[derive(Serialize)]
pub struct Run {
    seed: u64,
    log_likelihood: f64,
    log_likelihood_at_10000_steps: Option<f64>,
    largest_deviation: f64,
}

/// Gathers the numbers.
pub fn summarize(args: &ToyArgs, outcomes: &[ToyResult], seconds: f64) -> Summary {
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
pub fn table(args: &ToyArgs, summary: &Summary) -> String {
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

/// The model's name in tables and files.
pub fn name(model: ToyModel) -> &'static str {
    match model {
        ToyModel::LowRank => "low-rank",
        ToyModel::Diagonal => "diagonal",
    }
}

/// The best log-likelihood that the model can reach.
pub fn optimum(model: ToyModel) -> f64 {
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
