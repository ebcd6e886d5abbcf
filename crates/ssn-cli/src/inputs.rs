//! The distribution files that were named, and those of the folders that were.

use std::path::{Path, PathBuf};

use ssn_data::text::natural_order;
use ssn_eval::{DISTRIBUTION_ENDING, DistributionFile, Found};
use ssn_io::Limits;

use crate::exit::{Exit, Failure};
use crate::predictions::failure;

/// The files, and those of the folders, in the order in which they were named; each with what its header says.
pub fn find(inputs: &[PathBuf]) -> Result<Vec<Found>, Failure> {
    let mut paths = vec![];
    for input in inputs {
        match input.is_dir() {
            true => paths.extend(files_of(input)?),
            false => paths.push(checked(input)?),
        }
    }
    let read = |path: PathBuf| match DistributionFile::read_header(&path, &Limits::default()) {
        Ok(header) => Ok(Found { path, header }),
        Err(error) => Err(failure(error)),
    };
    paths.into_iter().map(read).collect()
}

/// A file that may be a distribution file, by its name.
fn checked(path: &Path) -> Result<PathBuf, Failure> {
    let refused = |exit, what: &str| Failure::new(exit, format!("{}: {what}", path.display()));
    if !path.exists() {
        return Err(refused(Exit::Io, "there is no such file or folder; check the path"));
    }
    if path.extension().is_none_or(|ending| ending != "safetensors") {
        let what = format!(
            "this is no distribution file, whose names end with {DISTRIBUTION_ENDING}; name one, or a folder of them"
        );
        return Err(refused(Exit::BadData, &what));
    }
    Ok(path.to_owned())
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
