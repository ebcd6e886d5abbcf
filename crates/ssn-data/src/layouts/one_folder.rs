//! Images and label maps in one folder: `scan1.png` with `scan1_mask.png`, or with `scan1_rater1.png` and
//! `scan1_rater2.png`. Folders may be of parts, patients or kinds: `patient1/slice1.tif`, `benign/scan1.png`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_io::Result;

use crate::dataset::{Layout, Split};
use crate::layouts::Draft;
use crate::layouts::rater_folders::are_label_maps;
use crate::resolve::files::{name, stem};
use crate::resolve::{
    Align, CaseNames, FoundCase, Hint, NameMatch, RaterKey, Role, Tree, channels_by_case, cuts, in_order,
    kinds_note, patient, rater_of, unique, without_kinds, words,
};

/// Separators between the name of an image and what follows in the names of its label maps.
const BEHIND_IMAGE: &[char] = &['_', '-', '.', ' '];

pub(super) fn recognize(tree: &Tree<'_>, root: &Path) -> Result<Option<Draft>> {
    let (mut folders, mut inner) = (vec![], vec![]);
    for (split, folder) in tree.parts(root)? {
        for own in tree.folders(&folder)?.into_iter().filter(|own| Split::from_folder(&name(own)).is_none()) {
            inner.push((split, Some(name(&own)), own));
        }
        folders.push((split, None, folder));
    }
    let found = found_in(tree, folders)?;
    if !found.is_empty() {
        return Ok(Some(Draft::of_cases(Layout::OneFolder, found)));
    }
    let mut found = found_in(tree, inner)?;
    if !are_of_many(&found) {
        return Ok(None);
    }
    let note = kinds_note(found.iter().filter_map(|case| case.group.clone()));
    found.iter_mut().for_each(|case| case.group = case.group.as_deref().and_then(patient));
    let draft = Draft::of_cases(Layout::OneFolder, found);
    Ok(Some(Draft { findings: note.into_iter().collect(), ..draft }))
}

/// Returns `true` if folders hold several images with names of their own, or numbered slices with label maps. A folder
/// per case has one image, or the same names as others.
fn are_of_many(found: &[FoundCase]) -> bool {
    let mut names = BTreeMap::<&Option<String>, BTreeSet<String>>::new();
    for case in found {
        names.entry(&case.group).or_default().extend(case.images.iter().flatten().map(|path| stem(path)));
    }
    let mut sets = names.values();
    let first = sets.next();
    let are_alike = names.len() > 1 && sets.all(|set| Some(set) == first);
    names.values().any(|set| set.len() > 1)
        && (!are_alike || first.is_some_and(are_slices) && found.iter().all(|case| !case.raters.is_empty()))
}

/// Returns `true` if names differ by numbers alone, and are not those of channels such as `t1` and `t2`.
fn are_slices(names: &BTreeSet<String>) -> bool {
    let letters = |name: &String| -> Vec<String> {
        words(name).into_iter().filter(|word| !word.starts_with(char::is_numeric)).collect()
    };
    let letters: BTreeSet<Vec<String>> = names.iter().map(letters).collect();
    letters.len() == 1 && letters.iter().all(|words| words.concat() != "t")
}

type Folder = (Option<Split>, Option<String>, PathBuf);

/// Returns the cases of folders in which at least half of the images have label maps.
fn found_in(tree: &Tree<'_>, folders: Vec<Folder>) -> Result<Vec<FoundCase>> {
    let (mut found, mut taken) = (vec![], BTreeSet::new());
    for (split, group, folder) in folders {
        let files: Vec<PathBuf> = tree.images(&folder)?.into_iter().filter(|path| path.is_file()).collect();
        let mut parts = Parts::of(tree, &files);
        let labels: Vec<PathBuf> = parts.raters.values().flatten().map(|(_, path)| path.clone()).collect();
        let is_labeled = !labels.is_empty() && 2 * parts.raters.len() >= parts.images.len();
        if !is_labeled || !are_label_maps(tree, labels.iter()) {
            continue;
        }
        for (image, images) in in_order(&channels_by_case(&parts.images, &labels)) {
            let id = unique(split, group.as_deref(), image.clone(), &mut taken);
            let (group, mask) = (group.clone(), parts.regions.remove(image));
            let mut case = FoundCase { id, group, split, images, mask, ..FoundCase::default() };
            let own = parts.raters.remove(image).unwrap_or_default();
            own.into_iter().for_each(|(rater, path)| case.add_labels(rater, path));
            found.push(case);
        }
    }
    Ok(found)
}

/// The files in a folder by what they are.
#[derive(Default)]
struct Parts {
    images: Vec<PathBuf>,
    /// Label maps by image: files with its name, and words of labels or raters behind it.
    raters: BTreeMap<String, Vec<(RaterKey, PathBuf)>>,
    /// Regions of interest by image.
    regions: BTreeMap<String, PathBuf>,
}

impl Parts {
    fn of(tree: &Tree<'_>, files: &[PathBuf]) -> Self {
        let stems: BTreeSet<String> = files.iter().map(|path| stem(path)).collect();
        let raters = raters_by_suffix(tree, files, &stems);
        let mut parts = Self::default();
        let mut others = vec![];
        for path in files {
            let stem = stem(path);
            let mut starts = cuts(&stem, BEHIND_IMAGE).filter(|(image, _)| stems.contains(*image));
            let is_part = |(_, rest): &(&str, &str)| {
                Role::of(rest) == Role::Mask
                    || raters.contains(*rest)
                    || rater_of(rest).is_some()
                    || Hint::Made.fits_one(&words(rest))
            };
            match starts.find(is_part) {
                Some((image, rest)) if Role::of(rest) == Role::Mask => {
                    parts.regions.insert(image.to_owned(), path.clone());
                }
                Some((image, rest)) => {
                    let rater = rater_of(rest).or_else(|| raters.contains(rest).then(|| RaterKey::of(rest)));
                    // A consensus is no image; it is reported as left out.
                    let own = rater.map(|rater| (rater, path.clone()));
                    parts.raters.entry(image.to_owned()).or_default().extend(own);
                }
                None if Hint::Labels.fits_one(&words(&stem)) => others.push(path),
                None => parts.images.push(path.clone()),
            }
        }
        parts.raters.retain(|_, raters| !raters.is_empty());
        parts.add_by_words(&others);
        parts
    }

    /// Adds label maps that have the words of an image elsewhere in their names: `segmentation-1` of `volume-1`.
    fn add_by_words(&mut self, labels: &[&PathBuf]) {
        let images: Vec<String> = self.images.iter().map(|path| stem(path)).collect();
        let names = CaseNames::of(&images);
        for &path in labels {
            match names.find(&stem(path), Align::Free) {
                NameMatch::Case(image, rest) if without_kinds(&rest).is_empty() => {
                    let own = self.raters.entry(image.to_owned()).or_default();
                    own.push((RaterKey::Number(0), path.clone()));
                }
                _ => self.images.push(path.clone()),
            }
        }
    }
}

/// Returns what follows the names of at least half of the images in label maps by their values: `1stHO`, `anna`.
fn raters_by_suffix(tree: &Tree<'_>, files: &[PathBuf], stems: &BTreeSet<String>) -> BTreeSet<String> {
    let mut by_suffix = BTreeMap::<String, Vec<&PathBuf>>::new();
    for path in files {
        let stem = stem(path);
        if let Some((_, rest)) = cuts(&stem, BEHIND_IMAGE).find(|(image, _)| stems.contains(*image)) {
            by_suffix.entry(rest.to_owned()).or_default().push(path);
        }
    }
    let images = stems.len() - by_suffix.values().map(Vec::len).sum::<usize>();
    let is_rater = |files: &Vec<&PathBuf>| {
        files.len() > 1 && 2 * files.len() >= images && are_label_maps(tree, files.iter().copied())
    };
    by_suffix.retain(|suffix, files| !Hint::Made.fits_one(&words(suffix)) && is_rater(files));
    by_suffix.into_keys().collect()
}
