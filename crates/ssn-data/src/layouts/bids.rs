//! BIDS: `sub-01/[ses-1/]anat/*` with `derivatives/NAME/sub-01/anat/sub-01_…_dseg.nii.gz`, each derivative of a rater; sessions are cases of their subject.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ssn_io::Result;

use crate::dataset::Layout;
use crate::layouts::Draft;
use crate::resolve::files::{name, natural_order, stem};
use crate::resolve::{FoundCase, Hint, RaterKey, Raters, Tree, words};

/// Files of a subject, or of one of its sessions: by the name of the session's folder, or else of the subject's.
type BySession = BTreeMap<String, Vec<PathBuf>>;

pub(super) fn recognize(tree: &Tree<'_>, root: &Path) -> Result<Option<Draft>> {
    let is_derivatives = |folder: &PathBuf| name(folder).eq_ignore_ascii_case("derivatives");
    let Some(derivatives) = tree.folders(root)?.into_iter().find(is_derivatives) else { return Ok(None) };
    // Label files by case and rater; the derivative of each rater.
    let mut labels = BTreeMap::<String, BTreeMap<String, PathBuf>>::new();
    let mut raters = BTreeMap::<String, String>::new();
    let mut maps_of_raters = vec![];
    for derivative in tree.folders(&derivatives)? {
        for (case, files) in sessions(tree, &derivative)? {
            let named =
                |suffix: &'static str| files.iter().filter(move |path| entities_and_suffix(path).1 == suffix);
            let is_brain = |path: &&PathBuf| stem(path).contains("desc-brain");
            let maps = if named("dseg").next().is_some() { "dseg" } else { "mask" };
            for path in named(maps).filter(|path| !is_brain(path)) {
                let rater =
                    format!("{} {}", name(&derivative), entities_and_suffix(path).0).trim().to_owned();
                maps_of_raters.push((case.clone(), rater, name(&derivative), path.clone()));
            }
        }
    }
    let is_made = |rater: &str| Hint::Made.fits_one(&words(rater));
    let (made, own): (Vec<_>, Vec<_>) = maps_of_raters.into_iter().partition(|(_, rater, ..)| is_made(rater));
    for (case, rater, derivative, path) in if own.is_empty() { made } else { own } {
        raters.insert(rater.clone(), derivative);
        labels.entry(case).or_default().insert(rater, path);
    }
    let (cases, mut counts) = (sessions(tree, root)?, BTreeMap::<String, usize>::new());
    let channel = |path: &PathBuf| {
        let (entities, suffix) = entities_and_suffix(path);
        if entities.is_empty() { suffix } else { format!("{entities}_{suffix}") }
    };
    cases.values().flatten().for_each(|path| *counts.entry(channel(path)).or_default() += 1);
    counts.retain(|_, count| 2 * *count >= cases.len());
    if labels.is_empty() || counts.is_empty() {
        return Ok(None);
    }
    let mut found: Vec<FoundCase> = vec![];
    for (id, files) in cases {
        let images = counts.keys().map(|wanted| files.iter().find(|path| channel(path) == *wanted).cloned());
        let group = id.split('_').next().map(str::to_owned);
        let mut case = FoundCase { group, images: images.collect(), ..FoundCase::default() };
        let own = labels.remove(&id).unwrap_or_default();
        own.into_iter().for_each(|(rater, path)| case.add_labels(RaterKey::Name(rater), path));
        found.push(FoundCase { id, ..case });
    }
    found.sort_by(|a, b| natural_order(&a.id, &b.id));
    let (entries, numbered) = Raters::number(found);
    // Derivatives distinguish raters, or else files of one derivative.
    let is_told = raters.values().collect::<BTreeSet<_>>().len() == raters.len();
    let rater_name = |rater: String| raters.get(&rater).filter(|_| is_told).cloned().unwrap_or(rater);
    let rater_names = numbered.names().into_iter().map(rater_name).collect();
    let channels = Some(counts.into_keys().collect());
    Ok(Some(Draft { channels, rater_names, ..Draft::new(Layout::Bids, entries) }))
}

/// Returns the images in `anat` of each subject and session.
fn sessions(tree: &Tree<'_>, root: &Path) -> Result<BySession> {
    let mut found = BySession::new();
    let mut add = |case: String, folder: &Path| -> Result<()> {
        let anat = folder.join("anat");
        let files = if anat.is_dir() { tree.images(&anat)? } else { vec![] };
        if !files.is_empty() {
            found.insert(case, files);
        }
        Ok(())
    };
    for subject in tree.folders(root)?.into_iter().filter(|folder| name(folder).starts_with("sub-")) {
        add(name(&subject), &subject)?;
        for session in tree.folders(&subject)?.into_iter().filter(|folder| name(folder).starts_with("ses-")) {
            add(format!("{}_{}", name(&subject), name(&session)), &session)?;
        }
    }
    Ok(found)
}

/// Returns the entities of a name without subject and session, and its suffix: `acq-x` and `T1w` of `sub-1_ses-2_acq-x_T1w`.
fn entities_and_suffix(path: &Path) -> (String, String) {
    let stem = stem(path);
    let (entities, suffix) = stem.rsplit_once('_').unwrap_or(("", &stem));
    let of_case = |entity: &&str| entity.starts_with("sub-") || entity.starts_with("ses-");
    let others: Vec<&str> = entities.split('_').filter(|entity| !of_case(entity)).collect();
    (others.join("_"), suffix.to_owned())
}
