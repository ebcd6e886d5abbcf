//! Scores that match samples with raters: HM-IoU, Dice_max and Dice_match, and the assignment algorithm behind the first.
//!
//! HM-IoU repeats the m samples and the n raters until both lists have lcm(m, n) entries, matches them one to
//! one so that the sum of the mean foreground IoU (1 − d of
//! [`foreground_distance`](super::foreground_distance), where a class absent in both counts 1) is largest,
//! and averages over the matched pairs. It is 1 exactly when samples and raters are the same maps in the same
//! proportions.

use rayon::prelude::*;

use super::check;
use super::ged::PairwiseDistances;
use super::overlap::{ClassGroup, Overlap};
use crate::labels::BitPlanes;
use crate::{CoreError, Result};

/// The longest lists that are matched. The time grows with the third power of the length, to some ten seconds here.
pub const MAX_MATCHED: usize = 2048;

/// The least total cost of a one-to-one matching of the rows and columns of a matrix `[size, size]` of finite costs.
///
/// The Hungarian method with potentials in O(size³): row by row, the shortest path of reduced costs from the
/// new row to a free column extends the matching.
fn least_cost(cost: &[f64], size: usize) -> f64 {
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
    columns.iter().enumerate().map(|(row, &column)| cost[row * size + column]).sum()
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

impl PairwiseDistances {
    /// HM-IoU of all samples against all raters.
    ///
    /// # Errors
    /// When lcm(m, n) exceeds [`MAX_MATCHED`].
    pub fn hm_iou(&self) -> Result<f64> {
        let (samples, size) = (self.samples(), matched_pairs(self.samples(), self.raters()));
        if size > MAX_MATCHED {
            let expected = "at most 2048";
            let field = "least common multiple of samples and raters";
            return Err(CoreError::OutOfRange { field, index: 0, value: size as f64, expected });
        }
        let row = |i: usize| self.sample_to_raters(i % samples).iter().copied().cycle().take(size);
        let cost: Vec<f64> = (0..size).flat_map(row).collect(); // [lcm, lcm]
        Ok(1.0 - least_cost(&cost, size) / size as f64)
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

/// The Dice of every pair of a sample and a rater `[m, n]`.
///
/// The Dice of a pair is the mean over `groups` ([`ClassGroup::each`] for the foreground classes), where a group that
/// is empty in both maps counts 1.
#[derive(Debug, Clone, PartialEq)]
pub struct PairwiseDice {
    dice: Vec<f64>, // [m, n]
    raters: usize,
}

impl PairwiseDice {
    /// Compares every sample with every rater.
    pub fn new(samples: &[BitPlanes], raters: &[BitPlanes], groups: &[ClassGroup]) -> Result<Self> {
        let space = check::common_space(&check::SAMPLES, samples)?;
        check::all_in(space, &check::RATERS, raters)?;
        if groups.is_empty() {
            return Err(CoreError::Empty { field: "groups" });
        }
        groups.iter().try_for_each(|group| group.check(space.classes))?;
        let dice = |sample: &BitPlanes, rater: &BitPlanes| {
            let each =
                groups.iter().map(|group| Overlap::of_checked(sample, rater, group).dice().unwrap_or(1.0));
            each.sum::<f64>() / groups.len() as f64
        };
        let row = |sample| raters.iter().map(move |rater| dice(sample, rater));
        Ok(Self { dice: samples.par_iter().flat_map_iter(row).collect(), raters: raters.len() })
    }

    /// For every rater the largest Dice that a sample reaches (max-Dice, Dice_max of the raters), averaged over the raters.
    pub fn max_of_raters(&self) -> f64 {
        let best =
            |rater: usize| self.dice.iter().skip(rater).step_by(self.raters).copied().fold(0.0, f64::max);
        (0..self.raters).map(best).sum::<f64>() / self.raters as f64
    }

    /// For every sample the largest Dice with a rater (Dice_max of the samples), averaged over the samples.
    pub fn max_of_samples(&self) -> f64 {
        let rows = self.dice.chunks_exact(self.raters);
        let count = rows.len() as f64;
        rows.map(|row| row.iter().copied().fold(0.0, f64::max)).sum::<f64>() / count
    }

    /// Dice_match: the mean Dice of the min(m, n) pairs of the best one-to-one matching; `None` where the longer list
    /// exceeds [`MAX_MATCHED`].
    pub fn matched(&self) -> Option<f64> {
        let (m, n) = (self.dice.len() / self.raters, self.raters);
        let size = m.max(n);
        if size > MAX_MATCHED {
            return None;
        }
        // Whoever is left over is matched with nobody, at no cost.
        let mut cost = vec![0.0; size * size];
        for (row, dice) in self.dice.chunks_exact(n).enumerate() {
            cost[row * size..row * size + n].iter_mut().zip(dice).for_each(|(cost, dice)| *cost = -dice);
        }
        Some(-least_cost(&cost, size) / m.min(n) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::LabelMap;

    fn planes(labels: &[u8]) -> BitPlanes {
        BitPlanes::new(&LabelMap::new(labels.to_vec(), 2).unwrap())
    }

    #[test]
    fn lists_that_are_too_long_to_match_are_an_error() {
        let map = planes(&[1]);
        let distances = PairwiseDistances::new(&vec![map.clone(); 47], &vec![map; 53]).unwrap();
        let error = distances.hm_iou().unwrap_err();
        assert!(matches!(error, CoreError::OutOfRange { value: 2491.0, .. }), "{error}");
    }

    #[test]
    fn max_dice_counts_empty_masks_that_agree() {
        let (empty, left, both) = (planes(&[0, 0]), planes(&[1, 0]), planes(&[1, 1]));
        let (samples, raters) = ([empty.clone(), both], [empty, left]);
        let found = PairwiseDice::new(&samples, &raters, &ClassGroup::each(2)).unwrap();
        assert_eq!(found.max_of_raters(), (1.0 + 2.0 / 3.0) / 2.0);
        assert_eq!(found.max_of_samples(), (1.0 + 2.0 / 3.0) / 2.0);
        assert_eq!(found.matched(), Some((1.0 + 2.0 / 3.0) / 2.0));
        let alone = PairwiseDice::new(&samples, &raters[1..], &ClassGroup::each(2)).unwrap();
        assert_eq!((alone.matched(), alone.max_of_samples()), (Some(2.0 / 3.0), 1.0 / 3.0));
        assert_eq!(PairwiseDice::new(&samples, &raters, &[]), Err(CoreError::Empty { field: "groups" }));
    }
}
