//! Cutting a case to the box of its region of interest.

use crate::case::Case;

/// The smallest box that holds the mask: first and last + 1 along `[d, h, w]`; nothing for an empty mask.
pub fn mask_box(mask: &[u8], shape: [usize; 3]) -> Option<[[usize; 2]; 3]> {
    let [_, h, w] = shape;
    let mut found: Option<[[usize; 2]; 3]> = None;
    for (index, _) in mask.iter().enumerate().filter(|(_, m)| **m > 0) {
        let at = [index / (h * w), index / w % h, index % w];
        let limits = found.get_or_insert(at.map(|x| [x, x + 1]));
        for (limit, x) in limits.iter_mut().zip(at) {
            *limit = [limit[0].min(x), limit[1].max(x + 1)];
        }
    }
    found
}

/// The part of `[planes, d, h, w]` inside a box.
fn cut<T: Copy>(values: &[T], shape: [usize; 3], limits: [[usize; 2]; 3]) -> Vec<T> {
    let ([_, h, w], [depth, height, width]) = (shape, limits);
    let volumes = values.chunks_exact(shape.iter().product::<usize>().max(1));
    let rows = volumes.flat_map(|volume| {
        (depth[0]..depth[1]).flat_map(move |z| {
            (height[0]..height[1]).map(move |y| {
                let start = (z * h + y) * w;
                &volume[start + width[0]..start + width[1]]
            })
        })
    });
    rows.flatten().copied().collect()
}

/// The case inside the box of its mask, with `margin` voxels around; as it is without a mask.
///
/// The geometry moves along: every voxel stays where it was in the patient.
pub fn to_mask(case: Case, margin: usize) -> Case {
    let Some(limits) = case.mask.as_ref().and_then(|mask| mask_box(mask, case.shape)) else { return case };
    let mut limits = limits;
    for (limit, length) in limits.iter_mut().zip(case.shape) {
        *limit = [limit[0].saturating_sub(margin), (limit[1] + margin).min(length)];
    }
    let mut geometry = case.geometry;
    for row in 0..3 {
        for axis in 0..3 {
            // Grid axes are i, j, k and the box is [d, h, w].
            let steps = limits[2 - axis][0] as f64;
            geometry.origin[row] += geometry.direction[row][axis] * geometry.spacing[axis] * steps;
        }
    }
    Case {
        image: cut(&case.image, case.shape, limits),
        raters: case.raters.iter().map(|rater| cut(rater, case.shape, limits)).collect(),
        mask: case.mask.as_ref().map(|mask| cut(mask, case.shape, limits)),
        shape: limits.map(|limit| limit[1] - limit[0]),
        geometry,
        ..case
    }
}

#[cfg(test)]
mod tests {
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
            rater_numbers: vec![],
            mask: Some(mask),
            geometry: Geometry { spacing: [2.0, 3.0, 5.0], ..Geometry::default() },
        };
        let cropped = to_mask(case.clone(), 0);
        assert_eq!(cropped.shape, [1, 2, 2]);
        assert_eq!(cropped.image, [27.0, 28.0, 32.0, 33.0, 87.0, 88.0, 92.0, 93.0]);
        assert_eq!(cropped.raters, [[27, 28, 32, 33]]);
        assert_eq!(cropped.geometry.origin, [4.0, 3.0, 5.0]);
        assert_eq!(to_mask(case.clone(), 1).shape, [3, 4, 4]);
        assert_eq!(to_mask(case.clone(), 9), case);
        let empty = Case { mask: Some(vec![0; 60]), ..case };
        assert_eq!(to_mask(empty.clone(), 0), empty);
    }
}
