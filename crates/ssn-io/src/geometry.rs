//! Where the voxels of an image lie in the patient.

use std::fmt;

/// Place, direction and size of the voxels of a volume.
///
/// Axes of the grid are i, j, k: i runs along a row (`w`), j along a column (`h`), k through the slices (`d`). The
/// world is in millimeters and RAS+: x to the right, y to the front, z to the head. Readers of formats that point
/// elsewhere (LPS in NRRD and MetaImage) convert.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geometry {
    /// Distance of neighboring voxels along i, j, k; positive.
    pub spacing: [f64; 3],
    /// World coordinates of the center of voxel (0, 0, 0).
    pub origin: [f64; 3],
    /// `direction[row][axis]`: component `row` of the unit vector along grid axis `axis`.
    pub direction: [[f64; 3]; 3],
}

impl Default for Geometry {
    /// Voxels of 1 mm at the origin, along the axes of the world: what a file without geometry gets.
    fn default() -> Self {
        Self {
            spacing: [1.0; 3],
            origin: [0.0; 3],
            direction: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        }
    }
}

impl Geometry {
    /// Returns the geometry of voxels at a distance along `d, h, w`, along the axes of the world.
    pub fn of_spacing([d, h, w]: [f64; 3]) -> Self {
        Self { spacing: [w, h, d], ..Self::default() }
    }
}

/// How far two geometries may differ and still be taken for the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Relative difference of spacings.
    pub spacing: f64,
    /// Distance of origins, as a share of the smallest spacing.
    pub origin: f64,
    /// Difference of components of direction vectors.
    pub direction: f64,
}

impl Default for Tolerance {
    /// Wide enough for what single precision and decimal text lose, and far below what moves a voxel.
    fn default() -> Self {
        Self { spacing: 1e-4, origin: 1e-2, direction: 1e-4 }
    }
}

/// Degrees by which axes may be turned against each other and still point the same way.
const MOST_TURN: f64 = 1.0;

/// One quantity in which two geometries differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Such as `spacing[2]`.
    pub quantity: String,
    /// Its value in the first geometry.
    pub first: f64,
    /// Its value in the second.
    pub second: f64,
}

/// The differences as a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Differences(pub Vec<Difference>);

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<16} {:>14} {:>14}", "", "first", "second")?;
        for Difference { quantity, first, second } in &self.0 {
            writeln!(f, "{quantity:<16} {first:>14.6} {second:>14.6}")?;
        }
        Ok(())
    }
}

impl Geometry {
    /// From an affine: the first three rows of the matrix that maps (i, j, k, 1) to the world. Nothing if an axis
    /// has no length or a number is not finite.
    pub fn from_affine(affine: [[f64; 4]; 3]) -> Option<Self> {
        let mut geometry = Self::default();
        for axis in 0..3 {
            let column = affine.map(|row| row[axis]);
            let length = column.iter().map(|x| x * x).sum::<f64>().sqrt();
            if !(length.is_finite() && length > 0.0) {
                return None;
            }
            geometry.spacing[axis] = length;
            for row in 0..3 {
                geometry.direction[row][axis] = column[row] / length;
            }
            geometry.origin[axis] = affine[axis][3];
        }
        geometry.origin.iter().all(|x| x.is_finite()).then_some(geometry)
    }

    /// The first three rows of the affine.
    pub fn affine(&self) -> [[f64; 4]; 3] {
        let mut affine = [[0.0; 4]; 3];
        for row in 0..3 {
            for axis in 0..3 {
                affine[row][axis] = self.direction[row][axis] * self.spacing[axis];
            }
            affine[row][3] = self.origin[row];
        }
        affine
    }

    /// Whether the axes point in different directions. Those of a cuboid span 1, with a gantry tilt of 30° 0.87, and 0 where axes
    /// fall together or have no direction.
    pub fn spans_volume(&self) -> bool {
        let [i, j, k] = [0, 1, 2].map(|axis| self.direction.map(|row| row[axis]));
        let cross = [j[1] * k[2] - j[2] * k[1], j[2] * k[0] - j[0] * k[2], j[0] * k[1] - j[1] * k[0]];
        let volume = i.iter().zip(cross).map(|(a, b)| a * b).sum::<f64>().abs();
        // Not true of what is not a number.
        volume >= 1e-3 && volume.is_finite()
    }

    /// The same place with x and y pointing the other way: between RAS and LPS, in either direction.
    pub fn with_x_and_y_flipped(mut self) -> Self {
        for row in 0..2 {
            self.origin[row] = -self.origin[row];
            self.direction[row] = self.direction[row].map(|x| -x);
        }
        self
    }

    /// Returns `true` for what writers store if nobody sets a geometry: voxels of 1 mm at the origin, along the axes of RAS (nibabel
    /// with an identity) or LPS (ITK).
    pub fn is_unset(&self) -> bool {
        *self == Self::default() || self.with_x_and_y_flipped() == Self::default()
    }

    /// Returns the voxel `[k, j, i]` of this grid at which another grid of the same axes and spacing begins.
    ///
    /// Returns `None` if they differ, or begin between voxels.
    pub fn offset_of(&self, other: &Self) -> Option<[isize; 3]> {
        const CLOSE: f64 = 0.02;
        let is_same = |axis: usize| {
            let cosine: f64 = (0..3).map(|row| self.direction[row][axis] * other.direction[row][axis]).sum();
            cosine > 0.9999 && (self.spacing[axis] / other.spacing[axis] - 1.0).abs() < 1e-3
        };
        let along = |axis: usize| -> Option<isize> {
            let shift = (0..3).map(|row| self.direction[row][axis] * (other.origin[row] - self.origin[row]));
            let voxels = shift.sum::<f64>() / self.spacing[axis];
            ((voxels - voxels.round()).abs() < CLOSE).then_some(voxels.round() as isize)
        };
        let place = [along(2)?, along(1)?, along(0)?];
        (0..3).all(is_same).then_some(place)
    }

    /// Describes how the axes of `other` point another way than the axes of this grid, to follow "the voxels are".
    ///
    /// Returns `None` if they are within a degree of each other. Axes of a single voxel do not count.
    ///
    /// # Shapes
    /// `size` `[d, h, w]` of both grids.
    pub fn turn(&self, other: &Self, [d, h, w]: [usize; 3]) -> Option<String> {
        let cosine = |a: usize, b: usize| -> f64 {
            (0..3).map(|row| self.direction[row][a] * other.direction[row][b]).sum()
        };
        let axes = [("width", w), ("height", h), ("depth", d)];
        let is_same = |axis: usize| cosine(axis, axis) >= MOST_TURN.to_radians().cos();
        let turned: Vec<usize> = (0..3).filter(|&axis| axes[axis].1 > 1 && !is_same(axis)).collect();
        let is_nearest = |axis: usize| (0..3).all(|b| cosine(axis, b).abs() <= cosine(axis, axis).abs());
        if turned.is_empty() {
            return None;
        }
        if !turned.iter().all(|&axis| is_nearest(axis)) {
            return Some("stored along other axes".to_owned());
        }
        let mirrored = turned.iter().filter(|&&axis| cosine(axis, axis) < 0.0);
        let mirrored: Vec<&str> = mirrored.map(|&axis| axes[axis].0).collect();
        if !mirrored.is_empty() {
            return Some(format!("mirrored along the {}", mirrored.join(" and the ")));
        }
        let smallest = turned.iter().map(|&axis| cosine(axis, axis)).fold(1.0, f64::min);
        Some(format!("rotated by {:.1}°", smallest.acos().to_degrees()))
    }

    /// Returns where width, height and depth run to, each to the nearest of right and left, anterior and posterior, superior and
    /// inferior, such as `RAS`.
    pub fn orientation(&self) -> String {
        let letter = |axis: usize| {
            let column = self.direction.map(|row| row[axis]);
            let along = (0..3).fold(0, |a, b| if column[b].abs() > column[a].abs() { b } else { a });
            [['L', 'R'], ['P', 'A'], ['I', 'S']][along][usize::from(column[along] > 0.0)]
        };
        (0..3).map(letter).collect()
    }

    /// In what two geometries differ beyond a tolerance; nothing if they are the same.
    pub fn differences(&self, other: &Self, tolerance: Tolerance) -> Option<Differences> {
        let mut found = vec![];
        let mut compare = |quantity: String, first: f64, second: f64, allowed: f64| {
            // A value that is not a number is the same as nothing.
            let same = (first - second).abs() <= allowed;
            if !same {
                found.push(Difference { quantity, first, second });
            }
        };
        let smallest = self.spacing.iter().copied().fold(f64::INFINITY, f64::min);
        for axis in 0..3 {
            let (a, b) = (self.spacing[axis], other.spacing[axis]);
            compare(format!("spacing[{axis}]"), a, b, tolerance.spacing * a.abs());
        }
        for row in 0..3 {
            compare(
                format!("origin[{row}]"),
                self.origin[row],
                other.origin[row],
                tolerance.origin * smallest,
            );
        }
        for row in 0..3 {
            for axis in 0..3 {
                let (a, b) = (self.direction[row][axis], other.direction[row][axis]);
                compare(format!("direction[{row}][{axis}]"), a, b, tolerance.direction);
            }
        }
        (!found.is_empty()).then_some(Differences(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned() -> Geometry {
        let (c, s) = (0.8, 0.6);
        Geometry {
            spacing: [0.7, 0.7, 2.5],
            origin: [-90.0, 12.5, 40.0],
            direction: [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, -1.0]],
        }
    }

    #[test]
    fn an_affine_goes_round() {
        let geometry = turned();
        let back = Geometry::from_affine(geometry.affine()).unwrap();
        assert_eq!(
            geometry.differences(&back, Tolerance { spacing: 1e-12, origin: 1e-12, direction: 1e-12 }),
            None
        );
        assert_eq!(geometry.with_x_and_y_flipped().with_x_and_y_flipped(), geometry);
    }

    #[test]
    fn an_affine_without_volume_has_no_geometry() {
        let mut affine = turned().affine();
        (0..3).for_each(|row| affine[row][1] = 0.0);
        assert_eq!(Geometry::from_affine(affine), None);
        affine[0][0] = f64::NAN;
        assert_eq!(Geometry::from_affine(affine), None);
    }

    #[test]
    fn turned_axes_are_described() {
        let turn = |a: Geometry, b: Geometry, size| a.turn(&b, size).unwrap_or_default();
        let with = |change: fn(&mut [f64; 3])| {
            let mut other = turned();
            other.direction.iter_mut().for_each(change);
            other
        };
        let cube = [2; 3];
        assert_eq!(turn(turned(), Geometry { spacing: [9.0; 3], origin: [9.0; 3], ..turned() }, cube), "");
        assert_eq!(turn(turned(), with(|row| row[1] = -row[1]), cube), "mirrored along the height");
        let half_turn = with(|row| [row[0], row[2]] = [-row[0], -row[2]]);
        assert_eq!(turn(turned(), half_turn, cube), "mirrored along the width and the depth");
        assert_eq!(turn(turned(), half_turn, [1, 2, 2]), "mirrored along the width", "one slice");
        assert_eq!(turn(turned(), with(|row| row.swap(0, 2)), cube), "stored along other axes");
        let upright = Geometry { direction: with(|row| row[2] = -row[2]).direction, ..turned() };
        assert_eq!(turn(Geometry::default(), upright, cube), "rotated by 36.9°");
        assert_eq!((turned().orientation().as_str(), half_turn.orientation().as_str()), ("RAI", "LAS"));
        let not_a_number = with(|row| row[0] = f64::NAN);
        assert!(turned().turn(&not_a_number, cube).is_some());
    }

    #[test]
    fn differences_are_listed() {
        let (a, mut b) = (turned(), turned());
        b.spacing[2] = 2.6;
        b.origin[0] += 0.001;
        let differences = a.differences(&b, Tolerance::default()).unwrap();
        assert_eq!(differences.0.len(), 1, "a micrometer is nothing");
        assert!(differences.to_string().contains("spacing[2]"), "{differences}");
        b.origin[1] = f64::NAN;
        assert_eq!(a.differences(&b, Tolerance::default()).unwrap().0.len(), 2);
    }
}
