//! What an image shows.

use super::config::SyntheticConfig;
use super::lesion::{Lesion, Seen};
use crate::random::Stream;

/// Attempts to place a lesion clear of the others before going without it.
const ATTEMPTS: usize = 50;

/// A piece of a vessel: a short tube, bright and with a sharp border, that no rater marks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vessel {
    pub from: [f32; 3],
    pub to: [f32; 3],
    pub radius: f32,
    pub contrast: f32,
}

/// Everything about a case that does not depend on a rater.
#[derive(Debug, Clone)]
pub struct Scene {
    /// `[d, h, w]`.
    pub size: [usize; 3],
    /// The lesions; they do not touch.
    pub lesions: Vec<Lesion>,
    pub(super) classes: usize,
    pub(super) spiky: f64,
    pub(super) noise: f32,
    /// Half-axes and center of the body.
    pub(super) axes: [f32; 3],
    pub(super) middle: [f32; 3],
    pub(super) vessels: Vec<Vessel>,
    pub(super) texture: [u32; 2],
    pub(super) grain: u64,
    /// The voxels that each lesion can reach, as seen from it.
    pub(super) seen: Vec<Vec<(usize, Seen)>>,
}

impl Scene {
    pub(super) fn draw(config: &SyntheticConfig, stream: &mut Stream) -> Self {
        let size = config.size;
        let flat = size[0] == 1;
        let axes = size.map(|n| n as f32 * stream.uniform_in(0.39, 0.48) as f32);
        let middle = size.map(|n| (n as f32 - 1.0) / 2.0 + n as f32 * stream.uniform_in(-0.02, 0.02) as f32);
        let (axes, middle) =
            if flat { ([1.0, axes[1], axes[2]], [0.0, middle[1], middle[2]]) } else { (axes, middle) };
        let mut scene = Self {
            size,
            lesions: vec![],
            classes: config.classes,
            spiky: config.spiky,
            noise: config.noise as f32,
            axes,
            middle,
            vessels: vec![],
            texture: [stream.next_u32(), stream.next_u32()],
            grain: u64::from(stream.next_u32()) | u64::from(stream.next_u32()) << 32,
            seen: vec![],
        };
        let count = 1 + stream.below(config.lesions as u64) as usize;
        for _ in 0..count {
            scene.place_lesion(stream.chance(config.faint), stream);
        }
        for _ in 0..3 + stream.below(3) {
            scene.grow_vessel(stream);
        }
        scene.seen = scene.lesions.iter().map(|lesion| scene.around(lesion)).collect();
        scene
    }

    /// Whether a point lies in the body: below 1.
    pub(super) fn depth(&self, at: [f32; 3]) -> f32 {
        (0..3).map(|k| ((at[k] - self.middle[k]) / self.axes[k]).powi(2)).sum::<f32>().sqrt()
    }

    /// The region of interest `[d, h, w]`: 1 in the body, 0 in the air around it.
    pub fn body(&self) -> Vec<u8> {
        self.voxels().map(|at| u8::from(self.depth(at) <= 1.0)).collect()
    }

    /// The coordinates of all voxels.
    pub(super) fn voxels(&self) -> impl Iterator<Item = [f32; 3]> + use<> {
        let [d, h, w] = self.size;
        (0..d * h * w).map(move |voxel| [voxel / (h * w), voxel / w % h, voxel % w].map(|x| x as f32))
    }

    /// The voxels of the body that a lesion can reach.
    fn around(&self, lesion: &Lesion) -> Vec<(usize, Seen)> {
        let range = |k: usize| {
            let low = (lesion.center[k] - lesion.reach()).floor().max(0.0) as usize;
            let high = (lesion.center[k] + lesion.reach()).ceil().max(0.0) as usize;
            low..(high + 1).min(self.size[k])
        };
        let mut seen = vec![];
        for z in range(0) {
            for y in range(1) {
                for x in range(2) {
                    let voxel = (z * self.size[1] + y) * self.size[2] + x;
                    let at = [z, y, x].map(|i| i as f32);
                    if self.depth(at) <= 1.0 {
                        seen.push((voxel, lesion.see(at)));
                    }
                }
            }
        }
        seen
    }

    /// A random point of the body, within a share of its size.
    fn inner_point(&self, share: f32, stream: &mut Stream) -> [f32; 3] {
        loop {
            let unit =
                [0, 1, 2].map(|k| if self.size[k] == 1 { 0.0 } else { stream.uniform_in(-1.0, 1.0) as f32 });
            if unit.iter().map(|x| x * x).sum::<f32>() <= 1.0 {
                return [0, 1, 2].map(|k| self.middle[k] + share * self.axes[k] * unit[k]);
            }
        }
    }

    /// Adds a vessel: a chain of short tubes that wanders away from its beginning and keeps clear of lesions, so that
    /// it hides nothing.
    fn grow_vessel(&mut self, stream: &mut Stream) {
        let scale = self.size[2] as f32 / 64.0;
        let radius = scale.max(0.8) * stream.uniform_in(0.6, 1.1) as f32;
        let contrast = stream.uniform_in(0.1, 0.22) as f32;
        let mut from = self.inner_point(0.85, stream);
        let mut direction = [0, 1, 2].map(|k| if self.size[k] == 1 { 0.0 } else { stream.normal() as f32 });
        for _ in 0..3 + stream.below(4) {
            let length = direction.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-3);
            let to = [0, 1, 2].map(|k| from[k] + 3.5 * scale * direction[k] / length);
            let free = |lesion: &Lesion| {
                (0..3).map(|k| (lesion.center[k] - to[k]).powi(2)).sum::<f32>().sqrt() > 1.8 * lesion.radius
            };
            if self.depth(to) > 0.88 || !self.lesions.iter().all(free) {
                return;
            }
            self.vessels.push(Vessel { from, to, radius, contrast });
            from = to;
            for k in 0..3 {
                let turn = if self.size[k] == 1 { 0.0 } else { 0.5 * stream.normal() as f32 };
                direction[k] = direction[k] / length + turn;
            }
        }
    }

    /// Adds a lesion clear of the others and of the air, if a place is found.
    fn place_lesion(&mut self, faint: bool, stream: &mut Stream) {
        let side = self.size.iter().filter(|&&n| n > 1).min().copied().unwrap_or(1) as f32;
        for _ in 0..ATTEMPTS {
            let radius = side * stream.uniform_in(0.07, 0.14) as f32;
            let lesion = Lesion::draw(self.inner_point(0.68, stream), radius, faint, stream);
            let clear = |other: &Lesion| {
                let apart = (0..3).map(|k| (other.center[k] - lesion.center[k]).powi(2)).sum::<f32>().sqrt();
                apart > other.reach() + lesion.reach()
            };
            if self.lesions.is_empty() || self.lesions.iter().all(clear) {
                self.lesions.push(lesion);
                return;
            }
        }
    }
}
