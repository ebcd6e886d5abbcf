//! The scores of many cases: what a case contributes to each figure, their means, tables, and what is kept to resume.

mod observations;
mod record;
mod summary;
mod table;

pub use observations::{Observations, Unit, observations};
pub use record::{Record, key};
pub use summary::{Evaluation, Figure, Scored, Settings};
pub use table::cases_csv;
