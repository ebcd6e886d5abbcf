//! What the energy loss promises, beyond its gradients.

use ssn_nn::loss::{EnergyOptions, Similarity, chunked_energy_loss, energy_loss};
use ssn_nn::{LowRankNormalTensors, NoiseSource, Pairing, StepNoise, Target};
use tch::{Device, Kind, Tensor};

use crate::common::begin_at_seed;

fn randn(shape: &[i64]) -> Tensor {
    Tensor::randn(shape, (Kind::Double, Device::Cpu))
}

fn distribution([b, r, c, v]: [i64; 4]) -> LowRankNormalTensors {
    LowRankNormalTensors::new(randn(&[b, c, v]), randn(&[b, c, v]).square(), randn(&[b, r, c, v])).unwrap()
}

fn labels(classes: i64, shape: [i64; 3]) -> Target {
    Target::classes(Tensor::randint(classes, shape, (Kind::Int64, Device::Cpu)), classes).unwrap()
}

/// 1 − similarity of two maps of one class.
fn distance(a: &Tensor, b: &Tensor, similarity: Similarity) -> f64 {
    let product = |a: &Tensor, b: &Tensor| (a * b).sum(Kind::Double).double_value(&[]);
    let (overlap, sum) = (product(a, b), product(a, a) + product(b, b));
    match similarity {
        Similarity::Tanimoto => 1.0 - (overlap + 1.0) / (sum - overlap + 1.0),
        Similarity::Dice => 1.0 - (2.0 * overlap + 1.0) / (sum + 1.0),
    }
}

#[test]
fn the_loss_is_the_definition() {
    let _alone = begin_at_seed(1);
    let (b, r, c, v, t) = (2, 2, 3, 11, 3);
    let d = distribution([b, r, c, v]);
    let target = labels(c, [b, t, v]);
    for (similarity, pairing, m) in [
        (Similarity::Tanimoto, Pairing::Independent, 5),
        (Similarity::Dice, Pairing::Antithetic, 6),
        (Similarity::Tanimoto, Pairing::Antithetic, 4),
    ] {
        let noise = StepNoise::new(9, 4, d.noise_shape(m), pairing).unwrap();
        let noise = NoiseSource::Step(&noise);
        let options = EnergyOptions { similarity, diversity_weight: 0.7 };
        let found = energy_loss(&d, &target, noise, options).unwrap();
        let draws = pairing.draws(m).unwrap();
        let soft = d.sample(&noise.draws(0..draws).unwrap()).unwrap().softmax(2, Kind::Double); // [m, b, c, v]
        for image in 0..b {
            let mut expected = 0.0;
            for class in 1..c {
                let sample = |i: i64| soft.get(i).get(image).get(class);
                let rater = |j: i64| target.maps().get(image).get(j).eq(class).to_kind(Kind::Double);
                let mean = |pairs: &[(Tensor, Tensor)]| {
                    let sum: f64 = pairs.iter().map(|(a, b)| distance(a, b, similarity)).sum();
                    sum / pairs.len() as f64
                };
                let to_raters: Vec<_> =
                    (0..m * t).map(|place| (sample(place / t), rater(place % t))).collect();
                let between: Vec<_> = (0..m * m)
                    .map(|place| (place / m, place % m))
                    .filter(|(i, j)| i % draws != j % draws)
                    .map(|(i, j)| (sample(i), sample(j)))
                    .collect();
                let of_raters: Vec<_> =
                    (0..t * t).map(|place| (rater(place / t), rater(place % t))).collect();
                expected += 2.0 * mean(&to_raters) - 0.7 * mean(&between) - mean(&of_raters);
            }
            let difference = found.double_value(&[image]) - expected / (c - 1) as f64;
            assert!(difference.abs() < 1e-12, "{similarity:?} {pairing:?}: {difference:e}");
        }
    }
}

#[test]
fn chunks_of_voxels_change_nothing() {
    let _alone = begin_at_seed(2);
    let (b, r, c, v) = (2, 3, 3, 150);
    for (pairing, target) in [
        (Pairing::Independent, labels(c, [b, 2, v])),
        (
            Pairing::Antithetic,
            Target::binary(Tensor::randint(2, [b, 2, c, v], (Kind::Double, Device::Cpu))).unwrap(),
        ),
    ] {
        let parts = [randn(&[b, c, v]), randn(&[b, c, v]).square(), randn(&[b, r, c, v])];
        let run = |voxels_at_once: i64| {
            let leaves: Vec<Tensor> = parts.iter().map(|t| t.copy().set_requires_grad(true)).collect();
            let [mean, diagonal, factor] = [0, 1, 2].map(|i| leaves[i].shallow_clone());
            let d = LowRankNormalTensors::new(mean, diagonal, factor).unwrap();
            // The items of a rank that has three others in front of it.
            let noise = StepNoise::new(5, 8, d.noise_shape(6), pairing).unwrap().from_item(3);
            let options = EnergyOptions::default();
            let loss = chunked_energy_loss(&d, &target, NoiseSource::Step(&noise), options, voxels_at_once);
            let loss = loss.unwrap().sum(Kind::Double);
            loss.backward();
            (loss.double_value(&[]), leaves.iter().map(Tensor::grad).collect::<Vec<_>>())
        };
        let (value, gradients) = run(v);
        for voxels_at_once in [1, 7, 64, 149] {
            let (found, others) = run(voxels_at_once);
            assert!((found - value).abs() < 1e-12, "{voxels_at_once}: {found} and {value}");
            for (a, b) in gradients.iter().zip(&others) {
                assert!((a - b).abs().max().double_value(&[]) < 1e-13, "{voxels_at_once}");
            }
        }
    }
}

/// Samples that are the raters' maps with the raters' frequencies have energy distance 0, up to the error of few samples;
/// the same maps with other frequencies have not.
#[test]
fn right_frequencies_have_the_least_loss() {
    let v = 40;
    // Foreground in the first or in the second half: the sign of one number decides.
    let halves =
        Tensor::from_slice(&(0..v).map(|x| if x < v / 2 { 1.0 } else { -1.0 }).collect::<Vec<f64>>());
    let factor = Tensor::zeros([1, 1, 2, v], (Kind::Double, Device::Cpu));
    factor.get(0).get(0).get(1).copy_(&(&halves * 300.0));
    let maps = Tensor::stack(&[halves.gt(0.0), halves.lt(0.0)], 0).to_kind(Kind::Int64).unsqueeze(0);
    let target = Target::classes(maps, 2).unwrap();
    let loss = |shift: f64| {
        let mean = Tensor::zeros([1, 2, v], (Kind::Double, Device::Cpu));
        mean.get(0).get(1).copy_(&(&halves * shift));
        let diagonal = Tensor::full([1, 2, v], 1e-5, (Kind::Double, Device::Cpu));
        let d = LowRankNormalTensors::new(mean, diagonal, factor.shallow_clone()).unwrap();
        let noise = StepNoise::new(1, 1, d.noise_shape(4000), Pairing::Independent).unwrap();
        let loss = energy_loss(&d, &target, NoiseSource::Step(&noise), EnergyOptions::default());
        loss.unwrap().double_value(&[0])
    };
    let right = loss(0.0);
    assert!(right.abs() < 0.005, "{right}");
    // The share of the first half is then Φ(1) = 84 %.
    let wrong = loss(300.0);
    assert!(wrong > 0.15, "{wrong}");
}

#[test]
fn too_few_samples_and_maps_that_do_not_fit_are_refused() {
    let _alone = begin_at_seed(1);
    let d = distribution([1, 1, 2, 4]);
    let refused = |samples, pairing, target: &Target| {
        let noise = StepNoise::new(1, 1, d.noise_shape(samples), pairing).unwrap();
        let options = EnergyOptions::default();
        energy_loss(&d, target, NoiseSource::Step(&noise), options).unwrap_err().to_string()
    };
    let target = labels(2, [1, 1, 4]);
    let few =
        "but it must be at least 2, or 4 of antithetic pairs: the energy loss compares independent samples";
    assert_eq!(refused(1, Pairing::Independent, &target), format!("loss.samples is 1, {few}"));
    assert_eq!(refused(2, Pairing::Antithetic, &target), format!("loss.samples is 2, {few}"));
    let message = refused(4, Pairing::Independent, &labels(2, [1, 1, 5]));
    assert!(message.contains("target"), "{message}");
}
