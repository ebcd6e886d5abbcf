//! LIDC as a pickle: a dictionary of name → `image`, `masks` (a list of arrays) and `series_uid`.
//!
//! The file is read once; its cases share what was read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ssn_io::pickle;
use ssn_io::pickle::Value;
use ssn_io::{Array, Limits, read_bytes};

use super::draft::Draft;
use super::{files_by_part, unique};
use crate::dataset::{Entry, Layout};
use crate::error::{DataError, Result};
use crate::folders::natural_order;
use crate::records::{PackedLabels, Pixels, Record, Records};
use crate::source::Source;
use crate::split::Split;

/// How such files are named.
pub(super) const ENDINGS: [&str; 4] = [".pickle", ".pickle.gz", ".pkl", ".pkl.gz"];

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let files = files_by_part(root, &ENDINGS, &|path| read(path).is_ok())?;
    if files.is_empty() { Ok(None) } else { open(&files).map(Some) }
}

pub(super) fn open(files: &[(Option<Split>, PathBuf)]) -> Result<Draft> {
    let (mut entries, mut taken) = (vec![], BTreeSet::new());
    for (split, path) in files {
        let (records, names) = read(path)?;
        let records = Arc::new(records);
        // The order of a dictionary says nothing.
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by(|&a, &b| natural_order(&names[a].0, &names[b].0));
        for index in order {
            let (name, group) = &names[index];
            let id = unique(*split, name.clone(), &mut taken);
            let group = group.clone().unwrap_or_else(|| id.clone());
            entries.push(Entry { id, group, split: *split, source: Source::Record(records.clone(), index) });
        }
    }
    Ok(Draft::new(Layout::LidcPickle, entries))
}

/// A name of a case with its series.
type Named = (String, Option<String>);

fn read(path: &Path) -> Result<(Records, Vec<Named>)> {
    let bytes = read_bytes(path, &Limits::default())?;
    let pickle = pickle::parse(&bytes, &Limits::default()).map_err(|problem| problem.in_file(path))?;
    let value = pickle.root();
    let cases = value.entries().map_err(|problem| problem.in_file(path))?;
    let Some(cases) = cases.filter(|cases| cases.iter().any(|(_, case)| case.get("image").is_some())) else {
        return Err(DataError::Dataset {
            path: path.to_owned(),
            reason: format!(
                "the pickle holds a {}, but it must be a dictionary of name → image, masks, series_uid",
                value.kind()
            ),
            advice: "write it in the layout of the LIDC pickle",
        });
    };
    let (mut items, mut names) = (Vec::with_capacity(cases.len()), Vec::with_capacity(cases.len()));
    for (name, case) in cases {
        items.push(record(case).map_err(|reason| format!("entry {name:?}: {reason}")));
        names.push((name.to_owned(), case.get("series_uid").and_then(Value::as_text).map(str::to_owned)));
    }
    Ok((Records { path: path.to_owned(), items }, names))
}

fn record(case: Value<'_>) -> Result<Record, String> {
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
    Ok(Record {
        channels,
        shape,
        pixels: Pixels::pack(image.voxels.scaled_f32(1.0, 0.0)),
        raters: masks.into_iter().enumerate().map(rater).collect::<Result<_, String>>()?,
    })
}

fn array(value: Option<Value<'_>>, what: &str) -> Result<Array, String> {
    let value = value.ok_or_else(|| format!("`{what}` is missing"))?;
    let array =
        value.array().ok_or_else(|| format!("`{what}` is a {}, but it must be an array", value.kind()))?;
    array.map_err(|problem| format!("`{what}`: {problem}"))
}
