//! Cases that are already in memory.

use crate::case::{Case, Cases};
use crate::error::{DataError, Result};

/// A set of cases held in memory, for tests and for sets that a program makes itself.
#[derive(Debug, Clone, Default)]
pub struct MemoryCases(pub Vec<Case>);

impl Cases for MemoryCases {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn id(&self, index: usize) -> &str {
        self.0.get(index).map_or("", |case| &case.id)
    }

    fn load(&self, index: usize) -> Result<Case> {
        self.0.get(index).cloned().ok_or_else(|| DataError::Case {
            id: format!("number {index}"),
            reason: format!("the set has only {} cases", self.0.len()),
            advice: "ask for a smaller number",
        })
    }
}
