//! Scores of the multi-rater challenges.
//!
//! `docs/reference/metrics.md` defines them. p is the mean of the samples' probabilities, or of their labels where these alone are
//! known.

use ssn_core::metrics::{Calibrated, Summary, ece};
use ssn_core::{LabelMap, Region};
use ssn_io::Result;

use crate::inputs::CaseInput;

/// The bins of the calibration error of CURVAS.
const BINS: usize = 50;
/// Voxels around what raters marked that count for the calibration error of PDACVI.
const MARGIN: usize = 20;
/// The thresholds of QUBIQ.
pub(crate) const QUBIQ: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// The thresholds of CURVAS-PDACVI.
pub(crate) const PDACVI: [f64; 6] = [0.1, 0.24, 0.38, 0.52, 0.66, 0.8];
/// The thresholds of MMIS.
pub(crate) const MMIS: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

/// Computes the calibration error of the whole image, the mean over raters.
pub(crate) fn image_ece(case: &CaseInput<'_>) -> Result<Option<f64>> {
    case.probabilities.map_or(Ok(None), |probabilities| mean_ece(probabilities, case.raters))
}

/// Computes the calibration error of the box around what raters marked, with 20 voxels on each side, the mean over raters; none
/// where nobody marked anything.
pub(crate) fn ece_around_marks(case: &CaseInput<'_>) -> Result<Option<f64>> {
    let (raters, size) = (case.raters, case.maps.size);
    let (Some(probabilities), Some(region)) = (case.probabilities, marked_box(raters, size)) else {
        return Ok(None);
    };
    let planes = probabilities.chunks_exact(raters[0].voxels());
    let inside: Vec<f32> = planes.flat_map(|plane| region.cut(plane, size)).collect();
    let cut = |rater: &LabelMap| LabelMap::new(region.cut(rater.labels(), size), rater.classes());
    let raters = raters.iter().map(cut).collect::<ssn_core::Result<Vec<_>>>()?;
    mean_ece(&inside, &raters)
}

fn mean_ece(probabilities: &[f32], raters: &[LabelMap]) -> Result<Option<f64>> {
    let one = |rater| ece(probabilities, std::slice::from_ref(rater), Calibrated::TopLabel, BINS);
    let each = raters.iter().map(|rater| Ok(Some(one(rater)?))).collect::<Result<Vec<_>>>()?;
    Ok(Summary::of(&each)?.mean)
}

/// Returns the box around what any rater marked, with a margin, within an image of a size; nothing where nobody marked anything.
fn marked_box(raters: &[LabelMap], size: [usize; 3]) -> Option<Region> {
    let whole = Region::whole(size);
    let marked = raters.iter().flat_map(|rater| {
        rater.labels().iter().enumerate().filter(|(_, label)| **label > 0).map(|(at, _)| whole.voxel(at))
    });
    Some(Region::around(marked)?.grown(MARGIN, size))
}
