//! The image of a scene: tissue with texture, a brighter skin, vessels, lesions, noise.

use ssn_core::random::fill_normals;

use super::lesion::{CORE, Lesion, Seen};
use super::scene::{Scene, Vessel};
use crate::noise::{Noise, Rank};

/// The gray value of air, of tissue, and of the skin around it.
const AIR: f32 = 0.05;
const TISSUE: f32 = 0.42;
const SKIN: f32 = 0.6;
/// Where the skin begins, as a share of the body.
const SKIN_BEGINS: f32 = 0.92;
/// Texture: the size of its cells as a share of the image's width, and its amplitude.
const TEXTURES: [(f32, f32); 3] = [(0.35, 0.16), (0.12, 0.1), (0.05, 0.06)];
/// Spikes are this bright, as a share of the lesion's contrast.
const SPIKE_CONTRAST: f32 = 0.5;
/// The core is darker than the rest of the lesion by this share of the contrast, in sets of three classes.
const CORE_CONTRAST: f32 = 0.7;

impl Scene {
    /// The image `[1, d, h, w]`, about 0 to 1.
    pub fn image(&self) -> Vec<f32> {
        let mut image: Vec<f32> = self.voxels().map(|at| self.tissue(at)).collect();
        self.add_texture(&mut image);
        for (value, at) in image.iter_mut().zip(self.voxels()) {
            // Where the pieces of a vessel meet, they do not add up.
            let share = |vessel: &Vessel| (vessel.radius + 0.5 - vessel.distance(at)).clamp(0.0, 1.0);
            let vessels = self.vessels.iter().map(|vessel| vessel.contrast * share(vessel));
            *value += vessels.fold(0.0, f32::max);
        }
        for (number, lesion) in self.lesions.iter().enumerate() {
            for &(voxel, seen) in &self.seen[number] {
                image[voxel] += lesion.brightness(seen, self.classes == 3);
            }
        }
        let mut normals = vec![0.0; image.len()];
        fill_normals(self.grain, 0, 0, &mut normals);
        image.iter_mut().zip(&normals).for_each(|(value, normal)| *value += self.noise * normal);
        image
    }

    fn tissue(&self, at: [f32; 3]) -> f32 {
        let depth = self.depth(at);
        // Borders are a voxel wide, so that they do not look like stairs.
        let per_voxel = 1.0 / self.axes[1].min(self.axes[2]);
        let inside = ((1.0 - depth) / per_voxel + 0.5).clamp(0.0, 1.0);
        let skin = ((depth - SKIN_BEGINS) / per_voxel + 0.5).clamp(0.0, 1.0);
        AIR + inside * (TISSUE + skin * (SKIN - TISSUE) - AIR)
    }

    fn add_texture(&self, image: &mut [f32]) {
        let [depth, height, width] = self.size;
        let rank = if depth == 1 { Rank::Flat } else { Rank::Solid };
        for (octave, (cell, amplitude)) in TEXTURES.into_iter().enumerate() {
            let per_voxel = 1.0 / (cell * width as f32).max(2.0);
            let key = [self.texture[0], self.texture[1].wrapping_add(octave as u32)];
            let high = self.size.map(|n| n as f32 * per_voxel);
            let noise =
                Noise::<1>::new(key, rank, [0.0; 3], if depth == 1 { [0.0, high[1], high[2]] } else { high });
            let x: Vec<f32> = (0..width).map(|x| x as f32 * per_voxel).collect();
            let mut values = vec![0.0; width];
            for (row, out) in image.chunks_exact_mut(width).enumerate() {
                let (z, y) = (row / height, row % height);
                let line = |at: usize| vec![at as f32 * per_voxel; width];
                noise.row([&line(z), &line(y), &x], &mut [&mut values]);
                for (x, (out, value)) in out.iter_mut().zip(&values).enumerate() {
                    if self.depth([z as f32, y as f32, x as f32]) < SKIN_BEGINS {
                        *out += amplitude * value;
                    }
                }
            }
        }
    }
}

impl Vessel {
    /// The distance of a point from the vessel's line.
    fn distance(&self, at: [f32; 3]) -> f32 {
        let along = [0, 1, 2].map(|k| self.to[k] - self.from[k]);
        let from = [0, 1, 2].map(|k| at[k] - self.from[k]);
        let dot = |a: [f32; 3], b: [f32; 3]| (0..3).map(|k| a[k] * b[k]).sum::<f32>();
        let share = (dot(from, along) / dot(along, along).max(1e-6)).clamp(0.0, 1.0);
        let off = [0, 1, 2].map(|k| from[k] - share * along[k]);
        dot(off, off).sqrt()
    }
}

impl Lesion {
    /// What a lesion adds to the image: its border fades over the rim, spikes are half as bright as the lesion.
    fn brightness(&self, seen: Seen, core: bool) -> f32 {
        let fade = |border: f32, half_width: f32| {
            let t = ((border + half_width - seen.distance) / (2.0 * half_width)).clamp(0.0, 1.0);
            t * t * (3.0 - 2.0 * t)
        };
        let body = fade(1.0, self.rim);
        let spikes = SPIKE_CONTRAST * fade(1.0 + seen.spike, 0.12);
        let dark = if core { CORE_CONTRAST * fade(CORE, self.rim * CORE) } else { 0.0 };
        self.contrast * (body.max(spikes) - dark)
    }
}
