//! Losses: the likelihood of the paper, the energy loss, and those of the mean logits alone.

mod energy;
mod likelihood;
mod mean;
mod target;

pub use energy::{EnergyOptions, Similarity, TWO_DRAWS, chunked_energy_loss, energy_loss};
pub use likelihood::{MonteCarloLoss, chunked_loss, monte_carlo_loss, tempered_loss};
pub use mean::{dice_loss, mean_loss};
pub use target::{Likelihood, Target};
