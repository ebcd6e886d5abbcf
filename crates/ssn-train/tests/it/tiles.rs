//! Whole images by tiles: one distribution, wherever the tiles lie.

use std::path::Path;

use std::ops::ControlFlow;

use ssn_core::LowRankNormal;
use ssn_core::distribution::Values;
use ssn_eval::Region;
use ssn_io::ErrorKind;
use ssn_nn::backbones::{BackboneConfig, DeepMedicConfig, DeepMedicOutput, TorchScriptConfig};
use ssn_nn::layers::NormKind;
use ssn_nn::{Execution, HeadConfig, Mode, Model, ModelConfig, Precision, Prediction, StochasticConfig};
use ssn_train::inference::tiles::TileConfig;
use ssn_train::inference::{
    InputImage, Storage, WholeImageConfig, WholeImagePrediction, never_stop, predict,
};
use tch::{Device, Kind, Tensor};

use crate::common::{begin_at_seed, small_unet};

const CLASSES: usize = 3;
const EPSILON: f32 = 1e-5;

fn model(backbone: BackboneConfig, precision: Precision) -> Model {
    // For maps of a few hundred voxels, threads wait longer than they work.
    tch::set_num_threads(1);
    let head = HeadConfig::Stochastic(StochasticConfig { rank: 2, ..StochasticConfig::default() });
    let config = ModelConfig { channels: 2, classes: CLASSES as i64, backbone, head };
    Model::new(&config, Execution::cpu(precision), 4).unwrap()
}

/// Scales 3, 2 and 1: outputs are the same only 6 voxels apart.
fn deepmedic() -> BackboneConfig {
    BackboneConfig::Deepmedic(DeepMedicConfig {
        scales: vec![[3; 3], [2; 3], [1; 3]],
        feature_maps: vec![3, 3],
        kernel: [3; 3],
        fully_connected: vec![5],
        dropout: vec![0.0; 2],
        output: DeepMedicOutput::Features(4),
    })
}

fn flat_deepmedic() -> BackboneConfig {
    let BackboneConfig::Deepmedic(deep) = deepmedic() else { unreachable!() };
    let scales = vec![[1, 5, 3], [1, 1, 2], [1; 3]];
    BackboneConfig::Deepmedic(DeepMedicConfig { scales, kernel: [1, 3, 3], ..deep })
}

fn unet(patch: [i64; 3]) -> BackboneConfig {
    BackboneConfig::Unet(small_unet(patch, NormKind::BATCH))
}

/// Two channels of noise.
fn noise(size: [usize; 3]) -> Vec<f32> {
    let _alone = begin_at_seed(8);
    let n = 2 * size.iter().product::<usize>();
    Vec::try_from(Tensor::randn([n as i64], (Kind::Float, Device::Cpu))).unwrap()
}

fn settings(tile: Option<[usize; 3]>, voxels_at_once: usize) -> WholeImageConfig {
    let tiles = TileConfig { tile, voxels_at_once, ..TileConfig::default() };
    WholeImageConfig { tiles, factor: Storage::F32, ..WholeImageConfig::default() }
}

fn tiled(tile: [usize; 3]) -> WholeImageConfig {
    settings(Some(tile), 1)
}

fn run(
    model: &Model,
    values: &[f32],
    size: [usize; 3],
    mask: Option<&[u8]>,
    config: WholeImageConfig,
) -> WholeImagePrediction {
    let image = InputImage::new(values, 2, size, mask).unwrap();
    predict(model, &image, &config, never_stop).unwrap()
}

/// One forward pass over the whole image, with its border repeated up to an output of a multiple of `unit`.
fn at_once(model: &Model, values: &[f32], size: [usize; 3], unit: [i64; 3]) -> LowRankNormal {
    let size = size.map(|n| n as i64);
    let output = [0, 1, 2].map(|axis| (size[axis] + unit[axis] - 1) / unit[axis] * unit[axis]);
    let input = model.config().backbone.input_size(output).unwrap();
    let mut image = Tensor::from_slice(values).view([1, 2, size[0], size[1], size[2]]);
    for axis in 0..3 {
        let margin = (input[axis] - output[axis]) / 2;
        let places = Tensor::arange(input[axis], (Kind::Int64, Device::Cpu)) - margin;
        image = image.index_select(axis as i64 + 2, &places.clamp(0, size[axis] - 1));
    }
    let prediction = tch::no_grad(|| model.forward(&image, None, Mode::Evaluation)).unwrap();
    let Prediction::Stochastic(d) = prediction else { unreachable!() };
    let [mean, diagonal, factor] = d.parts().map(|part| {
        let mut shape = part.size();
        shape.pop();
        let mut grid = shape.clone();
        grid.extend(output);
        let mut part = part.view(grid.as_slice());
        for axis in 0..3 {
            part = part.narrow(axis - 3, 0, size[axis as usize]);
        }
        shape.push(-1);
        part.reshape(shape)
    });
    ssn_nn::LowRankNormalTensors::new(mean, diagonal, factor).unwrap().to_host(0).unwrap()
}

fn parts(d: &LowRankNormal) -> [(&'static str, &Values); 3] {
    [("mean", d.mean()), ("diagonal", d.diagonal()), ("factor", d.factor())]
}

fn assert_close(a: &LowRankNormal, b: &LowRankNormal, tolerance: f32) {
    for ((name, a), (_, b)) in parts(a).into_iter().zip(parts(b)) {
        let (a, b) = (a.to_f32(), b.to_f32());
        assert_eq!(a.len(), b.len(), "{name}");
        let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst <= tolerance, "{name} differs by {worst}");
    }
}

/// The rows `[v]` of a region from rows of a whole image.
fn part_of(values: &Values, size: [usize; 3], region: Region) -> Vec<f32> {
    let rows = values.len() / size.iter().product::<usize>();
    let mut out = vec![];
    for row in 0..rows {
        for z in region.start[0]..region.start[0] + region.size[0] {
            for y in region.start[1]..region.start[1] + region.size[1] {
                for x in region.start[2]..region.start[2] + region.size[2] {
                    out.push(values.get(((row * size[0] + z) * size[1] + y) * size[2] + x));
                }
            }
        }
    }
    out
}

#[test]
fn deepmedic_by_tiles_is_deepmedic_at_once() {
    let deep = [([13, 17, 19], [6, 12, 6]), ([7, 25, 12], [12, 6, 7]), ([20, 5, 31], [6, 6, 18])];
    let flat = [([1, 37, 41], [1, 15, 12]), ([1, 16, 7], [1, 5, 6]), ([1, 29, 50], [1, 10, 18])];
    for precision in [Precision::F32, Precision::F64] {
        let networks = [(deepmedic(), [6; 3], deep), (flat_deepmedic(), [1, 5, 6], flat)];
        for (backbone, unit, cases) in networks {
            let model = model(backbone, precision);
            for (size, tile) in cases {
                let values = noise(size);
                let whole = run(&model, &values, size, None, tiled(tile));
                assert_eq!((whole.size, whole.region), (size, Region { start: [0; 3], size }));
                assert_eq!(whole.kind, ssn_eval::PredictionKind::Stochastic);
                assert_close(&whole.distribution, &at_once(&model, &values, size, unit), 1e-5);
            }
        }
    }
}

#[test]
fn the_size_and_number_of_tiles_do_not_matter() {
    let (size, model) = ([13, 17, 19], model(deepmedic(), Precision::F64));
    let values = noise(size);
    let one = run(&model, &values, size, None, settings(None, usize::MAX));
    for config in [tiled([1, 7, 13]), settings(None, 500), settings(Some([6; 3]), 5 * 216)] {
        let other = run(&model, &values, size, None, config);
        assert_close(&one.distribution, &other.distribution, 1e-6);
    }
}

#[test]
fn voxels_of_different_tiles_covary_as_if_there_were_none() {
    let (size, model) = ([1, 20, 24], model(flat_deepmedic(), Precision::F64));
    let values = noise(size);
    let stitched = run(&model, &values, size, None, tiled([1, 10, 12])).distribution;
    let whole = at_once(&model, &values, size, [1, 5, 6]);
    let logit = |class: usize, y: usize, x: usize| class * 480 + y * 24 + x;
    // On both sides of the border between tiles at x = 12, and across the corner where four meet.
    for (a, b) in [(logit(0, 4, 11), logit(0, 4, 12)), (logit(1, 9, 11), logit(2, 10, 12))] {
        let (ours, theirs) = (stitched.covariance(a, b), whole.covariance(a, b));
        assert!((ours - theirs).abs() < 1e-6 && theirs.abs() > 1e-3, "{ours} and {theirs}");
    }
}

#[test]
fn a_unet_takes_images_of_any_size() {
    for (patch, size) in [([1, 32, 32], [1, 37, 45]), ([8, 16, 16], [5, 18, 33])] {
        let backbone = unet(patch);
        let BackboneConfig::Unet(config) = &backbone else { unreachable!() };
        let unit = config.total_stride();
        assert!((0..3).any(|axis| size[axis] as i64 % unit[axis] != 0));
        let (model, values) = (model(backbone, Precision::F32), noise(size));
        let whole = run(&model, &values, size, None, WholeImageConfig::default());
        assert_close(&whole.distribution, &at_once(&model, &values, size, unit), 1e-5);
    }
}

#[test]
fn overlapping_tiles_are_weighted_means() {
    let (size, model) = ([1, 16, 24], model(unet([1, 16, 16]), Precision::F64));
    let values = noise(size);
    let blended = run(&model, &values, size, None, tiled([1, 16, 16])).distribution;
    // Two tiles, from 0 and from 8, alone.
    let [left, right] = [0, 8].map(|from| {
        let part: Vec<f32> =
            values.chunks_exact(24).flat_map(|row| row[from..from + 16].iter().copied()).collect();
        at_once(&model, &part, [1, 16, 16], [1, 16, 16])
    });
    let sides = parts(&left).into_iter().zip(parts(&right));
    for ((name, blended), ((_, left), (_, right))) in parts(&blended).into_iter().zip(sides) {
        for i in 0..blended.len() {
            let (line, x) = (i / 24, i % 24);
            let expected = match x {
                0..8 => left.get(line * 16 + x),
                8..16 => {
                    // Tents of 16 voxels: the left one is 16 − x at x, the right one x − 7.
                    let share = (x as f32 - 7.0) / 9.0;
                    left.get(line * 16 + x) * (1.0 - share) + right.get(line * 16 + x - 8) * share
                }
                _ => right.get(line * 16 + x - 8),
            };
            assert!((blended.get(i) - expected).abs() < 1e-5, "{name}[{i}]");
        }
    }
}

#[test]
fn a_network_that_says_the_same_everywhere_still_does_in_tiles() {
    let (size, model) = ([9, 20, 30], model(unet([8, 16, 16]), Precision::F32));
    let mut expected = vec![];
    tch::no_grad(|| {
        for name in ["mean", "log_diagonal", "factor"] {
            let _ = model.parameters().get(&format!("head.{name}.weight")).unwrap().shallow_clone().zero_();
            let mut bias = model.parameters().get(&format!("head.{name}.bias")).unwrap().shallow_clone();
            let values = Tensor::arange(bias.size()[0], (Kind::Float, Device::Cpu)) * 0.5 - 1.0;
            bias.copy_(&values);
            let values = if name == "log_diagonal" { values.exp() + f64::from(EPSILON) } else { values };
            expected.push(Vec::<f32>::try_from(values).unwrap());
        }
    });
    let whole = run(&model, &noise(size), size, None, tiled([8, 16, 16])).distribution;
    for ((name, values), expected) in parts(&whole).into_iter().zip(expected) {
        for (row, values) in values.to_f32().chunks_exact(9 * 20 * 30).enumerate() {
            assert!(values.iter().all(|value| (value - expected[row]).abs() < 1e-5), "{name} {row}");
        }
    }
}

#[test]
fn how_many_tiles_go_together_does_not_matter() {
    let (size, model) = ([1, 50, 70], model(unet([1, 16, 16]), Precision::F64));
    let values = noise(size);
    let one = run(&model, &values, size, None, tiled([1, 16, 16]));
    for together in [3, 7, 1000] {
        let other = run(&model, &values, size, None, settings(Some([1, 16, 16]), together * 256));
        assert_close(&one.distribution, &other.distribution, 1e-6);
    }
}

#[test]
fn a_mask_gives_its_box_and_no_spread_outside_itself() {
    for (backbone, tile) in [(deepmedic(), [6; 3]), (unet([8, 16, 16]), [8, 16, 16])] {
        let (size, model) = ([14, 19, 21], model(backbone, Precision::F64));
        let region = Region { start: [3, 7, 2], size: [7, 9, 8] };
        let [_, h, w] = size;
        let mut mask = vec![0; 14 * h * w];
        for z in 0..7 {
            for y in 0..9 {
                // A wedge that touches every side of the box.
                for x in 0..8 - y.min(z) {
                    mask[((3 + z) * h + 7 + y) * w + 2 + x] = 1;
                }
            }
        }
        let values = noise(size);
        let full = run(&model, &values, size, None, tiled(tile)).distribution;
        let found = run(&model, &values, size, Some(&mask), tiled(tile));
        assert_eq!((found.size, found.region), (size, region));
        let inside = part_of(&Values::F32(mask.iter().map(|&m| f32::from(m)).collect()), size, region);
        let [mean, diagonal, factor] = parts(&full).map(|(_, values)| part_of(values, size, region));
        let v = region.voxels();
        assert!(inside.contains(&0.0) && inside.len() == v);
        for (i, mean) in mean.iter().enumerate() {
            assert!((found.distribution.mean().get(i) - mean).abs() < 1e-6);
            let expected = diagonal[i] * inside[i % v] + EPSILON;
            assert!((found.distribution.diagonal().get(i) - expected).abs() < 1e-6);
        }
        for (i, factor) in factor.iter().enumerate() {
            assert!((found.distribution.factor().get(i) - factor * inside[i % v]).abs() < 1e-6);
        }
    }
}

#[test]
fn half_precision_of_the_factor_rounds_it_only() {
    let (size, model) = ([1, 40, 40], model(unet([1, 16, 16]), Precision::F32));
    let values = noise(size);
    let single = run(&model, &values, size, None, tiled([1, 16, 16])).distribution;
    let config = WholeImageConfig { factor: Storage::F16, ..tiled([1, 16, 16]) };
    let half = run(&model, &values, size, None, config).distribution;
    assert_eq!((single.mean(), single.diagonal()), (half.mean(), half.diagonal()));
    assert!(matches!(half.factor(), Values::F16(_)));
    // Up to 9 tiles meet at a voxel; each sum is rounded to 11 bits of the largest.
    let largest = single.factor().to_f32().iter().fold(0f32, |most, value| most.max(value.abs()));
    assert_close(&single, &half, 9.0 * largest / 2048.0);
}

#[test]
fn networks_without_a_distribution_give_their_logits() {
    let (size, values) = ([1, 12, 23], noise([1, 12, 23]));
    for (head, classes) in [(HeadConfig::Deterministic, 3), (HeadConfig::Identity, 4)] {
        let config = ModelConfig { channels: 2, classes, backbone: flat_deepmedic(), head };
        let model = Model::new(&config, Execution::cpu(Precision::F32), 4).unwrap();
        let whole = run(&model, &values, size, None, tiled([1, 5, 6]));
        let one = run(&model, &values, size, None, settings(None, usize::MAX));
        assert_eq!(whole.kind, ssn_eval::PredictionKind::Deterministic);
        assert_eq!((whole.distribution.classes(), whole.distribution.rank()), (classes as usize, 0));
        assert!(whole.distribution.diagonal().to_f32().iter().all(|&value| value == 0.0));
        assert!(whole.distribution.mean().to_f32().iter().any(|&value| value != 0.0));
        assert_close(&whole.distribution, &one.distribution, 1e-5);
    }
}

#[test]
fn foreign_networks_are_tiled_like_padded_ones() {
    let torchscript = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ssn-nn/tests/golden/backbone.pt");
    let config = ModelConfig {
        channels: 1,
        classes: 2,
        backbone: BackboneConfig::Torchscript(TorchScriptConfig { torchscript, features: 6 }),
        head: HeadConfig::Stochastic(StochasticConfig { rank: 2, ..StochasticConfig::default() }),
    };
    let model = Model::new(&config, Execution::cpu(Precision::F32), 0).unwrap();
    let (size, values) = ([1, 26, 44], noise([1, 26, 44]));
    let image = InputImage::new(&values[..26 * 44], 1, size, None).unwrap();
    let predict = |config| predict(&model, &image, &config, never_stop).unwrap().distribution;
    let (whole, tiles) = (predict(WholeImageConfig::default()), predict(tiled([1, 16, 16])));
    // One tile alone covers the corner of the image, whose features do not reach the tile's other end.
    assert!((whole.mean().get(0) - tiles.mean().get(0)).abs() < 1e-5);
    assert_ne!(whole.mean(), tiles.mean());
}

#[test]
fn tiles_are_counted_and_work_stops_between_them() {
    let (size, model) = ([1, 50, 70], model(unet([1, 16, 16]), Precision::F32));
    let values = noise(size);
    let image = InputImage::new(&values, 2, size, None).unwrap();
    let mut seen = vec![];
    let config = settings(Some([1, 16, 16]), 16 * 256);
    let all = |done, total| {
        seen.push((done, total));
        ControlFlow::Continue(())
    };
    predict(&model, &image, &config, all).unwrap();
    // 6 × 8 tiles, 16 at once.
    assert_eq!(seen, [(0, 48), (16, 48), (32, 48), (48, 48)]);
    let mut seen = vec![];
    let until_second = |done, _| {
        seen.push(done);
        if done < 16 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let stopped = predict(&model, &image, &config, until_second).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Stopped, "{stopped}");
    assert_eq!(seen, [0, 16]);
}

#[test]
fn what_cannot_be_predicted_is_named() {
    let (size, model) = ([1, 12, 13], model(flat_deepmedic(), Precision::F32));
    let values = noise([3, 12, 13]);
    let message = |channels: usize, config: WholeImageConfig| {
        let image = InputImage::new(&values[..channels * 156], channels, size, None).unwrap();
        predict(&model, &image, &config, never_stop).unwrap_err().to_string()
    };
    assert_eq!(
        message(3, WholeImageConfig::default()),
        "the image has 3 channels, but the network was made for 2"
    );
    assert_eq!(message(2, tiled([1, 5, 0])), "tile is [1, 5, 0], but it must be at least 1 along every axis");
    for name in ["factor", "mean"] {
        let bias = model.parameters().get(&format!("head.{name}.bias")).unwrap();
        let _ = tch::no_grad(|| bias.get(1).fill_(f64::INFINITY));
        let message = message(2, tiled([1, 5, 6]));
        let start = format!(
            "the network's {name} is inf for class 1 at voxel [0, 0, 0] (d, h, w), but must be within ± 1e20"
        );
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn infinite_variances_are_as_large_as_files_hold() {
    let model = model(flat_deepmedic(), Precision::F32);
    let bias = model.parameters().get("head.log_diagonal.bias").unwrap();
    let _ = tch::no_grad(|| bias.get(1).fill_(f64::INFINITY));
    let values = noise([3, 12, 13]);
    let image = InputImage::new(&values[..312], 2, [1, 12, 13], None).unwrap();
    let found = predict(&model, &image, &WholeImageConfig::default(), never_stop).unwrap();
    let diagonal = found.distribution.diagonal();
    assert!((156..312).all(|place| diagonal.get(place) == ssn_core::MAX_PARAMETER));
    assert!((0..156).all(|place| diagonal.get(place) < 1e9));
}
