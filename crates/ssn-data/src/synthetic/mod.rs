//! Synthetic images with ambiguous lesions and any number of raters, made from a seed; no files.
//!
//! A scene is what one image shows: tissue with vessels, and lesions whose faintness, blurred borders and spikes say what
//! raters may disagree about, but not how they decide. A rater is a few random numbers; given those, a label map
//! follows. So the true distribution over label maps is known, and can be drawn from without end: see
//! `docs/concepts/synthetic.md`.

mod config;
mod files;
mod image;
mod lesion;
mod rater;
mod scene;

pub use config::SyntheticConfig;
pub use lesion::Lesion;
pub use rater::Rater;
pub use scene::Scene;

use ssn_core::random::derive_seed;
use ssn_io::Geometry;

use crate::case::{Case, Cases};
use crate::error::{DataError, Result};
use crate::random::{Purpose, Stream};

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

    /// The settings.
    pub fn config(&self) -> &SyntheticConfig {
        &self.config
    }

    /// What the image of a case shows.
    pub fn scene(&self, case: usize) -> Scene {
        Scene::draw(&self.config, &mut Stream::new(self.seed(case), Purpose::Synthetic, 0))
    }

    /// A rater of a case. The raters of the set are the first `config.raters` of an endless sequence, all drawn from
    /// the same distribution.
    pub fn rater(&self, case: usize, number: u64) -> Rater {
        let lesions = self.scene(case).lesions.len();
        self.rater_of(case, lesions, number)
    }

    /// The label map `[d, h, w]` of a rater of a case.
    pub fn labels(&self, case: usize, number: u64) -> Vec<u8> {
        self.scene(case).labels(&self.rater(case, number))
    }

    /// The label maps of several raters of a case.
    pub fn label_maps(&self, case: usize, numbers: std::ops::Range<u64>) -> Vec<Vec<u8>> {
        let scene = self.scene(case);
        numbers.map(|number| scene.labels(&self.rater_of(case, scene.lesions.len(), number))).collect()
    }

    fn rater_of(&self, case: usize, lesions: usize, number: u64) -> Rater {
        let mut stream = Stream::new(self.seed(case), Purpose::Synthetic, number.wrapping_add(1));
        Rater::draw(&self.config, lesions, &mut stream)
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
        let Some(id) = self.ids.get(index) else {
            return Err(DataError::Case {
                id: format!("number {index}"),
                reason: format!("the set has only {} cases", self.ids.len()),
                advice: "ask for a smaller number",
            });
        };
        let scene = self.scene(index);
        Ok(Case {
            id: id.clone(),
            channels: 1,
            shape: self.config.size,
            image: scene.image(),
            raters: self.label_maps(index, 0..self.config.raters as u64),
            rater_numbers: vec![],
            mask: self.config.mask.then(|| scene.body()),
            geometry: Geometry::default(),
        })
    }
}

#[cfg(test)]
mod tests;
