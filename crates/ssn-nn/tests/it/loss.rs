//! What the loss and the distribution promise, beyond their gradients.

use ssn_nn::loss::{chunked_loss, dice_loss, mean_loss, tempered_loss};
use ssn_nn::{LowRankNormalTensors, Noise, NoiseSource, Pairing, StepNoise, Target, monte_carlo_loss};
use tch::{Device, Kind, Tensor};

use crate::common::begin_at_seed;

fn randn(shape: &[i64], kind: Kind) -> Tensor {
    Tensor::randn(shape, (kind, Device::Cpu))
}

fn distribution(b: i64, r: i64, c: i64, v: i64) -> LowRankNormalTensors {
    let kind = Kind::Double;
    LowRankNormalTensors::new(
        randn(&[b, c, v], kind),
        randn(&[b, c, v], kind).square(),
        randn(&[b, r, c, v], kind),
    )
    .unwrap()
}

fn noise(d: &LowRankNormalTensors, seed: u64, step: u64, samples: i64, pairing: Pairing) -> Noise {
    let noise = StepNoise::new(seed, step, d.noise_shape(samples), pairing).unwrap();
    NoiseSource::Step(&noise).draws(0..pairing.draws(samples).unwrap()).unwrap()
}

fn labels(classes: i64, shape: [i64; 3]) -> Target {
    Target::classes(Tensor::randint(classes, shape, (Kind::Int64, Device::Cpu)), classes).unwrap()
}

fn loss_of(d: &LowRankNormalTensors, target: &Target, noise: &Noise) -> Tensor {
    monte_carlo_loss(d, target, NoiseSource::Given(noise)).unwrap().loss
}

#[test]
fn the_loss_is_the_definition() {
    let _alone = begin_at_seed(1);
    let (m, b, c, v, r) = (5, 2, 3, 4, 2);
    let d = distribution(b, r, c, v);
    let noise = noise(&d, 9, 4, m, Pairing::Independent);
    let target = labels(c, [b, 1, v]);
    let loss = loss_of(&d, &target, &noise);
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
                probability *= logit(target.maps().int64_value(&[image, 0, voxel])).exp() / sum;
            }
            mean_probability += probability / m as f64;
        }
        assert!((loss.double_value(&[image]) + mean_probability.ln()).abs() < 1e-12);
    }
}

#[test]
fn without_spread_the_loss_of_any_samples_is_cross_entropy() {
    let _alone = begin_at_seed(1);
    let mean = randn(&[2, 3, 5], Kind::Double);
    let d =
        LowRankNormalTensors::new(mean.shallow_clone(), mean.zeros_like(), mean.unsqueeze(1).zeros_like())
            .unwrap();
    let target = labels(3, [2, 1, 5]);
    let loss = |samples, pairing| loss_of(&d, &target, &noise(&d, 0, 0, samples, pairing)).sum(Kind::Double);
    let maps = target.maps().squeeze_dim(1);
    let expected = mean.cross_entropy_loss::<Tensor>(&maps, None, tch::Reduction::Sum, -100, 0.0);
    let ours = mean_loss(&mean, &target).unwrap().sum(Kind::Double);
    assert!((ours - &expected).abs().double_value(&[]) < 1e-12);
    for (samples, pairing) in [(1, Pairing::Independent), (2, Pairing::Antithetic), (7, Pairing::Independent)]
    {
        let difference = (loss(samples, pairing) - &expected).abs().double_value(&[]);
        assert!(difference < 1e-12, "{samples} samples: {difference}");
    }
}

#[test]
fn antithetic_samples_mirror_about_the_mean() {
    let _alone = begin_at_seed(1);
    let d = distribution(2, 3, 2, 7);
    let samples = d.sample(&noise(&d, 3, 1, 6, Pairing::Antithetic)).unwrap();
    assert_eq!(samples.size(), [6, 2, 2, 7]);
    let middle = (samples.narrow(0, 0, 3) + samples.narrow(0, 3, 3)) / 2.0;
    assert!((middle - d.mean()).abs().max().double_value(&[]) < 1e-14);
    assert!(StepNoise::new(3, 1, d.noise_shape(5), Pairing::Antithetic).is_err());
}

#[test]
fn a_mask_removes_the_spread_outside() {
    let _alone = begin_at_seed(1);
    let d =
        distribution(1, 2, 2, 4).masked(&Tensor::from_slice(&[1i64, 0, 1, 0]).view([1, 4]), 1e-5).unwrap();
    for voxel in [1, 3] {
        assert_eq!(d.factor().select(3, voxel).abs().max().double_value(&[]), 0.0);
        assert!((d.diagonal().select(2, voxel) - 1e-5).abs().max().double_value(&[]) < 1e-18);
    }
}

#[test]
fn noise_is_a_function_of_seed_and_step() {
    let _alone = begin_at_seed(1);
    let d = distribution(2, 3, 2, 7);
    let of = |seed, step| noise(&d, seed, step, 4, Pairing::Independent);
    assert_eq!(of(1, 2).diagonal, of(1, 2).diagonal);
    assert_ne!(of(1, 2).diagonal, of(1, 3).diagonal);
    assert_ne!(of(1, 2).rank, of(2, 2).rank);
    let fewer = noise(&d, 1, 2, 3, Pairing::Independent);
    assert_eq!(of(1, 2).diagonal.narrow(0, 0, 3), fewer.diagonal);
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let _alone = begin_at_seed(1);
    let t = |shape: &[i64]| randn(shape, Kind::Float);
    let error =
        LowRankNormalTensors::new(t(&[1, 2, 3]), t(&[1, 2, 4]), t(&[1, 1, 2, 3])).unwrap_err().to_string();
    assert_eq!(error, "diagonal has shape [1, 2, 4], but that of the mean, [1, 2, 3], is needed");
    let error = LowRankNormalTensors::new(t(&[1, 2, 3]), t(&[1, 2, 3]), t(&[2, 3])).unwrap_err().to_string();
    assert_eq!(error, "factor has shape [2, 3], but [1, rank, 2, 3] is needed");
    let d = distribution(1, 1, 2, 3);
    let noise = noise(&d, 0, 0, 1, Pairing::Independent);
    let error =
        monte_carlo_loss(&d, &labels(2, [1, 1, 4]), NoiseSource::Given(&noise)).unwrap_err().to_string();
    assert_eq!(error, "target has shape [1, 1, 4], but [1, 1, 3] is needed");
}

#[test]
fn labels_that_are_no_classes_are_named() {
    let message = |maps: Tensor| Target::classes(maps, 2).unwrap_err().to_string();
    let labels = |x: i64| Tensor::from_slice(&[0, 1, x]).view([1, 1, 3]);
    assert_eq!(message(labels(2)), "target is 2, but it must be a class number, below the number of classes");
    assert_eq!(message(labels(-1)), "target is -1, but it must be a class number, 0 or more");
    let one = Target::classes(labels(0), 1).unwrap_err().to_string();
    assert!(one.starts_with("classes is 1, but it must be at least 2"), "{one}");
    let gray = Target::binary(Tensor::from_slice(&[0f32, 255.0]).view([1, 1, 1, 2])).unwrap_err().to_string();
    assert_eq!(gray, "target is neither 0 nor 1 somewhere, but it must be 0 (off) or 1 (on) everywhere");
    assert_eq!(
        message(labels(0).to_kind(Kind::Float)),
        "target is of type Float, but it must be of type Int64"
    );
}

#[test]
fn the_host_receives_the_same_distribution() {
    let _alone = begin_at_seed(1);
    let d = distribution(2, 2, 3, 5);
    let host = d.to_host(1).unwrap();
    assert_eq!((host.classes(), host.voxels(), host.rank()), (3, 5, 2));
    let expected = d.factor().double_value(&[1, 1, 2, 4]) as f32;
    assert_eq!(host.factor().get((3 + 2) * 5 + 4), expected);
}

#[test]
fn several_targets_are_averaged() {
    let _alone = begin_at_seed(1);
    let d = distribution(2, 2, 3, 5);
    let noise = noise(&d, 1, 1, 4, Pairing::Independent);
    let target = labels(3, [2, 4, 5]);
    let together = loss_of(&d, &target, &noise);
    let mut sum = together.zeros_like();
    for t in 0..4 {
        let one = Target::classes(target.maps().narrow(1, t, 1), 3).unwrap();
        sum += loss_of(&d, &one, &noise);
    }
    assert!((together - sum / 4.0).abs().max().double_value(&[]) < 1e-12);
}

#[test]
fn rank_0_is_the_diagonal_model() {
    let _alone = begin_at_seed(1);
    let d = distribution(2, 0, 3, 6);
    let zero = LowRankNormalTensors::new(
        d.mean().copy(),
        d.diagonal().copy(),
        Tensor::zeros([2, 4, 3, 6], (Kind::Double, Device::Cpu)),
    );
    let zero = zero.unwrap();
    let diagonal = noise(&d, 5, 5, 6, Pairing::Independent);
    let low_rank = noise(&zero, 5, 5, 6, Pairing::Independent);
    assert_eq!(diagonal.diagonal, low_rank.diagonal, "the noise of the diagonal does not depend on the rank");
    let target = labels(3, [2, 1, 6]);
    let [first, second] = [loss_of(&d, &target, &diagonal), loss_of(&zero, &target, &low_rank)];
    assert!((first - second).abs().max().double_value(&[]) < 1e-13);
}

#[test]
fn a_constant_added_to_all_classes_changes_nothing() {
    let _alone = begin_at_seed(1);
    let d = distribution(2, 3, 4, 6);
    let shift = randn(&[2, 1, 6], Kind::Double) * 10.0;
    let moved = LowRankNormalTensors::new(d.mean() + shift, d.diagonal().copy(), d.factor().copy()).unwrap();
    let (noise, target) = (noise(&d, 2, 7, 6, Pairing::Antithetic), labels(4, [2, 1, 6]));
    let difference = loss_of(&d, &target, &noise) - loss_of(&moved, &target, &noise);
    assert!(difference.abs().max().double_value(&[]) < 1e-11);
}

#[test]
fn samples_in_turns_give_the_same_loss_and_gradients() {
    let _alone = begin_at_seed(1);
    tch::set_num_threads(1);
    for pairing in [Pairing::Independent, Pairing::Antithetic] {
        for (t, draws_at_once) in [(1, 1), (3, 1), (1, 2), (2, 5)] {
            let d = distribution(2, 3, 3, 7).trainable();
            let (target, noise) = (labels(3, [2, t, 7]), noise(&d, 4, 4, 12, pairing));
            // An uneven weight of the images, so that a mix-up of their gradients would show.
            let weights = Tensor::from_slice(&[0.3, 1.7]);
            // A power of likelihoods is the harder case.
            let power = if t == 1 { 1.0 } else { 0.4 };
            let run = |draws| {
                for part in d.parts() {
                    if part.grad().defined() {
                        let _ = part.grad().zero_();
                    }
                }
                let result = chunked_loss(&d, &target, NoiseSource::Given(&noise), power, draws).unwrap();
                (&result.loss * &weights).sum(Kind::Double).backward();
                (result, d.parts().map(|part| part.grad().copy()))
            };
            let (whole, whole_gradients) = run(100);
            let (turns, turns_gradients) = run(draws_at_once);
            let close = |a: &Tensor, b: &Tensor| (a - b).abs().max().double_value(&[]) < 1e-11;
            assert!(close(&whole.loss, &turns.loss));
            assert!(close(&whole.ess, &turns.ess));
            for (whole, turns) in whole_gradients.iter().zip(&turns_gradients) {
                assert!(whole.abs().max().double_value(&[]) > 1e-3);
                assert!(
                    close(whole, turns),
                    "pairing {pairing:?}, {t} targets, {draws_at_once} draws at once"
                );
            }
        }
    }
}

#[test]
fn a_power_of_likelihoods_lets_more_samples_count() {
    let _alone = begin_at_seed(2);
    let d = distribution(2, 3, 3, 40);
    let (target, noise) = (labels(3, [2, 1, 40]), noise(&d, 9, 4, 8, Pairing::Independent));
    let of = |power| tempered_loss(&d, &target, NoiseSource::Given(&noise), power).unwrap();
    let log_p = target.log_probability(&d.sample(&noise).unwrap()).unwrap(); // [m, b, 1]
    let mut last = of(1.0);
    let most = |t: &Tensor| t.abs().max().double_value(&[]);
    assert!(most(&(&last.loss - loss_of(&d, &target, &noise))) == 0.0);
    for power in [0.5, 0.1, 1e-3] {
        let found = of(power);
        let mean = (&log_p * power).exp().mean_dim([0i64].as_slice(), false, None::<Kind>);
        let expected = (mean.log() / -power).squeeze_dim(1);
        assert!(most(&(&found.loss - expected)) < 1e-9);
        // Power means grow with the power.
        assert!((&found.loss - &last.loss).min().double_value(&[]) > 0.0, "{power}");
        assert!((&found.ess - &last.ess).min().double_value(&[]) > 0.0, "{power}");
        last = found;
    }
    // In the limit, the mean of the log-likelihoods.
    let mean = log_p.mean_dim([0i64].as_slice(), false, None::<Kind>).squeeze_dim(1);
    assert!(most(&((&last.loss + &mean) / mean)) < 0.1);
}

#[test]
fn effective_samples_count_the_samples_that_matter() {
    // One voxel, two classes: η = ±a, and only the samples with the right sign contribute.
    let sharp = |mean: f64, spread: f64| {
        LowRankNormalTensors::new(
            Tensor::from_slice(&[0.0, mean]).view([1, 2, 1]),
            Tensor::zeros([1, 2, 1], (Kind::Double, Device::Cpu)),
            Tensor::from_slice(&[0.0, spread]).view([1, 1, 2, 1]),
        )
        .unwrap()
    };
    let given = Noise {
        rank: Tensor::from_slice(&[1.0, 1.0, -1.0, -1.0]).view([4, 1, 1]),
        diagonal: Tensor::zeros([4, 1, 2, 1], (Kind::Double, Device::Cpu)),
        pairing: Pairing::Independent,
    };
    let target = Target::classes(Tensor::from_slice(&[1i64]).view([1, 1, 1]), 2).unwrap();
    let effective = |d: &LowRankNormalTensors| {
        let result = monte_carlo_loss(d, &target, NoiseSource::Given(&given)).unwrap();
        result.ess.double_value(&[0, 0])
    };
    assert!((effective(&sharp(0.0, 100.0)) - 2.0).abs() < 1e-9);
    assert!((effective(&sharp(0.3, 0.0)) - 4.0).abs() < 1e-9);
}

#[test]
fn the_dice_term_is_0_for_a_sure_and_right_prediction_and_near_1_for_a_wrong_one() {
    let target = Target::classes(Tensor::from_slice(&[0i64, 1, 1, 2, 2, 2]).view([1, 1, 6]), 3).unwrap();
    let right = target.maps().squeeze_dim(1).one_hot(3).transpose(1, 2).to_kind(Kind::Double) * 50.0;
    assert!(dice_loss(&right, &target).unwrap().double_value(&[0]).abs() < 1e-12);
    let wrong = right.roll([1i64].as_slice(), [1i64].as_slice());
    assert!(dice_loss(&wrong, &target).unwrap().double_value(&[0]) > 0.6);
    let message = dice_loss(&right.narrow(1, 0, 1), &target).unwrap_err().to_string();
    assert!(message.starts_with("target is made for 3 classes, while the network has 1"), "{message}");
}
