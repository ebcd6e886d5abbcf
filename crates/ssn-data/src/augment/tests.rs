//! Promises about augmented patches: inverses, alignment of image and labels, no new labels, settings.

use proptest::prelude::*;

use super::spatial::{flip, turn};
use super::*;
use crate::gather::{Interleaved, LabelInterpolation, Window, gather_image, gather_labels};
use crate::grid::Grid;
use crate::map::{Linear, SpatialMap};
use crate::random::Purpose;

const SIDE: usize = 9;

fn volume(seed: u64, size: [usize; 3], classes: u64) -> Vec<u8> {
    let mut stream = Stream::new(seed, Purpose::Synthetic, 0);
    (0..size.iter().product()).map(|_| stream.below(classes) as u8).collect()
}

/// Applies changes to a whole volume, as an image and as labels.
fn apply(
    labels: &[u8],
    size: [usize; 3],
    changes: &[Change],
    how: LabelInterpolation,
) -> (Vec<f32>, Vec<u8>) {
    let map = SpatialMap::new(changes, size, size[0] == 1);
    let image = Interleaved::new(labels.iter().map(|&x| f32::from(x)).collect(), 1, size);
    let window = Window { start: [0; 3], size };
    let (mut values, mut out) = (vec![0.0; labels.len()], vec![0; labels.len()]);
    gather_image(&image, &map, window, &Grid::whole(window.size), &mut values);
    gather_labels(&mut [(labels, &mut out)], size, &map, window, how);
    (values, out)
}

#[test]
fn a_flip_twice_and_four_turns_change_nothing() {
    let size = [4, SIDE, SIDE];
    let labels = volume(1, size, 4);
    let as_image: Vec<f32> = labels.iter().map(|&x| f32::from(x)).collect();
    for matrix in [flip(Axis::D), flip(Axis::H), flip(Axis::W), turn(1), turn(2), turn(3)] {
        let change = Change::Linear(Linear::new(matrix));
        let mut now = labels.clone();
        for _ in 0..4 {
            let (values, next) = apply(&now, size, &[change], LabelInterpolation::Nearest);
            assert!(values.iter().zip(&next).all(|(a, b)| *a == f32::from(*b)));
            assert_ne!(now, next);
            now = next;
        }
        assert_eq!(now, labels);
        // The same in one map.
        for repeats in if matrix == turn(1) || matrix == turn(3) { [4, 8] } else { [2, 4] } {
            let (values, out) = apply(&labels, size, &vec![change; repeats], LabelInterpolation::Linear);
            assert_eq!((&values, &out), (&as_image, &labels));
        }
    }
}

#[test]
fn a_turn_is_clockwise() {
    let (_, out) =
        apply(&[1, 2, 3, 4], [1, 2, 2], &[Change::Linear(Linear::new(turn(1)))], LabelInterpolation::Nearest);
    assert_eq!(out, [3, 1, 4, 2]);
}

fn all_kinds() -> AugmentConfig {
    let probability = 0.7;
    let steps = vec![
        Augmentation::Elastic { cell: 6.0, amplitude: 2.0, probability },
        Augmentation::Flip { axis: Axis::D, probability },
        Augmentation::Flip { axis: Axis::H, probability },
        Augmentation::Turn { probability },
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
        let subject = Subject { size, spacing: [2.0, 1.0, 1.0], channels: 1, flat };
        let drawn = all_kinds().draw(&subject, &mut Stream::new(seed, Purpose::Augment, 0));
        let (values, linear) = apply(&labels, size, &drawn.changes, LabelInterpolation::Linear);
        let (_, nearest) = apply(&labels, size, &drawn.changes, LabelInterpolation::Nearest);
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
        let subject = Subject { size, spacing: [1.0; 3], channels: 1, flat };
        let drawn = all_kinds().draw(&subject, &mut Stream::new(seed, Purpose::Augment, 1));
        for how in [LabelInterpolation::Nearest, LabelInterpolation::Linear] {
            let (_, out) = apply(&labels, size, &drawn.changes, how);
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
    for preset in [Preset::None, Preset::Lidc, Preset::LidcAsCoded, Preset::Brats] {
        preset.config().check().unwrap();
    }
    assert!(
        toml::from_str::<AugmentConfig>("[[steps]]\nkind = \"turn\"\nprobability = 1\nangle = 3").is_err()
    );
    config.steps = vec![Augmentation::Turn { probability: 1.5 }];
    let message = config.check().unwrap_err().to_string();
    assert_eq!(message, "augmentation.probability is 1.5, but it must be between 0 and 1");
    config.steps = vec![Augmentation::Elastic { cell: 10.0, amplitude: 6.0, probability: 0.5 }];
    assert!(config.check().is_err());
}

#[test]
fn a_crop_stays_inside_the_patch() {
    let subject = Subject { size: [1, 128, 128], spacing: [1.0; 3], channels: 1, flat: true };
    let config = Preset::LidcAsCoded.config();
    for q in 0..500 {
        let drawn = config.draw(&subject, &mut Stream::new(0, Purpose::Augment, q));
        let Some(Change::Linear(crop)) = drawn.changes.get(1) else { continue };
        for k in [1, 2] {
            let half = crop.matrix[k][k] * 64.0;
            assert!(crop.offset[k].abs() + half <= 64.0 + 1e-4, "{crop:?}");
        }
    }
}
