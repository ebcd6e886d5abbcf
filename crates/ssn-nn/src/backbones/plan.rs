//! A U-Net for users' own data, sized from the patch and the spacing of the voxels.

use crate::error::{Result, refused};
use crate::layers::{ActivationKind, NormKind};
use crate::space::Size;

use super::{BackbonePlan, UNetConfig};

/// An axis whose voxels are so many times longer than the finest is left alone until the others have caught up.
const ANISOTROPY: f64 = 2.0;
/// The coarsest grid keeps at least this many voxels along a divided axis.
const SMALLEST: i64 = 4;
/// The most channels, in 2D and 3D.
const MOST_CHANNELS: [i64; 2] = [512, 320];

/// What a U-Net is planned for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UNetPlan {
    /// The size of a patch along `d, h, w`; depth 1 makes a 2D network.
    pub patch: Size,
    /// The spacing of the voxels along `d, h, w`, in any unit.
    pub spacing: [f64; 3],
    /// The images in a batch: small batches get instance norm.
    pub batch: i64,
    /// The channels of the finest level; they double from level to level.
    pub width: i64,
    /// The most levels.
    pub levels: usize,
}

impl UNetPlan {
    /// Levels beyond this add parameters, but no context.
    pub const LEVELS: usize = 7;
    /// The default number of channels of the finest level.
    pub const WIDTH: i64 = 32;

    /// A plan with the usual width and levels.
    pub fn new(patch: Size, spacing: [f64; 3], batch: i64) -> Self {
        Self { patch, spacing, batch, width: Self::WIDTH, levels: Self::LEVELS }
    }
}

/// A U-Net for a plan, and the patch enlarged to a size that it can have.
///
/// Each level halves the axes that are long enough and whose voxels are not much longer than the finest, so that
/// voxels become cubes before they become large; kernels span 1 voxel along axes that are still too coarse.
///
/// ```
/// use ssn_nn::backbones::{UNetPlan, plan_unet};
///
/// // Volumes with slices of 3 mm: the first levels halve rows and columns alone.
/// let (unet, patch) = plan_unet(UNetPlan { width: 16, ..UNetPlan::new([20, 100, 100], [3.0, 0.8, 0.8], 2) })?;
/// assert_eq!(unet.strides[0], [1, 2, 2]);
/// assert!(patch.iter().zip([20, 100, 100]).all(|(&n, asked)| n >= asked));
/// # Ok::<(), ssn_nn::NnError>(())
/// ```
pub fn plan_unet(plan: UNetPlan) -> Result<(UNetConfig, Size)> {
    if plan.patch.iter().any(|&n| n < 1) {
        return refused("the patch size", format!("{:?}", plan.patch), "at least 1 along every axis");
    }
    if plan.spacing.iter().any(|s| !(s.is_finite() && *s > 0.0)) {
        return refused("the spacing", format!("{:?}", plan.spacing), "positive along every axis");
    }
    let planar = plan.patch[0] == 1;
    let axes = usize::from(planar)..3;
    let finest = |spacing: [f64; 3], wanted: &dyn Fn(usize) -> bool| {
        axes.clone().filter(|&axis| wanted(axis)).map(|axis| spacing[axis]).fold(f64::INFINITY, f64::min)
    };
    let (mut size, mut spacing, mut kernel) = (plan.patch, plan.spacing, [1; 3]);
    let (mut strides, mut kernels) = (vec![], vec![]);
    loop {
        // A kernel that spans three voxels does so on all coarser levels.
        let near = ANISOTROPY * finest(spacing, &|_| true);
        for axis in axes.clone() {
            kernel[axis] = if kernel[axis] == 3 || spacing[axis] <= near { 3 } else { 1 };
        }
        kernels.push(kernel);
        // Axes that are too short to be halved do not hold back the others.
        let long = |axis: usize| axes.contains(&axis) && size[axis] >= 2 * SMALLEST;
        let near = ANISOTROPY * finest(spacing, &long);
        let stride = [0, 1, 2].map(|axis| i64::from(long(axis) && spacing[axis] <= near) + 1);
        if stride == [1; 3] || kernels.len() >= plan.levels {
            break;
        }
        for axis in 0..3 {
            size[axis] = (size[axis] + stride[axis] - 1) / stride[axis];
            spacing[axis] *= stride[axis] as f64;
        }
        strides.push(stride);
    }
    let most = MOST_CHANNELS[usize::from(!planar)];
    let widths: Vec<i64> =
        (0..kernels.len()).map(|level| (plan.width << level).min(most.max(plan.width))).collect();
    let config = UNetConfig {
        decoder_widths: widths.iter().rev().skip(1).copied().collect(),
        widths,
        strides,
        kernels,
        convolutions: 2,
        pointwise: vec![],
        norm: if plan.batch < 4 { NormKind::INSTANCE } else { NormKind::BATCH },
        activation: ActivationKind::LeakyRelu,
    };
    let patch = config.input_size(plan.patch);
    Ok((config, patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(patch: Size, spacing: [f64; 3]) -> (UNetConfig, Size) {
        plan_unet(UNetPlan::new(patch, spacing, 2)).unwrap()
    }

    #[test]
    fn two_dimensional_images_get_flat_kernels() {
        let (config, patch) = plan([1, 128, 128], [1.0; 3]);
        assert!(config.kernels.iter().all(|kernel| kernel == &[1, 3, 3]));
        assert_eq!((config.total_stride(), patch), ([1, 32, 32], [1, 128, 128]));
    }

    #[test]
    fn thick_slices_are_halved_only_once_voxels_are_cubes() {
        let (config, _) = plan([32, 256, 256], [5.0, 1.0, 1.0]);
        assert_eq!(&config.strides[..3], &[[1, 2, 2], [1, 2, 2], [2, 2, 2]]);
        assert_eq!(&config.kernels[..3], &[[1, 3, 3], [1, 3, 3], [3, 3, 3]]);
    }

    #[test]
    fn a_short_axis_does_not_hold_back_the_others() {
        let (config, _) = plan([16, 256, 256], [1.0; 3]);
        assert_eq!(config.strides, [[2, 2, 2], [2, 2, 2], [1, 2, 2], [1, 2, 2], [1, 2, 2], [1, 2, 2]]);
        assert_eq!(config.kernels, [[3, 3, 3]; 7]);
        let (config, _) = plan([1, 64, 512], [1.0; 3]);
        assert_eq!(config.total_stride(), [1, 16, 64]);
    }

    #[test]
    fn patches_grow_to_a_size_that_fits() {
        let (config, patch) = plan([1, 100, 130], [1.0; 3]);
        assert_eq!(patch, config.output_size(patch).unwrap());
        assert!(patch[1] >= 100 && patch[1] < 132 && patch[2] >= 130);
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = plan_unet(UNetPlan::new([1, 0, 4], [1.0; 3], 1));
        assert!(refused.unwrap_err().to_string().contains("the patch size is [1, 0, 4]"));
    }
}
