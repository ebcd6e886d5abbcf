//! A folder per rater next to a folder of images: `images/case1.jpg`, `alice/case1.png`, `bob/Seg_case1.tif`. Folders of
//! raters may lie below `labels/`, and all of them below the folders of parts, or parts or patients below all of them.
//! Raters may come from several sources ([`sources`]).
//!
//! Several masks of a rater for an image (`alice/case1_cup.png`, `alice/cup/case1.png` or `cup/rater1/case1.png`) are
//! structures, each a class.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_io::{Error, Result};

use crate::dataset::{CaseEntry, Finding, FindingKind, Layout, RaterMaps, Split};
use crate::layouts::Draft;
use crate::layouts::folder_pair::same_rater;
use crate::layouts::label_folders;
use crate::layouts::rater_folder::{RaterFolder, label_files};
use crate::layouts::sources;
use crate::resolve::files::{name, natural_order, stem};
use crate::resolve::{
    Align, CaseNames, FoundCase, Hint, Look, NameMatch, RaterKey, Raters, Tree, channels_by_case, in_order,
    shared_ends, unique, without_ends, words,
};
use crate::text::listed;

/// More folders than this are cases, not raters.
const MOST_FOLDERS: usize = 40;
/// Files of a folder that are looked into to see whether it holds label maps.
const LOOKED_INTO: usize = 3;
/// Cases whose masks are looked at to see which structure is the larger one.
const MEASURED: usize = 10;

/// A folder with the name that it, or the folder above, has.
type Named = (String, PathBuf);

pub(super) fn recognize(tree: &Tree<'_>, root: &Path) -> Result<Option<Draft>> {
    let mut found = Found::default();
    for (split, folder) in tree.parts(root)? {
        let Some((pictures, others)) = pictures_and_others(tree, &folder)? else { continue };
        let inner = if pictures == folder { vec![] } else { tree.parts_and_patients(&pictures)? };
        for (part, inner) in inner {
            // `images/train` next to `alice/train`, or `images/patient1` next to `alice/patient1`.
            let patient = name(&inner);
            let mut own = vec![];
            for (rater, folder) in &others {
                own.extend(tree.like(folder, part, &inner)?.map(|folder| (rater.clone(), folder)));
            }
            let patient = part.is_none().then_some(patient.as_str());
            found.add_part(tree, part.or(split), patient, &inner, &own)?;
        }
        found.add_part(tree, split, None, &pictures, &others)?;
    }
    match (found.marks.is_empty(), found.unmatched.take()) {
        (true, Some(error)) => Err(error),
        (true, None) => Ok(None),
        (false, _) => Ok(sources::largest_first(found.drafts())),
    }
}

/// Returns the folder of images, by its name or by what its files hold, and the other folders next to it.
fn pictures_and_others(tree: &Tree<'_>, folder: &Path) -> Result<Option<(PathBuf, Vec<Named>)>> {
    let mut others = tree.folders(folder)?;
    // A folder of DICOM slices is an image.
    others.retain(|other| Split::from_folder(&name(other)).is_none() && !tree.is_series(other));
    if others.is_empty() || others.len() > MOST_FOLDERS {
        return Ok(None);
    }
    let has_word = |other: &&PathBuf| Hint::Images.fits_one(&words(&name(other)));
    // Several folders `image_1`, `image_2`, … are cases.
    let is_alone = others.iter().filter(has_word).count() == 1;
    let mut place = others.iter().position(|other| Hint::Images.fits(&name(other)));
    place = place.or_else(|| others.iter().position(|other| is_alone && has_word(&other)));
    if place.is_none() && tree.images(folder)?.is_empty() {
        let mut unlike = vec![];
        for (place, other) in others.iter().enumerate() {
            let files = tree.images(other)?;
            if !files.is_empty() && !are_label_maps(tree, files.iter()) {
                unlike.push(place);
            }
        }
        let [only] = unlike[..] else { return Ok(None) };
        place = Some(only);
    }
    let pictures = place.map_or(folder.to_owned(), |place| others.remove(place));
    Ok(Some((pictures, others.into_iter().map(|path| (name(&path), path)).collect())))
}

/// Returns `true` if the first files that can be read are all label maps by their values, and no pictures.
pub(super) fn are_label_maps<'a>(tree: &Tree<'_>, files: impl Iterator<Item = &'a PathBuf>) -> bool {
    let mut known = files.take(LOOKED_INTO).filter_map(|path| tree.look(path).is_label_map()).peekable();
    known.peek().is_some() && known.all(|is_label_map| is_label_map)
}

/// Returns the folders of raters in each of several folders of structures, as `cup/rater1` and `disc/rater1`.
fn below_structures(tree: &Tree<'_>, others: &[Named]) -> Result<Option<Vec<RaterFolder>>> {
    let is_person = |name: &str| Hint::Person.fits_one(&words(name));
    let mut raters = BTreeMap::<String, RaterFolder>::new();
    for (structure, folder) in others {
        let inner = tree.folders(folder)?;
        let has_persons = !inner.is_empty() && inner.iter().all(|inner| is_person(&name(inner)));
        if !has_persons
            || is_person(structure)
            || sources::is_group(structure)
            || !tree.images(folder)?.is_empty()
        {
            return Ok(None);
        }
        for inner in inner {
            let empty = || RaterFolder::empty(name(&inner));
            let rater = raters.entry(name(&inner).to_lowercase()).or_insert_with(empty);
            rater
                .files
                .extend(label_files(tree, &inner)?.into_iter().map(|path| (Some(structure.clone()), path)));
        }
    }
    Ok((others.len() > 1).then(|| raters.into_values().filter(|folder| !folder.files.is_empty()).collect()))
}

/// Returns the folders of raters among some folders, or below a folder with a name of labels or raters, or alone.
fn rater_folders(tree: &Tree<'_>, others: &[Named]) -> Result<Vec<RaterFolder>> {
    if let Some(found) = below_structures(tree, others)? {
        return Ok(found);
    }
    let mut found = vec![];
    for (rater, folder) in others {
        let is_labels = Hint::Labels.fits(rater);
        let words = words(rater);
        let is_plural = Hint::Person.fits_plural(&words);
        let is_above = is_labels || is_plural || (others.len() == 1 && !Hint::Person.fits_one(&words));
        let own = RaterFolder::new(tree, rater.clone(), folder, is_labels)?;
        // Whether `Experts/` next to other folders holds raters or structures depends on those.
        let is_open = is_plural && others.len() > 1 && !own.files.is_empty();
        if is_above && !is_open && tree.images(folder)?.is_empty() {
            for inner in tree.folders(folder)? {
                let source = (others.len() > 1).then(|| rater.clone());
                found.push(RaterFolder { source, ..RaterFolder::new(tree, name(&inner), &inner, false)? });
            }
        } else {
            found.push(own);
        }
    }
    found.retain(|folder| !folder.files.is_empty());
    Ok(found)
}

/// Takes out the folders that are not of raters, and returns the folder of regions of interest.
///
/// `fov/` holds regions, and so does `masks/` next to `1st_manual/`. `labels/` or `gt/` next to several folders of raters
/// is their consensus, and `masks/` holds regions; next to one other folder it is one of a pair, unless the other has its
/// name with an addition, as `gt2/`.
fn choose_raters(folders: &mut Vec<RaterFolder>) -> Option<RaterFolder> {
    let is_manual = |folder: &RaterFolder| Hint::Manual.fits_one(&words(&folder.name));
    let has_manual = folders.iter().any(|folder| !folder.is_labels && is_manual(folder));
    let is_region = |folder: &RaterFolder| {
        Hint::Regions.fits(&folder.name) && (!folder.is_labels || has_manual && !is_manual(folder))
    };
    if let Some(place) = folders.iter().position(is_region).filter(|_| folders.len() > 1) {
        return Some(folders.remove(place));
    }
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
            beside.retain(|folder| Hint::Regions.fits(&folder.name));
            return beside.pop();
        }
    }
    None
}

/// A label file of a case.
struct Mark {
    case: usize,
    source: String,
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
    unmatched: Option<Error>,
}

impl Found {
    fn add_part(
        &mut self,
        tree: &Tree<'_>,
        split: Option<Split>,
        patient: Option<&str>,
        pictures: &Path,
        others: &[Named],
    ) -> Result<()> {
        let pictures = tree.images(pictures)?;
        let cases = CaseNames::of(pictures.iter().map(|path| stem(path)));
        for (_, folder) in others.iter().filter(|(name, _)| Hint::Labels.fits(name)) {
            if label_folders::by_case(tree, folder, &cases)?.is_some() {
                return Ok(());
            }
        }
        let mut folders = rater_folders(tree, others)?;
        if pictures.is_empty() || folders.is_empty() {
            return Ok(());
        }
        let label_files: Vec<PathBuf> = folders.iter().flat_map(RaterFolder::paths).cloned().collect();
        let channels = channels_by_case(&pictures, &label_files);
        let names = CaseNames::of(channels.0.keys());
        folders = sources::split(folders, &names);
        let is_made = |folder: &RaterFolder| {
            let mut names = [Some(&folder.name), folder.source.as_ref()].into_iter().flatten();
            names.any(|name| Hint::Made.fits_one(&words(name)))
        };
        if !folders.iter().all(is_made) {
            folders.retain(|folder| !is_made(folder));
        }
        folders.retain(|folder| are_label_maps(tree, folder.paths()));
        let has_labels = !folders.is_empty();
        folders.retain(|folder| {
            let rater = words(&folder.name);
            folder.paths().any(|path| names.find_of_rater(&stem(path), &rater) != NameMatch::None)
        });
        if folders.is_empty() && has_labels {
            self.unmatched = Some(no_match(&pictures[0], &label_files[0]));
        }
        let regions = choose_raters(&mut folders);
        if folders.is_empty() {
            return Ok(());
        }
        let mut place = BTreeMap::new();
        for (id, images) in in_order(&channels) {
            place.insert(id.as_str(), self.cases.len());
            let id = patient.map_or_else(|| id.clone(), |patient| format!("{patient}/{id}"));
            let (id, group) = (unique(split, None, id, &mut self.taken), patient.map(str::to_owned));
            self.cases.push(FoundCase { id, group, split, images, ..FoundCase::default() });
        }
        for path in regions.iter().flat_map(RaterFolder::paths) {
            if let NameMatch::Case(id, _) = names.find(&stem(path), Align::Free) {
                self.cases[place[id]].mask = Some(path.clone());
            }
        }
        for folder in folders {
            let (rater, of_name) = (folder.name.to_lowercase(), words(&folder.name));
            let source = sources::of_folder(&folder);
            for (structure, path) in folder.files {
                match names.find_of_rater(&stem(&path), &of_name) {
                    NameMatch::Case(id, rest) => {
                        let rest = structure.map_or(rest, |structure| words(&structure));
                        self.raters.entry(rater.clone()).or_insert_with(|| folder.name.clone());
                        let (source, rater) = (source.clone(), rater.clone());
                        self.marks.push(Mark { case: place[id], source, rater, rest, path });
                    }
                    NameMatch::Several(ids) => self.findings.push(several(&path, &ids)),
                    NameMatch::None => {}
                }
            }
        }
        Ok(())
    }

    /// Returns a draft for each source.
    fn drafts(mut self) -> BTreeMap<String, Draft> {
        let mut sources = BTreeMap::<String, Vec<Mark>>::new();
        for mark in std::mem::take(&mut self.marks) {
            sources.entry(mark.source.clone()).or_default().push(mark);
        }
        sources
            .into_iter()
            .map(|(source, marks)| {
                let (cases, raters, findings) =
                    (self.cases.clone(), self.raters.clone(), self.findings.clone());
                (source, Self { cases, raters, findings, marks, ..Self::default() }.draft())
            })
            .collect()
    }

    /// Exchanges raters and structures if the files name raters and the folders do not: `cup/case1_rater2.png`.
    fn take_raters_of_files(&mut self) {
        let is_person = |words: &[String]| Hint::Person.fits_one(words);
        let rests: BTreeSet<&Vec<String>> = self.marks.iter().map(|mark| &mark.rest).collect();
        let are_swapped = rests.len() > 1
            && rests.iter().all(|rest| is_person(rest))
            && !self.marks.iter().any(|mark| is_person(&words(&mark.rater)));
        if are_swapped {
            for mark in &mut self.marks {
                let rater = std::mem::replace(&mut mark.rest, words(&mark.rater)).concat();
                self.raters.insert(rater.clone(), rater.clone());
                mark.rater = rater;
            }
        }
    }

    fn draft(mut self) -> Draft {
        self.take_raters_of_files();
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
        let mut pairs = Pairs::new();
        for Mark { case, rater, rest, path, .. } in &self.marks {
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
        for ((case, rater), files) in pairs {
            let masks = (1..=u8::MAX).zip(&structures);
            let masks = masks.filter_map(|(class, name)| Some((class, files.get(name)?.to_path_buf())));
            let maps = match masks.collect::<Vec<_>>() {
                masks if masks.is_empty() => continue,
                mut masks if structures.len() == 1 => RaterMaps::Labels(masks.remove(0).1),
                masks => RaterMaps::Masks(masks),
            };
            self.cases[case].raters.push((RaterKey::Name(rater.clone()), maps));
        }
        let (entries, raters) = Raters::number(self.cases);
        let rater_names = raters.names().iter().map(|rater| self.raters[rater].clone()).collect();
        let classes = std::iter::once("background".to_owned()).chain(structures.clone()).collect();
        let classes = (structures.len() > 1).then_some(classes);
        Draft { classes, rater_names, findings: self.findings, ..Draft::new(Layout::RaterFolders, entries) }
    }

    /// Returns `true` if raters have several files of a case, in at least half of the cases.
    fn has_structures(&self) -> bool {
        let mut files = BTreeMap::<(usize, &String), usize>::new();
        self.marks.iter().for_each(|mark| *files.entry((mark.case, &mark.rater)).or_default() += 1);
        2 * files.values().filter(|count| **count > 1).count() >= files.len().max(1)
    }

    /// Takes off the words that all files of a rater share: `case1_cup_r1` and `case1_disc_r1` are `cup` and `disc`.
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

    /// Returns a note about files with rare words next to the case.
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

    /// Reports the structures for which some raters have no file of a case.
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

/// Returns the structures that at least half of the raters' maps have; others are left out.
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
    let by_name = |class: &String| {
        let place = known?.iter().position(|name| name.eq_ignore_ascii_case(class))?;
        Some(place as u64)
    };
    let places: Option<Vec<u64>> = classes.iter().map(by_name).collect();
    let is_known = places.is_some();
    let keys = places.unwrap_or_else(|| {
        let volumes = volumes(&draft.entries, classes.len());
        volumes.iter().enumerate().map(|(k, volume)| if k == 0 { 0 } else { u64::MAX - volume }).collect()
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

/// Counts the voxels of each structure in some cases.
fn volumes(entries: &[CaseEntry], classes: usize) -> Vec<u64> {
    let (mut volumes, tree) = (vec![0; classes], Tree::new());
    let measured = entries.iter().step_by(entries.len().div_ceil(MEASURED).max(1));
    for rater in measured.flat_map(|entry| &entry.files.raters) {
        let RaterMaps::Masks(masks) = &rater.maps else { continue };
        for (class, path) in masks {
            if let Look::Values(values) = tree.look(path) {
                volumes[usize::from(*class)] += values.above_half();
            }
        }
    }
    volumes
}

/// Returns the error of label files whose names fit no image.
fn no_match(picture: &Path, labels: &Path) -> Error {
    let reason = format!(
        "the names of label files, such as {}, are those of no images, such as {}",
        name(labels),
        name(picture)
    );
    let advice =
        "name label files after their images, or list both in a CSV with the columns id, image, seg_0, seg_1";
    Error::data(labels.parent().unwrap_or(labels), reason).advise(advice)
}

fn several(path: &Path, ids: &[&str]) -> Finding {
    let reason = format!("the name fits several images, {}; the file is not used", listed(ids, 3));
    let advice = "give the file the name of its image";
    Finding::warning(FindingKind::Layout, reason, advice).in_file(path)
}
