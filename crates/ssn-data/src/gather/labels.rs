//! Label maps and masks: no label appears that was not there, and outside of the image all is 0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_core::simd::vectorized;

use super::{Line, Lines, Window, limited, whole};
use crate::grid::Grid;
use crate::map::{Row, SpatialMap};

/// How labels between voxels are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabelInterpolation {
    /// The label of the nearest voxel.
    #[default]
    Nearest,
    /// The label with the largest share in the linear interpolation of all labels; the smallest of equals. Borders are
    /// smoother, and structures thinner than a voxel may vanish.
    Linear,
}

/// Fills patches of several maps on the grid `shape`, given as pairs of a map and its patch.
///
/// # Shapes
/// Maps are `[d, h, w]` of `shape`, patches `[d, h, w]` of the window's size.
pub fn gather_labels(
    maps: &mut [(&[u8], &mut [u8])],
    shape: [usize; 3],
    map: &SpatialMap,
    window: Window,
    interpolation: LabelInterpolation,
) {
    let lines = map.as_grid_change().and_then(|change| Lines::new(change, window));
    let [depth, height, width] = window.size;
    let (center, grid) = (window.center(), Grid::whole(window.size));
    let mut row = Row::default();
    let mut voxels = vec![OUTSIDE; width];
    vectorized(
        #[inline(always)]
        || {
            for z in 0..depth {
                for y in 0..height {
                    let start = (z * height + y) * width;
                    let rows = maps.iter_mut().map(|(map, patch)| (&**map, &mut patch[start..start + width]));
                    if let Some(lines) = &lines {
                        find_line(shape, lines.line(&grid, [z, y]), &mut voxels);
                    } else {
                        map.row(window.size, &grid, [z, y], center, &mut row);
                        if interpolation == LabelInterpolation::Linear {
                            for (labels, out) in rows {
                                for (i, out) in out.iter_mut().enumerate() {
                                    *out = largest_share(labels, shape, [0, 1, 2].map(|k| row.at[k][i]));
                                }
                            }
                            continue;
                        }
                        find_nearest(shape, &row, &mut voxels);
                    }
                    for (labels, out) in rows {
                        for (out, &voxel) in out.iter_mut().zip(&voxels) {
                            // No map is long enough to have the voxel that stands for the outside.
                            *out = labels.get(voxel as usize).copied().unwrap_or(0);
                        }
                    }
                }
            }
        },
    );
}

/// The voxel that stands for all outside of the image.
const OUTSIDE: u32 = u32::MAX;

/// The voxels of a line.
#[inline(always)]
fn find_line(shape: [usize; 3], line: Line, voxels: &mut [u32]) {
    for (i, voxel) in voxels.iter_mut().enumerate() {
        let mut at = line.first;
        at[line.axis] += line.step * i as isize;
        *voxel = index(shape, at).map_or(OUTSIDE, |voxel| voxel as u32);
    }
}

/// The voxels nearest to the points of a row; halfway between two, the later one.
#[inline(always)]
fn find_nearest(shape: [usize; 3], row: &Row, voxels: &mut [u32]) {
    let width = voxels.len();
    let [d, h, w] = [shape[0] as i32, shape[1] as i32, shape[2] as i32];
    let (z, y, x) = (&row.at[0][..width], &row.at[1][..width], &row.at[2][..width]);
    // Shifted by 1, so that what lies before the image is 0 and not negative.
    let near = |x: f32, n: i32| whole(limited(x + 1.5, n as f32 + 1.0)).0 - 1;
    for i in 0..width {
        let (z, y, x) = (near(z[i], d), near(y[i], h), near(x[i], w));
        let inside = (z >= 0) & (z < d) & (y >= 0) & (y < h) & (x >= 0) & (x < w);
        let voxel = z.wrapping_mul(h).wrapping_add(y).wrapping_mul(w).wrapping_add(x);
        voxels[i] = if inside { voxel as u32 } else { OUTSIDE };
    }
}

/// The index of a voxel, or nothing outside of the grid.
#[inline(always)]
fn index(shape: [usize; 3], at: [isize; 3]) -> Option<usize> {
    let inside = (0..3).all(|k| (0..shape[k] as isize).contains(&at[k]));
    inside.then(|| (at[0] as usize * shape[1] + at[1] as usize) * shape[2] + at[2] as usize)
}

/// The label that all voxels around a point have, which is most points; nothing if they differ, or one lies outside.
#[inline(always)]
fn common_label(labels: &[u8], shape: [usize; 3], low: [isize; 3], part: [f32; 3]) -> Option<u8> {
    // Along an axis on whose grid the point lies, as the depth of pictures, there is no second voxel.
    let second = part.map(|part| isize::from(part > 0.0));
    if (0..3).any(|k| low[k] < 0 || low[k] + second[k] >= shape[k] as isize) {
        return None;
    }
    let [d, h, w] = second.map(|step| step as usize);
    let first = (low[0] as usize * shape[1] + low[1] as usize) * shape[2] + low[2] as usize;
    let (d, h) = (d * shape[1] * shape[2], h * shape[2]);
    let label = labels[first];
    let same = |offset: usize| labels[first + offset] == label;
    let all = same(w) & same(h) & same(h + w) & same(d) & same(d + w) & same(d + h) & same(d + h + w);
    all.then_some(label)
}

/// The label that weighs most among the eight voxels around a point.
fn largest_share(labels: &[u8], shape: [usize; 3], point: [f32; 3]) -> u8 {
    let low = point.map(f32::floor);
    let part = [0, 1, 2].map(|k| point[k] - low[k]);
    if let Some(label) = common_label(labels, shape, low.map(|x| x as isize), part) {
        return label;
    }
    let corners: [(u8, f32); 8] = std::array::from_fn(|corner| {
        let bits = [corner >> 2, corner >> 1 & 1, corner & 1];
        let at = [0, 1, 2].map(|k| low[k] as isize + bits[k] as isize);
        let share = |k: usize| if bits[k] == 1 { part[k] } else { 1.0 - part[k] };
        (index(shape, at).map_or(0, |voxel| labels[voxel]), share(0) * share(1) * share(2))
    });
    let total = |label: u8| corners.iter().filter(|(other, _)| *other == label).map(|(_, w)| w).sum::<f32>();
    let mut best = (corners[0].0, total(corners[0].0));
    for &(label, _) in &corners[1..] {
        let weight = total(label);
        if weight > best.1 || (weight == best.1 && label < best.0) {
            best = (label, weight);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Change, Linear};

    fn shifted(labels: &[u8], shape: [usize; 3], by: f32, how: LabelInterpolation) -> Vec<u8> {
        let shift = Linear { offset: [0.0, 0.0, by], ..Linear::IDENTITY };
        let map = SpatialMap::new(&[Change::Linear(shift)], shape, true);
        let mut out = vec![9; labels.len()];
        let window = Window { start: [0; 3], size: shape };
        gather_labels(&mut [(labels, &mut out)], shape, &map, window, how);
        out
    }

    #[test]
    fn labels_are_those_of_neighbors_and_0_outside() {
        let labels = [3, 3, 0, 5, 5];
        for how in [LabelInterpolation::Nearest, LabelInterpolation::Linear] {
            assert_eq!(shifted(&labels, [1, 1, 5], 0.25, how), [3, 3, 0, 5, 5]);
            assert_eq!(shifted(&labels, [1, 1, 5], 0.75, how), [3, 0, 5, 5, 0]);
            assert_eq!(shifted(&labels, [1, 1, 5], -2.0, how), [0, 0, 3, 3, 0]);
        }
        // Halfway between 3 and 0, the linear rule takes the smaller label.
        assert_eq!(shifted(&labels, [1, 1, 5], 0.5, LabelInterpolation::Linear), [3, 0, 0, 5, 0]);
    }
}
