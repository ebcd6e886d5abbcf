//! Losses: the likelihood of the paper, the energy loss, those of the mean logits alone, and own ones ([`Loss`]).

mod energy;
mod likelihood;
mod own;
mod target;

use tch::{Kind, Tensor};

pub use energy::{EnergyOptions, Similarity, TWO_DRAWS, chunked_energy_loss, energy_loss};
pub use likelihood::{MonteCarloLoss, chunked_loss, monte_carlo_loss, tempered_loss};
pub use own::{Loss, OwnLoss, register_loss};
pub use target::{Likelihood, Target};

use crate::error::{NnError, Result};

/// The negative log-likelihood of the mean logits alone: the cross-entropy of a deterministic network, summed over
/// the voxels. Pre-training uses it too.
///
/// # Shapes
/// `mean` `[b, c, v]`. Gives `[b]`.
pub fn mean_loss(mean: &Tensor, target: &Target) -> Result<Tensor> {
    Ok(-over_targets(&target.log_probability(&mean.unsqueeze(0))?.squeeze_dim(0)))
}

/// 1 − the soft Dice overlap of the mean logits' probabilities with the target, averaged over the foreground
/// classes; an optional term beside the others, which weighs small structures as much as large ones.
///
/// # Shapes
/// `mean` `[b, c, v]`. Gives `[b]`.
pub fn dice_loss(mean: &Tensor, target: &Target) -> Result<Tensor> {
    let &[b, c, v] = mean.size().as_slice() else {
        return Err(NnError::shape("mean", &mean.size(), "[b, c, v]"));
    };
    target.check(b, c, v)?;
    // [b, 1, c, v] and [b, t, c, v], without the background of exclusive classes.
    let (probabilities, truth) = match target.likelihood() {
        Likelihood::Categorical => {
            let truth = target.maps().one_hot(c).transpose(2, 3).narrow(2, 1, c - 1);
            (mean.softmax(1, None::<Kind>).narrow(1, 1, c - 1).unsqueeze(1), truth)
        }
        Likelihood::Bernoulli => (mean.sigmoid().unsqueeze(1), target.maps().shallow_clone()),
    };
    let truth = truth.to_kind(mean.kind());
    let over_voxels = |x: Tensor| x.sum_dim_intlist([3i64].as_slice(), false, Kind::Double);
    let overlap = over_voxels(&probabilities * &truth);
    let total = over_voxels(probabilities) + over_voxels(truth);
    // One voxel is added to both, so that a class that is absent and not predicted counts as found.
    let dice = (overlap * 2.0 + 1.0) / (total + 1.0);
    Ok(over_targets(&(1.0 - dice.mean_dim([2i64].as_slice(), false, None::<Kind>))))
}

/// The mean over the targets of each image, `[b, t]` → `[b]`.
fn over_targets(each: &Tensor) -> Tensor {
    each.mean_dim([1i64].as_slice(), false, None::<Kind>)
}
