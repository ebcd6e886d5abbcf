//! A folder per rater beside a folder of images: `images/case1.jpg`, `alice/case1.png`, `bob/Seg_case1.tif`. Folders of
//! raters may lie below `labels/`, and all of them below the folders of parts, or parts or patients below all of them.
//!
//! Several masks of a rater for an image (`alice/case1_cup.png`, `alice/cup/case1.png` or `cup/rater1/case1.png`) are
//! structures, each a class.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_io::dicom::is_series_folder;

use crate::dataset::{
    CaseEntry, CaseFiles, Finding, FindingKind, LabelHistogram, Layout, MOST_CLASSES, RaterFiles, RaterMaps,
    Split, is_lossy, read_labels,
};
use crate::error::{DataError, Result};
use crate::layouts::files::{self, images, name, natural_order, stem, subfolders};
use crate::layouts::folder_pair::{IMAGES, LABELS, REGIONS, channels_by_case, same_rater};
use crate::layouts::names::{CaseNames, NameMatch, shared_ends, without_ends, words};
use crate::layouts::{Draft, parts, unique};
use crate::text::listed;

/// Words of folders of raters; with an s, of the folder above them.
const RATERS: [&str; 6] = ["rater", "expert", "annotator", "reader", "observer", "grader"];
/// Words of folders and files that are made of those of raters.
const NO_RATERS: [&str; 14] = [
    "consensus",
    "staple",
    "majority",
    "fused",
    "mean",
    "average",
    "prediction",
    "predictions",
    "pred",
    "preds",
    "results",
    "overlay",
    "overlays",
    "preview",
];
/// More folders than this are cases, not raters.
const MOST_FOLDERS: usize = 40;
/// Files of a folder that are looked into to see whether it holds label maps.
const LOOKED_INTO: usize = 3;
/// Cases whose masks are looked at to see which structure is the larger one.
const MEASURED: usize = 10;

/// A folder with the name that it, or the folder above, has.
type Named = (String, PathBuf);

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let mut found = Found::default();
    for (split, folder) in parts(root)? {
        let Some((pictures, others)) = pictures_and_others(&folder)? else { continue };
        let inner = |folder: &Path| -> Result<Vec<(Split, PathBuf)>> {
            let parts = subfolders(folder)?.into_iter();
            Ok(parts.filter_map(|folder| Some((Split::from_folder(&name(&folder))?, folder))).collect())
        };
        // `images/train` beside `alice/train`.
        for (split, pictures) in if pictures == folder { vec![] } else { inner(&pictures)? } {
            let below = |(rater, folder): &Named| -> Result<Vec<Named>> {
                let own = inner(folder)?.into_iter().filter(|(part, _)| *part == split);
                Ok(own.map(|(_, folder)| (rater.clone(), folder)).collect())
            };
            let others = others.iter().map(below).collect::<Result<Vec<_>>>()?.concat();
            found.add_part(Some(split), None, &pictures, &others)?;
        }
        // `images/patient1` beside `alice/patient1`.
        for pictures in if pictures == folder { vec![] } else { patients(&pictures)? } {
            let patient = name(&pictures);
            let below = |(rater, folder): &Named| -> Result<Vec<Named>> {
                let own = subfolders(folder)?.into_iter();
                let own = own.filter(|inner| name(inner).eq_ignore_ascii_case(&patient));
                Ok(own.map(|folder| (rater.clone(), folder)).collect())
            };
            let others = others.iter().map(below).collect::<Result<Vec<_>>>()?.concat();
            found.add_part(split, Some(&patient), &pictures, &others)?;
        }
        found.add_part(split, None, &pictures, &others)?;
    }
    match (found.marks.is_empty(), found.unmatched.take()) {
        (true, Some(error)) => Err(error),
        (true, None) => Ok(None),
        (false, _) => Ok(Some(found.draft())),
    }
}

/// The folders of patients in a folder of images that holds no image itself.
fn patients(pictures: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = subfolders(pictures)?;
    folders.retain(|folder| Split::from_folder(&name(folder)).is_none() && !is_series_folder(folder));
    Ok(if images(pictures)?.is_empty() { folders } else { vec![] })
}

/// The folder of images, by its name or by what its files hold, and the other folders beside it.
fn pictures_and_others(folder: &Path) -> Result<Option<(PathBuf, Vec<Named>)>> {
    let mut others = subfolders(folder)?;
    // A folder of DICOM slices is an image.
    others.retain(|other| Split::from_folder(&name(other)).is_none() && !is_series_folder(other));
    if others.is_empty() || others.len() > MOST_FOLDERS {
        return Ok(None);
    }
    let is_named = |other: &PathBuf| IMAGES.iter().any(|images| name(other).eq_ignore_ascii_case(images));
    let has_word = |other: &PathBuf| words(&name(other)).iter().any(|word| IMAGES.contains(&word.as_str()));
    // Several folders `image_1`, `image_2`, … are cases.
    let alone =
        || others.iter().position(has_word).filter(|_| others.iter().filter(|o| has_word(o)).count() == 1);
    let mut place = others.iter().position(is_named).or_else(alone);
    if place.is_none() && images(folder)?.is_empty() {
        let mut unlike = vec![];
        for (place, other) in others.iter().enumerate() {
            let files = images(other)?;
            if !files.is_empty() && !are_label_maps(files.iter()) {
                unlike.push(place);
            }
        }
        let [only] = unlike[..] else { return Ok(None) };
        place = Some(only);
    }
    let pictures = place.map_or(folder.to_owned(), |place| others.remove(place));
    Ok(Some((pictures, others.into_iter().map(|path| (name(&path), path)).collect())))
}

/// Whether the first files that can be read are all label maps by their values, and no pictures.
fn are_label_maps<'a>(files: impl Iterator<Item = &'a PathBuf>) -> bool {
    let is_label_map = |path: &PathBuf| match read_labels(path) {
        Ok(labels) => {
            let mut values = LabelHistogram::default();
            values.add(&labels.data, is_lossy(path));
            Some(values.distinct() <= MOST_CLASSES || values.is_mask())
        }
        // A mask of several colors cannot be used, but must be told.
        Err(finding) if finding.kind == FindingKind::LabelRange => Some(true),
        Err(_) => None,
    };
    let known: Vec<bool> = files.take(LOOKED_INTO).filter_map(is_label_map).collect();
    !known.is_empty() && known.into_iter().all(|is_label_map| is_label_map)
}

/// The label files of a rater.
struct RaterFolder {
    name: String,
    /// Each with the folder of its structure, if there are such folders.
    files: Vec<(Option<String>, PathBuf)>,
    /// The name says that it holds labels, and not whose; no folders are inside.
    is_labels: bool,
}

/// Whether a name says that something is made of what raters marked.
fn is_made(name: &str) -> bool {
    words(name).iter().any(|word| NO_RATERS.contains(&word.as_str()))
}

/// The files of a folder that may be label maps; folders of DICOM slices are images, and previews beside label maps are none.
fn label_files(folder: &Path) -> Result<impl Iterator<Item = PathBuf>> {
    let files = images(folder)?.into_iter().filter(|path| path.is_file());
    let (made, own) = files.partition::<Vec<_>, _>(|path| is_made(&stem(path)));
    Ok(if own.is_empty() { made } else { own }.into_iter())
}

/// Whether a name has a word for somebody who draws label maps.
fn names_rater(name: &str) -> bool {
    words(name).iter().any(|word| RATERS.contains(&word.as_str()))
}

/// The folders of raters in each of several folders of structures, as `cup/rater1` and `disc/rater1`.
fn below_structures(others: &[Named]) -> Result<Option<Vec<RaterFolder>>> {
    let mut raters = BTreeMap::<String, RaterFolder>::new();
    for (structure, folder) in others {
        let inner = subfolders(folder)?;
        let is_one = !inner.is_empty() && inner.iter().all(|inner| names_rater(&name(inner)));
        if !is_one || names_rater(structure) || !images(folder)?.is_empty() {
            return Ok(None);
        }
        for inner in inner {
            let empty = || RaterFolder { name: name(&inner), files: vec![], is_labels: false };
            let rater = raters.entry(name(&inner).to_lowercase()).or_insert_with(empty);
            rater.files.extend(label_files(&inner)?.map(|path| (Some(structure.clone()), path)));
        }
    }
    Ok((others.len() > 1).then(|| raters.into_values().filter(|folder| !folder.files.is_empty()).collect()))
}

/// The folders of raters among some folders, or below those that are named after labels or raters, or alone.
fn rater_folders(others: &[Named]) -> Result<Vec<RaterFolder>> {
    if let Some(found) = below_structures(others)? {
        return Ok(found);
    }
    let mut found = vec![];
    for (rater, folder) in others {
        let is_labels = LABELS.iter().any(|labels| rater.eq_ignore_ascii_case(labels));
        let own = words(rater);
        let has = |word: &dyn Fn(&str) -> Option<&str>| {
            own.iter().filter_map(|w| word(w)).any(|w| RATERS.contains(&w))
        };
        let is_above = is_labels
            || has(&|word| word.strip_suffix('s'))
            || (others.len() == 1 && !has(&|word| Some(word)));
        if is_above && images(folder)?.is_empty() {
            for inner in subfolders(folder)? {
                found.push(RaterFolder::new(name(&inner), &inner, false)?);
            }
        } else {
            found.push(RaterFolder::new(rater.clone(), folder, is_labels)?);
        }
    }
    found.retain(|folder| !folder.files.is_empty());
    Ok(found)
}

impl RaterFolder {
    /// The files in a folder, or else in the folders of structures below.
    fn new(name: String, folder: &Path, is_labels: bool) -> Result<Self> {
        let mut files: Vec<_> = label_files(folder)?.map(|path| (None, path)).collect();
        if files.is_empty() {
            for inner in subfolders(folder)? {
                files.extend(label_files(&inner)?.map(|path| (Some(files::name(&inner)), path)));
            }
        }
        Ok(Self { name, files, is_labels })
    }

    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().map(|(_, path)| path)
    }
}

/// Takes out the folders that are no raters', and returns the one of regions of interest.
///
/// `labels/` or `gt/` beside several folders of raters is their consensus, and `masks/` holds regions; beside another
/// folder alone it is one of a pair, unless the other is named after it, as `gt2/`.
fn choose_raters(folders: &mut Vec<RaterFolder>) -> Option<RaterFolder> {
    let place = folders.iter().position(|folder| folder.is_labels)?;
    let labels = words(&folders[place].name);
    let others = folders.iter().filter(|folder| !folder.is_labels);
    match others.map(|folder| words(&folder.name).starts_with(&labels)).collect::<Vec<_>>()[..] {
        [] | [false] => folders.clear(),
        [true] => {}
        _ => {
            let (mut beside, raters) =
                std::mem::take(folders).into_iter().partition::<Vec<_>, _>(|f| f.is_labels);
            *folders = raters;
            beside.retain(|folder| REGIONS.iter().any(|region| folder.name.eq_ignore_ascii_case(region)));
            return beside.pop();
        }
    }
    None
}

/// A case before its raters have numbers.
struct FoundCase {
    id: String,
    patient: Option<String>,
    split: Option<Split>,
    images: Vec<Option<PathBuf>>,
    mask: Option<PathBuf>,
}

/// A label file of a case.
struct Mark {
    case: usize,
    rater: String,
    /// The words of its name or folder that say neither the case nor the rater.
    rest: Vec<String>,
    path: PathBuf,
}

#[derive(Default)]
struct Found {
    cases: Vec<FoundCase>,
    marks: Vec<Mark>,
    taken: BTreeSet<String>,
    /// Names of raters as they are first written, by those in lower case.
    raters: BTreeMap<String, String>,
    findings: Vec<Finding>,
    /// Why folders with label files were not used, if none was.
    unmatched: Option<DataError>,
}

impl Found {
    fn add_part(
        &mut self,
        split: Option<Split>,
        patient: Option<&str>,
        pictures: &Path,
        others: &[Named],
    ) -> Result<()> {
        let (mut folders, pictures) = (rater_folders(others)?, images(pictures)?);
        if pictures.is_empty() || folders.is_empty() {
            return Ok(());
        }
        let label_files: Vec<PathBuf> = folders.iter().flat_map(RaterFolder::paths).cloned().collect();
        let (cases, channels) = channels_by_case(&pictures, &label_files);
        let names = CaseNames::of(cases.keys());
        if folders.iter().any(|folder| !is_made(&folder.name)) {
            folders.retain(|folder| !is_made(&folder.name));
        }
        folders.retain(|folder| are_label_maps(folder.paths()));
        let has_labels = !folders.is_empty();
        folders.retain(|folder| {
            let rater = words(&folder.name);
            folder.paths().any(|path| names.find(&stem(path), &rater) != NameMatch::None)
        });
        if folders.is_empty() && has_labels {
            self.unmatched = Some(no_match(&pictures[0], &label_files[0]));
        }
        let regions = choose_raters(&mut folders);
        if folders.is_empty() {
            return Ok(());
        }
        let first = self.cases.len();
        let mut ids: Vec<&String> = cases.keys().collect();
        ids.sort_by(|a, b| natural_order(a, b));
        let place: BTreeMap<&str, usize> =
            ids.iter().enumerate().map(|(i, id)| (id.as_str(), first + i)).collect();
        for id in &ids {
            let images = (0..channels).map(|channel| cases[*id].get(&channel).cloned()).collect();
            let id = patient.map_or_else(|| (*id).clone(), |patient| format!("{patient}/{id}"));
            let id = unique(split, id, &mut self.taken);
            let patient = patient.map(str::to_owned);
            self.cases.push(FoundCase { id, patient, split, images, mask: None });
        }
        for path in regions.iter().flat_map(RaterFolder::paths) {
            if let NameMatch::Case(id, _) = names.find(&stem(path), &[]) {
                self.cases[place[id]].mask = Some(path.clone());
            }
        }
        for folder in folders {
            let (rater, of_name) = (folder.name.to_lowercase(), words(&folder.name));
            for (structure, path) in folder.files {
                match names.find(&stem(&path), &of_name) {
                    NameMatch::Case(id, rest) => {
                        let rest = structure.map_or(rest, |structure| words(&structure));
                        self.raters.entry(rater.clone()).or_insert_with(|| folder.name.clone());
                        self.marks.push(Mark { case: place[id], rater: rater.clone(), rest, path });
                    }
                    NameMatch::Several(ids) => self.findings.push(several(&path, ids)),
                    NameMatch::None => {}
                }
            }
        }
        Ok(())
    }

    fn draft(mut self) -> Draft {
        if !self.has_structures() {
            // One file each: what else the names say does not matter, and the usual names of a rater come first. Others are
            // left out.
            let mut counts = BTreeMap::<(String, Vec<String>), usize>::new();
            for mark in &self.marks {
                *counts.entry((mark.rater.clone(), mark.rest.clone())).or_default() += 1;
            }
            self.marks.sort_by_key(|mark| usize::MAX - counts[&(mark.rater.clone(), mark.rest.clone())]);
            let mut pairs = BTreeSet::new();
            self.marks.retain(|mark| pairs.insert((mark.case, mark.rater.clone())));
            self.findings.extend(self.other_endings());
            self.marks.iter_mut().for_each(|mark| mark.rest.clear());
        }
        self.shorten_rests();
        let mut raters: Vec<&String> = self.raters.keys().collect();
        raters.sort_by(|a, b| natural_order(a, b));
        let mut pairs = Pairs::new();
        for Mark { case, rater, rest, path } in &self.marks {
            let files = pairs.entry((*case, rater)).or_default();
            match files.get(&rest.join("_")) {
                Some(first) => self.findings.push(same_rater(first, path).of_case(&self.cases[*case].id)),
                None => drop(files.insert(rest.join("_"), path)),
            }
        }
        let structures = structures(&pairs);
        if structures.len() > 1 {
            self.findings.extend(self.missing_structures(&pairs, &structures));
        }
        let maps = |files: &BTreeMap<String, &PathBuf>| match &structures[..] {
            [only] => files.get(only).map(|path| RaterMaps::Labels(path.to_path_buf())),
            several => {
                let mask = |(k, name)| Some((k, files.get(name)?.to_path_buf()));
                let masks: Vec<_> = (1..=u8::MAX).zip(several).filter_map(mask).collect();
                (!masks.is_empty()).then_some(RaterMaps::Masks(masks))
            }
        };
        let of_case = |(place, case): (usize, &FoundCase)| {
            let rater = |(number, rater): (usize, &&String)| {
                Some(RaterFiles { number, maps: maps(pairs.get(&(place, *rater))?)? })
            };
            let raters = raters.iter().enumerate().filter_map(rater).collect();
            let files = CaseFiles { images: case.images.clone(), raters, mask: case.mask.clone() };
            let entry = CaseEntry::of_files(case.id.clone(), case.split, files);
            let group = case.patient.clone().unwrap_or_else(|| entry.group.clone());
            CaseEntry { group, ..entry }
        };
        let entries = self.cases.iter().enumerate().map(of_case).collect();
        let rater_names = raters.iter().map(|rater| self.raters[*rater].clone()).collect();
        let classes = std::iter::once("background".to_owned()).chain(structures.clone()).collect();
        let classes = (structures.len() > 1).then_some(classes);
        Draft { classes, rater_names, findings: self.findings, ..Draft::new(Layout::RaterFolders, entries) }
    }

    /// Whether raters have several files of a case, in at least half of the cases.
    fn has_structures(&self) -> bool {
        let mut files = BTreeMap::<(usize, &String), usize>::new();
        self.marks.iter().for_each(|mark| *files.entry((mark.case, &mark.rater)).or_default() += 1);
        2 * files.values().filter(|count| **count > 1).count() >= files.len().max(1)
    }

    /// Takes off what all files of a rater have besides the case: `case1_cup_r1` and `case1_disc_r1` are `cup` and `disc`.
    fn shorten_rests(&mut self) {
        for rater in self.raters.keys() {
            let own = self.marks.iter().filter(|mark| mark.rater == *rater);
            let rests: BTreeSet<&[String]> = own.map(|mark| &mark.rest[..]).collect();
            let ends = shared_ends(&rests.into_iter().collect::<Vec<_>>());
            for mark in self.marks.iter_mut().filter(|mark| mark.rater == *rater) {
                mark.rest = without_ends(&mark.rest, ends).to_vec();
            }
        }
    }

    /// A note about files whose names have something behind the case that those of others do not have.
    fn other_endings(&self) -> Option<Finding> {
        let (mut counts, mut of_rater) = (BTreeMap::<_, usize>::new(), BTreeMap::<_, usize>::new());
        for mark in &self.marks {
            *counts.entry((&mark.rater, &mark.rest)).or_default() += 1;
            *of_rater.entry(&mark.rater).or_default() += 1;
        }
        let is_rare = |mark: &&Mark| {
            !mark.rest.is_empty() && 2 * counts[&(&mark.rater, &mark.rest)] < of_rater[&mark.rater]
        };
        let rare: Vec<String> = self
            .marks
            .iter()
            .filter(is_rare)
            .map(|mark| {
                format!("{}/{} for {}", self.raters[&mark.rater], name(&mark.path), self.cases[mark.case].id)
            })
            .collect();
        let reason =
            format!("by the beginnings or ends of their names, files are taken: {}", listed(&rare, 3));
        (!rare.is_empty()).then(|| Finding::note(FindingKind::Layout, reason))
    }

    /// What some raters did not mark in a case, as files are missing.
    fn missing_structures(&self, pairs: &Pairs<'_>, structures: &[String]) -> Vec<Finding> {
        let mut missing = BTreeMap::<(&str, &str), Vec<String>>::new();
        for ((case, rater), files) in pairs {
            for structure in structures.iter().filter(|structure| !files.contains_key(*structure)) {
                missing.entry((rater, structure)).or_default().push(self.cases[*case].id.clone());
            }
        }
        let finding = |((rater, structure), cases): ((&str, &str), Vec<String>)| {
            let reason = format!(
                "{} has files of other structures, but not of {structure}, which is taken as not marked: {}",
                self.raters[rater],
                listed(&cases, 3)
            );
            Finding::warning(
                FindingKind::Layout,
                reason,
                "add the files, with empty masks if nothing is to be marked",
            )
        };
        missing.into_iter().map(finding).collect()
    }
}

/// The files of each case and rater, by structure.
type Pairs<'a> = BTreeMap<(usize, &'a String), BTreeMap<String, &'a PathBuf>>;

/// What at least half of the raters' maps have; others are left out.
fn structures(pairs: &Pairs<'_>) -> Vec<String> {
    let mut counts = BTreeMap::<&String, usize>::new();
    pairs.values().flat_map(BTreeMap::keys).for_each(|name| *counts.entry(name).or_default() += 1);
    let most = counts.values().copied().max().unwrap_or(0).min(pairs.len().div_ceil(2));
    let mut found: Vec<String> =
        counts.into_iter().filter(|(_, count)| *count >= most).map(|(name, _)| name.clone()).collect();
    found.sort_by(|a, b| natural_order(a, b));
    found
}

/// Puts the structures, class k of which has the k-th name, into the order of a config, or else of their sizes: where
/// masks overlap the later one counts, so that the inner one must come last.
pub(super) fn order_structures(draft: &mut Draft, classes: &mut [String], known: Option<&[String]>) {
    let by_name = |class: &String| known?.iter().position(|name| name.eq_ignore_ascii_case(class));
    let places: Option<Vec<usize>> = classes.iter().map(by_name).collect();
    let is_known = places.is_some();
    let keys = places.unwrap_or_else(|| {
        let volumes = volumes(&draft.entries, classes.len());
        volumes.iter().enumerate().map(|(k, volume)| if k == 0 { 0 } else { usize::MAX - volume }).collect()
    });
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|&class| keys[class]);
    let number = |class: u8| order.iter().position(|&old| old == usize::from(class)).unwrap_or(0) as u8;
    for rater in draft.entries.iter_mut().flat_map(|entry| &mut entry.files.raters) {
        if let RaterMaps::Masks(masks) = &mut rater.maps {
            masks.iter_mut().for_each(|(class, _)| *class = number(*class));
            masks.sort();
        }
    }
    let names: Vec<String> = order.iter().map(|&class| classes[class].clone()).collect();
    classes.clone_from_slice(&names);
    if !is_known {
        let reason = format!(
            "the masks of a rater for one image are structures, each a class: {}, the largest first; where they overlap, \
             the later one counts (the order of data.classes says which)",
            names[1..].join(", ")
        );
        draft.findings.push(Finding::note(FindingKind::Layout, reason));
    }
}

/// The voxels of each structure in some cases.
fn volumes(entries: &[CaseEntry], classes: usize) -> Vec<usize> {
    let mut volumes = vec![0; classes];
    let measured = entries.iter().step_by(entries.len().div_ceil(MEASURED).max(1));
    for rater in measured.flat_map(|entry| &entry.files.raters) {
        let RaterMaps::Masks(masks) = &rater.maps else { continue };
        for (class, path) in masks {
            let labels = read_labels(path).map_or(vec![], |labels| labels.data);
            let half = labels.iter().copied().max().unwrap_or(0) / 2;
            volumes[usize::from(*class)] += labels.iter().filter(|label| **label > half).count();
        }
    }
    volumes
}

/// Files whose names have nothing to do with those of images.
fn no_match(picture: &Path, labels: &Path) -> DataError {
    let reason = format!(
        "the names of label files, such as {}, are those of no images, such as {}",
        name(labels),
        name(picture)
    );
    let advice =
        "name label files after their images, or list both in a CSV with the columns id, image, seg_0, seg_1";
    DataError::dataset(labels.parent().unwrap_or(labels), reason, advice)
}

fn several(path: &Path, ids: &[String]) -> Finding {
    let reason = format!("the name fits several images, {}; the file is not used", listed(ids, 3));
    let advice = "give the file the name of its image";
    Finding::warning(FindingKind::Layout, reason, advice).in_file(path)
}
