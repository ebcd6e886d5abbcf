//! `ssn sample`: segmentations out of distribution files, without a network.

use serde_json::json;
use ssn_data::text::counted;
use ssn_eval::{SampleConfig, SampledFiles, sample};

use crate::args::{Global, SampleArgs};
use crate::exit::{Exit, Failure, json, print};
use crate::progress;

/// Draws samples of every file and writes them.
pub fn run(args: &SampleArgs, global: &Global) -> Result<Exit, Failure> {
    let SampledFiles { cases, rows, table } = sample(&config(args), &progress::show(global.quiet))?;
    if global.json {
        return print(&json(&json!({ "out": args.out, "seed": args.seed, "samples": rows }))?);
    }
    print(&format!(
        "{} of {} with seed {} in {}, their volumes in {}\n",
        counted(args.samples as usize, "sample"),
        counted(cases, "case"),
        args.seed,
        args.out.display(),
        table.display()
    ))
}

fn config(args: &SampleArgs) -> SampleConfig {
    SampleConfig {
        inputs: args.inputs.clone(),
        out: args.out.clone(),
        samples: args.samples,
        seed: args.seed,
        first: args.first,
        temperature: args.temperature,
        class_scales: args.class_scale.clone(),
        mode_weights: args.mode_weight.clone(),
        diagonal_noise: !args.no_diagonal_noise,
        probabilities: args.probabilities,
        entropy: args.entropy,
        format: args.format,
        overwrite: args.overwrite,
    }
}
