//! `ssn sample`: segmentations out of distribution files, without a network.

mod output;
mod steer;

use std::collections::BTreeMap;

use serde::Serialize;
use ssn_core::{SampleSummary, Sampler, Steering};
use ssn_data::text::counted;
use ssn_eval::predictions::draw::blocks;
use ssn_eval::{DistributionFile, Draw, Found, Kind};
use ssn_io::Limits;

use crate::args::{Global, SampleArgs};
use crate::exit::{Exit, Failure, json, print};
use crate::inputs;
use crate::predictions::{core_failure, failure};
use crate::progress::Progress;
use output::{Outputs, Row};

/// What `--json` prints.
#[derive(Serialize)]
struct Drawn<'a> {
    out: &'a std::path::Path,
    seed: u64,
    samples: &'a [Row],
}

/// Draws samples of every file and writes them.
pub fn run(args: &SampleArgs, global: &Global) -> Result<Exit, Failure> {
    let cases = inputs::find(&args.inputs)?;
    refuse_twins(&cases)?;
    let steerings = cases.iter().map(|case| steer::steering(args, case)).collect::<Result<Vec<_>, _>>()?;
    for case in &cases {
        case.header.check_samples(args.first + args.samples).map_err(failure)?;
    }
    let outputs = Outputs::new(args, &cases)?;
    let progress = Progress::new(cases.len() * args.samples as usize, "samples", global.quiet);
    let mut rows = vec![];
    for (case, steering) in cases.iter().zip(&steerings) {
        rows.extend(draw(args, case, steering, &outputs, &progress)?);
    }
    progress.finish();
    outputs.write_table(&rows)?;
    if global.json {
        let drawn = Drawn { out: &args.out, seed: args.seed, samples: &rows };
        return print(&json(&drawn)?);
    }
    let (cases, out) = (cases.len(), args.out.display());
    print(&format!(
        "{} of {} with seed {} in {out}, their volumes in {}\n",
        counted(args.samples as usize, "sample"),
        counted(cases, "case"),
        args.seed,
        outputs.table().display()
    ))
}

/// Refuses two files of one case.
fn refuse_twins(cases: &[Found]) -> Result<(), Failure> {
    let mut places = BTreeMap::new();
    for case in cases {
        if let Some(first) = places.insert(case.id(), &case.path) {
            let message = format!(
                "{} and {} are both of case {:?}, so their samples would have the same names; sample them into \
                 folders of their own",
                first.display(),
                case.path.display(),
                case.id()
            );
            return Err(Failure::new(Exit::Usage, message));
        }
    }
    Ok(())
}

/// Draws and writes the samples of one case, block by block, and the maps of what they say together.
fn draw(
    args: &SampleArgs,
    case: &Found,
    steering: &Steering,
    outputs: &Outputs,
    progress: &Progress,
) -> Result<Vec<Row>, Failure> {
    let file = DistributionFile::read(&case.path, &Limits::default()).map_err(failure)?;
    let source = Draw::new(&file, args.seed, steering).map_err(failure)?;
    let numbers = args.first..args.first + args.samples;
    let mut rows = vec![];
    for block in blocks(numbers.clone(), file.description().voxels()) {
        let maps = source.labels(block.clone()).map_err(failure)?;
        let count = maps.len();
        rows.extend(outputs.write_samples(&file, block, maps)?);
        progress.advance(count, || case.id().to_owned());
    }
    if args.probabilities || args.entropy {
        write_summary(args, &file, steering, outputs)?;
    }
    Ok(rows)
}

/// Writes the mean probabilities of the samples, and their entropy.
fn write_summary(
    args: &SampleArgs,
    file: &DistributionFile,
    steering: &Steering,
    outputs: &Outputs,
) -> Result<(), Failure> {
    let sampler = Sampler::new(file.distribution(), args.seed, steering).map_err(core_failure)?;
    let mut summary = SampleSummary::new(&sampler, &[]).map_err(core_failure)?;
    // Without noise every sample has the same probabilities: those of the voxels by themselves. Those of samples that the
    // network drew itself are in the mean, over all of them.
    let samples = match file.description().kind {
        Kind::Stochastic => args.first..args.first + args.samples,
        Kind::Deterministic | Kind::Sampled => 0..1,
    };
    summary.extend(&sampler, samples).map_err(core_failure)?;
    if args.probabilities {
        outputs.write_probabilities(file, &summary.mean_probabilities().map_err(core_failure)?)?;
    }
    if args.entropy {
        outputs.write_entropy(file, &summary.marginal_entropy().map_err(core_failure)?)?;
    }
    Ok(())
}
