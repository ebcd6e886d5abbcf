//! The distribution files that were named, and those of the folders that were.

use std::path::{Path, PathBuf};

use crate::error::{EvalError, Result};
use crate::predictions::{DISTRIBUTION_ENDING, DistributionFile, Found};
use ssn_data::nearest;
use ssn_data::text::natural_order;
use ssn_io::Limits;

/// Cases of a list that are named in a message; the rest is counted.
const NAMED_IN_MESSAGES: usize = 10;

/// The files, and those of the folders, in the order in which they were named; each with what its header says.
pub fn find(inputs: &[PathBuf]) -> Result<Vec<Found>> {
    let mut paths = vec![];
    for input in inputs {
        match input.is_dir() {
            true => paths.extend(files_of(input)?),
            false => paths.push(checked(input)?),
        }
    }
    let read = |path: PathBuf| {
        let header = DistributionFile::read_header(&path, &Limits::default())?;
        Ok(Found { path, header })
    };
    paths.into_iter().map(read).collect()
}

/// A file that may be a distribution file, by its name.
fn checked(path: &Path) -> Result<PathBuf> {
    if !path.exists() {
        let reason = "there is no such file or folder; check the path";
        return Err(EvalError::io(path, std::io::Error::new(std::io::ErrorKind::NotFound, reason)));
    }
    if path.extension().is_none_or(|ending| ending != "safetensors") {
        return Err(EvalError::mismatch(format!(
            "{}: this is no distribution file, whose names end with {DISTRIBUTION_ENDING}; name one, or a folder of them",
            path.display()
        )));
    }
    Ok(path.to_owned())
}

/// The distribution files of a folder, in natural order.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let list = || -> std::io::Result<Vec<PathBuf>> {
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut paths = list().map_err(|error| EvalError::io(folder, error))?;
    paths.retain(|path| name(path).ends_with(DISTRIBUTION_ENDING) && !name(path).starts_with('.'));
    if paths.is_empty() {
        let message =
            format!("{} holds no files *{DISTRIBUTION_ENDING}; `ssn predict` writes them", folder.display());
        return Err(EvalError::mismatch(message));
    }
    paths.sort_by(|a, b| natural_order(&name(a), &name(b)));
    Ok(paths)
}

/// The first of many names, and how many there are besides.
pub(crate) fn named(ids: &[String]) -> String {
    let shown: Vec<&str> = ids.iter().take(NAMED_IN_MESSAGES).map(String::as_str).collect();
    match ids.len().saturating_sub(NAMED_IN_MESSAGES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// That a class does not exist in a file or dataset, and which was probably meant.
pub fn unknown_name(name: &str, known: &[String], place: &Path) -> String {
    let hint = match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("it has {}", known.join(", ")),
    };
    format!("there is no class {name:?} in {}; {hint}", place.display())
}

/// Whether a path names a config, and not a dataset itself.
pub fn is_config(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// Refuses to replace a file unless that was asked for.
pub fn check_free(path: &Path, overwrite: bool) -> Result<()> {
    check_free_or(path, overwrite, "choose another name with --out")
}

/// The same, with what else than replacing it can be done.
pub fn check_free_or(path: &Path, overwrite: bool, advice: &str) -> Result<()> {
    if overwrite || !path.exists() {
        return Ok(());
    }
    let message = format!("{} exists already; {advice} or replace it with --overwrite", path.display());
    Err(EvalError::settings(message))
}
