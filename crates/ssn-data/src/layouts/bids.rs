//! The Brain Imaging Data Structure: `sub-01/anat/sub-01_T1w.nii.gz` with
//! `derivatives/NAME/sub-01/anat/sub-01_…_dseg.nii.gz`, each derivative of a rater; sessions are cases of their subject.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::dataset::{CaseEntry, CaseFiles, Layout, RaterFiles};
use crate::error::Result;
use crate::layouts::Draft;
use crate::layouts::files::{child, images, name, natural_order, stem, subfolders};

/// Files of a subject, or of one of its sessions: by the name of the session's folder, or else of the subject's.
type BySession = BTreeMap<String, Vec<PathBuf>>;

pub(super) fn recognize(root: &Path) -> Result<Option<Draft>> {
    let Some(derivatives) = child(root, &["derivatives"])?.filter(|folder| folder.is_dir()) else {
        return Ok(None);
    };
    // Label files by case, then by derivative and the rest of their names.
    let mut labels = BTreeMap::<String, BTreeMap<(String, String), PathBuf>>::new();
    for derivative in subfolders(&derivatives)? {
        for (case, files) in sessions(&derivative)? {
            let named =
                |suffix: &'static str| files.iter().filter(move |path| entities_and_suffix(path).1 == suffix);
            let is_brain = |path: &&PathBuf| stem(path).contains("desc-brain");
            let maps = if named("dseg").next().is_some() { "dseg" } else { "mask" };
            for path in named(maps).filter(|path| !is_brain(path)) {
                let key = (name(&derivative), entities_and_suffix(path).0);
                labels.entry(case.clone()).or_default().insert(key, path.clone());
            }
        }
    }
    let (cases, mut counts) = (sessions(root)?, BTreeMap::<String, usize>::new());
    let channel = |path: &PathBuf| {
        let (entities, suffix) = entities_and_suffix(path);
        if entities.is_empty() { suffix } else { format!("{entities}_{suffix}") }
    };
    cases.values().flatten().for_each(|path| *counts.entry(channel(path)).or_default() += 1);
    counts.retain(|_, count| 2 * *count >= cases.len());
    if labels.is_empty() || counts.is_empty() {
        return Ok(None);
    }
    let mut raters: Vec<&(String, String)> = labels.values().flat_map(BTreeMap::keys).collect();
    raters.sort_by(|a, b| natural_order(&a.0, &b.0).then(natural_order(&a.1, &b.1)));
    raters.dedup();
    let number = |key: &(String, String)| raters.iter().position(|rater| *rater == key).unwrap_or(0);
    let mut entries = vec![];
    for (case, files) in &cases {
        let images =
            counts.keys().map(|wanted| files.iter().find(|path| channel(path) == *wanted).cloned()).collect();
        let own = labels.get(case).into_iter().flatten();
        let mut own: Vec<RaterFiles> =
            own.map(|(key, path)| RaterFiles::new(number(key), path.clone())).collect();
        own.sort_by_key(|rater| rater.number);
        let files = CaseFiles { images, raters: own, mask: None };
        let group = case.split('_').next().unwrap_or(case).to_owned();
        entries.push(CaseEntry { group, ..CaseEntry::of_files(case.clone(), None, files) });
    }
    entries.sort_by(|a, b| natural_order(&a.id, &b.id));
    // What distinguishes raters: derivatives, or files of one derivative.
    let derivatives: BTreeSet<&str> = raters.iter().map(|(derivative, _)| derivative.as_str()).collect();
    let rater_name = |(derivative, rest): &&(String, String)| match derivatives.len() == raters.len() {
        true => derivative.clone(),
        false => format!("{derivative} {rest}").trim().to_owned(),
    };
    let rater_names = raters.iter().map(rater_name).collect();
    let channels = Some(counts.into_keys().collect());
    Ok(Some(Draft { channels, rater_names, ..Draft::new(Layout::Bids, entries) }))
}

/// The images in `anat` of every subject and session.
fn sessions(root: &Path) -> Result<BySession> {
    let mut found = BySession::new();
    let mut add = |case: String, folder: &Path| -> Result<()> {
        let anat = folder.join("anat");
        let files = if anat.is_dir() { images(&anat)? } else { vec![] };
        if !files.is_empty() {
            found.insert(case, files);
        }
        Ok(())
    };
    for subject in subfolders(root)?.into_iter().filter(|folder| name(folder).starts_with("sub-")) {
        add(name(&subject), &subject)?;
        for session in subfolders(&subject)?.into_iter().filter(|folder| name(folder).starts_with("ses-")) {
            add(format!("{}_{}", name(&subject), name(&session)), &session)?;
        }
    }
    Ok(found)
}

/// The entities of a name besides subject and session, and its suffix: `acq-x` and `T1w` of `sub-1_ses-2_acq-x_T1w`.
fn entities_and_suffix(path: &Path) -> (String, String) {
    let stem = stem(path);
    let (entities, suffix) = stem.rsplit_once('_').unwrap_or(("", &stem));
    let of_case = |entity: &&str| entity.starts_with("sub-") || entity.starts_with("ses-");
    let others: Vec<&str> = entities.split('_').filter(|entity| !of_case(entity)).collect();
    (others.join("_"), suffix.to_owned())
}
