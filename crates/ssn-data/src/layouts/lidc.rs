//! LIDC in the four ways in which it is passed around: PNG crops, a folder of JPEG files per slice, a pickle, HDF5.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ssn_io::pickle::Value;
use ssn_io::{Array, Error, Limits, Result, pickle, read_bytes};

use crate::dataset::{
    CaseEntry, CaseFiles, Finding, FindingKind, HALF, LabelCoding, Layout, PackedCase, PackedCases,
    PackedImage, PackedLabels, ReadOptions,
};
use crate::layouts::Draft;
use crate::resolve::files::{name, natural_order, stem};
use crate::resolve::{FoundCase, Hint, PartPath, RaterKey, Tree, numbered, unique};

/// The side of the stored crops, and of the part that is used.
const STORED_SIDE: usize = 180;
const USED_SIDE: usize = 128;

/// PNG crops: `{split}/images/<patient>/<slice>.png` with `{split}/gt/<patient>/<slice>_l<1…>.png`. Crops of 180 × 180
/// are cut to their middle 128 × 128, as published.
pub(super) fn recognize_png(tree: &Tree<'_>, root: &Path) -> Result<Option<Draft>> {
    let mut found = vec![];
    for (split, folder) in tree.parts(root)? {
        let (pictures, masks) = (folder.join("images"), folder.join("gt"));
        if !pictures.is_dir() || !masks.is_dir() {
            continue;
        }
        for patient in tree.folders(&pictures)? {
            let group = name(&patient);
            let mut raters = raters_by_slice(tree, &masks.join(&group))?;
            for picture in tree.images(&patient)? {
                let slice = stem(&picture);
                let (id, group) = (format!("{group}/{slice}"), Some(group.clone()));
                let mut case =
                    FoundCase { id, group, split, images: vec![Some(picture)], ..FoundCase::default() };
                let own = raters.remove(&slice).unwrap_or_default();
                own.into_iter().for_each(|(reader, path)| case.add_labels(RaterKey::Number(reader), path));
                found.push(case);
            }
        }
    }
    let Some(first) = found.first() else { return Ok(None) };
    let first = first.images.iter().flatten().next().and_then(|path| tree.shape(path));
    let stored_side = first.is_some_and(|shape| shape[2..] == [STORED_SIDE; 2]);
    let center_crop = stored_side.then_some(USED_SIDE);
    // Masks are 0 and 255 in some copies, 0 and 1 in others.
    let reading = ReadOptions { coding: LabelCoding::Threshold(0), center_crop, ..ReadOptions::default() };
    Ok(Some(Draft { reading, ..Draft::of_cases(Layout::LidcPng, found) }))
}

/// Returns the masks of a patient: by slice, then by reader.
fn raters_by_slice(tree: &Tree<'_>, folder: &Path) -> Result<BTreeMap<String, BTreeMap<usize, PathBuf>>> {
    let mut found = BTreeMap::<String, BTreeMap<usize, PathBuf>>::new();
    for mask in if folder.is_dir() { tree.images(folder)? } else { vec![] } {
        if let Some((slice, reader)) = numbered(&stem(&mask), Hint::Rater) {
            found.entry(slice.to_owned()).or_default().insert(reader, mask);
        }
    }
    Ok(found)
}

/// JPEG: a folder per slice with `image_<n>.jpg` and `label0_.jpg`, `label1_.jpg`, … JPEG changes values, so that masks
/// are what is above 127.
pub(super) fn recognize_jpeg(tree: &Tree<'_>, root: &Path) -> Result<Option<Draft>> {
    let (mut found, mut findings, mut taken) = (vec![], vec![], BTreeSet::new());
    for (split, folder) in tree.parts(root)? {
        for folder in tree.folders(&folder)? {
            let (mut pictures, mut case) = (vec![], FoundCase { split, ..FoundCase::default() });
            for path in tree.images(&folder)? {
                let stem = stem(&path).to_lowercase();
                let number = stem.strip_prefix("label").map(|rest| rest.trim_end_matches('_').parse());
                if let Some(Ok(number)) = number {
                    case.add_labels(RaterKey::Number(number), path);
                } else if stem == "image" || stem.starts_with("image_") {
                    pictures.push(path);
                }
            }
            if let [first, others @ ..] = &pictures[..]
                && !case.raters.is_empty()
            {
                let id = unique(split, None, name(&folder), &mut taken);
                let finding = (!others.is_empty()).then(|| several_images(&pictures).of_case(&id));
                findings.extend(finding);
                found.push(FoundCase { id, images: vec![Some(first.clone())], ..case });
            }
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    let reading = ReadOptions { coding: LabelCoding::Threshold(HALF), ..ReadOptions::default() };
    Ok(Some(Draft { reading, findings, ..Draft::of_cases(Layout::LidcJpeg, found) }))
}

fn several_images(pictures: &[PathBuf]) -> Finding {
    let names: Vec<String> = pictures.iter().map(|path| name(path)).collect();
    let reason = format!("there are {} images, {}; the first is used", names.len(), names.join(", "));
    let advice = "keep one image in the folder of a slice";
    Finding::warning(FindingKind::Layout, reason, advice)
}

/// A pickle: a dictionary of name → `image`, `masks` (a list of arrays) and `series_uid`, read once and shared by its
/// cases.
pub(super) fn open_pickle(files: &[PartPath]) -> Result<Draft> {
    let (mut entries, mut taken) = (vec![], BTreeSet::new());
    for (split, path) in files {
        let (records, names) = read_pickle(path)?;
        let records = Arc::new(records);
        // The order of a dictionary says nothing.
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by(|&a, &b| natural_order(&names[a].0, &names[b].0));
        for index in order {
            let (name, group) = &names[index];
            let id = unique(*split, None, name.clone(), &mut taken);
            let group = group.clone().unwrap_or_else(|| id.clone());
            let (files, packed) = (CaseFiles::default(), Some((records.clone(), index)));
            entries.push(CaseEntry { id, group, split: *split, files, packed });
        }
    }
    Ok(Draft::new(Layout::LidcPickle, entries))
}

/// A name of a case with its series.
type Named = (String, Option<String>);

fn read_pickle(path: &Path) -> Result<(PackedCases, Vec<Named>)> {
    let bytes = read_bytes(path, &Limits::default())?;
    let pickle = pickle::parse(&bytes, &Limits::default()).map_err(|problem| problem.in_file(path))?;
    let value = pickle.root();
    let cases = value.entries().map_err(|problem| problem.in_file(path))?;
    let Some(cases) = cases.filter(|cases| cases.iter().any(|(_, case)| case.get("image").is_some())) else {
        return Err(Error::data(
            path,
            format!(
                "the pickle holds a {}, but it must be a dictionary of name → image, masks, series_uid",
                value.kind()
            ),
        )
        .advise("write it in the layout of the LIDC pickle"));
    };
    let (mut items, mut names) = (Vec::with_capacity(cases.len()), Vec::with_capacity(cases.len()));
    for (name, case) in cases {
        items.push(record(case).map_err(|reason| format!("entry {name:?}: {reason}")));
        names.push((name.to_owned(), case.get("series_uid").and_then(Value::as_text).map(str::to_owned)));
    }
    Ok((PackedCases { path: path.to_owned(), items }, names))
}

fn record(case: Value<'_>) -> Result<PackedCase, String> {
    let image = array(case.get("image"), "image")?;
    let (channels, shape) = match image.shape[..] {
        [h, w] => (1, [1, h, w]),
        [d, h, w] => (1, [d, h, w]),
        [c, d, h, w] => (c, [d, h, w]),
        _ => {
            return Err(format!(
                "the shape of `image` is {:?}, but it must be [h, w], [d, h, w] or [c, d, h, w]",
                image.shape
            ));
        }
    };
    Limits::default().check_values(&image.shape).map_err(|problem| format!("`image`: {problem}"))?;
    let masks = case.get("masks").ok_or("`masks` is missing")?;
    let masks = masks
        .items()
        .ok_or_else(|| format!("`masks` is a {}, but it must be a list of arrays", masks.kind()))?;
    let rater = |(number, mask): (usize, Value<'_>)| {
        let what = format!("masks[{number}]");
        let mask = array(Some(mask), &what)?;
        if mask.shape != image.shape {
            return Err(format!(
                "the shape of `{what}` is {:?}, but that of `image` is {:?}",
                mask.shape, image.shape
            ));
        }
        let labels = mask.voxels.scaled_labels(1.0, 0.0).map_err(|problem| format!("`{what}`: {problem}"))?;
        Ok(PackedLabels::pack(labels))
    };
    Ok(PackedCase {
        channels,
        shape,
        pixels: PackedImage::pack(image.voxels.scaled_f32(1.0, 0.0)),
        raters: masks.into_iter().enumerate().map(rater).collect::<Result<_, String>>()?,
    })
}

fn array(value: Option<Value<'_>>, what: &str) -> Result<Array, String> {
    let value = value.ok_or_else(|| format!("`{what}` is missing"))?;
    let array =
        value.array().ok_or_else(|| format!("`{what}` is a {}, but it must be an array", value.kind()))?;
    array.map_err(|problem| format!("`{what}`: {problem}"))
}

#[cfg(not(feature = "hdf5"))]
pub(super) fn open_hdf5(path: &Path) -> Result<Draft> {
    Err(Error::data(path, "this program was built without HDF5")
        .advise("build it with `--features hdf5`, or convert the file to a pickle"))
}

#[cfg(feature = "hdf5")]
pub(super) use reader::open_hdf5;

/// HDF5: groups `train`, `val`, `test` with `images` (n, h, w), `labels` (n, h, w, raters) or (n, raters, h, w), and
/// `uids`.
#[cfg(feature = "hdf5")]
mod reader {
    use ssn_io::hdf5::{self, Dataset};

    use super::*;
    use crate::dataset::Split;

    pub(in crate::layouts) fn open_hdf5(path: &Path) -> Result<Draft> {
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
    ) -> Result<Vec<CaseEntry>> {
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
            findings.push(Finding::warning(FindingKind::Layout, reason, advice).in_file(path));
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
            Ok(PackedCase {
                channels: 1,
                shape: [1, h, w],
                pixels: PackedImage::pack(values[i * voxels..(i + 1) * voxels].to_vec()),
                raters: (0..raters).map(|r| PackedLabels::pack(rater(r))).collect(),
            })
        };
        let records = Arc::new(PackedCases { path: path.to_owned(), items: (0..n).map(record).collect() });
        let entry = |i: usize| {
            let id = if group.is_empty() { format!("{i:05}") } else { format!("{group}/{i:05}") };
            let group = uids.get(i).cloned().unwrap_or_else(|| id.clone());
            CaseEntry { id, group, split, files: CaseFiles::default(), packed: Some((records.clone(), i)) }
        };
        Ok((0..n).map(entry).collect())
    }

    /// Whether the raters are the last axis (or the second); `None` if neither fits.
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

    fn wrong(path: &Path, reason: String) -> Error {
        let advice = "write the file with groups train, val, test, each with images, labels and uids";
        Error::data(path, reason).advise(advice)
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
