//! Samples of a network with latent variables. The image is computed in one piece: parts would draw by themselves, and
//! samples would have seams.

use ssn_core::LowRankNormal;
use ssn_core::Window;
use ssn_core::random::fill_normals;
use ssn_nn::error::{Result, require};
use tch::{Device, Kind, Tensor};

use super::WholeImageConfig;
use super::image::{ImageTensors, InputImage, bad_output};
use ssn_nn::heads::LatentModel;
use ssn_nn::model::Model;

/// The smallest mean probability that is reported.
const LEAST_PROBABILITY: f64 = 1e-30;

/// Draws the samples of an image: the logarithm of their mean probabilities, and their label maps `[m, v]`. `sample_done`
/// gets the number of samples done, and of all.
pub(super) fn sample(
    model: &Model,
    latent: &LatentModel,
    image: &InputImage,
    config: &WholeImageConfig,
    mut sample_done: impl FnMut(usize, usize) -> Result<()>,
) -> Result<(LowRankNormal, Vec<u8>)> {
    let (count, seed) = (config.latent_samples.count, config.latent_samples.seed);
    require(count > 0, "samples", count, "at least 1")?;
    let (device, classes) = (model.execution().device, model.config().classes);
    // Beyond the image its border is repeated until the network can have it.
    let input = model.config().backbone.input_size(image.size.map(|n| n as i64))?;
    let window = Window { start: [0; 3], size: input.map(|n| n as usize) };
    let [d, h, w] = input;
    let values = ImageTensors::new(image, device)?.window(window)?.f_unsqueeze(0)?;
    let values = values.f_to_kind(model.execution().precision.master())?;
    let decoder = latent.decoder(&values, model.execution().layout())?;

    let region = image.region;
    let voxels = region.voxels();
    let numbers = latent.noise_count(input) as usize;
    let at_once = (config.tiles.voxels_at_once / window.size.iter().product::<usize>().max(1)).max(1);
    let mut sums = Tensor::f_zeros([classes, voxels as i64], (Kind::Double, device))?;
    let mut labels = vec![0u8; count * voxels];
    for start in (0..count).step_by(at_once) {
        sample_done(start, count)?;
        let samples = at_once.min(count - start);
        let mut noise = vec![0f32; samples * numbers];
        for (i, part) in noise.chunks_exact_mut(numbers).enumerate() {
            fill_normals(seed, 0, (start + i) as u64, part);
        }
        let noise = Tensor::f_from_slice(&noise)?.f_view([samples as i64, -1])?;
        let mut logits = decoder(&noise.f_to_device(device)?)?.f_view([-1, classes, d, h, w])?;
        for axis in 0..3 {
            let (from, length) = (region.start[axis] as i64, region.size[axis] as i64);
            logits = logits.f_narrow(axis as i64 + 2, from, length)?;
        }
        let logits = logits.f_reshape([samples as i64, classes, voxels as i64])?;
        let probabilities = logits.f_softmax(1, Kind::Double)?;
        sums = sums.f_add(&probabilities.f_sum_dim_intlist([0i64].as_slice(), false, Kind::Double)?)?;
        let maps =
            logits.f_argmax(1, false)?.f_to_kind(Kind::Uint8)?.f_to_device(Device::Cpu)?.f_contiguous()?;
        maps.f_copy_data(&mut labels[start * voxels..][..samples * voxels], samples * voxels)?;
    }
    sample_done(count, count)?;
    let mean = (sums / count as f64).f_clamp_min(LEAST_PROBABILITY)?.f_log()?;
    let mean = mean.f_to_kind(Kind::Float)?.f_to_device(Device::Cpu)?.f_contiguous()?;
    let mut values = vec![0f32; mean.numel()];
    mean.f_copy_data(&mut values, mean.numel())?;
    match values.iter().position(|value| !value.is_finite()) {
        None => {
            let diagonal = vec![0f32; values.len()];
            let mean = LowRankNormal::new(classes as usize, voxels, 0, values, diagonal, vec![0f32; 0])?;
            Ok((mean, labels))
        }
        Some(at) => {
            let (class, voxel) = (at / voxels, region.voxel(at % voxels));
            let (value, rule) = (values[at], "be finite");
            Err(bad_output("mean", class, voxel, value, rule))
        }
    }
}
