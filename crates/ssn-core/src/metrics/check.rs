//! Checks that maps can be compared: the same voxels and the same classes, and at least one map.

use crate::labels::{BitPlanes, LabelMap};
use crate::{CoreError, Result};

/// How errors name an argument, its voxels and its classes.
pub(super) type Names = [&'static str; 3];

pub(super) const SAMPLES: Names = ["samples", "samples.voxels", "samples.classes"];
pub(super) const RATERS: Names = ["raters", "raters.voxels", "raters.classes"];

/// The extents in which two maps must agree.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Space {
    pub(super) voxels: usize,
    pub(super) classes: usize,
}

impl From<&LabelMap> for Space {
    fn from(map: &LabelMap) -> Self {
        Self { voxels: map.voxels(), classes: map.classes() }
    }
}

impl From<&BitPlanes> for Space {
    fn from(planes: &BitPlanes) -> Self {
        Self { voxels: planes.voxels(), classes: planes.classes() }
    }
}

/// The space that all `maps` share; they must not be none.
pub(super) fn common_space<'a, M>(names: &Names, maps: &'a [M]) -> Result<Space>
where
    Space: From<&'a M>,
{
    let first = maps.first().ok_or(CoreError::Empty { field: names[0] })?;
    let space = Space::from(first);
    all_in(space, names, maps)?;
    Ok(space)
}

/// Fails unless every one of `maps`, of which there must be one, lies in `space`.
pub(super) fn all_in<'a, M>(space: Space, names: &Names, maps: &'a [M]) -> Result<()>
where
    Space: From<&'a M>,
{
    if maps.is_empty() {
        return Err(CoreError::Empty { field: names[0] });
    }
    let expected = "the same as in the first map";
    for (index, map) in maps.iter().enumerate() {
        let found = Space::from(map);
        for (field, value, wanted) in
            [(names[1], found.voxels, space.voxels), (names[2], found.classes, space.classes)]
        {
            if value != wanted {
                return Err(CoreError::OutOfRange { field, index, value: value as f64, expected });
            }
        }
    }
    Ok(())
}

/// How far the probabilities of a voxel may sum from 1: rounding of half-precision values, not a
/// wrong layout.
const SUM_TOLERANCE: f64 = 1e-2;

/// Fails unless `values` `[c, v]` holds a probability of each class at each voxel.
pub(super) fn probabilities(values: &[f32], classes: usize, voxels: usize) -> Result<()> {
    let expected = classes.saturating_mul(voxels);
    if values.len() != expected {
        return Err(CoreError::Length { field: "probabilities", expected, found: values.len() });
    }
    let mut sums = vec![0.0; voxels];
    for (index, &value) in values.iter().enumerate() {
        let value = f64::from(value);
        if !value.is_finite() {
            return Err(CoreError::NonFinite { field: "probabilities", index, value });
        }
        if !(-SUM_TOLERANCE..=1.0 + SUM_TOLERANCE).contains(&value) {
            let expected = "between 0 and 1";
            return Err(CoreError::OutOfRange { field: "probabilities", index, value, expected });
        }
        sums[index % voxels] += value;
    }
    match sums.iter().position(|sum: &f64| (sum - 1.0).abs() > SUM_TOLERANCE) {
        None => Ok(()),
        Some(index) => {
            let (field, value) = ("sum of probabilities", sums[index]);
            Err(CoreError::OutOfRange { field, index, value, expected: "1, to within 0.01" })
        }
    }
}
