//! `ssn predict`: the distribution of each case of a dataset, or of images, as files.

mod cases;
mod outputs;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::Serialize;
use serde_json::json;
use ssn_cli::args::{Global, PredictArgs, Stored};
use ssn_cli::exit::print;
use ssn_cli::predictions;
use ssn_cli::progress::Progress;
use ssn_cli::{Exit, Failure, shard};
use ssn_cuda::Description;
use ssn_data::{Shard, ShardProgress};
use ssn_eval::{About, Output, Predictions};
use ssn_train::inference::tiles::TileConfig;
use ssn_train::inference::whole_image::{Draws, Storage, Timing, WholeImageConfig};

use crate::device::device;
use crate::failure::failure;
use crate::signals;
use crate::trained::trained;
use cases::{Chosen, choose};

/// Bytes of a GPU from which on tiles may be larger.
const LARGE_GPU: i64 = 24 << 30;

/// Runs the verb.
pub fn run(args: &PredictArgs, global: &Global) -> Result<Exit, Failure> {
    let shard = shard::choose(args.shard, global.quiet);
    let Predicted { model, made, kept, index, seconds, phases, .. } = predict(args, shard, global.quiet)?;
    print(&if global.json {
        let mut json = json!({
            "predicted": made, "kept": kept, "index": index.as_ref().ok(), "seconds": seconds, "phases": phases
        });
        if let Err(waiting) = index {
            json["shards"] = json!(waiting);
        }
        format!("{json:#}\n")
    } else {
        let kept = if kept == 0 { String::new() } else { format!(", {kept} were there") };
        let index = match index {
            Ok(index) => index.display().to_string(),
            Err(waiting) => format!("{waiting}; the last one writes it"),
        };
        format!(
            "model       {model}\npredicted   {made} cases in {seconds:.1} s{kept}\n{}\nindex       {index}\n",
            phases.line()
        )
    })
}

/// What was predicted.
pub struct Predicted {
    /// The name of the model.
    model: String,
    /// Its numbers that were learnt.
    pub parameters: i64,
    /// Cases that were predicted now.
    made: usize,
    /// Cases that were there.
    kept: usize,
    /// The index of the folder, unless it waits for other shards.
    index: Result<PathBuf, ShardProgress>,
    /// How long it took.
    seconds: f64,
    phases: Phases,
}

/// Where the time went, in seconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Phases {
    /// Reading and preparing cases, and fetching results from a GPU.
    prepare: f64,
    /// The network, from the image to the last tile.
    network: f64,
    /// The part of that in which a GPU worked.
    gpu: Option<f64>,
    /// Writing files.
    write: f64,
}

impl Phases {
    fn add<T>(&mut self, begin: Instant, timing: &Timing, write: impl FnOnce() -> T) -> T {
        self.prepare += begin.elapsed().as_secs_f64() - timing.network;
        self.network += timing.network;
        self.gpu = timing.gpu.map(|gpu| gpu + self.gpu.unwrap_or(0.0)).or(self.gpu);
        let start = Instant::now();
        let result = write();
        self.write += start.elapsed().as_secs_f64();
        result
    }

    fn line(&self) -> String {
        let busy = self
            .gpu
            .map(|gpu| format!(" (the GPU had work {:.0} % of it)", 100.0 * gpu / self.network.max(1e-9)));
        let busy = busy.unwrap_or_default();
        format!(
            "time        {:.1} s read and prepared, {:.1} s network{busy}, {:.1} s written",
            self.prepare, self.network, self.write
        )
    }
}

/// Predicts the cases of a shard that are not there yet, and writes the index once all cases are there.
pub fn predict(args: &PredictArgs, shard: Shard, quiet: bool) -> Result<Predicted, Failure> {
    let stop = signals::stop_flag().map_err(|error| Failure::new(Exit::Internal, error))?;
    let (device, gpu) = device(args.device)?;
    let config = tiling(args, gpu.as_ref())?;
    let trained = trained(&args.model, args.checkpoint, device)?;
    let Chosen { dataset, cases, split, named } = choose(args, &trained)?;
    let about = About { model: trained.id(), seed: 0, dataset: named.display().to_string(), split };
    let folder = Predictions::create(&args.out, about).map_err(predictions::failure)?;

    let start = Instant::now();
    let own = shard.own(cases.len());
    let id = |number: usize| &dataset.entries[cases[number]].id;
    let progress = Progress::new(own.len(), "cases", quiet);
    let (mut made, mut phases) = (0, Phases::default());
    for (done, &number) in own.iter().enumerate() {
        let (index, id) = (cases[number], id(number));
        if args.overwrite || !is_finished(&folder, id, args) {
            if stop.load(Ordering::Relaxed) {
                progress.finish();
                if shard.is_whole() {
                    folder.write_index().map_err(predictions::failure)?;
                }
                let message =
                    format!("stopped after {done} of {} cases; the same command goes on", own.len());
                return Err(Failure::new(Exit::Stopped, message));
            }
            let begin = Instant::now();
            let case = dataset.load_raw(index).map_err(ssn_cli::datasets::failure)?;
            if case.mask.is_none() && trained.about.normalization.needs_mask() {
                progress.say(&format!(
                    "warning: case {id} has no region of interest, but the network learnt intensities that were \
                     scaled inside one; put a mask beside the image"
                ));
            }
            let grid = (case.shape, case.geometry);
            let told = |error| Failure { message: format!("case {id}: {error}"), ..failure(error) };
            let what = if trained.model.latent().is_some() { "sample" } else { "tile" };
            let tiles = |done: usize, of: usize| progress.note(|| format!("{id}, {what} {done} of {of}"));
            let (file, timing) = trained.predict(case, &config, tiles).map_err(told)?;
            phases.add(begin, &timing, || outputs::write(&folder, file, grid, args))?;
            made += 1;
        }
        progress.reached(done + 1);
    }
    progress.finish();
    let index = match shard.waiting(cases.len(), |number| is_finished(&folder, id(number), args)) {
        None => Ok(folder.write_index().map_err(predictions::failure)?),
        Some(waiting) => Err(waiting),
    };
    let (kept, seconds) = (own.len() - made, start.elapsed().as_secs_f64());
    let parameters = trained.model.parameters().count();
    Ok(Predicted { model: trained.id().name, parameters, made, kept, index, seconds, phases })
}

/// Whether all files that are asked for are there.
fn is_finished(folder: &Predictions, id: &str, args: &PredictArgs) -> bool {
    let asked =
        [(true, Output::Prediction), (args.probabilities, Output::Probabilities), (args.nifti, Output::Mean)];
    folder.is_finished(id, args.samples.into())
        && asked.iter().all(|(asked, output)| !asked || folder.find_output(id, *output).is_some())
}

/// Voxels that are computed at once: larger tiles share less of their surroundings, where there is memory for them.
pub fn voxels_at_once(gpu: Option<&Description>) -> usize {
    let usual = TileConfig::default().voxels_at_once;
    if gpu.is_some_and(|gpu| gpu.free >= LARGE_GPU) { 4 * usual } else { usual }
}

/// How images are divided.
fn tiling(args: &PredictArgs, gpu: Option<&Description>) -> Result<WholeImageConfig, Failure> {
    let tile = match args.tile.as_slice() {
        [] => None,
        &[d, h, w] => Some([d, h, w]),
        other => {
            let message =
                format!("--tile has {} numbers, but it must have three, such as 64,64,64", other.len());
            return Err(Failure::new(Exit::Usage, message));
        }
    };
    let usual = TileConfig::default();
    let most = voxels_at_once(gpu);
    let voxels_at_once = args.voxels_at_once.map_or(most, |voxels| voxels as usize);
    let tiles = TileConfig { tile, voxels_at_once, ..usual };
    tiles.check().map_err(failure)?;
    let factor = if args.precision == Stored::Single { Storage::F32 } else { Storage::F16 };
    let draws = Draws { count: args.samples as usize, seed: 0 };
    Ok(WholeImageConfig { tiles, factor, draws })
}
