//! Batch norm over a batch that is divided among ranks: statistics and gradients are those of the whole batch.

use std::sync::Arc;

use tch::{Kind, Tensor};

use crate::communicator::Ranks;
use crate::error::Result;

/// The statistics that serve evaluation, each `[c]`.
pub struct Running<'a> {
    /// The running mean.
    pub mean: &'a Tensor,
    /// The running variance.
    pub variance: &'a Tensor,
    /// The share of the newest batch.
    pub momentum: f64,
}

/// Batch norm of the items here with the mean and variance of those of all ranks.
///
/// # Shapes
/// `x` `[b, c, d, h, w]` with any `b`; `weight` and `bias` `[c]`. The result is like `x`.
pub fn normalize(
    x: &Tensor,
    [weight, bias]: [&Tensor; 2],
    running: &Running,
    eps: f64,
    ranks: &Arc<dyn Ranks>,
) -> Result<Tensor> {
    let whole = tch::no_grad(|| Whole::of(x, weight.kind(), eps, &**ranks))?;
    let result = tch::no_grad(|| {
        whole.update(running)?;
        let (weight, bias, mean, variance) =
            (Some(weight), Some(bias), Some(&whole.mean), Some(&whole.variance));
        x.f_batch_norm(weight, bias, mean, variance, false, 0.0, eps, true)
    })?;
    let (input, slope, ranks) = (x.detach(), weight.detach(), ranks.clone());
    let backward = move |gradient: &Tensor| {
        whole.gradients(gradient, &input, &slope, &*ranks).map_err(|error| error.to_string())
    };
    Ok(ssn_cuda::autograd::operator(&[x, weight, bias], &result, backward)?)
}

/// Statistics of the whole batch.
struct Whole {
    /// Values per channel.
    count: f64,
    /// `[c]`, in the precision of the weights.
    mean: Tensor,
    /// `[c]`, not corrected for the number of values.
    variance: Tensor,
    /// 1 / √(variance + ε), `[c]`.
    slope: Tensor,
    eps: f64,
}

impl Whole {
    /// One exchange of 2 c + 1 numbers, added in double precision.
    fn of(x: &Tensor, kind: Kind, eps: f64, ranks: &dyn Ranks) -> Result<Self> {
        let here = (x.numel() as i64 / x.size()[1]) as f64;
        // With running statistics beside it, a map of less precision has statistics in theirs.
        let unused = Tensor::f_ones([x.size()[1]], (kind, x.device()))?;
        let (mean, variance) = x.f_batch_norm_update_stats(Some(&unused), Some(&unused), 0.0)?;
        let [variance, mean] = [variance, mean].map(|part| Vec::<f64>::try_from(part.to_kind(Kind::Double)));
        let (variance, mean) = (variance?, mean?);
        let channels = mean.len();
        let squares = mean.iter().zip(&variance).map(|(mean, variance)| here * (variance + mean * mean));
        let mut sums: Vec<f64> =
            std::iter::once(here).chain(mean.iter().map(|mean| here * mean)).chain(squares).collect();
        ranks.sum_f64(&mut sums)?;
        let count = sums[0];
        let mean: Vec<f64> = sums[1..=channels].iter().map(|sum| sum / count).collect();
        let squares = sums[1 + channels..].iter().map(|sum| sum / count);
        let variance: Vec<f64> =
            squares.zip(&mean).map(|(square, mean)| (square - mean * mean).max(0.0)).collect();
        let slope: Vec<f64> = variance.iter().map(|variance| 1.0 / (variance + eps).sqrt()).collect();
        let tensor = |numbers: &[f64]| Tensor::f_from_slice(numbers)?.f_to_kind(kind);
        let (mean, variance, slope) = (tensor(&mean)?, tensor(&variance)?, tensor(&slope)?);
        Ok(Self { count, mean, variance, slope, eps })
    }

    /// Moves the running statistics towards these, the variance corrected for the number of values.
    fn update(&self, running: &Running) -> Result<(), tch::TchError> {
        let corrected = self.variance.f_mul_scalar(self.count / (self.count - 1.0))?;
        for (kept, new) in [(running.mean, &self.mean), (running.variance, &corrected)] {
            let moved =
                kept.f_mul_scalar(1.0 - running.momentum)?.f_add(&new.f_mul_scalar(running.momentum)?)?;
            kept.shallow_clone().f_copy_(&moved)?;
        }
        Ok(())
    }

    /// The gradients of x, weight and bias. Those of weight and bias are of the items here: they are summed over the ranks
    /// with all others.
    ///
    /// # Shapes
    /// `gradient` and `x` `[b, c, d, h, w]`, `weight` `[c]`.
    fn gradients(
        &self,
        gradient: &Tensor,
        x: &Tensor,
        weight: &Tensor,
        ranks: &dyn Ranks,
    ) -> Result<Vec<Tensor>> {
        let kind = weight.kind();
        let (dy, x) = (gradient.f_to_kind(kind)?, &x.f_to_kind(kind)?);
        // As if mean and variance were constants; then what comes of their being made of x.
        let constants = [&self.mean, &self.variance];
        let [mut dx, of_weight, of_bias] =
            ssn_cuda::autograd::norm_gradients(&dy, x, weight, constants, self.eps)?;
        let both = Tensor::f_cat(&[&of_bias, &of_weight], 0)?.f_to_kind(Kind::Double)?;
        let mut sums = Vec::<f64>::try_from(both)?;
        ranks.sum_f64(&mut sums)?;
        let means =
            Tensor::f_from_slice(&sums)?.f_div_scalar(self.count)?.f_to_kind(kind)?.f_view([2, -1])?;
        // weight / σ · (mean of dy + normalized x · mean of dy · normalized x), in one pass over x.
        let scaled = means.f_mul(&self.slope.f_mul(weight)?)?;
        let (offset, factor) = (scaled.f_get(0)?, scaled.f_get(1)?);
        let [mean, variance] = constants.map(Some);
        let common =
            x.f_batch_norm(Some(&factor), Some(&offset), mean, variance, false, 0.0, self.eps, true)?;
        let _ = dx.f_sub_(&common)?;
        Ok(vec![dx.f_to_kind(gradient.kind())?, of_weight, of_bias])
    }
}

#[cfg(test)]
mod tests {
    use tch::Device;

    use super::*;
    use crate::communicator::Threads;

    /// The result and the gradients of x, weight and bias, in double precision, and the running statistics.
    fn of(x: &Tensor, upstream: &Tensor, ranks: Option<&Arc<dyn Ranks>>) -> Vec<Tensor> {
        let channels = x.size()[1];
        let parameter = |value: f64| Tensor::full([channels], value, (Kind::Float, Device::Cpu));
        let [x, weight, bias] =
            [x.copy(), parameter(1.3), parameter(0.2)].map(|tensor| tensor.set_requires_grad(true));
        let (mean, variance) = (parameter(0.0), parameter(1.0));
        let y = match ranks {
            Some(ranks) => {
                let running = Running { mean: &mean, variance: &variance, momentum: 0.1 };
                normalize(&x, [&weight, &bias], &running, 1e-5, ranks).unwrap()
            }
            None => {
                let running = [Some(&mean), Some(&variance)];
                x.batch_norm(Some(&weight), Some(&bias), running[0], running[1], true, 0.1, 1e-5, true)
            }
        };
        (&y * upstream.to_kind(y.kind())).sum(Kind::Float).backward();
        let all = [y, x.grad(), weight.grad(), bias.grad(), mean, variance];
        all.map(|tensor| tensor.detach().to_kind(Kind::Double)).into()
    }

    #[test]
    fn maps_of_less_precision_have_statistics_in_that_of_the_weights() {
        tch::manual_seed(1);
        let one: Arc<dyn Ranks> = Threads::new(1).remove(0);
        let x = (Tensor::randn([3, 5, 1, 12, 12], (Kind::Float, Device::Cpu)) * 2.0 + 7.0)
            .to_kind(Kind::BFloat16);
        let upstream = x.randn_like().to_kind(Kind::Float);
        let expected = of(&x.to_kind(Kind::Float), &upstream, None);
        let found = of(&x, &upstream, Some(&one));
        let same = of(&x.to_kind(Kind::Float), &upstream, Some(&one));
        let names = ["result", "dx", "dweight", "dbias", "running mean", "running variance"];
        for (place, name) in names.iter().enumerate() {
            let distance = |found: &Tensor| {
                ((found - &expected[place]).norm() / expected[place].norm()).double_value(&[])
            };
            assert!(distance(&same[place]) < 1e-5, "{name}: {}", distance(&same[place]));
            // Results and gradients are rounded to 8 bits, statistics are not.
            let most = if place < 4 { 5e-3 } else { 1e-5 };
            assert!(distance(&found[place]) < most, "{name} of bfloat16: {}", distance(&found[place]));
        }
    }
}
