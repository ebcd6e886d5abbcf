//! What raters marked, in one picture.

use ssn_core::LabelMap;

use super::material::Subject;
use super::pictures::View;
use crate::figures::Picture;

/// The contours of all raters of a case on its image, with fills that are the stronger the more of them agree; nothing without a
/// rater.
pub(super) fn truth(subject: &Subject, view: &View) -> Option<Picture> {
    let image = view.image(subject.image.as_deref(), view.slice);
    let with_rater = |picture: Picture, rater: &LabelMap| {
        let (labels, columns) = view.cut(rater.labels(), view.slice);
        picture.with_labels(&labels, columns)
    };
    (!subject.raters.is_empty()).then(|| subject.raters.iter().fold(image, with_rater))
}

/// What that picture is called: the name of the only rater, or how many they are.
pub(super) fn truth_name(subject: &Subject) -> String {
    match subject.rater_names.as_slice() {
        [one] => one.clone(),
        all => format!("{} raters", all.len()),
    }
}
