//! Scores against what several raters have in common, class by class: those of the multi-rater challenges.
//!
//! For a class or group of classes, n raters and their masks, F are the voxels that all raters give it, B those that
//! none does, and ȳ the share of raters at a voxel.

use std::collections::BTreeMap;

use super::check;
use super::overlap::ClassGroup;
use crate::labels::LabelMap;
use crate::{CoreError, Result};

/// A probability within this of a threshold is not above it: shares of samples in single precision lie beside it by chance.
const THRESHOLD_SLACK: f64 = 1e-6;
/// Steps of STAPLE at most; it converges in some ten.
const STAPLE_STEPS: usize = 1000;
/// STAPLE ends when no rater's sensitivity or specificity moves by more.
const STAPLE_CHANGE: f64 = 1e-9;
/// The sensitivity or specificity of raters where there is nothing to tell it from.
const UNKNOWN_RATE: f64 = 0.99999;

/// How many of n raters give each voxel a class or group.
#[derive(Debug, Clone, PartialEq)]
pub struct RaterVotes {
    votes: Vec<u32>, // [v]
    raters: usize,
}

impl RaterVotes {
    /// Counts the raters that give each voxel one of the group's classes.
    pub fn new(raters: &[LabelMap], group: &ClassGroup) -> Result<Self> {
        let space = check::common_space(&check::RATERS, raters)?;
        let mut votes = vec![0; space.voxels];
        for rater in raters {
            let mask = group.mask(rater)?;
            votes.iter_mut().zip(mask).for_each(|(votes, marked)| *votes += u32::from(marked));
        }
        Ok(Self { votes, raters: raters.len() })
    }

    /// The majority vote `[v]`: the voxels that more than half of the raters mark.
    pub fn majority(&self) -> Vec<bool> {
        self.votes.iter().map(|&votes| 2 * votes as usize > self.raters).collect()
    }

    /// Consensus Dice (CURVAS): Dice of a mask `[v]` and F, both without the voxels on which raters disagree; over the
    /// whole volume. `None` if F is empty.
    pub fn consensus_dice(&self, mask: &[bool]) -> Result<Option<f64>> {
        self.check_length(mask.len())?;
        let (mut all, mut marked, mut both) = (0usize, 0usize, 0usize);
        for (&votes, &mask) in self.votes.iter().zip(mask) {
            let (in_all, in_none) = (votes as usize == self.raters, votes == 0);
            all += usize::from(in_all);
            marked += usize::from(mask && (in_all || in_none));
            both += usize::from(mask && in_all);
        }
        Ok((all > 0).then(|| 2.0 * both as f64 / (all + marked) as f64))
    }

    /// Confidence (CURVAS): ½ (mean of p over F + 1 − mean of p over B) of the probabilities `[v]` of the class. `None` if F
    /// or B is empty.
    pub fn confidence(&self, probabilities: &[f32]) -> Result<Option<f64>> {
        self.check_length(probabilities.len())?;
        let mean = |wanted: u32| {
            let chosen = self.votes.iter().zip(probabilities).filter(|(votes, _)| **votes == wanted);
            let (sum, count) = chosen.fold((0.0, 0usize), |(sum, n), (_, &p)| (sum + f64::from(p), n + 1));
            (count > 0).then(|| sum / count as f64)
        };
        Ok(mean(self.raters as u32).zip(mean(0)).map(|(inside, outside)| 0.5 * (inside + 1.0 - outside)))
    }

    /// Soft Dice over thresholds (QUBIQ): the mean over t of Dice(p > t, ȳ > t); where both are empty it is 1.
    ///
    /// # Errors
    /// As every score, and without a threshold.
    pub fn soft_dice(&self, probabilities: &[f32], thresholds: &[f64]) -> Result<f64> {
        self.check_length(probabilities.len())?;
        if thresholds.is_empty() {
            return Err(CoreError::Empty { field: "thresholds" });
        }
        let dice = |threshold: &f64| {
            let above = |value: f64| value > threshold + THRESHOLD_SLACK;
            let (mut both, mut sum) = (0usize, 0usize);
            for (&votes, &p) in self.votes.iter().zip(probabilities) {
                let (predicted, marked) = (above(f64::from(p)), above(f64::from(votes) / self.raters as f64));
                both += usize::from(predicted && marked);
                sum += usize::from(predicted) + usize::from(marked);
            }
            if sum == 0 { 1.0 } else { 2.0 * both as f64 / sum as f64 }
        };
        Ok(thresholds.iter().map(dice).sum::<f64>() / thresholds.len() as f64)
    }

    fn check_length(&self, found: usize) -> Result<()> {
        let expected = self.votes.len();
        if found == expected { Ok(()) } else { Err(CoreError::Length { field: "voxels", expected, found }) }
    }
}

/// STAPLE (Warfield, Zou and Wells, 2004): expectation-maximization of a hidden mask and of the sensitivity and
/// specificity of each rater, with the share of all marks as the prior of every voxel, from the share of raters at each voxel on,
/// as ITK begins. Gives the probability of the group at each voxel `[v]`; the consensus is where it is at least one half.
///
/// All voxels with the same marks have the same probability, so that a step costs as much as there are patterns of
/// marks. Where no rater or every rater marks everything, the answer is theirs.
pub fn staple(raters: &[LabelMap], group: &ClassGroup) -> Result<Vec<f64>> {
    let space = check::common_space(&check::RATERS, raters)?;
    let n = raters.len();
    let masks = raters.iter().map(|rater| group.mask(rater)).collect::<Result<Vec<_>>>()?;
    // The patterns of marks that occur, and how many voxels have each.
    let mut numbers: BTreeMap<Vec<bool>, usize> = BTreeMap::new();
    let mut counts: Vec<f64> = vec![];
    let mut pattern_of = vec![0usize; space.voxels];
    for (voxel, number) in pattern_of.iter_mut().enumerate() {
        let marks: Vec<bool> = masks.iter().map(|mask| mask[voxel]).collect();
        let next = numbers.len();
        *number = *numbers.entry(marks).or_insert(next);
        if *number == counts.len() {
            counts.push(0.0);
        }
        counts[*number] += 1.0;
    }
    let mut patterns = vec![vec![]; counts.len()];
    numbers.into_iter().for_each(|(marks, number)| patterns[number] = marks);

    let share = |marks: &[bool]| marks.iter().filter(|mark| **mark).count() as f64 / n as f64;
    let total: f64 = counts.iter().sum();
    let prior = patterns.iter().zip(&counts).map(|(marks, count)| share(marks) * count).sum::<f64>() / total;
    let mut weights: Vec<f64> = patterns.iter().map(|marks| share(marks)).collect();
    let (mut sensitivities, mut specificities) = (vec![UNKNOWN_RATE; n], vec![UNKNOWN_RATE; n]);
    let is_mixed = prior > 0.0 && prior < 1.0;
    for step in 0..STAPLE_STEPS * usize::from(is_mixed) {
        let rates = |wanted: bool, rater: usize| {
            let (mut agreed, mut all) = (0.0, 0.0);
            for ((weight, marks), count) in weights.iter().zip(&patterns).zip(&counts) {
                let weight = count * if wanted { *weight } else { 1.0 - weight };
                agreed += if marks[rater] == wanted { weight } else { 0.0 };
                all += weight;
            }
            if all > 0.0 { agreed / all } else { UNKNOWN_RATE }
        };
        let (p, q): (Vec<f64>, Vec<f64>) =
            (0..n).map(|rater| (rates(true, rater), rates(false, rater))).unzip();
        let moved = p.iter().chain(&q).zip(sensitivities.iter().chain(&specificities));
        let change = moved.map(|(new, old)| (new - old).abs()).fold(0.0, f64::max);
        (sensitivities, specificities) = (p, q);
        if step > 0 && change < STAPLE_CHANGE {
            break;
        }
        for (weight, marks) in weights.iter_mut().zip(&patterns) {
            let product = |rates: &[f64], wanted: bool| -> f64 {
                rates.iter().zip(marks).map(|(p, mark)| if *mark == wanted { *p } else { 1.0 - p }).product()
            };
            let there = prior * product(&sensitivities, true);
            let absent = (1.0 - prior) * product(&specificities, false);
            // Raters who all contradict what is certain of them leave nothing to divide by.
            *weight = if there + absent > 0.0 { there / (there + absent) } else { share(marks) };
        }
    }
    Ok(pattern_of.into_iter().map(|number| weights[number]).collect())
}

/// The Dice of two masks `[v]`; `None` where both are empty.
pub fn mask_dice(first: &[bool], second: &[bool]) -> Option<f64> {
    let both = first.iter().zip(second).filter(|(a, b)| **a && **b).count();
    let sum = first.iter().chain(second).filter(|marked| **marked).count();
    (sum > 0).then(|| 2.0 * both as f64 / sum as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(rows: &[&[u8]]) -> Vec<LabelMap> {
        rows.iter().map(|row| LabelMap::new(row.to_vec(), 2).unwrap()).collect()
    }

    #[test]
    fn scores_of_a_row_of_voxels() {
        // F = {0, 1}, B = {4, 5}.
        let raters = maps(&[&[1, 1, 1, 0, 0, 0], &[1, 1, 1, 1, 0, 0], &[1, 1, 0, 0, 0, 0]]);
        let votes = RaterVotes::new(&raters, &ClassGroup::new(&[1]).unwrap()).unwrap();
        let mask = [true, false, true, true, true, false];
        assert_eq!(votes.consensus_dice(&mask).unwrap(), Some(2.0 / 4.0));
        assert_eq!(votes.majority(), [true, true, true, false, false, false]);
        let p = [1.0, 0.5, 0.9, 0.2, 0.25, 0.0];
        assert_eq!(votes.confidence(&p).unwrap(), Some(0.5 * (0.75 + 1.0 - 0.125)));
        // Above 0.4: {0, 1, 2} and {0, 1, 2}; above 0.7: {0, 2} and {0, 1}.
        assert_eq!(votes.soft_dice(&p, &[0.4, 0.7]).unwrap(), 0.75);
        assert!(votes.soft_dice(&p, &[]).is_err() && votes.confidence(&p[1..]).is_err());
    }

    #[test]
    fn staple_trusts_those_who_agree() {
        let of = |rows: &[&[u8]]| staple(&maps(rows), &ClassGroup::new(&[1]).unwrap()).unwrap();
        // The third rater marks the opposite of what the two others do.
        let found = of(&[&[1, 1, 1, 0, 0, 0, 0, 0], &[1, 1, 1, 0, 0, 0, 0, 1], &[0, 0, 0, 1, 1, 0, 0, 0]]);
        assert!(found[..3].iter().all(|p| *p >= 0.5) && found[3..7].iter().all(|p| *p < 0.5), "{found:?}");
        let same = of(&[&[1, 0], &[1, 0]]);
        assert!(same[0] >= 0.5 && same[1] < 0.5, "{same:?}");
        assert_eq!(of(&[&[0, 0], &[0, 0]]), [0.0; 2]);
    }
}
