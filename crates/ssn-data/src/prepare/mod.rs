//! Preparation of the paper's two datasets, once, so that training reads what it needs.

mod brats;
mod lidc;

pub use brats::{BRATS_CLASSES, BRATS_CONFIG, Brats, brats};
pub use lidc::{Lidc, lidc};
