//! Which part of every batch is made here: all of it, or what falls to one of several ranks.

use std::ops::Range;

use crate::error::{DataError, Result};

/// A rank among those that share every batch.
///
/// Batches stay what they are: items are divided in order, as evenly as can be, and item i of batch k is the same
/// whoever makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The number of this rank, from 0.
    pub rank: usize,
    /// How many there are.
    pub ranks: usize,
}

impl Share {
    /// One rank makes everything.
    pub const WHOLE: Self = Self { rank: 0, ranks: 1 };

    /// The items of a batch that are made here.
    ///
    /// # Errors
    /// There are more ranks than items.
    pub fn items(self, batch_size: usize) -> Result<Range<usize>> {
        if batch_size < self.ranks {
            return Err(DataError::Setting {
                field: "batch_size",
                value: batch_size.to_string(),
                expected: format!("at least {}, an item for each of the ranks", self.ranks),
            });
        }
        let start = |rank: usize| rank * batch_size / self.ranks;
        Ok(start(self.rank)..start(self.rank + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_divide_a_batch_evenly_and_completely() {
        for (batch, ranks) in [(12, 1), (12, 4), (10, 4), (3, 3), (7, 2)] {
            let parts: Vec<_> = (0..ranks).map(|rank| Share { rank, ranks }.items(batch).unwrap()).collect();
            let all: Vec<usize> = parts.iter().cloned().flatten().collect();
            assert_eq!(all, (0..batch).collect::<Vec<_>>());
            let sizes = parts.iter().map(Range::len);
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1, "{parts:?}");
        }
        let error = Share { rank: 0, ranks: 5 }.items(4).unwrap_err().to_string();
        assert!(error.contains("at least 5, an item for each of the ranks"), "{error}");
    }
}
