//! The operators that know about space. Images are `[b, c, d, h, w]`; this file alone maps depth 1 to the 2D
//! kernels, so that nothing else in the project is written twice.

use ssn_core::Lattice;
use tch::{Device, Kind, Tensor};

use crate::error::{NnError, Result};

/// Sizes, strides or offsets along `d`, `h` and `w`.
pub type Size = [i64; 3];

/// The precision and memory format of a backbone's feature maps, whose channels run fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureLayout {
    /// The precision.
    pub kind: Kind,
    /// Whether channels of zeros are added up to a multiple of eight, as the GPU's kernels need it.
    pub padded: bool,
}

impl FeatureLayout {
    /// An image in this layout.
    ///
    /// # Shapes
    /// `[b, c, d, h, w]` → `[b, c', d, h, w]`.
    pub fn apply(self, image: &Tensor) -> Result<Tensor> {
        if self.padded {
            let &[b, c, d, h, w] = image.size().as_slice() else { return Err(not_an_image(image)) };
            let options = (self.kind, image.device());
            let room =
                Tensor::f_zeros([b, d, h, w, ssn_cuda::padded(c)], options)?.f_permute([0, 4, 1, 2, 3])?;
            room.f_narrow(1, 0, c)?.f_copy_(image)?;
            return Ok(room);
        }
        channels_last(&image.f_to_kind(self.kind)?)
    }
}

/// A tensor in a memory layout, with its gradient; see [`FeatureLayout::apply`] for images.
///
/// # Shapes
/// `[b, c, d, h, w]` → `[b, c', d, h, w]`.
pub fn to_layout(x: &Tensor, layout: FeatureLayout) -> Result<Tensor> {
    let x = x.f_to_kind(layout.kind)?;
    if layout.padded {
        let channels = x.size()[1];
        return join_channels(&[(x, channels)]);
    }
    channels_last(&x)
}

/// Linear interpolation to a size that keeps the memory format of the map.
///
/// # Shapes
/// `[b, c, d, h, w]` → `[b, c, size]`.
pub fn upsample_to(x: &Tensor, size: Size) -> Result<Tensor> {
    let larger = linear_upsample(x, size)?;
    if x.device() == Device::Cpu { Ok(larger) } else { channels_last(&larger) }
}

/// Whether a map of so many real channels is one of a GPU's own: padded, and channels fastest.
pub fn is_padded(x: &Tensor, channels: i64) -> Result<bool> {
    let is_wide = x.device() != Device::Cpu && x.size()[1] == ssn_cuda::padded(channels);
    Ok(is_wide && x.f_permute([0, 2, 3, 4, 1])?.is_contiguous())
}

/// The real channels of a map.
///
/// # Shapes
/// `[b, c', d, h, w]` → `[b, c, d, h, w]`.
pub fn first_channels(x: &Tensor, channels: i64) -> Result<Tensor> {
    if x.size()[1] == channels { Ok(x.shallow_clone()) } else { Ok(x.f_narrow(1, 0, channels)?) }
}

/// One level of the encoder of a U-Net: the map pooled by `stride`, and the map itself for the skip connection.
///
/// # Shapes
/// `[b, c, d, h, w]` → `[b, c, d/sd, h/sh, w/sw]` and `[b, c, d, h, w]`.
pub fn downsample(x: &Tensor, stride: Size) -> Result<[Tensor; 2]> {
    if x.device() != Device::Cpu {
        return Ok(ssn_cuda::downsample(x, stride)?);
    }
    Ok([average_pool(x, stride)?, x.shallow_clone()])
}

/// One level of the decoder of a U-Net: a map upsampled by `stride` and concatenated with the skip connection; each
/// with the number of its real channels.
///
/// # Shapes
/// `x` `[b, c, d, h, w]`, `skip` `[b, s, d·sd, h·sh, w·sw]` → `[b, c + s, d·sd, h·sh, w·sw]`, padded if a map is.
pub fn upsample(
    (x, channels): (Tensor, i64),
    (skip, skip_channels): (Tensor, i64),
    stride: Size,
) -> Result<Tensor> {
    let is_fused =
        x.device() != Device::Cpu && x.size()[1] == channels && stride.iter().all(|s| (1..=2).contains(s));
    if is_fused {
        return Ok(ssn_cuda::upsample(&x, &skip, stride)?);
    }
    let upsampled = linear_upsample(&x, spatial(&skip)?)?;
    join_channels(&[(upsampled, channels), (skip, skip_channels)])
}

/// Maps side by side, each with the number of its real channels.
///
/// # Shapes
/// `[b, cᵢ, d, h, w]` → `[b, Σ cᵢ, d, h, w]`, padded if a map is.
pub fn join_channels(maps: &[(Tensor, i64)]) -> Result<Tensor> {
    let total: i64 = maps.iter().map(|(_, channels)| channels).sum();
    let found: i64 = maps.iter().map(|(map, _)| map.size()[1]).sum();
    let on_gpu = maps.iter().any(|(map, _)| map.device() != Device::Cpu);
    if found == total && (!on_gpu || ssn_cuda::padded(total) == total) {
        let joined = Tensor::f_cat(&maps.iter().map(|(map, _)| map).collect::<Vec<_>>(), 1)?;
        return if on_gpu { channels_last(&joined) } else { Ok(joined) };
    }
    let mut parts = vec![];
    for (map, channels) in maps {
        parts.push(first_channels(map, *channels)?);
    }
    let mut size = parts[0].size();
    size[1] = ssn_cuda::padded(total) - total;
    if size[1] > 0 {
        parts.push(Tensor::f_zeros(size.as_slice(), (parts[0].kind(), parts[0].device()))?);
    }
    channels_last(&Tensor::f_cat(&parts, 1)?)
}

/// The maps of paths of several scales side by side: every voxel repeated `scale` times, and of that the middle.
///
/// # Shapes
/// `[b, c, dᵢ, hᵢ, wᵢ]` each → `[b, Σ c, size]`, padded if the maps are.
pub fn join_scales(maps: &[Tensor], channels: i64, scales: &[Size], size: Size) -> Result<Tensor> {
    let on_gpu = maps.iter().any(|map| map.device() != Device::Cpu);
    let (mut paths, mut features) = (vec![], vec![]);
    for (map, &scale) in maps.iter().zip(scales) {
        if on_gpu {
            let found = spatial(map)?;
            // Of an odd margin the larger half is in front.
            let start = [0, 1, 2].map(|axis| (found[axis] * scale[axis] - size[axis] + 1) / 2);
            paths.push((map, ssn_cuda::PathOptions { channels, scale, start }));
        } else {
            features.push(center_crop(&nearest_upsample(map, scale)?, size, Margin::LargerInFront)?);
        }
    }
    if on_gpu { Ok(ssn_cuda::join(&paths, size)?) } else { Ok(Tensor::f_cat(&features, 1)?) }
}

/// Convolution with a kernel `[o, c, kd, kh, kw]`, which follows the precision of `x`.
///
/// # Shapes
/// `[b, c, d, h, w]` → `[b, o, d', h', w']`.
pub fn convolution(x: &Tensor, weight: &Tensor, padding: Size) -> Result<Tensor> {
    let (weight, bias) = (weight.f_to_kind(x.kind())?, None::<&Tensor>);
    if x.device() != Device::Cpu {
        return Ok(ssn_cuda::convolution(x, &weight, padding)?);
    }
    if x.size()[2] == 1 && weight.size()[2] == 1 && padding[0] == 0 {
        let (x, weight) = (squeeze_depth(x)?, squeeze_depth(&weight)?);
        return unsqueeze_depth(&x.f_conv2d(&weight, bias, [1i64, 1], &padding[1..], [1i64, 1], 1)?);
    }
    let convolve = |x: &Tensor, padding: Size| {
        Ok::<_, NnError>(x.f_conv3d(&weight, bias, [1i64, 1, 1], padding, [1i64, 1, 1], 1)?)
    };
    let (depth, length) = (x.size()[2], weight.size()[2]);
    let outputs = depth + 2 * padding[0] - length + 1;
    let is_slow = is_slow_in_libtorch(x) && outputs > 1;
    // In bfloat16, oneDNN's gradient of a kernel longer than the unpadded image is wrong.
    let is_wrong = x.kind() == Kind::BFloat16 && depth < length;
    if !is_slow && !is_wrong {
        return convolve(x, padding);
    }
    let padded = if padding[0] == 0 {
        x.shallow_clone()
    } else {
        x.f_constant_pad_nd([0, 0, 0, 0, padding[0], padding[0]])?
    };
    let padding = [0, padding[1], padding[2]];
    if !is_slow {
        return convolve(&padded, padding);
    }
    let half = (outputs + 1) / 2;
    let (depth, second) = (half + length - 1, outputs - half);
    let halves = [padded.f_narrow(2, 0, depth)?, padded.f_narrow(2, second, depth)?];
    let both = convolve(&Tensor::f_cat(&halves, 0)?, padding)?; // [2, o, half, h', w']
    // Of an odd number of slices the one in the middle was made twice.
    let back = both.f_narrow(0, 1, 1)?.f_narrow(2, 2 * half - outputs, second)?;
    Ok(Tensor::f_cat(&[both.f_narrow(0, 0, 1)?, back], 2)?)
}

/// Whether libtorch would leave its fast kernels for this input: a single small volume on a CPU.
///
/// Its rule for 3D convolution in single precision sends one image with c·d·h up to 20480 to a kernel that unfolds the
/// image, ten times slower in training. Halves of the volume, overlapping by the kernel, are a batch of two.
fn is_slow_in_libtorch(x: &Tensor) -> bool {
    const LARGEST: i64 = 20_480;
    let size = x.size();
    x.kind() == Kind::Float
        && x.device() == Device::Cpu
        && size[0] == 1
        && size[1..4].iter().product::<i64>() <= LARGEST
}

/// The mean of blocks of `stride`, as pooling with that stride.
///
/// # Shapes
/// `[b, c, d, h, w]` → `[b, c, d/sd, h/sh, w/sw]`.
pub fn average_pool(x: &Tensor, stride: Size) -> Result<Tensor> {
    if x.size()[2] == 1 {
        let (x, stride) = (squeeze_depth(x)?, &stride[1..]);
        return unsqueeze_depth(&x.f_avg_pool2d(stride, stride, [0i64, 0], false, true, None::<i64>)?);
    }
    // libtorch has no such kernel for bfloat16 on CPUs.
    let kind = x.kind();
    let wide = if kind == Kind::BFloat16 { x.f_to_kind(Kind::Float)? } else { x.shallow_clone() };
    Ok(wide.f_avg_pool3d(stride, stride, [0i64, 0, 0], false, true, None::<i64>)?.f_to_kind(kind)?)
}

/// Linear interpolation to a size, voxel centers of the two grids aligned at the borders of the image.
///
/// # Shapes
/// `[b, c, d, h, w]` → `[b, c, size]`.
pub fn linear_upsample(x: &Tensor, size: Size) -> Result<Tensor> {
    if x.size()[2] == 1 && size[0] == 1 {
        return unsqueeze_depth(&squeeze_depth(x)?.f_upsample_bilinear2d(&size[1..], false, None, None)?);
    }
    Ok(x.f_upsample_trilinear3d(size, false, None, None, None)?)
}

/// Repeats every voxel `scale` times along each axis.
///
/// # Shapes
/// `[b, c, d, h, w]` → `[b, c, d·sd, h·sh, w·sw]`.
pub fn nearest_upsample(x: &Tensor, scale: Size) -> Result<Tensor> {
    if scale == [1, 1, 1] {
        return Ok(x.shallow_clone());
    }
    let size = spatial(x)?;
    let size = [0, 1, 2].map(|axis| size[axis] * scale[axis]);
    if size[0] == 1 {
        return unsqueeze_depth(&squeeze_depth(x)?.f_upsample_nearest2d(&size[1..], None, None)?);
    }
    Ok(x.f_upsample_nearest3d(size, None, None, None)?)
}

/// The voxels of a grid.
///
/// # Shapes
/// `[b, c, d, h, w]` → `[b, c, d', h', w']`.
pub fn grid(x: &Tensor, grid: &Lattice) -> Result<Tensor> {
    let mut result = x.shallow_clone();
    for axis in 0..3 {
        let [start, step, count] = [grid.start, grid.step, grid.count].map(|part| part[axis] as i64);
        result = result.f_slice(axis as i64 + 2, start, start + step * (count - 1) + 1, step)?;
    }
    Ok(result)
}

/// Which voxels go where an odd margin cannot be halved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Margin {
    /// The smaller half of the margin is cut off in front.
    SmallerInFront,
    /// The larger half of the margin is cut off in front.
    LargerInFront,
}

/// The middle of an image.
///
/// # Shapes
/// `[b, c, d, h, w]` → `[b, c, size]`.
pub fn center_crop(x: &Tensor, size: Size, margin: Margin) -> Result<Tensor> {
    let found = spatial(x)?;
    let mut result = x.shallow_clone();
    for axis in 0..3 {
        if found[axis] < size[axis] {
            let expected = format!("at least {size:?} along d, h, w");
            return Err(NnError::shape("a feature map to be cropped", &x.size(), expected));
        }
        if found[axis] > size[axis] {
            let difference = found[axis] - size[axis];
            let start = match margin {
                Margin::SmallerInFront => difference / 2,
                Margin::LargerInFront => (difference + 1) / 2,
            };
            result = result.f_narrow(axis as i64 + 2, start, size[axis])?;
        }
    }
    Ok(result)
}

/// The sizes along `d, h, w` of an image `[b, c, d, h, w]`.
pub fn spatial(x: &Tensor) -> Result<Size> {
    match x.size().as_slice() {
        &[_, _, d, h, w] => Ok([d, h, w]),
        _ => Err(not_an_image(x)),
    }
}

fn not_an_image(x: &Tensor) -> NnError {
    NnError::shape("an image", &x.size(), "[b, c, d, h, w]; 2D images have depth 1")
}

/// The same values with channels running fastest in memory, the order that tensor cores and AMX like best.
///
/// # Shapes
/// `[b, c, d, h, w]`, unchanged.
pub fn channels_last(x: &Tensor) -> Result<Tensor> {
    Ok(x.f_permute([0, 2, 3, 4, 1])?.f_contiguous()?.f_permute([0, 4, 1, 2, 3])?)
}

/// `[b, c, 1, h, w]` as `[b, c, h, w]`.
pub fn squeeze_depth(x: &Tensor) -> Result<Tensor> {
    Ok(x.f_squeeze_dim(2)?)
}

/// `[b, c, h, w]` as `[b, c, 1, h, w]`.
pub fn unsqueeze_depth(x: &Tensor) -> Result<Tensor> {
    Ok(x.f_unsqueeze(2)?)
}
