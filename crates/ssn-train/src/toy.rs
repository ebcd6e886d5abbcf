//! The toy problem of the paper (section 4.1): one line of 21 pixels with two equally probable label maps.
//!
//! The first third is on, the last third off, and the middle third all off or all on. A distribution with
//! independent logits cannot tell that the middle pixels move together; one with rank 2 can.

use serde::Serialize;
use ssn_args::LossKind;
pub use ssn_args::ToyProblem;
use ssn_core::random::derive_seed;
use ssn_io::{Error, ErrorKind};
use ssn_nn::distribution::{EPSILON, LowRankNormalTensors};
use ssn_nn::error::{NnError, Result};
use ssn_nn::loss::{EnergyOptions, Target, energy_loss, mean_loss, monte_carlo_loss};
use ssn_nn::random::{EVALUATION_NOISE, INITIAL_VALUES, NoiseSource, Pairing, StepNoise};
use tch::{COptimizer, Kind, Tensor};

use crate::trainer::not_finite;

/// Pixels on the line.
pub const PIXELS: i64 = 21;
/// Steps of the paper: 5,000 on the mean alone and 5,000 on everything.
pub const PAPER_STEPS: usize = 10_000;
/// The best log-likelihood any model can reach, −ln 2: both maps have probability ½.
pub const LOW_RANK_OPTIMUM: f64 = -std::f64::consts::LN_2;
/// The best log-likelihood of independent pixels, −7 ln 2: seven fair coins.
pub const DIAGONAL_OPTIMUM: f64 = -7.0 * std::f64::consts::LN_2;

fn kind(problem: &ToyProblem) -> Kind {
    if problem.double { Kind::Double } else { Kind::Float }
}

/// The two label maps, `[2, 1, 1, 21]` zeros and ones.
pub fn label_maps(kind: Kind) -> Tensor {
    let third = (PIXELS / 3) as usize;
    let map = |middle: f32| [vec![1f32; third], vec![middle; third], vec![0f32; third]].concat();
    Tensor::from_slice(&[map(0.0), map(1.0)].concat()).view([2, 1, 1, PIXELS]).to_kind(kind)
}

/// Initial value of the log-diagonal and of the log-scale of the factor's columns.
const INITIAL_LOG_SCALE: f64 = -1.0;
/// The rank of the low-rank model.
const RANK: i64 = 2;

/// Which of the paper's two models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToyModel {
    /// Rank 2 plus diagonal.
    LowRank,
    /// Diagonal covariance alone.
    Diagonal,
}

/// Trainable parameters of a toy model.
struct Parameters {
    /// `[1, 1, v]`.
    mean: Tensor,
    /// `[1, 1, v]`.
    log_diagonal: Tensor,
    /// A column's direction is its row here, divided by its length: `[1, r, 1, v]`.
    directions: Tensor,
    /// Logarithm of a column's length: `[1, r, 1, 1]`.
    log_lengths: Tensor,
}

impl Parameters {
    fn new(model: ToyModel, seed: u64, kind: Kind) -> Self {
        let rank = match model {
            ToyModel::LowRank => RANK,
            ToyModel::Diagonal => 0,
        };
        let cpu = (kind, tch::Device::Cpu);
        let directions = Tensor::from_slice(&uniform(seed, (rank * PIXELS) as usize)).to_kind(kind);
        let trainable = |t: Tensor| t.set_requires_grad(true);
        Self {
            mean: trainable(Tensor::zeros([1, 1, PIXELS], cpu)),
            log_diagonal: trainable(Tensor::full([1, 1, PIXELS], INITIAL_LOG_SCALE, cpu)),
            directions: trainable(directions.view([1, rank, 1, PIXELS])),
            log_lengths: trainable(Tensor::full([1, rank, 1, 1], INITIAL_LOG_SCALE, cpu)),
        }
    }

    /// What is trained after the mean.
    fn spread(&self) -> [&Tensor; 3] {
        [&self.log_diagonal, &self.directions, &self.log_lengths]
    }

    /// Whether every gradient that there is has only finite values.
    fn gradients_are_finite(&self) -> bool {
        let gradients = [&self.mean].into_iter().chain(self.spread()).map(Tensor::grad);
        gradients.filter(Tensor::defined).all(|gradient| gradient.isfinite().all().int64_value(&[]) == 1)
    }

    /// The distribution that the parameters describe, a batch of one.
    fn distribution(&self) -> Result<LowRankNormalTensors> {
        let lengths = self.directions.square().sum_dim_intlist([3i64].as_slice(), true, None::<Kind>).sqrt();
        let factor = &self.directions / lengths * self.log_lengths.exp();
        LowRankNormalTensors::from_log_diagonal(
            self.mean.shallow_clone(),
            &self.log_diagonal,
            factor,
            EPSILON,
        )
    }
}

/// Numbers in −½ … ½, a function of the seed.
fn uniform(seed: u64, count: usize) -> Vec<f64> {
    (0..count as u64).map(|i| derive_seed(seed, INITIAL_VALUES, i) as f64 / 2f64.powi(64) - 0.5).collect()
}

/// A trained toy model with its scores.
#[derive(Debug, Serialize)]
pub struct ToyResult {
    /// Which model.
    #[serde(skip)]
    pub model: ToyModel,
    /// Its seed.
    pub seed: u64,
    /// Mean log-likelihood of the two label maps after the last step.
    pub log_likelihood: f64,
    /// The same after the paper's 10,000 steps, if training went that far.
    #[serde(rename = "log_likelihood_at_10000_steps")]
    pub log_likelihood_at_paper_steps: Option<f64>,
    /// The largest standard deviation of a logit, which grows without bound as training goes on.
    pub largest_deviation: f64,
    /// The share of the samples that are each of the two label maps.
    #[serde(rename = "map_frequencies")]
    pub frequencies: [f64; 2],
    /// The learned distribution.
    #[serde(skip)]
    pub distribution: ssn_core::LowRankNormal,
}

/// Trains one model with the first seed; `progress` hears of the number and the loss of every step. How many seeds there are, and
/// where files go, is for `ssn::solve_toy`.
///
/// # Errors
/// [`ErrorKind::NonFinite`] when a loss or a gradient is not finite, in which case that step is not applied, and when the last
/// step left parameters that are no distribution.
pub fn train(
    model: ToyModel,
    config: &ToyProblem,
    mut progress: impl FnMut(usize, f64),
) -> Result<ToyResult> {
    let (kind, steps) = (kind(config), config.steps as usize);
    let targets = Target::binary(label_maps(kind))?;
    let raters = Target::binary(label_maps(kind).transpose(0, 1))?; // [1, 2, 1, 21]
    let is_energy = config.loss == LossKind::Energy;
    let parameters = Parameters::new(model, config.seed, kind);
    let mean_optimizer = adam(config.learning_rate, &[&parameters.mean])?;
    let spread_optimizer = adam(config.learning_rate, &parameters.spread())?;
    let mut at_paper_steps = None;

    for step in 1..=steps {
        let pretraining = step <= config.pretrain as usize;
        let loss = if pretraining {
            mean_loss(&parameters.mean.expand([2, 1, PIXELS], false), &targets)?
        } else {
            let distribution = parameters.distribution()?;
            // The likelihood sees an image with each map; the energy, one image with two raters.
            let distribution = if is_energy { distribution } else { distribution.expanded(2) };
            let shape = distribution.noise_shape(i64::from(config.samples));
            let noise = StepNoise::new(config.seed, step as u64, shape, Pairing::Independent)?;
            match config.loss {
                LossKind::Likelihood => {
                    monte_carlo_loss(&distribution, &targets, NoiseSource::Step(&noise))?.loss
                }
                LossKind::Energy => {
                    energy_loss(&distribution, &raters, NoiseSource::Step(&noise), EnergyOptions::default())?
                }
            }
        };
        let loss = loss.mean(Kind::Double);
        let value = loss.double_value(&[]);
        if !value.is_finite() {
            return Err(not_finite("the loss", step));
        }
        mean_optimizer.zero_grad()?;
        spread_optimizer.zero_grad()?;
        loss.backward();
        if !parameters.gradients_are_finite() {
            return Err(not_finite("a gradient", step));
        }
        mean_optimizer.step()?;
        if !pretraining {
            spread_optimizer.step()?;
        }
        if step == PAPER_STEPS {
            at_paper_steps = Some(log_likelihood(&parameters.distribution()?, &targets, config)?);
        }
        progress(step, value);
    }

    let distribution = parameters.distribution()?;
    let host = distribution.to_host(0).map_err(|error| match error {
        NnError::Core(reason) => {
            let reason = format!("the model cannot be used after step {steps}: {reason}");
            Error::new(ErrorKind::NonFinite, reason).into()
        }
        other => other,
    })?;
    let log_likelihood = match at_paper_steps {
        Some(score) if steps == PAPER_STEPS => score,
        _ => log_likelihood(&distribution, &targets, config)?,
    };
    let deviations = (0..PIXELS as usize).map(|x| host.covariance(x, x).sqrt());
    Ok(ToyResult {
        model,
        seed: config.seed,
        log_likelihood,
        log_likelihood_at_paper_steps: at_paper_steps,
        largest_deviation: deviations.fold(0.0, f64::max),
        frequencies: frequencies(&distribution, config)?,
        distribution: host,
    })
}

/// Mean over the two label maps of log p(map), estimated with the configured number of samples each.
fn log_likelihood(distribution: &LowRankNormalTensors, targets: &Target, config: &ToyProblem) -> Result<f64> {
    let _guard = tch::no_grad_guard();
    let distribution = distribution.expanded(2);
    let seed = derive_seed(config.seed, EVALUATION_NOISE, 0);
    let shape = distribution.noise_shape(i64::from(config.eval_samples));
    let noise = StepNoise::new(seed, 0, shape, Pairing::Independent)?;
    let loss = monte_carlo_loss(&distribution, targets, NoiseSource::Step(&noise))?.loss; // [2]
    Ok(-loss.mean(Kind::Double).double_value(&[]))
}

/// The share of samples that are on exactly where each of the two label maps is.
fn frequencies(distribution: &LowRankNormalTensors, config: &ToyProblem) -> Result<[f64; 2]> {
    let _guard = tch::no_grad_guard();
    let seed = derive_seed(config.seed, EVALUATION_NOISE, 1);
    let shape = distribution.noise_shape(i64::from(config.eval_samples));
    let noise = StepNoise::new(seed, 0, shape, Pairing::Independent)?;
    let samples =
        distribution.sample(&NoiseSource::Step(&noise).draws(0..i64::from(config.eval_samples))?)?; // [m, 1, 1, 21]
    let maps = label_maps(kind(config));
    let share = |map: i64| {
        let equal = samples.f_gt(0.0)?.f_eq_tensor(&maps.f_get(map)?.f_gt(0.5)?)?.f_all_dim(3, false)?;
        equal.f_to_kind(Kind::Double)?.f_mean(Kind::Double)?.f_double_value(&[])
    };
    Ok([share(0)?, share(1)?])
}

fn adam(learning_rate: f64, parameters: &[&Tensor]) -> Result<COptimizer> {
    let mut optimizer = COptimizer::adam(learning_rate, 0.9, 0.999, 0.0, 1e-8, false)?;
    for parameter in parameters {
        optimizer.add_parameters(parameter, 0)?;
    }
    Ok(optimizer)
}
