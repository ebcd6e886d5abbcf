//! Which files of a folder are ours: `.ssn-files` lists them, so that nothing else is ever replaced or removed.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use crate::atomic::{WriteError, open_own};
use crate::open::read_file;

/// The list of a folder: a path relative to it per line, with `/` between folders.
pub const OWN_FILES: &str = ".ssn-files";

/// Notes that files of these names are about to be written to a folder, which must exist. Gives the first that is there and is not
/// ours, or whose own folder is a link; nothing is noted then.
///
/// # Errors
/// A list that cannot be read or written.
pub fn claim(folder: &Path, names: &[String]) -> Result<Option<PathBuf>, WriteError> {
    let list = folder.join(OWN_FILES);
    let claim = || -> io::Result<Option<PathBuf>> {
        let mut file = open_own(&list, true)?;
        // Processes that share the work of a folder write it in turns. Where there are no locks, a line may be lost.
        let _ = file.lock();
        let text = read(&list)?;
        let known = names_of(&text);
        let new: Vec<&String> = names.iter().filter(|name| !known.contains(name.as_str())).collect();
        let foreign = new.iter().find_map(|name| foreign(folder, name));
        if foreign.is_none() && !new.is_empty() {
            // After a line that was cut off.
            let begin = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            let lines = new.iter().fold(begin.to_owned(), |lines, name| lines + name + "\n");
            file.write_all(lines.as_bytes())?;
            file.sync_all()?;
        }
        Ok(foreign)
    };
    claim().map_err(|source| WriteError { path: list.clone(), source })
}

/// The names of a folder's files that are ours, there or not.
///
/// # Errors
/// A list that cannot be read.
pub fn own_files(folder: &Path) -> Result<BTreeSet<String>, WriteError> {
    let list = folder.join(OWN_FILES);
    let text = read(&list).map_err(|source| WriteError { path: list, source })?;
    Ok(names_of(&text).into_iter().map(str::to_owned).collect())
}

/// What is in the way of a new file.
fn foreign(folder: &Path, name: &str) -> Option<PathBuf> {
    let path = folder.join(name);
    let parent = path.parent().filter(|parent| *parent != folder && parent.is_symlink()).map(Path::to_owned);
    parent.or_else(|| path.symlink_metadata().is_ok().then_some(path))
}

fn read(list: &Path) -> io::Result<String> {
    match read_file(list) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        bytes => Ok(String::from_utf8_lossy(&bytes?).into_owned()),
    }
}

/// The whole lines that name something inside of the folder, whatever somebody wrote to the list.
fn names_of(text: &str) -> BTreeSet<&str> {
    let whole = &text[..text.rfind('\n').unwrap_or(0)];
    let is_inside =
        |name: &&str| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    whole.lines().filter(is_inside).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_there_and_not_listed_is_somebody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("plot.png"), b"").unwrap();
        assert_eq!(claim(folder.path(), &names(&["a", "plot.png"])).unwrap(), Some(path("plot.png")));
        assert!(own_files(folder.path()).unwrap().is_empty(), "nothing is noted then");

        assert_eq!(claim(folder.path(), &names(&["a", "b"])).unwrap(), None);
        fs::write(path("a"), b"").unwrap();
        assert_eq!(claim(folder.path(), &names(&["a", "c"])).unwrap(), None, "ours may be replaced");
        let known: Vec<_> = own_files(folder.path()).unwrap().into_iter().collect();
        assert_eq!(known, ["a", "b", "c"]);
    }

    #[test]
    fn a_line_that_was_cut_off_and_names_that_lead_elsewhere_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(OWN_FILES), b"a\n../b\n/c\nd\xff\nhal").unwrap();
        assert_eq!(claim(folder.path(), &names(&["e"])).unwrap(), None);
        let known: Vec<_> = own_files(folder.path()).unwrap().into_iter().collect();
        assert_eq!(known, ["a", "d\u{fffd}", "e", "hal"]);
    }

    #[test]
    fn no_link_is_written_through() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = folder.path().join("figures");
        std::os::unix::fs::symlink(other.path(), &link).unwrap();
        assert_eq!(claim(folder.path(), &names(&["figures/a.png"])).unwrap(), Some(link.clone()));
        fs::remove_file(folder.path().join(OWN_FILES)).unwrap();
        std::os::unix::fs::symlink(other.path().join("x"), folder.path().join(OWN_FILES)).unwrap();
        assert!(claim(folder.path(), &names(&["a"])).is_err());
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
    }
}
