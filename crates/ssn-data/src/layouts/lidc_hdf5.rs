//! LIDC as HDF5: groups `train`, `val`, `test` with `images` (n, h, w), `labels` (n, h, w, raters) or
//! (n, raters, h, w), and `uids`.

use std::path::Path;

use super::draft::Draft;
#[cfg(not(feature = "hdf5"))]
use crate::error::DataError;
use crate::error::Result;

/// How such files are named.
pub(super) const ENDINGS: [&str; 2] = [".hdf5", ".h5"];

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let files = super::files_by_part(root, &ENDINGS, &|path| open(path).is_ok())?;
    // The file holds all parts itself, so that there is one.
    match files.as_slice() {
        [(_, file)] => open(file).map(Some),
        _ => Ok(None),
    }
}

#[cfg(not(feature = "hdf5"))]
pub(super) fn open(path: &Path) -> Result<Draft> {
    Err(DataError::Dataset {
        path: path.to_owned(),
        reason: "this program was built without HDF5".to_owned(),
        advice: "build it with `--features hdf5`, or convert the file to a pickle",
    })
}

#[cfg(feature = "hdf5")]
pub(super) use reader::open;

#[cfg(feature = "hdf5")]
mod reader {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;

    use ssn_io::hdf5;
    use ssn_io::hdf5::Dataset;
    use ssn_io::{Array, Limits};

    use crate::dataset::{Entry, Layout};
    use crate::error::{DataError, Result};
    use crate::finding::{Finding, Kind, Severity};
    use crate::layouts::draft::Draft;
    use crate::records::{PackedLabels, Pixels, Record, Records};
    use crate::source::Source;
    use crate::split::Split;

    pub(in crate::layouts) fn open(path: &Path) -> Result<Draft> {
        let datasets = hdf5::read(path, &Limits::default())?;
        let mut groups: BTreeMap<String, BTreeMap<String, Dataset>> = BTreeMap::new();
        for (name, dataset) in datasets {
            let (group, field) = name.rsplit_once('/').unwrap_or(("", &name));
            groups.entry(group.to_owned()).or_default().insert(field.to_owned(), dataset);
        }
        groups.retain(|_, fields| fields.contains_key("images"));
        if groups.is_empty() {
            return Err(wrong(path, "no dataset `images` was found in any group".to_owned()));
        }
        let (mut entries, mut findings) = (vec![], vec![]);
        for (group, fields) in groups {
            let split = Split::from_name(&group);
            entries.extend(of_group(path, &group, split, fields, &mut findings)?);
        }
        Ok(Draft { findings, ..Draft::new(Layout::LidcHdf5, entries) })
    }

    fn of_group(
        path: &Path,
        group: &str,
        split: Option<Split>,
        mut fields: BTreeMap<String, Dataset>,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<Entry>> {
        let (Some(Dataset::Array(images)), Some(Dataset::Array(labels))) =
            (fields.remove("images"), fields.remove("labels"))
        else {
            return Err(wrong(
                path,
                format!("`{group}/images` and `{group}/labels` must both be arrays of numbers"),
            ));
        };
        let &[n, h, w] = images.shape.as_slice() else {
            let reason =
                format!("the shape of `{group}/images` is {:?}, but it must be [n, h, w]", images.shape);
            return Err(wrong(path, reason));
        };
        if n == 0 {
            return Ok(vec![]);
        }
        Limits::default().check_values(&images.shape).map_err(|problem| problem.in_file(path))?;
        let Some(raters_last) = raters_last(&labels, [n, h, w]) else {
            let reason = format!(
                "the shape of `{group}/labels` is {:?}, but it must be [{n}, {h}, {w}, raters] or [{n}, raters, {h}, {w}]",
                labels.shape
            );
            return Err(wrong(path, reason));
        };
        let uids = uids(fields.remove("uids"), n).unwrap_or_else(|count| {
            let reason =
                format!("`{group}/uids` has {count} entries for {n} images; every image is its own series");
            let advice = "write a uid for every image, or slices of a patient may come into two parts";
            findings.push(Finding::new(Severity::Warning, Kind::Layout, reason, advice).in_file(path));
            vec![]
        });
        let values = images.voxels.scaled_f32(1.0, 0.0);
        let maps = labels.voxels.scaled_labels(1.0, 0.0).map_err(|problem| problem.in_file(path))?;
        let (voxels, raters) = (h * w, labels.shape[if raters_last { 3 } else { 1 }]);
        let record = |i: usize| {
            let stored = &maps[i * raters * voxels..(i + 1) * raters * voxels];
            let rater = |r: usize| match raters_last {
                true => stored.iter().skip(r).step_by(raters).copied().collect(),
                false => stored[r * voxels..(r + 1) * voxels].to_vec(),
            };
            Ok(Record {
                channels: 1,
                shape: [1, h, w],
                pixels: Pixels::pack(values[i * voxels..(i + 1) * voxels].to_vec()),
                raters: (0..raters).map(|r| PackedLabels::pack(rater(r))).collect(),
            })
        };
        let records = Arc::new(Records { path: path.to_owned(), items: (0..n).map(record).collect() });
        let entry = |i: usize| {
            let id = if group.is_empty() { format!("{i:05}") } else { format!("{group}/{i:05}") };
            let group = uids.get(i).cloned().unwrap_or_else(|| id.clone());
            Entry { id, group, split, source: Source::Record(records.clone(), i) }
        };
        Ok((0..n).map(entry).collect())
    }

    /// Whether the raters are the last axis, or the second; nothing if neither fits.
    fn raters_last(labels: &Array, [n, h, w]: [usize; 3]) -> Option<bool> {
        match labels.shape[..] {
            [a, b, c, _] if [a, b, c] == [n, h, w] => Some(true),
            [a, _, c, d] if [a, c, d] == [n, h, w] => Some(false),
            _ => None,
        }
    }

    /// The series of each case, as text or numbers; none without them.
    ///
    /// # Errors
    /// How many there are, if not `n`.
    fn uids(dataset: Option<Dataset>, n: usize) -> Result<Vec<String>, usize> {
        let uids = match dataset {
            Some(Dataset::Text(texts)) => texts,
            Some(Dataset::Array(array)) => {
                array.voxels.scaled_f64(1.0, 0.0).iter().map(f64::to_string).collect()
            }
            None => return Ok(vec![]),
        };
        if uids.len() == n { Ok(uids) } else { Err(uids.len()) }
    }

    fn wrong(path: &Path, reason: String) -> DataError {
        let advice = "write the file with groups train, val, test, each with images, labels and uids";
        DataError::Dataset { path: path.to_owned(), reason, advice }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_wrong_number_of_uids_is_told() {
            let texts = |n: usize| Some(Dataset::Text(vec!["1.2".to_owned(); n]));
            assert_eq!(uids(texts(2), 2).unwrap().len(), 2);
            assert_eq!(uids(texts(3), 2), Err(3));
            assert_eq!(uids(None, 2), Ok(vec![]));
        }
    }
}
