//! `ssn predict`: the distribution of each case of a dataset, or of images, as files.

mod cases;
mod outputs;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::json;
use ssn_cli::args::{Global, PredictArgs, Stored};
use ssn_cli::exit::print;
use ssn_cli::predictions;
use ssn_cli::progress::Progress;
use ssn_cli::{Exit, Failure};
use ssn_net::tiles::TileConfig;
use ssn_net::whole_image::{Storage, WholeImageConfig};
use ssn_predictions::{About, Output, Predictions};

use crate::failure::failure;
use crate::signals;
use crate::trained::trained;
use cases::{Chosen, choose};

/// Runs the verb.
pub fn run(args: &PredictArgs, global: &Global) -> Result<Exit, Failure> {
    let Predicted { model, made, kept, index, seconds } = predict(args, global.quiet)?;
    print(&if global.json {
        format!("{:#}\n", json!({ "predicted": made, "kept": kept, "index": index, "seconds": seconds }))
    } else {
        let kept = if kept == 0 { String::new() } else { format!(", {kept} were there") };
        format!(
            "model       {model}\npredicted   {made} cases in {seconds:.1} s{kept}\nindex       {}\n",
            index.display()
        )
    })
}

/// What was predicted.
pub struct Predicted {
    /// The name of the model.
    model: String,
    /// Cases that were predicted now.
    made: usize,
    /// Cases that were there.
    kept: usize,
    /// The index of the folder.
    index: PathBuf,
    /// How long it took.
    seconds: f64,
}

/// Predicts all cases that are not there yet.
pub fn predict(args: &PredictArgs, quiet: bool) -> Result<Predicted, Failure> {
    let stop = signals::stop_flag().map_err(|error| Failure::new(Exit::Internal, error))?;
    let config = tiling(args)?;
    let trained = trained(&args.model, args.checkpoint)?;
    let Chosen { dataset, cases, split, named } = choose(args, &trained)?;
    let about = About { model: trained.id(), seed: 0, dataset: named.display().to_string(), split };
    let folder = Predictions::create(&args.out, about).map_err(predictions::failure)?;

    let start = Instant::now();
    let progress = Progress::new(cases.len(), "cases", quiet);
    let mut made = 0;
    for (done, &index) in cases.iter().enumerate() {
        let id = dataset.entries[index].id.clone();
        if args.overwrite || !is_finished(&folder, &id, args) {
            if stop.load(Ordering::Relaxed) {
                progress.finish();
                folder.write_index().map_err(predictions::failure)?;
                let message =
                    format!("stopped after {done} of {} cases; the same command goes on", cases.len());
                return Err(Failure::new(Exit::Stopped, message));
            }
            let case = dataset.load_raw(index).map_err(ssn_cli::datasets::failure)?;
            if case.mask.is_none() && trained.about.normalisation.needs_mask() {
                progress.say(&format!(
                    "warning: case {id} has no region of interest, but the network learnt intensities that were \
                     scaled inside one; put a mask beside the image"
                ));
            }
            let grid = (case.shape, case.geometry);
            let told = |error| Failure { message: format!("case {id}: {error}"), ..failure(error) };
            let tiles = |tile: usize, of: usize| progress.note(|| format!("{id}, tile {tile} of {of}"));
            let file = trained.predict(case, &config, tiles).map_err(told)?;
            outputs::write(&folder, file, grid, args)?;
            made += 1;
        }
        progress.reached(done + 1);
    }
    progress.finish();
    let index = folder.write_index().map_err(predictions::failure)?;
    let (kept, seconds) = (cases.len() - made, start.elapsed().as_secs_f64());
    Ok(Predicted { model: trained.id().name, made, kept, index, seconds })
}

/// Whether all files that are asked for are there.
fn is_finished(folder: &Predictions, id: &str, args: &PredictArgs) -> bool {
    let asked =
        [(true, Output::Prediction), (args.probabilities, Output::Probabilities), (args.nifti, Output::Mean)];
    folder.is_finished(id)
        && asked.iter().all(|(asked, output)| !asked || folder.find_output(id, *output).is_some())
}

/// How images are divided.
fn tiling(args: &PredictArgs) -> Result<WholeImageConfig, Failure> {
    let tile = match args.tile.as_slice() {
        [] => None,
        &[d, h, w] => Some([d, h, w]),
        other => {
            let message =
                format!("--tile has {} numbers, but it must have three, such as 64,64,64", other.len());
            return Err(Failure::new(Exit::Usage, message));
        }
    };
    let tiles = TileConfig { tile, voxels_at_once: args.voxels_at_once as usize, ..TileConfig::default() };
    tiles.check().map_err(failure)?;
    let factor = if args.precision == Stored::Single { Storage::F32 } else { Storage::F16 };
    Ok(WholeImageConfig { tiles, factor })
}
