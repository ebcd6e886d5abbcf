//! Operators with gradients that do in one pass over memory what libtorch does in several.
//!
//! Feature maps are `[b, c, d, h, w]` with channels fastest in memory and a multiple of eight of them; those beyond the
//! real ones hold zeros.

use tch::Tensor;

use crate::error::Result;
use crate::library::{call, call_for_tensor, pointer};
use crate::options::{DrawOptions, NormOptions, PathOptions};

/// The tensors of a normalization, each `[c]` in single precision where nothing else is said.
#[derive(Debug, Clone, Copy)]
pub struct NormTensors<'a> {
    /// The slope of each channel.
    pub weight: &'a Tensor,
    /// The offset of each channel.
    pub bias: &'a Tensor,
    /// PReLU's slope, `[1]`.
    pub prelu: Option<&'a Tensor>,
    /// Running mean and variance, which training changes.
    pub running: Option<[&'a Tensor; 2]>,
    /// The seed of the step's dropout, `[1]` of int64 on the device: read when the work is done, not when it is recorded.
    /// Dropout needs it.
    pub seed: Option<&'a Tensor>,
}

impl NormTensors<'_> {
    fn pointers(&self) -> [*const torch_sys::C_tensor; 6] {
        let [mean, variance] = self.running.map_or([None; 2], |running| running.map(Some));
        [Some(self.weight), Some(self.bias), self.prelu, mean, variance, self.seed].map(pointer)
    }
}

/// activation(dropout(norm(x))).
///
/// # Shapes
/// `[b, c, d, h, w]`, unchanged.
pub fn normalize(x: &Tensor, tensors: &NormTensors, options: &NormOptions) -> Result<Tensor> {
    let pointers = tensors.pointers();
    // SAFETY: six pointers to tensors or nothing, and options of the same layout.
    call_for_tensor(|library, out| unsafe {
        (library.ssn_normalize)(pointer(Some(x)), pointers.as_ptr(), options, out)
    })
}

/// Convolution whose weight gradient may run beside other work; see [`with_side_streams`](crate::with_side_streams).
///
/// # Shapes
/// `x` `[b, c, d, h, w]`, `kernel` `[o, c, kd, kh, kw]` → `[b, o, d', h', w']`.
pub fn convolution(x: &Tensor, kernel: &Tensor, padding: [i64; 3]) -> Result<Tensor> {
    // SAFETY: two tensors and three numbers.
    call_for_tensor(|library, out| unsafe {
        (library.ssn_convolution)(pointer(Some(x)), pointer(Some(kernel)), padding.as_ptr(), out)
    })
}

/// convolution(activation(dropout(norm(x)))) without padding, and, if `residual`, plus the middle of x. In training.
///
/// # Shapes
/// `x` `[b, c, d, h, w]`, `kernel` `[o, c, kd, kh, kw]` with channels fastest → `[b, o, d', h', w']`.
pub fn normalized_convolution(
    x: &Tensor,
    tensors: &NormTensors,
    options: &NormOptions,
    kernel: &Tensor,
    residual: bool,
) -> Result<Tensor> {
    let pointers = tensors.pointers();
    // SAFETY: as in `normalize`.
    call_for_tensor(|library, out| unsafe {
        let residual = residual.into();
        (library.ssn_normalized_convolution)(
            pointer(Some(x)),
            pointers.as_ptr(),
            pointer(Some(kernel)),
            options,
            residual,
            out,
        )
    })
}

/// Average pooling by `stride`, and the map itself for the skip connection, whose gradients are added in one pass.
///
/// # Shapes
/// `[b, c, d, h, w]` → `[b, c, d/sd, h/sh, w/sw]` and `[b, c, d, h, w]`.
pub fn downsample(x: &Tensor, stride: [i64; 3]) -> Result<[Tensor; 2]> {
    let (mut pooled, mut same) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: a tensor, three numbers, and places for two results.
    call(|library| unsafe {
        (library.ssn_downsample)(pointer(Some(x)), stride.as_ptr(), &mut pooled, &mut same)
    })?;
    // SAFETY: without a message both tensors are made, and ours.
    unsafe { Ok([Tensor::from_ptr(pooled), Tensor::from_ptr(same)]) }
}

/// A map interpolated linearly by `stride`, 1 or 2 along each axis, and beside it the map of that grid.
///
/// # Shapes
/// `x` `[b, c, d, h, w]` without padded channels, `skip` `[b, s, d·sd, h·sh, w·sw]` → `[b, c + s, d·sd, h·sh, w·sw]`.
pub fn upsample(x: &Tensor, skip: &Tensor, stride: [i64; 3]) -> Result<Tensor> {
    // SAFETY: two tensors and three numbers.
    call_for_tensor(|library, out| unsafe {
        (library.ssn_upsample)(pointer(Some(x)), pointer(Some(skip)), stride.as_ptr(), out)
    })
}

/// Linear maps of the features at every voxel, in single precision: up to three results, of so many rows each.
///
/// # Shapes
/// `features` `[b, f', d, h, w]` with padded channels, `weight` `[k, f]`, `bias` `[k]` → `[b, rowsᵢ, d·h·w]`.
pub fn linear(features: &Tensor, weight: &Tensor, bias: &Tensor, rows: &[i64]) -> Result<Vec<Tensor>> {
    let mut results = vec![std::ptr::null_mut(); rows.len()];
    let [features, weight, bias] = [features, weight, bias].map(|tensor| pointer(Some(tensor)));
    // SAFETY: three tensors, and as many places as rows.
    call(|library| unsafe {
        (library.ssn_head)(features, weight, bias, rows.as_ptr(), rows.len() as i64, results.as_mut_ptr())
    })?;
    // SAFETY: without a message all tensors are made, and ours.
    Ok(results.into_iter().map(|result| unsafe { Tensor::from_ptr(result) }).collect())
}

/// Whether [`linear`] takes a weight of so many rows for so many padded features: a block of threads holds 4 × 4 products
/// each of its gradient, and its memory some voxels of both sides.
pub fn is_linear_possible(rows: i64, padded_features: i64) -> bool {
    const THREADS: i64 = 256;
    const MOST_NUMBERS: i64 = 176;
    let rows = (rows + 3) / 4 * 4;
    (rows / 4) * (padded_features / 4) <= THREADS && rows + padded_features <= MOST_NUMBERS
}

/// Maps of several scales side by side: each enlarged by repetition, cut, and its real channels put after those before.
///
/// # Shapes
/// Maps `[b, cᵢ, …]` → `[b, Σ cᵢ rounded up to a multiple of eight, size]`.
pub fn join(paths: &[(&Tensor, PathOptions)], size: [i64; 3]) -> Result<Tensor> {
    let (maps, options): (Vec<_>, Vec<_>) =
        paths.iter().map(|&(map, options)| (pointer(Some(map)), options)).unzip();
    // SAFETY: as many maps as options, and three sizes.
    call_for_tensor(|library, out| unsafe {
        (library.ssn_join)(maps.as_ptr(), options.as_ptr(), maps.len() as i64, size.as_ptr(), out)
    })
}

/// The Monte-Carlo loss with the noise of a seed, whose samples are never in memory. `exponent` is that of the likelihoods
/// whose mean is taken.
///
/// # Shapes
/// `mean` and `diagonal` `[b, c, v]`, `factor` `[b, r, c, v]`, all but the batch dense; `target` `[b, t, v]` of int64,
/// `seed` `[1]` of int64 on the device. Gives the loss, `[b]` in double precision, and the effective sample size, `[b, t]`.
pub fn monte_carlo(
    distribution: [&Tensor; 3],
    target: &Tensor,
    seed: &Tensor,
    options: DrawOptions,
    exponent: f64,
) -> Result<[Tensor; 2]> {
    let (mut loss, mut ess) = (std::ptr::null_mut(), std::ptr::null_mut());
    let parts = distribution.map(|tensor| pointer(Some(tensor)));
    let [target, seed] = [target, seed].map(|tensor| pointer(Some(tensor)));
    // SAFETY: three tensors and two more, options of the same layout, and places for two results.
    call(|library| unsafe {
        (library.ssn_monte_carlo)(parts.as_ptr(), target, seed, &options, exponent, &mut loss, &mut ess)
    })?;
    // SAFETY: without a message both tensors are made, and ours.
    unsafe { Ok([Tensor::from_ptr(loss), Tensor::from_ptr(ess)]) }
}

/// The probabilities of the foreground classes in every sample, and the target maps, cut into tiles of 512 voxels; those
/// beyond the end are 0.
///
/// # Shapes
/// As for [`monte_carlo`] → `[b, c − 1, tiles, samples + t, 512]`.
pub fn soft_maps(
    distribution: [&Tensor; 3],
    target: &Tensor,
    seed: &Tensor,
    options: DrawOptions,
) -> Result<Tensor> {
    let parts = distribution.map(|tensor| pointer(Some(tensor)));
    let [target, seed] = [target, seed].map(|tensor| pointer(Some(tensor)));
    // SAFETY: three tensors and two more, and options of the same layout.
    call_for_tensor(|library, out| unsafe {
        (library.ssn_soft_maps)(parts.as_ptr(), target, seed, &options, out)
    })
}
