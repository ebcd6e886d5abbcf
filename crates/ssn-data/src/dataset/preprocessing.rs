//! What happens to a case after it was read: normalization, cropping to the mask, resampling to a common spacing.

use rayon::prelude::*;
use ssn_core::space::{Grid, Region};
use ssn_io::{Error, Limits, Result};

use crate::dataset::{Case, Normalization};
use crate::parallel::available_bytes;

/// What happens to a case after it was read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Preprocessing {
    /// A common spacing along w, h, d in millimeters.
    pub spacing: Option<[f64; 3]>,
    /// Cut to the box of the region of interest.
    pub crop_to_mask: bool,
    /// The scale of intensities; computed on the whole image, before it is cut or resampled.
    pub normalization: Normalization,
}

/// Voxels from which on the channels of a case are normalized at the same time.
const LARGE: usize = 1 << 18;

impl Preprocessing {
    /// Applies what is asked for.
    pub fn apply(&self, mut case: Case) -> Result<Case> {
        let voxels = case.voxels().max(1);
        let (mask, channels) = (case.mask.as_deref(), case.image.chunks_exact_mut(voxels));
        if voxels < LARGE {
            channels.for_each(|channel| self.normalization.apply(channel, mask));
        } else {
            channels.par_bridge().for_each(|channel| self.normalization.apply(channel, mask));
        }
        if self.crop_to_mask {
            case = to_mask(case);
        }
        match self.spacing {
            Some(spacing) => to_spacing(case, spacing),
            None => Ok(case),
        }
    }
}

/// The smallest box that holds the mask; `None` for an empty mask.
pub fn mask_box(mask: &[u8], shape: [usize; 3]) -> Option<Region> {
    let whole = Region::whole(shape);
    let inside = mask.iter().enumerate().filter(|(_, m)| **m > 0).map(|(index, _)| whole.voxel(index));
    Region::around(inside)
}

/// The case inside the box of its mask; as it is without a mask.
///
/// The geometry moves along: every voxel stays where it was in the patient.
fn to_mask(case: Case) -> Case {
    let Some(region) = case.mask.as_ref().and_then(|mask| mask_box(mask, case.shape)) else { return case };
    let mut geometry = case.geometry;
    for row in 0..3 {
        for axis in 0..3 {
            // Grid axes are i, j, k and the box is [d, h, w].
            let steps = region.start[2 - axis] as f64;
            geometry.origin[row] += geometry.direction[row][axis] * geometry.spacing[axis] * steps;
        }
    }
    let channels = case.image.chunks_exact(case.voxels());
    Case {
        image: channels.flat_map(|channel| region.cut(channel, case.shape)).collect(),
        raters: case.raters.iter().map(|rater| region.cut(rater, case.shape)).collect(),
        mask: case.mask.as_ref().map(|mask| region.cut(mask, case.shape)),
        shape: region.size,
        geometry,
        ..case
    }
}

/// The positions of the samples of a new axis on the old one: two neighbors and the weight of the second.
type Axis = Vec<(usize, usize, f32)>;

/// Along each axis `[d, h, w]`, `new` samples over the extent of `old` voxels, which are `step` old voxels apart.
fn axes(old: [usize; 3], new: [usize; 3], step: [f64; 3]) -> [Axis; 3] {
    std::array::from_fn(|k| {
        let last = old[k].saturating_sub(1);
        // The centers of both grids coincide, so that the image does not move.
        let shift = 0.5 * ((old[k] as f64 - 1.0) - (new[k] as f64 - 1.0) * step[k]);
        let sample = |i: usize| {
            let place = (shift + i as f64 * step[k]).clamp(0.0, last as f64);
            let below = place.floor() as usize;
            (below, (below + 1).min(last), (place - below as f64) as f32)
        };
        (0..new[k]).map(sample).collect()
    })
}

/// How many old voxels two samples are apart along `[d, h, w]`, for spacings along w, h, d; a depth of 1 stays.
fn steps(shape: [usize; 3], old: [f64; 3], new: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| if shape[k] == 1 { 1.0 } else { new[2 - k] / old[2 - k] })
}

/// Linear interpolation of `[d, h, w]` along its three axes.
fn linear(values: &[f32], [_, h, w]: [usize; 3], axes: &[Axis; 3]) -> Vec<f32> {
    let mix = |a: f32, b: f32, t: f32| if t == 0.0 { a } else { a + (b - a) * t };
    let mut out = Vec::with_capacity(axes.iter().map(Vec::len).product());
    for &(z0, z1, tz) in &axes[0] {
        for &(y0, y1, ty) in &axes[1] {
            let row = |z: usize, y: usize| &values[(z * h + y) * w..(z * h + y + 1) * w];
            let (near, far) = ([row(z0, y0), row(z0, y1)], [row(z1, y0), row(z1, y1)]);
            for &(x0, x1, tx) in &axes[2] {
                let along = |row: &[f32]| mix(row[x0], row[x1], tx);
                let plane = |rows: [&[f32]; 2]| mix(along(rows[0]), along(rows[1]), ty);
                out.push(mix(plane(near), plane(far), tz));
            }
        }
    }
    out
}

/// The nearest values; halfway between two, the later one, as in patches.
fn nearest(values: &[u8], [_, h, w]: [usize; 3], axes: &[Axis; 3]) -> Vec<u8> {
    let pick = |&(below, above, weight): &(usize, usize, f32)| if weight >= 0.5 { above } else { below };
    let mut out = Vec::with_capacity(axes.iter().map(Vec::len).product());
    for z in axes[0].iter().map(pick) {
        for y in axes[1].iter().map(pick) {
            out.extend(axes[2].iter().map(pick).map(|x| values[(z * h + y) * w + x]));
        }
    }
    out
}

/// Each class interpolated linearly, and the largest taken; equals go to the smaller label.
fn strongest(values: &[u8], shape: [usize; 3], axes: &[Axis; 3]) -> Vec<u8> {
    let mut present = [false; 256];
    values.iter().for_each(|&label| present[usize::from(label)] = true);
    let labels: Vec<u8> = (0..=u8::MAX).filter(|&label| present[usize::from(label)]).collect();
    let size = axes.iter().map(Vec::len).product();
    let (mut best, mut out) = (vec![f32::NEG_INFINITY; size], vec![0; size]);
    for label in labels {
        let one_hot: Vec<f32> = values.iter().map(|&v| f32::from(u8::from(v == label))).collect();
        for ((strength, best), out) in linear(&one_hot, shape, axes).into_iter().zip(&mut best).zip(&mut out)
        {
            if strength > *best {
                (*best, *out) = (strength, label);
            }
        }
    }
    out
}

/// The case on a grid with the given spacing along i, j, k (w, h, d); a depth of 1 keeps its spacing.
///
/// # Errors
/// A grid of more voxels than [`Limits`] or the memory allow, as spacings in the wrong unit would give.
fn to_spacing(case: Case, spacing: [f64; 3]) -> Result<Case> {
    let mut geometry = case.geometry;
    let steps = steps(case.shape, geometry.spacing, spacing);
    let shape: [usize; 3] =
        std::array::from_fn(|k| ((case.shape[k] as f64 / steps[k]).round() as usize).max(1));
    let [d, h, w] = shape;
    if !steps.iter().all(|step| step.is_finite() && *step > 0.0) {
        return Err(refused(&case, spacing, "spacings must be positive"));
    }
    let values = Limits::default().check_values(&[case.channels.max(1), d, h, w]);
    // A value of the image is made and then joined with those of other channels, and raters have a byte each beside four for
    // comparing them. A case that becomes smaller fits, for it was in memory before.
    let channels = case.channels.max(1);
    let bytes = |values: usize| (values / channels).saturating_mul(12 * channels + 5 * case.raters.len());
    let fits = values.is_ok_and(|values| values <= case.image.len() || bytes(values) < available_bytes());
    if !fits {
        return Err(refused(&case, spacing, &format!("{d} × {h} × {w} voxels do not fit into memory")));
    }
    let axes = axes(case.shape, shape, steps);
    if shape == case.shape
        && (0..3).all(|axis| shape[2 - axis] == 1 || geometry.spacing[axis] == spacing[axis])
    {
        return Ok(case);
    }
    for axis in (0..3).filter(|axis| case.shape[2 - axis] > 1) {
        let (old, new) = (case.shape[2 - axis] as f64, shape[2 - axis] as f64);
        // The middle of the grid stays in its place.
        let shift = 0.5 * ((old - 1.0) * case.geometry.spacing[axis] - (new - 1.0) * spacing[axis]);
        for row in 0..3 {
            geometry.origin[row] += geometry.direction[row][axis] * shift;
        }
        geometry.spacing[axis] = spacing[axis];
    }
    let voxels = case.voxels().max(1);
    Ok(Case {
        image: case
            .image
            .chunks_exact(voxels)
            .flat_map(|channel| linear(channel, case.shape, &axes))
            .collect(),
        raters: case.raters.iter().map(|labels| strongest(labels, case.shape, &axes)).collect(),
        mask: case.mask.as_ref().map(|mask| nearest(mask, case.shape, &axes)),
        shape,
        geometry,
        ..case
    })
}

/// Labels of a grid on another one with the same middle, as a case is resampled: each class linearly, and the strongest taken.
///
/// # Shapes
/// `labels` `[d, h, w]` of `from`; the result has those of `to`.
pub fn resample_labels(labels: &[u8], from: &Grid, to: &Grid) -> Vec<u8> {
    let steps = [0, 1, 2].map(|axis| to.spacing()[axis] / from.spacing()[axis]);
    strongest(labels, from.shape(), &axes(from.shape(), to.shape(), steps))
}

fn refused(case: &Case, spacing: [f64; 3], why: &str) -> Error {
    let stored = case.geometry.spacing;
    let reason = format!("it cannot be brought from a spacing of {stored:?} mm to {spacing:?} mm: {why}");
    Error::case(&case.id, reason)
        .advise("correct data.spacing in the config, or the header of the case's files")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ssn_io::Geometry;

    use super::*;

    #[test]
    fn voxels_stay_where_they_are() {
        let (shape, voxels) = ([3, 4, 5], 60);
        let mut mask = vec![0; voxels];
        mask[27] = 1; // [1, 1, 2]
        mask[33] = 1; // [1, 2, 3]
        let case = Case {
            id: "a".into(),
            channels: 2,
            shape,
            image: (0..120).map(|i| i as f32).collect(),
            raters: vec![(0..60).collect()],
            mask: Some(mask),
            geometry: Geometry { spacing: [2.0, 3.0, 5.0], ..Geometry::default() },
            ..Case::default()
        };
        let cropped = to_mask(case.clone());
        assert_eq!(cropped.shape, [1, 2, 2]);
        assert_eq!(cropped.image, [27.0, 28.0, 32.0, 33.0, 87.0, 88.0, 92.0, 93.0]);
        assert_eq!(cropped.raters, [[27, 28, 32, 33]]);
        assert_eq!(cropped.geometry.origin, [4.0, 3.0, 5.0]);
        let empty = Case { mask: Some(vec![0; 60]), ..case };
        assert_eq!(to_mask(empty.clone()), empty);
    }

    fn case(shape: [usize; 3], spacing: [f64; 3]) -> Case {
        let voxels: usize = shape.iter().product();
        Case {
            id: "a".into(),
            channels: 1,
            shape,
            image: (0..voxels).map(|i| (i * 7 % 23) as f32).collect(),
            raters: vec![(0..voxels).map(|i| (i / 3 % 4) as u8).collect()],
            mask: Some(vec![1; voxels]),
            geometry: Geometry { spacing, ..Geometry::default() },
            ..Case::default()
        }
    }

    #[test]
    fn labels_come_back_to_their_grid() {
        let whole = Case { raters: vec![vec![1; 5 * 6 * 7]], ..case([5, 6, 7], [1.0, 2.0, 3.0]) };
        let coarse = to_spacing(whole.clone(), [2.0, 3.0, 5.0]).unwrap();
        let grid = |case: &Case| {
            let [w, h, d] = case.geometry.spacing;
            Grid::new(case.shape, [d, h, w]).unwrap()
        };
        assert_eq!(resample_labels(&coarse.raters[0], &grid(&coarse), &grid(&whole)), whole.raters[0]);
        let mixed = case([5, 6, 7], [1.0, 2.0, 3.0]);
        let coarse = to_spacing(mixed.clone(), [2.0, 3.0, 5.0]).unwrap();
        assert_eq!(resample_labels(&mixed.raters[0], &grid(&mixed), &grid(&coarse)), coarse.raters[0]);
        // A block that covers its voxels on both grids stays where it is.
        let mut labels = vec![0; 8];
        labels[4..].fill(1);
        let row = |width, spacing| Grid::new([1, 1, width], [1.0, 1.0, spacing]).unwrap();
        let fine = resample_labels(&labels, &row(8, 2.0), &row(16, 1.0));
        assert_eq!(fine.iter().position(|&x| x == 1), Some(8));
    }

    #[test]
    fn a_ramp_stays_a_ramp() {
        let mut ramp = case([1, 2, 8], [1.0, 1.0, 1.0]);
        ramp.image = (0..16).map(|i| (i % 8) as f32).collect();
        let fine = to_spacing(ramp, [0.5, 1.0, 9.0]).unwrap();
        assert_eq!((fine.shape, fine.geometry.spacing), ([1, 2, 16], [0.5, 1.0, 1.0]));
        assert_eq!(fine.geometry.origin[0], -0.25);
        for (i, x) in fine.image[..16].iter().enumerate() {
            let expected = (-0.25 + 0.5 * i as f32).clamp(0.0, 7.0);
            assert!((x - expected).abs() < 1e-6, "{i}: {x}");
        }
    }

    #[test]
    fn the_strongest_class_wins() {
        let mut labels = case([1, 1, 4], [1.0; 3]);
        labels.raters = vec![vec![0, 0, 3, 3]];
        let fine = to_spacing(labels, [0.5, 1.0, 1.0]).unwrap();
        assert_eq!(fine.raters[0], [0, 0, 0, 0, 3, 3, 3, 3]);
    }

    #[test]
    fn absurd_spacings_are_refused() {
        let message = |stored: [f64; 3], wanted: [f64; 3]| {
            to_spacing(case([2, 3, 4], stored), wanted).unwrap_err().to_string()
        };
        insta::assert_snapshot!(
            [
                message([1.0; 3], [1e-9, 1.0, 1.0]),
                message([f64::MAX, 1.0, 1.0], [1.0; 3]),
                message([0.0, 1.0, 1.0], [1.0; 3]),
            ]
            .join("\n")
        );
    }

    proptest! {
        #[test]
        fn the_same_spacing_is_the_identity(
            shape in [1usize..5, 1usize..6, 1usize..6], spacing in [0.2f64..3.0, 0.2f64..3.0, 0.2f64..3.0],
        ) {
            let original = case(shape, spacing);
            prop_assert_eq!(&to_spacing(original.clone(), spacing).unwrap(), &original);
        }

        #[test]
        fn no_new_labels_and_the_same_middle(
            shape in [1usize..5, 2usize..6, 2usize..6], spacing in [0.4f64..3.0, 0.4f64..3.0, 0.4f64..3.0],
        ) {
            let original = case(shape, [1.0, 0.7, 2.0]);
            let middle = |case: &Case| -> [f64; 3] {
                std::array::from_fn(|axis| {
                    let length = (case.shape[2 - axis] as f64 - 1.0) * case.geometry.spacing[axis];
                    case.geometry.origin[axis] + 0.5 * length
                })
            };
            let new = to_spacing(original.clone(), spacing).unwrap();
            prop_assert!(new.raters[0].iter().all(|label| original.raters[0].contains(label)));
            prop_assert_eq!(new.image.len(), new.voxels());
            let (a, b) = (middle(&original), middle(&new));
            prop_assert!((0..3).all(|axis| (a[axis] - b[axis]).abs() < 1e-9));
        }
    }
}
