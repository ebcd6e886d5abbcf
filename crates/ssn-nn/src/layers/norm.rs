//! Batch norm, synchronized over ranks where asked for, and instance norm.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use super::Mode;
use crate::communicator::Communicator;
use crate::error::{NnError, Result, require};
use crate::parameters::{Init, Scope, SharedStep};

/// Over what each channel is normalized.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, tag = "kind")]
pub enum NormKind {
    /// Over the batch and space; running statistics serve evaluation.
    Batch {
        /// Added to the variance.
        #[serde(default = "default_eps")]
        eps: f64,
        /// The share of the newest batch in the running statistics.
        #[serde(default = "default_momentum")]
        momentum: f64,
    },
    /// Over the space of each image alone: for small batches.
    Instance {
        /// Added to the variance.
        #[serde(default = "default_eps")]
        eps: f64,
    },
}

fn default_eps() -> f64 {
    1e-5
}

fn default_momentum() -> f64 {
    0.1
}

impl NormKind {
    /// Batch norm as PyTorch has it by default.
    pub const BATCH: Self = Self::Batch { eps: 1e-5, momentum: 0.1 };
    /// Instance norm as PyTorch has it by default.
    pub const INSTANCE: Self = Self::Instance { eps: 1e-5 };

    /// Refuses an ε or a momentum that makes no sense.
    pub fn check(self) -> Result<()> {
        let (Self::Batch { eps, .. } | Self::Instance { eps }) = self;
        require(eps.is_finite() && eps > 0.0, "norm.eps", eps, "a small positive number")?;
        match self {
            Self::Batch { momentum, .. } => {
                require((0.0..=1.0).contains(&momentum), "norm.momentum", momentum, "from 0 to 1")
            }
            Self::Instance { .. } => Ok(()),
        }
    }
}

/// A normalization with a slope and an offset per channel.
#[derive(Debug)]
pub struct Norm {
    weight: Tensor,
    bias: Tensor,
    eps: f64,
    momentum: f64,
    /// Of batch norm, the mean and the variance that serve evaluation, each `[c]`.
    running: Option<[Tensor; 2]>,
    step: SharedStep,
}

impl Norm {
    /// Makes the tensors `weight`, `bias` and, for batch norm, `running_mean` and `running_var`.
    pub fn new(scope: &mut Scope, channels: i64, kind: NormKind) -> Result<Self> {
        let weight = scope.parameter("weight", &[channels], Init::Constant(1.0))?;
        let bias = scope.parameter("bias", &[channels], Init::Constant(0.0))?;
        let (eps, momentum, running) = match kind {
            NormKind::Batch { eps, momentum } => {
                let mean = scope.buffer("running_mean", &[channels], Init::Constant(0.0))?;
                let variance = scope.buffer("running_var", &[channels], Init::Constant(1.0))?;
                (eps, momentum, Some([mean, variance]))
            }
            NormKind::Instance { eps } => (eps, 0.0, None),
        };
        Ok(Self { weight, bias, eps, momentum, running, step: scope.step() })
    }

    /// The tensors and options of the GPU kernel that fuses the norm with dropout and activation, yet without these.
    pub(super) fn fused(
        &self,
        x: &Tensor,
        mode: Mode,
    ) -> Result<(ssn_cuda::NormTensors<'_>, ssn_cuda::NormOptions)> {
        self.check(x, mode)?;
        let running = self.running.as_ref().map(|running| running.each_ref());
        let (weight, bias) = (&self.weight, &self.bias);
        let tensors = ssn_cuda::NormTensors { weight, bias, prelu: None, running, seed: None };
        let (first, whole) = if mode.is_training() { self.step.batch_slice() } else { (0, 0) };
        let options = ssn_cuda::NormOptions {
            eps: self.eps,
            momentum: self.momentum,
            keep: 1.0,
            layer: 0,
            activation: ssn_cuda::Activation::Identity,
            channels: self.weight.size()[0],
            per_image: running.is_none().into(),
            training: mode.is_training().into(),
            first,
            whole,
        };
        Ok((tensors, options))
    }

    /// Whether it normalizes over the batch.
    pub(super) fn is_batch_norm(&self) -> bool {
        self.running.is_some()
    }

    /// Refuses feature maps with a single value per channel, which have no variance.
    fn check(&self, x: &Tensor, mode: Mode) -> Result<()> {
        let size = x.size();
        let space = size[2..].iter().product::<i64>();
        let values = match self.running {
            // Other ranks have values as well.
            Some(_) if self.step.communicator().is_some() => 2,
            Some(_) => size[0] * space,
            None => space,
        };
        if mode.is_training() && values < 2 {
            // The variance of a single value is 0/0 and would make the running statistics NaN for ever.
            let expected = "a map with at least 2 values per channel to normalize over: enlarge the patch or the batch, \
                            or take fewer levels"
                .to_owned();
            return Err(NnError::shape("a feature map in training", &size, expected));
        }
        Ok(())
    }

    /// Batch norm in training updates the running statistics.
    ///
    /// # Shapes
    /// `[b, c, d, h, w]`, unchanged.
    pub fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.check(x, mode)?;
        let (weight, bias) = (Some(&self.weight), Some(&self.bias));
        let (eps, momentum) = (self.eps, self.momentum);
        let Some([mean, variance]) = &self.running else {
            let none = None::<&Tensor>;
            return Ok(x.f_instance_norm(weight, bias, none, none, true, momentum, eps, true)?);
        };
        if let Some(comm) = self.step.communicator().filter(|_| mode.is_training()) {
            let running = [mean, variance];
            return sync_batch_norm(x, [&self.weight, &self.bias], running, (eps, momentum), &comm);
        }
        let (mean, variance) = (Some(mean), Some(variance));
        Ok(x.f_batch_norm(weight, bias, mean, variance, mode.is_training(), momentum, eps, true)?)
    }
}

/// Batch norm over a batch that is divided among ranks: statistics and gradients are those of the whole batch.
///
/// # Shapes
/// `x` `[b, c, d, h, w]` with any `b`; `weight`, `bias` and the running mean and variance `[c]`. The result is like `x`.
fn sync_batch_norm(
    x: &Tensor,
    [weight, bias]: [&Tensor; 2],
    running: [&Tensor; 2],
    (eps, momentum): (f64, f64),
    comm: &Arc<dyn Communicator>,
) -> Result<Tensor> {
    let stats = tch::no_grad(|| BatchStats::of(x, weight.kind(), eps, &**comm))?;
    let result = tch::no_grad(|| {
        stats.update(running, momentum)?;
        let (weight, bias, mean, variance) =
            (Some(weight), Some(bias), Some(&stats.mean), Some(&stats.variance));
        x.f_batch_norm(weight, bias, mean, variance, false, 0.0, eps, true)
    })?;
    let (input, slope, comm) = (x.detach(), weight.detach(), comm.clone());
    let backward = move |gradient: &Tensor| {
        stats.gradients(gradient, &input, &slope, &*comm).map_err(|error| error.to_string())
    };
    Ok(ssn_cuda::autograd::custom_function(&[x, weight, bias], result, backward)?)
}

/// Statistics of the whole batch.
struct BatchStats {
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

impl BatchStats {
    /// One exchange of 2 c + 1 numbers, added in double precision.
    fn of(x: &Tensor, kind: Kind, eps: f64, comm: &dyn Communicator) -> Result<Self> {
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
        comm.all_reduce_f64(&mut sums)?;
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
    fn update(&self, [mean, variance]: [&Tensor; 2], momentum: f64) -> Result<(), tch::TchError> {
        let corrected = self.variance.f_mul_scalar(self.count / (self.count - 1.0))?;
        for (old, new) in [(mean, &self.mean), (variance, &corrected)] {
            let moved = old.f_mul_scalar(1.0 - momentum)?.f_add(&new.f_mul_scalar(momentum)?)?;
            old.shallow_clone().f_copy_(&moved)?;
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
        comm: &dyn Communicator,
    ) -> Result<Vec<Tensor>> {
        let kind = weight.kind();
        let (dy, x) = (gradient.f_to_kind(kind)?, &x.f_to_kind(kind)?);
        // As if mean and variance were constants; then what comes of their being made of x.
        let constants = [&self.mean, &self.variance];
        let [mut dx, of_weight, of_bias] =
            ssn_cuda::autograd::norm_gradients(&dy, x, weight, constants, self.eps)?;
        let both = Tensor::f_cat(&[&of_bias, &of_weight], 0)?.f_to_kind(Kind::Double)?;
        let mut sums = Vec::<f64>::try_from(both)?;
        comm.all_reduce_f64(&mut sums)?;
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
    use crate::communicator::ThreadCommunicator;

    /// The result and the gradients of x, weight and bias, in double precision, and the running statistics.
    fn of(x: &Tensor, upstream: &Tensor, comm: Option<&Arc<dyn Communicator>>) -> Vec<Tensor> {
        let channels = x.size()[1];
        let parameter = |value: f64| Tensor::full([channels], value, (Kind::Float, Device::Cpu));
        let [x, weight, bias] =
            [x.copy(), parameter(1.3), parameter(0.2)].map(|tensor| tensor.set_requires_grad(true));
        let (mean, variance) = (parameter(0.0), parameter(1.0));
        let y = match comm {
            Some(comm) => {
                sync_batch_norm(&x, [&weight, &bias], [&mean, &variance], (1e-5, 0.1), comm).unwrap()
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
        let one: Arc<dyn Communicator> = ThreadCommunicator::new(1).remove(0);
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
