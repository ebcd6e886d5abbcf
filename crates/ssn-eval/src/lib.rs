//! What a network said about images, as files.
//!
//! A [`DistributionFile`] holds the distribution of the logits of one case with all that is needed to sample it and to put
//! samples where they belong in the image; no network is needed any more. Of a network that draws samples itself, it
//! holds these. A [`Predictions`] is a folder of such files
//! from one model. [`score()`] compares a file with raters, and an [`Evaluation`] is what the scores of many cases say. Nothing here knows networks, torch or datasets.
//!
//! Letters in shapes: `c` classes, `d h w` space, `v` voxels, `r` rank, `m` samples, `n` raters.
//!
//! ```no_run
//! use std::path::Path;
//! use ssn_core::Steering;
//! use ssn_eval::{SampleSource, Predictions};
//!
//! // Ten samples of every case that `ssn predict` wrote to a folder, half as hot as the network is.
//! let cool = Steering { temperature: 0.5, ..Steering::default() };
//! let predictions = Predictions::open(Path::new("predictions"))?;
//! for case in predictions.cases()? {
//!     let file = predictions.read(case.id())?;
//!     let samples = SampleSource::new(&file, 0, &cool)?.labels(0..10)?;
//!     println!("{}: {} samples", case.id(), samples.len());
//! }
//! # Ok::<(), ssn_eval::Error>(())
//! ```

mod case_scores;
mod challenges;
pub mod evaluation;
mod inputs;
mod means;
mod memory;
pub mod metrics_file;
pub mod predictions;
pub mod registry;
mod reliability;
pub mod sampling;
mod score_config;
pub mod scores;

pub use evaluation::{
    EvaluateConfig, Evaluated, Evaluation, EvaluationSettings, Scored, SplitChoice, evaluate, evaluate_shard,
};
pub use memory::check_memory;
pub use predictions::*;
pub use reliability::Reliability;
pub use sampling::{MapFormat, SampleConfig, SampledFiles, sample};
pub use scores::{CaseMaps, CaseScores, GedDistance, ScoreConfig, ScoreValues, score, score_maps};
pub use ssn_args::ScoreSet;
pub use ssn_io::{Error, ErrorKind, Result};

/// Returns each of some things once, in their order.
pub fn unique<T: PartialEq>(things: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = vec![];
    for thing in things {
        if !found.contains(&thing) {
            found.push(thing);
        }
    }
    found
}
