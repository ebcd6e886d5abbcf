//! Opening a trained network as the arguments name it.

use std::path::Path;

use ssn_cli::Failure;
use ssn_cli::args::Checkpoint;
use ssn_nn::{Execution, Precision};
use ssn_train::run::{CheckpointChoice, TrainedModel};
use tch::Device;

use crate::failure::failure;

/// The network of a run or of a bundle, on a device.
pub fn trained(model: &Path, checkpoint: Checkpoint, device: Device) -> Result<TrainedModel, Failure> {
    let which = match checkpoint {
        Checkpoint::Best => CheckpointChoice::Best,
        Checkpoint::Last => CheckpointChoice::Last,
    };
    TrainedModel::open(model, which, Execution::on(device, Precision::F32)).map_err(failure)
}
