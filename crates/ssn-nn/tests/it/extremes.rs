//! At the ends of the number range, losses and gradients are finite, or the error is a typed one.

use ssn_nn::heads::Head;
use ssn_nn::layers::LinearInit;
use ssn_nn::loss::{chunked_loss, dice_loss, mean_loss};
use ssn_nn::parameters::Parameters;
use ssn_nn::{
    HeadConfig, LowRankNormalTensors, NoiseSource, Pairing, Prediction, StepNoise, StochasticConfig, Target,
};
use tch::{Device, Kind, Tensor};

use crate::common::begin_at_seed;

/// The loss of a distribution and the gradients of mean, log-diagonal and factor, all finite or not.
fn all_finite(
    mean: Tensor,
    log_diagonal: Tensor,
    factor: Tensor,
    mask: Option<&Tensor>,
    target: &Target,
) -> bool {
    let leaves = [mean, log_diagonal, factor].map(|t| t.set_requires_grad(true));
    // All samples at once, and in turns.
    let ways = [(Pairing::Independent, 20), (Pairing::Antithetic, 10), (Pairing::Independent, 3)];
    for (pairing, draws_at_once) in ways {
        let [mean, log_diagonal, factor] = leaves.each_ref();
        let (mean, factor) = (mean.shallow_clone(), factor.shallow_clone());
        let mut d = LowRankNormalTensors::from_log_diagonal(mean, log_diagonal, factor, 1e-5).unwrap();
        if let Some(mask) = mask {
            d = d.masked(mask, 1e-5).unwrap();
        }
        let noise = StepNoise::new(1, 2, d.noise_shape(20), pairing).unwrap();
        let loss = chunked_loss(&d, target, NoiseSource::Step(&noise), 1.0, draws_at_once).unwrap().loss;
        if loss.isfinite().all().int64_value(&[]) != 1 {
            return false;
        }
        loss.mean(Kind::Double).backward();
    }
    leaves.iter().all(|leaf| leaf.grad().isfinite().all().int64_value(&[]) == 1)
}

const SHAPE: [i64; 3] = [2, 3, 60];

fn randn(shape: &[i64], kind: Kind) -> Tensor {
    Tensor::randn(shape, (kind, Device::Cpu))
}

fn targets() -> [Target; 3] {
    let maps = |classes: i64| Tensor::randint(classes, [2, 1, 60], (Kind::Int64, Device::Cpu));
    let binary = Tensor::randint(2, [2, 1, 3, 60], (Kind::Float, Device::Cpu));
    [
        Target::classes(maps(3), 3).unwrap(),
        // A single class everywhere.
        Target::classes(maps(1) + 2, 3).unwrap(),
        Target::binary(binary).unwrap(),
    ]
}

#[test]
fn logits_of_a_million() {
    let _alone = begin_at_seed(1);
    for kind in [Kind::Float, Kind::Double] {
        for target in &targets() {
            let mean = randn(&SHAPE, kind).sign() * 1e6;
            let factor = randn(&[2, 4, 3, 60], kind) * 1e6;
            assert!(all_finite(mean, randn(&SHAPE, kind), factor, None, target), "{kind:?}");
        }
    }
}

#[test]
fn a_log_diagonal_of_80() {
    let _alone = begin_at_seed(1);
    for kind in [Kind::Float, Kind::Double] {
        for sign in [1.0, -1.0] {
            for target in &targets() {
                let log_diagonal = Tensor::full(SHAPE, 80.0 * sign, (kind, Device::Cpu));
                let factor = randn(&[2, 4, 3, 60], kind);
                assert!(
                    all_finite(randn(&SHAPE, kind), log_diagonal, factor, None, target),
                    "{kind:?} {sign}"
                );
            }
        }
    }
}

#[test]
fn patches_wholly_outside_the_mask() {
    let _alone = begin_at_seed(1);
    for kind in [Kind::Float, Kind::Double] {
        let mask = Tensor::zeros([2, 60], (kind, Device::Cpu));
        for target in &targets() {
            let (mean, log_diagonal) = (randn(&SHAPE, kind), randn(&SHAPE, kind));
            assert!(all_finite(mean, log_diagonal, randn(&[2, 4, 3, 60], kind), Some(&mask), target));
        }
    }
}

#[test]
fn the_losses_of_the_mean_at_a_million() {
    let _alone = begin_at_seed(1);
    for kind in [Kind::Float, Kind::Double] {
        for target in &targets() {
            for loss in [mean_loss, dice_loss] {
                let mean = (randn(&SHAPE, kind).sign() * 1e6).set_requires_grad(true);
                let value = loss(&mean, target).unwrap().sum(Kind::Double);
                value.backward();
                assert!(value.double_value(&[]).is_finite());
                assert_eq!(mean.grad().isfinite().all().int64_value(&[]), 1);
            }
        }
    }
}

#[test]
fn what_a_network_says_outside_the_mask_does_not_matter() {
    let _alone = begin_at_seed(1);
    let config = StochasticConfig { rank: 1, ..StochasticConfig::default() };
    let mut parameters = Parameters::new(0, Kind::Float, Device::Cpu);
    let head = Head::new(&mut parameters.root(), 4, 2, HeadConfig::Stochastic(config), LinearInit::HeNormal)
        .unwrap();
    // A log-diagonal far beyond what single precision can raise e to, outside only.
    let mask = Tensor::from_slice(&[1f32, 1.0, 0.0, 0.0]).view([1, 1, 1, 4]);
    let features = randn(&[1, 4, 1, 1, 4], Kind::Float);
    let _ = features.narrow(4, 2, 2).g_mul_scalar_(1e4);
    let Prediction::Stochastic(d) = head.forward(&features, Some(&mask)).unwrap() else { unreachable!() };
    assert_eq!(d.diagonal().isfinite().all().int64_value(&[]), 1);
    d.diagonal().sum(Kind::Float).backward();
    for parameter in parameters.trainable().filter(|parameter| parameter.tensor.grad().defined()) {
        assert_eq!(parameter.tensor.grad().isfinite().all().int64_value(&[]), 1, "{}", parameter.name);
    }
}

#[test]
fn the_soft_limit_keeps_the_log_diagonal_where_it_says() {
    let _alone = begin_at_seed(1);
    let config = StochasticConfig { rank: 1, log_diagonal_limit: Some(5.0), ..StochasticConfig::default() };
    let mut parameters = Parameters::new(0, Kind::Double, Device::Cpu);
    let head = Head::new(&mut parameters.root(), 4, 2, HeadConfig::Stochastic(config), LinearInit::HeNormal)
        .unwrap();
    let features = randn(&[1, 4, 1, 8, 8], Kind::Double) * 1e4;
    let Prediction::Stochastic(d) = head.forward(&features, None).unwrap() else { unreachable!() };
    assert!(d.diagonal().max().double_value(&[]) <= 5f64.exp() + 1e-4);
    assert!(d.diagonal().min().double_value(&[]) >= (-5f64).exp());
}

#[test]
fn a_distribution_beyond_the_number_range_is_refused_by_the_host() {
    let one = |x: f64| Tensor::full([1, 2, 3], x, (Kind::Float, Device::Cpu));
    let d =
        LowRankNormalTensors::from_log_diagonal(one(0.0), &one(200.0), one(0.0).unsqueeze(1), 1e-5).unwrap();
    let message = d.to_host(0).unwrap_err().to_string();
    assert!(message.contains("diagonal"), "{message}");
}
