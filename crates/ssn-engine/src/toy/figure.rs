//! The figure of a run of `ssn toy`.

use ssn_cli::args::ToyArgs;
use ssn_cli::{Exit, Failure};
use ssn_eval::figures::toy::{Panel, toy_figure};
use ssn_train::toy::{ToyModel, ToyResult, label_maps};

use super::MODELS;
use super::summary::{Summary, optimum};

/// The figure shows the first seed of each model.
pub fn figure(args: &ToyArgs, summary: &Summary, outcomes: &[ToyResult]) -> Result<String, Failure> {
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
