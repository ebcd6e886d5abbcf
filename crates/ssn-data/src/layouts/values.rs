//! Which label values occur in a dataset: asked for where no file names the classes.

use std::path::Path;

use ssn_io::{Limits, read};

use crate::dataset::Entry;
use crate::parallel::{self, Meter};
use crate::records::PackedLabels;
use crate::source::{Maps, Source};

/// Which of the values 0 … 255 occur in the labels of any case. Files that cannot be read are left to the
/// check.
pub(super) fn values_in_use(entries: &[Entry]) -> [bool; 256] {
    let of_cases =
        parallel::map(entries.len(), &parallel::unwatched, |i, meter| of_source(&entries[i].source, meter));
    let mut present = [false; 256];
    // A file that makes the program fail does so again in the check, with the name of its case.
    for of_case in of_cases.into_iter().flatten() {
        present.iter_mut().zip(of_case).for_each(|(all, one)| *all |= one);
    }
    present
}

fn of_source(source: &Source, meter: &Meter) -> [bool; 256] {
    let mut present = [false; 256];
    let mut mark = |labels: &[u8]| labels.iter().for_each(|&label| present[usize::from(label)] = true);
    match source {
        Source::Record(records, index) => {
            let raters = records.items[*index].iter().flat_map(|record| &record.raters);
            raters.for_each(|rater| match rater {
                PackedLabels::Bytes(labels) => mark(labels),
                PackedLabels::Bits(_) => mark(&[0, 1]),
            });
        }
        Source::Files(files) => {
            for rater in &files.raters {
                match &rater.maps {
                    Maps::Labels(file) => labels_of(file).iter().for_each(|labels| {
                        meter.saw(labels.len());
                        mark(labels);
                    }),
                    Maps::Masks(masks) => masks.iter().for_each(|(class, _)| mark(&[*class])),
                }
            }
        }
    }
    present
}

fn labels_of(path: &Path) -> Option<Vec<u8>> {
    Some(read(path, &Limits::default()).ok()?.to_labels().ok()?.data)
}
