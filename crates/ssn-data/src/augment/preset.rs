//! The augmentations of the paper's experiments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::{AugmentConfig, Augmentation, Axis};
use crate::gather::LabelInterpolation;

/// A choice of augmentations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// No change at all.
    #[default]
    None,
    /// The 2D experiment as the paper describes it: flips, rotation, scaling. It gives no ranges; ours follow those of
    /// the authors' code.
    Lidc,
    /// The 2D experiment as the authors' code runs: with probability ½ a rotation of up to 10°, then a random square of
    /// 98 to 128 voxels enlarged to 128, labels by the largest share of their linear interpolation; flips are never
    /// done. Outside of the image its border repeats, where that code fills with 0.
    LidcAsCoded,
    /// The 3D experiment: elastic deformation, right-angle turns, flips, linear changes of intensity.
    Brats,
}

impl Preset {
    /// The settings.
    pub fn config(self) -> AugmentConfig {
        let flip = |axis| Augmentation::Flip { axis, probability: 0.5 };
        let steps = match self {
            Self::None => vec![],
            Self::Lidc => vec![
                flip(Axis::H),
                flip(Axis::W),
                Augmentation::Rotate { degrees: 10.0, tilt: 0.0, probability: 0.5 },
                // The largest factor is that of the smallest crop, 128 / 98; the smallest is its inverse.
                Augmentation::Scale { low: 98.0 / 128.0, high: 128.0 / 98.0, probability: 0.5 },
            ],
            Self::LidcAsCoded => vec![Augmentation::RotateThenCrop {
                degrees: 10.0,
                smallest: 98,
                largest: 128,
                probability: 0.5,
            }],
            Self::Brats => vec![
                Augmentation::Elastic { cell: 80.0, amplitude: 20.0, probability: 0.5 },
                Augmentation::ScaleAndShift { deviation: 0.01, low: 0.0, high: 0.05, probability: 0.5 },
                Augmentation::Turn { probability: 0.5 },
                flip(Axis::D),
                flip(Axis::H),
                flip(Axis::W),
            ],
        };
        let labels = match self {
            Self::LidcAsCoded => LabelInterpolation::Linear,
            Self::None | Self::Lidc | Self::Brats => LabelInterpolation::Nearest,
        };
        AugmentConfig { labels, steps }
    }
}
