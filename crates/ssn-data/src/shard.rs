//! A share of the cases, for several processes that do one piece of work together: of n processes, number k mod n, counted
//! from 0, has case k.
//!
//! The processes need not know of each other. Each does its own cases and then looks which of all are there; the one
//! that finds all of them does what is left.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Which share of the cases, of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1, as users count.
    number: usize,
    of: usize,
}

/// Shards that have all of their cases, where others have not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// How many have.
    pub done: usize,
    /// How many there are.
    pub of: usize,
}

impl Shard {
    /// All cases.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// A share, counted from 1; nothing if there is none of that number.
    pub fn new(number: usize, of: usize) -> Option<Self> {
        (1..=of).contains(&number).then_some(Self { number, of })
    }

    /// Whether these are all cases.
    pub fn is_whole(self) -> bool {
        self.of == 1
    }

    /// The numbers of its own cases out of so many.
    pub fn own(self, cases: usize) -> Vec<usize> {
        (self.number - 1..cases).step_by(self.of).collect()
    }

    /// How many shards are finished, or nothing if all are. Whoever has all cases is not asked about them.
    pub fn waiting(self, cases: usize, is_there: impl Fn(usize) -> bool) -> Option<Waiting> {
        let mut without = BTreeSet::new();
        for case in (0..cases).filter(|_| !self.is_whole()) {
            if !without.contains(&(case % self.of)) && !is_there(case) {
                without.insert(case % self.of);
            }
        }
        (!without.is_empty()).then(|| Waiting { done: self.of - without.len(), of: self.of })
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected I/N, such as 2/8 for the second of eight shards";
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| expected.to_owned());
        let (number, of) = match text.split_once('/') {
            Some((first, second)) => (number(first)?, number(second)?),
            None => return Err(expected.to_owned()),
        };
        match Self::new(number, of) {
            Some(shard) => Ok(shard),
            None if of == 0 => Err("there must be one shard or more, as in 1/1".to_owned()),
            None if number == 0 => Err(format!("shards are counted from 1: the first is 1/{of}")),
            None => Err(format!("there is no shard {number} of {of}: the last is {of}/{of}")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let are = if self.done == 1 { "is" } else { "are" };
        write!(f, "{} of {} shards {are} done", self.done, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_one_shard() {
        for (cases, of) in [(10, 3), (2, 5), (0, 2), (7, 1)] {
            let mut all: Vec<usize> =
                (1..=of).flat_map(|number| Shard::new(number, of).unwrap().own(cases)).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..cases), "{cases} cases in {of} shards");
        }
        assert_eq!("2/3".parse::<Shard>().unwrap().own(9), [1, 4, 7]);
    }

    #[test]
    fn all_wait_for_the_last_case() {
        let shard = Shard::new(1, 3).unwrap();
        assert_eq!(shard.waiting(7, |case| case != 4), Some(Waiting { done: 2, of: 3 }));
        assert_eq!(shard.waiting(7, |case| case == 4), Some(Waiting { done: 0, of: 3 }));
        assert_eq!(shard.waiting(7, |_| true), None);
        // More shards than cases: those without any are finished.
        let waiting = Shard::new(1, 5).unwrap().waiting(2, |case| case == 0);
        assert_eq!(waiting.map(|waiting| waiting.to_string()), Some("4 of 5 shards are done".to_owned()));
        assert_eq!(Shard::WHOLE.waiting(7, |_| false), None);
    }

    #[test]
    fn what_is_no_shard_is_told() {
        assert_eq!(" 1 / 4".parse::<Shard>().map(|shard| shard.to_string()), Ok("1/4".to_owned()));
        assert!("1/1".parse::<Shard>().unwrap().is_whole());
        let said = |text: &str| text.parse::<Shard>().unwrap_err();
        for wrong in ["x", "", "3", "1/x", "-1/4", "1/2/3", "1/99999999999999999999"] {
            assert!(said(wrong).starts_with("expected I/N"), "{wrong}");
        }
        assert_eq!(said("0/4"), "shards are counted from 1: the first is 1/4");
        assert_eq!(said("5/4"), "there is no shard 5 of 4: the last is 4/4");
        assert_eq!(said("0/0"), "there must be one shard or more, as in 1/1");
    }
}
