//! How long a network takes for one image, measured when nothing else is computed.

use std::path::Path;

use ssn_data::{LabelPolicy, Split};
use ssn_eval::CheckpointChoice;
use ssn_nn::{Execution, Precision};
use ssn_train::inference::tiles::TileConfig;
use ssn_train::inference::{LatentSamples, WholeImageConfig, never_stop};
use ssn_train::run::TrainedModel;

use crate::control::Control;
use crate::device::device;
use crate::error::Result;
use crate::predict::voxels_at_once;
use ssn_data::DeviceChoice;

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
) -> Result<Option<f64>> {
    let (device, gpu) = device(choice, Control::default())?;
    let trained = TrainedModel::open(run, CheckpointChoice::Last, Execution::on(device, Precision::F32))?;
    let Some(data) = &trained.data else { return Ok(None) };
    let dataset = data.open()?;
    let parts = data.split.parts(&dataset)?;
    let dataset = dataset.with_labels(LabelPolicy::Optional);
    let tiles = TileConfig { voxels_at_once: voxels_at_once(gpu.as_ref()), ..TileConfig::default() };
    let config = WholeImageConfig {
        tiles,
        latent_samples: LatentSamples { count: samples, seed: 0 },
        ..WholeImageConfig::default()
    };
    let mut seconds = vec![];
    for index in (0..parts.len()).filter(|&index| parts[index] == part).take(cases) {
        let case = dataset.load_raw(index)?;
        let (_, timing) = trained.predict(case, &config, never_stop)?;
        seconds.push(timing.total);
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds.get(seconds.len() / 2).copied())
}
