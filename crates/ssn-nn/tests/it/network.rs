//! What networks promise beyond their gradients: sizes, one code for 2D and 3D, precision, seeds, errors.

use proptest::prelude::*;
use ssn_nn::backbones::{
    BackboneConfig, BackbonePlan, DeepMedicConfig, DeepMedicOutput, UNetConfig, UNetPlan, plan_unet,
};
use ssn_nn::layers::{Dropout, NormKind};
use ssn_nn::parameters::{Parameters, StepContext};
use ssn_nn::space::Size;
use ssn_nn::{Execution, HeadConfig, Mode, Model, ModelConfig, Precision, StochasticConfig};
use tch::{Device, Kind, Tensor};

use crate::common::{self, begin_at_seed};

fn model(config: &ModelConfig) -> Model {
    Model::new(config, Execution::cpu(Precision::F64), 4).unwrap()
}

fn config(backbone: BackboneConfig) -> ModelConfig {
    let head = HeadConfig::Stochastic(StochasticConfig { rank: 2, ..StochasticConfig::default() });
    ModelConfig { channels: 2, classes: 3, backbone, head }
}

fn small_unet(patch: Size, norm: NormKind) -> BackboneConfig {
    BackboneConfig::Unet(common::small_unet(patch, norm))
}

fn flat_deepmedic() -> BackboneConfig {
    BackboneConfig::Deepmedic(DeepMedicConfig {
        scales: vec![[1, 3, 3], [1, 1, 1]],
        feature_maps: vec![3, 3, 4],
        kernel: [1, 3, 3],
        fully_connected: vec![5],
        dropout: vec![0.0; 2],
        output: DeepMedicOutput::Features(4),
    })
}

fn randn(shape: &[i64], kind: Kind) -> Tensor {
    Tensor::randn(shape, (kind, Device::Cpu))
}

fn close(a: &Tensor, b: &Tensor, tolerance: f64) -> bool {
    a.size() == b.size() && (a - b).abs().max().double_value(&[]) <= tolerance
}

#[test]
fn a_flat_network_is_the_deep_one_at_depth_1() {
    // Slices stacked along the depth go through the 3D kernels, the same slices as a batch through the 2D ones.
    let _alone = begin_at_seed(1);
    let cases = [(small_unet([1, 16, 16], NormKind::BATCH), 16), (flat_deepmedic(), 27)];
    for (backbone, n) in cases {
        for mode in [Mode::Training, Mode::Evaluation] {
            let model = model(&config(backbone.clone()));
            let slices = randn(&[3, 2, 1, n, n], Kind::Double);
            let stacked = slices.transpose(0, 2); // [1, 2, 3, n, n]
            let flat = model.forward(&slices, None, mode).unwrap().mean().copy(); // [3, c, v]
            let deep = model.forward(&stacked, None, mode).unwrap().mean().copy(); // [1, c, 3·v]
            let deep = deep.view([3, 3, -1]).transpose(0, 1);
            assert!(close(&flat, &deep, 1e-12), "{mode:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_weights() {
    let config = config(small_unet([1, 16, 16], NormKind::BATCH));
    let weights = |seed| {
        let model = Model::new(&config, Execution::cpu(Precision::F32), seed).unwrap();
        Tensor::cat(
            &model.parameters().entries().iter().map(|p| p.tensor.flatten(0, -1)).collect::<Vec<_>>(),
            0,
        )
    };
    assert_eq!(weights(1), weights(1));
    assert_ne!(weights(1), weights(2));
}

#[test]
fn first_weights_have_the_deviation_that_keeps_signals_alive() {
    let model = Model::new(&ModelConfig::lidc(), Execution::cpu(Precision::F32), 0).unwrap();
    let weight = model.parameters().get("backbone.down.3.1.conv.weight").unwrap();
    let expected = (2.0f64 / (192.0 * 9.0)).sqrt();
    assert!((weight.std(true).double_value(&[]) / expected - 1.0).abs() < 0.01);
    let head = model.parameters().get("head.factor.weight").unwrap();
    assert!((head.std(true).double_value(&[]) / 0.25 - 1.0).abs() < 0.1, "He-normal of 32 features");
    let model = Model::new(&ModelConfig::brats(), Execution::cpu(Precision::F32), 0).unwrap();
    for name in ["head.factor.weight", "head.factor.bias"] {
        let largest = model.parameters().get(name).unwrap().abs().max().double_value(&[]);
        let bound = 1.0 / 50f64.sqrt();
        assert!(largest <= bound && largest > 0.9 * bound, "{name}: {largest}");
    }
}

#[test]
fn precision_changes_rounding_only() {
    tch::set_num_threads(1);
    let _alone = begin_at_seed(2);
    for (backbone, size) in [
        (small_unet([1, 32, 32], NormKind::BATCH), [2, 2, 1, 32, 32]),
        (small_unet([8, 8, 8], NormKind::INSTANCE), [2, 2, 8, 8, 8]),
        (flat_deepmedic(), [2, 2, 1, 27, 30]),
    ] {
        let config = config(backbone);
        let image = randn(&size, Kind::Float);
        let run = |precision: Precision| {
            let model = Model::new(&config, Execution::cpu(precision), 3).unwrap();
            let prediction = model.forward(&image, None, Mode::Training).unwrap();
            assert_eq!(prediction.mean().kind(), precision.master());
            prediction.mean().sum(Kind::Float).backward();
            let gradients = model.parameters().trainable().map(|parameter| parameter.tensor.grad());
            let gradients: Vec<Tensor> = gradients.filter(Tensor::defined).collect();
            assert!(gradients.len() > 10, "gradients reach the master weights");
            assert!(gradients.iter().all(|gradient| gradient.kind() == precision.master()));
            prediction.mean().to_kind(Kind::Double)
        };
        let reference = run(Precision::F64);
        let scale = reference.abs().max().double_value(&[]);
        assert!(close(&run(Precision::F32), &reference, 1e-5 * scale));
        // bfloat16 has 8 bits: single layers round to 2⁻⁹ ≈ 0.002, and the errors of the layers add up.
        assert!(close(&run(Precision::Bf16), &reference, 0.06 * scale));
    }
}

#[test]
fn sizes_of_the_papers_networks() {
    let deepmedic = ModelConfig::brats().backbone;
    assert_eq!(deepmedic.output_size([110; 3]).unwrap(), [30; 3]);
    assert_eq!(deepmedic.output_size([140; 3]).unwrap(), [60; 3]);
    assert_eq!(deepmedic.input_size([30; 3]).unwrap(), [110; 3]);
    assert_eq!(deepmedic.input_size([31; 3]).unwrap(), [115; 3]);
    assert_eq!(ModelConfig::lidc().backbone.output_size([1, 128, 128]).unwrap(), [1, 128, 128]);
}

#[test]
fn wrong_sizes_name_the_nearest_that_fit() {
    let message = |config: &ModelConfig, size| config.backbone.output_size(size).unwrap_err().to_string();
    assert_eq!(
        message(&ModelConfig::lidc(), [1, 130, 128]),
        "the image size is 1 × 130 × 128 along d, h, w, but the U-Net needs multiples of 1 × 64 × 64; the nearest \
         that fit are 1 × 128 × 128 and 1 × 192 × 128"
    );
    assert_eq!(
        message(&ModelConfig::brats(), [112, 110, 110]),
        "the image size is 112 × 110 × 110 along d, h, w, but each path of DeepMedic needs (⌈output/scale⌉ + 16, \
         16, 16)·scale voxels; the nearest that fit are 110 × 110 × 110 and 115 × 110 × 110"
    );
    let message = message(&ModelConfig::brats(), [20, 110, 110]);
    assert!(message.ends_with("the nearest that fit are 85 × 110 × 110"), "{message}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn deepmedic_sizes_agree_with_each_other(
        output in [1..40i64, 1..40, 1..40],
        scales in proptest::collection::vec(1..7i64, 1..4),
        blocks in 1..9usize,
    ) {
        let config = DeepMedicConfig {
            scales: scales.into_iter().map(|s| [s; 3]).collect(),
            feature_maps: vec![2; blocks],
            ..DeepMedicConfig::brats()
        };
        let input = config.input_size(output);
        let found = config.output_size(input).unwrap();
        prop_assert!((0..3).all(|axis| found[axis] >= output[axis]));
        prop_assert_eq!(config.input_size(found), input);
    }

    #[test]
    fn planned_networks_accept_their_patches(
        patch in [1..100i64, 8..200, 8..200],
        spacing in [0.5..6.0f64, 0.3..2.0, 0.3..2.0],
    ) {
        let (config, size) = plan_unet(UNetPlan::new(patch, spacing, 2)).unwrap();
        prop_assert!(config.check().is_ok());
        prop_assert_eq!(config.output_size(size).unwrap(), size);
        prop_assert!((0..3).all(|axis| size[axis] >= patch[axis]));
    }
}

#[test]
fn bad_settings_name_the_setting() {
    let message =
        |config: &ModelConfig| Model::new(config, Execution::cpu(Precision::F32), 0).unwrap_err().to_string();
    let lidc = ModelConfig::lidc;
    let rank = |rank| HeadConfig::Stochastic(StochasticConfig { rank, ..StochasticConfig::default() });
    assert_eq!(
        message(&ModelConfig { head: rank(-1), ..lidc() }),
        "model.head.stochastic.rank is -1, but it must be 0 (independent logits) to 1024"
    );
    let flat = HeadConfig::Stochastic(StochasticConfig { epsilon: 0.0, ..StochasticConfig::default() });
    assert_eq!(
        message(&ModelConfig { head: flat, ..lidc() }),
        "model.head.stochastic.epsilon is 0, but it must be a small positive number"
    );
    assert_eq!(message(&ModelConfig { classes: 0, ..lidc() }), "classes is 0, but it must be at least 1");
    assert_eq!(message(&ModelConfig { channels: 0, ..lidc() }), "channels is 0, but it must be at least 1");
    let unet = UNetConfig { strides: vec![[1, 2, 2]; 3], ..UNetConfig::lidc() };
    assert_eq!(
        message(&ModelConfig { backbone: BackboneConfig::Unet(unet), ..lidc() }),
        "unet.strides is a list of 3 for 7 levels, but it must be one shorter than unet.widths"
    );
    let unet = UNetConfig { widths: vec![32, 0, 128, 192, 192, 192, 192], ..UNetConfig::lidc() };
    assert_eq!(
        message(&ModelConfig { backbone: BackboneConfig::Unet(unet), ..lidc() }),
        "backbone.down.1.0.conv.weight would have the shape [0, 32, 1, 3, 3]; every number of channels, classes and \
         features and every kernel must be at least 1"
    );
    let deterministic = ModelConfig { classes: 3, ..ModelConfig::brats_deterministic() };
    assert_eq!(
        message(&deterministic),
        "classes is 3, while the network gives 4 channels, but it must be the number of channels, when the head is \
         \"identity\""
    );
}

#[test]
fn images_that_do_not_fit_are_named() {
    let _alone = begin_at_seed(1);
    let model = model(&config(small_unet([1, 16, 16], NormKind::BATCH)));
    let message = |image: &[i64], mask: Option<&[i64]>| {
        let mask = mask.map(|mask| randn(mask, Kind::Double));
        model.forward(&randn(image, Kind::Double), mask.as_ref(), Mode::Evaluation).unwrap_err().to_string()
    };
    assert_eq!(
        message(&[1, 3, 1, 16, 16], None),
        "the image has shape [1, 3, 1, 16, 16], but [b, 2, d, h, w], as the setting channels says, is needed"
    );
    assert_eq!(
        message(&[1, 2, 16, 16], None),
        "an image has shape [1, 2, 16, 16], but [b, c, d, h, w]; 2D images have depth 1 is needed"
    );
    assert_eq!(
        message(&[1, 2, 1, 16, 16], Some(&[1, 1, 8, 8])),
        "the mask has shape [1, 1, 8, 8], but [1, 1, 16, 16] is needed"
    );
}

#[test]
fn deterministic_heads_give_the_master_precision_too() {
    let _alone = begin_at_seed(1);
    for config in [
        ModelConfig { head: HeadConfig::Deterministic, ..config(flat_deepmedic()) },
        ModelConfig { head: HeadConfig::Identity, classes: 4, ..config(flat_deepmedic()) },
    ] {
        let model = Model::new(&config, Execution::cpu(Precision::Bf16), 0).unwrap();
        let prediction =
            model.forward(&randn(&[1, 2, 1, 27, 27], Kind::Float), None, Mode::Training).unwrap();
        assert_eq!(prediction.mean().kind(), Kind::Float);
    }
}

#[test]
fn one_value_per_channel_cannot_be_normalized() {
    let _alone = begin_at_seed(1);
    let model = Model::new(&ModelConfig::lidc(), Execution::cpu(Precision::F32), 0).unwrap();
    let image = randn(&[1, 1, 1, 64, 64], Kind::Float);
    let message = model.forward(&image, None, Mode::Training).unwrap_err().to_string();
    assert!(message.contains("enlarge the patch or the batch"), "{message}");
    let running = model.parameters().get("backbone.down.6.0.norm.running_var").unwrap();
    assert_eq!(running.isfinite().all().int64_value(&[]), 1);
}

#[test]
fn small_volumes_go_through_the_fast_kernels_unchanged() {
    let _alone = begin_at_seed(7);
    for (depth, kernel, padding) in
        [(9, 3, 0), (10, 3, 0), (9, 3, 1), (8, 5, 2), (4, 3, 1), (3, 3, 0), (6, 1, 0)]
    {
        let padding = [padding, 1, 0];
        let image = randn(&[1, 4, depth, 11, 12], Kind::Float).set_requires_grad(true);
        let weight = randn(&[5, 4, kernel, 3, 3], Kind::Float).set_requires_grad(true);
        let ours = ssn_nn::space::convolution(&image, &weight, padding).unwrap();
        let plain = image.conv3d(&weight, None::<&Tensor>, [1i64; 3], padding, [1i64; 3], 1);
        let close = |a: &Tensor, b: &Tensor| close(a, b, 1e-5 * b.abs().max().double_value(&[]));
        assert!(close(&ours, &plain), "depth {depth}, kernel {kernel}");
        let weights = randn(&plain.size(), Kind::Float);
        let gradients = |y: &Tensor| {
            Tensor::run_backward(&[(y * &weights).sum(Kind::Float)], &[&image, &weight], true, false)
        };
        for (ours, plain) in gradients(&ours).iter().zip(&gradients(&plain)) {
            assert!(close(ours, plain), "depth {depth}, kernel {kernel}");
        }
    }
}

#[test]
fn bfloat16_kernels_longer_than_the_image_have_the_gradients_of_f32() {
    let _alone = begin_at_seed(8);
    for (depth, kernel) in [(1, 3), (2, 3), (2, 5), (3, 5), (4, 5), (3, 3)] {
        let image = randn(&[2, 16, depth, 4, 5], Kind::BFloat16).to_kind(Kind::Float);
        let weight = randn(&[16, 16, kernel, 3, 3], Kind::BFloat16).to_kind(Kind::Float);
        let run = |kind: Kind| {
            let [image, weight] = [&image, &weight].map(|x| x.detach().set_requires_grad(true));
            let padding = [kernel / 2, 1, 1];
            let y = ssn_nn::space::convolution(&image.to_kind(kind), &weight, padding).unwrap();
            let loss = y.to_kind(Kind::Float).square().sum(Kind::Float);
            let mut all = Tensor::run_backward(&[loss], &[&image, &weight], false, false);
            all.push(y);
            all
        };
        for (short, long) in run(Kind::BFloat16).iter().zip(&run(Kind::Float)) {
            let (short, most) = (short.to_kind(Kind::Float), 0.02 * long.abs().max().double_value(&[]));
            assert!(close(&short, long, most), "depth {depth}, kernel {kernel}");
        }
    }
}

#[test]
fn dropout_keeps_the_mean_and_only_what_it_keeps_has_a_gradient() {
    let mut parameters = Parameters::new(0, Kind::Double, Device::Cpu);
    let dropout = Dropout::new(&parameters.root(), 0.3, 2).unwrap();
    parameters.set_step(StepContext { dropout_seed: 7, ..StepContext::default() });
    let x = Tensor::ones([4, 2, 8, 64, 64], (Kind::Double, Device::Cpu)).set_requires_grad(true);
    let y = dropout.forward(&x, Mode::Training).unwrap();
    let kept = y.ne(0.0).to_kind(Kind::Double).mean(Kind::Double).double_value(&[]);
    // 262,144 values: standard errors of 0.0009 and 0.0013.
    assert!((kept - 0.7).abs() < 0.005, "{kept}");
    assert!((y.mean(Kind::Double).double_value(&[]) - 1.0).abs() < 0.007);
    // y = x · mask / 0.7, so that y of ones is the gradient.
    y.sum(Kind::Double).backward();
    assert!(x.grad().equal(&y));
    assert!(dropout.forward(&x, Mode::Evaluation).unwrap().equal(&x));
}

#[test]
fn dropout_of_a_network_is_a_function_of_the_seed() {
    let model = Model::new(&ModelConfig::brats(), Execution::cpu(Precision::F32), 0).unwrap();
    let _alone = begin_at_seed(1);
    let image = randn(&[1, 4, 85, 85, 85], Kind::Float);
    let run = |dropout_seed| {
        model.parameters().set_step(StepContext { dropout_seed, ..StepContext::default() });
        model.forward(&image, None, Mode::Training).unwrap().mean().copy()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_typo_in_a_backbone_names_the_key() {
    let parse = |text: &str| serde_json::from_str::<BackboneConfig>(text).map_err(|error| error.to_string());
    let config = ModelConfig::lidc().backbone;
    assert_eq!(parse(&serde_json::to_string(&config).unwrap()).unwrap(), config);
    let foreign = r#"{"torchscript": "net.pt", "features": 32}"#;
    assert!(matches!(parse(foreign).unwrap(), BackboneConfig::Torchscript(_)));
    let text = serde_json::to_string(&config).unwrap();
    let message = parse(&text.replace("pointwise", "pointwize")).unwrap_err();
    assert!(message.contains("unknown field `pointwize`"), "{message}");
    let message = parse(r#"{"unet3d": {}}"#).unwrap_err();
    assert!(message.contains("unknown field `unet3d`"), "{message}");
    let message = parse(r#"{"torchscript": "net.pt"}"#).unwrap_err();
    assert!(message.contains("needs `features`"), "{message}");
}
