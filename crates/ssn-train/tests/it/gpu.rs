//! What a GPU computes beside what the CPU computes. The tests are ignored unless `--ignored` asks for them: they need a GPU.

use std::sync::{Arc, MutexGuard};

use ssn_core::Lattice;
use ssn_cuda::{
    Activation, NormOptions, NormTensors, ParameterRow, ParameterTable, PathOptions, StepLock, StepResults,
    SyncNormReduce, convolution, join, normalize, normalized_convolution,
};
use ssn_data::Batch;
use ssn_io::ErrorKind;
use ssn_nn::NnError;
use ssn_nn::communicator::Communicator;
use ssn_nn::communicator::ThreadCommunicator;
use ssn_nn::loss::{EnergyOptions, Similarity, energy_loss, register_loss, tempered_loss};
use ssn_nn::random::{GpuNoise, NoiseShape};
use ssn_nn::space;
use ssn_nn::space::{FeatureLayout, join_scales};
use ssn_nn::{
    Execution, HeadConfig, LearningRate, LowRankNormalTensors, Method, Mode, Model, ModelConfig, NoiseSource,
    Optimizer, Pairing, PhisegConfig, Precision, ProbUnetConfig, Schedule, StepNoise, Target, Warmup,
};
use ssn_train::inference::tiles::TileConfig;
use ssn_train::inference::{
    InputImage, LatentSamples, Storage, WholeImageConfig, WholeImagePrediction, never_stop, predict,
};
use ssn_train::{LossConfig, LossKind, Trainer};
use tch::{Device, Kind, Tensor};

use crate::common::take_random_numbers;
use crate::own_likelihood::OwnLikelihood;

const GPU: Device = Device::Cuda(0);

/// Batch norm in training as PyTorch has it by default, of no channels yet.
const NORM: NormOptions = NormOptions {
    eps: 1e-5,
    momentum: 0.1,
    keep: 1.0,
    layer: 0,
    activation: Activation::Identity,
    channels: 0,
    per_image: 0,
    training: 1,
    first: 0,
    whole: 0,
};

/// The GPU, for one test at a time; the thread then works on it.
fn gpu() -> MutexGuard<'static, ()> {
    let alone = take_random_numbers();
    let ready = ssn_cuda::load().and_then(|()| ssn_cuda::enter_stream(GPU));
    ready.and_then(|()| ssn_cuda::allow_tf32(true)).unwrap();
    alone
}

/// ‖a − b‖ / ‖b‖.
fn distance(a: &Tensor, b: &Tensor) -> f64 {
    let [a, b] = [a, b].map(|t| t.detach().to_device(Device::Cpu).to_kind(Kind::Double));
    ((&a - &b).norm() / (b.norm() + 1e-30)).double_value(&[])
}

#[track_caller]
fn assert_close(what: &str, found: &Tensor, expected: &Tensor, most: f64) {
    let distance = distance(found, expected);
    assert!(distance <= most, "{what}: {distance} > {most}");
}

/// A map on the GPU in its form, and the same numbers on the CPU.
fn map(shape: [i64; 5], kind: Kind) -> (Tensor, Tensor) {
    let x = Tensor::randn(shape, (Kind::Float, Device::Cpu)) * 2.0 + 3.0;
    let x = x.to_kind(kind).to_kind(Kind::Double);
    let form = FeatureLayout { kind, padded: true };
    (form.apply(&x.to_kind(Kind::Float).to_device(GPU)).unwrap(), x)
}

/// The weights of a convolution `[o, c, d, h, w]` as networks have them on the GPU, and the same numbers on the CPU.
fn kernel(shape: [i64; 5], kind: Kind) -> (Tensor, Tensor) {
    let [outputs, inputs, d, h, w] = shape;
    let host = (Tensor::randn(shape, (Kind::Double, Device::Cpu)) * 0.05).to_kind(kind).to_kind(Kind::Double);
    let size = [ssn_cuda::padded(outputs), d, h, w, ssn_cuda::padded(inputs)];
    let on_gpu = Tensor::zeros(size, (kind, GPU)).permute([0, 4, 1, 2, 3]);
    on_gpu.narrow(0, 0, outputs).narrow(1, 0, inputs).copy_(&host);
    (on_gpu.set_requires_grad(true), host)
}

fn leaf(t: &Tensor) -> Tensor {
    t.detach().copy().set_requires_grad(true)
}

struct Case {
    channels: i64,
    activation: Activation,
    per_image: bool,
    kind: Kind,
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn normalization_has_the_values_and_gradients_of_its_parts() {
    let _alone = gpu();
    tch::manual_seed(1);
    let activations = [Activation::Identity, Activation::Relu, Activation::LeakyRelu, Activation::Prelu];
    for (number, activation) in activations.into_iter().cycle().take(32).enumerate() {
        let case = Case {
            channels: [3, 8, 30, 192, 250, 50, 1, 64][number / 4],
            activation,
            per_image: number % 3 == 0,
            kind: if number % 2 == 0 { Kind::Float } else { Kind::BFloat16 },
        };
        // Small and large maps have kernels of their own.
        check_normalization(&case, [5, 7, 9]);
        check_normalization(&case, [11, 25, 29]);
    }
}

fn check_normalization(Case { channels, activation, per_image, kind }: &Case, [d, h, w]: [i64; 3]) {
    let what =
        format!("{channels} channels, {activation:?}, per image {per_image}, {kind:?}, {d} × {h} × {w}");
    let (x, host) = map([2, *channels, d, h, w], *kind);
    let (x, host) = (leaf(&x), leaf(&host));
    let vector = |scale: f64| Tensor::randn([*channels], (Kind::Float, Device::Cpu)) * scale + 1.0;
    let (weight, bias) = (vector(0.3), vector(0.5));
    let slope = Tensor::from_slice(&[0.3f32]);
    let on_gpu = [&weight, &bias, &slope].map(|t| leaf(&t.to_device(GPU)));
    let on_host = [&weight, &bias, &slope].map(|t| leaf(&t.to_kind(Kind::Double)));
    let running = [0.0, 1.0].map(|value| Tensor::full([*channels], value, (Kind::Float, GPU)));
    let host_running = [0.0, 1.0].map(|value| Tensor::full([*channels], value, (Kind::Double, Device::Cpu)));
    let tensors = NormTensors {
        weight: &on_gpu[0],
        bias: &on_gpu[1],
        prelu: (*activation == Activation::Prelu).then_some(&on_gpu[2]),
        running: (!per_image).then_some([&running[0], &running[1]]),
        seed: None,
    };
    let options = NormOptions {
        channels: *channels,
        per_image: i64::from(*per_image),
        activation: *activation,
        ..NORM
    };
    let y = normalize(&x, &tensors, &options).unwrap();
    let (w, b) = (Some(&on_host[0]), Some(&on_host[1]));
    let normalized = if *per_image {
        host.instance_norm(w, b, None::<&Tensor>, None::<&Tensor>, true, 0.0, 1e-5, true)
    } else {
        host.batch_norm(w, b, Some(&host_running[0]), Some(&host_running[1]), true, 0.1, 1e-5, true)
    };
    let z = normalized.detach();
    let expected = match activation {
        Activation::Identity => normalized,
        Activation::Relu => normalized.relu(),
        Activation::LeakyRelu => normalized.leaky_relu(),
        Activation::Prelu => normalized.prelu(&on_host[2]),
    };
    let most = if *kind == Kind::Float { 1e-5 } else { 6e-3 };
    assert_close(&format!("{what}: values"), &y.narrow(1, 0, *channels), &expected, most);
    let padding = y.size()[1] - channels;
    assert_eq!(
        y.narrow(1, *channels, padding).abs().sum(Kind::Double).double_value(&[]),
        0.0,
        "{what}: padding"
    );

    let upstream = expected.randn_like();
    (&expected * &upstream).sum(Kind::Double).backward();
    let given = FeatureLayout { kind: *kind, padded: true }.apply(&upstream.to_device(GPU)).unwrap();
    (&y * &given).sum(Kind::Float).backward();
    let most = if *kind == Kind::Float { 1e-4 } else { 2e-2 };
    assert_close(&format!("{what}: gradient"), &x.grad().narrow(1, 0, *channels), &host.grad(), most);
    // Terms of both signs cancel in the gradients of the parameters: errors are measured by the norm of the terms, each of
    // which is rounded by itself.
    let terms = (&upstream * &z).norm().double_value(&[]);
    for (name, found, expected) in [
        ("weight", &on_gpu[0], &on_host[0]),
        ("bias", &on_gpu[1], &on_host[1]),
        ("slope", &on_gpu[2], &on_host[2]),
    ] {
        if expected.grad().defined() {
            let found = found.grad().to_device(Device::Cpu).to_kind(Kind::Double);
            let error = (found - expected.grad()).norm().double_value(&[]);
            assert!(error < most * terms, "{what}: gradient of {name} {error} of {terms}");
        }
    }
    if !per_image {
        assert_close(&format!("{what}: running mean"), &running[0], &host_running[0], 1e-5);
        assert_close(&format!("{what}: running variance"), &running[1], &host_running[1], 1e-4);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_rank_normalizes_its_images_with_the_statistics_of_all() {
    let _alone = gpu();
    tch::manual_seed(5);
    let channels = 30;
    for [d, h, w] in [[3, 5, 7], [11, 25, 29]] {
        // Two ranks that have the same images: every sum over both is twice that of one.
        let _sums = SyncNormReduce::new(|numbers| {
            let _ = numbers.shallow_clone().f_mul_scalar_(2.0).map_err(|error| error.to_string())?;
            Ok(())
        })
        .unwrap();
        let (x, host) = map([2, channels, d, h, w], Kind::Float);
        let (x, host) = (leaf(&x), leaf(&host));
        let parameter = |value: f64, kind, device| {
            Tensor::full([channels], value, (kind, device)).set_requires_grad(true)
        };
        let on_gpu = [1.3, 0.2].map(|value| parameter(value, Kind::Float, GPU));
        let on_host = [1.3, 0.2].map(|value| parameter(value, Kind::Double, Device::Cpu));
        let running = [0.0, 1.0].map(|value| Tensor::full([channels], value, (Kind::Float, GPU)));
        let host_running =
            [0.0, 1.0].map(|value| Tensor::full([channels], value, (Kind::Double, Device::Cpu)));
        let options = NormOptions { channels, activation: Activation::LeakyRelu, first: 2, whole: 4, ..NORM };
        let running_tensors = Some([&running[0], &running[1]]);
        let tensors = NormTensors {
            weight: &on_gpu[0],
            bias: &on_gpu[1],
            prelu: None,
            running: running_tensors,
            seed: None,
        };
        let y = normalize(&x, &tensors, &options).unwrap();
        let both = Tensor::cat(&[&host, &host], 0);
        let (weight, bias) = (Some(&on_host[0]), Some(&on_host[1]));
        let [mean, variance] = [Some(&host_running[0]), Some(&host_running[1])];
        let expected = both.batch_norm(weight, bias, mean, variance, true, 0.1, 1e-5, true).leaky_relu();
        assert_close("values", &y.narrow(1, 0, channels), &expected.narrow(0, 2, 2), 1e-5);
        let upstream = host.randn_like();
        (&expected * Tensor::cat(&[&upstream, &upstream], 0)).sum(Kind::Double).backward();
        let form = FeatureLayout { kind: Kind::Float, padded: true };
        (&y * form.apply(&upstream.to_kind(Kind::Float).to_device(GPU)).unwrap()).sum(Kind::Float).backward();
        // The images serve twice on the host: so do their gradients, and those of the parameters.
        let half = |t: &Tensor| t.grad() * 0.5;
        assert_close("gradient", &x.grad().narrow(1, 0, channels), &half(&host), 1e-4);
        assert_close("gradient of weight", &on_gpu[0].grad(), &half(&on_host[0]), 1e-3);
        assert_close("gradient of bias", &on_gpu[1].grad(), &half(&on_host[1]), 1e-3);
        assert_close("running mean", &running[0], &host_running[0], 1e-5);
        assert_close("running variance", &running[1], &host_running[1], 1e-4);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn dropout_keeps_the_share_it_should_and_its_gradient_is_its_own() {
    let _alone = gpu();
    let (x, _) = map([4, 16, 16, 32, 32], Kind::Float);
    let x = leaf(&x);
    let ones = Tensor::ones([16], (Kind::Float, GPU));
    let zeros = Tensor::zeros([16], (Kind::Float, GPU));
    let normalized = |[weight, bias]: [&Tensor; 2], first: i64, seed: Option<i64>, x: &Tensor| {
        let seed = seed.map(|seed| Tensor::from_slice(&[seed]).to_device(GPU));
        let tensors = NormTensors { weight, bias, prelu: None, running: None, seed: seed.as_ref() };
        let options = NormOptions {
            channels: 16,
            per_image: 1,
            keep: if seed.is_some() { 0.7 } else { 1.0 },
            layer: 3,
            first,
            ..NORM
        };
        normalize(x, &tensors, &options).unwrap()
    };
    // Without a weight, and with a bias of 1, the mask remains: 0 or 1/0.7.
    let drop_from = |first: i64, seed: i64, x: &Tensor| normalized([&zeros, &ones], first, Some(seed), x);
    let drop = |seed: i64, x: &Tensor| drop_from(0, seed, x);
    let y = drop(5, &x);
    let kept = y.ne(0.0).to_kind(Kind::Double).mean(Kind::Double).double_value(&[]);
    // A million values: the standard error is 0.0005.
    assert!((kept - 0.7).abs() < 0.003, "{kept}");
    assert!((y.mean(Kind::Double).double_value(&[]) - 1.0).abs() < 0.005);
    assert_eq!(distance(&drop(5, &x), &y), 0.0);
    assert!(distance(&drop(6, &x), &y) > 0.1);
    // The second image of a batch is dropped alike by a rank that has it alone.
    let second = drop_from(1, 5, &x.narrow(0, 1, 1));
    assert_eq!(distance(&second, &y.narrow(0, 1, 1)), 0.0);
    assert!(distance(&second, &y.narrow(0, 0, 1)) > 0.1);
    // The gradient is that of the norm without dropout, of which the mask takes its part.
    let upstream = Tensor::randn_like(&y);
    let gradient = |total: Tensor| Tensor::run_backward(&[total], &[&x], false, false).remove(0);
    let dropped = normalized([&ones, &zeros], 0, Some(5), &x);
    let plain = normalized([&ones, &zeros], 0, None, &x);
    assert_close("what remains", &dropped, &(&plain * &y.detach()), 1e-6);
    let found = gradient((&dropped * &upstream).sum(Kind::Float));
    let expected = gradient((&plain * &y.detach() * &upstream).sum(Kind::Float));
    assert_close("gradient", &found, &expected, 1e-5);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_normalized_convolution_has_the_gradients_of_its_parts() {
    let _alone = gpu();
    tch::manual_seed(2);
    for (inputs, outputs) in [(30, 30), (30, 40), (50, 50)] {
        let (x, host) = map([2, inputs, 9, 8, 10], Kind::Float);
        let (x, host) = (leaf(&x), leaf(&host));
        let (on_gpu, kernel) = kernel([outputs, inputs, 3, 3, 3], Kind::Float);
        let kernel = leaf(&kernel);
        let ones = |kind, device| Tensor::ones([inputs], (kind, device)).set_requires_grad(true);
        let zeros = |kind, device| Tensor::zeros([inputs], (kind, device)).set_requires_grad(true);
        let slope = Tensor::from_slice(&[0.25f32]).to_device(GPU).set_requires_grad(true);
        let (weight, bias) = (ones(Kind::Float, GPU), zeros(Kind::Float, GPU));
        let tensors =
            NormTensors { weight: &weight, bias: &bias, prelu: Some(&slope), running: None, seed: None };
        let options = NormOptions { channels: inputs, activation: Activation::Prelu, ..NORM };
        let residual = inputs == outputs;
        let y = normalized_convolution(&x, &tensors, &options, &on_gpu, residual).unwrap();
        let none = None::<&Tensor>;
        let (w, b) = (ones(Kind::Double, Device::Cpu), zeros(Kind::Double, Device::Cpu));
        let host_slope = Tensor::from_slice(&[0.25f64]).set_requires_grad(true);
        let z = host.batch_norm(Some(&w), Some(&b), none, none, true, 0.1, 1e-5, true);
        let a = z.prelu(&host_slope);
        let mut expected = a.conv3d(&kernel, none, [1, 1, 1], [0, 0, 0], [1, 1, 1], 1);
        if residual {
            expected += host.narrow(2, 1, 7).narrow(3, 1, 6).narrow(4, 1, 8);
        }
        let what = format!("{inputs} to {outputs}");
        // Convolutions may use TF32, which has ten bits of mantissa.
        assert_close(&what, &y.narrow(1, 0, outputs), &expected, 2e-3);
        let upstream = expected.randn_like();
        let total = (&expected * &upstream).sum(Kind::Double);
        let of_a = Tensor::run_backward(&[&total], &[&a], true, false).remove(0);
        total.backward();
        let form = FeatureLayout { kind: Kind::Float, padded: true };
        (&y * form.apply(&upstream.to_device(GPU)).unwrap()).sum(Kind::Float).backward();
        assert_close(&format!("{what}: gradient"), &x.grad().narrow(1, 0, inputs), &host.grad(), 2e-3);
        let found = on_gpu.grad().narrow(0, 0, outputs).narrow(1, 0, inputs);
        assert_close(&format!("{what}: kernel"), &found, &kernel.grad(), 2e-3);
        // Terms of both signs cancel in that of the slope: its error is measured by their norm.
        let terms = (of_a * z.clamp_max(0.0)).norm().double_value(&[]);
        let error = slope.grad().double_value(&[0]) - host_slope.grad().double_value(&[0]);
        assert!(error.abs() < 2e-3 * terms, "{what}: slope {error} of {terms}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn convolutions_of_few_channels_are_those_of_the_cpu() {
    let _alone = gpu();
    tch::manual_seed(12);
    // So many voxels that kernels of our own compute them; sizes of which boxes do not fit.
    let cases = [
        (4, 30, [10, 21, 23, 19], 3, 0),
        (30, 40, [4, 25, 22, 31], 3, 0),
        (40, 40, [4, 19, 30, 25], 3, 1),
        (50, 50, [10, 16, 17, 18], 3, 0),
        (64, 24, [6, 18, 20, 22], 3, 1),
        (64, 64, [6, 20, 18, 22], 3, 0),
        (1, 8, [8, 20, 22, 24], 3, 1),
        (32, 24, [6, 1, 100, 90], 1, 1),
        (16, 32, [2, 9, 50, 47], 1, 0),
        // Nearly all of the shared memory that a block has without being asked.
        (16, 16, [40, 1, 28, 28], 1, 1),
    ];
    for (inputs, outputs, [b, d, h, w], depth, padding) in cases {
        let what = format!("{inputs} to {outputs}, {:?}", [b, d, h, w]);
        let (x, host) = map([b, inputs, d, h, w], Kind::BFloat16);
        let (x, host) = (leaf(&x), leaf(&host.to_kind(Kind::Float)));
        let (on_gpu, weights) = kernel([outputs, inputs, depth, 3, 3], Kind::BFloat16);
        let weights = leaf(&weights.to_kind(Kind::Float));
        let padding = [if depth == 1 { 0 } else { padding }, padding, padding];
        let y = convolution(&x, &on_gpu, padding).unwrap();
        let expected = host.conv3d(&weights, None::<&Tensor>, [1, 1, 1], padding, [1, 1, 1], 1);
        assert_close(&what, &y.narrow(1, 0, outputs), &expected, 3e-3);
        let upstream = expected.randn_like().to_kind(Kind::BFloat16);
        let form = FeatureLayout { kind: Kind::BFloat16, padded: true };
        let on_gpu_upstream = form.apply(&upstream.to_device(GPU)).unwrap();
        (&y * on_gpu_upstream).sum(Kind::Float).backward();
        (&expected * upstream.to_kind(Kind::Float)).sum(Kind::Float).backward();
        let found = x.grad().narrow(1, 0, inputs);
        assert_close(&format!("{what}: gradient"), &found, &host.grad(), 3e-3);
        let found = on_gpu.grad().narrow(0, 0, outputs).narrow(1, 0, inputs);
        assert_close(&format!("{what}: kernel"), &found, &weights.grad(), 3e-3);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_residual_connection_is_added_to_a_convolution_of_few_channels() {
    let _alone = gpu();
    tch::manual_seed(13);
    let (x, _) = map([6, 40, 20, 19, 21], Kind::BFloat16);
    let (kernel, _) = kernel([40, 40, 3, 3, 3], Kind::BFloat16);
    let weight = Tensor::ones([40], (Kind::Float, GPU));
    let bias = Tensor::zeros([40], (Kind::Float, GPU));
    let tensors = NormTensors { weight: &weight, bias: &bias, prelu: None, running: None, seed: None };
    let options = NormOptions { channels: 40, activation: Activation::Relu, ..NORM };
    let found = normalized_convolution(&x, &tensors, &options, &kernel, true).unwrap();
    let y = convolution(&normalize(&x, &tensors, &options).unwrap(), &kernel, [0; 3]).unwrap();
    let middle = x.narrow(2, 1, 18).narrow(3, 1, 17).narrow(4, 1, 19);
    assert_close("the sum", &found, &(y.to_kind(Kind::Float) + middle.to_kind(Kind::Float)), 3e-3);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn maps_of_several_scales_are_joined_as_on_the_cpu() {
    let _alone = gpu();
    tch::manual_seed(3);
    let (scales, size) = ([[5, 5, 5], [3, 3, 3], [1, 1, 1]], [30, 30, 30]);
    let pairs = [[6, 6, 6], [10, 10, 10], [30, 30, 30]].map(|[d, h, w]| {
        let (x, host) = map([2, 50, d, h, w], Kind::Float);
        (leaf(&x), leaf(&host))
    });
    let hosts: Vec<Tensor> = pairs.iter().map(|(_, host)| host.shallow_clone()).collect();
    let expected = join_scales(&hosts, 50, &scales, size).unwrap();
    let options = |scale| PathOptions { channels: 50, scale, start: [0, 0, 0] };
    let paths: Vec<_> = pairs.iter().zip(scales).map(|((map, _), scale)| (map, options(scale))).collect();
    let joined = join(&paths, size).unwrap();
    assert_eq!(joined.size()[1], 152);
    assert_close("values", &joined.narrow(1, 0, 150), &expected, 1e-7);
    let upstream = expected.randn_like();
    (&expected * &upstream).sum(Kind::Double).backward();
    let form = FeatureLayout { kind: Kind::Float, padded: true };
    (&joined * form.apply(&upstream.to_device(GPU)).unwrap()).sum(Kind::Float).backward();
    for (i, (map, host)) in pairs.iter().enumerate() {
        assert_close(&format!("gradient of path {i}"), &map.grad().narrow(1, 0, 50), &host.grad(), 1e-5);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_ways_down_and_up_are_those_of_the_cpu() {
    let _alone = gpu();
    tch::manual_seed(7);
    for (size, stride) in [([1, 8, 12], [1, 2, 2]), ([6, 4, 2], [2, 2, 2]), ([4, 6, 10], [1, 2, 2])] {
        let [d, h, w] = size;
        let (x, host) = map([2, 16, d, h, w], Kind::Float);
        let (x, host) = (leaf(&x), leaf(&host));
        let both = |x: &Tensor| {
            let [pooled, same] = space::downsample(x, stride).unwrap();
            space::upsample((pooled * 2.0, 16), (same, 16), stride).unwrap()
        };
        let (found, expected) = (both(&x), both(&host));
        assert_close(&format!("{size:?}"), &found, &expected, 1e-6);
        let upstream = expected.randn_like();
        (&expected * &upstream).sum(Kind::Double).backward();
        let form = FeatureLayout { kind: Kind::Float, padded: true };
        (&found * form.apply(&upstream.to_device(GPU)).unwrap()).sum(Kind::Float).backward();
        assert_close(&format!("{size:?}: gradient"), &x.grad(), &host.grad(), 1e-6);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_linear_maps_of_a_head_are_those_of_the_cpu() {
    let _alone = gpu();
    tch::manual_seed(8);
    // The last is the largest of its width.
    for (f, rows) in
        [(50, vec![4, 4, 40]), (32, vec![2, 2, 20]), (7, vec![3]), (13, vec![5, 5]), (32, vec![10, 10, 108])]
    {
        assert!(ssn_cuda::is_linear_possible(rows.iter().sum(), ssn_cuda::padded(f)));
        let (x, host) = map([2, f, 1, 17, 19], Kind::Float);
        let (x, host) = (leaf(&x), leaf(&host));
        let k: i64 = rows.iter().sum();
        let weight = Tensor::randn([k, f], (Kind::Float, Device::Cpu));
        let bias = Tensor::randn([k], (Kind::Float, Device::Cpu));
        let on_gpu = [&weight, &bias].map(|t| leaf(&t.to_device(GPU)));
        let on_host = [&weight, &bias].map(|t| leaf(&t.to_kind(Kind::Double)));
        let parts = ssn_cuda::linear(&x, &on_gpu[0], &on_gpu[1], &rows).unwrap();
        let found = Tensor::cat(&parts, 1);
        let expected = on_host[0].matmul(&host.flatten(2, -1)) + on_host[1].unsqueeze(1);
        assert_close(&format!("{f} features"), &found, &expected, 1e-6);
        let upstream = expected.randn_like();
        (&expected * &upstream).sum(Kind::Double).backward();
        (&found * upstream.to_device(GPU).to_kind(Kind::Float)).sum(Kind::Float).backward();
        assert_close(&format!("{f} features: gradient"), &x.grad().narrow(1, 0, f), &host.grad(), 1e-6);
        assert_close(&format!("{f} features: weight"), &on_gpu[0].grad(), &on_host[0].grad(), 1e-5);
        assert_close(&format!("{f} features: bias"), &on_gpu[1].grad(), &on_host[1].grad(), 1e-5);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_loss_has_the_noise_the_value_and_the_gradients_of_the_cpu() {
    let _alone = gpu();
    tch::manual_seed(4);
    for (b, c, v, r, t, samples, pairing, first, power) in [
        (2, 4, 1000, 10, 1, 20, Pairing::Antithetic, 0, 1.0),
        (3, 2, 777, 10, 4, 20, Pairing::Independent, 5, 1.0),
        (1, 3, 64, 0, 2, 6, Pairing::Independent, 0, 0.3),
        (2, 5, 300, 25, 1, 8, Pairing::Antithetic, 1, 0.05),
    ] {
        let what = format!("{c} classes, rank {r}, {samples} samples, {pairing:?}");
        let part = |shape: &[i64], scale: f64| Tensor::randn(shape, (Kind::Float, Device::Cpu)) * scale;
        let mean = part(&[b, c, v], 1.0);
        let diagonal = part(&[b, c, v], 0.5).exp();
        let factor = part(&[b, r, c, v], 0.05);
        let maps = Tensor::randint(c, [b, t, v], (Kind::Int64, Device::Cpu));
        let (seed, step) = (11, 7);
        let host: Vec<Tensor> = [&mean, &diagonal, &factor].map(leaf).into();
        let distribution = LowRankNormalTensors::new(
            host[0].shallow_clone(),
            host[1].shallow_clone(),
            host[2].shallow_clone(),
        )
        .unwrap();
        let noise = StepNoise::new(seed, step, distribution.noise_shape(samples), pairing).unwrap();
        let noise = noise.from_item(first);
        let target = Target::classes(maps.shallow_clone(), c).unwrap();
        let expected = tempered_loss(&distribution, &target, NoiseSource::Step(&noise), power).unwrap();
        expected.loss.mean(Kind::Double).backward();

        let device: Vec<Tensor> = [&mean, &diagonal, &factor].map(|t| leaf(&t.to_device(GPU))).into();
        let distribution = LowRankNormalTensors::new(
            device[0].shallow_clone(),
            device[1].shallow_clone(),
            device[2].shallow_clone(),
        )
        .unwrap();
        let numbers = Tensor::from_slice(&[StepNoise::seed(seed, step) as i64]).to_device(GPU);
        let shape = distribution.noise_shape(samples);
        let noise = NoiseSource::OnGpu(GpuNoise { seed: &numbers, shape, pairing, first });
        let target = Target::from_checked(maps.to_device(GPU), c);
        let found = tempered_loss(&distribution, &target, noise, power).unwrap();
        found.loss.mean(Kind::Double).backward();
        assert_close(&format!("{what}: loss"), &found.loss, &expected.loss, 1e-6);
        let effective = distance(&found.ess, &expected.ess);
        assert!(effective < 1e-3, "{what}: effective sample size {effective}");
        compare_gradients(&what, &device, &host);
    }
}

/// The gradients of mean, diagonal and factor on the GPU are those of the CPU.
fn compare_gradients(what: &str, device: &[Tensor], host: &[Tensor]) {
    for ((name, found), expected) in ["mean", "diagonal", "factor"].into_iter().zip(device).zip(host) {
        if expected.numel() > 0 {
            assert_close(&format!("{what}: {name}"), &found.grad(), &expected.grad(), 1e-3);
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_energy_loss_has_the_value_and_the_gradients_of_the_cpu() {
    let _alone = gpu();
    tch::manual_seed(5);
    for (b, c, v, r, t, samples, pairing, first) in [
        (2, 4, 1000, 10, 1, 20, Pairing::Antithetic, 0),
        (3, 2, 777, 10, 4, 20, Pairing::Independent, 5),
        (1, 3, 64, 0, 2, 6, Pairing::Independent, 0),
        (2, 2, 2048, 25, 3, 8, Pairing::Antithetic, 1),
    ] {
        for similarity in [Similarity::Tanimoto, Similarity::Dice] {
            let what = format!("{c} classes, rank {r}, {samples} samples, {pairing:?}, {similarity:?}");
            let part = |shape: &[i64], scale: f64| Tensor::randn(shape, (Kind::Float, Device::Cpu)) * scale;
            let parts = [part(&[b, c, v], 1.0), part(&[b, c, v], 0.5).exp(), part(&[b, r, c, v], 0.3)];
            let maps = Tensor::randint(c, [b, t, v], (Kind::Int64, Device::Cpu));
            let options = EnergyOptions { similarity, ..EnergyOptions::default() };
            let run = |device: Device| {
                let leaves: Vec<Tensor> = parts.iter().map(|part| leaf(&part.to_device(device))).collect();
                let [mean, diagonal, factor] = [0, 1, 2].map(|i| leaves[i].shallow_clone());
                let distribution = LowRankNormalTensors::new(mean, diagonal, factor).unwrap();
                let shape = distribution.noise_shape(samples);
                let on_host = StepNoise::new(11, 7, shape, pairing).unwrap().from_item(first);
                let seed = Tensor::from_slice(&[StepNoise::seed(11, 7) as i64]).to_device(device);
                let noise = match device {
                    Device::Cpu => NoiseSource::Step(&on_host),
                    _ => NoiseSource::OnGpu(GpuNoise { seed: &seed, shape, pairing, first }),
                };
                let target = Target::from_checked(maps.to_device(device), c);
                let loss = energy_loss(&distribution, &target, noise, options).unwrap();
                loss.mean(Kind::Double).backward();
                (loss, leaves)
            };
            let ((expected, host), (found, device)) = (run(Device::Cpu), run(GPU));
            assert_close(&format!("{what}: loss"), &found, &expected, 1e-5);
            compare_gradients(&what, &device, &host);
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn optimizers_step_as_on_the_cpu() {
    let _alone = gpu();
    tch::manual_seed(5);
    let rms = |momentum, centered| Method::RmsProp {
        alpha: 0.9,
        momentum,
        eps: 1e-8,
        weight_decay: 1e-2,
        centered,
    };
    for method in [
        Method::adam(),
        Method::Adam { beta1: 0.8, beta2: 0.9, eps: 1e-3, weight_decay: 0.1 },
        Method::adamw(),
        Method::sgd(0.0),
        Method::Sgd { momentum: 0.9, nesterov: true, dampening: 0.0, weight_decay: 0.01 },
        Method::Sgd { momentum: 0.9, nesterov: false, dampening: 0.1, weight_decay: 0.0 },
        rms(0.6, false),
        rms(0.0, true),
        rms(0.5, true),
    ] {
        let start = [
            Tensor::randn([5000], (Kind::Float, Device::Cpu)),
            Tensor::randn([3, 7], (Kind::Float, Device::Cpu)),
        ];
        let named = |tensors: Vec<Tensor>| -> Vec<(String, Tensor)> {
            tensors.into_iter().enumerate().map(|(i, tensor)| (format!("p{i}"), tensor)).collect()
        };
        let host: Vec<Tensor> = start.iter().map(leaf).collect();
        let device: Vec<Tensor> = start.iter().map(|t| leaf(&t.to_device(GPU))).collect();
        let mut on_host =
            Optimizer::new(method, named(host.iter().map(Tensor::shallow_clone).collect())).unwrap();
        let mut on_gpu =
            Optimizer::new(method, named(device.iter().map(Tensor::shallow_clone).collect())).unwrap();
        let mut table = ParameterTable::new(&[5000, 21], GPU).unwrap();
        let results = StepResults::new(GPU).unwrap();
        for step in 0..5u32 {
            let gradients: Vec<Tensor> = start.iter().map(|t| t.randn_like() * 2.0).collect();
            on_host.zero_grad().unwrap();
            let mut loss = Tensor::from(0f32);
            for (parameter, gradient) in host.iter().zip(&gradients) {
                loss += (parameter * gradient).sum(Kind::Float);
            }
            loss.backward();
            let most = 50.0;
            let norm = ssn_nn::clip_gradient_norm(on_host.parameters(), most).unwrap();
            let rate = 0.1 / f64::from(step + 1);
            on_host.step(rate).unwrap();

            let gradients: Vec<Tensor> = gradients.iter().map(|t| t.to_device(GPU)).collect();
            let entries: Vec<ParameterRow> = (0..2)
                .map(|i| ParameterRow {
                    master: &device[i],
                    working: None,
                    gradient: Some(gradients[i].shallow_clone()),
                    buffers: on_gpu.buffers_on_gpu(i),
                    number: i,
                })
                .collect();
            table.fill(&entries).unwrap();
            let value = Tensor::from(1.5f64).to_device(GPU);
            table.decide(&results, &value, None, most).unwrap();
            let (rule, settings) = on_gpu.on_gpu();
            let rates = Tensor::from_slice(&[rate]).to_device(GPU);
            let steps = Tensor::from_slice(&on_gpu.next_steps().collect::<Vec<i64>>()).to_device(GPU);
            table.update(&results, rule, &settings, &rates, &steps).unwrap();
            on_gpu.count_step(&[0, 1]);
            let values = Vec::<f64>::try_from(results.values.to_device(Device::Cpu)).unwrap();
            assert!((values[2] / norm - 1.0).abs() < 1e-5, "{method:?}: norm {} of {norm}", values[2]);
            assert_eq!((values[0], values[1], values[3]), (1.5, -1.0, 1.0));
        }
        for (found, expected) in device.iter().zip(&host) {
            assert_close(&format!("{method:?}"), found, expected, 1e-5);
        }
    }
}

/// A small network, its loss, and batches of it.
fn unet(head: Option<HeadConfig>) -> ModelConfig {
    let text = r#"
        channels = 2
        classes = 3
        [backbone.unet]
        widths = [12, 20, 24]
        strides = [[1, 2, 2], [1, 2, 2]]
        kernels = [[1, 3, 3], [1, 3, 3], [1, 3, 3]]
        decoder_widths = [20, 12]
        norm = { kind = "batch" }
        activation = "leaky-relu"
        [head.stochastic]
        rank = 4
    "#;
    let config: ModelConfig = toml::from_str(text).unwrap();
    match head {
        Some(head) => ModelConfig { head, ..config },
        None => config,
    }
}

fn batch(number: u64, mask: bool) -> Batch {
    tch::manual_seed(number as i64);
    let [b, c, h, w] = [3usize, 2, 32, 24];
    let images = Tensor::randn([(b * c * h * w) as i64], (Kind::Float, Device::Cpu));
    // Something that can be learned: the sign of the first channel.
    let images: Vec<f32> = images.try_into().unwrap();
    let voxels = h * w;
    let targets = (0..b * voxels)
        .map(|i| {
            let x = images[(i / voxels * c) * voxels + i % voxels];
            if x < -0.5 {
                0
            } else if x < 0.5 {
                1
            } else {
                2
            }
        })
        .collect();
    Batch {
        number,
        first: 0,
        of: b,
        image_shape: [b, c, 1, h, w],
        grids: vec![Lattice::whole([1, h, w])],
        images,
        target_shape: [b, 1, 1, h, w],
        targets,
        masks: mask.then(|| (0..b * voxels).map(|i| u8::from(i % 5 != 0)).collect()),
        origins: vec![],
    }
}

fn trainer(device: Device, precision: Precision, pretrain_steps: u64) -> Trainer {
    let loss = LossConfig { pretrain_steps, max_gradient_norm: Some(1e5), ..LossConfig::default() };
    trainer_of(device, precision, loss)
}

fn trainer_of(device: Device, precision: Precision, loss: LossConfig) -> Trainer {
    let model = Model::new(&unet(None), Execution::on(device, precision), 3).unwrap();
    let rate = LearningRate::new(1e-3, Schedule::Constant, Warmup::default(), 1000).unwrap();
    Trainer::new(model, Method::adam(), rate, loss, 9).unwrap()
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn training_follows_that_on_the_cpu() {
    let _alone = gpu();
    for mask in [false, true] {
        let losses = |device, precision| {
            let mut trainer = trainer(device, precision, 6);
            let reports: Vec<_> = (0..30).map(|k| trainer.step(&batch(k, mask)).unwrap()).collect();
            reports.iter().map(|report| (report.loss, report.gradient_norm)).collect::<Vec<_>>()
        };
        let host = losses(Device::Cpu, Precision::F32);
        let single = losses(GPU, Precision::F32);
        let half = losses(GPU, Precision::Bf16);
        for k in 0..30 {
            eprintln!("{k}: {:?} {:?} {:?}", host[k], single[k], half[k]);
        }
        for k in 0..30 {
            // Rounding grows with the steps; in the first it is that of TF32 and bfloat16.
            let most = if k < 8 { 0.01 } else { 0.05 };
            let (expected, _) = host[k];
            assert!((single[k].0 / expected - 1.0).abs() < most, "step {k}: {} of {expected}", single[k].0);
            assert!((half[k].0 / expected - 1.0).abs() < 3.0 * most, "step {k}: {} of {expected}", half[k].0);
        }
        assert!(host[29].0 < 0.8 * host[6].0, "it learns");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_phases_of_an_energy_loss_follow_those_on_the_cpu() {
    let _alone = gpu();
    let loss = LossConfig {
        kind: LossKind::Energy,
        pretrain_steps: 8,
        likelihood_steps: 8,
        likelihood_weight: 1e-3,
        ..LossConfig::default()
    };
    let losses = |device| {
        let mut trainer = trainer_of(device, Precision::F32, loss);
        (0..32).map(|k| trainer.step(&batch(k, false)).unwrap()).collect::<Vec<_>>()
    };
    for (host, found) in losses(Device::Cpu).iter().zip(losses(GPU)) {
        eprintln!("{host:?}\n{found:?}");
        assert_eq!(host.ess.is_some(), found.ess.is_some());
        let most = if host.step < 16 { 0.01 } else { 0.03 };
        assert!((found.loss / host.loss - 1.0).abs() < most, "{host:?} and {found:?}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn noise_on_the_gpu_has_the_bits_of_the_cpu() {
    let _alone = gpu();
    for (samples, batch, rank, classes, voxels, first) in [(6, 3, 10, 4, 777, 5), (2, 1, 0, 2, 64, 0)] {
        let shape = NoiseShape { samples, batch, rank, classes, voxels };
        let host = StepNoise::new(11, 7, shape, Pairing::Independent).unwrap().from_item(first);
        let seed = Tensor::from_slice(&[StepNoise::seed(11, 7) as i64]).to_device(GPU);
        let device = GpuNoise { seed: &seed, shape, pairing: Pairing::Independent, first };
        for (draws, range) in [(0..samples, 0..voxels), (1..2, 13..50)] {
            let host = NoiseSource::Step(&host).part(draws.clone(), range.clone()).unwrap();
            let device = NoiseSource::OnGpu(device).part(draws, range).unwrap();
            assert!(host.rank.equal(&device.rank.to_device(Device::Cpu)));
            assert!(host.diagonal.equal(&device.diagonal.to_device(Device::Cpu)));
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn an_own_loss_trains_eagerly_and_in_a_graph_as_the_built_in_does() {
    let _alone = gpu();
    register_loss("captured", OwnLikelihood { syncs: false }).unwrap();
    register_loss("eager", OwnLikelihood { syncs: true }).unwrap();
    let losses = |own: Option<&str>| {
        let own = own.map(|name| serde_json::from_value(name.into()).unwrap());
        let loss = LossConfig { own, max_gradient_norm: Some(1e5), ..LossConfig::default() };
        let mut trainer = trainer_of(GPU, Precision::F32, loss);
        (0..20).map(|k| trainer.step(&batch(k, false)).unwrap().loss).collect::<Vec<_>>()
    };
    let expected = losses(None);
    for name in ["captured", "eager"] {
        for (k, (found, expected)) in losses(Some(name)).iter().zip(&expected).enumerate() {
            // Rounding grows with the steps.
            let most = if k == 0 { 1e-5 } else { 0.01 };
            assert!((found / expected - 1.0).abs() < most, "{name}, step {k}: {found} of {expected}");
        }
    }
}

/// Two ranks, of which the other adds nothing to any sum.
#[derive(Debug)]
struct Silent;

impl Communicator for Silent {
    fn rank(&self) -> usize {
        0
    }

    fn world_size(&self) -> usize {
        2
    }

    fn all_reduce_f32(&self, _: &mut [f32]) -> ssn_nn::error::Result<()> {
        Ok(())
    }

    fn all_reduce_f64(&self, _: &mut [f64]) -> ssn_nn::error::Result<()> {
        Ok(())
    }

    fn all_gather(&self, bytes: &[u8]) -> ssn_nn::error::Result<Vec<Vec<u8>>> {
        Ok(vec![bytes.to_vec(); 2])
    }

    fn duplicate(&self) -> ssn_nn::error::Result<Arc<dyn Communicator>> {
        Ok(Arc::new(Self))
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_rank_trains_as_without_ranks_by_nccl_and_through_the_host() {
    let _alone = gpu();
    let losses =
        |comm: Option<Arc<dyn Communicator>>, syncs_batch_norm: bool, words: Option<&str>| -> Vec<f64> {
            let mut trainer = trainer(GPU, Precision::F32, 3);
            if let Some(comm) = comm {
                trainer = trainer.with_communicator(comm, syncs_batch_norm).unwrap();
            }
            assert_eq!(trainer.all_reduce_backend(), words);
            (0..20).map(|k| trainer.step(&batch(k, false)).unwrap().loss).collect()
        };
    let expected = losses(None, true, None);
    for syncs_batch_norm in [true, false] {
        // Two ranks on one GPU go through the host; one alone has a GPU of its own, and its steps are recorded. NCCL adds up
        // nothing for one rank: what shows is that buckets are made, awaited and copied back in a recorded step.
        let one: Arc<dyn Communicator> = ThreadCommunicator::new(1).remove(0);
        let ways: [(Arc<dyn Communicator>, &str); 2] = [(one, "NCCL"), (Arc::new(Silent), "host memory")];
        for (comm, words) in ways {
            let found = losses(Some(comm), syncs_batch_norm, Some(words));
            for (k, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let most = if k < 8 { 0.002 } else { 0.02 };
                assert!((found / expected - 1.0).abs() < most, "{words}, step {k}: {found} of {expected}");
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn replayed_steps_are_those_done_call_by_call() {
    let _alone = gpu();
    // Fresh noise in every replay: the same batch gives another loss each time, as on the CPU.
    let mut on_gpu = trainer(GPU, Precision::F32, 0);
    let mut host = trainer(Device::Cpu, Precision::F32, 0);
    let mut again = batch(0, false);
    let mut losses = vec![];
    for number in 0..12 {
        again.number = number;
        let (found, expected) = (on_gpu.step(&again).unwrap(), host.step(&again).unwrap());
        losses.push(found.loss);
        assert!((found.loss / expected.loss - 1.0).abs() < 0.02, "{number}: {found:?} {expected:?}");
        // How many samples carry the loss depends on differences that rounding changes; here it must only be possible.
        let effective = found.ess.unwrap();
        assert!((1.0..=20.0).contains(&effective), "{number}: {effective}");
    }
    losses.dedup();
    assert_eq!(losses.len(), 12);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gradients_computed_beside_other_work_are_the_same() {
    let _alone = gpu();
    let lock = StepLock::acquire();
    let networks = [
        (ModelConfig::lidc(), [12, 1, 1, 128, 128]),
        (ModelConfig::brats(), [4, 4, 110, 110, 110]),
        (unet(None), [3, 2, 1, 32, 24]),
    ];
    for (config, size) in networks {
        tch::manual_seed(7);
        let image = Tensor::randn(size, (Kind::Float, Device::Cpu)).to_device(GPU);
        let gradients = |beside: bool| {
            let model = Model::new(&config, Execution::on(GPU, Precision::F32), 3).unwrap();
            let passes = || {
                let prediction = model.forward(&image, None, Mode::Training)?;
                prediction.mean().square().mean(Kind::Float).f_backward()?;
                Ok::<_, NnError>(())
            };
            // Streams work the same whether a graph is captured or not; here they run at once.
            let done = if beside { ssn_cuda::with_side_streams(&lock, passes) } else { passes() };
            done.unwrap();
            ssn_cuda::synchronize().unwrap();
            let parameters = model.parameters().trainable();
            let found: Vec<(String, Tensor)> = parameters
                .map(|parameter| (parameter.name.clone(), parameter.differentiated().grad()))
                .filter(|(_, gradient)| gradient.defined())
                .collect();
            found
        };
        let expected = gradients(false);
        assert!(expected.len() > 10, "{}", expected.len());
        for _ in 0..6 {
            for ((name, found), (_, expected)) in gradients(true).iter().zip(&expected) {
                // Rounding of sums that blocks of threads add to in any order.
                assert_close(name, found, expected, 1e-3);
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_step_that_is_not_finite_changes_nothing() {
    let _alone = gpu();
    for before in [1u64, 8] {
        let mut trainer = trainer(GPU, Precision::Bf16, 0);
        for k in 0..before {
            trainer.step(&batch(k, false)).unwrap();
        }
        let numbers = |trainer: &Trainer| -> Vec<Vec<f32>> {
            let entries = trainer.model().parameters().entries();
            entries
                .iter()
                .map(|e| e.tensor.to_device(Device::Cpu).reshape([-1]).try_into().unwrap())
                .collect()
        };
        let earlier = numbers(&trainer);
        let mut poisoned = batch(before, false);
        poisoned.images[7] = f32::NAN;
        let error = trainer.step(&poisoned).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NonFinite, "{error}");
        assert!(numbers(&trainer) == earlier, "after {before} steps");
        let report = trainer.step(&batch(before + 1, false)).unwrap();
        assert!(report.loss.is_finite());
        assert!(numbers(&trainer) != earlier);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_mean_over_the_last_steps_predicts_and_leaves_the_steps_alone() {
    let _alone = gpu();
    for precision in [Precision::F32, Precision::Bf16] {
        // A mean over one step is what the network had when it was taken up: after 100 steps after every tenth.
        let step = |trainer: &mut Trainer, k| trainer.step(&batch(k, false)).unwrap().loss;
        let mut plain = trainer(GPU, precision, 6);
        let expected_losses: f64 = (0..125).map(|k| step(&mut plain, k)).skip(115).sum();
        let mut trainer = trainer(GPU, precision, 6).with_ema(1).unwrap();
        let predicted = |model: &Model| {
            let image = Tensor::ones([2, 2, 1, 32, 24], (Kind::Float, Device::Cpu));
            let prediction = tch::no_grad(|| model.forward(&image, None, Mode::Evaluation).unwrap());
            Ok(prediction.mean().to_device(Device::Cpu))
        };
        (0..110).for_each(|k| _ = step(&mut trainer, k));
        let expected = predicted(trainer.model()).unwrap();
        (110..115).for_each(|k| _ = step(&mut trainer, k));
        let before = predicted(trainer.model()).unwrap();
        let mean = trainer.with_eval_model(predicted).unwrap();
        assert_close("after step 110", &mean, &expected, 1e-6);
        assert!(distance(&before, &expected) > 1e-4, "the weights have changed since");
        assert_close("the last weights are back", &predicted(trainer.model()).unwrap(), &before, 1e-6);
        // Trainings on a GPU drift apart; one that went on from other weights would be far off.
        let found: f64 = (115..125).map(|k| step(&mut trainer, k)).sum();
        assert!((found / expected_losses - 1.0).abs() < 0.1, "{found} and {expected_losses}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn several_networks_train_in_one_process() {
    let _alone = gpu();
    // Beyond the steps of a phase that are captured, and through the change of phases.
    const STEPS: u64 = 24;
    let batches = |first: u64| (0..STEPS).map(move |k| Batch { number: k, ..batch(first + k, false) });
    let alone = |first: u64| -> Vec<f64> {
        let mut trainer = trainer(GPU, Precision::F32, 6);
        batches(first).map(|batch| trainer.step(&batch).unwrap().loss).collect()
    };
    let expected = [alone(0), alone(500)];
    let assert_alike = |what: &str, found: &[Vec<f64>; 2]| {
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found / expected - 1.0).abs() < 0.03, "{what}: {found} of {expected}");
        }
    };
    // In turns on one thread.
    let mut trainers = [0, 1].map(|_| trainer(GPU, Precision::F32, 6));
    let mut found = [vec![], vec![]];
    for (first, second) in batches(0).zip(batches(500)) {
        found[0].push(trainers[0].step(&first).unwrap().loss);
        found[1].push(trainers[1].step(&second).unwrap().loss);
    }
    assert_alike("in turns", &found);
    // On two threads, each with a trainer of its own.
    let batches = [batches(0).collect::<Vec<_>>(), batches(500).collect()];
    let found = std::thread::scope(|scope| {
        let train = |batches: &[Batch]| {
            let mut trainer = trainer(GPU, Precision::F32, 6);
            batches.iter().map(|batch| trainer.step(batch).unwrap().loss).collect::<Vec<_>>()
        };
        let threads = batches.each_ref().map(|batches| scope.spawn(move || train(batches)));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_alike("on two threads", &found);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn predictions_are_those_of_the_cpu() {
    let _alone = gpu();
    for config in [unet(None), ModelConfig::lidc(), ModelConfig::brats(), ModelConfig::brats_deterministic()]
    {
        let shape = match config.channels {
            1 => [2, 1, 1, 128, 128],
            2 => [2, 2, 1, 32, 24],
            _ => [1, 4, 110, 110, 110],
        };
        tch::manual_seed(6);
        let image = Tensor::randn(shape, (Kind::Float, Device::Cpu));
        let predict = |device, precision, mode| {
            let model = Model::new(&config, Execution::on(device, precision), 4).unwrap();
            tch::no_grad(|| model.forward(&image, None, mode).unwrap()).mean().to_device(Device::Cpu)
        };
        let expected = predict(Device::Cpu, Precision::F32, Mode::Evaluation);
        let single = predict(GPU, Precision::F32, Mode::Evaluation);
        assert_close(&format!("{config:?} in f32"), &single, &expected, 5e-3);
        let half = predict(GPU, Precision::Bf16, Mode::Evaluation);
        assert_close(&format!("{config:?} in bf16"), &half, &expected, 5e-2);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn whole_images_are_those_of_the_cpu() {
    let _alone = gpu();
    let cases = [
        (unet(None), [1, 50, 44], Some([1, 32, 24])),
        (ModelConfig::brats(), [33, 41, 37], None),
        (ModelConfig::brats_deterministic(), [20, 31, 18], Some([15, 15, 15])),
    ];
    for (config, size, tile) in cases {
        let voxels: usize = size.iter().product();
        tch::manual_seed(10);
        let count = config.channels * voxels as i64;
        let values: Vec<f32> = Tensor::randn([count], (Kind::Float, Device::Cpu)).try_into().unwrap();
        let mask: Vec<u8> = (0..voxels).map(|i| u8::from(i % voxels > voxels / 9 && i % 7 != 0)).collect();
        for mask in [None, Some(mask.as_slice())] {
            let image = InputImage::new(&values, config.channels as usize, size, mask).unwrap();
            let predicted = |device| {
                let model = Model::new(&config, Execution::on(device, Precision::F32), 4).unwrap();
                let tiles = TileConfig { tile, voxels_at_once: 2000, ..TileConfig::default() };
                let config = WholeImageConfig { tiles, factor: Storage::F32, ..WholeImageConfig::default() };
                predict(&model, &image, &config, never_stop).unwrap()
            };
            let (expected, found) = (predicted(Device::Cpu), predicted(GPU));
            assert_eq!((found.size, found.region), (expected.size, expected.region));
            assert!(found.timing.gpu.is_some());
            let parts = |prediction: &WholeImagePrediction| {
                let d = &prediction.distribution;
                [d.mean(), d.diagonal(), d.factor()].map(|part| Tensor::from_slice(&part.to_f32()))
            };
            for (found, expected) in parts(&found).iter().zip(parts(&expected)) {
                assert_close(&format!("{size:?}"), found, &expected, 5e-3);
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn networks_with_latent_variables_learn_and_draw_as_on_the_cpu() {
    let _alone = gpu();
    // PHiSeg's divergences are exponentials of what its layers give: TF32 would decide about its first loss, and after long
    // steps any rounding does about the others.
    ssn_cuda::allow_tf32(false).unwrap();
    type Head = fn(f64) -> HeadConfig;
    let heads: [(Head, f64); 2] = [
        (|kl_weight| HeadConfig::ProbUnet(ProbUnetConfig { latent: 3, kl_weight }), 1e-3),
        (|kl_weight| HeadConfig::Phiseg(PhisegConfig { latent_levels: 2, latent: 2, kl_weight }), 1e-5),
    ];
    for (head, rate) in heads {
        let run = |device, precision, rate, kl_weight| {
            let model =
                Model::new(&unet(Some(head(kl_weight))), Execution::on(device, precision), 3).unwrap();
            let rate = LearningRate::new(rate, Schedule::Constant, Warmup::default(), 1000).unwrap();
            let mut trainer = Trainer::new(model, Method::adam(), rate, LossConfig::default(), 9).unwrap();
            // Steps call by call, and replayed ones.
            let losses: Vec<f64> = (0..12).map(|k| trainer.step(&batch(k, false)).unwrap().loss).collect();
            let size = [1, 30, 24];
            let values: Vec<f32> = (0..2 * 720).map(|i| (i as f32 * 0.37).sin()).collect();
            let image = InputImage::new(&values, 2, size, None).unwrap();
            let config = WholeImageConfig {
                latent_samples: LatentSamples { count: 9, seed: 2 },
                ..WholeImageConfig::default()
            };
            let drawn = predict(trainer.model(), &image, &config, never_stop).unwrap();
            (losses, Tensor::from_slice(&drawn.distribution.mean().to_f32()), drawn.samples.unwrap())
        };
        // Labels are compared after steps so short that rounding does not grow from one to the next. In bfloat16 rounding
        // changes a large divergence by up to a fifth: there it hardly counts.
        for (precision, most, of_maps, rate, kl_weight, is_short) in [
            (Precision::F32, 5e-3, 0.02, rate, 1.0, false),
            (Precision::F32, 5e-3, 0.02, 0.01 * rate, 1.0, true),
            (Precision::Bf16, 2e-2, 0.2, 0.01 * rate, 1e-4, true),
        ] {
            let head = head(kl_weight);
            let host = run(Device::Cpu, Precision::F32, rate, kl_weight);
            let (losses, mean, labels) = run(GPU, precision, rate, kl_weight);
            let close = |(found, expected): (&f64, &f64)| (found / expected - 1.0).abs() < most;
            assert!(losses.iter().zip(&host.0).all(close), "{head:?}: {losses:?} and {:?}", host.0);
            assert_close(&format!("{head:?}"), &mean.exp(), &host.1.exp(), of_maps);
            // In bfloat16, rounding decides about voxels that lie between two classes.
            let differing = labels.iter().zip(&host.2).filter(|(a, b)| a != b).count();
            let most = if precision == Precision::F32 { 0 } else { labels.len() / 100 };
            assert!(
                !is_short || differing <= most,
                "{head:?} {precision:?}: {differing} of {}",
                labels.len()
            );
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn batches_may_change_their_form_between_steps() {
    let _alone = gpu();
    let run = |device| {
        let mut trainer = trainer(device, Precision::F32, 2);
        let mut losses = vec![];
        for k in 0..16 {
            trainer.begin(&batch(k, k % 6 > 2)).unwrap();
            trainer.stage(&batch(k + 1, (k + 1) % 6 > 2)).unwrap();
            losses.push(trainer.finish().unwrap().loss);
        }
        losses
    };
    for (k, (found, expected)) in run(GPU).into_iter().zip(run(Device::Cpu)).enumerate() {
        assert!((found / expected - 1.0).abs() < 0.03, "step {k}: {found} of {expected}");
    }
}
