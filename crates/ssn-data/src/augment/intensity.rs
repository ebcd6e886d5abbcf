//! Changes of intensity, on finished patches.

use ssn_core::Lattice;
use ssn_core::random::{exp_nonpositive, fill_normals, ln_lanes};
use ssn_core::simd::vectorized;

use crate::augment::PatchInfo;
use crate::random::RandomStream;

/// Values that are worked on together.
const LANES: usize = 16;

/// A change of intensity with its random numbers drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Intensity {
    /// x ↦ factor · x + summand, for every channel.
    Linear(Vec<[f32; 2]>),
    /// x ↦ x + deviation · normal.
    Noise {
        /// The seed of the normal numbers; the channel is their stream.
        seed: u64,
        deviation: f32,
    },
    /// x ↦ low + (high − low) · ((x − low) / (high − low))^exponent, low and high the smallest and the largest value of
    /// the channel; one exponent for every channel.
    Gamma(Vec<f32>),
}

/// Draws a factor and a shift for each channel.
pub(super) fn scaled_and_shifted(
    deviation: f64,
    [low, high]: [f64; 2],
    info: &PatchInfo,
    stream: &mut RandomStream,
) -> Intensity {
    let mut channel = |_| {
        let factor = 1.0 + deviation * stream.normal();
        [factor as f32, stream.uniform_in(low, high) as f32]
    };
    Intensity::Linear((0..info.channels).map(&mut channel).collect())
}

/// Draws a deviation of noise, and its seed.
pub(super) fn noisy(low: f64, high: f64, stream: &mut RandomStream) -> Intensity {
    let deviation = stream.uniform_in(low, high) as f32;
    let seed = u64::from(stream.next_u32()) | u64::from(stream.next_u32()) << 32;
    Intensity::Noise { seed, deviation }
}

/// Draws an exponent for each channel.
pub(super) fn with_gamma(low: f64, high: f64, info: &PatchInfo, stream: &mut RandomStream) -> Intensity {
    let mut exponent = |_| stream.uniform_in(low.ln(), high.ln()).exp() as f32;
    Intensity::Gamma((0..info.channels).map(&mut exponent).collect())
}

impl Intensity {
    /// Changes the grids of a patch of a size, one after the other in `patch`. A voxel that is on several grids is
    /// changed in the same way on all of them. The extremes of gamma are those of all grids together.
    ///
    /// # Shapes
    /// `patch`: `[c, d, h, w]` of each grid's count.
    pub fn apply(&self, patch: &mut [f32], channels: usize, size: [usize; 3], grids: &[Lattice]) {
        let mut extremes = vec![[f32::INFINITY, f32::NEG_INFINITY]; channels];
        if let Self::Gamma(_) = self {
            for_each_plane(patch, channels, grids, |channel, _, values| {
                let [low, high] = &mut extremes[channel];
                for &x in values.iter() {
                    (*low, *high) = (low.min(x), high.max(x));
                }
            });
        }
        // The noise of a voxel depends on its place in the patch alone.
        let normals: Vec<Vec<f32>> = match self {
            Self::Noise { seed, .. } => {
                (0..channels).map(|channel| noise(*seed, channel as u32, size)).collect()
            }
            Self::Linear(_) | Self::Gamma(_) => vec![],
        };
        for_each_plane(patch, channels, grids, |channel, grid, values| match self {
            Self::Linear(change) => linear(values, change[channel]),
            Self::Noise { deviation, .. } => add_noise(values, *deviation, &normals[channel], size, grid),
            Self::Gamma(exponents) => gamma(values, exponents[channel], extremes[channel]),
        });
    }
}

/// Visits one channel of one grid after the other.
fn for_each_plane(
    mut patch: &mut [f32],
    channels: usize,
    grids: &[Lattice],
    mut visit: impl FnMut(usize, &Lattice, &mut [f32]),
) {
    for grid in grids {
        for channel in 0..channels {
            let (values, rest) = std::mem::take(&mut patch).split_at_mut(grid.voxels());
            visit(channel, grid, values);
            patch = rest;
        }
    }
}

fn linear(values: &mut [f32], [factor, summand]: [f32; 2]) {
    vectorized(
        #[inline(always)]
        || values.iter_mut().for_each(|x| *x = *x * factor + summand),
    );
}

fn noise(seed: u64, stream: u32, size: [usize; 3]) -> Vec<f32> {
    let mut normals = vec![0.0; size.iter().product()];
    fill_normals(seed, stream, 0, &mut normals);
    normals
}

fn add_noise(values: &mut [f32], deviation: f32, normals: &[f32], size: [usize; 3], grid: &Lattice) {
    if *grid == Lattice::whole(size) {
        return vectorized(
            #[inline(always)]
            || values.iter_mut().zip(normals).for_each(|(x, noise)| *x += deviation * noise),
        );
    }
    for (x, place) in values.iter_mut().zip(grid.places(size)) {
        *x += deviation * normals[place];
    }
}

fn gamma(values: &mut [f32], exponent: f32, [low, high]: [f32; 2]) {
    let range = high - low;
    if !(range > 0.0 && range.is_finite()) {
        return;
    }
    vectorized(
        #[inline(always)]
        || {
            for chunk in values.chunks_mut(LANES) {
                // ln needs a positive normal number; so small a share of the range is 0 after any power in use.
                let mut share = [1.0f32; LANES];
                for (share, x) in share.iter_mut().zip(chunk.iter()) {
                    *share = ((x - low) / range).clamp(f32::MIN_POSITIVE, 1.0);
                }
                let logarithm = ln_lanes(&share);
                for (lane, x) in chunk.iter_mut().enumerate() {
                    let bent = low + range * exp_nonpositive((exponent * logarithm[lane]).min(0.0));
                    *x = if share[lane] > f32::MIN_POSITIVE { bent } else { low };
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: usize) -> [usize; 3] {
        [1, 1, n]
    }

    #[test]
    fn gamma_is_a_power_between_the_extremes() {
        let values: Vec<f32> = (0..1001).map(|i| -2.0 + i as f32 * 0.004).collect();
        for exponent in [0.5f32, 1.0, 1.7] {
            let mut bent = values.clone();
            Intensity::Gamma(vec![exponent]).apply(&mut bent, 1, line(1001), &[Lattice::whole(line(1001))]);
            for (x, y) in values.iter().zip(&bent) {
                let expected = -2.0 + 4.0 * ((x + 2.0) / 4.0).powf(exponent);
                assert!((y - expected).abs() < 4e-6, "{x} became {y}, not {expected}");
            }
        }
        let mut constant = vec![3.0; 20];
        Intensity::Gamma(vec![0.5]).apply(&mut constant, 1, line(20), &[Lattice::whole(line(20))]);
        assert_eq!(constant, vec![3.0; 20]);
    }

    #[test]
    fn linear_changes_and_noise_are_by_channel() {
        let mut patch = vec![1.0; 8];
        let halves = [Lattice::whole(line(4))];
        Intensity::Linear(vec![[2.0, 1.0], [1.0, -1.0]]).apply(&mut patch, 2, line(4), &halves);
        assert_eq!(patch, [3.0, 3.0, 3.0, 3.0, 0.0, 0.0, 0.0, 0.0]);
        let mut noisy = vec![0.0; 20_000];
        let halves = [Lattice::whole(line(10_000))];
        Intensity::Noise { seed: 3, deviation: 0.5 }.apply(&mut noisy, 2, line(10_000), &halves);
        assert_ne!(noisy[..10_000], noisy[10_000..]);
        let variance = noisy.iter().map(|x| x * x).sum::<f32>() / 20_000.0;
        assert!((variance - 0.25).abs() < 0.02, "{variance}");
    }
}
