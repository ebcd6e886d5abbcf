//! How long a network takes for one image, measured when nothing else is computed.

use std::path::Path;

use ssn_cli::args::{Checkpoint, DeviceChoice};
use ssn_cli::{Failure, datasets};
use ssn_data::Split;
use ssn_train::inference::tiles::TileConfig;
use ssn_train::inference::whole_image::{Draws, WholeImageConfig};

use crate::device::device;
use crate::failure::failure;
use crate::predict::voxels_at_once;
use crate::trained::trained;

/// Seconds of a run's network for one case of a part, from the image in memory to the result in memory, the median of the first `cases`: the first of all takes
/// longer. Nothing without cases.
///
/// # Errors
/// When the run, its dataset or the device cannot be used.
pub fn seconds(
    run: &Path,
    choice: DeviceChoice,
    part: Split,
    samples: usize,
    cases: usize,
) -> Result<Option<f64>, Failure> {
    let (device, gpu) = device(choice)?;
    let trained = trained(run, Checkpoint::Last, device)?;
    let Some(data) = &trained.data else { return Ok(None) };
    let dataset = data.open().map_err(datasets::failure)?;
    let (parts, _) = data.split.parts(&dataset).map_err(datasets::failure)?;
    let dataset = dataset.with_optional_labels();
    let tiles = TileConfig { voxels_at_once: voxels_at_once(gpu.as_ref()), ..TileConfig::default() };
    let config =
        WholeImageConfig { tiles, draws: Draws { count: samples, seed: 0 }, ..WholeImageConfig::default() };
    let mut seconds = vec![];
    for index in (0..parts.len()).filter(|&index| parts[index] == part).take(cases) {
        let case = dataset.load_raw(index).map_err(datasets::failure)?;
        let (_, timing) = trained.predict(case, &config, |_, _| {}).map_err(failure)?;
        seconds.push(timing.total);
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds.get(seconds.len() / 2).copied())
}
