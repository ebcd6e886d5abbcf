//! The memory of the Monte-Carlo loss does not grow with the number of samples, that of a whole image only by its result.

use ssn_nn::backbones::BackboneConfig;
use ssn_nn::layers::NormKind;
use ssn_nn::loss::chunked_loss;
use ssn_nn::{
    Execution, LowRankNormalTensors, Model, ModelConfig, NoiseSource, Pairing, Precision, StepNoise, Target,
};
use ssn_testing::process::{peak_memory, run_alone};
use ssn_train::inference::tiles::TileConfig;
use ssn_train::inference::{InputImage, Storage, WholeImageConfig, never_stop, predict};
use tch::{Device, Kind, Tensor};

use crate::common::small_unet;

/// The most memory that this process ever had, in MiB.
fn peak() -> u64 {
    peak_memory() / 1024
}

#[test]
fn memory_does_not_grow_with_the_samples() {
    run_alone("memory::memory_does_not_grow_with_the_samples", || {
        let v = 200_000;
        let randn = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu)).set_requires_grad(true);
        let d = LowRankNormalTensors::new(
            randn(&[1, 2, v]),
            Tensor::ones([1, 2, v], (Kind::Float, Device::Cpu)).set_requires_grad(true),
            randn(&[1, 2, 2, v]),
        )
        .unwrap();
        let target = Target::classes(Tensor::randint(2, [1, 1, v], (Kind::Int64, Device::Cpu)), 2).unwrap();
        let run = |samples| {
            let noise = StepNoise::new(1, 1, d.noise_shape(samples), Pairing::Independent).unwrap();
            let loss = chunked_loss(&d, &target, NoiseSource::Step(&noise), 1.0, 4).unwrap().loss;
            loss.mean(Kind::Double).backward();
            peak()
        };
        // The first runs load kernels and let the allocator find its size. 320 samples would be 512 MB of logits.
        let (few, many, most) = (run(20), run(80), run(320));
        eprintln!("{few} MiB with 20 samples, {many} MiB with 80, {most} MiB with 320");
        assert!(most <= many + 40, "{few} MiB with 20 samples, {many} MiB with 80, {most} MiB with 320");
    });
}

#[test]
fn a_larger_image_needs_memory_for_its_distribution_only() {
    run_alone("memory::a_larger_image_needs_memory_for_its_distribution_only", || {
        let backbone = small_unet([1, 64, 64], NormKind::BATCH);
        let config = ModelConfig { backbone: BackboneConfig::Unet(backbone), ..ModelConfig::lidc() };
        let model = Model::new(&config, Execution::cpu(Precision::F32), 0).unwrap();
        let tiles = TileConfig {
            tile: Some([1, 128, 128]),
            voxels_at_once: 1 << 16,
            overlap: 0.1,
            ..TileConfig::default()
        };
        let run = |n: usize| {
            let values = vec![0.5; n * n];
            let image = InputImage::new(&values, 1, [1, n, n], None).unwrap();
            predict(
                &model,
                &image,
                &WholeImageConfig { tiles, factor: Storage::F16, ..WholeImageConfig::default() },
                never_stop,
            )
            .unwrap();
            peak()
        };
        let (small, large) = (run(256), run(1024));
        // Of each voxel: its value, 4 numbers in single and 20 in half precision. At once it would be 300 MiB more.
        let result = (1024 * 1024 * (4 + 4 * 4 + 20 * 2)) >> 20;
        eprintln!("{small} MiB for 256², {large} MiB for 1024², whose result has {result} MiB");
        assert!(large <= small + result + 20, "{small} MiB for 256², {large} MiB for 1024²");
    });
}
