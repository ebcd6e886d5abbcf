//! Synthetic images with ambiguous lesions and any number of raters, made from a seed; no files.
//!
//! A scene is what one image shows: tissue with vessels, and lesions whose faintness, blurred borders and spikes say what
//! raters may disagree about, but not how they decide. A rater is a few random numbers; given those, a label map
//! follows. So the true distribution over label maps is known, and can be drawn from without end: see
//! `docs/concepts/synthetic.md`.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use ssn_core::random::{derive_seed, fill_normals};
use ssn_io::{Error, Problem, Result, Voxels};

use crate::augment::PerlinNoise;
use crate::dataset::{Case, Cases, no_such_case};
use crate::parallel;
use crate::random::{Purpose, RandomStream};

/// A synthetic set.
#[derive(Debug, Clone)]
pub struct Synthetic {
    config: SyntheticConfig,
    ids: Vec<String>,
}

impl Synthetic {
    /// Checks the settings.
    pub fn new(config: SyntheticConfig) -> Result<Self> {
        config.check()?;
        let ids = (0..config.cases).map(|index| format!("synthetic-{index:05}")).collect();
        Ok(Self { config, ids })
    }

    /// What the image of a case shows.
    pub fn scene(&self, case: usize) -> Scene {
        Scene::draw(&self.config, &mut RandomStream::new(self.seed(case), Purpose::Synthetic, 0))
    }

    /// The label maps `[d, h, w]` of several raters of a case. The raters of the set are the first `config.raters` of an
    /// endless sequence, all drawn from the same distribution.
    pub fn label_maps(&self, case: usize, numbers: std::ops::Range<u64>) -> Vec<Vec<u8>> {
        let scene = self.scene(case);
        numbers.map(|number| scene.labels(&self.rater_of(case, scene.lesions.len(), number))).collect()
    }

    fn rater_of(&self, case: usize, lesions: usize, number: u64) -> SyntheticRater {
        let mut stream = RandomStream::new(self.seed(case), Purpose::Synthetic, number.wrapping_add(1));
        SyntheticRater::draw(&self.config, lesions, &mut stream)
    }

    fn seed(&self, case: usize) -> u64 {
        derive_seed(self.config.seed, Purpose::Synthetic as u32, case as u64)
    }

    /// Writes the set into a folder: 2D as PNG of 16 bits, 3D as NIfTI. The labels of rater n end in `_n`; masks, if
    /// there are any, are in a third folder. `progress` gets the number of cases done.
    pub fn write(&self, folder: &Path, progress: parallel::CaseCounter<'_>) -> Result<()> {
        let flat = self.config.size[0] == 1;
        let ending = if flat { "png" } else { "nii.gz" };
        let [images, labels, masks] = ["images", "labels", "masks"].map(|name| folder.join(name));
        for folder in [&images, &labels].into_iter().chain(self.config.mask.then_some(&masks)) {
            fs::create_dir_all(folder).map_err(|error| Problem::Io(error).in_file(folder))?;
        }
        let write = |index, meter: &parallel::MemoryMeter| {
            let case = self.load(index)?;
            meter.saw(case.image.len() * size_of::<f32>());
            let save = |folder: &Path, suffix: String, voxels: Voxels| {
                case.write_array(&folder.join(format!("{}{suffix}.{ending}", case.id)), voxels)
            };
            let image = if flat { Voxels::U16(gray(&case)) } else { Voxels::F32(case.image.clone()) };
            save(&images, String::new(), image)?;
            for (number, rater) in case.raters.iter().enumerate() {
                save(&labels, format!("_{number}"), Voxels::U8(self.stored(rater, flat)))?;
            }
            if let Some(mask) = &case.mask {
                save(&masks, String::new(), Voxels::U8(mask.clone()))?;
            }
            Ok(())
        };
        let written = parallel::map(self.len(), progress, write);
        parallel::all_or_error(written, |index| self.id(index)).map(drop)
    }

    fn stored(&self, labels: &[u8], flat: bool) -> Vec<u8> {
        let is_mask = flat && self.config.classes == 2;
        labels.iter().map(|&label| if is_mask { label * WHITE } else { label }).collect()
    }
}

impl Cases for Synthetic {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn id(&self, index: usize) -> &str {
        self.ids.get(index).map_or("", String::as_str)
    }

    fn rater_count(&self, _: usize) -> usize {
        self.config.raters
    }

    fn load(&self, index: usize) -> Result<Case> {
        let id = self.ids.get(index).ok_or_else(|| no_such_case(index, self.ids.len()))?;
        let scene = self.scene(index);
        Ok(Case {
            id: id.clone(),
            channels: 1,
            shape: self.config.size,
            image: scene.image(),
            raters: self.label_maps(index, 0..self.config.raters as u64),
            mask: self.config.mask.then(|| scene.body()),
            ..Case::default()
        })
    }
}

/// What a synthetic set is like. The default is that of the demo: 64 × 64 pixels, two classes, four raters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SyntheticConfig {
    /// The seed: one seed is one set.
    #[serde(with = "crate::seed")]
    pub seed: u64,
    /// How many cases there are.
    pub cases: usize,
    /// `[d, h, w]`; depth 1 is 2D.
    pub size: [usize; 3],
    /// Raters per case.
    pub raters: usize,
    /// 2: background and lesion. 3: a core inside the lesion as well.
    pub classes: usize,
    /// The largest number of lesions of an image; there is at least one.
    pub lesions: usize,
    /// The share of lesions so faint that some raters do not see them.
    pub faint: f64,
    /// How much of a rater's level and sensitivity is common to all lesions of an image: the correlation between them.
    pub correlation: f64,
    /// The share of raters who follow the spikes of a lesion.
    pub spiky: f64,
    /// The standard deviation of the noise of the image; tissue is about 0.45 and lesions 0.1 to 0.4 brighter.
    pub noise: f64,
    /// Whether cases have a mask of the body.
    pub mask: bool,
}

impl Default for SyntheticConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            cases: 200,
            size: [1, 64, 64],
            raters: 4,
            classes: 2,
            lesions: 2,
            faint: 0.4,
            correlation: 0.5,
            spiky: 0.5,
            noise: 0.03,
            mask: false,
        }
    }
}

/// The smallest side of an image on which a lesion is more than a dot.
const SMALLEST: usize = 16;

impl SyntheticConfig {
    /// A volume of 48³ voxels with a mask.
    pub fn volume() -> Self {
        Self { size: [48, 48, 48], mask: true, ..Self::default() }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        let whole = [
            ("synthetic.cases", self.cases, 1, 10_000_000),
            ("synthetic.size[0]", self.size[0], 1, 1024),
            ("synthetic.size[1]", self.size[1], SMALLEST, 1024),
            ("synthetic.size[2]", self.size[2], SMALLEST, 1024),
            ("synthetic.raters", self.raters, 1, 1000),
            ("synthetic.classes", self.classes, 2, 3),
            ("synthetic.lesions", self.lesions, 1, 8),
        ];
        for (field, value, low, high) in whole {
            if !(low..=high).contains(&value) {
                return Err(Error::setting(field, value, format!("between {low} and {high}")));
            }
        }
        if (2..SMALLEST).contains(&self.size[0]) {
            let expected = format!("1 for pictures, or at least {SMALLEST}");
            return Err(Error::setting("synthetic.size[0]", self.size[0], expected));
        }
        let shares = [
            ("synthetic.faint", self.faint),
            ("synthetic.correlation", self.correlation),
            ("synthetic.spiky", self.spiky),
            ("synthetic.noise", self.noise),
        ];
        for (field, value) in shares {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::setting(field, value, "between 0 and 1"));
            }
        }
        Ok(())
    }
}

/// Label 1 of pictures with two classes, so that masks are white on black.
const WHITE: u8 = u8::MAX;

/// Values from 0 to 1 as 16 bits: finer than the noise.
fn gray(case: &Case) -> Vec<u16> {
    case.image.iter().map(|x| (x.clamp(0.0, 1.0) * f32::from(u16::MAX)).round() as u16).collect()
}

/// Attempts to place a lesion clear of the others before going without it.
const ATTEMPTS: usize = 50;

fn length(v: [f32; 3]) -> f32 {
    v.iter().map(|x| x * x).sum::<f32>().sqrt()
}

fn distance(a: [f32; 3], b: [f32; 3]) -> f32 {
    length([0, 1, 2].map(|k| a[k] - b[k]))
}

/// A piece of a vessel: a short tube, bright and with a sharp border, that no rater marks.
#[derive(Debug, Clone, Copy)]
struct Vessel {
    from: [f32; 3],
    to: [f32; 3],
    radius: f32,
    contrast: f32,
}

/// Everything about a case that does not depend on a rater.
#[derive(Debug, Clone)]
pub struct Scene {
    /// `[d, h, w]`.
    pub size: [usize; 3],
    /// The lesions; they do not touch.
    pub lesions: Vec<Lesion>,
    classes: usize,
    spiky: f64,
    noise: f32,
    /// Half-axes and center of the body.
    axes: [f32; 3],
    middle: [f32; 3],
    vessels: Vec<Vessel>,
    texture: [u32; 2],
    grain: u64,
    /// The voxels that each lesion can reach, as seen from it.
    seen: Vec<Vec<(usize, LesionVoxel)>>,
}

impl Scene {
    fn draw(config: &SyntheticConfig, stream: &mut RandomStream) -> Self {
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

    /// The distance from the center of the body as a share of its radius: below 1 inside.
    fn depth(&self, at: [f32; 3]) -> f32 {
        (0..3).map(|k| ((at[k] - self.middle[k]) / self.axes[k]).powi(2)).sum::<f32>().sqrt()
    }

    /// The region of interest `[d, h, w]`: 1 in the body, 0 in the air around it.
    pub fn body(&self) -> Vec<u8> {
        self.voxels().map(|at| u8::from(self.depth(at) <= 1.0)).collect()
    }

    fn voxels(&self) -> impl Iterator<Item = [f32; 3]> + use<> {
        let [d, h, w] = self.size;
        (0..d * h * w).map(move |voxel| [voxel / (h * w), voxel / w % h, voxel % w].map(|x| x as f32))
    }

    /// The voxels of the body that a lesion can reach.
    fn around(&self, lesion: &Lesion) -> Vec<(usize, LesionVoxel)> {
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
    fn inner_point(&self, share: f32, stream: &mut RandomStream) -> [f32; 3] {
        loop {
            let unit =
                [0, 1, 2].map(|k| if self.size[k] == 1 { 0.0 } else { stream.uniform_in(-1.0, 1.0) as f32 });
            if unit.iter().map(|x| x * x).sum::<f32>() <= 1.0 {
                return [0, 1, 2].map(|k| self.middle[k] + share * self.axes[k] * unit[k]);
            }
        }
    }

    /// Adds a vessel: a random walk of short tubes that keeps clear of lesions, so that it hides nothing.
    fn grow_vessel(&mut self, stream: &mut RandomStream) {
        let scale = self.size[2] as f32 / 64.0;
        let radius = scale.max(0.8) * stream.uniform_in(0.6, 1.1) as f32;
        let contrast = stream.uniform_in(0.1, 0.22) as f32;
        let mut from = self.inner_point(0.85, stream);
        let mut direction = [0, 1, 2].map(|k| if self.size[k] == 1 { 0.0 } else { stream.normal() as f32 });
        for _ in 0..3 + stream.below(4) {
            let length = length(direction).max(1e-3);
            let to = [0, 1, 2].map(|k| from[k] + 3.5 * scale * direction[k] / length);
            let free = |lesion: &Lesion| distance(lesion.center, to) > 1.8 * lesion.radius;
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
    fn place_lesion(&mut self, faint: bool, stream: &mut RandomStream) {
        let side = self.size.iter().filter(|&&n| n > 1).min().copied().unwrap_or(1) as f32;
        for _ in 0..ATTEMPTS {
            let radius = side * stream.uniform_in(0.07, 0.14) as f32;
            let lesion = Lesion::draw(self.inner_point(0.68, stream), radius, faint, stream);
            let clear =
                |other: &Lesion| distance(other.center, lesion.center) > other.reach() + lesion.reach();
            if self.lesions.iter().all(clear) {
                self.lesions.push(lesion);
                return;
            }
        }
    }

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
        for (octave, (cell, amplitude)) in TEXTURES.into_iter().enumerate() {
            let per_voxel = 1.0 / (cell * width as f32).max(2.0);
            let key = [self.texture[0], self.texture[1].wrapping_add(octave as u32)];
            let high = self.size.map(|n| n as f32 * per_voxel);
            let high = if depth == 1 { [0.0, high[1], high[2]] } else { high };
            let noise = PerlinNoise::<1>::new(key, depth == 1, [0.0; 3], high);
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

    /// The label map `[d, h, w]` that a rater draws.
    pub fn labels(&self, rater: &SyntheticRater) -> Vec<u8> {
        let mut labels = vec![0; self.size.iter().product()];
        for (number, lesion) in self.lesions.iter().enumerate() {
            if rater.reluctance[number] > lesion.visibility {
                continue;
            }
            for &(voxel, seen) in &self.seen[number] {
                if lesion.level_needed(seen, rater.spiky) > rater.level[number] {
                    continue;
                }
                let core = self.classes == 3 && lesion.core_level_needed(seen) <= rater.core_level[number];
                labels[voxel] = if core { 2 } else { 1 };
            }
        }
        labels
    }

    /// The probability of every voxel `[d, h, w]` to be marked by a rater, as anything but background.
    pub fn marginal(&self) -> Vec<f64> {
        let mut probabilities = vec![0.0; self.size.iter().product()];
        for (number, lesion) in self.lesions.iter().enumerate() {
            let marked = normal_below(f64::from(lesion.visibility));
            for &(voxel, seen) in &self.seen[number] {
                let inside = |spiky| match lesion.level_needed(seen, spiky) {
                    level if level > LARGEST_LEVEL => 0.0,
                    level if level <= -LARGEST_LEVEL => 1.0,
                    level => normal_below(f64::from(-level)),
                };
                let share = self.spiky * inside(true) + (1.0 - self.spiky) * inside(false);
                probabilities[voxel] += marked * share;
            }
        }
        probabilities
    }
}

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
const CORE: f32 = 0.5;

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
    shape: PerlinNoise<1>,
    spike: PerlinNoise<1>,
    phase: [f32; 3],
}

/// A voxel in the coordinates of a lesion.
#[derive(Debug, Clone, Copy)]
struct LesionVoxel {
    /// The distance from the center; 1 is the border.
    distance: f32,
    /// How much further out the border is for raters who follow the spikes.
    spike: f32,
}

impl Lesion {
    /// A lesion at a place; `faint` ones are missed by some raters.
    fn draw(center: [f32; 3], radius: f32, faint: bool, stream: &mut RandomStream) -> Self {
        // Faint: a probability of about ¼ to ¾ of being marked. Otherwise at least 99.9 %.
        let share = stream.uniform() as f32;
        let (contrast, visibility) =
            if faint { (0.1 + 0.06 * share, -0.7 + 1.4 * share) } else { (0.26 + 0.14 * share, 3.1) };
        let rim = stream.uniform_in(0.12, 0.45) as f32;
        let spikes = stream.uniform_in(0.25, 0.6) as f32;
        let mut noise = |cells: f32| {
            let key = [stream.next_u32(), stream.next_u32()];
            PerlinNoise::new(key, false, [-cells; 3], [cells + 1.0; 3])
        };
        let (shape, spike) = (noise(SHAPE_CELLS), noise(SPIKE_CELLS));
        let phase = [0; 3].map(|_| stream.uniform_in(0.2, 0.8) as f32);
        Self { center, radius, contrast, visibility, rim, spikes, shape, spike, phase }
    }

    /// The distance in voxels beyond which neither image nor raters show anything of the lesion.
    fn reach(&self) -> f32 {
        self.radius * (1.0 + SHAPE * 0.87) * (1.0 + self.spikes + 1.25 * self.rim.max(0.1))
    }

    /// How far a standard normal level moves the border, as a share of the radius.
    fn level_deviation(&self) -> f32 {
        LEVEL_SHARE * self.rim
    }

    fn see(&self, voxel: [f32; 3]) -> LesionVoxel {
        let from = [0, 1, 2].map(|k| voxel[k] - self.center[k]);
        let length = length(from);
        let unit = from.map(|x| x / length.max(1e-3));
        let at = |cells: f32| [0, 1, 2].map(|k| unit[k] * cells + self.phase[k]);
        let [shape] = self.shape.at(at(SHAPE_CELLS));
        let [spike] = self.spike.at(at(SPIKE_CELLS));
        let spike = (spike / SPIKE_FULL).clamp(0.0, 1.0);
        let distance = length / (self.radius * (1.0 + SHAPE * shape));
        LesionVoxel { distance, spike: self.spikes * spike * spike }
    }

    /// The level at which a voxel becomes part of the lesion, for a style.
    fn level_needed(&self, seen: LesionVoxel, spiky: bool) -> f32 {
        let border = 1.0 + if spiky { seen.spike } else { 0.0 };
        (seen.distance - border) / self.level_deviation()
    }

    /// The level at which a voxel becomes part of the core.
    fn core_level_needed(&self, seen: LesionVoxel) -> f32 {
        (seen.distance / CORE - 1.0) / self.level_deviation()
    }

    /// What a lesion adds to the image: its border fades over the rim, spikes are half as bright as the lesion.
    fn brightness(&self, seen: LesionVoxel, core: bool) -> f32 {
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

/// Levels are cut off here, so that no border moves without bound.
const LARGEST_LEVEL: f32 = 2.2;

/// A rater of one case.
///
/// For lesions l = 1 … L and ρ = `correlation`, with standard normal a, a_l, b and b_l:
///
/// - style: spiky with probability `spiky`, for all lesions;
/// - sight: g_l = √ρ·a + √(1−ρ)·a_l; lesion l is marked if g_l ≤ τ_l, which depends on its contrast: −0.7 … 0.7 for faint
///   lesions, 3.1 for others;
/// - level: e_l = √ρ·b + √(1−ρ)·b_l, cut off at ±2.2.
///
/// A voxel in direction u from the center of a marked lesion, at distance δ (1 is the border), is part of it if
/// δ ≤ 1 + σ_l·e_l + \[spiky\]·s_l(u), with σ_l = 0.55 · rim_l and s_l(u) the length of the spike. With three classes, a darker
/// core ends at δ/0.5 ≤ 1 + σ_l·e′_l, where e′_l shares b with e_l.
#[derive(Debug, Clone, PartialEq)]
pub struct SyntheticRater {
    /// Whether the rater follows spikes.
    pub spiky: bool,
    /// For each lesion, a standard normal number: the lesion is marked if its visibility is not below it.
    pub reluctance: Vec<f32>,
    /// For each lesion, a standard normal number, cut off at ±2.2: how far out the rater draws its border.
    pub level: Vec<f32>,
    /// The same for the border of its core.
    pub core_level: Vec<f32>,
}

impl SyntheticRater {
    fn draw(config: &SyntheticConfig, lesions: usize, stream: &mut RandomStream) -> Self {
        let spiky = stream.chance(config.spiky);
        let (common, own) = (config.correlation.sqrt(), (1.0 - config.correlation).sqrt());
        let [sight, habit] = [stream.normal(), stream.normal()];
        let mut rater = Self { spiky, reluctance: vec![], level: vec![], core_level: vec![] };
        let cut = |level: f64| (level as f32).clamp(-LARGEST_LEVEL, LARGEST_LEVEL);
        for _ in 0..lesions {
            rater.reluctance.push((common * sight + own * stream.normal()) as f32);
            rater.level.push(cut(common * habit + own * stream.normal()));
            rater.core_level.push(cut(common * habit + own * stream.normal()));
        }
        rater
    }
}

/// The probability of a standard normal number to be below x, to 1.5e-7 (Abramowitz and Stegun, formula 7.1.26).
fn normal_below(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let coefficients = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let tail = coefficients.iter().rev().fold(0.0, |sum, c| (sum + c) * t) * (-z * z).exp() / 2.0;
    if x < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use ssn_core::metrics::ged;
    use ssn_core::{BitPlanes, LabelMap};

    use super::*;

    fn set(config: SyntheticConfig) -> Synthetic {
        Synthetic::new(config).unwrap()
    }

    fn planes(maps: &[Vec<u8>]) -> Vec<BitPlanes> {
        maps.iter().map(|labels| BitPlanes::new(&LabelMap::new(labels.clone(), 2).unwrap())).collect()
    }

    #[test]
    fn a_case_is_a_function_of_seed_and_number() {
        let config = SyntheticConfig { cases: 5, ..SyntheticConfig::default() };
        let (first, again) = (set(config.clone()), set(SyntheticConfig { cases: 9, ..config.clone() }));
        let other = set(SyntheticConfig { seed: 1, ..config });
        for case in 0..5 {
            assert_eq!(first.load(case).unwrap(), again.load(case).unwrap());
            assert_ne!(first.load(case).unwrap().image, other.load(case).unwrap().image);
        }
        assert_ne!(first.load(0).unwrap().image, first.load(1).unwrap().image);
        assert_eq!((first.len(), first.id(2)), (5, "synthetic-00002"));
        assert!(first.load(5).is_err());
        // Further raters continue those of the set, and the image does not depend on how many there are.
        let many =
            set(SyntheticConfig { cases: 5, raters: 7, ..SyntheticConfig::default() }).load(3).unwrap();
        assert_eq!(many.raters[..4], first.load(3).unwrap().raters[..]);
        assert_eq!(many.raters[6], first.label_maps(3, 6..7)[0]);
        assert_eq!(many.image, first.load(3).unwrap().image);
    }

    #[test]
    fn volumes_and_three_classes_work() {
        let set =
            set(SyntheticConfig { cases: 4, classes: 3, size: [32, 40, 48], ..SyntheticConfig::volume() });
        let mut seen = [0usize; 3];
        for index in 0..4 {
            let case = set.load(index).unwrap();
            assert_eq!((case.image.len(), case.raters.len()), (32 * 40 * 48, 4));
            let mask = case.mask.unwrap();
            assert!(case.image.iter().all(|x| x.is_finite() && (-0.3..1.6).contains(x)));
            for labels in &case.raters {
                labels.iter().for_each(|&label| seen[label as usize] += 1);
                assert!(labels.iter().zip(&mask).all(|(label, mask)| *label == 0 || *mask == 1));
            }
        }
        assert!(seen[1] > 500 && seen[2] > 100, "{seen:?}");
    }

    #[test]
    fn the_marginal_is_that_of_the_raters() {
        let set = set(SyntheticConfig { cases: 6, ..SyntheticConfig::default() });
        let draws = 2000;
        for case in 0..6 {
            let scene = set.scene(case);
            let exact = scene.marginal();
            let mut counts = vec![0u32; exact.len()];
            for labels in set.label_maps(case, 0..draws) {
                labels.iter().zip(&mut counts).for_each(|(label, count)| *count += u32::from(*label > 0));
            }
            // Five standard errors at ½.
            let error = 5.0 * 0.5 / (draws as f64).sqrt();
            for (count, exact) in counts.iter().zip(&exact) {
                assert!(
                    (f64::from(*count) / draws as f64 - exact).abs() < error,
                    "{count} of {draws}, not {exact}"
                );
            }
        }
    }

    /// Levels and sight of a rater are correlated between lesions as the settings say.
    #[test]
    fn raters_are_correlated_between_lesions_as_documented() {
        let set = set(SyntheticConfig { cases: 1, correlation: 0.6, ..SyntheticConfig::default() });
        let raters: Vec<SyntheticRater> = (0..20_000).map(|number| set.rater_of(0, 2, number)).collect();
        let correlation = |a: &dyn Fn(&SyntheticRater) -> f32, b: &dyn Fn(&SyntheticRater) -> f32| {
            raters.iter().map(|rater| a(rater) * b(rater)).sum::<f32>() / raters.len() as f32
        };
        let sight = correlation(&|rater| rater.reluctance[0], &|rater| rater.reluctance[1]);
        let unrelated = correlation(&|rater| rater.reluctance[0], &|rater| rater.level[0]);
        let level = correlation(&|rater| rater.level[0], &|rater| rater.level[1]);
        assert!((sight - 0.6).abs() < 0.04 && unrelated.abs() < 0.04, "{sight} {unrelated}");
        // Cutting levels off at 2.2 takes about a twentieth of their variance.
        assert!((level - 0.58).abs() < 0.05, "{level}");
        let spiky = raters.iter().filter(|rater| rater.spiky).count();
        assert!((9600..10_400).contains(&spiky), "{spiky}");
    }

    /// Independent pixels with the exact marginal are far from the raters; further raters are not.
    #[test]
    fn independent_pixels_cannot_be_the_raters() {
        let set = set(SyntheticConfig { cases: 20, ..SyntheticConfig::default() });
        let (mut joint, mut independent) = (0.0, 0.0);
        for case in 0..20 {
            let raters = planes(&set.label_maps(case, 0..30));
            let further = planes(&set.label_maps(case, 30..60));
            let marginal = set.scene(case).marginal();
            let mut stream = RandomStream::new(case as u64, Purpose::Patch, 0);
            let pixels: Vec<Vec<u8>> =
                (0..30).map(|_| marginal.iter().map(|&p| u8::from(stream.chance(p))).collect()).collect();
            joint += ged(&further, &raters).unwrap().squared / 20.0;
            independent += ged(&planes(&pixels), &raters).unwrap().squared / 20.0;
        }
        println!("GED² of further raters {joint:.4}, of independent pixels {independent:.4}");
        assert!(joint < 0.05 && independent > 5.0 * joint, "{joint} {independent}");
    }

    /// Raters disagree in presence, extent and style.
    #[test]
    fn raters_differ_in_presence_extent_and_style() {
        let set = set(SyntheticConfig { cases: 60, lesions: 1, ..SyntheticConfig::default() });
        let (mut some_empty, mut all_empty) = (0, 0);
        for case in 0..60 {
            let maps = set.label_maps(case, 0..4);
            let empty = maps.iter().filter(|labels| labels.iter().all(|&label| label == 0)).count();
            some_empty += usize::from((1..4).contains(&empty));
            all_empty += usize::from(empty == 4);
        }
        assert!((10..40).contains(&some_empty) && all_empty < 12, "{some_empty} {all_empty}");

        let scene = (0..60).map(|case| set.scene(case)).find(|scene| scene.lesions[0].rim > 0.3).unwrap();
        let volume = |level: f32, spiky: bool| {
            let rater =
                SyntheticRater { spiky, reluctance: vec![-9.0], level: vec![level], core_level: vec![0.0] };
            scene.labels(&rater).iter().filter(|&&label| label > 0).count()
        };
        assert!(volume(1.0, false) as f64 > 1.3 * volume(-1.0, false) as f64);
        assert!(volume(0.0, true) > volume(0.0, false));
    }

    #[test]
    fn settings_survive_a_config_file_and_are_checked() {
        let config = SyntheticConfig { classes: 3, ..SyntheticConfig::volume() };
        let text = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<SyntheticConfig>(&text).unwrap(), config);
        assert_eq!(toml::from_str::<SyntheticConfig>("").unwrap(), SyntheticConfig::default());
        assert!(toml::from_str::<SyntheticConfig>("classe = 3").is_err());
        for wrong in [
            SyntheticConfig { classes: 4, ..config.clone() },
            SyntheticConfig { size: [4, 64, 64], ..config.clone() },
            SyntheticConfig { faint: f64::NAN, ..config.clone() },
            SyntheticConfig { cases: 0, ..config },
        ] {
            assert!(Synthetic::new(wrong).is_err());
        }
    }
}
