//! Dividing groups by ratios or into folds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Split;
use crate::error::{DataError, Result};
use crate::random::{Purpose, Stream};

/// Shares of training, validation and test; only their proportions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ratios(pub [u32; 3]);

impl Ratios {
    /// LIDC in the paper's text.
    pub const LIDC: Self = Self([60, 20, 20]);
    /// BraTS 2017: 171, 28 and 86 of 285 cases.
    pub const BRATS: Self = Self([60, 10, 30]);

    /// Refuses shares of nothing.
    pub fn check(self) -> Result<Self> {
        let total: u64 = self.0.iter().map(|&share| u64::from(share)).sum();
        if self.0[0] > 0 && total > 0 {
            return Ok(self);
        }
        Err(DataError::Setting {
            field: "data.split.ratios",
            value: format!("{:?}", self.0),
            expected: "three shares of training, validation and test, with some for training, such as \
                       [60, 20, 20]"
                .to_owned(),
        })
    }

    /// How many of `count` groups each part gets: each share to within one, and a part that has a share gets
    /// at least one group while there are enough.
    fn counts(self, count: usize) -> [usize; 3] {
        let total: u128 = self.0.iter().map(|&share| u128::from(share)).sum();
        let (mut sum, mut before) = (0u128, 0);
        let mut counts = self.0.map(|share| {
            sum += u128::from(share);
            let until = (count as u128 * sum / total.max(1)) as usize;
            let part = until - before;
            before = until;
            part
        });
        for part in 0..3 {
            let largest = (0..3).max_by_key(|&i| (counts[i], 3 - i)).unwrap_or(0);
            if counts[part] == 0 && self.0[part] > 0 && counts[largest] > 1 {
                counts[part] = 1;
                counts[largest] -= 1;
            }
        }
        counts
    }
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [train, validation, test] = self.0;
        write!(f, "{train}/{validation}/{test}")
    }
}

/// The groups, each once, in the random order that the seed says.
fn shuffled<'a>(groups: &[&'a str], seed: u64) -> Vec<&'a str> {
    // From a sorted set, so that the order in which a file system lists cases changes nothing.
    let mut order: Vec<&str> = groups.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    Stream::new(seed, Purpose::Split, 0).shuffle(&mut order);
    order
}

/// The part of each case, given the group of each; the shares are those of groups.
pub fn divide(groups: &[&str], ratios: Ratios, seed: u64) -> Result<Vec<Split>> {
    let order = shuffled(groups, seed);
    let counts = ratios.check()?.counts(order.len());
    let parts = Split::ALL.iter().zip(counts).flat_map(|(&split, count)| std::iter::repeat_n(split, count));
    let part_of: BTreeMap<&str, Split> = order.into_iter().zip(parts).collect();
    // Every group is in the map: the counts sum up to their number.
    Ok(groups.iter().map(|group| part_of.get(group).copied().unwrap_or(Split::Train)).collect())
}

/// The fold of each case, given the group of each: `folds` parts whose numbers of groups differ by at most one.
pub fn fold(groups: &[&str], folds: usize, seed: u64) -> Result<Vec<usize>> {
    let order = shuffled(groups, seed);
    if folds < 2 || folds > order.len() {
        return Err(DataError::Setting {
            field: "data.split.folds",
            value: folds.to_string(),
            expected: format!("2 to {}, the number of patients or series", order.len()),
        });
    }
    let fold_of: BTreeMap<&str, usize> =
        order.into_iter().enumerate().map(|(place, group)| (group, place % folds)).collect();
    Ok(groups.iter().map(|group| fold_of.get(group).copied().unwrap_or(0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_counts() {
        assert_eq!(Ratios::BRATS.counts(285), [171, 28, 86]);
        assert_eq!(Ratios::LIDC.counts(875), [525, 175, 175]);
        // LIDC in the authors' code: a fifth for testing, then a fifth of the rest for validation.
        assert_eq!(Ratios([64, 16, 20]).counts(100), [64, 16, 20]);
        assert_eq!(Ratios::LIDC.counts(3), [1, 1, 1]);
        assert_eq!(Ratios::LIDC.counts(2), [1, 0, 1]);
        assert_eq!(Ratios([1, 0, 0]).counts(2), [2, 0, 0]);
    }

    #[test]
    fn no_share_for_training_is_refused() {
        let message = divide(&["a"], Ratios([0, 1, 1]), 0).unwrap_err().to_string();
        assert!(message.contains("data.split.ratios is [0, 1, 1]"), "{message}");
        let message = fold(&["a", "b", "b"], 3, 0).unwrap_err().to_string();
        assert!(message.contains("2 to 2"), "{message}");
    }

    /// The division of a seed is part of the promise that results can be repeated.
    #[test]
    fn a_seed_always_gives_this_split() {
        let names: Vec<String> = (0..10).map(|i| format!("case{i}")).collect();
        let groups: Vec<&str> = names.iter().map(String::as_str).collect();
        let parts = divide(&groups, Ratios::LIDC, 7).unwrap();
        let text: String = parts.iter().map(|part| &part.name()[..2]).collect::<Vec<_>>().join(" ");
        insta::assert_snapshot!(text);
    }
}
