//! Smooth noise: Perlin's gradient noise, evaluated exactly.
//!
//! Space is divided into unit cells. Every corner has a random unit vector g, and the noise at p is the blend of
//! g·(p − corner) over the eight corners of p's cell, with the weights s(t) = 6t⁵ − 15t⁴ + 10t³ along each axis. Within a
//! cell the vectors are constants, so that a row of voxels is evaluated run by run, many voxels at once.

use std::f64::consts::TAU;

use ssn_core::random::philox4x32;

/// Voxels that are evaluated together.
const LANES: usize = 16;

/// `K` independent noises on a box of cells.
#[derive(Debug, Clone)]
pub struct PerlinNoise<const K: usize> {
    first: [i32; 3],
    corners: [usize; 3],
    vectors: Vec<[[f32; 3]; K]>,
}

impl<const K: usize> PerlinNoise<K> {
    /// Noise for the points between `low` and `high`, `[d, h, w]` in cells. Boxes of the same key agree where they
    /// overlap; points outside the box get the noise of a cell at its border, continued.
    ///
    /// `flat` noise varies along h and w alone: the vectors lie in the plane, and |noise| ≤ √½ instead of √¾.
    pub fn new(key: [u32; 2], flat: bool, low: [f32; 3], high: [f32; 3]) -> Self {
        let first = low.map(|x| x.floor() as i32);
        let corners = [0, 1, 2].map(|axis| (high[axis].floor() as i32 - first[axis]).max(0) as usize + 2);
        let mut vectors = Vec::with_capacity(corners.iter().product());
        for d in 0..corners[0] {
            for h in 0..corners[1] {
                for w in 0..corners[2] {
                    let corner = [d, h, w];
                    let place = [0, 1, 2].map(|axis| first[axis].wrapping_add(corner[axis] as i32) as u32);
                    vectors.push(std::array::from_fn(|component| {
                        unit_vector(key, flat, [place[0], place[1], place[2], component as u32])
                    }));
                }
            }
        }
        Self { first, corners, vectors }
    }

    pub fn at(&self, point: [f32; 3]) -> [f32; K] {
        let mut out = [[0.0]; K];
        let [d, h, w] = point.map(|x| [x]);
        let [first, second, third] = [&d[..], &h[..], &w[..]];
        self.row([first, second, third], &mut out.each_mut().map(|values| &mut values[..]));
        out.map(|values| values[0])
    }

    /// The noises at a row of points, given by their coordinates in cells.
    #[inline(always)]
    pub fn row(&self, points: [&[f32]; 3], out: &mut [&mut [f32]; K]) {
        let n = points[0].len();
        let mut start = 0;
        while start < n {
            let cell = [
                self.cell(0, points[0][start]),
                self.cell(1, points[1][start]),
                self.cell(2, points[2][start]),
            ];
            let corners = self.corner_vectors(cell);
            // As far as the row stays in this cell.
            let mut inner = [[0.0f32; LANES]; 3];
            let mut values = [[0.0f32; LANES]; K];
            while start < n {
                let mut count = LANES.min(n - start);
                let mut outside = [0u8; LANES];
                for axis in 0..3 {
                    inner[axis][..count].copy_from_slice(&points[axis][start..start + count]);
                    let base = cell[axis] as f32;
                    for lane in 0..LANES {
                        inner[axis][lane] -= base;
                        outside[lane] |= u8::from(!(0.0..1.0).contains(&inner[axis][lane]));
                    }
                }
                let leaves = outside[..count].iter().position(|&outside| outside != 0);
                // The first point of a cell belongs to it even where rounding or the end of the box say otherwise.
                count = leaves.map_or(count, |lane| lane.max(1));
                blend(&corners, &inner, &mut values);
                for component in 0..K {
                    out[component][start..start + count].copy_from_slice(&values[component][..count]);
                }
                start += count;
                if leaves.is_some() {
                    break;
                }
            }
        }
    }

    /// The cell of a coordinate, within the box.
    #[inline(always)]
    fn cell(&self, axis: usize, x: f32) -> i32 {
        let last = self.first[axis] + self.corners[axis] as i32 - 2;
        // Rounded down by truncation, which is an instruction of every CPU.
        let whole = x as i32;
        (if whole as f32 > x { whole - 1 } else { whole }).clamp(self.first[axis], last)
    }

    /// The vectors at the corners of a cell, by component and axis; `w` is the lowest bit of the corner's number.
    #[inline(always)]
    fn corner_vectors(&self, cell: [i32; 3]) -> [[[f32; 3]; K]; 8] {
        let mut vectors = [[[0.0; 3]; K]; 8];
        for (corner, vector) in vectors.iter_mut().enumerate() {
            let d = (cell[0] - self.first[0]) as usize + (corner >> 2);
            let h = (cell[1] - self.first[1]) as usize + (corner >> 1 & 1);
            let w = (cell[2] - self.first[2]) as usize + (corner & 1);
            *vector = self.vectors[(d * self.corners[1] + h) * self.corners[2] + w];
        }
        vectors
    }
}

/// The noises at points inside one cell, given by their distance from its lowest corner.
#[inline(always)]
fn blend<const K: usize>(
    corners: &[[[f32; 3]; K]; 8],
    inner: &[[f32; LANES]; 3],
    out: &mut [[f32; LANES]; K],
) {
    for component in 0..K {
        for lane in 0..LANES {
            let low = [inner[0][lane], inner[1][lane], inner[2][lane]];
            let high = [low[0] - 1.0, low[1] - 1.0, low[2] - 1.0];
            let dot = |corner: usize| {
                let g = corners[corner][component];
                let d = if corner & 4 == 0 { low[0] } else { high[0] };
                let h = if corner & 2 == 0 { low[1] } else { high[1] };
                let w = if corner & 1 == 0 { low[2] } else { high[2] };
                g[0] * d + g[1] * h + g[2] * w
            };
            let [d, h, w] = [fade(low[0]), fade(low[1]), fade(low[2])];
            let near = mix(h, mix(w, dot(0), dot(1)), mix(w, dot(2), dot(3)));
            let far = mix(h, mix(w, dot(4), dot(5)), mix(w, dot(6), dot(7)));
            out[component][lane] = mix(d, near, far);
        }
    }
}

#[inline(always)]
fn fade(t: f32) -> f32 {
    t * t * t * (t * (t * 6.0 - 15.0) + 10.0)
}

#[inline(always)]
fn mix(t: f32, a: f32, b: f32) -> f32 {
    a + t * (b - a)
}

/// The unit vector `[d, h, w]` at a place, uniform on the sphere or the circle.
fn unit_vector(key: [u32; 2], flat: bool, place: [u32; 4]) -> [f32; 3] {
    let words = philox4x32(place, key);
    let unit = |word: u32| (f64::from(word) + 0.5) / 4_294_967_296.0;
    let (sin, cos) = (TAU * unit(words[0])).sin_cos();
    let height = if flat { 0.0 } else { 2.0 * unit(words[1]) - 1.0 };
    let radius = f64::sqrt(1.0 - height * height);
    [height as f32, (radius * sin) as f32, (radius * cos) as f32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_0_at_corners_and_bounded_and_smooth() {
        let noise = PerlinNoise::<3>::new([1, 2], false, [-3.0; 3], [4.0; 3]);
        assert_eq!(noise.at([1.0, -2.0, 3.0]), [0.0; 3]);
        let mut largest = 0.0f32;
        let mut last = noise.at([-2.9, -2.5, -2.7]);
        for i in 1..6000 {
            let t = i as f32 * 1e-3;
            let here = noise.at([-2.9 + t, -2.5 + 0.9 * t, -2.7 + 0.7 * t]);
            for k in 0..3 {
                assert!((here[k] - last[k]).abs() < 5e-3, "a jump at {t}");
                largest = largest.max(here[k].abs());
            }
            last = here;
        }
        assert!(largest > 0.3 && largest <= 0.75f32.sqrt(), "{largest}");
    }

    #[test]
    fn a_row_equals_its_points_and_boxes_of_one_key_agree() {
        let noise = PerlinNoise::<2>::new([5, 6], false, [0.0; 3], [5.0; 3]);
        let larger = PerlinNoise::<2>::new([5, 6], false, [-7.0; 3], [9.0; 3]);
        let line = |slope: f32| (0..100).map(|i| 0.3 + slope * i as f32).collect::<Vec<f32>>();
        let (d, h, w) = (line(0.01), line(0.043), line(0.02));
        let mut out = [vec![0.0; 100], vec![0.0; 100]];
        let [first, second] = &mut out;
        noise.row([&d, &h, &w], &mut [first, second]);
        for i in 0..100 {
            let point = [d[i], h[i], w[i]];
            assert_eq!([out[0][i], out[1][i]], noise.at(point));
            assert_eq!(noise.at(point), larger.at(point));
        }
    }

    #[test]
    fn flat_noise_ignores_the_first_axis_within_a_cell_of_depth_0() {
        let noise = PerlinNoise::<1>::new([5, 6], true, [0.0; 3], [0.0, 9.0, 9.0]);
        let values: Vec<f32> =
            (0..900).map(|i| noise.at([0.0, i as f32 * 0.01, i as f32 * 0.007])[0]).collect();
        let largest = values.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        assert!(largest > 0.2 && largest <= 0.5f32.sqrt(), "{largest}");
    }
}
