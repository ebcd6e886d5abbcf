//! Values of a case at the points of a deformation field: images by linear interpolation with the border repeated,
//! labels by nearest neighbor or by the largest interpolated share, and 0 outside.
//!
//! However many changes a patch undergoes, its values are interpolated once, and only for its own voxels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_core::simd::vectorized;
use ssn_core::{Lattice, Window};

use crate::augment::spatial::{AffineMap, DeformationField, SourceRow};

/// A row of voxels that are copied from voxels of a line: the first of them, then every `step`-th along `axis`.
#[derive(Debug, Clone, Copy)]
struct Line {
    first: [isize; 3],
    axis: usize,
    step: isize,
}

/// The lines that a map which only swaps and mirrors axes copies rows from; `None` if they fall between voxels.
#[derive(Debug, Clone, Copy)]
struct Lines {
    map: AffineMap,
    window: Window,
    axis: usize,
}

impl Lines {
    fn new(map: AffineMap, window: Window) -> Option<Self> {
        let axis = (0..3).find(|&k| map.matrix[k][2] != 0.0)?;
        let lines = Self { map, window, axis };
        lines.begin([0, 0]).iter().all(|x| x.fract() == 0.0).then_some(lines)
    }

    fn begin(&self, [z, y]: [usize; 2]) -> [f32; 3] {
        let middle = self.window.size.map(|n| (n as f32 - 1.0) / 2.0);
        let from = self.map.at([z as f32 - middle[0], y as f32 - middle[1], -middle[2]]);
        let center = self.window.center();
        [0, 1, 2].map(|k| from[k] + center[k])
    }

    /// The line of row `[z, y]` of a grid.
    fn line(&self, grid: &Lattice, [z, y]: [usize; 2]) -> Line {
        let row = [grid.start[0] + grid.step[0] * z, grid.start[1] + grid.step[1] * y];
        let mut first = self.begin(row).map(|x| x as isize);
        let step = self.map.matrix[self.axis][2] as isize;
        first[self.axis] += step * grid.start[2] as isize;
        Line { first, axis: self.axis, step: step * grid.step[2] as isize }
    }
}

/// 2²³: a binary32 number from there on has no fraction.
const NO_FRACTION: f32 = 8_388_608.0;

/// The whole part of a number from 0 up to 2²², as an integer and as it is.
///
/// A cast would do the same, but checks every number for being too large, which keeps it out of vector instructions.
#[inline(always)]
fn whole(x: f32) -> (i32, f32) {
    let nearest = (x + NO_FRACTION) - NO_FRACTION;
    let floor = if nearest > x { nearest - 1.0 } else { nearest };
    ((floor + NO_FRACTION).to_bits().wrapping_sub(NO_FRACTION.to_bits()) as i32, floor)
}

/// The nearest number in 0 … `high`; 0 for what is no number.
#[inline(always)]
fn limited(x: f32, high: f32) -> f32 {
    let positive = if x > 0.0 { x } else { 0.0 };
    if positive < high { positive } else { high }
}

/// An image as groups of up to four channels, each `[d, h, w, lanes]`: the values of a voxel are one load.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelsLastImage {
    pub channels: usize,
    pub shape: [usize; 3],
    groups: Vec<Group>,
}

/// The channels of a group. Three are stored as four, the last of which is 0.
#[derive(Debug, Clone, PartialEq)]
enum Group {
    One(Vec<[f32; 1]>),
    Two(Vec<[f32; 2]>),
    Four(Vec<[f32; 4]>),
}

impl ChannelsLastImage {
    /// From planes.
    ///
    /// # Shapes
    /// `image`: `[c, d, h, w]` for `shape` `[d, h, w]`.
    pub fn new(image: Vec<f32>, channels: usize, shape: [usize; 3]) -> Self {
        let voxels: usize = shape.iter().product();
        debug_assert_eq!(image.len(), channels * voxels);
        if channels == 1 {
            let values = image.into_iter().map(|x| [x]).collect();
            return Self { channels, shape, groups: vec![Group::One(values)] };
        }
        let planes: Vec<&[f32]> = image.chunks_exact(voxels.max(1)).collect();
        let groups = planes.chunks(4).map(|planes| match planes.len() {
            1 => Group::One(join(planes, voxels)),
            2 => Group::Two(join(planes, voxels)),
            _ => Group::Four(join(planes, voxels)),
        });
        Self { channels, shape, groups: groups.collect() }
    }

    pub fn bytes(&self) -> usize {
        let lanes = self.channels + usize::from(self.channels % 4 == 3);
        4 * self.shape.iter().product::<usize>() * lanes
    }
}

fn join<const L: usize>(planes: &[&[f32]], voxels: usize) -> Vec<[f32; L]> {
    let value = |voxel: usize, lane: usize| planes.get(lane).map_or(0.0, |plane| plane[voxel]);
    (0..voxels).map(|voxel| std::array::from_fn(|lane| value(voxel, lane))).collect()
}

/// The cells of a row of points: the lowest of the neighboring voxels and the distances from it.
#[derive(Debug, Default)]
struct Places {
    base: Vec<u32>,
    part: [Vec<f32>; 3],
}

/// Fills a grid of a patch of an image.
///
/// # Shapes
/// `out`: `[c, d, h, w]` of the grid's count.
pub fn sample_image(
    image: &ChannelsLastImage,
    map: &DeformationField,
    window: Window,
    grid: &Lattice,
    out: &mut [f32],
) {
    // Every group but the last has four channels.
    for (group, planes) in image.groups.iter().zip(out.chunks_mut(4 * grid.voxels().max(1))) {
        match group {
            Group::One(data) => gather_group(data, image.shape, map, (window, grid), planes),
            Group::Two(data) => gather_group(data, image.shape, map, (window, grid), planes),
            Group::Four(data) => gather_group(data, image.shape, map, (window, grid), planes),
        }
    }
}

/// # Shapes
/// `data`: `[d, h, w, lanes]`; `planes`: up to `L` planes of the grid's count.
fn gather_group<const L: usize>(
    data: &[[f32; L]],
    shape: [usize; 3],
    map: &DeformationField,
    (window, grid): (Window, &Lattice),
    planes: &mut [f32],
) {
    let lines = map.as_axis_permutation().and_then(|change| Lines::new(change, window));
    let [depth, height, width] = grid.count;
    let center = window.center();
    let (mut row, mut places) = (SourceRow::default(), Places::default());
    let mut values = vec![[0.0f32; L]; width];
    vectorized(
        #[inline(always)]
        || {
            for z in 0..depth {
                for y in 0..height {
                    if let Some(lines) = &lines {
                        copy_line(data, shape, lines.line(grid, [z, y]), &mut values);
                    } else {
                        map.row(window.size, grid, [z, y], center, &mut row);
                        places.find(shape, &row);
                        if shape[0] == 1 {
                            interpolate_flat(data, shape, &places, &mut values);
                        } else {
                            interpolate(data, shape, &places, &mut values);
                        }
                    }
                    let start = (z * height + y) * width;
                    let mut planes = planes.chunks_exact_mut(depth * height * width);
                    for lane in 0..L {
                        // The last of three channels in four lanes is no plane.
                        let Some(plane) = planes.next() else { break };
                        for (out, value) in plane[start..start + width].iter_mut().zip(&values) {
                            *out = value[lane];
                        }
                    }
                }
            }
        },
    );
}

/// Copies voxels of a line; outside of the image, its border repeats.
#[inline(always)]
fn copy_line<const L: usize>(data: &[[f32; L]], shape: [usize; 3], line: Line, out: &mut [[f32; L]]) {
    let strides = [shape[1] * shape[2], shape[2], 1];
    let inside = |k: usize, x: isize| x.clamp(0, shape[k] as isize - 1) as usize;
    let axis = line.axis;
    let fixed: usize = (0..3).filter(|&k| k != axis).map(|k| inside(k, line.first[k]) * strides[k]).sum();
    for (i, out) in out.iter_mut().enumerate() {
        let moving = inside(axis, line.first[axis] + line.step * i as isize);
        *out = data[fixed + moving * strides[axis]];
    }
}

impl Places {
    /// Works out the cells of a row of points. Points outside of the image move to its border; along an axis of one
    /// voxel, all points are that voxel.
    #[inline(always)]
    fn find(&mut self, shape: [usize; 3], row: &SourceRow) {
        let width = row.at[0].len();
        self.base.clear();
        self.base.resize(width, 0);
        for k in 0..3 {
            self.part[k].resize(width, 0.0);
            let last = (shape[k] - 1) as f32;
            let highest = shape[k].saturating_sub(2) as f32;
            let (points, part) = (&row.at[k][..width], &mut self.part[k][..width]);
            let base = &mut self.base[..width];
            for i in 0..width {
                // The last voxel is the end of the cell before it.
                let x = limited(points[i], last);
                let (cell, below) = whole(limited(x, highest));
                part[i] = x - below;
                base[i] = base[i].wrapping_mul(shape[k] as u32).wrapping_add(cell as u32);
            }
        }
    }
}

#[inline(always)]
fn mix<const L: usize>(t: f32, a: [f32; L], b: [f32; L]) -> [f32; L] {
    let mut out = a;
    for lane in 0..L {
        out[lane] += t * (b[lane] - a[lane]);
    }
    out
}

/// Between the voxel `at` and the next ones along h and w, which are `y` and `x` further on.
#[inline(always)]
fn bilinear<const L: usize>(
    data: &[[f32; L]],
    at: usize,
    [y, x]: [usize; 2],
    [ty, tx]: [f32; 2],
) -> [f32; L] {
    let (low, high) = (mix(tx, data[at], data[at + x]), mix(tx, data[at + y], data[at + y + x]));
    mix(ty, low, high)
}

#[inline(always)]
fn interpolate<const L: usize>(data: &[[f32; L]], shape: [usize; 3], places: &Places, out: &mut [[f32; L]]) {
    let (z, y, x) = (shape[1] * shape[2], next(shape[1], shape[2]), next(shape[2], 1));
    let width = out.len();
    let [pz, py, px] = &places.part;
    let (pz, py, px) = (&pz[..width], &py[..width], &px[..width]);
    let base = &places.base[..width];
    for i in 0..width {
        let plane = |at: usize| bilinear(data, at, [y, x], [py[i], px[i]]);
        let at = base[i] as usize;
        out[i] = mix(pz[i], plane(at), plane(at + z));
    }
}

/// The same for images of depth 1.
#[inline(always)]
fn interpolate_flat<const L: usize>(
    data: &[[f32; L]],
    shape: [usize; 3],
    places: &Places,
    out: &mut [[f32; L]],
) {
    let (y, x) = (next(shape[1], shape[2]), next(shape[2], 1));
    let width = out.len();
    let (py, px) = (&places.part[1][..width], &places.part[2][..width]);
    let base = &places.base[..width];
    for i in 0..width {
        out[i] = bilinear(data, base[i] as usize, [y, x], [py[i], px[i]]);
    }
}

/// The distance to the next voxel along an axis of `n`; along an axis of one voxel there is none.
#[inline(always)]
fn next(n: usize, stride: usize) -> usize {
    if n == 1 { 0 } else { stride }
}

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
/// Label maps are `[d, h, w]` of `shape`, patches `[d, h, w]` of the window's size.
pub fn sample_labels(
    maps: &mut [(&[u8], &mut [u8])],
    shape: [usize; 3],
    map: &DeformationField,
    window: Window,
    interpolation: LabelInterpolation,
) {
    let lines = map.as_axis_permutation().and_then(|change| Lines::new(change, window));
    let [depth, height, width] = window.size;
    let (center, grid) = (window.center(), Lattice::whole(window.size));
    let mut row = SourceRow::default();
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
fn find_nearest(shape: [usize; 3], row: &SourceRow, voxels: &mut [u32]) {
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

/// The label that all voxels around a point have, as at most points; `None` if they differ or one is outside.
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
    use crate::augment::spatial::SpatialTransform;

    #[test]
    fn whole_parts_are_those_of_a_cast() {
        for i in 0..400_000 {
            for x in [i as f32 * 0.013, i as f32 * 0.25, (i as f32 + 1.0).next_down()] {
                assert_eq!(whole(x), (x as i32, x.floor()));
            }
        }
        assert_eq!([limited(-1.0, 5.0), limited(f32::NAN, 5.0), limited(9.0, 5.0)], [0.0, 0.0, 5.0]);
    }

    /// The value of a ramp is its coordinate, so that interpolation must return the coordinate.
    #[test]
    fn a_ramp_is_interpolated_exactly_and_stays_at_its_border() {
        for shape in [[6, 5, 7], [1, 5, 7], [6, 1, 7], [6, 5, 1], [1, 1, 1]] {
            let [d, h, w] = shape;
            let coordinate = |k: usize| {
                (0..d * h * w).map(move |v| [v / (h * w), v / w % h, v % w][k] as f32).collect::<Vec<_>>()
            };
            for channels in [1usize, 2, 3, 4, 6] {
                let image: Vec<f32> = (0..channels).flat_map(|c| coordinate(c % 3)).collect();
                let image = ChannelsLastImage::new(image, channels, shape);
                // By whole voxels, values are copied.
                for offset in [[0.25, -0.5, 0.125], [0.0; 3], [1.0, 0.0, -2.0]] {
                    let shift = AffineMap { offset, ..AffineMap::IDENTITY };
                    let map = DeformationField::new(&[SpatialTransform::Affine(shift)], shape, false);
                    let window = Window { start: [-2, 1, -1], size: [9, 6, 10] };
                    let mut out = vec![0.0; channels * 540];
                    sample_image(&image, &map, window, &Lattice::whole(window.size), &mut out);
                    for (i, value) in out.into_iter().enumerate() {
                        let (c, v) = (i / 540, i % 540);
                        let at = [v / 60, v / 10 % 6, v % 10][c % 3] as f32;
                        let place = at + window.start[c % 3] as f32 + offset[c % 3];
                        let expected = place.clamp(0.0, (shape[c % 3] - 1) as f32);
                        assert_eq!(value, expected, "{shape:?}, channel {c}, voxel {v}");
                    }
                }
            }
        }
    }

    fn shifted(labels: &[u8], shape: [usize; 3], by: f32, how: LabelInterpolation) -> Vec<u8> {
        let shift = AffineMap { offset: [0.0, 0.0, by], ..AffineMap::IDENTITY };
        let map = DeformationField::new(&[SpatialTransform::Affine(shift)], shape, true);
        let mut out = vec![9; labels.len()];
        let window = Window { start: [0; 3], size: shape };
        sample_labels(&mut [(labels, &mut out)], shape, &map, window, how);
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
