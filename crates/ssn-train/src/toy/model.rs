//! The two models of the toy problem: free parameters, no network.

use tch::{Kind, Tensor};

use super::PIXELS;
use crate::error::Result;
use ssn_core::random::derive_seed;
use ssn_nn::distribution::{EPSILON, LowRankNormal};
use ssn_nn::random::INITIAL_VALUES;

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
pub(super) struct Parameters {
    /// `[1, 1, v]`.
    pub(super) mean: Tensor,
    /// `[1, 1, v]`.
    log_diagonal: Tensor,
    /// A column's direction is its row here, divided by its length: `[1, r, 1, v]`.
    directions: Tensor,
    /// Logarithm of a column's length: `[1, r, 1, 1]`.
    log_lengths: Tensor,
}

impl Parameters {
    pub(super) fn new(model: ToyModel, seed: u64, kind: Kind) -> Self {
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
    pub(super) fn spread(&self) -> [&Tensor; 3] {
        [&self.log_diagonal, &self.directions, &self.log_lengths]
    }

    /// Whether every gradient that there is has only finite values.
    pub(super) fn gradients_are_finite(&self) -> bool {
        let gradients = [&self.mean].into_iter().chain(self.spread()).map(Tensor::grad);
        gradients.filter(Tensor::defined).all(|gradient| gradient.isfinite().all().int64_value(&[]) == 1)
    }

    /// The distribution that the parameters describe, a batch of one.
    pub(super) fn distribution(&self) -> Result<LowRankNormal> {
        let lengths = self.directions.square().sum_dim_intlist([3i64].as_slice(), true, None::<Kind>).sqrt();
        let factor = &self.directions / lengths * self.log_lengths.exp();
        Ok(LowRankNormal::from_log_diagonal(self.mean.shallow_clone(), &self.log_diagonal, factor, EPSILON)?)
    }
}

/// Numbers in −½ … ½, a function of the seed.
fn uniform(seed: u64, count: usize) -> Vec<f64> {
    (0..count as u64).map(|i| derive_seed(seed, INITIAL_VALUES, i) as f64 / 2f64.powi(64) - 0.5).collect()
}
