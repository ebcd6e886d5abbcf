//! The scores of many cases: what a case contributes to each figure, their means, tables, and what is kept to resume.

mod evaluate;
pub mod matching;
mod observations;
pub mod raters;
mod record;
mod summary;
mod table;

pub use evaluate::{EvaluateConfig, Evaluated, default_folder, evaluate, evaluate_shard};
pub use matching::Part;
pub use observations::{Observations, Unit, observations};
pub use record::{Record, key};
pub use summary::{Evaluation, Figure, Scored, Settings};
pub use table::cases_csv;
