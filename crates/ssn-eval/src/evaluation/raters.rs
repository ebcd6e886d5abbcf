//! The raters of a case, and its image, on the grid of its prediction.

use crate::error::{EvalError, Result};
use crate::predictions::Description;
use ssn_core::LabelMap;
use ssn_data::{Case, Dataset, Normalization, Preprocessing};
use ssn_io::Tolerance;

use super::matching::Job;

/// Loads the label maps `[d, h, w]` of all raters.
///
/// Predictions lie on the grid of the image as it is stored, or on that of the image as it was prepared for the network.
///
/// # Errors
/// A table of the differences where they lie on neither.
pub fn load(dataset: &Dataset, job: &Job) -> Result<Vec<LabelMap>> {
    let mut case = dataset.load_raw(job.index)?;
    case.image = vec![];
    case.channels = 0;
    label_maps(on_grid(dataset, &job.found.header.description, case)?.raters, dataset.classes.len())
}

/// The same with the image in the intensities in which it is stored.
pub fn load_with_image(
    dataset: &Dataset,
    index: usize,
    about: &Description,
) -> Result<(Case, Vec<LabelMap>)> {
    let case = dataset.load_raw(index)?;
    let mut case = on_grid(dataset, about, case)?;
    let raters = label_maps(std::mem::take(&mut case.raters), dataset.classes.len())?;
    Ok((case, raters))
}

fn label_maps(raters: Vec<Vec<u8>>, classes: usize) -> Result<Vec<LabelMap>> {
    raters.into_iter().map(|labels| Ok(LabelMap::new(labels, classes)?)).collect()
}

/// The case on the grid of its prediction.
fn on_grid(dataset: &Dataset, about: &Description, mut case: Case) -> Result<Case> {
    if let Some(table) = differences(about, &case) {
        // Intensities play no part here, and predictions keep the size of the image.
        let prepare = Preprocessing {
            normalization: Normalization::None,
            crop_to_mask: false,
            ..dataset.preprocessing
        };
        case = prepare.apply(case)?;
        if differences(about, &case).is_some() {
            let message = format!(
                "case {}: the prediction does not lie on the grid of the dataset; is this the dataset that was \
                 predicted?\n{table}",
                case.id
            );
            return Err(EvalError::mismatch(message));
        }
    }
    Ok(case)
}

/// In what the grids of a prediction and of a case differ, as a table; nothing if they are the same.
fn differences(about: &Description, case: &Case) -> Option<String> {
    let mut rows = vec![];
    for (axis, name) in ["depth", "height", "width"].iter().enumerate() {
        if about.size[axis] != case.shape[axis] {
            rows.push(((*name).to_owned(), about.size[axis].to_string(), case.shape[axis].to_string()));
        }
    }
    if let Some(found) = about.geometry.differences(&case.geometry, Tolerance::default()) {
        let row = |d: ssn_io::Difference| (d.quantity, format!("{:.6}", d.first), format!("{:.6}", d.second));
        rows.extend(found.0.into_iter().map(row));
    }
    if rows.is_empty() {
        return None;
    }
    let mut table = format!("  {:<16}{:>16}{:>16}", "", "prediction", "dataset");
    for (quantity, first, second) in rows {
        table += &format!("\n  {quantity:<16}{first:>16}{second:>16}");
    }
    Some(table)
}
