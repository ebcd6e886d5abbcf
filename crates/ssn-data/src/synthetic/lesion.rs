//! One lesion: its shape, and how far from clear it is.

use crate::noise::{Noise, Rank};
use crate::random::Stream;

/// How much the border's distance from the center varies with direction, around its mean.
const SHAPE: f32 = 0.45;
/// How fast it varies: cells of noise per unit of direction.
const SHAPE_CELLS: f32 = 1.2;
/// Spikes are narrower.
const SPIKE_CELLS: f32 = 3.0;
/// The noise at which a spike has its full length.
const SPIKE_FULL: f32 = 0.35;
/// A rater's level moves the border by this share of the blurred rim's half-width, times a standard normal number.
const LEVEL_SHARE: f32 = 0.55;
/// The core of a lesion ends at this share of its radius.
pub(super) const CORE: f32 = 0.5;

/// A lesion of a scene.
#[derive(Debug, Clone)]
pub struct Lesion {
    /// The center, `[d, h, w]` in voxels.
    pub center: [f32; 3],
    /// The mean distance of the border in voxels.
    pub radius: f32,
    /// How much brighter than its surroundings the lesion is.
    pub contrast: f32,
    /// A rater marks the lesion if the rater's sensitivity to it, a standard normal number, is below this.
    pub visibility: f32,
    /// Half of the width over which the border fades, as a share of the radius.
    pub rim: f32,
    /// The length of spikes as a share of the radius.
    pub spikes: f32,
    shape: Noise<1>,
    spike: Noise<1>,
    phase: [f32; 3],
}

/// A voxel as seen from a lesion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The distance from the center; 1 is the border.
    pub distance: f32,
    /// How much further the border lies for those who follow the spikes.
    pub spike: f32,
}

impl Lesion {
    /// A lesion at a place; `faint` ones are missed by some raters.
    pub(super) fn draw(center: [f32; 3], radius: f32, faint: bool, stream: &mut Stream) -> Self {
        // Faint: a probability of about ¼ to ¾ of being marked. Otherwise at least 99.9 %.
        let (contrast, visibility) = if faint {
            let share = stream.uniform() as f32;
            (0.1 + 0.06 * share, -0.7 + 1.4 * share)
        } else {
            let share = stream.uniform() as f32;
            (0.26 + 0.14 * share, 3.1)
        };
        let rim = stream.uniform_in(0.12, 0.45) as f32;
        let spikes = stream.uniform_in(0.25, 0.6) as f32;
        let mut noise = |cells: f32| {
            let key = [stream.next_u32(), stream.next_u32()];
            Noise::new(key, Rank::Solid, [-cells; 3], [cells + 1.0; 3])
        };
        let (shape, spike) = (noise(SHAPE_CELLS), noise(SPIKE_CELLS));
        let phase = [0; 3].map(|_| stream.uniform_in(0.2, 0.8) as f32);
        Self { center, radius, contrast, visibility, rim, spikes, shape, spike, phase }
    }

    /// The distance in voxels beyond which neither image nor raters show anything of the lesion.
    pub(super) fn reach(&self) -> f32 {
        self.radius * (1.0 + SHAPE * 0.87) * (1.0 + self.spikes + 1.25 * self.rim.max(0.1))
    }

    /// How far a standard normal level moves the border, as a share of the radius.
    pub(super) fn level_deviation(&self) -> f32 {
        LEVEL_SHARE * self.rim
    }

    pub(super) fn see(&self, voxel: [f32; 3]) -> Seen {
        let from = [0, 1, 2].map(|k| voxel[k] - self.center[k]);
        let length = from.iter().map(|x| x * x).sum::<f32>().sqrt();
        let unit = from.map(|x| x / length.max(1e-3));
        let at = |cells: f32| [0, 1, 2].map(|k| unit[k] * cells + self.phase[k]);
        let [shape] = self.shape.at(at(SHAPE_CELLS));
        let [spike] = self.spike.at(at(SPIKE_CELLS));
        let spike = (spike / SPIKE_FULL).clamp(0.0, 1.0);
        let distance = length / (self.radius * (1.0 + SHAPE * shape));
        Seen { distance, spike: self.spikes * spike * spike }
    }

    /// The level at which a voxel becomes part of the lesion, for a style.
    pub(super) fn level_needed(&self, seen: Seen, spiky: bool) -> f32 {
        let border = 1.0 + if spiky { seen.spike } else { 0.0 };
        (seen.distance - border) / self.level_deviation()
    }

    /// The level at which a voxel becomes part of the core.
    pub(super) fn core_level_needed(&self, seen: Seen) -> f32 {
        (seen.distance / CORE - 1.0) / self.level_deviation()
    }
}
