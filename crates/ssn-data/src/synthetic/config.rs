//! The settings of a synthetic set.

use serde::{Deserialize, Serialize};

use crate::error::{DataError, Result};

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
                return Err(setting(field, value.to_string(), format!("between {low} and {high}")));
            }
        }
        if (2..SMALLEST).contains(&self.size[0]) {
            let expected = format!("1 for pictures, or at least {SMALLEST}");
            return Err(setting("synthetic.size[0]", self.size[0].to_string(), expected));
        }
        let shares = [
            ("synthetic.faint", self.faint),
            ("synthetic.correlation", self.correlation),
            ("synthetic.spiky", self.spiky),
            ("synthetic.noise", self.noise),
        ];
        for (field, value) in shares {
            if !(0.0..=1.0).contains(&value) {
                return Err(setting(field, value.to_string(), "between 0 and 1".to_owned()));
            }
        }
        Ok(())
    }
}

fn setting(field: &'static str, value: String, expected: String) -> DataError {
    DataError::Setting { field, value, expected }
}
