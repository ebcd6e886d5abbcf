//! Data augmentation: random transforms of patches, their settings, and the presets of the paper.
//!
//! Every transform is drawn from the item's own random stream. Spatial transforms are composed into one deformation
//! field; intensity transforms are applied to the interpolated patch. `docs/reference/augmentation.md` has the formulas.

mod intensity;
mod interpolate;
mod perlin;
mod spatial;

pub use intensity::Intensity;
pub use interpolate::{ChannelsLastImage, LabelInterpolation, sample_image, sample_labels};
pub(crate) use perlin::PerlinNoise;
pub use spatial::{DeformationField, SpatialTransform};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_io::{Error, Result};

use crate::random::RandomStream;

/// The facts about a patch that random transforms depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatchInfo {
    /// The size of the patch, `[d, h, w]`.
    pub size: [usize; 3],
    /// The distances of neighboring voxels, `[d, h, w]`.
    pub spacing: [f64; 3],
    /// The number of channels.
    pub channels: usize,
    /// Whether the image has depth 1: then nothing moves along d.
    pub flat: bool,
}

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

/// A random transform. Each is applied to a patch with its `probability`, independently of the others.
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
    /// Rotates slices by 90°, 180° or 270°, each equally often; patches whose sides differ, by 180° only.
    Rot90 {
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

/// How patches are augmented.
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
    preset: AugmentPreset,
    /// How labels between voxels are chosen; if absent, as in the preset.
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

/// With a preset of no steps, so that a file that lists all steps can override one that names a preset.
impl From<AugmentConfig> for Written {
    fn from(AugmentConfig { labels, steps }: AugmentConfig) -> Self {
        Self { preset: AugmentPreset::None, labels: Some(labels), steps }
    }
}

impl Augmentation {
    /// How often the transform is applied.
    pub fn probability(&self) -> f64 {
        match *self {
            Self::Flip { probability, .. }
            | Self::Rot90 { probability }
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
        let crop = |smallest: usize, largest: usize| {
            let smallest = smallest as f64;
            [
                ("augmentation.smallest", smallest, 1.0, 1e6),
                ("augmentation.largest", largest as f64, smallest, 1e6),
            ]
        };
        let bounds = |low: f64, high: f64, [least, most]: [f64; 2]| {
            [("augmentation.low", low, least, most), ("augmentation.high", high, low, most)]
        };
        let degrees = |degrees: f64| ("augmentation.degrees", degrees, 0.0, 180.0);
        let ranges = match *self {
            Self::Flip { .. } | Self::Rot90 { .. } => vec![],
            Self::Rotate { degrees: angle, tilt, .. } => {
                vec![degrees(angle), ("augmentation.tilt", tilt, 0.0, 180.0)]
            }
            Self::Scale { low, high, .. } | Self::Gamma { low, high, .. } => {
                bounds(low, high, [0.01, 100.0]).to_vec()
            }
            Self::CropAndResize { smallest, largest, .. } => crop(smallest, largest).to_vec(),
            Self::RotateThenCrop { degrees: angle, smallest, largest, .. } => {
                [&[degrees(angle)], &crop(smallest, largest)[..]].concat()
            }
            // The noise changes by less than 2 per cell: beyond half a cell, the image would fold.
            Self::Elastic { cell, amplitude, .. } => vec![
                ("augmentation.cell", cell, 1.0, 1e6),
                ("augmentation.amplitude", amplitude, 0.0, cell / 2.0),
            ],
            Self::ScaleAndShift { deviation, low, high, .. } => {
                [&[("augmentation.deviation", deviation, 0.0, 1.0)], &bounds(low, high, [-1e6, 1e6])[..]]
                    .concat()
            }
            Self::Noise { low, high, .. } => bounds(low, high, [0.0, 1e6]).to_vec(),
        };
        let mut all =
            std::iter::once(("augmentation.probability", self.probability(), 0.0, 1.0)).chain(ranges);
        match all.find(|(_, value, low, high)| !(*low..=*high).contains(value)) {
            None => Ok(()),
            Some((field, value, low, high)) => {
                Err(Error::setting(field, value, format!("between {low} and {high}")))
            }
        }
    }
}

impl AugmentConfig {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.steps.iter().try_for_each(Augmentation::check)
    }

    /// Draws the spatial and the intensity transforms of one patch, each in the order in which they are applied.
    pub(crate) fn draw(
        &self,
        info: &PatchInfo,
        stream: &mut RandomStream,
    ) -> (Vec<SpatialTransform>, Vec<Intensity>) {
        let (mut changes, mut intensities) = (vec![], vec![]);
        for augmentation in &self.steps {
            if !stream.chance(augmentation.probability()) {
                continue;
            }
            match *augmentation {
                Augmentation::Flip { axis, .. } => changes.push(spatial::flipped(axis)),
                Augmentation::Rot90 { .. } => changes.push(spatial::quarter_turn(info, stream)),
                Augmentation::Rotate { degrees, tilt, .. } => {
                    changes.push(spatial::rotated(degrees, tilt, info, stream));
                }
                Augmentation::Scale { low, high, .. } => {
                    changes.push(spatial::scaled(low, high, info, stream))
                }
                Augmentation::CropAndResize { smallest, largest, .. } => {
                    changes.push(spatial::crop(smallest, largest, info, stream));
                }
                Augmentation::RotateThenCrop { degrees, smallest, largest, .. } => {
                    // Without a tilt, also of volumes.
                    changes.push(spatial::rotated(degrees, 0.0, info, stream));
                    changes.push(spatial::crop(smallest, largest, info, stream));
                }
                Augmentation::Elastic { cell, amplitude, .. } => {
                    changes.push(SpatialTransform::Elastic(spatial::Elastic::draw(cell, amplitude, stream)));
                }
                Augmentation::ScaleAndShift { deviation, low, high, .. } => {
                    intensities.push(intensity::scaled_and_shifted(deviation, [low, high], info, stream));
                }
                Augmentation::Noise { low, high, .. } => {
                    intensities.push(intensity::noisy(low, high, stream))
                }
                Augmentation::Gamma { low, high, .. } => {
                    intensities.push(intensity::with_gamma(low, high, info, stream));
                }
            }
        }
        (changes, intensities)
    }
}

/// A choice of augmentations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AugmentPreset {
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
    /// The 3D experiment: elastic deformation, rot90, flips, linear changes of intensity.
    Brats,
}

impl AugmentPreset {
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
                Augmentation::Rot90 { probability: 0.5 },
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::augment::interpolate::{ChannelsLastImage, sample_image, sample_labels};
    use crate::augment::spatial::{AffineMap, DeformationField, flip, rot90};
    use crate::random::Purpose;
    use ssn_core::{Lattice, Window};

    const SIDE: usize = 9;

    fn volume(seed: u64, size: [usize; 3], classes: u64) -> Vec<u8> {
        let mut stream = RandomStream::new(seed, Purpose::Synthetic, 0);
        (0..size.iter().product()).map(|_| stream.below(classes) as u8).collect()
    }

    /// Applies changes to a whole volume, as an image and as labels.
    fn apply(
        labels: &[u8],
        size: [usize; 3],
        changes: &[SpatialTransform],
        how: LabelInterpolation,
    ) -> (Vec<f32>, Vec<u8>) {
        let map = DeformationField::new(changes, size, size[0] == 1);
        let image = ChannelsLastImage::new(labels.iter().map(|&x| f32::from(x)).collect(), 1, size);
        let window = Window { start: [0; 3], size };
        let (mut values, mut out) = (vec![0.0; labels.len()], vec![0; labels.len()]);
        sample_image(&image, &map, window, &Lattice::whole(window.size), &mut values);
        sample_labels(&mut [(labels, &mut out)], size, &map, window, how);
        (values, out)
    }

    #[test]
    fn a_flip_twice_and_four_turns_change_nothing() {
        let size = [4, SIDE, SIDE];
        let labels = volume(1, size, 4);
        let as_image: Vec<f32> = labels.iter().map(|&x| f32::from(x)).collect();
        for matrix in [flip(Axis::D), flip(Axis::H), flip(Axis::W), rot90(1), rot90(2), rot90(3)] {
            let change = SpatialTransform::Affine(AffineMap::new(matrix));
            let mut now = labels.clone();
            for _ in 0..4 {
                let (values, next) = apply(&now, size, &[change], LabelInterpolation::Nearest);
                assert!(values.iter().zip(&next).all(|(a, b)| *a == f32::from(*b)));
                assert_ne!(now, next);
                now = next;
            }
            assert_eq!(now, labels);
            // The same in one map.
            for repeats in if matrix == rot90(1) || matrix == rot90(3) { [4, 8] } else { [2, 4] } {
                let (values, out) = apply(&labels, size, &vec![change; repeats], LabelInterpolation::Linear);
                assert_eq!((&values, &out), (&as_image, &labels));
            }
        }
    }

    #[test]
    fn rot90_is_clockwise() {
        let (_, out) = apply(
            &[1, 2, 3, 4],
            [1, 2, 2],
            &[SpatialTransform::Affine(AffineMap::new(rot90(1)))],
            LabelInterpolation::Nearest,
        );
        assert_eq!(out, [3, 1, 4, 2]);
    }

    fn all_kinds() -> AugmentConfig {
        let probability = 0.7;
        let steps = vec![
            Augmentation::Elastic { cell: 6.0, amplitude: 2.0, probability },
            Augmentation::Flip { axis: Axis::D, probability },
            Augmentation::Flip { axis: Axis::H, probability },
            Augmentation::Rot90 { probability },
            Augmentation::Rotate { degrees: 30.0, tilt: 10.0, probability },
            Augmentation::Scale { low: 0.7, high: 1.5, probability },
            Augmentation::CropAndResize { smallest: 5, largest: 9, probability },
            Augmentation::RotateThenCrop { degrees: 8.0, smallest: 7, largest: 9, probability },
            Augmentation::ScaleAndShift { deviation: 0.01, low: 0.0, high: 0.05, probability },
            Augmentation::Noise { low: 0.0, high: 0.1, probability },
            Augmentation::Gamma { low: 0.7, high: 1.4, probability },
        ];
        AugmentConfig { steps, labels: LabelInterpolation::Linear }
    }

    proptest! {
        /// On two classes, the linear interpolation of the label as an image decides the label: they can never part.
        #[test]
        fn image_and_labels_stay_aligned(seed in 0u64..10_000, flat in any::<bool>()) {
            let size = if flat { [1, 12, 12] } else { [7, SIDE, SIDE] };
            // A border of 0 makes the repeated border and the 0 outside the same.
            let mut labels = volume(seed, size, 2);
            for (voxel, label) in labels.iter_mut().enumerate() {
                let at = [voxel / (size[1] * size[2]), voxel / size[2] % size[1], voxel % size[2]];
                let border = |k: usize| size[k] > 1 && (at[k] == 0 || at[k] == size[k] - 1);
                if (0..3).any(border) {
                    *label = 0;
                }
            }
            let info = PatchInfo { size, spacing: [2.0, 1.0, 1.0], channels: 1, flat };
            let (changes, _) = all_kinds().draw(&info, &mut RandomStream::new(seed, Purpose::Augment, 0));
            let (values, linear) = apply(&labels, size, &changes, LabelInterpolation::Linear);
            let (_, nearest) = apply(&labels, size, &changes, LabelInterpolation::Nearest);
            for i in 0..values.len() {
                if (values[i] - 0.5).abs() > 1e-4 {
                    prop_assert_eq!(linear[i], u8::from(values[i] > 0.5));
                }
                if values[i] == 0.0 || values[i] == 1.0 {
                    prop_assert_eq!(nearest[i], u8::from(values[i] > 0.5));
                }
            }
        }

        #[test]
        fn no_new_labels_appear(seed in 0u64..10_000, flat in any::<bool>()) {
            let size = if flat { [1, 12, 12] } else { [7, SIDE, SIDE] };
            let labels: Vec<u8> = volume(seed, size, 3).iter().map(|&x| [0, 2, 7][x as usize]).collect();
            let info = PatchInfo { size, spacing: [1.0; 3], channels: 1, flat };
            let (changes, _) = all_kinds().draw(&info, &mut RandomStream::new(seed, Purpose::Augment, 1));
            for how in [LabelInterpolation::Nearest, LabelInterpolation::Linear] {
                let (_, out) = apply(&labels, size, &changes, how);
                prop_assert!(out.iter().all(|label| [0, 2, 7].contains(label)));
            }
        }
    }

    #[test]
    fn settings_survive_a_config_file_and_are_checked() {
        let mut config = all_kinds();
        let text = toml::to_string(&config).unwrap();
        assert!(text.contains("kind = \"rotate-then-crop\""));
        assert_eq!(toml::from_str::<AugmentConfig>(&text).unwrap(), config);
        config.check().unwrap();
        for preset in
            [AugmentPreset::None, AugmentPreset::Lidc, AugmentPreset::LidcAsCoded, AugmentPreset::Brats]
        {
            preset.config().check().unwrap();
        }
        assert!(
            toml::from_str::<AugmentConfig>("[[steps]]\nkind = \"rot90\"\nprobability = 1\nangle = 3")
                .is_err()
        );
        config.steps = vec![Augmentation::Rot90 { probability: 1.5 }];
        let message = config.check().unwrap_err().to_string();
        assert_eq!(message, "augmentation.probability is 1.5, but it must be between 0 and 1");
        config.steps = vec![Augmentation::Elastic { cell: 10.0, amplitude: 6.0, probability: 0.5 }];
        assert!(config.check().is_err());
    }

    #[test]
    fn a_crop_stays_inside_the_patch() {
        let info = PatchInfo { size: [1, 128, 128], spacing: [1.0; 3], channels: 1, flat: true };
        let config = AugmentPreset::LidcAsCoded.config();
        for q in 0..500 {
            let (changes, _) = config.draw(&info, &mut RandomStream::new(0, Purpose::Augment, q));
            let Some(SpatialTransform::Affine(crop)) = changes.get(1) else { continue };
            for k in [1, 2] {
                let half = crop.matrix[k][k] * 64.0;
                assert!(crop.offset[k].abs() + half <= 64.0 + 1e-4, "{crop:?}");
            }
        }
    }
}
