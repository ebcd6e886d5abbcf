//! What the loss and the distribution promise, beyond their gradients.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use ssn_net::{Likelihood, LowRankNormal, Noise, Pairing, monte_carlo_loss};
use tch::{Device, Kind, Tensor};

fn randn(shape: &[i64], kind: Kind) -> Tensor {
    Tensor::randn(shape, (kind, Device::Cpu))
}

fn distribution(b: i64, r: i64, c: i64, v: i64) -> LowRankNormal {
    let kind = Kind::Double;
    LowRankNormal::new(randn(&[b, c, v], kind), randn(&[b, c, v], kind).square(), randn(&[b, r, c, v], kind))
        .unwrap()
}

#[test]
fn the_loss_is_the_definition() {
    tch::manual_seed(1);
    let (m, b, c, v, r) = (5, 2, 3, 4, 2);
    let d = distribution(b, r, c, v);
    let noise = Noise::of_step(9, 4, d.noise_shape(m), Pairing::Independent, Kind::Double).unwrap();
    let target = Tensor::randint(c, [b, v], (Kind::Int64, Device::Cpu));
    let loss = monte_carlo_loss(&d, &target, &noise, Likelihood::Categorical).unwrap();
    for image in 0..b {
        let mut mean_probability = 0.0;
        for sample in 0..m {
            let mut probability = 1.0;
            for voxel in 0..v {
                let logit = |class: i64| {
                    let mut eta = d.mean().double_value(&[image, class, voxel]);
                    for q in 0..r {
                        eta += d.factor().double_value(&[image, q, class, voxel])
                            * noise.rank.double_value(&[sample, image, q]);
                    }
                    eta + d.diagonal().double_value(&[image, class, voxel]).sqrt()
                        * noise.diagonal.double_value(&[sample, image, class, voxel])
                };
                let sum: f64 = (0..c).map(|class| logit(class).exp()).sum();
                probability *= logit(target.int64_value(&[image, voxel])).exp() / sum;
            }
            mean_probability += probability / m as f64;
        }
        assert!((loss.double_value(&[image]) + mean_probability.ln()).abs() < 1e-12);
    }
}

#[test]
fn one_sample_of_a_sharp_distribution_is_cross_entropy() {
    let mean = randn(&[2, 3, 5], Kind::Double);
    let d =
        LowRankNormal::new(mean.shallow_clone(), mean.zeros_like(), mean.unsqueeze(1).zeros_like()).unwrap();
    let noise = Noise::of_step(0, 0, d.noise_shape(2), Pairing::Antithetic, Kind::Double).unwrap();
    let target = Tensor::randint(3, [2, 5], (Kind::Int64, Device::Cpu));
    let loss = monte_carlo_loss(&d, &target, &noise, Likelihood::Categorical).unwrap().sum(Kind::Double);
    let expected = mean.cross_entropy_loss::<Tensor>(&target, None, tch::Reduction::Sum, -100, 0.0);
    assert!((loss - expected).abs().double_value(&[]) < 1e-12);
}

#[test]
fn huge_logits_stay_finite_in_single_precision() {
    let mean = randn(&[1, 2, 50], Kind::Float) * 1e4;
    let d =
        LowRankNormal::new(mean.shallow_clone(), mean.square() * 100.0, mean.unsqueeze(1) * 100.0).unwrap();
    let noise = Noise::of_step(0, 0, d.noise_shape(8), Pairing::Independent, Kind::Float).unwrap();
    for (likelihood, target) in [
        (Likelihood::Categorical, Tensor::zeros([1, 50], (Kind::Int64, Device::Cpu))),
        (Likelihood::Bernoulli, Tensor::zeros([1, 2, 50], (Kind::Float, Device::Cpu))),
    ] {
        let loss = monte_carlo_loss(&d, &target, &noise, likelihood).unwrap();
        assert!(loss.double_value(&[0]).is_finite());
    }
}

#[test]
fn antithetic_samples_mirror_about_the_mean() {
    let d = distribution(2, 3, 2, 7);
    let noise = Noise::of_step(3, 1, d.noise_shape(6), Pairing::Antithetic, Kind::Double).unwrap();
    let samples = d.sample(&noise).unwrap();
    assert_eq!(samples.size(), [6, 2, 2, 7]);
    let middle = (samples.narrow(0, 0, 3) + samples.narrow(0, 3, 3)) / 2.0;
    assert!((middle - d.mean()).abs().max().double_value(&[]) < 1e-14);
    assert!(Noise::of_step(3, 1, d.noise_shape(5), Pairing::Antithetic, Kind::Double).is_err());
}

#[test]
fn a_mask_removes_the_spread_outside() {
    let d = distribution(1, 2, 2, 4).masked(&Tensor::from_slice(&[1i64, 0, 1, 0]).view([1, 4])).unwrap();
    for voxel in [1, 3] {
        assert_eq!(d.factor().select(3, voxel).abs().max().double_value(&[]), 0.0);
        assert!((d.diagonal().select(2, voxel) - 1e-5).abs().max().double_value(&[]) < 1e-18);
    }
}

#[test]
fn noise_is_a_function_of_seed_and_step() {
    let shape = distribution(2, 3, 2, 7).noise_shape(4);
    let of = |seed, step| Noise::of_step(seed, step, shape, Pairing::Independent, Kind::Double).unwrap();
    assert_eq!(of(1, 2).diagonal, of(1, 2).diagonal);
    assert_ne!(of(1, 2).diagonal, of(1, 3).diagonal);
    assert_ne!(of(1, 2).rank, of(2, 2).rank);
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let t = |shape: &[i64]| randn(shape, Kind::Float);
    let error = LowRankNormal::new(t(&[1, 2, 3]), t(&[1, 2, 4]), t(&[1, 1, 2, 3])).unwrap_err().to_string();
    assert_eq!(error, "diagonal has shape [1, 2, 4], but that of the mean, [1, 2, 3], is needed");
    let error = LowRankNormal::new(t(&[1, 2, 3]), t(&[1, 2, 3]), t(&[2, 3])).unwrap_err().to_string();
    assert_eq!(error, "factor has shape [2, 3], but [1, rank, 2, 3] is needed");
    let d = distribution(1, 1, 2, 3);
    let noise = Noise::of_step(0, 0, d.noise_shape(1), Pairing::Independent, Kind::Double).unwrap();
    let error = monte_carlo_loss(&d, &t(&[1, 4]), &noise, Likelihood::Categorical).unwrap_err().to_string();
    assert_eq!(error, "target has shape [1, 4], but [1, 3] is needed");
}

#[test]
fn labels_that_are_no_classes_are_named() {
    let d = distribution(1, 1, 2, 3);
    let noise = Noise::of_step(0, 0, d.noise_shape(1), Pairing::Independent, Kind::Double).unwrap();
    let message = |target: Tensor| {
        monte_carlo_loss(&d, &target, &noise, Likelihood::Categorical).unwrap_err().to_string()
    };
    let labels = |x: i64| Tensor::from_slice(&[0, 1, x]).view([1, 3]);
    assert_eq!(message(labels(2)), "target is 2, but it must be a class number, below the number of classes");
    assert_eq!(message(labels(-1)), "target is -1, but it must be a class number, 0 or more");
    assert_eq!(
        message(labels(0).to_kind(Kind::Float)),
        "target is of type Float, but it must be of type Int64"
    );
}

#[test]
fn the_host_receives_the_same_distribution() {
    let d = distribution(2, 2, 3, 5);
    let host = d.to_host(1).unwrap();
    assert_eq!((host.classes(), host.voxels(), host.rank()), (3, 5, 2));
    let expected = d.factor().double_value(&[1, 1, 2, 4]) as f32;
    assert_eq!(host.factor().get((3 + 2) * 5 + 4), expected);
}
