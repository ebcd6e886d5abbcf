//! Spatial changes: from settings and random numbers to maps.

use super::Subject;
use super::config::{Augmentation, Axis};
use crate::map::{Change, Elastic, Linear};
use crate::random::Stream;

type Matrix = [[f64; 3]; 3];

const IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// The maps of a spatial change, in the order in which they happen to the image.
pub(super) fn draw(augmentation: &Augmentation, subject: &Subject, stream: &mut Stream) -> Vec<Change> {
    let linear = |matrix| Change::Linear(Linear::new(matrix));
    match *augmentation {
        Augmentation::Flip { axis, .. } => vec![linear(flip(axis))],
        Augmentation::Turn { .. } => {
            let square = subject.size[1] == subject.size[2];
            vec![linear(turn(if square { 1 + stream.below(3) } else { 2 }))]
        }
        Augmentation::Rotate { degrees, tilt, .. } => {
            let mut matrix = rotation([1, 2], angle(degrees, stream), subject.spacing);
            if !subject.flat && tilt > 0.0 {
                matrix = product(&matrix, &rotation([0, 2], angle(tilt, stream), subject.spacing));
                matrix = product(&matrix, &rotation([0, 1], angle(tilt, stream), subject.spacing));
            }
            vec![linear(matrix)]
        }
        Augmentation::Scale { low, high, .. } => {
            let step = 1.0 / stream.uniform_in(low.ln(), high.ln()).exp();
            let along_d = if subject.flat { 1.0 } else { step };
            vec![linear([[along_d, 0.0, 0.0], [0.0, step, 0.0], [0.0, 0.0, step]])]
        }
        Augmentation::CropAndResize { smallest, largest, .. } => {
            vec![crop(smallest, largest, subject, stream)]
        }
        Augmentation::RotateThenCrop { degrees, smallest, largest, .. } => {
            let rotated = linear(rotation([1, 2], angle(degrees, stream), subject.spacing));
            vec![rotated, crop(smallest, largest, subject, stream)]
        }
        Augmentation::Elastic { cell, amplitude, .. } => {
            vec![Change::Elastic(Elastic::draw(cell, amplitude, stream))]
        }
        Augmentation::ScaleAndShift { .. } | Augmentation::Noise { .. } | Augmentation::Gamma { .. } => {
            vec![]
        }
    }
}

fn angle(degrees: f64, stream: &mut Stream) -> f64 {
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

/// A turn of the slice by `quarters` right angles; the entries are exact.
pub(super) fn turn(quarters: u64) -> Matrix {
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
fn crop(smallest: usize, largest: usize, subject: &Subject, stream: &mut Stream) -> Change {
    let [_, height, width] = subject.size;
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
    Change::Linear(Linear { offset, ..Linear::new(matrix) })
}
