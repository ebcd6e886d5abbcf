//! The settings of augmentation, as config files write them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::preset::Preset;
use crate::error::{DataError, Result};
use crate::gather::LabelInterpolation;

/// An axis of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Through the slices.
    D,
    /// Down a slice.
    H,
    /// Along a row.
    W,
}

/// One kind of random change. Each happens to a patch with its `probability`, independently of the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Augmentation {
    /// Mirrors an axis.
    Flip {
        /// The axis.
        axis: Axis,
        /// How often.
        probability: f64,
    },
    /// Turns slices by 90°, 180° or 270°, each equally often; patches whose sides differ, by 180° only.
    Turn {
        /// How often.
        probability: f64,
    },
    /// Rotates by a uniform angle, in millimeters, so that oblong voxels do not shear.
    Rotate {
        /// The largest angle within the slice.
        degrees: f64,
        /// The largest angle about each of the two other axes; nothing in 2D.
        #[serde(default)]
        tilt: f64,
        /// How often.
        probability: f64,
    },
    /// Enlarges (above 1) or shrinks by a factor whose logarithm is uniform.
    Scale {
        /// The smallest factor.
        low: f64,
        /// The largest factor.
        high: f64,
        /// How often.
        probability: f64,
    },
    /// Cuts a random square out of the slice and enlarges it to the size of the patch.
    CropAndResize {
        /// The smallest side in voxels.
        smallest: usize,
        /// The largest side in voxels; never more than the patch has.
        largest: usize,
        /// How often.
        probability: f64,
    },
    /// Both or neither: a rotation within the slice, then a random square of it enlarged.
    RotateThenCrop {
        /// The largest angle.
        degrees: f64,
        /// The smallest side in voxels.
        smallest: usize,
        /// The largest side in voxels; never more than the patch has.
        largest: usize,
        /// How often.
        probability: f64,
    },
    /// Deforms by smooth noise.
    Elastic {
        /// The distance in voxels over which displacements change.
        cell: f64,
        /// The displacement in voxels where the noise is 1.
        amplitude: f64,
        /// How often.
        probability: f64,
    },
    /// Multiplies by N(1, `deviation`) and adds U(`low`, `high`), anew for every channel.
    ScaleAndShift {
        /// The standard deviation of the factor.
        deviation: f64,
        /// The smallest summand.
        low: f64,
        /// The largest summand.
        high: f64,
        /// How often.
        probability: f64,
    },
    /// Adds independent normal numbers to all voxels, of a uniform deviation.
    Noise {
        /// The smallest standard deviation.
        low: f64,
        /// The largest standard deviation.
        high: f64,
        /// How often.
        probability: f64,
    },
    /// Bends the gray values between the patch's smallest and largest by a power, anew for every channel.
    Gamma {
        /// The smallest exponent; its logarithm is uniform.
        low: f64,
        /// The largest exponent.
        high: f64,
        /// How often.
        probability: f64,
    },
}

/// How patches are changed.
///
/// Config files may name a `preset`: its steps come first, then those that are listed; `labels` that are written
/// replace those of the preset.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Written", into = "Written")]
pub struct AugmentConfig {
    /// How labels between voxels are chosen.
    pub labels: LabelInterpolation,
    /// The changes, in the order in which they happen.
    pub steps: Vec<Augmentation>,
}

/// The section `[augmentation]` as it is written.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Written {
    /// The steps of a preset come first.
    preset: Preset,
    /// How labels between voxels are chosen; nothing means as in the preset.
    labels: Option<LabelInterpolation>,
    /// Further changes, in the order in which they happen.
    steps: Vec<Augmentation>,
}

impl From<Written> for AugmentConfig {
    fn from(written: Written) -> Self {
        let preset = written.preset.config();
        let steps = preset.steps.into_iter().chain(written.steps).collect();
        Self { labels: written.labels.unwrap_or(preset.labels), steps }
    }
}

/// With a preset of no steps, so that a file that lists them all can lie on top of one that names a preset.
impl From<AugmentConfig> for Written {
    fn from(AugmentConfig { labels, steps }: AugmentConfig) -> Self {
        Self { preset: Preset::None, labels: Some(labels), steps }
    }
}

impl Augmentation {
    /// How often the change happens.
    pub fn probability(&self) -> f64 {
        match *self {
            Self::Flip { probability, .. }
            | Self::Turn { probability }
            | Self::Rotate { probability, .. }
            | Self::Scale { probability, .. }
            | Self::CropAndResize { probability, .. }
            | Self::RotateThenCrop { probability, .. }
            | Self::Elastic { probability, .. }
            | Self::ScaleAndShift { probability, .. }
            | Self::Noise { probability, .. }
            | Self::Gamma { probability, .. } => probability,
        }
    }

    fn check(&self) -> Result<()> {
        range("augmentation.probability", self.probability(), 0.0, 1.0)?;
        match *self {
            Self::Flip { .. } | Self::Turn { .. } => Ok(()),
            Self::Rotate { degrees, tilt, .. } => {
                range("augmentation.degrees", degrees, 0.0, 180.0)?;
                range("augmentation.tilt", tilt, 0.0, 180.0)
            }
            Self::Scale { low, high, .. } => {
                range("augmentation.low", low, 0.01, 100.0)?;
                range("augmentation.high", high, low, 100.0)
            }
            Self::CropAndResize { smallest, largest, .. } => crop(smallest, largest),
            Self::RotateThenCrop { degrees, smallest, largest, .. } => {
                range("augmentation.degrees", degrees, 0.0, 180.0)?;
                crop(smallest, largest)
            }
            Self::Elastic { cell, amplitude, .. } => {
                range("augmentation.cell", cell, 1.0, 1e6)?;
                // The noise changes by less than 2 per cell: beyond half a cell, the image would fold.
                range("augmentation.amplitude", amplitude, 0.0, cell / 2.0)
            }
            Self::ScaleAndShift { deviation, low, high, .. } => {
                range("augmentation.deviation", deviation, 0.0, 1.0)?;
                range("augmentation.low", low, -1e6, 1e6)?;
                range("augmentation.high", high, low, 1e6)
            }
            Self::Noise { low, high, .. } => {
                range("augmentation.low", low, 0.0, 1e6)?;
                range("augmentation.high", high, low, 1e6)
            }
            Self::Gamma { low, high, .. } => {
                range("augmentation.low", low, 0.01, 100.0)?;
                range("augmentation.high", high, low, 100.0)
            }
        }
    }
}

impl AugmentConfig {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.steps.iter().try_for_each(Augmentation::check)
    }
}

fn crop(smallest: usize, largest: usize) -> Result<()> {
    range("augmentation.smallest", smallest as f64, 1.0, 1e6)?;
    range("augmentation.largest", largest as f64, smallest as f64, 1e6)
}

fn range(field: &'static str, value: f64, low: f64, high: f64) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(DataError::Setting { field, value: value.to_string(), expected: format!("between {low} and {high}") })
}
