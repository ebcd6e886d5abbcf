//! `ssn sample`: segmentations out of distribution files, without a network.

use serde_json::json;
use ssn_args::SampleConfig;
use ssn_core::Control;
use ssn_data::text::counted;
use ssn_eval::{SampledFiles, sample};

use crate::args::Global;
use crate::exit::{Failure, json, print};
use crate::{progress, signals};

/// Draws samples of every file and writes them.
pub fn run(config: &SampleConfig, global: &Global) -> Result<(), Failure> {
    let (stop, show) = (signals::stop_flag("block of samples")?, progress::show(global.quiet));
    let SampledFiles { cases, rows, table } = sample(config, Control { progress: &show, stop: &stop })?;
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
