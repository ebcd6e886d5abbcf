//! Scores that match samples with raters: HM-IoU and max-Dice, and the assignment algorithm behind the first.
//!
//! HM-IoU repeats the m samples and the n raters until both lists have lcm(m, n) entries, matches them one to
//! one so that the sum of the mean foreground IoU (1 − d of
//! [`foreground_distance`](super::foreground_distance), where a class absent in both counts 1) is largest,
//! and averages over the matched pairs. It is 1 exactly when samples and raters are the same maps in the same
//! proportions.

use rayon::prelude::*;

use super::aggregate::mean;
use super::check;
use super::group::ClassGroup;
use super::overlap::{BothEmpty, Overlap};
use super::pairwise::PairwiseDistances;
use crate::labels::BitPlanes;
use crate::{CoreError, Result};

/// The longest lists that are matched. The time grows with the third power of the length, to some ten seconds
/// here.
pub const MAX_MATCHED: usize = 2048;

/// The largest cost that [`hungarian`] accepts, so that no sum of costs overflows.
pub const MAX_COST: f64 = 1e150;

/// A one-to-one matching of rows with columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The column of each row.
    pub columns: Vec<usize>,
    /// The sum of the matched costs.
    pub cost: f64,
}

/// The matching of least total cost for a square matrix `[size, size]` in row-major order.
///
/// The Hungarian method with potentials in O(size³): row by row, the shortest path of reduced costs from the
/// new row to a free column extends the matching.
///
/// # Errors
/// [`CoreError::Length`] unless the matrix has size² entries, [`CoreError::NonFinite`] or
/// [`CoreError::OutOfRange`] for a cost that is not finite or beyond ±[`MAX_COST`].
pub fn hungarian(cost: &[f64], size: usize) -> Result<Assignment> {
    let expected = size.saturating_mul(size);
    if cost.len() != expected {
        return Err(CoreError::Length { field: "cost", expected, found: cost.len() });
    }
    if let Some(index) = cost.iter().position(|value| !value.is_finite()) {
        return Err(CoreError::NonFinite { field: "cost", index, value: cost[index] });
    }
    if let Some(index) = cost.iter().position(|value| value.abs() > MAX_COST) {
        let expected = "between -1e150 and 1e150";
        return Err(CoreError::OutOfRange { field: "cost", index, value: cost[index], expected });
    }
    let mut matching = Matching::new(cost, size);
    for row in 0..size {
        matching.add_row(row);
    }
    let mut columns = vec![0; size];
    for (column, row) in matching.row_of.iter().enumerate() {
        if let Some(row) = row {
            columns[*row] = column;
        }
    }
    let cost = columns.iter().enumerate().map(|(row, &column)| cost[row * size + column]).sum();
    Ok(Assignment { columns, cost })
}

/// A partial matching with potentials, whose sum never exceeds a cost and equals it on every matched pair.
struct Matching<'a> {
    cost: &'a [f64],
    size: usize,
    row_potential: Vec<f64>,
    column_potential: Vec<f64>,
    row_of: Vec<Option<usize>>,
}

impl<'a> Matching<'a> {
    fn new(cost: &'a [f64], size: usize) -> Self {
        let potential = vec![0.0; size];
        let (row_potential, column_potential) = (potential.clone(), potential);
        Self { cost, size, row_potential, column_potential, row_of: vec![None; size] }
    }

    /// Matches one more row, moving matched rows to other columns where that is cheaper.
    fn add_row(&mut self, new_row: usize) {
        let size = self.size;
        let mut shortest = vec![f64::INFINITY; size]; // reduced cost of the best path to each column
        let mut previous = vec![None; size]; // the column before it on that path, none for the new row itself
        let mut visited = vec![false; size];
        let mut path = Vec::with_capacity(size);
        let (mut row, mut came_from) = (new_row, None);
        let free = loop {
            let mut nearest = None;
            for column in (0..size).filter(|&column| !visited[column]) {
                let reduced =
                    self.cost[row * size + column] - self.row_potential[row] - self.column_potential[column];
                if reduced < shortest[column] {
                    (shortest[column], previous[column]) = (reduced, came_from);
                }
                if nearest.is_none_or(|best: usize| shortest[column] < shortest[best]) {
                    nearest = Some(column);
                }
            }
            // There is always a column left: fewer rows than columns are matched, and costs are finite.
            let Some(column) = nearest else { return };
            self.shift(shortest[column], new_row, &path);
            let step = shortest[column];
            shortest.iter_mut().zip(&visited).filter(|(_, visited)| !**visited).for_each(|(s, _)| *s -= step);
            match self.row_of[column] {
                None => break column,
                Some(matched) => (row, came_from) = (matched, Some(column)),
            }
            visited[column] = true;
            path.push(column);
        };
        let mut column = free;
        while let Some(before) = previous[column] {
            self.row_of[column] = self.row_of[before];
            column = before;
        }
        self.row_of[column] = Some(new_row);
    }

    /// Moves the potentials of the new row and of the visited pairs by `step`, which makes one more pair
    /// tight.
    fn shift(&mut self, step: f64, new_row: usize, visited: &[usize]) {
        self.row_potential[new_row] += step;
        for &column in visited {
            self.column_potential[column] -= step;
            if let Some(row) = self.row_of[column] {
                self.row_potential[row] += step;
            }
        }
    }
}

/// HM-IoU of all samples against all raters.
///
/// # Errors
/// When there is no sample or no rater, when the maps differ in voxels or classes, or when lcm(m, n) exceeds
/// [`MAX_MATCHED`].
pub fn hm_iou(samples: &[BitPlanes], raters: &[BitPlanes]) -> Result<f64> {
    PairwiseDistances::new(samples, raters)?.hm_iou_at(samples.len())
}

impl PairwiseDistances {
    /// HM-IoU of the first `samples` samples.
    ///
    /// # Errors
    /// When there are not so many samples, or when lcm(samples, n) exceeds [`MAX_MATCHED`].
    pub fn hm_iou_at(&self, samples: usize) -> Result<f64> {
        if samples == 0 || samples > self.samples() {
            let expected = "at least 1 and at most the number of samples drawn";
            return Err(CoreError::OutOfRange {
                field: "samples",
                index: 0,
                value: samples as f64,
                expected,
            });
        }
        let size = matched_pairs(samples, self.raters());
        if size > MAX_MATCHED {
            let expected = "at most 2048";
            let field = "least common multiple of samples and raters";
            return Err(CoreError::OutOfRange { field, index: 0, value: size as f64, expected });
        }
        let row = |i: usize| self.sample_to_raters(i % samples).iter().copied().cycle().take(size);
        let cost: Vec<f64> = (0..size).flat_map(row).collect(); // [lcm, lcm]
        Ok(1.0 - hungarian(&cost, size)?.cost / size as f64)
    }
}

/// How many pairs HM-IoU matches: lcm(samples, raters), or as many as a number can be if that is more.
pub fn matched_pairs(samples: usize, raters: usize) -> usize {
    let (mut gcd, mut rest) = (samples, raters);
    while rest > 0 {
        (gcd, rest) = (rest, gcd % rest);
    }
    (samples / gcd.max(1)).saturating_mul(raters)
}

/// Max-Dice: for every rater the largest Dice that a sample reaches, averaged over the raters.
///
/// The Dice of a pair is the mean over `groups` ([`ClassGroup::each`] for the foreground classes). With
/// [`BothEmpty::Undefined`] a group that is empty in both maps is left out of that mean, a pair without any
/// group left is no candidate, and a rater without any candidate is left out of the average; `None` when no
/// rater is left. With [`BothEmpty::One`] such groups count 1 and the result is always defined.
///
/// # Errors
/// When there is no sample, no rater or no group, when the maps differ in voxels or classes, or lack a class.
pub fn max_dice(
    samples: &[BitPlanes],
    raters: &[BitPlanes],
    groups: &[ClassGroup],
    both_empty: BothEmpty,
) -> Result<Option<f64>> {
    let space = check::common_space(&check::SAMPLES, samples)?;
    check::all_in(space, &check::RATERS, raters)?;
    if groups.is_empty() {
        return Err(CoreError::Empty { field: "groups" });
    }
    groups.iter().try_for_each(|group| group.check(space.classes))?;
    let dice = |sample: &BitPlanes, rater: &BitPlanes| {
        let each = groups.iter().map(|group| Overlap::of_checked(sample, rater, group).dice(both_empty));
        mean(&each.flatten().collect::<Vec<_>>())
    };
    let best = |rater| samples.par_iter().filter_map(|sample| dice(sample, rater)).reduce_with(f64::max);
    Ok(mean(&raters.iter().filter_map(best).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::LabelMap;

    fn planes(labels: &[u8]) -> BitPlanes {
        BitPlanes::new(&LabelMap::new(labels.to_vec(), 2).unwrap())
    }

    #[test]
    fn the_cheapest_matching() {
        let found = hungarian(&[4.0, 1.0, 3.0, 2.0, 0.0, 5.0, 3.0, 2.0, 2.0], 3).unwrap();
        assert_eq!((found.columns, found.cost), (vec![1, 0, 2], 5.0));
        assert_eq!(hungarian(&[], 0).unwrap(), Assignment { columns: vec![], cost: 0.0 });
        assert_eq!(hungarian(&[-7.0], 1).unwrap().cost, -7.0);
    }

    #[test]
    fn bad_costs_are_errors() {
        assert!(matches!(hungarian(&[1.0], 2), Err(CoreError::Length { expected: 4, found: 1, .. })));
        assert!(matches!(hungarian(&[f64::NAN], 1), Err(CoreError::NonFinite { index: 0, .. })));
        assert!(matches!(hungarian(&[1e200], 1), Err(CoreError::OutOfRange { .. })));
        assert!(hungarian(&[], usize::MAX).is_err());
        let extreme = [MAX_COST, -MAX_COST, -MAX_COST, MAX_COST];
        assert_eq!(hungarian(&extreme, 2).unwrap().columns, [1, 0]);
    }

    #[test]
    fn hm_iou_by_hand() {
        let (left, right, both) = (planes(&[1, 0]), planes(&[0, 1]), planes(&[1, 1]));
        let raters = [left.clone(), right.clone()];
        assert_eq!(hm_iou(&[right, left.clone()], &raters).unwrap(), 1.0);
        // Three samples and two raters become six pairs, each of IoU 1/2.
        let samples = [both.clone(), both.clone(), both];
        assert!((hm_iou(&samples, &raters).unwrap() - 0.5).abs() < 1e-15);
        let empty = planes(&[0, 0]);
        assert_eq!(hm_iou(std::slice::from_ref(&empty), std::slice::from_ref(&empty)).unwrap(), 1.0);
        assert_eq!(hm_iou(&[empty], &[left]).unwrap(), 0.0);
    }

    #[test]
    fn lists_that_are_too_long_to_match_are_an_error() {
        let map = planes(&[1]);
        let error = hm_iou(&vec![map.clone(); 47], &vec![map; 53]).unwrap_err();
        assert!(matches!(error, CoreError::OutOfRange { value: 2491.0, .. }), "{error}");
    }

    #[test]
    fn max_dice_follows_the_choice_for_empty_masks() {
        let (empty, left, both) = (planes(&[0, 0]), planes(&[1, 0]), planes(&[1, 1]));
        let groups = ClassGroup::each(2);
        let samples = [empty.clone(), both];
        let raters = [empty.clone(), left];
        let third = 2.0 / 3.0;
        // The empty rater is met by an empty sample (1) or, where that is undefined, by the full one alone
        // (0).
        let one = max_dice(&samples, &raters, &groups, BothEmpty::One).unwrap();
        assert_eq!(one, Some((1.0 + third) / 2.0));
        let undefined = max_dice(&samples, &raters, &groups, BothEmpty::Undefined).unwrap();
        assert_eq!(undefined, Some(third / 2.0));
        let nothing = max_dice(&samples[..1], &raters[..1], &groups, BothEmpty::Undefined).unwrap();
        assert_eq!(nothing, None);
        assert_eq!(
            max_dice(&samples, &raters, &[], BothEmpty::One),
            Err(CoreError::Empty { field: "groups" })
        );
    }
}
