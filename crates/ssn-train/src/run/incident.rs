//! Steps that were not applied, each with what it was made of.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use ssn_data::Batch;
use ssn_io::write_atomically;

use crate::error::{Result, TrainError};

/// The folder of incidents in that of a run.
const FOLDER: &str = "incidents";

/// What is written about an incident.
#[derive(Serialize)]
struct Incident<'a> {
    /// The step, counted from 1 as in the metrics.
    step: u64,
    reason: String,
    learning_rate: f64,
    /// The cases of the batch.
    cases: &'a [Item],
}

/// An item of the batch of an incident.
#[derive(Debug, Serialize, Deserialize)]
pub struct Item {
    id: String,
    /// The number of the target's rater; nothing if all raters were targets.
    rater: Option<usize>,
    /// The voxel at the center of the patch.
    center: [usize; 3],
    /// Values of the patch that are not finite.
    non_finite: usize,
    /// The smallest and largest finite value of the patch, if there is one.
    range: [Option<f32>; 2],
}

/// What a batch was made of.
pub fn items(batch: &Batch) -> Vec<Item> {
    let values = (batch.images.len() / batch.image_shape[0].max(1)).max(1);
    let items = batch.origins.iter().zip(batch.images.chunks(values)).map(|(origin, image)| {
        let finite = image.iter().copied().filter(|x| x.is_finite());
        let range = [finite.clone().fold(f32::INFINITY, f32::min), finite.fold(f32::NEG_INFINITY, f32::max)];
        Item {
            id: origin.id.clone(),
            rater: origin.rater,
            center: origin.center,
            non_finite: image.iter().filter(|x| !x.is_finite()).count(),
            range: range.map(|end| Some(end).filter(|end| end.is_finite())),
        }
    });
    items.collect()
}

/// Writes what a step that was not applied was made of; gives the file.
pub fn write(
    run: &Path,
    number: u64,
    cases: &[Item],
    reason: &TrainError,
    learning_rate: f64,
) -> Result<PathBuf> {
    let step = number + 1;
    let incident = Incident { step, reason: reason.to_string(), learning_rate, cases };
    let folder = run.join(FOLDER);
    let path = folder.join(format!("step-{step:09}.json"));
    let failed = |source| TrainError::Save { path: path.clone(), source };
    fs::create_dir_all(&folder).map_err(failed)?;
    let bytes = serde_json::to_vec_pretty(&incident).map_err(|error| failed(error.into()))?;
    write_atomically(&path, |out| out.write_all(&bytes)).map_err(|error| failed(error.source))?;
    Ok(path)
}
