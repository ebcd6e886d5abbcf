//! `ssn sample`: segmentations out of distribution files, without a network.

use serde_json::json;
use ssn_args::SampleConfig;
use ssn_core::Control;
use ssn_data::text::counted;
use ssn_eval::{SampledFiles, sample};

use crate::answer::Answer;
use crate::exit::Failure;

/// Draws samples of every file and writes them.
pub fn answer(config: &SampleConfig, control: Control<'_>) -> Result<Answer, Failure> {
    let SampledFiles { cases, rows, table } = sample(config, control)?;
    let text = format!(
        "{} of {} with seed {} in {}, their volumes in {}\n",
        counted(config.samples as usize, "sample"),
        counted(cases, "case"),
        config.seed,
        config.out.display(),
        table.display()
    );
    Answer::new(text, &json!({ "out": config.out, "seed": config.seed, "samples": rows }))
}
