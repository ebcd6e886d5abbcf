//! Training and judging one toy model.

use ssn_nn::NnError;
use tch::{COptimizer, Kind, Tensor};

use super::model::{Parameters, ToyModel};
use super::{PAPER_STEPS, PIXELS, ToyConfig, label_maps};
use crate::error::{Result, TrainError};
use ssn_core::random::derive_seed;
use ssn_nn::distribution::LowRankNormal;
use ssn_nn::loss::target::Target;
use ssn_nn::loss::{mean_loss, monte_carlo_loss};
use ssn_nn::random::EVALUATION_NOISE;
use ssn_nn::random::noise::{NoiseSource, Pairing, StepNoise};

/// Where a training stands.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Steps done.
    pub step: usize,
    /// The loss of the last step.
    pub loss: f64,
}

/// A trained toy model with its scores.
#[derive(Debug)]
pub struct Outcome {
    /// Which model.
    pub model: ToyModel,
    /// Its seed.
    pub seed: u64,
    /// Mean log-likelihood of the two label maps after the last step.
    pub log_likelihood: f64,
    /// The same after the paper's 10,000 steps, if training went that far.
    pub log_likelihood_at_paper_steps: Option<f64>,
    /// The largest standard deviation of a logit, which grows without bound as training goes on.
    pub largest_deviation: f64,
    /// The learnt distribution.
    pub distribution: ssn_core::LowRankNormal,
}

/// Trains one model; `progress` hears of every step.
///
/// # Errors
/// [`TrainError::NonFinite`] when a loss or a gradient is not finite; that step is not applied.
/// [`TrainError::Diverged`] when the last step left parameters that are no distribution.
pub fn train(model: ToyModel, config: &ToyConfig, mut progress: impl FnMut(Progress)) -> Result<Outcome> {
    let kind = config.kind();
    let targets = Target::switches(label_maps(kind))?;
    let parameters = Parameters::new(model, config.seed, kind);
    let mean_optimizer = adam(config.learning_rate, &[&parameters.mean])?;
    let spread_optimizer = adam(config.learning_rate, &parameters.spread())?;
    let mut at_paper_steps = None;

    for step in 1..=config.steps {
        let pretraining = step <= config.pretrain_steps;
        let loss = if pretraining {
            mean_loss(&parameters.mean.expand([2, 1, PIXELS], false), &targets)?
        } else {
            let distribution = parameters.distribution()?.expanded(2);
            let shape = distribution.noise_shape(config.samples);
            let noise = StepNoise::new(config.seed, step as u64, shape, Pairing::Independent)?;
            monte_carlo_loss(&distribution, &targets, NoiseSource::Step(&noise))?.loss
        };
        let loss = loss.mean(Kind::Double);
        let value = loss.double_value(&[]);
        if !value.is_finite() {
            return Err(TrainError::NonFinite { what: "the loss".to_owned(), step });
        }
        mean_optimizer.zero_grad()?;
        spread_optimizer.zero_grad()?;
        loss.backward();
        if !parameters.gradients_are_finite() {
            return Err(TrainError::NonFinite { what: "a gradient".to_owned(), step });
        }
        mean_optimizer.step()?;
        if !pretraining {
            spread_optimizer.step()?;
        }
        if step == PAPER_STEPS {
            at_paper_steps = Some(log_likelihood(&parameters.distribution()?, &targets, config)?);
        }
        progress(Progress { step, loss: value });
    }

    let distribution = parameters.distribution()?;
    let host = distribution.to_host(0).map_err(|error| match error {
        NnError::Core(reason) => TrainError::Diverged { step: config.steps, reason },
        other => other.into(),
    })?;
    let log_likelihood = match at_paper_steps {
        Some(score) if config.steps == PAPER_STEPS => score,
        _ => log_likelihood(&distribution, &targets, config)?,
    };
    let deviations = (0..PIXELS as usize).map(|x| host.covariance(x, x).sqrt());
    Ok(Outcome {
        model,
        seed: config.seed,
        log_likelihood,
        log_likelihood_at_paper_steps: at_paper_steps,
        largest_deviation: deviations.fold(0.0, f64::max),
        distribution: host,
    })
}

/// Mean over the two label maps of log p(map), estimated with the configured number of samples each.
fn log_likelihood(distribution: &LowRankNormal, targets: &Target, config: &ToyConfig) -> Result<f64> {
    let _guard = tch::no_grad_guard();
    let distribution = distribution.expanded(2);
    let seed = derive_seed(config.seed, EVALUATION_NOISE, 0);
    let shape = distribution.noise_shape(config.evaluation_samples);
    let noise = StepNoise::new(seed, 0, shape, Pairing::Independent)?;
    let loss = monte_carlo_loss(&distribution, targets, NoiseSource::Step(&noise))?.loss; // [2]
    Ok(-loss.mean(Kind::Double).double_value(&[]))
}

fn adam(learning_rate: f64, parameters: &[&Tensor]) -> Result<COptimizer> {
    let mut optimizer = COptimizer::adam(learning_rate, 0.9, 0.999, 0.0, 1e-8, false)?;
    for parameter in parameters {
        optimizer.add_parameters(parameter, 0)?;
    }
    Ok(optimizer)
}
