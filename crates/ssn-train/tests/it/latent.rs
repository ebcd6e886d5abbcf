//! Networks with latent variables: their gradients, their samples, and that they learn what raters disagree about.

use ssn_core::Lattice;
use ssn_data::Batch;
use ssn_nn::backbones::{BackboneConfig, DeepMedicConfig, UNetConfig};
use ssn_nn::layers::{ActivationKind, NormKind};
use ssn_nn::{
    Execution, HeadConfig, LearningRate, Method, Mode, Model, ModelConfig, PhisegConfig, Precision,
    ProbUnetConfig, Schedule, Target, Warmup,
};
use ssn_train::inference::tiles::TileConfig;
use ssn_train::inference::{InputImage, LatentSamples, WholeImageConfig, never_stop, predict};
use ssn_train::{LossConfig, Trainer};
use tch::{Device, Kind, Tensor};

use crate::common::begin_at_seed;

const SIZE: usize = 8;
const STEPS: u64 = 400;

fn heads() -> [HeadConfig; 2] {
    [
        HeadConfig::ProbUnet(ProbUnetConfig { latent: 3, ..ProbUnetConfig::default() }),
        HeadConfig::Phiseg(PhisegConfig { latent_levels: 2, ..PhisegConfig::default() }),
    ]
}

fn config(head: HeadConfig, norm: NormKind) -> ModelConfig {
    let unet = UNetConfig {
        widths: vec![6, 10, 12],
        strides: vec![[1, 2, 2]; 2],
        kernels: vec![[1, 3, 3]; 3],
        convolutions: 1,
        decoder_widths: vec![10, 8],
        pointwise: vec![7],
        norm,
        activation: ActivationKind::LeakyRelu,
    };
    ModelConfig { channels: 1, classes: 2, backbone: BackboneConfig::Unet(unet), head }
}

fn batch_norm() -> NormKind {
    NormKind::Batch { eps: 1e-3, momentum: 0.05 }
}

/// The left or the right half of a square image, by the rater.
fn half(rater: usize) -> Vec<u8> {
    (0..SIZE * SIZE).map(|i| u8::from((i % SIZE < SIZE / 2) == (rater == 0))).collect()
}

#[test]
fn the_loss_has_the_gradient_that_differences_show() {
    tch::set_num_threads(1);
    let _alone = begin_at_seed(2);
    let options = (Kind::Double, Device::Cpu);
    for head in heads() {
        let model = Model::new(&config(head, batch_norm()), Execution::cpu(Precision::F64), 4).unwrap();
        let latent = model.latent().unwrap();
        let image = Tensor::randn([3, 1, 1, 16, 16], options);
        let maps = Tensor::rand([3, 1, 256], options).gt(0.6).to_kind(Kind::Int64);
        let target = Target::classes(maps, 2).unwrap();
        let noise = Tensor::randn([3, latent.noise_count([1, 16, 16])], options);
        let loss = || {
            let terms = model.elbo_terms(&[image.shallow_clone()], &target, &noise, Mode::Training).unwrap();
            terms.loss(&target).unwrap().sum(Kind::Double)
        };
        loss().backward();
        let mut parts: Vec<&str> = vec![];
        for parameter in model.parameters().trainable() {
            assert!(parameter.tensor.grad().defined(), "{}: nothing depends on it", parameter.name);
            let part = part_of(&parameter.name);
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        // Where a rectifier changes sides between two points, their difference is off: that happens along some directions, and a
        // wrong gradient is wrong along all.
        for part in parts {
            let found: Vec<[f64; 2]> = (0..3).map(|_| slopes(&model, part, &loss)).collect();
            let fits = |&[along, difference]: &[f64; 2]| {
                (difference - along).abs() < 1e-4 * (along.abs() + difference.abs()) + 1e-4
            };
            assert!(found.iter().any(fits), "{part}: {found:?}");
        }
    }
}

/// The slope of the loss by its gradient, and by a difference, where all tensors of a part move at once in a random direction.
fn slopes(model: &Model, part: &str, loss: &dyn Fn() -> Tensor) -> [f64; 2] {
    let options = (Kind::Double, Device::Cpu);
    let of_part = model.parameters().trainable().filter(|parameter| part_of(&parameter.name) == part);
    let moved: Vec<(Tensor, Tensor)> = of_part
        .map(|parameter| (parameter.tensor.shallow_clone(), Tensor::randn(parameter.tensor.size(), options)))
        .collect();
    let along = moved
        .iter()
        .map(|(tensor, direction)| (tensor.grad() * direction).sum(Kind::Double).double_value(&[]))
        .sum();
    let at = |step: f64| {
        let go = |step: f64| {
            for (tensor, direction) in &moved {
                drop(tensor.shallow_clone().f_add_(&(direction * step)));
            }
        };
        tch::no_grad(|| {
            go(step);
            let value = loss().double_value(&[]);
            go(-step);
            value
        })
    };
    [along, (at(1e-7) - at(-1e-7)) / 2e-7]
}

/// The part of the network that a tensor belongs to, such as `head.prior.down`.
fn part_of(name: &str) -> &str {
    let end = name.match_indices('.').nth(2).map_or(name.len(), |(at, _)| at);
    &name[..end]
}

#[test]
fn phiseg_counts_every_level() {
    tch::set_num_threads(1);
    let _alone = begin_at_seed(8);
    let options = (Kind::Double, Device::Cpu);
    let image = Tensor::randn([2, 1, 1, 16, 16], options);
    let target = Target::classes(Tensor::zeros([2, 1, 256], (Kind::Int64, Device::Cpu)), 2).unwrap();
    let head = HeadConfig::Phiseg(PhisegConfig { latent_levels: 2, latent: 2, kl_weight: 0.5 });
    let model = Model::new(&config(head, batch_norm()), Execution::cpu(Precision::F64), 4).unwrap();
    // Posterior and prior are the same everywhere, but for the mean of one level, which is a constant further.
    tch::no_grad(|| {
        for parameter in model.parameters().trainable() {
            if parameter.name.contains(".mean.") || parameter.name.contains(".deviation.") {
                let _ = parameter.tensor.shallow_clone().zero_();
            }
        }
    });
    let noise = Tensor::zeros([2, model.latent().unwrap().noise_count([1, 16, 16])], options);
    let shifted = |level: usize, shift: f64| {
        let name = format!("head.posterior.mean.{level}.bias");
        let mut bias = model.parameters().get(&name).unwrap().shallow_clone();
        tch::no_grad(|| drop(bias.fill_(shift)));
        let terms = model.elbo_terms(&[image.shallow_clone()], &target, &noise, Mode::Training).unwrap();
        tch::no_grad(|| drop(bias.fill_(0.0)));
        terms
    };
    let deviation = 2f64.ln() + 1e-4;
    // Two variables at each voxel; a level of 8² and one of 4², which counts four times.
    for (level, weight) in [(0, 1.0), (1, 4.0)] {
        let terms = shifted(level, 0.3);
        let voxels = [64.0, 16.0][level];
        let expected = 0.5 * weight * 2.0 * voxels * 0.5 * (0.3 / deviation).powi(2);
        let found = terms.kl.double_value(&[0]);
        assert!((found - expected).abs() < 1e-9 * expected, "level {level}: {found} and {expected}");
        assert_eq!(terms.logits.len(), 2);
        let entropies: f64 = terms
            .logits
            .iter()
            .map(|logits| {
                -logits.log_softmax(1, Kind::Double).get(0).get(0).sum(Kind::Double).double_value(&[])
            })
            .sum();
        let loss = terms.loss(&target).unwrap().double_value(&[0]);
        assert!((loss - found - entropies).abs() < 1e-9 * loss, "{loss} = {found} + {entropies}");
    }
}

#[test]
fn a_sample_does_not_depend_on_the_others() {
    let _alone = begin_at_seed(5);
    for head in heads() {
        let model = Model::new(&config(head, batch_norm()), Execution::cpu(Precision::F32), 4).unwrap();
        // A size that is no multiple of the strides, and a mask.
        let (size, mut mask) = ([1, 15, 13], vec![0u8; 15 * 13]);
        mask[3 * 13 + 2..14 * 13].fill(1);
        let values: Vec<f32> = (0..15 * 13).map(|i| (i as f32 * 0.37).sin()).collect();
        let image = InputImage::new(&values, 1, size, Some(&mask)).unwrap();
        let draw = |count, seed, voxels_at_once| {
            let tiles = TileConfig { voxels_at_once, ..TileConfig::default() };
            let config = WholeImageConfig {
                tiles,
                latent_samples: LatentSamples { count, seed },
                ..WholeImageConfig::default()
            };
            let whole = predict(&model, &image, &config, never_stop).unwrap();
            let voxels = whole.region.voxels();
            (whole.distribution.mean().to_f32(), whole.samples.unwrap(), voxels)
        };
        let (mean, labels, voxels) = draw(7, 3, 1 << 20);
        assert_eq!((mean.len(), labels.len()), (2 * voxels, 7 * voxels));
        assert_eq!(draw(7, 3, 1).1, labels);
        assert_eq!(draw(3, 3, 600).1, labels[..3 * voxels]);
        assert_ne!(draw(7, 4, 1 << 20).1, labels);
        for i in 0..voxels {
            let total = mean[i].exp() + mean[voxels + i].exp();
            assert!((total - 1.0).abs() < 1e-5);
        }
    }
}

#[test]
fn the_disagreement_of_raters_is_learned() {
    // Threads would spend more time on waiting for each other than on these small maps.
    tch::set_num_threads(1);
    for head in heads() {
        let model = Model::new(&config(head, batch_norm()), Execution::cpu(Precision::F32), 1).unwrap();
        let rate = LearningRate::new(5e-3, Schedule::Constant, Warmup::default(), STEPS).unwrap();
        let mut trainer = Trainer::new(model, Method::adam(), rate, LossConfig::default(), 7).unwrap();
        let image: Vec<f32> = (0..SIZE * SIZE).map(|i| (i % SIZE) as f32 / 4.0 - 0.9).collect();
        let b = 4;
        for number in 0..STEPS {
            let batch = Batch {
                number,
                first: 0,
                of: b,
                images: image.repeat(b),
                image_shape: [b, 1, 1, SIZE, SIZE],
                grids: vec![Lattice::whole([1, SIZE, SIZE])],
                // A few voxels are wrong, so that the network is never quite sure.
                targets: (0..b)
                    .flat_map(|i| half(i % 2))
                    .enumerate()
                    .map(|(i, label)| {
                        if (i as u64 * 7919 + number * 104_729).is_multiple_of(16) {
                            1 - label
                        } else {
                            label
                        }
                    })
                    .collect(),
                target_shape: [b, 1, 1, SIZE, SIZE],
                masks: None,
                origins: vec![],
            };
            trainer.step(&batch).unwrap();
        }
        let image = InputImage::new(&image, 1, [1, SIZE, SIZE], None).unwrap();
        let config = WholeImageConfig {
            latent_samples: LatentSamples { count: 64, seed: 1 },
            ..WholeImageConfig::default()
        };
        let labels = predict(trainer.model(), &image, &config, never_stop).unwrap().samples.unwrap();
        // Nearly every sample is one of the two maps, but for a few voxels at the border, and both occur.
        let mut counts = [0, 0];
        for sample in labels.chunks(SIZE * SIZE) {
            let wrong = [0, 1].map(|rater| {
                half(rater).iter().zip(sample).filter(|(expected, found)| expected != found).count()
            });
            let nearest = usize::from(wrong[1] < wrong[0]);
            counts[nearest] += usize::from(wrong[nearest] < 10);
        }
        assert!(
            counts.iter().sum::<usize>() >= 50 && counts.iter().all(|&n| n >= 12),
            "{head:?}: {counts:?}"
        );
    }
}

#[test]
fn the_numbers_of_parameters_stay() {
    let parameters = |head| {
        let config = ModelConfig { head, ..ModelConfig::lidc() };
        Model::new(&config, Execution::cpu(Precision::F32), 0).unwrap().parameters().count()
    };
    let found = [
        HeadConfig::Deterministic,
        HeadConfig::ProbUnet(ProbUnetConfig::default()),
        HeadConfig::Phiseg(PhisegConfig::default()),
    ]
    .map(parameters);
    insta::assert_debug_snapshot!(found);
}

#[test]
fn what_does_not_fit_is_refused() {
    let message =
        |config: ModelConfig| Model::new(&config, Execution::cpu(Precision::F32), 0).unwrap_err().to_string();
    let [prob_unet, phiseg] = heads();
    let base = config(prob_unet, batch_norm());
    let deep = BackboneConfig::Deepmedic(DeepMedicConfig::brats());
    let levels = HeadConfig::Phiseg(PhisegConfig { latent_levels: 4, ..PhisegConfig::default() });
    let flat = HeadConfig::ProbUnet(ProbUnetConfig { latent: 0, ..ProbUnetConfig::default() });
    let weight = HeadConfig::Phiseg(PhisegConfig { kl_weight: -1.0, latent_levels: 2, latent: 2 });
    insta::assert_snapshot!(
        [
            message(ModelConfig { backbone: deep, ..base.clone() }),
            message(ModelConfig { head: levels, ..base.clone() }),
            message(ModelConfig { head: flat, ..base.clone() }),
            message(ModelConfig { head: weight, ..base.clone() }),
            message(ModelConfig { classes: 1, ..config(phiseg, batch_norm()) }),
            {
                let model = Model::new(&base, Execution::cpu(Precision::F32), 0).unwrap();
                let image = Tensor::zeros([1, 1, 1, 16, 16], (Kind::Float, Device::Cpu));
                model.forward(&image, None, Mode::Evaluation).unwrap_err().to_string()
            },
            {
                let model = Model::new(&base, Execution::cpu(Precision::F32), 0).unwrap();
                let image = Tensor::zeros([1, 1, 1, 16, 16], (Kind::Float, Device::Cpu));
                let maps = Tensor::zeros([1, 4, 256], (Kind::Int64, Device::Cpu));
                let noise = Tensor::zeros([1, 3], (Kind::Float, Device::Cpu));
                let target = Target::classes(maps, 2).unwrap();
                model.elbo_terms(&[image], &target, &noise, Mode::Training).unwrap_err().to_string()
            },
        ]
        .join("\n")
    );
}
