//! Images for prediction: files, folders and datasets become one dataset whose labels are optional.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_io::dicom::{find_series, folder_and_series};
use ssn_io::{Error, Format, Limits, Result};

use crate::dataset::{
    Dataset, Finding, FindingKind, LabelPolicy, Layout, RaterMaps, ReadOptions, unnamed_channels,
};
use crate::layouts::rater_folders::are_label_maps;
use crate::layouts::recognize::{check_exists, in_folder, nothing_in, of_file, stray};
use crate::layouts::{DatasetOverrides, Draft, one_folder};
use crate::resolve::files::{check_name, is_image, name, natural_order, stem};
use crate::resolve::{
    BEHIND_CASE, FoundCase, Hint, RaterKey, Role, Tree, channel_of, cuts, first_unique, words,
};

impl Dataset {
    /// Returns the images for a model with these channels and classes, labeled or not.
    ///
    /// A path is an image, a folder of images or of cases, or a dataset of any layout, of which all images are
    /// taken. A folder with the files of a DICOM series is an image; of several in one folder, `FOLDER#DESCRIPTION`,
    /// `FOLDER#NUMBER` or `FOLDER#UID` is one. Labels and regions of interest come along where they are there.
    pub fn of_images(paths: &[PathBuf], channels: &[String], classes: &[String]) -> Result<Self> {
        let known = DatasetOverrides { classes: Some(classes.to_vec()), ..DatasetOverrides::default() };
        Self::of_images_with(paths, channels, &known)
    }

    /// Like [`Self::of_images`], with the classes and whatever else is known.
    pub fn of_images_with(paths: &[PathBuf], channels: &[String], known: &DatasetOverrides) -> Result<Self> {
        let (tree, mut files, mut root) = (Tree::new(), BTreeSet::new(), None);
        let (mut findings, mut drafts) = (vec![], vec![]);
        for path in paths {
            if matches!(folder_and_series(path), Some((_, Some(_)))) {
                check_name(path)?;
                files.insert(path.clone());
                root = root.or(Some(path));
                continue;
            }
            check_exists(path)?;
            check_name(path)?;
            if path.is_dir() {
                let (mut draft, strays) = in_folder(&tree, path)?;
                if draft.is_none() {
                    draft = images_and_labels(&tree, path, channels)?;
                }
                findings.extend(strays.iter().map(stray));
                match draft {
                    Some(draft) => drafts.push((path, draft)),
                    None => {
                        files.extend(images_in(&tree, path, strays)?);
                        root = root.or(Some(path));
                    }
                }
            } else if Format::of(path).is_ok() {
                files.insert(path.clone());
                root = root.or(Some(path));
            } else {
                drafts.push((path, of_file(path, LabelPolicy::Optional)?));
            }
        }
        findings.extend(series_taken(&files)?);
        if let Some(root) = root {
            drafts.push((root, images_draft(&tree, &files, channels)?));
        }
        let mut datasets = vec![];
        for (path, draft) in drafts {
            datasets.push(for_model(draft, path, channels, known)?);
        }
        let mut all = joined(datasets)?;
        all.findings.extend(findings);
        Ok(all)
    }
}

/// Returns the dataset of images and label maps in one folder, if each image has the channels of a model: otherwise its
/// files may be channels.
fn images_and_labels(tree: &Tree<'_>, folder: &Path, channels: &[String]) -> Result<Option<Draft>> {
    let draft = one_folder::recognize(tree, folder)?;
    let fits =
        |draft: &Draft| draft.channels_of_the_first(folder).is_ok_and(|own| own.len() == channels.len());
    Ok(draft.filter(fits))
}

/// Returns the images in a folder that is not a dataset, or an error if there are none.
fn images_in(tree: &Tree<'_>, folder: &Path, strays: Vec<Error>) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = match tree.is_series(folder) {
        true => vec![folder.to_owned()],
        false => tree.below(folder, DEEPEST).into_iter().collect::<Result<_>>()?,
    };
    found.retain(|path| is_image(path) || path.is_dir());
    if found.is_empty() {
        let advice =
            "give images, folders of them, or a dataset such as a CSV with the columns id and channels";
        return Err(nothing_in(folder, strays, "no image was", advice));
    }
    Ok(found)
}

/// Returns a note with the DICOM series taken, each the only one in its folder or chosen by name.
fn series_taken(paths: &BTreeSet<PathBuf>) -> Result<Option<Finding>> {
    let mut taken = vec![];
    for path in paths {
        if let Some((folder, chosen)) = folder_and_series(path) {
            let series = find_series(&folder, chosen.as_deref(), &Limits::default())?;
            taken.push(format!("{}: {}", name(&folder), series.describe()));
        }
    }
    let more = if taken.len() > LISTED { ", …" } else { "" };
    let listed = taken[..taken.len().min(LISTED)].join(", ");
    let reason = format!("{} DICOM series taken: {listed}{more}", taken.len());
    Ok((!taken.is_empty()).then(|| Finding::note(FindingKind::Layout, reason)))
}

/// DICOM series that a note lists.
const LISTED: usize = 20;

/// Completes a draft with the channels and classes of a model.
fn for_model(draft: Draft, root: &Path, channels: &[String], known: &DatasetOverrides) -> Result<Dataset> {
    let mut draft = draft.with_source(known.annotations.as_deref());
    draft.entries.append(&mut draft.unlabeled);
    let stored = match draft.channels.take() {
        Some(channels) => channels,
        None => draft.channels_of_the_first(root)?,
    };
    let (wanted, finding) = fitting(root, &stored, channels)?;
    draft.channels = Some(stored);
    draft.findings.extend(finding);
    let known = DatasetOverrides { channels: Some(wanted), ..known.clone() };
    let dataset = draft.complete(root, &known)?.with_labels(LabelPolicy::Optional);
    Ok(Dataset { channels: channels.to_vec(), ..dataset })
}

/// Returns the stored channels for a model: those with its names or, if no name matches, all in their order.
fn fitting(root: &Path, stored: &[String], channels: &[String]) -> Result<(Vec<String>, Option<Finding>)> {
    let same = |name: &String| stored.iter().find(|stored| stored.eq_ignore_ascii_case(name)).cloned();
    if let Some(found) = channels.iter().map(same).collect() {
        return Ok((found, None));
    }
    if stored.len() == channels.len() && channels.iter().all(|name| same(name).is_none()) {
        let reason = format!(
            "the channels {} are taken for {} of the model, in this order",
            stored.join(", "),
            channels.join(", ")
        );
        let finding = Finding::note(FindingKind::Layout, reason).in_file(root);
        return Ok((stored.to_vec(), Some(finding)));
    }
    Err(Error::data(root, other_number(stored, channels)).advise("name the channels as the model does"))
}

fn other_number(found: &[String], channels: &[String]) -> String {
    format!(
        "the number of channels is {} ({}), but the model takes {} ({})",
        found.len(),
        found.join(", "),
        channels.len(),
        channels.join(", ")
    )
}

fn joined(datasets: Vec<Dataset>) -> Result<Dataset> {
    let mut datasets = datasets.into_iter();
    let Some(mut all) = datasets.next() else {
        return Err(Error::setting("the list of images", "empty", "at least one path"));
    };
    for other in datasets {
        if other.reading != all.reading || other.stored_channels.len() != all.stored_channels.len() {
            return Err(Error::data(
                other.root,
                format!("its files are not stored as those of {}", all.root.display()),
            )
            .advise("give the two apart"));
        }
        all.entries.extend(other.entries);
        all.findings.extend(other.findings);
    }
    let mut ids = BTreeSet::new();
    match all.entries.iter().find(|entry| !ids.insert(&entry.id)) {
        Some(entry) => Err(same_id(entry.id.clone())),
        None => Ok(all),
    }
}

/// How many folders deep images are looked for: a part, a grade and a case, as in `train/HGG/case`.
const DEEPEST: usize = 3;

/// Case before it has an id.
#[derive(Default)]
struct Found {
    /// Its folder, or the name of its files in their folder.
    place: PathBuf,
    /// Images are one file per channel, or one with all.
    case: FoundCase,
}

fn images_draft(tree: &Tree<'_>, files: &BTreeSet<PathBuf>, channels: &[String]) -> Result<Draft> {
    let names = Names::of(tree, files, channels);
    let mut folders = BTreeMap::<&Path, Vec<&PathBuf>>::new();
    files.iter().for_each(|path| folders.entry(path.parent().unwrap_or(path)).or_default().push(path));
    let (labels, folders): (Vec<_>, Vec<_>) =
        folders.into_iter().partition(|(folder, files)| is_label_folder(tree, folder, files));
    // Label maps alone are what was given.
    let (labels, folders) = if folders.is_empty() { (folders, labels) } else { (labels, folders) };
    let mut no_images: Vec<PathBuf> = labels.into_iter().flat_map(|(_, files)| files).cloned().collect();
    let mut found = vec![];
    for (folder, files) in folders {
        let (cases, others) = cases_in_folder(tree, folder, &files, &names, channels)?;
        found.extend(cases);
        no_images.extend(others);
    }
    if let ([], [first, ..]) = (&found[..], &no_images[..]) {
        let reason =
            "by its name and its values, this is a label map or a mask, but an image is expected".to_owned();
        return Err(Error::data(first, reason).advise("give the images, or rename the file"));
    }
    let depth_is_channels = depth_is_channels(tree, &found, channels);
    let findings = plain_masks(&found).into_iter().chain(depth_is_channels.then(third_axis));
    let findings = findings.chain(left_out(&no_images)).collect();
    let reading = ReadOptions { depth_is_channels, ..ReadOptions::default() };
    let ids = ids(&found)?;
    let cases = found.into_iter().zip(ids).map(|(found, id)| FoundCase { id, ..found.case });
    let mut draft = Draft::of_cases(Layout::Images, cases.collect());
    draft.entries.sort_by(|a, b| natural_order(&a.id, &b.id));
    Ok(Draft { channels: Some(channels.to_vec()), reading, findings, rater_names: vec![], ..draft })
}

/// Returns `true` if a folder is named after labels or a rater and holds label maps, as `patient1/masks` next to
/// `patient1/images`.
fn is_label_folder(tree: &Tree<'_>, folder: &Path, files: &[&PathBuf]) -> bool {
    let words = words(&name(folder));
    [Hint::Labels, Hint::Person, Hint::Made].iter().any(|hint| hint.fits_one(&words))
        && are_label_maps(tree, files.iter().copied())
}

/// An image with fewer different values is a label map or a mask.
const FEW_VALUES: usize = 4;

/// A note about label maps and masks of which the images are not there.
fn left_out(no_images: &[PathBuf]) -> Option<Finding> {
    let first = no_images.first()?;
    let reason = format!(
        "{} label maps or masks without an image and not used, such as {}",
        if no_images.len() == 1 { "1 file is".to_owned() } else { format!("{} files are", no_images.len()) },
        name(first)
    );
    Some(Finding::note(FindingKind::LeftOut, reason))
}

/// The cases among the files of one folder, and label maps and masks without an image.
fn cases_in_folder(
    tree: &Tree<'_>,
    folder: &Path,
    files: &[&PathBuf],
    names: &Names<'_>,
    channels: &[String],
) -> Result<(Vec<Found>, Vec<PathBuf>)> {
    let Sorted { split, whole } = Sorted::of(files, names)?;
    let cases: BTreeSet<String> = split.keys().chain(whole.keys()).cloned().collect();
    let owner = |stem: &str| {
        let (case, rest) =
            beside(stem, &cases, |case, rest| split.contains_key(case) || role(rest) != Role::Channel)?;
        Some((case.to_owned(), rest.to_owned()))
    };
    let is_made = |stem: &str| Hint::Made.fits_one(&words(stem));
    let has_few_values = |path: &PathBuf| tree.look(path).has_at_most(FEW_VALUES - 1);
    let is_made_map = |stem: &str| is_made(stem) && whole.get(stem).is_some_and(has_few_values);
    let is_image =
        |stem: &&String| role(stem) == Role::Channel && owner(stem).is_none() && !is_made_map(stem);
    let images: Vec<&String> = split.keys().chain(whole.keys().filter(is_image)).collect();
    // In the folder of a single case, `seg` need not be named after it; but `tumour_1` is none of `control_1`.
    let is_numbered = |case: &str| whole.contains_key(case) && case.ends_with(|c: char| c.is_ascii_digit());
    let owner = |stem: &String| match images[..] {
        [case] if case != stem && (!is_numbered(case) || *case == name(folder)) => {
            owner(stem).or_else(|| Some((case.clone(), stem.clone())))
        }
        _ => owner(stem),
    };
    let (mut found, mut no_images) = (BTreeMap::<String, FoundCase>::new(), vec![]);
    for (stem, path) in &whole {
        let Some((case, rest)) = owner(stem) else {
            // Images may have such names, too: `tumour_1` beside `control_1`.
            match role(stem) {
                Role::Labels | Role::Mask if has_few_values(path) => no_images.push(path.clone()),
                Role::Channel if is_made_map(stem) => no_images.push(path.clone()),
                _ => found.entry(stem.clone()).or_default().images.push(Some(path.clone())),
            }
            continue;
        };
        let case = found.entry(case).or_default();
        match role(&rest) {
            Role::Mask => drop(case.mask.get_or_insert_with(|| path.clone())),
            Role::Labels => case.add_labels(RaterKey::Name(rest), path.clone()),
            // A channel that the model does not take.
            Role::Channel => {}
        }
    }
    for (case, files) in &split {
        let images = all_channels(&place(folder, case), files, channels)?;
        found.entry(case.clone()).or_default().images = images.into_iter().map(Some).collect();
    }
    // A consensus next to raters is not one of them.
    let is_own = |key: &RaterKey| !matches!(key, RaterKey::Name(name) if is_made(name));
    for case in found.values_mut().filter(|case| case.raters.iter().any(|(key, _)| is_own(key))) {
        let (own, made) = std::mem::take(&mut case.raters).into_iter().partition(|(key, _)| is_own(key));
        case.raters = own;
        no_images.extend(made.into_iter().filter_map(|(_, maps)| match maps {
            RaterMaps::Labels(path) => Some(path),
            RaterMaps::Masks(_) => None,
        }));
    }
    // A label map or mask alone is not a case.
    found.retain(|_, case| !case.images.is_empty());
    let found = found.into_iter().map(|(name, case)| Found { place: place(folder, &name), case });
    Ok((found.collect(), no_images))
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
                return Err(Error::data(
                    path,
                    format!("{} has the same name but for its ending", name(&other)),
                )
                .advise("keep one of the two"));
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
    let advice = "give the files of all these channels, numbered from 0000 or named after them";
    Err(Error::data(place, other_number(&present, channels)).advise(advice))
}

/// The path that names a case: files that are named after their folder, or after channels alone, are those of the folder.
fn place(folder: &Path, case: &str) -> PathBuf {
    // `.` has no name of its own.
    let folder = match folder.file_name() {
        Some(_) => folder.to_owned(),
        None => Path::new(".").join(folder).canonicalize().unwrap_or_default(),
    };
    if case.is_empty() || case == name(&folder) { folder } else { folder.join(case) }
}

/// Returns the shortest unique names of the cases: of the files, of their folders, or both.
fn ids(found: &[Found]) -> Result<Vec<String>> {
    let last = |place: &Path, skipped: usize, taken: usize| -> Result<String> {
        let named = place.ancestors().skip(skipped).take(taken).filter(|path| path.file_name().is_some());
        let mut parts = vec![];
        for path in named {
            check_name(path)?;
            parts.insert(0, name(path));
        }
        Ok(parts.join("/"))
    };
    // A case that is a folder is not named after the folder above alone.
    let folders = found.iter().any(|case| case.place.is_dir());
    let namings =
        [(0, 1), (1, 1), (0, 2), (0, 3)].into_iter().filter(|naming| !(folders && *naming == (1, 1)));
    let mut failed = Ok(());
    let namings = namings.map_while(|(skipped, taken)| {
        let ids = found.iter().map(|found| last(&found.place, skipped, taken)).collect::<Result<Vec<_>>>();
        ids.map_err(|error| failed = Err(error)).ok()
    });
    let ids = first_unique(namings);
    failed.and_then(|()| ids.map_err(same_id))
}

fn same_id(id: String) -> Error {
    let reason = "two cases have this id, but ids must differ".to_owned();
    Error::case(id, reason).advise("rename one of them, or give it apart")
}

/// Whether the third axis of images holds the channels, as in QUBIQ: it has their number, and files have one channel.
/// Channels with names come from datasets that store them apart: there it is the depth.
fn depth_is_channels(tree: &Tree<'_>, found: &[Found], channels: &[String]) -> bool {
    let shape = |found: &Found| tree.shape(found.case.images.first()?.as_ref()?);
    channels.len() > 1
        && channels == unnamed_channels(channels.len())
        && found.iter().all(|found| found.case.images.len() == 1)
        && found.iter().find_map(shape).is_some_and(|[c, d, ..]| (c, d) == (1, channels.len()))
}

fn third_axis() -> Finding {
    Finding::note(FindingKind::Layout, "the third axis of the images is taken for their channels")
}

/// A note about files named `mask`, which are labels in other datasets.
fn plain_masks(found: &[Found]) -> Option<Finding> {
    let mask = found
        .iter()
        .filter_map(|found| found.case.mask.as_ref())
        .find(|path| Role::of(&stem(path)) != Role::Mask)?;
    let reason = "files named `mask` are taken for regions of interest, not for labels";
    Some(Finding::note(FindingKind::Layout, reason).in_file(mask))
}

/// How the channels of a model are found in names.
struct Names<'a> {
    channels: &'a [String],
    /// Four digits at the end of names are channels, as in nnU-Net.
    numbered: bool,
    /// What all names have behind the channel, as `_normalized` in `flair_normalized`.
    ending: String,
}

impl<'a> Names<'a> {
    /// Looks at the names of all files, and opens one where the names leave it open.
    pub fn of(tree: &Tree<'_>, files: &BTreeSet<PathBuf>, channels: &'a [String]) -> Self {
        let stems: Vec<String> = files.iter().map(|path| stem(path)).collect();
        let numbered = are_channels(tree, files, &stems, channels.len());
        let mut names = Self { channels, numbered, ending: String::new() };
        // One file alone shares its whole name with all files.
        if channels.len() > 1 && !stems.iter().any(|stem| names.named(stem).is_some()) {
            names.ending = shared_ending(&stems).to_owned();
        }
        names
    }

    /// The case and the channel in the name of a file; a file without a channel may be a whole case.
    pub fn channel<'s>(&self, stem: &'s str) -> Option<(&'s str, usize)> {
        self.named(stem).or_else(|| channel_of(stem).filter(|_| self.numbered))
    }

    /// The case and the channel in `case_flair`; the case is empty in `flair`.
    fn named<'s>(&self, stem: &'s str) -> Option<(&'s str, usize)> {
        // Default names such as `image` may be part of any file name.
        if self.channels == unnamed_channels(self.channels.len()) {
            return None;
        }
        let stem = stem.strip_suffix(&self.ending)?;
        let place = |rest: &str| self.channels.iter().rposition(|name| name.eq_ignore_ascii_case(rest));
        let parts = cuts(stem, BEHIND_CASE).chain([("", stem)]).filter(|(_, rest)| !rest.is_empty());
        // `case_post_t1` is of the channel `post_t1` and not of `t1`.
        parts.filter_map(|(case, rest)| Some((case, place(rest)?))).last()
    }
}

/// Whether four digits at the end of names are channels. Slices may be numbered so too: then the files hold all channels.
fn are_channels(tree: &Tree<'_>, files: &BTreeSet<PathBuf>, stems: &[String], channels: usize) -> bool {
    let mut numbers = stems.iter().filter_map(|stem| channel_of(stem)).map(|(_, number)| number);
    if channels == 1 {
        return numbers.all(|number| number == 0);
    }
    let mut numbered = files.iter().zip(stems).filter(|(_, stem)| channel_of(stem).is_some());
    let first = numbered.find_map(|(path, _)| tree.shape(path));
    first.is_none_or(|shape| shape[0] != channels)
}

/// Returns the ending, starting with `_`, that the names of all images share.
fn shared_ending(stems: &[String]) -> &str {
    let mut images = stems.iter().filter(|stem| Role::of(stem) == Role::Channel);
    let first = images.next().map_or("", String::as_str);
    let common = images.fold(first, |ending, stem| {
        let same = ending.chars().rev().zip(stem.chars().rev()).take_while(|(a, b)| a == b);
        &ending[ending.len() - same.map(|(letter, _)| letter.len_utf8()).sum::<usize>()..]
    });
    common.find('_').map_or("", |at| &common[at..])
}

/// Returns the longest case that a name starts with and `fits` accepts, and the rest of the name.
fn beside<'s>(
    stem: &'s str,
    cases: &BTreeSet<String>,
    fits: impl Fn(&str, &str) -> bool,
) -> Option<(&'s str, &'s str)> {
    let mut parts = cuts(stem, BEHIND_CASE).chain([("", stem)]);
    parts.find(|(case, rest)| cases.contains(*case) && !rest.is_empty() && fits(case, rest))
}

/// Returns the role of a file next to an image. A bare `mask` is a region of interest: prediction needs no labels.
fn role(rest: &str) -> Role {
    if rest.eq_ignore_ascii_case("mask") { Role::Mask } else { Role::of(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::texts;

    #[test]
    fn channels_are_found_in_names() {
        let channels = texts(&["t1", "post_t1"]);
        let names = |ending: &str| Names { channels: &channels, numbered: true, ending: ending.to_owned() };
        for (stem, expected) in [
            ("t1", Some(("", 0))),
            ("case-1_T1", Some(("case-1", 0))),
            ("case_post_t1", Some(("case", 1))),
            ("case_0001", Some(("case", 1))),
            ("art1", None),
            ("t1_1", None),
        ] {
            assert_eq!(names("").channel(stem), expected, "{stem}");
        }
        assert_eq!(names("_norm").channel("a_t1_norm"), Some(("a", 0)));
        let unnamed = texts(&["image"]);
        let names = Names { channels: &unnamed, numbered: false, ending: String::new() };
        assert_eq!((names.channel("image"), names.channel("a_0000")), (None, None));
    }

    #[test]
    fn shared_endings_start_at_a_separator() {
        assert_eq!(shared_ending(&texts(&["a_flair_norm", "b_t1_norm", "brainmask"])), "_norm");
        assert_eq!(shared_ending(&texts(&["norm", "anorm"])), "");
        assert_eq!(shared_ending(&texts(&["ä", "ö"])), "");
    }

    #[test]
    fn files_stand_beside_the_longest_name() {
        let cases = texts(&["a", "a_1"]).into_iter().collect();
        assert_eq!(beside("a_1_mask", &cases, |_, _| true), Some(("a_1", "mask")));
        assert_eq!(beside("a_1_mask", &cases, |_, rest| rest != "mask"), Some(("a", "1_mask")));
        assert_eq!(beside("b_mask", &cases, |_, _| true), None);
    }
}
