//! Spatial augmentation: all transforms of a patch composed into one deformation field.
//!
//! Coordinates are `[d, h, w]` in voxels relative to the center of the patch, on both sides of the map, so that a map
//! knows neither the patch's place in the image nor the image. It leads from the patch back to the image.

use ssn_core::Lattice;
use ssn_core::random::derive_seed;

use crate::augment::perlin::PerlinNoise;
use crate::augment::{Axis, PatchInfo};
use crate::random::RandomStream;

/// x ↦ matrix · x + offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AffineMap {
    /// Rows and columns are `[d, h, w]`.
    pub matrix: [[f32; 3]; 3],
    /// `[d, h, w]` in voxels.
    pub offset: [f32; 3],
}

impl AffineMap {
    pub const IDENTITY: Self =
        Self { matrix: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], offset: [0.0; 3] };

    pub fn new(matrix: [[f64; 3]; 3]) -> Self {
        Self { matrix: matrix.map(|row| row.map(|x| x as f32)), offset: [0.0; 3] }
    }

    #[inline(always)]
    pub fn at(&self, x: [f32; 3]) -> [f32; 3] {
        let mut out = self.offset;
        for k in 0..3 {
            let row = self.matrix[k];
            out[k] += row[0] * x[0] + row[1] * x[1] + row[2] * x[2];
        }
        out
    }

    /// First `other`, then this map.
    pub fn after(&self, other: &Self) -> Self {
        let product = |i: usize, j: usize| (0..3).map(|k| self.matrix[i][k] * other.matrix[k][j]).sum();
        Self { matrix: [0, 1, 2].map(|i| [0, 1, 2].map(|j| product(i, j))), offset: self.at(other.offset) }
    }

    /// Whether the matrix only swaps and mirrors axes.
    fn is_signed_permutation(&self) -> bool {
        let entries = self.matrix.iter().flatten();
        entries.clone().all(|&x| x == 0.0 || x.abs() == 1.0)
            && self.matrix.iter().all(|row| row.iter().filter(|&&x| x != 0.0).count() == 1)
            && (0..3).all(|k| self.matrix.iter().filter(|row| row[k] != 0.0).count() == 1)
    }
}

/// A random smooth deformation: x ↦ x + amplitude · (noise(x / cell) − noise(0)). The center stays where it is, so that
/// a patch that was cut around a lesion keeps it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Elastic {
    key: [u32; 2],
    phase: [f32; 3],
    cell: f32,
    amplitude: f32,
}

impl Elastic {
    /// A deformation with cells of `cell` voxels and displacements of `amplitude` voxels times a noise within ±√¾.
    pub fn draw(cell: f64, amplitude: f64, stream: &mut RandomStream) -> Self {
        let key = [stream.next_u32(), stream.next_u32()];
        let phase = [0; 3].map(|_| stream.uniform() as f32);
        Self { key, phase, cell: cell as f32, amplitude: amplitude as f32 }
    }
}

/// One transform of the image, as a map from the transformed image back to the original.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SpatialTransform {
    Affine(AffineMap),
    Elastic(Elastic),
}

#[derive(Debug, Clone)]
enum Step {
    Affine(AffineMap),
    Elastic { field: Elastic, noise: Box<PerlinNoise<3>>, anchor: [f32; 3], flat: bool },
}

/// All transforms of a patch as one map from its voxels to the image. Steps are in the order of evaluation: the last
/// transform of the image comes first.
#[derive(Debug, Clone)]
pub struct DeformationField {
    first: AffineMap,
    rest: Vec<Step>,
}

/// The source of one row of voxels.
#[derive(Debug, Clone, Default)]
pub struct SourceRow {
    /// Coordinates along d, h and w, one of each per voxel.
    pub at: [Vec<f32>; 3],
    scratch: [Vec<f32>; 6],
}

impl DeformationField {
    /// The composition of changes, given in the order in which they happen to the image, for patches of `size` or
    /// smaller. If `flat`, nothing moves along d.
    pub fn new(changes: &[SpatialTransform], size: [usize; 3], flat: bool) -> Self {
        let mut map = Self { first: AffineMap::IDENTITY, rest: vec![] };
        // Half of the box, around the center, that the steps so far can reach.
        let mut reach = size.map(|n| n as f32 / 2.0);
        for (number, change) in changes.iter().rev().enumerate() {
            match change {
                SpatialTransform::Affine(linear) => {
                    reach = [0, 1, 2].map(|k| {
                        let row = linear.matrix[k];
                        (0..3).map(|j| row[j].abs() * reach[j]).sum::<f32>() + linear.offset[k].abs()
                    });
                    match map.rest.last_mut() {
                        None => map.first = linear.after(&map.first),
                        Some(Step::Affine(last)) => *last = linear.after(last),
                        Some(Step::Elastic { .. }) => map.rest.push(Step::Affine(*linear)),
                    }
                }
                SpatialTransform::Elastic(field) => {
                    map.rest.push(elastic_step(*field, reach, flat, number as u64));
                    reach = reach.map(|x| x + 2.0 * field.amplitude.abs());
                }
            }
        }
        map
    }

    /// The map as one matrix, if it only swaps and mirrors axes: then voxels can be copied.
    pub fn as_axis_permutation(&self) -> Option<AffineMap> {
        (self.rest.is_empty() && self.first.is_signed_permutation()).then_some(self.first)
    }

    /// The sources of row `[z, y]` of a grid of a patch of `size` whose center lies at `center` in the image.
    #[inline(always)]
    pub fn row(
        &self,
        size: [usize; 3],
        grid: &Lattice,
        [z, y]: [usize; 2],
        center: [f32; 3],
        row: &mut SourceRow,
    ) {
        let [z, y] = [grid.start[0] + grid.step[0] * z, grid.start[1] + grid.step[1] * y];
        let (first, step) = (grid.start[2] as i32, grid.step[2] as i32);
        let w = size[2];
        let from_middle = |at: usize, n: usize| at as f32 - (n as f32 - 1.0) / 2.0;
        let begin = self.first.at([from_middle(z, size[0]), from_middle(y, size[1]), from_middle(0, w)]);
        // The center is added last; without further steps, right here.
        let shift = if self.rest.is_empty() { center } else { [0.0; 3] };
        for k in 0..3 {
            let (from, slope) = (begin[k] + shift[k], self.first.matrix[k][2]);
            row.at[k].resize(grid.count[2], 0.0);
            for (i, x) in row.at[k].iter_mut().enumerate() {
                *x = from + (first + step * i as i32) as f32 * slope;
            }
        }
        if self.rest.is_empty() {
            return;
        }
        for step in &self.rest {
            match step {
                Step::Affine(linear) => {
                    let [a, b, c] = &mut row.at;
                    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
                        [*a, *b, *c] = linear.at([*a, *b, *c]);
                    }
                }
                Step::Elastic { field, noise, anchor, flat } => displace(field, noise, *anchor, *flat, row),
            }
        }
        for k in 0..3 {
            row.at[k].iter_mut().for_each(|x| *x += center[k]);
        }
    }
}

fn elastic_step(field: Elastic, reach: [f32; 3], flat: bool, number: u64) -> Step {
    // Several deformations of one patch must not share noise even if their keys were equal.
    let key = derive_seed(u64::from(field.key[0]) | u64::from(field.key[1]) << 32, 0, number);
    let reach = if flat { [0.0, reach[1], reach[2]] } else { reach };
    let phase = if flat { [0.0, field.phase[1], field.phase[2]] } else { field.phase };
    let field = Elastic { phase, ..field };
    let low = [0, 1, 2].map(|k| phase[k] - reach[k] / field.cell);
    let high = [0, 1, 2].map(|k| phase[k] + reach[k] / field.cell);
    let noise = PerlinNoise::new([key as u32, (key >> 32) as u32], flat, low, high);
    let anchor = noise.at(phase);
    Step::Elastic { field, noise: Box::new(noise), anchor, flat }
}

#[inline(always)]
fn displace(field: &Elastic, noise: &PerlinNoise<3>, anchor: [f32; 3], flat: bool, row: &mut SourceRow) {
    let w = row.at[0].len();
    let per_voxel = 1.0 / field.cell;
    row.scratch.iter_mut().for_each(|values| values.resize(w, 0.0));
    let [p, q, r, u, v, t] = &mut row.scratch;
    for (k, points) in [&mut *p, &mut *q, &mut *r].into_iter().enumerate() {
        if flat && k == 0 {
            points.fill(0.0);
        } else {
            for (point, x) in points.iter_mut().zip(&row.at[k]) {
                *point = x * per_voxel + field.phase[k];
            }
        }
    }
    noise.row([p, q, r], &mut [u, v, t]);
    for (k, values) in [u, v, t].into_iter().enumerate().skip(usize::from(flat)) {
        for (x, value) in row.at[k].iter_mut().zip(values) {
            *x += field.amplitude * (*value - anchor[k]);
        }
    }
}

type Matrix = [[f64; 3]; 3];

const IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// Mirrors along an axis.
pub(super) fn flipped(axis: Axis) -> SpatialTransform {
    linear(flip(axis))
}

/// Draws a turn by a multiple of 90° in the plane; of 180° if the patch is not square.
pub(super) fn quarter_turn(info: &PatchInfo, stream: &mut RandomStream) -> SpatialTransform {
    let square = info.size[1] == info.size[2];
    linear(rot90(if square { 1 + stream.below(3) } else { 2 }))
}

/// Draws a rotation in the plane by up to `degrees`, and out of it by up to `tilt`.
pub(super) fn rotated(
    degrees: f64,
    tilt: f64,
    info: &PatchInfo,
    stream: &mut RandomStream,
) -> SpatialTransform {
    let mut matrix = rotation([1, 2], angle(degrees, stream), info.spacing);
    if !info.flat && tilt > 0.0 {
        matrix = product(&matrix, &rotation([0, 2], angle(tilt, stream), info.spacing));
        matrix = product(&matrix, &rotation([0, 1], angle(tilt, stream), info.spacing));
    }
    linear(matrix)
}

/// Draws an enlargement from `low` to `high`.
pub(super) fn scaled(low: f64, high: f64, info: &PatchInfo, stream: &mut RandomStream) -> SpatialTransform {
    let step = 1.0 / stream.uniform_in(low.ln(), high.ln()).exp();
    let along_d = if info.flat { 1.0 } else { step };
    linear([[along_d, 0.0, 0.0], [0.0, step, 0.0], [0.0, 0.0, step]])
}

fn linear(matrix: Matrix) -> SpatialTransform {
    SpatialTransform::Affine(AffineMap::new(matrix))
}

fn angle(degrees: f64, stream: &mut RandomStream) -> f64 {
    stream.uniform_in(-degrees, degrees).to_radians()
}

pub(super) fn flip(axis: Axis) -> Matrix {
    let mut matrix = IDENTITY;
    let k = match axis {
        Axis::D => 0,
        Axis::H => 1,
        Axis::W => 2,
    };
    matrix[k][k] = -1.0;
    matrix
}

/// A rotation of the slice by `quarters` right angles; the entries are exact.
pub(super) fn rot90(quarters: u64) -> Matrix {
    let (sin, cos) = [(0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0)][(quarters % 4) as usize];
    [[1.0, 0.0, 0.0], [0.0, cos, -sin], [0.0, sin, cos]]
}

/// A rotation in a plane of the patient, in voxels: to millimeters, rotate, and back.
fn rotation([i, j]: [usize; 2], angle: f64, spacing: [f64; 3]) -> Matrix {
    let (sin, cos) = angle.sin_cos();
    let mut matrix = IDENTITY;
    (matrix[i][i], matrix[j][j]) = (cos, cos);
    matrix[i][j] = -sin * spacing[j] / spacing[i];
    matrix[j][i] = sin * spacing[i] / spacing[j];
    matrix
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    [0, 1, 2].map(|i| [0, 1, 2].map(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
}

/// A random square of the slice, enlarged to the patch: neighboring voxels of the patch are `share` voxels apart.
pub(super) fn crop(
    smallest: usize,
    largest: usize,
    info: &PatchInfo,
    stream: &mut RandomStream,
) -> SpatialTransform {
    let [_, height, width] = info.size;
    let most = largest.min(width);
    let least = smallest.min(most);
    let side = least + stream.below((most - least) as u64 + 1) as usize;
    let share = side as f64 / width as f64;
    let mut offset = [0.0f32; 3];
    for (axis, n) in [(1, height), (2, width)] {
        let free = n as f64 * (1.0 - share);
        let start = stream.below(free as u64 + 1) as f64;
        offset[axis] = (start - free / 2.0) as f32;
    }
    let matrix = [[1.0, 0.0, 0.0], [0.0, share, 0.0], [0.0, 0.0, share]];
    SpatialTransform::Affine(AffineMap { offset, ..AffineMap::new(matrix) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn point(map: &DeformationField, size: [usize; 3], at: [usize; 3]) -> [f32; 3] {
        let mut row = SourceRow::default();
        map.row(size, &Lattice::whole(size), [at[0], at[1]], [0.0; 3], &mut row);
        [0, 1, 2].map(|k| row.at[k][at[2]])
    }

    #[test]
    fn changes_are_composed_from_the_last_to_the_first() {
        let double =
            AffineMap { matrix: [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]], offset: [0.0; 3] };
        let shift = AffineMap { offset: [0.0, 0.0, 1.0], ..AffineMap::IDENTITY };
        let map = DeformationField::new(
            &[SpatialTransform::Affine(shift), SpatialTransform::Affine(double)],
            [1, 1, 3],
            true,
        );
        // Voxel 2 is at +1; the last change doubles it, the first shifts it.
        assert_eq!(point(&map, [1, 1, 3], [0, 0, 2]), [0.0, 0.0, 3.0]);
    }

    #[test]
    fn a_deformation_keeps_the_center_and_moves_the_rest_smoothly() {
        let size = [31, 31, 31];
        let mut stream = RandomStream::new(5, Purpose::Augment, 0);
        let field = Elastic::draw(16.0, 6.0, &mut stream);
        let map = DeformationField::new(&[SpatialTransform::Elastic(field)], size, false);
        assert_eq!(point(&map, size, [15, 15, 15]), [0.0; 3]);
        let moved = point(&map, size, [2, 8, 25]);
        assert!(moved.iter().zip([-13.0, -7.0, 10.0]).any(|(a, b)| (a - b).abs() > 0.1));
        for x in 1..31 {
            let (a, b) = (point(&map, size, [3, 4, x - 1]), point(&map, size, [3, 4, x]));
            assert!((b[2] - a[2] - 1.0).abs() < 0.9, "folded at {x}");
        }
    }

    #[test]
    fn a_flat_deformation_stays_in_its_plane() {
        let mut stream = RandomStream::new(5, Purpose::Augment, 1);
        let field = Elastic::draw(8.0, 3.0, &mut stream);
        let map = DeformationField::new(&[SpatialTransform::Elastic(field)], [1, 32, 32], true);
        assert_eq!(point(&map, [1, 32, 32], [0, 3, 7])[0], 0.0);
        assert!(map.as_axis_permutation().is_none());
    }
}
