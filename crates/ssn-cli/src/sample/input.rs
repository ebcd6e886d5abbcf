//! The distribution files that were asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ssn_predictions::{DISTRIBUTION_ENDING, DistributionFile, Found};
use ssn_volume::{Limits, natural_order};

use crate::exit::{Exit, Failure};
use crate::predictions::failure;

/// The files, and those of the folders, in the order in which they were named; each with what its header says.
pub(super) fn find(inputs: &[PathBuf]) -> Result<Vec<Found>, Failure> {
    let mut paths = vec![];
    for input in inputs {
        match input.is_dir() {
            true => paths.extend(files_of(input)?),
            false => paths.push(input.clone()),
        }
    }
    let mut cases: Vec<Found> = vec![];
    let mut places = BTreeMap::new();
    for path in paths {
        let header = DistributionFile::read_header(&path, &Limits::default()).map_err(failure)?;
        if let Some(first) = places.insert(header.description.case.clone(), path.clone()) {
            let message = format!(
                "{} and {} are both of case {:?}, so their samples would have the same names; sample them into \
                 folders of their own",
                first.display(),
                path.display(),
                header.description.case
            );
            return Err(Failure::new(Exit::Usage, message));
        }
        cases.push(Found { path, header });
    }
    Ok(cases)
}

/// The distribution files of a folder, in natural order.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let list = || -> std::io::Result<Vec<PathBuf>> {
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut paths =
        list().map_err(|error| Failure::new(Exit::Io, format!("{}: {error}", folder.display())))?;
    paths.retain(|path| name(path).ends_with(DISTRIBUTION_ENDING) && !name(path).starts_with('.'));
    if paths.is_empty() {
        let message =
            format!("{} holds no files *{DISTRIBUTION_ENDING}; `ssn predict` writes them", folder.display());
        return Err(Failure::new(Exit::BadData, message));
    }
    paths.sort_by(|a, b| natural_order(&name(a), &name(b)));
    Ok(paths)
}
