//! Labels of a dataset, read as a trained model read those of its own.

use crate::dataset::{
    Dataset, Finding, FindingKind, LabelCoding, LabelHistogram, LabelReading, MissingRater, RaterMaps,
};
use crate::layouts::label_values;

impl LabelCoding {
    /// Returns `true` if every value of some label files is a class.
    fn fits(&self, found: &LabelHistogram, classes: usize) -> bool {
        let table = self.table(classes);
        let is_marked = |values: &[u8]| values.iter().any(|&value| value > 0);
        let values = found.values();
        match self {
            // Above the threshold must be something, or else masks of 0 and 1 would be empty.
            Self::Threshold(threshold) => !is_marked(&values) || values.iter().any(|value| value > threshold),
            _ => values.iter().all(|&value| table.class(value).is_some()),
        }
    }
}

impl Dataset {
    /// Reads labels as a model with `classes` did in training.
    ///
    /// If the values of the label files do not fit `reading`, or `reading` is not known, they are read in the order of
    /// their values, and a finding says so.
    pub fn read_labels_as(&mut self, classes: &[String], reading: Option<&LabelReading>) {
        if let Some(reading) = reading {
            self.reading.invert = reading.invert && classes.len() == 2;
            if reading.missing_rater == MissingRater::Empty {
                self.fill_missing_raters();
            }
        }
        if self.take_class_names(classes) {
            return;
        }
        let known = reading.map(|reading| &reading.coding);
        if known.is_some_and(|known| *known == self.reading.coding && self.classes.len() == classes.len()) {
            return;
        }
        let found = label_values(&self.entries);
        let expected = known.unwrap_or(&self.reading.coding);
        if expected.fits(&found, classes.len()) {
            self.reading.coding = expected.clone();
            self.classes = classes.to_vec();
            return;
        }
        let (own, names) = LabelCoding::for_values(&found);
        if names.len() != classes.len() {
            // Loading a case names the value that is no class.
            if let Some(known) = known.filter(|_| self.classes.len() == classes.len()) {
                self.reading.coding = known.clone();
            }
            return;
        }
        if known.is_some() && classes.len() > 2 {
            let reason = format!(
                "labels are stored as {}, not as in training ({}): they are read in the order of their values",
                own.describe(classes.len()),
                expected.describe(classes.len())
            );
            let advice = "if that is wrong, set data.label_values in a config and name the config";
            self.findings.push(Finding::warning(FindingKind::ImplausibleLabels, reason, advice));
        }
        self.reading.coding = own;
        self.classes = classes.to_vec();
    }

    /// Takes the order of `classes` where the files themselves name their classes: masks in folders of structures, and
    /// segments. Returns `true` if they do.
    fn take_class_names(&mut self, classes: &[String]) -> bool {
        let place = |name: &String| classes.iter().position(|class| class == name);
        let places: Option<Vec<usize>> = self.classes.iter().map(place).collect();
        let raters = || self.entries.iter().flat_map(|entry| &entry.files.raters);
        let is_structured =
            raters().any(|rater| matches!(&rater.maps, RaterMaps::Masks(masks) if !masks.is_empty()));
        match places.filter(|places| places.first() == Some(&0)) {
            Some(places) if is_structured => {
                for rater in self.entries.iter_mut().flat_map(|entry| &mut entry.files.raters) {
                    if let RaterMaps::Masks(masks) = &mut rater.maps {
                        masks.iter_mut().for_each(|(class, _)| *class = places[usize::from(*class)] as u8);
                    }
                }
                self.classes = classes.to_vec();
            }
            Some(_) if self.reading.by_name => self.classes = classes.to_vec(),
            _ if is_structured => {}
            _ => {
                self.reading.by_name = false;
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[u8]) -> LabelHistogram {
        let mut found = LabelHistogram::default();
        found.add(values, false);
        found
    }

    #[test]
    fn codings_fit_the_values_that_they_name() {
        let values = |values: &[u8]| LabelCoding::Values(values.to_vec());
        assert!(values(&[0, 2, 1]).fits(&histogram(&[0, 1, 2]), 3));
        assert!(values(&[0, 2, 1]).fits(&histogram(&[0]), 3), "a case without marks fits");
        assert!(!values(&[0, 255]).fits(&histogram(&[0, 1]), 2));
        assert!(LabelCoding::Plain.fits(&histogram(&[0, 2]), 3));
        assert!(!LabelCoding::Plain.fits(&histogram(&[0, 255]), 2));
        assert!(LabelCoding::Threshold(127).fits(&histogram(&[0, 255]), 2));
        assert!(!LabelCoding::Threshold(127).fits(&histogram(&[0, 1]), 2));
    }
}
