//! What a distribution's samples do together: its modes of variation and the correlations between voxels.

mod canonical;
mod correlation;
mod eigen;

pub use canonical::{Modes, canonicalise};
pub use correlation::correlation_with;
