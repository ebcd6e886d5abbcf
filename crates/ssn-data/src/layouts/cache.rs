//! The cache file that `ssn prepare lidc` writes: a safetensors file with all images, and masks as bits.
//!
//! | tensor | content |
//! |---|---|
//! | `images` | `[n, c, d, h, w]`, `F32`, or `U8` where every value is k / 255 |
//! | `masks` | `[n, raters, ⌈d·h·w / 8⌉]` of bits for labels 0 and 1, or `[n, raters, d·h·w]` of labels |
//!
//! The metadata `cache` is JSON: the format, lists of the names, series and parts of the cases and of the classes, and a checksum of
//! everything. It is one text, since the order of several is not defined, and the same cases shall make the same bytes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::{SafeTensors, TensorView};
use safetensors::{Dtype, serialize};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssn_io::{Error, Limits, Result, read_bytes};

use crate::dataset::{
    CaseEntry, CaseFiles, Layout, PackedCase, PackedCases, PackedImage, PackedLabels, Split,
};
use crate::layouts::Draft;
use ssn_io::hex::hex;

/// How such files are named.
pub const CACHE_ENDING: &str = ".cache.safetensors";
const FORMAT: &str = "ssn-cache-2";
/// The name of the metadata.
const METADATA: &str = "cache";

/// What a cache holds beside images and masks.
#[derive(Serialize, Deserialize)]
struct Contents {
    format: String,
    ids: Vec<String>,
    groups: Vec<String>,
    /// The parts by their names, empty for a case of none.
    splits: Vec<String>,
    classes: Vec<String>,
    sha256: String,
}

/// The bytes of a cache of records that all have the size, the channels and the number of raters of the first.
///
/// # Errors
/// A sentence about the first record that differs.
pub fn encode(records: &[PackedCase], entries: &[CaseEntry], classes: &[String]) -> Result<Vec<u8>, String> {
    let first = records.first().ok_or("there are no cases")?;
    for (record, entry) in records.iter().zip(entries) {
        let fact = |record: &PackedCase| (record.channels, record.shape, record.raters.len());
        if fact(record) != fact(first) {
            return Err(format!(
                "case {} has channels, size and raters {:?}, but the first case has {:?}",
                entry.id,
                fact(record),
                fact(first)
            ));
        }
    }
    let [d, h, w] = first.shape;
    let voxels = d * h * w;
    let all_bytes = records.iter().all(|record| matches!(record.pixels, PackedImage::Bytes(_)));
    let images: Vec<u8> = records
        .iter()
        .flat_map(|record| match (&record.pixels, all_bytes) {
            (PackedImage::Bytes(bytes), true) => bytes.clone(),
            (pixels, _) => pixels.unpack().into_iter().flat_map(f32::to_le_bytes).collect(),
        })
        .collect();
    let all_bits = records.iter().flat_map(|r| &r.raters).all(|rater| matches!(rater, PackedLabels::Bits(_)));
    let masks: Vec<u8> = records
        .iter()
        .flat_map(|record| &record.raters)
        .flat_map(|rater| match (rater, all_bits) {
            (PackedLabels::Bits(bits), true) => bits.clone(),
            (labels, _) => labels.unpack(voxels),
        })
        .collect();
    let (n, raters) = (records.len(), first.raters.len());
    let per_mask = if all_bits { voxels.div_ceil(8) } else { voxels };
    let kind = if all_bytes { Dtype::U8 } else { Dtype::F32 };
    let tensors = [
        ("images", TensorView::new(kind, vec![n, first.channels, d, h, w], &images)),
        ("masks", TensorView::new(Dtype::U8, vec![n, raters, per_mask], &masks)),
    ];
    let tensors: Result<Vec<_>, _> =
        tensors.into_iter().map(|(name, view)| view.map(|view| (name, view))).collect();
    let tensors = tensors.map_err(|error| error.to_string())?;
    let mut contents = Contents {
        format: FORMAT.to_owned(),
        ids: entries.iter().map(|entry| entry.id.clone()).collect(),
        groups: entries.iter().map(|entry| entry.group.clone()).collect(),
        splits: entries.iter().map(|entry| entry.split.map_or("", Split::name).to_owned()).collect(),
        classes: classes.to_vec(),
        sha256: String::new(),
    };
    contents.sha256 = contents.check_sum([&tensors[0].1, &tensors[1].1]);
    let text = serde_json::to_string(&contents).map_err(|error| error.to_string())?;
    let metadata = HashMap::from([(METADATA.to_owned(), text)]);
    serialize(tensors, Some(metadata)).map_err(|error| error.to_string())
}

impl Contents {
    /// SHA-256 of the lists, and of type, shape and values of images and masks.
    fn check_sum(&self, tensors: [&TensorView<'_>; 2]) -> String {
        let mut digest = Sha256::new();
        let mut add = |bytes: &[u8]| {
            digest.update((bytes.len() as u64).to_le_bytes());
            digest.update(bytes);
        };
        for list in [&self.ids, &self.groups, &self.splits, &self.classes] {
            add(&(list.len() as u64).to_le_bytes());
            list.iter().for_each(|text| add(text.as_bytes()));
        }
        for tensor in tensors {
            add(format!("{:?} {:?}", tensor.dtype(), tensor.shape()).as_bytes());
            add(tensor.data());
        }
        hex(&digest.finalize())
    }
}

pub(super) fn open(path: &Path) -> Result<Draft> {
    let bytes = read_bytes(path, &Limits::default())?;
    decode(path, &bytes)
        .map_err(|reason| Error::data(path, reason).advise("make the cache again with `ssn prepare lidc`"))
}

fn decode(path: &Path, bytes: &[u8]) -> Result<Draft, String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let text = header.metadata().as_ref().and_then(|metadata| metadata.get(METADATA));
    let text =
        text.ok_or(format!("the file is no cache of this version: it lacks the metadata {METADATA:?}"))?;
    let contents: Contents =
        serde_json::from_str(text).map_err(|error| format!("the metadata {METADATA:?}: {error}"))?;
    if contents.format != FORMAT {
        return Err(format!("its format is {:?}, but this program reads {FORMAT:?}", contents.format));
    }
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let tensor = |name: &str| tensors.tensor(name).map_err(|error| format!("`{name}`: {error}"));
    let (images, masks) = (tensor("images")?, tensor("masks")?);
    if contents.sha256 != contents.check_sum([&images, &masks]) {
        return Err(
            "the file is damaged: its values do not have the checksum that was stored with them".to_owned()
        );
    }
    let (&[n, channels, d, h, w], &[masks_n, raters, per_mask]) = (images.shape(), masks.shape()) else {
        return Err(format!("the shapes are {:?} and {:?}", images.shape(), masks.shape()));
    };
    Limits::default().check_values(images.shape()).map_err(|problem| format!("`images`: {problem}"))?;
    let Contents { ids, groups, splits, classes, .. } = contents;
    let voxels = d * h * w;
    let bits = per_mask == voxels.div_ceil(8) && voxels > 1;
    if [masks_n, ids.len(), groups.len(), splits.len()] != [n; 4] || !(bits || per_mask == voxels) {
        return Err("images, masks and names differ in number".to_owned());
    }
    let pixels = |i: usize| -> Result<PackedImage, String> {
        let size = channels * voxels;
        match images.dtype() {
            Dtype::U8 => Ok(PackedImage::Bytes(images.data()[i * size..(i + 1) * size].to_vec())),
            Dtype::F32 => {
                let bytes = images.data()[4 * i * size..4 * (i + 1) * size].chunks_exact(4);
                Ok(PackedImage::Floats(
                    bytes.map(|b| f32::from_le_bytes(b.try_into().unwrap_or_default())).collect(),
                ))
            }
            other => Err(format!("the type of `images` is {other:?}, but it must be U8 or F32")),
        }
    };
    let rater = |i: usize, r: usize| {
        let start = (i * raters + r) * per_mask;
        let stored = masks.data()[start..start + per_mask].to_vec();
        if bits { PackedLabels::Bits(stored) } else { PackedLabels::Bytes(stored) }
    };
    if masks.dtype() != Dtype::U8 {
        return Err(format!("the type of `masks` is {:?}, but it must be U8", masks.dtype()));
    }
    let mut items = Vec::with_capacity(n);
    for i in 0..n {
        let raters = (0..raters).map(|r| rater(i, r)).collect();
        items.push(Ok(PackedCase { channels, shape: [d, h, w], pixels: pixels(i)?, raters }));
    }
    let records = Arc::new(PackedCases { path: path.to_owned(), items });
    let entries =
        ids.into_iter().zip(groups).zip(splits).enumerate().map(|(i, ((id, group), split))| CaseEntry {
            id,
            group,
            split: Split::from_name(&split),
            files: CaseFiles::default(),
            packed: Some((records.clone(), i)),
        });
    let classes = Some(classes).filter(|classes| !classes.is_empty());
    Ok(Draft { classes, ..Draft::new(Layout::Cache, entries.collect()) })
}
