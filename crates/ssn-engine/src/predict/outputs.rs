//! The files of one case.

use ssn_cli::Failure;
use ssn_cli::args::{PredictArgs, Stored};
use ssn_cli::predictions::{core_failure, failure};
use ssn_core::{SampleSummary, Sampler, Steering};
use ssn_data::labels_between;
use ssn_eval::{DistributionFile, Kind, Output, Precision, Predictions};
use ssn_io::{Geometry, Image, Limits, Voxels};

/// Samples behind probability maps.
const SAMPLES: u64 = 100;

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
    let image = Image::new(Voxels::U8(labels), [1, d, h, w], geometry, &Limits::default())
        .map_err(|problem| failure(problem.in_file(&path).into()))?;
    write_image(folder, &id, Output::Prediction, &image)?;

    if args.probabilities {
        write_probabilities(folder, &file)?;
    }
    if args.nifti {
        write_parts(folder, &file)?;
    }
    let precision = match args.precision {
        Stored::Single => Precision::Single,
        Stored::HalfFactor => Precision::HalfFactor,
        Stored::Half => Precision::Half,
    };
    let file = file.with_precision(precision).map_err(failure)?;
    file.write(&folder.distribution_path(&id)).map_err(failure)
}

/// The mean probabilities of samples and their entropy; without a distribution, those of the logits. Of samples that the
/// network drew itself, the mean has the logarithms of the mean probabilities.
fn write_probabilities(folder: &Predictions, file: &DistributionFile) -> Result<(), Failure> {
    let id = &file.description().case;
    let samples = match file.description().kind {
        Kind::Stochastic => SAMPLES,
        Kind::Deterministic | Kind::Sampled => 1,
    };
    let sampler = Sampler::new(file.distribution(), 0, &Steering::default()).map_err(core_failure)?;
    let mut summary = SampleSummary::new(&sampler, &[]).map_err(core_failure)?;
    summary.extend(&sampler, 0..samples).map_err(core_failure)?;
    let probabilities = summary.mean_probabilities().map_err(core_failure)?;
    let entropy = summary.marginal_entropy().map_err(core_failure)?;
    let image = file.probabilities_as_image(&probabilities).map_err(failure)?;
    write_image(folder, id, Output::Probabilities, &image)?;
    write_image(folder, id, Output::Entropy, &file.rows_as_image(&entropy, |_| 0.0).map_err(failure)?)
}

/// Mean, diagonal and factor as the authors' tool writes them; channel rank·c + class of the factor.
fn write_parts(folder: &Predictions, file: &DistributionFile) -> Result<(), Failure> {
    let distribution = file.distribution();
    let parts = [
        (Output::Mean, distribution.mean()),
        (Output::Diagonal, distribution.diagonal()),
        (Output::Factor, distribution.factor()),
    ];
    for (output, values) in parts.into_iter().filter(|(_, values)| !values.is_empty()) {
        let image = file.rows_as_image(&values.to_f32(), |_| 0.0).map_err(failure)?;
        write_image(folder, &file.description().case, output, &image)?;
    }
    Ok(())
}

fn write_image(folder: &Predictions, id: &str, output: Output, image: &Image) -> Result<(), Failure> {
    ssn_io::write(&folder.output_path(id, output), image).map_err(|error| failure(error.into()))
}
