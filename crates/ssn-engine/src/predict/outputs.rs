//! The files of one case.

use ssn_cli::Failure;
use ssn_cli::args::{PredictArgs, Stored};
use ssn_cli::predictions::failure;
use ssn_data::resample::labels_between;
use ssn_predictions::{DistributionFile, Output, Precision, Predictions};
use ssn_volume::{Geometry, Image, Limits, Voxels};

/// Writes the label map of the mean on the grid of the image, what else is asked for, and at last the distribution,
/// which marks the case as done.
pub fn write(
    folder: &Predictions,
    file: DistributionFile,
    (shape, geometry): ([usize; 3], Geometry),
    args: &PredictArgs,
) -> Result<(), Failure> {
    let id = file.description().case.clone();
    let labels = file.prediction().and_then(|map| file.labels_on_image(&map)).map_err(failure)?;
    let description = file.description();
    let labels = match description.size == shape {
        true => labels,
        false => labels_between(
            &labels,
            (description.size, description.geometry.spacing),
            (shape, geometry.spacing),
        ),
    };
    let [d, h, w] = shape;
    let path = folder.output_path(&id, Output::Prediction);
    Image::new(Voxels::U8(labels), [1, d, h, w], geometry, &Limits::default())
        .map_err(|problem| problem.in_file(&path))
        .and_then(|image| ssn_volume::write(&path, &image))
        .map_err(|error| failure(error.into()))?;

    let precision = match args.precision {
        Stored::Single => Precision::Single,
        Stored::HalfFactor => Precision::HalfFactor,
        Stored::Half => Precision::Half,
    };
    let file = file.with_precision(precision).map_err(failure)?;
    file.write(&folder.distribution_path(&id)).map_err(failure)
}
