//! Our networks for LIDC are those of the paper's experiments: outputs, moving statistics, losses and gradients agree with golden
//! values, which `golden/unet.py` makes by running the authors' code.
//!
//! Two layers are ours on both sides. TensorFlow's bilinear interpolation puts voxels at the corners of their squares, ours at the
//! centers; and our deviations of latent variables are 1e-4 larger.

use std::collections::HashMap;
use std::path::Path;

use ssn_nn::backbones::{BackboneConfig, UNetConfig};
use ssn_nn::weights::assign;
use ssn_nn::{
    Execution, HeadConfig, LowRankNormalTensors, Mode, Model, ModelConfig, Noise, NoiseSource, Pairing,
    PhisegConfig, Precision, Prediction, ProbUnetConfig, StochasticConfig, Target, monte_carlo_loss,
};
use tch::{Device, Kind, Tensor};

use crate::compare::tensors;

/// In double precision everything agrees to this, relative to the largest value of the tensor.
const F64_RELATIVE: f64 = 1e-10;
/// In single precision; the small network is so narrow that rounding grows more than in a real one.
const F32_RELATIVE: f64 = 1e-3;

/// The tensors of a file.
fn read(name: &str) -> HashMap<String, Tensor> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    tensors(&std::fs::read(path).unwrap()).unwrap()
}

/// Compares values in their order, whatever the shapes.
fn assert_agrees(what: &str, ours: &Tensor, golden: &Tensor, precision: Precision) {
    let flat = |t: &Tensor| t.detach().to_kind(Kind::Double).contiguous().view([-1]);
    let (ours, golden) = (flat(ours), flat(golden));
    assert_eq!(ours.numel(), golden.numel(), "values of {what}");
    let largest = |t: &Tensor| t.abs().max().double_value(&[]);
    let difference = largest(&(&ours - &golden)) / largest(&golden);
    let allowed = if precision == Precision::F64 { F64_RELATIVE } else { F32_RELATIVE };
    assert!(difference <= allowed, "{precision:?} {what}: {difference:e} > {allowed:e}");
}

/// Mean, diagonal and factor of a distribution by their names in the files.
fn outputs(distribution: &LowRankNormalTensors) -> impl Iterator<Item = (&'static str, &Tensor)> {
    ["mean", "diagonal", "factor"].into_iter().zip(distribution.parts())
}

fn forward(model: &Model, image: &Tensor, mode: Mode) -> LowRankNormalTensors {
    match model.forward(image, None, mode).unwrap() {
        Prediction::Stochastic(distribution) => distribution,
        Prediction::Deterministic(_) => panic!("the network is not stochastic"),
    }
}

/// The network of a configuration with weights, of which there are as many as in the golden network.
fn model(
    config: &ModelConfig,
    precision: Precision,
    golden: &HashMap<String, Tensor>,
    weights: impl Fn(&Model) -> Vec<(String, Tensor)>,
) -> Model {
    let model = Model::new(config, Execution::cpu(precision), 0).unwrap();
    assert_eq!(model.parameters().count(), golden["parameters"].int64_value(&[0]), "parameters");
    let report = assign(model.parameters(), &weights(&model)).unwrap();
    assert!(report.is_complete(), "the weights do not fit: {report:?}");
    model
}

/// Four levels of the paper's network with 2, 4, 8 and 12 channels.
fn small_config() -> ModelConfig {
    let backbone = UNetConfig {
        widths: vec![2, 4, 8, 12],
        strides: vec![[1, 2, 2]; 3],
        kernels: vec![[1, 3, 3]; 4],
        decoder_widths: vec![12, 8, 4],
        pointwise: vec![2; 3],
        ..UNetConfig::lidc()
    };
    ModelConfig {
        channels: 2,
        classes: 3,
        backbone: BackboneConfig::Unet(backbone),
        head: HeadConfig::Stochastic(StochasticConfig { rank: 2, ..StochasticConfig::default() }),
    }
}

fn check_small(precision: Precision) {
    let golden = read("unet_small.safetensors");
    let model = model(&small_config(), precision, &golden, |_| {
        let weight = |(name, tensor): (&String, &Tensor)| {
            Some((name.strip_prefix("weight.")?.to_owned(), tensor.shallow_clone()))
        };
        golden.iter().filter_map(weight).collect()
    });
    let image = &golden["image"];
    let evaluation = tch::no_grad(|| forward(&model, image, Mode::Evaluation));
    for (name, part) in outputs(&evaluation) {
        let what = format!("eval.{name}");
        assert_agrees(&what, part, &golden[&what], precision);
    }
    let training = forward(&model, image, Mode::Training);
    for (name, part) in outputs(&training) {
        let what = format!("train.{name}");
        assert_agrees(&what, part, &golden[&what], precision);
    }
    let ([b, c, v], kind) = (training.dims(), precision.master());
    let noise = Noise {
        rank: golden["train.rank_noise"].to_kind(kind),
        diagonal: golden["train.noise"].to_kind(kind),
        pairing: Pairing::Independent,
    };
    let target = Target::classes(golden["train.target"].to_kind(Kind::Int64).view([b, 1, v]), c).unwrap();
    let loss = monte_carlo_loss(&training, &target, NoiseSource::Given(&noise)).unwrap().loss;
    let loss = loss.mean(Kind::Double);
    assert_agrees("train.loss", &loss, &golden["train.loss"], precision);
    loss.backward();

    let ours = |name: &str| model.parameters().get(name).unwrap();
    let (mut statistics, mut gradients) = (0, 0);
    for (what, value) in &golden {
        if let Some(name) = what.strip_prefix("train.statistic.") {
            assert_agrees(what, ours(name), value, precision);
            statistics += 1;
        } else if let Some(name) = what.strip_prefix("train.grad.") {
            assert_agrees(what, &ours(name).grad(), value, precision);
            gradients += 1;
        }
    }
    // A mean and a variance for each of 3 · (4 + 3) + 3 norms.
    assert_eq!((statistics, gradients), (48, 6), "every value was compared");
    assert_agrees("train.grad_norms", &gradient_norms(&model), &golden["train.grad_norms"], precision);
}

/// The norm of the gradient of every trained tensor, by their names in order.
fn gradient_norms(model: &Model) -> Tensor {
    let mut trained = model.parameters().named_trainable();
    trained.sort_by(|a, b| a.0.cmp(&b.0));
    let norm = |(_, tensor): &(String, Tensor)| tensor.grad().to_kind(Kind::Double).norm().double_value(&[]);
    Tensor::from_slice(&trained.iter().map(norm).collect::<Vec<f64>>())
}

#[test]
fn small_network_in_double_precision() {
    check_small(Precision::F64);
}

#[test]
fn small_network_in_single_precision() {
    check_small(Precision::F32);
}

/// Weights that need no file; written a second time in `golden/unet.py`.
fn formula(name: &str, shape: &[i64]) -> Tensor {
    let k = Tensor::arange(shape.iter().product::<i64>(), (Kind::Int64, Device::Cpu));
    let n: i64 = name.bytes().zip(1..).map(|(byte, place): (u8, i64)| place * i64::from(byte)).sum();
    let number = (&k * &k * 3i64 + &k * 7919i64 + n * 104_729).remainder(2003i64);
    let number = number.to_kind(Kind::Double) / 1001.0 - 1.0; // −1 to 1
    let number = if name.contains(".deviation.") {
        number * 0.1
    } else if shape.len() == 5 {
        number * (6.0 / shape[1..].iter().product::<i64>() as f64).sqrt()
    } else if name.ends_with("norm.weight") || name.ends_with("running_var") {
        number * 0.5 + 1.0
    } else {
        number * 0.2 + if name.ends_with("norm.bias") { 0.5 } else { 0.0 }
    };
    number.view(shape)
}

#[test]
fn network_of_the_lidc_experiments() {
    let golden = read("unet_lidc.safetensors");
    let model = model(&ModelConfig::lidc(), Precision::F64, &golden, |model| {
        let entries = model.parameters().entries().iter();
        entries.map(|entry| (entry.name.clone(), formula(&entry.name, &entry.tensor.size()))).collect()
    });
    let x = Tensor::arange(128, (Kind::Double, Device::Cpu));
    let y = x.view([-1, 1]);
    let image = (&y * 0.07 + &x * 0.05).sin() * (&y * 0.013 - &x * 0.017).cos() / 2.0;
    let image = image.view([1, 1, 1, 128, 128]);
    let evaluation = tch::no_grad(|| forward(&model, &image, Mode::Evaluation));
    for (name, part) in outputs(&evaluation) {
        let mut size = part.size();
        let _ = size.pop();
        size.extend([128, 128]);
        let some = part.reshape(size.as_slice()).slice(-2, 5, 128, 16).slice(-1, 5, 128, 16);
        let what = format!("eval.{name}");
        assert_agrees(&what, &some, &golden[&what], Precision::F64);
    }
}

/// A network with latent variables on four levels, images of 8 × 8.
fn check_latent(file: &str, head: HeadConfig) {
    let (golden, precision) = (read(file), Precision::F64);
    let config = ModelConfig { channels: 1, classes: 2, head, ..small_config() };
    let model = model(&config, precision, &golden, |model| {
        let value = |name: &str, tensor: &Tensor| match golden.get(&format!("statistic.{name}")) {
            Some(statistic) => statistic.shallow_clone(),
            None => formula(name, &tensor.size()),
        };
        let entries = model.parameters().entries().iter();
        entries.map(|entry| (entry.name.clone(), value(&entry.name, &entry.tensor))).collect()
    });
    let [image, noise] = ["image", "noise"].map(|name| golden[name].to_kind(precision.master()));
    // One sample of the prior for each image.
    let sample = |i: i64| {
        let (latent, layout) = (model.latent().unwrap(), model.execution().layout());
        let decoder = latent.decoder(&image.narrow(0, i, 1), layout).unwrap();
        decoder(&noise.narrow(0, i, 1)).unwrap()
    };
    let samples: Vec<Tensor> = tch::no_grad(|| (0..image.size()[0]).map(sample).collect());
    assert_agrees("eval.logits", &Tensor::cat(&samples, 0), &golden["eval.logits"], precision);

    let target = golden["target"].to_kind(Kind::Int64).unsqueeze(1);
    let target = Target::classes(target, config.classes).unwrap();
    let terms = model.elbo_terms(&[image.shallow_clone()], &target, &noise, Mode::Training).unwrap();
    assert_agrees("train.logits", &Tensor::stack(&terms.logits, 0), &golden["train.logits"], precision);
    assert_agrees("train.kl", &terms.kl, &golden["train.kl"], precision);
    let loss = terms.loss(&target).unwrap().mean(Kind::Double);
    assert_agrees("train.loss", &loss, &golden["train.loss"], precision);
    loss.backward();
    assert_agrees("train.grad_norms", &gradient_norms(&model), &golden["train.grad_norms"], precision);
}

#[test]
fn probabilistic_unet() {
    check_latent("prob_unet.safetensors", HeadConfig::ProbUnet(ProbUnetConfig { latent: 6, kl_weight: 1.0 }));
}

#[test]
fn phiseg() {
    let config = PhisegConfig { latent_levels: 3, latent: 2, kl_weight: 1.0 };
    check_latent("phiseg.safetensors", HeadConfig::Phiseg(config));
}
