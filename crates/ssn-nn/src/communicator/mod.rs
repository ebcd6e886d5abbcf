//! Ranks: processes that train one network together, each on its part of every batch.
//!
//! All hold the same weights. A step is that of the whole batch: what is a mean over its items is a sum over ranks.
//! Every rank calls the same functions here in the same order; each waits for the others.

mod threads;

use std::fmt::Debug;
use std::sync::Arc;

pub use threads::Threads;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{NnError, Result};

/// How ranks exchange numbers.
pub trait Ranks: Debug + Send + Sync {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// Sums over all ranks, place by place; all get the same bits.
    fn sum_f32(&self, numbers: &mut [f32]) -> Result<()>;

    /// Sums over all ranks, place by place; all get the same bits.
    fn sum_f64(&self, numbers: &mut [f64]) -> Result<()>;

    /// What each rank gives, by rank, for all.
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// A second connection of the same ranks, for another thread: calls on one need not agree with those on the other.
    fn beside(&self) -> Result<Arc<dyn Ranks>>;
}

/// Whether this process writes and tells: the first of the ranks, or the only process.
pub fn leads(ranks: Option<&Arc<dyn Ranks>>) -> bool {
    ranks.is_none_or(|ranks| ranks.rank() == 0)
}

/// A value of each rank, by rank, for all.
pub fn gather_values<T: Serialize + DeserializeOwned>(ranks: &dyn Ranks, value: &T) -> Result<Vec<T>> {
    let failed = |error: serde_json::Error| NnError::Ranks { reason: error.to_string() };
    let given = ranks.gather(&serde_json::to_vec(value).map_err(failed)?)?;
    given.iter().map(|bytes| serde_json::from_slice(bytes).map_err(failed)).collect()
}
