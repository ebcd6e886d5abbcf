//! Gradients against central differences in double precision: of the losses, of every block, head and network.

use std::sync::MutexGuard;

use proptest::prelude::*;
use ssn_core::Lattice;
use ssn_nn::backbones::{BackboneConfig, DeepMedicConfig, DeepMedicOutput, Pass, UNetConfig};
use ssn_nn::heads::Head;
use ssn_nn::layers::LinearInit;
use ssn_nn::layers::{Activation, ActivationKind, Convolution, ConvolutionShape, Norm, NormKind};
use ssn_nn::loss::Likelihood;
use ssn_nn::loss::{EnergyOptions, Similarity, chunked_energy_loss, chunked_loss, dice_loss, mean_loss};
use ssn_nn::parameters::{Init, Parameters};
use ssn_nn::space;
use ssn_nn::space::{FeatureLayout, Margin, Size};
use ssn_nn::{
    Execution, HeadConfig, LowRankNormalTensors, Mode, Model, ModelConfig, Noise, NoiseSource, Pairing,
    Precision, Prediction, StochasticConfig, Target,
};
use tch::{Device, Kind, Tensor};

use crate::common::{self, begin_at_seed};

/// Relative difference allowed between the analytic and the numeric directional derivative.
const TOLERANCE: f64 = 1e-6;
/// Step of the central difference: balances its truncation error (h²) with rounding (1e-16 / h).
const STEP: f64 = 1e-5;
/// The same for whole networks, whose thousands of rectifiers bend at 0: a short step seldom crosses a bend.
const NETWORK_STEP: f64 = 1e-7;

fn randn(shape: &[i64]) -> Tensor {
    Tensor::randn(shape, (Kind::Double, Device::Cpu))
}

/// The largest relative difference over the gradients of all leaves, each along three random directions.
fn worst_difference(leaves: &[&Tensor], step: f64, loss: impl Fn() -> Tensor) -> f64 {
    loss().backward();
    let mut worst = 0f64;
    for leaf in leaves.iter().filter(|leaf| leaf.numel() > 0) {
        // A tensor that nothing uses has no gradient: the differences must then be 0 too.
        let gradient = if leaf.grad().defined() { leaf.grad().copy() } else { leaf.zeros_like() };
        for _ in 0..3 {
            let direction = randn(&gradient.size());
            let analytic = (&gradient * &direction).sum(Kind::Double).double_value(&[]);
            let shifted = |h: f64| {
                tch::no_grad(|| {
                    let mut place = leaf.shallow_clone();
                    let original = place.copy();
                    place += &direction * h;
                    let value = loss().double_value(&[]);
                    place.copy_(&original);
                    value
                })
            };
            let numeric = (shifted(step) - shifted(-step)) / (2.0 * step);
            assert!(analytic.is_finite() && numeric.is_finite(), "{analytic} and {numeric}");
            let scale = analytic.abs().max(numeric.abs()).max(gradient.norm().double_value(&[])).max(1e-3);
            worst = worst.max((analytic - numeric).abs() / scale);
        }
    }
    worst
}

/// Checks the gradients of an image and of all trained tensors that `build` makes, through a weighted sum of the
/// outputs.
fn check<Block>(
    what: &str,
    image: &[i64],
    build: impl FnOnce(&mut Parameters) -> Block,
    forward: impl Fn(&Block, &Tensor) -> Tensor,
) {
    check_with(STEP, what, image, build, forward);
}

/// Begins at a seed. The tensors are tiny: threads would only wait for each other.
fn begin_with_one_thread(seed: i64) -> MutexGuard<'static, ()> {
    tch::set_num_threads(1);
    begin_at_seed(seed)
}

fn check_with<Block>(
    step: f64,
    what: &str,
    image: &[i64],
    build: impl FnOnce(&mut Parameters) -> Block,
    forward: impl Fn(&Block, &Tensor) -> Tensor,
) {
    let _alone = begin_with_one_thread(3);
    let mut parameters = Parameters::new(5, Kind::Double, Device::Cpu);
    let block = build(&mut parameters);
    let image = randn(image).set_requires_grad(true);
    let weights = randn(&tch::no_grad(|| forward(&block, &image)).size());
    let leaves: Vec<&Tensor> = parameters.trainable().map(|p| &p.tensor).chain([&image]).collect();
    let worst = worst_difference(&leaves, step, || (forward(&block, &image) * &weights).sum(Kind::Double));
    assert!(worst <= TOLERANCE, "{what}: relative difference {worst:e}");
}

/// How backbones compute here.
const FORM: FeatureLayout = FeatureLayout { kind: Kind::Double, padded: false };

const FLAT: [i64; 5] = [2, 3, 1, 6, 5];
const DEEP: [i64; 5] = [2, 3, 4, 6, 5];

#[test]
fn operators_in_space() {
    for image in [FLAT, DEEP] {
        let d = image[2];
        let depth = |n: i64| if d == 1 { 1 } else { n };
        check("average pool", &image, |_| (), |(), x| space::average_pool(x, [depth(2), 2, 1]).unwrap());
        check("linear", &image, |_| (), |(), x| space::linear_upsample(x, [depth(8), 12, 10]).unwrap());
        check("nearest", &image, |_| (), |(), x| space::nearest_upsample(x, [depth(2), 3, 2]).unwrap());
        let grid = Lattice { start: [0, 1, 1], step: [1, 3, 2], count: [image[2] as usize, 2, 2] };
        check("grid", &image, |_| (), |(), x| space::grid(x, &grid).unwrap());
        let size = [depth(2), 3, 2];
        check("crop", &image, |_| (), |(), x| space::center_crop(x, size, Margin::LargerInFront).unwrap());
        check("order", &image, |_| (), |(), x| space::channels_last(x).unwrap());
    }
}

#[test]
fn convolutions() {
    for (image, kernel) in [(FLAT, [1, 3, 3]), (DEEP, [3, 3, 3]), (DEEP, [1, 3, 3])] {
        for shape in [ConvolutionShape::same(3, 4, kernel), ConvolutionShape::valid(3, 4, kernel)] {
            let build = |p: &mut Parameters| Convolution::new(&mut p.root(), shape, Init::HeNormal).unwrap();
            check("convolution", &image, build, |block, x| block.forward(x).unwrap());
        }
    }
}

#[test]
fn norms() {
    for image in [FLAT, DEEP] {
        for kind in [NormKind::BATCH, NormKind::INSTANCE] {
            for mode in [Mode::Training, Mode::Evaluation] {
                let build = |p: &mut Parameters| Norm::new(&mut p.root(), 3, kind).unwrap();
                check("norm", &image, build, |block, x| block.forward(x, mode).unwrap());
            }
        }
    }
}

#[test]
fn activations() {
    for kind in [ActivationKind::Relu, ActivationKind::LeakyRelu, ActivationKind::Prelu] {
        let build = |p: &mut Parameters| Activation::new(&mut p.root(), kind).unwrap();
        check("activation", &DEEP, build, |block, x| block.forward(x).unwrap());
    }
}

#[test]
fn heads() {
    let stochastic = |rank, log_diagonal_limit| {
        HeadConfig::Stochastic(StochasticConfig { rank, log_diagonal_limit, ..StochasticConfig::default() })
    };
    let mask = Tensor::ones([2, 4, 6, 5], (Kind::Double, Device::Cpu));
    let _ = mask.narrow(3, 0, 2).zero_();
    for config in
        [stochastic(3, None), stochastic(0, None), stochastic(2, Some(3.0)), HeadConfig::Deterministic]
    {
        for mask in [None, Some(&mask)] {
            let build =
                |p: &mut Parameters| Head::new(&mut p.root(), 3, 4, config, LinearInit::HeNormal).unwrap();
            check("head", &DEEP, build, |head, x| match head.forward(x, mask).unwrap() {
                Prediction::Deterministic(logits) => logits,
                Prediction::Stochastic(d) => Tensor::cat(&d.parts().map(|part| part.flatten(0, -1)), 0),
            });
        }
    }
}

fn check_network(what: &str, config: &BackboneConfig, image: &[i64], mode: Mode) {
    let build = |p: &mut Parameters| config.plan().build(&mut p.root(), image[1]).unwrap();
    check_with(NETWORK_STEP, what, image, build, |network, x| {
        let (parts, size) = (std::slice::from_ref(x), space::spatial(x).unwrap());
        network.forward(&Pass { parts, size, layout: FORM, mode }).unwrap()
    });
}

fn small_unet(patch: Size, norm: NormKind) -> BackboneConfig {
    BackboneConfig::Unet(UNetConfig { pointwise: vec![3], ..common::small_unet(patch, norm) })
}

#[test]
fn unets() {
    for mode in [Mode::Training, Mode::Evaluation] {
        check_network("flat U-Net", &small_unet([1, 16, 16], NormKind::BATCH), &[2, 2, 1, 16, 16], mode);
        check_network("deep U-Net", &small_unet([8, 8, 8], NormKind::INSTANCE), &[2, 1, 8, 8, 8], mode);
    }
}

fn small_deepmedic(kernel: Size, scales: [Size; 2]) -> BackboneConfig {
    BackboneConfig::Deepmedic(DeepMedicConfig {
        scales: scales.to_vec(),
        feature_maps: vec![3, 3, 4],
        kernel,
        fully_connected: vec![5, 5],
        dropout: vec![0.0; 3],
        output: DeepMedicOutput::Features(4),
    })
}

#[test]
fn deepmedics() {
    for mode in [Mode::Training, Mode::Evaluation] {
        let flat = small_deepmedic([1, 3, 3], [[1, 3, 3], [1, 1, 1]]);
        check_network("flat DeepMedic", &flat, &[2, 2, 1, 24, 27], mode);
        let deep = small_deepmedic([3, 3, 3], [[2, 2, 2], [1, 1, 1]]);
        check_network("deep DeepMedic", &deep, &[1, 2, 16, 18, 16], mode);
    }
}

#[test]
fn a_whole_model_with_its_loss() {
    let _alone = begin_with_one_thread(11);
    let config = ModelConfig {
        channels: 1,
        classes: 3,
        backbone: small_unet([1, 8, 8], NormKind::BATCH),
        head: HeadConfig::Stochastic(StochasticConfig { rank: 2, ..StochasticConfig::default() }),
    };
    let model = Model::new(&config, Execution::cpu(Precision::F64), 1).unwrap();
    let image = randn(&[2, 1, 1, 8, 8]);
    let noise =
        Noise { rank: randn(&[4, 2, 2]), diagonal: randn(&[4, 2, 3, 64]), pairing: Pairing::Antithetic };
    let target = Target::classes(Tensor::randint(3, [2, 2, 64], (Kind::Int64, Device::Cpu)), 3).unwrap();
    for draws_at_once in [4, 1] {
        for parameter in model.parameters().trainable() {
            if parameter.tensor.grad().defined() {
                let _ = parameter.tensor.grad().zero_();
            }
        }
        let leaves: Vec<&Tensor> = model.parameters().trainable().map(|p| &p.tensor).collect();
        let worst = worst_difference(&leaves, NETWORK_STEP, || {
            let prediction = model.forward(&image, None, Mode::Training).unwrap();
            let Prediction::Stochastic(d) = prediction else { unreachable!() };
            chunked_loss(&d, &target, NoiseSource::Given(&noise), 1.0, draws_at_once)
                .unwrap()
                .loss
                .mean(Kind::Double)
        });
        assert!(worst <= TOLERANCE, "{draws_at_once} draws at once: relative difference {worst:e}");
    }
}

#[test]
fn losses_of_the_mean() {
    let _alone = begin_with_one_thread(2);
    let mean = randn(&[2, 3, 20]).set_requires_grad(true);
    let labels = Target::classes(Tensor::randint(3, [2, 2, 20], (Kind::Int64, Device::Cpu)), 3).unwrap();
    let binary = Target::binary(Tensor::randint(2, [2, 2, 3, 20], (Kind::Double, Device::Cpu))).unwrap();
    for target in [labels, binary] {
        for loss in [mean_loss, dice_loss] {
            let _ = mean.grad().defined().then(|| mean.grad().zero_());
            let worst = worst_difference(&[&mean], STEP, || loss(&mean, &target).unwrap().sum(Kind::Double));
            assert!(worst <= TOLERANCE, "relative difference {worst:e}");
        }
    }
}

#[derive(Debug, Clone)]
struct Case {
    b: i64,
    c: i64,
    v: i64,
    r: i64,
    draws: i64,
    /// Draws, or voxels, in a chunk.
    at_once: i64,
    raters: i64,
    likelihood: Likelihood,
    pairing: Pairing,
    masked: bool,
    power: f64,
    seed: i64,
}

fn cases() -> impl Strategy<Value = Case> {
    let likelihood = prop_oneof![Just(Likelihood::Categorical), Just(Likelihood::Bernoulli)];
    let pairing = prop_oneof![Just(Pairing::Independent), Just(Pairing::Antithetic)];
    let shape = (1..4i64, 2..5i64, 1..30i64, 0..5i64, 2..7i64, 1..7i64, 1..5i64);
    let power = prop_oneof![Just(1.0), 0.05..1.0];
    (shape, likelihood, pairing, any::<bool>(), power, 0..1_000_000i64).prop_map(
        |((b, c, v, r, draws, at_once, raters), likelihood, pairing, masked, power, seed)| Case {
            b,
            c,
            v,
            r,
            draws,
            at_once,
            raters,
            likelihood,
            pairing,
            masked,
            power,
            seed,
        },
    )
}

/// The largest relative difference over the gradients of mean, log-diagonal and factor.
fn worst_of_case(case: &Case, loss: impl Fn(&LowRankNormalTensors, &Target, &Noise) -> Tensor) -> f64 {
    let &Case { b, c, v, r, draws, raters: t, .. } = case;
    let _alone = begin_with_one_thread(case.seed);
    let parameters = [randn(&[b, c, v]), randn(&[b, c, v]) * 0.5 - 1.0, randn(&[b, r, c, v]) * 0.7]
        .map(|t| t.set_requires_grad(true));
    let noise =
        Noise { rank: randn(&[draws, b, r]), diagonal: randn(&[draws, b, c, v]), pairing: case.pairing };
    let target = match case.likelihood {
        Likelihood::Categorical => {
            Target::classes(Tensor::randint(c, [b, t, v], (Kind::Int64, Device::Cpu)), c).unwrap()
        }
        Likelihood::Bernoulli => {
            Target::binary(Tensor::randint(2, [b, t, c, v], (Kind::Double, Device::Cpu))).unwrap()
        }
    };
    let mask = Tensor::randint(2, [b, v], (Kind::Double, Device::Cpu));
    worst_difference(&parameters.each_ref(), STEP, || {
        let p = &parameters;
        let (mean, factor) = (p[0].shallow_clone(), p[2].shallow_clone());
        let mut distribution = LowRankNormalTensors::from_log_diagonal(mean, &p[1], factor, 1e-5).unwrap();
        if case.masked {
            distribution = distribution.masked(&mask, 1e-5).unwrap();
        }
        loss(&distribution, &target, &noise).mean(Kind::Double)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_likelihood_has_the_gradients_of_central_differences(case in cases()) {
        let worst = worst_of_case(&case, |distribution, target, noise| {
            let noise = NoiseSource::Given(noise);
            chunked_loss(distribution, target, noise, case.power, case.at_once).unwrap().loss
        });
        prop_assert!(worst <= TOLERANCE, "relative difference {worst:e}");
    }

    #[test]
    fn the_energy_has_the_gradients_of_central_differences(case in cases(), dice in any::<bool>()) {
        let similarity = if dice { Similarity::Dice } else { Similarity::Tanimoto };
        let options = EnergyOptions { similarity, diversity_weight: case.power };
        let worst = worst_of_case(&case, |distribution, target, noise| {
            let noise = NoiseSource::Given(noise);
            chunked_energy_loss(distribution, target, noise, options, 5 * case.at_once).unwrap()
        });
        prop_assert!(worst <= TOLERANCE, "relative difference {worst:e}");
    }
}
