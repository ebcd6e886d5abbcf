//! Images of a model whose channels are known, found by their names alone: a file with all channels, a file per
//! channel, or a folder per case. A region of interest and labels beside an image belong to it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_io::{Format, Limits, read};

use super::draft::Draft;
use super::image_names::{Names, beside, role};
use super::role::Role;
use crate::dataset::unnamed_channels;
use crate::dataset::{Entry, Layout};
use crate::error::{DataError, Result};
use crate::finding::{Finding, Kind, Severity};
use crate::folders::{entries, is_image, name, natural_order, stem};
use crate::source::{Files, Rater, Reading, Source};

/// How many folders deep images are looked for: a part, a grade and a case, as in `train/HGG/case`.
const DEEPEST: usize = 3;

/// A case before it has an id.
#[derive(Default)]
struct Found {
    /// Its folder, or the name of its files in their folder.
    place: PathBuf,
    /// One file per channel, or one with all.
    images: Vec<PathBuf>,
    /// Label files by what their names have besides that of the case.
    raters: Vec<(String, PathBuf)>,
    mask: Option<PathBuf>,
}

/// The images in a folder and in the folders below.
pub(super) fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut level) = (vec![], vec![folder.to_owned()]);
    for _ in 0..=DEEPEST {
        let mut next = vec![];
        for folder in level {
            let (folders, files) = entries(&folder)?.into_iter().partition::<Vec<_>, _>(|path| path.is_dir());
            found.extend(files.into_iter().filter(|path| is_image(path)));
            next.extend(folders);
        }
        level = next;
    }
    Ok(found)
}

/// The cases of a model with these channels.
pub(super) fn draft(files: &BTreeSet<PathBuf>, channels: &[String]) -> Result<Draft> {
    let names = Names::of(files, channels);
    let mut folders = BTreeMap::<&Path, Vec<&PathBuf>>::new();
    files.iter().for_each(|path| folders.entry(path.parent().unwrap_or(path)).or_default().push(path));
    let mut found = vec![];
    for (folder, files) in folders {
        found.extend(in_folder(folder, &files, &names, channels)?);
    }
    let depth_is_channels = depth_is_channels(&found, channels);
    let findings = plain_masks(&found).into_iter().chain(depth_is_channels.then(third_axis)).collect();
    let reading = Reading { depth_is_channels, ..Reading::default() };
    let ids = ids(&found)?;
    let mut keys: Vec<String> =
        found.iter().flat_map(|case| &case.raters).map(|(key, _)| key.clone()).collect();
    keys.sort_by(|a, b| natural_order(a, b));
    keys.dedup();
    let entry = |(case, id): (Found, String)| {
        let number = |key: &String| keys.iter().position(|other| other == key).unwrap_or_default();
        let raters = case.raters.into_iter().map(|(key, path)| Rater::new(number(&key), path)).collect();
        let files = Files { images: case.images.into_iter().map(Some).collect(), raters, mask: case.mask };
        Entry { group: id.clone(), id, split: None, source: Source::Files(files) }
    };
    let mut entries: Vec<Entry> = found.into_iter().zip(ids).map(entry).collect();
    entries.sort_by(|a, b| natural_order(&a.id, &b.id));
    Ok(Draft { channels: Some(channels.to_vec()), reading, findings, ..Draft::new(Layout::Images, entries) })
}

/// The cases among the files of one folder.
fn in_folder(
    folder: &Path,
    files: &[&PathBuf],
    names: &Names<'_>,
    channels: &[String],
) -> Result<Vec<Found>> {
    let Sorted { split, whole } = Sorted::of(files, names)?;
    let cases: BTreeSet<String> = split.keys().chain(whole.keys()).cloned().collect();
    let owner = |stem: &str| {
        let (case, rest) =
            beside(stem, &cases, |case, rest| split.contains_key(case) || role(rest) != Role::Channel)?;
        Some((case.to_owned(), rest.to_owned()))
    };
    let is_image = |stem: &&String| role(stem) == Role::Channel && owner(stem).is_none();
    let images: Vec<&String> = split.keys().chain(whole.keys().filter(is_image)).collect();
    // In the folder of a single case, `seg` need not be named after it; but `tumour_1` is none of `control_1`.
    let is_numbered = |case: &str| whole.contains_key(case) && case.ends_with(|c: char| c.is_ascii_digit());
    let owner = |stem: &String| match images[..] {
        [case] if case != stem && (!is_numbered(case) || *case == name(folder)) => {
            owner(stem).or_else(|| Some((case.clone(), stem.clone())))
        }
        _ => owner(stem),
    };
    let mut found = BTreeMap::<String, Found>::new();
    for (stem, path) in &whole {
        let Some((case, rest)) = owner(stem) else {
            found.entry(stem.clone()).or_default().images.push(path.clone());
            continue;
        };
        let case = found.entry(case).or_default();
        match role(&rest) {
            Role::Mask => drop(case.mask.get_or_insert_with(|| path.clone())),
            Role::Labels => case.raters.push((rest, path.clone())),
            // A channel that the model does not take.
            Role::Channel => {}
        }
    }
    for (case, files) in &split {
        found.entry(case.clone()).or_default().images = all_channels(&place(folder, case), files, channels)?;
    }
    // What stands beside a label map is of no case.
    found.retain(|_, case| !case.images.is_empty());
    Ok(found.into_iter().map(|(case, found)| Found { place: place(folder, &case), ..found }).collect())
}

/// The files of a folder by their names.
#[derive(Default)]
struct Sorted {
    /// Files of one channel each, by case and channel.
    split: BTreeMap<String, BTreeMap<usize, PathBuf>>,
    /// All others.
    whole: BTreeMap<String, PathBuf>,
}

impl Sorted {
    fn of(files: &[&PathBuf], names: &Names<'_>) -> Result<Self> {
        let mut sorted = Self::default();
        for &path in files {
            let stem = stem(path);
            let other = match names.channel(&stem) {
                Some((case, channel)) => {
                    sorted.split.entry(case.to_owned()).or_default().insert(channel, path.clone())
                }
                None => sorted.whole.insert(stem, path.clone()),
            };
            // The two files of a NIfTI pair are one image.
            let is_pair = |path: &Path| matches!(Format::of(path), Ok(Format::NiftiPair));
            if let Some(other) = other.filter(|other| !(is_pair(other) && is_pair(path))) {
                return Err(DataError::Dataset {
                    path: path.clone(),
                    reason: format!("{} has the same name but for its ending", name(&other)),
                    advice: "keep one of the two",
                });
            }
        }
        Ok(sorted)
    }
}

/// The files of a case in the order of the channels, if all are there.
fn all_channels(place: &Path, files: &BTreeMap<usize, PathBuf>, channels: &[String]) -> Result<Vec<PathBuf>> {
    if files.keys().copied().eq(0..channels.len()) {
        return Ok(files.values().cloned().collect());
    }
    let present: Vec<String> = files.values().map(|path| name(path)).collect();
    let reason = format!(
        "the number of channels is {} ({}), but the model takes {} ({})",
        files.len(),
        present.join(", "),
        channels.len(),
        channels.join(", ")
    );
    let advice = "give the files of all these channels, numbered from 0000 or named after them";
    Err(DataError::Dataset { path: place.to_owned(), reason, advice })
}

/// Where a case lies: files that are named after their folder, or after channels alone, are those of the folder.
fn place(folder: &Path, case: &str) -> PathBuf {
    // `.` has no name of its own.
    let folder = match folder.file_name() {
        Some(_) => folder.to_owned(),
        None => Path::new(".").join(folder).canonicalize().unwrap_or_default(),
    };
    if case.is_empty() || case == name(&folder) { folder } else { folder.join(case) }
}

/// The shortest names that tell the cases apart: of the files, of their folders, or both.
fn ids(found: &[Found]) -> Result<Vec<String>> {
    let last = |place: &Path, skipped: usize, taken: usize| {
        let parts = place.iter().rev().skip(skipped).take(taken);
        let parts: Vec<String> = parts.map(|part| part.to_string_lossy().into_owned()).collect();
        parts.into_iter().rev().collect::<Vec<_>>().join("/")
    };
    let mut twice = None;
    // A case that is a folder is not named after the folder above alone.
    let folders = found.iter().any(|case| case.place.is_dir());
    let namings =
        [(0, 1), (1, 1), (0, 2), (0, 3)].into_iter().filter(|naming| !(folders && *naming == (1, 1)));
    for (skipped, taken) in namings {
        let ids: Vec<String> = found.iter().map(|case| last(&case.place, skipped, taken)).collect();
        let mut taken = BTreeSet::new();
        twice = ids.iter().find(|id| !taken.insert(*id)).cloned();
        if twice.is_none() {
            return Ok(ids);
        }
    }
    Err(same_id(twice.unwrap_or_default()))
}

/// Two cases of one id.
pub(super) fn same_id(id: String) -> DataError {
    let reason = "two cases have this id, but ids must differ".to_owned();
    DataError::Case { id, reason, advice: "rename one of them, or give it apart" }
}

/// Whether the third axis of images holds the channels, as in QUBIQ: it has their number, and files have one channel.
/// Channels with names come from datasets that store them apart: there it is the depth.
fn depth_is_channels(found: &[Found], channels: &[String]) -> bool {
    let shape = |case: &Found| read(&case.images[0], &Limits::default()).ok().map(|image| image.shape);
    channels.len() > 1
        && channels == unnamed_channels(channels.len())
        && found.iter().all(|case| case.images.len() == 1)
        && found.iter().find_map(shape).is_some_and(|[c, d, ..]| (c, d) == (1, channels.len()))
}

fn third_axis() -> Finding {
    Finding::new(Severity::Note, Kind::Layout, "the third axis of the images is taken for their channels", "")
}

/// Tells of files that are labels in other datasets.
fn plain_masks(found: &[Found]) -> Option<Finding> {
    let mask = found
        .iter()
        .filter_map(|case| case.mask.as_ref())
        .find(|path| Role::of(&stem(path)) != Role::Mask)?;
    let reason = "files named `mask` are taken for regions of interest, not for labels";
    Some(Finding::new(Severity::Note, Kind::Layout, reason, "").in_file(mask))
}
