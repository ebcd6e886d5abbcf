//! `ssn sample`: segmentations out of distribution files, without a network.

use serde_json::json;
use ssn_args::SampleConfig;
use ssn_data::text::counted;
use ssn_eval::{SampledFiles, sample};

use crate::args::Global;
use crate::exit::{Failure, json, print};
use crate::progress;

/// Draws samples of every file and writes them.
pub fn run(config: &SampleConfig, global: &Global) -> Result<(), Failure> {
    let SampledFiles { cases, rows, table } = sample(config, &progress::show(global.quiet))?;
    if global.json {
        return print(&json(&json!({ "out": config.out, "seed": config.seed, "samples": rows }))?);
    }
    print(&format!(
        "{} of {} with seed {} in {}, their volumes in {}\n",
        counted(config.samples as usize, "sample"),
        counted(cases, "case"),
        config.seed,
        config.out.display(),
        table.display()
    ))
}
