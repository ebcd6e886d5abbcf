//! Synthetic images with ambiguous lesions and any number of raters, made from a seed; no files.
//!
//! A scene is what one image shows: tissue with vessels, and lesions whose faintness, blurred borders and spikes say what
//! raters may disagree about, but not how they decide. A rater is a few random numbers; given those, a label map
//! follows. So the true distribution over label maps is known, and can be drawn from without end: see
//! `docs/concepts/synthetic.md`.

mod scene;

pub use scene::{Scene, SyntheticRater};

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use ssn_core::random::derive_seed;
use ssn_io::{Problem, Voxels};

use crate::dataset::{Case, Cases, no_such_case};
use crate::error::{DataError, Result};
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
}

impl Cases for Synthetic {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn id(&self, index: usize) -> &str {
        self.ids.get(index).map_or("", String::as_str)
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
                return Err(DataError::setting(field, value, format!("between {low} and {high}")));
            }
        }
        if (2..SMALLEST).contains(&self.size[0]) {
            let expected = format!("1 for pictures, or at least {SMALLEST}");
            return Err(DataError::setting("synthetic.size[0]", self.size[0], expected));
        }
        let shares = [
            ("synthetic.faint", self.faint),
            ("synthetic.correlation", self.correlation),
            ("synthetic.spiky", self.spiky),
            ("synthetic.noise", self.noise),
        ];
        for (field, value) in shares {
            if !(0.0..=1.0).contains(&value) {
                return Err(DataError::setting(field, value, "between 0 and 1"));
            }
        }
        Ok(())
    }
}

/// Label 1 of pictures with two classes, so that masks are white on black.
const WHITE: u8 = u8::MAX;

impl Synthetic {
    /// Writes the set into a folder: 2D as PNG of 16 bits, 3D as NIfTI. The labels of rater n end in `_n`; masks, if
    /// there are any, are in a third folder. `progress` gets the number of cases done.
    pub fn write(&self, folder: &Path, progress: &dyn Fn(usize)) -> Result<()> {
        let flat = self.config.size[0] == 1;
        let ending = if flat { "png" } else { "nii.gz" };
        let [images, labels, masks] = ["images", "labels", "masks"].map(|name| folder.join(name));
        for folder in [&images, &labels].into_iter().chain(self.config.mask.then_some(&masks)) {
            fs::create_dir_all(folder).map_err(|error| Problem::Io(error).in_file(folder))?;
        }
        for index in 0..self.len() {
            let case = self.load(index)?;
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
            progress(index + 1);
        }
        Ok(())
    }

    fn stored(&self, labels: &[u8], flat: bool) -> Vec<u8> {
        let is_mask = flat && self.config.classes == 2;
        labels.iter().map(|&label| if is_mask { label * WHITE } else { label }).collect()
    }
}

/// Values from 0 to 1 as 16 bits: finer than the noise.
fn gray(case: &Case) -> Vec<u16> {
    case.image.iter().map(|x| (x.clamp(0.0, 1.0) * f32::from(u16::MAX)).round() as u16).collect()
}

#[cfg(test)]
mod tests {
    use ssn_core::metrics::{PairStatistic, ged};
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
            joint += ged(&further, &raters, PairStatistic::V).unwrap().squared / 20.0;
            independent += ged(&planes(&pixels), &raters, PairStatistic::V).unwrap().squared / 20.0;
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
