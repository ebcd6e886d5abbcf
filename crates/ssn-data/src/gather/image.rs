//! Images: linear interpolation, with the value at the border repeated outside.

use ssn_core::simd::vectorized;

use super::interleaved::{Group, Interleaved};
use super::{Line, Lines, Window, limited, whole};
use crate::grid::Grid;
use crate::map::{Row, SpatialMap};

/// Where the values of a row lie: the lowest of the neighboring voxels and the distances from it.
#[derive(Debug, Default)]
struct Places {
    base: Vec<u32>,
    part: [Vec<f32>; 3],
}

/// Fills a grid of a patch of an image.
///
/// # Shapes
/// `out`: `[c, d, h, w]` of the grid's count.
pub fn gather_image(image: &Interleaved, map: &SpatialMap, window: Window, grid: &Grid, out: &mut [f32]) {
    let voxels = grid.voxels();
    let mut rest = out;
    for group in &image.groups {
        let (planes, after) = rest.split_at_mut(group.channels() * voxels);
        match group {
            Group::One(data) => gather_group(data, image.shape, map, (window, grid), planes),
            Group::Two(data) => gather_group(data, image.shape, map, (window, grid), planes),
            Group::Three(data) | Group::Four(data) => {
                gather_group(data, image.shape, map, (window, grid), planes);
            }
        }
        rest = after;
    }
}

/// # Shapes
/// `data`: `[d, h, w, lanes]`; `planes`: up to `L` planes of the grid's count.
fn gather_group<const L: usize>(
    data: &[[f32; L]],
    shape: [usize; 3],
    map: &SpatialMap,
    (window, grid): (Window, &Grid),
    planes: &mut [f32],
) {
    let lines = map.as_grid_change().and_then(|change| Lines::new(change, window));
    let [depth, height, width] = grid.count;
    let center = window.center();
    let (mut row, mut places) = (Row::default(), Places::default());
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
    fn find(&mut self, shape: [usize; 3], row: &Row) {
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

#[inline(always)]
fn interpolate<const L: usize>(data: &[[f32; L]], shape: [usize; 3], places: &Places, out: &mut [[f32; L]]) {
    let (z, y, x) = (shape[1] * shape[2], next(shape[1], shape[2]), next(shape[2], 1));
    let width = out.len();
    let [pz, py, px] = &places.part;
    let (pz, py, px) = (&pz[..width], &py[..width], &px[..width]);
    let base = &places.base[..width];
    for i in 0..width {
        let (at, t) = (base[i] as usize, px[i]);
        let near = mix(
            py[i],
            mix(t, data[at], data[at + x]), //
            mix(t, data[at + y], data[at + y + x]),
        );
        let at = at + z;
        let far = mix(
            py[i],
            mix(t, data[at], data[at + x]), //
            mix(t, data[at + y], data[at + y + x]),
        );
        out[i] = mix(pz[i], near, far);
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
        let at = base[i] as usize;
        let low = mix(px[i], data[at], data[at + x]);
        out[i] = mix(py[i], low, mix(px[i], data[at + y], data[at + y + x]));
    }
}

/// The distance to the next voxel along an axis of `n`; along an axis of one voxel there is none.
#[inline(always)]
fn next(n: usize, stride: usize) -> usize {
    if n == 1 { 0 } else { stride }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Change, Linear};

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
                let image = Interleaved::new(image, channels, shape);
                assert_eq!(image.channels(), channels);
                let shift = Linear { offset: [0.25, -0.5, 0.125], ..Linear::IDENTITY };
                let map = SpatialMap::new(&[Change::Linear(shift)], shape, false);
                let window = Window { start: [-2, 1, -1], size: [9, 6, 10] };
                let mut out = vec![0.0; channels * 540];
                gather_image(&image, &map, window, &Grid::whole(window.size), &mut out);
                for c in 0..channels {
                    for v in 0..540 {
                        let at = [v / 60, v / 10 % 6, v % 10][c % 3] as f32;
                        let place = at + window.start[c % 3] as f32 + shift.offset[c % 3];
                        let expected = place.clamp(0.0, (shape[c % 3] - 1) as f32);
                        assert_eq!(out[c * 540 + v], expected, "{shape:?}, channel {c}, voxel {v}");
                    }
                }
            }
        }
    }
}
