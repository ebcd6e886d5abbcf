//! LIDC, in any of its layouts, as one file that loads fast.

use std::path::Path;

use ssn_io::write_atomically;

use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use crate::layouts::encode_cache;
use crate::parallel::{self, Progress};
use crate::records::{PackedLabels, Pixels, Record};

/// What was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lidc {
    /// Cases in the file.
    pub cases: usize,
    /// Bytes of the file.
    pub bytes: usize,
}

/// Writes all cases of a dataset into one cache file, atomically; replaces a file of that name.
///
/// Images keep their values; normalization is for those who read the cache.
pub fn lidc(dataset: &Dataset, out: &Path, progress: Progress<'_>) -> Result<Lidc> {
    let records = parallel::map(dataset.entries.len(), progress, |index, meter| -> Result<Record> {
        let case = dataset.load_raw(index)?;
        meter.saw(case.bytes());
        if case.mask.is_some() {
            return Err(DataError::Case {
                id: case.id,
                reason: "the case has a region of interest, which a cache does not hold".to_owned(),
                advice: "use the dataset as it is",
            });
        }
        if !case.rater_numbers.is_empty() {
            return Err(DataError::Case {
                id: case.id,
                reason: format!(
                    "only the raters {:?} looked at the case, which a cache does not hold",
                    case.rater_numbers
                ),
                advice: "use the dataset as it is",
            });
        }
        Ok(Record {
            channels: case.channels,
            shape: case.shape,
            pixels: Pixels::pack(case.image),
            raters: case.raters.into_iter().map(PackedLabels::pack).collect(),
        })
    });
    let records = parallel::all_or_error(records, |index| &dataset.entries[index].id)?;
    let bytes =
        encode_cache(&records, &dataset.entries, &dataset.classes).map_err(|reason| DataError::Dataset {
            path: dataset.root.clone(),
            reason,
            advice: "a cache is for images of one size with the same raters; use the dataset as it is",
        })?;
    write_atomically(out, |file| file.write_all(&bytes))?;
    Ok(Lidc { cases: records.len(), bytes: bytes.len() })
}
